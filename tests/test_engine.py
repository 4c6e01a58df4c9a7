import jax
import jax.numpy as jnp
import numpy as np
import pytest

import mwjax
from mwjax import engine
from mwjax.config import Config, Params, make_params
from mwjax.types import InputError

CONFIG = Config(num_memories=20, num_retrieved=4, num_checkpoints=2, observers=("memory_worth", "memory_worth_score"))
PARAMS = make_params(CONFIG, num_episodes=60, checkpoints=[25, 60])
SEEDS = np.arange(40, dtype=np.uint32)


def keys(seeds, root=3):
    return jax.vmap(lambda i: jax.random.wrap_key_data(jnp.stack([jnp.uint32(root), i])))(jnp.asarray(seeds))


def run(config=CONFIG, params=PARAMS, seeds=SEEDS, **settings):
    batches = list(engine.run_lives(config, params, seeds, root_seed=3, **settings))
    return jax.tree.map(lambda *parts: np.concatenate(parts), *[batch.trace for batch in batches])


def assert_same(first, second):
    for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True):
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.fixture(scope="module")
def whole():
    return run(chunk=64, devices=jax.devices()[:1])


@pytest.mark.parametrize("chunk", [1, 7, 256, 1_000])
@pytest.mark.parametrize("devices", [1, 2])
def test_chunk_and_device_count_change_nothing(whole, chunk, devices):
    assert_same(run(chunk=chunk, devices=jax.devices()[:devices]), whole)


def test_users_vmap_gives_the_same_bits(whole):
    assert_same(jax.jit(jax.vmap(lambda key: mwjax.simulate(CONFIG, PARAMS, key)))(keys(SEEDS)), whole)


def test_one_life_is_a_row_of_the_batch(whole):
    one = jax.jit(lambda key: mwjax.simulate(CONFIG, PARAMS, key))(keys(SEEDS)[7])
    assert_same(one, jax.tree.map(lambda x: x[7], whole))


def test_the_order_of_seeds_is_theirs(whole):
    order = np.random.default_rng(0).permutation(len(SEEDS))
    assert_same(run(seeds=SEEDS[order], chunk=64), jax.tree.map(lambda x: x[order], whole))


def test_nested_vmap_over_params_and_keys(whole):
    swept = PARAMS._replace(prior_a=np.float32([1, 2]), theta_low=np.float32([0.4, 0.3]))
    axes = Params(**{name: 0 if name in ("prior_a", "theta_low") else None for name in Params._fields})
    live = lambda params, key: mwjax.simulate(CONFIG, params, key)
    both = jax.jit(jax.vmap(jax.vmap(live, (None, 0)), (axes, None)))(swept, keys(SEEDS))
    assert_same(jax.tree.map(lambda x: x[0], both), whole)
    other = PARAMS._replace(prior_a=np.float32(2), theta_low=np.float32(0.3))
    assert_same(jax.tree.map(lambda x: x[1], both), run(params=other, chunk=64, devices=jax.devices()[:1]))


def test_a_parameter_may_vary_by_life(whole):
    low = np.where(SEEDS % 2, 0.5, 0.0).astype(np.float32)
    mixed = run(params=PARAMS._replace(score_low=low), varied=("score_low",), chunk=16)
    for value in (0.5, 0.0):
        mine = low == value
        expected = run(params=PARAMS._replace(score_low=np.float32(value)), chunk=64)
        assert_same(jax.tree.map(lambda x, m=mine: x[m], mixed), jax.tree.map(lambda x, m=mine: x[m], expected))


def test_checkpoints_may_vary_by_life(whole):
    marks = jnp.asarray([[25, 60], [10, 40]], jnp.int32)
    axes = Params(**{name: 0 if name == "checkpoints" else None for name in Params._fields})
    live = jax.vmap(lambda params, key: mwjax.simulate(CONFIG, params, key), (axes, 0))
    both = jax.jit(live)(PARAMS._replace(checkpoints=marks), keys(SEEDS[:2]))
    assert_same(jax.tree.map(lambda x: x[0], both), jax.tree.map(lambda x: x[0], whole))
    assert both.counts.evidence[1].sum() == 40 * 4


def test_equal_configs_share_one_compilation():
    engine.compile_chunk.cache_clear()
    for theta in (0.1, 0.2, 0.3):
        run(params=PARAMS._replace(theta_low=np.float32(theta)), seeds=SEEDS + np.uint32(5), chunk=64)
    twin = Config(num_memories=20, num_retrieved=4, num_checkpoints=2, observers=("memory_worth", "memory_worth_score"))
    run(config=twin, chunk=64)
    assert engine.compile_chunk.cache_info().misses == 1


def test_simulate_is_traced_once_over_a_sweep():
    traced = []

    def outcome(config):
        traced.append(config)
        return mwjax.worlds.mean(config)

    config = Config(num_memories=5, num_retrieved=2, outcome=outcome, metrics=())
    live = jax.jit(lambda params, key: mwjax.simulate(config, params, key))
    for low in (0.0, 0.25, 0.5):
        live(make_params(config, num_episodes=5, utility_low=low), keys(SEEDS)[0])
    assert len(traced) == 1
    assert live._cache_size() == 1


def test_worth_may_be_kept_at_every_checkpoint(whole):
    config = Config(**{**CONFIG.__dict__, "keep_worth": "all"})
    kept = run(config=config, chunk=64)
    assert kept.worth.shape == (40, 2, 2, 20)
    assert_same(kept.worth[:, -1], whole.worth)


def test_every_set_is_counted(whole):
    assert (whole.counts.evidence.sum(axis=1) == 60 * 4).all()
    assert (whole.counts.successes.sum(axis=1) == np.rint(whole.metrics["mean_success"][:, -1] * 60) * 4).all()


@pytest.mark.parametrize("key", [jax.random.key(0, impl="rbg"), jnp.zeros(2, jnp.uint32)])
def test_other_keys_are_refused(key):
    with pytest.raises(InputError, match="threefry2x32"):
        mwjax.simulate(CONFIG, PARAMS, key)


def test_chunks_shrink_as_stores_grow():
    assert engine.batch_size(Config()) == 384
    assert engine.batch_size(Config(num_memories=100_000)) == 32
    assert engine.batch_size(Config(num_memories=8), 2) == 2_048
