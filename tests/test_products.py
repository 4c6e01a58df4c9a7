"""Outcome laws in which one memory matters: exact integers, the plain loop, and the truths of a store."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mwjax import engine, experiment, reference, registry, sweep, testing, worlds
from mwjax.config import Config, make_params
from mwjax.theory import stores
from mwjax.types import UTILITY_ONE, InputError, Step
from mwjax.worlds import products

PRODUCTS = ("weakest_link", "noisy_or", "top_ranked")
EDGES = (0, 1, 2, 1 << 12, (1 << 23) - 1, 1 << 23, UTILITY_ONE - 2, UTILITY_ONE - 1, UTILITY_ONE)
SETS = list(itertools.product(EDGES, repeat=3))
MASKED, RATE = 4, {"base": 0.8, "gain": 0.9}
UTILITIES = [0, 0.1, 0.25, 0.4, 0.5, 0.6, 0.75, 0.9, 1, 1, 0.3, 0.8]
UTILITY = np.array(UTILITIES)
ALIVE = np.arange(12) != MASKED


def centred(values, expected):
    """The mean of independent rows lies within five standard errors of what is expected, entry by entry."""
    error = values.std(axis=0, ddof=1) / np.sqrt(len(values))
    return (np.abs(values.mean(axis=0) - expected) <= 5 * error).all()


# --- Integers --------------------------------------------------------------------------------------------------------


def test_products_of_24_bit_integers_are_exact():
    rng = np.random.default_rng(1)
    edges = np.array(list(itertools.product(EDGES, EDGES)))
    a, b = np.concatenate([edges, rng.integers(0, UTILITY_ONE + 1, (5_000, 2))]).T
    expected = [int(x) * int(y) >> 24 for x, y in zip(a, b, strict=True)]
    found = products.times(jnp.asarray(a, jnp.uint32), jnp.asarray(b, jnp.uint32))
    assert found.dtype == jnp.uint32
    np.testing.assert_array_equal(found, expected)


def steps(sets, **known):
    """A step of one life for each set."""
    utility = jnp.asarray(np.array(sets).T, jnp.uint32)
    return Step(jnp.int32(0), context=jnp.zeros(len(sets), jnp.int32), utility=utility, **known)


def chances(name, step, base=0.5):
    config = Config(num_retrieved=len(step.utility))
    params = jax.tree.map(lambda x: jnp.asarray(x)[..., None], make_params(config, base_success=base))
    return np.asarray(registry.WORLDS[name](config).chance(params, step))


@pytest.mark.parametrize("base", [0, 1, 0.5, 1 / UTILITY_ONE, 0.3])
def test_chances_are_exact_at_the_edges(base):
    """Rounded down after every factor, slot 0 first; 2**24 changes nothing."""
    start, one = worlds.fixed_point(np.float32(base)).item(), UTILITY_ONE
    fold = lambda start, factors: functools.reduce(lambda p, q: p * q >> 24, factors, start)
    np.testing.assert_array_equal(
        chances("weakest_link", steps(SETS), base), [fold(start, one_set) for one_set in SETS]
    )
    expected = [one - fold(one - start, [one - u for u in one_set]) for one_set in SETS]
    np.testing.assert_array_equal(chances("noisy_or", steps(SETS), base), expected)


@pytest.mark.parametrize("name", ["weakest_link", "noisy_or"])
def test_a_neutral_memory_changes_nothing(name):
    neutral = registry.WORLDS[name](Config()).neutral
    longer = [(*one[:1], neutral, *one[1:]) for one in SETS]
    np.testing.assert_array_equal(chances(name, steps(longer), 0.7), chances(name, steps(SETS), 0.7))


def test_the_first_of_the_ranking_decides_and_ties_go_to_the_earlier_slot():
    score = jnp.asarray([[0.5, 0.5, 0.5, 0.9], [0.75, 0.5, 0.9, 0.9], [0.75, 0.5, 1.0, 0.25]], jnp.float32)
    step = steps([(1, 2, 3)] * 4, score=score)
    np.testing.assert_array_equal(chances("top_ranked", step), [2, 1, 3, 1])


# --- The plain loop --------------------------------------------------------------------------------------------------

SETTINGS = {
    "uniform": {},
    "long set": {"num_memories": 30, "num_retrieved": 19},
    "softmax": {"retrieval": "softmax", "floor_mode": "slot"},
}


@pytest.mark.parametrize("law", PRODUCTS)
@pytest.mark.parametrize("name", SETTINGS)
def test_the_simulation_equals_the_plain_loop(law, name):
    """Chances of a first episode bit for bit, since expected_hits holds them exactly, then counts of whole lives."""
    shape = {"num_memories": 12, "num_retrieved": 5, "num_contexts": 2, **SETTINGS[name]}
    config = Config(**shape, outcome=law, metrics=("mean_success", "compensator"))
    traced = {"base_success": [0.9, 0.2], "temperature": 0.1, "score_low": 0.0}
    traced |= {"utility_high": 0.7} if law == "noisy_or" else {"utility_low": 0.3}
    traced |= {"exploration_floor": 0.1} if name == "softmax" else {}
    for episodes, lives in ((1, 48), (250, 3)):
        params = make_params(config, num_episodes=episodes, **traced)
        seeds = np.arange(lives, dtype=np.uint32)
        batch = next(engine.run_lives(config, params, seeds, root_seed=7, chunk=48, devices=jax.devices()[:1]))
        trace = batch.trace
        for i in range(lives):
            life = reference.simulate(config, params, 7, i)
            assert (trace.counts.evidence[i] == life.evidence).all()
            assert (trace.counts.successes[i] == life.successes).all()
            if episodes == 1:
                assert (trace.expected_hits[i].astype(np.float64) * UTILITY_ONE == life.expected_hits).all()
            np.testing.assert_allclose(trace.expected_hits[i], life.expected_hits / UTILITY_ONE, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("law", PRODUCTS)
def test_the_laws_keep_the_contract(law):
    """With contexts, and a set too long to be unrolled."""
    config = Config(num_memories=24, num_retrieved=17, num_contexts=2)
    assert testing.check_component(registry.WORLDS[law], config) == "outcome"


# --- The truths of a store -------------------------------------------------------------------------------------------


def of_set(law, u):
    """Success probability of one set, from the definition."""
    base, gain = RATE["base"], RATE["gain"]
    return {
        "mean": np.mean(u),
        "linear": base + gain * (np.mean(u) - 0.5),
        "weakest_link": base * np.prod(u),
        "noisy_or": 1 - (1 - base) * np.prod(1 - u),
        "top_ranked": np.mean(u),
    }[law]


def enumerated(law, u, live, k, m=None):
    """Mean over the sets of k live memories, those that show m if it is given."""
    found = [of_set(law, u[list(chosen)]) for chosen in itertools.combinations(live, k) if m is None or m in chosen]
    return np.mean(found)


@pytest.mark.parametrize("law", stores.LAWS)
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_truths_of_a_store_are_those_of_all_its_sets(law, k):
    rng = np.random.default_rng(k)
    utility, alive = rng.random((2, 3, 8)), np.ones((3, 8), bool)
    utility[0, 0, :3] = 0, 1, 1
    alive[1, [0, 4]] = alive[2, [1, 6, 7]] = False
    rate, p, value = (
        function(utility, alive, k, law, **RATE)
        for function in (stores.success_rate, stores.p_plus, stores.removal_value)
    )
    assert rate.shape == (2, 3)
    for row in np.ndindex(2, 3):
        u, live = utility[row], np.flatnonzero(alive[row[1]])
        whole = enumerated(law, u, live, k)
        assert rate[row] == pytest.approx(whole, abs=1e-12)
        for m in range(8):
            with_m, without = sorted({*live, m}), [i for i in live if i != m]
            assert p[*row, m] == pytest.approx(enumerated(law, u, with_m, k, m), abs=1e-12)
            lost = whole - enumerated(law, u, without, k) if m in live else 0
            assert value[*row, m] == pytest.approx(lost, abs=1e-12)


@pytest.mark.parametrize("law", stores.LAWS)
def test_large_stores_hold_together(law):
    """No overflow at 1,000 memories; the rate is the mean p+ of the live, and removing one by hand gives its value."""
    rng = np.random.default_rng(3)
    utility, alive = 1 - 0.1 * rng.random((2, 1_000)), rng.random((2, 1_000)) < 0.7
    rate, p = (function(utility, alive, 40, law, **RATE) for function in (stores.success_rate, stores.p_plus))
    assert ((rate > 0) & (rate <= 1.3)).all()
    np.testing.assert_allclose(p.mean(axis=-1, where=alive), rate, rtol=1e-11)
    value, m = stores.removal_value(utility, alive, 40, law, **RATE), np.flatnonzero(alive[0] & alive[1])[5]
    without = stores.success_rate(utility, alive & (np.arange(1_000) != m), 40, law, **RATE)
    np.testing.assert_allclose(value[:, m], rate - without, rtol=1e-6, atol=1e-14)
    assert (value[~alive] == 0).all()


def test_what_has_no_truth_is_nan():
    utility, alive = np.full(4, 0.5), np.array([True, True, False, False])
    for law in stores.LAWS:
        assert np.isnan(stores.success_rate(utility, alive, 3, law))
        assert np.isnan(stores.p_plus(utility, alive, 3, law)).tolist() == [True, True, False, False]
        assert np.isnan(stores.removal_value(utility, alive, 2, law)).tolist() == [True, True, False, False]
    unknown = [function(utility, alive, 2, "logistic") for function in (stores.success_rate, stores.p_plus)]
    assert np.isnan(unknown[0])
    assert np.isnan(unknown[1]).all()
    with pytest.raises(InputError, match="k = 5"):
        stores.p_plus(utility, alive, 5, "mean")


# --- Simulated lives -------------------------------------------------------------------------------------------------


@functools.cache
def lives(law, masked):
    config = Config(
        num_memories=12,
        num_retrieved=3,
        utility="list",
        outcome=law,
        can_mask=True,
        metrics=("mean_success", "compensator"),
    )
    settings = {"base_success": RATE["base"], "gain": RATE["gain"], "score_low": 0.0, "utilities": UTILITIES}
    params = make_params(config, num_episodes=1_000, masked=masked, **settings)
    batches = list(engine.run_lives(config, params, np.arange(768), root_seed=11, chunk=384))
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *[batch.trace for batch in batches])


@pytest.mark.parametrize("law", PRODUCTS)
def test_success_comes_as_often_as_the_store_says(law):
    trace = lives(law, MASKED)
    p = stores.p_plus(UTILITY, ALIVE, 3, law, **RATE)
    rate = stores.success_rate(UTILITY, ALIVE, 3, law, **RATE)
    evidence = trace.counts.evidence.astype(np.float64)
    assert centred((trace.counts.successes - evidence * p)[:, ALIVE], 0)
    assert centred((trace.expected_hits - evidence * p)[:, ALIVE], 0)
    assert centred(trace.counts.episode_successes.sum(axis=1) / 1_000, rate)


@pytest.mark.parametrize("law", PRODUCTS)
def test_p_plus_of_a_life_is_that_of_the_store_or_unknown(law):
    trace = lives(law, -1)
    if law == "top_ranked":
        np.testing.assert_allclose(trace.p_plus[0], stores.p_plus(UTILITY, ALIVE | True, 3, law), rtol=1e-6)
    else:
        assert np.isnan(trace.p_plus).all()


@pytest.mark.parametrize("law", PRODUCTS)
def test_paired_lives_show_the_removal_value(law):
    """The removed one is the most harmful, or, where none can harm, the most useful; 768 paired lives."""
    m = {"weakest_link": 0, "noisy_or": 8, "top_ranked": 8}[law]
    asked = experiment.load(
        "ranking", seeds=768, num_memories=12, num_retrieved=3, num_episodes=500, utility=UTILITIES, outcome=law,
        base_success=RATE["base"], removed=[m], checkpoints=[500], observers=["memory_worth"], metrics=["mean_success"],
    )  # fmt: skip
    measured = sweep.run(asked, chunk=384).removal_value.values[:, 0].astype(np.float64)
    expected = stores.removal_value(UTILITY, np.ones(12, bool), 3, law, **RATE)[m]
    assert centred(measured, expected)
    assert abs(measured.mean()) > 5 * measured.std() / np.sqrt(len(measured))
