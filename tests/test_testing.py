"""Our own components and three of a stranger's pass the contract; each kind of fault is refused in one line."""

import jax
import jax.numpy as jnp
import pytest

from mwjax import estimators, lanes, registry, retrieval, worlds
from mwjax.config import Config
from mwjax.testing import ComponentError, check_component

ALIKE = {"discounted_beta", "cusum_reset", "backdoor_half", "memory_worth_score_normalised", "memory_worth_oracle_raw"}
ALL = sorted(set(registry.ESTIMATORS) - ALIKE)  # without those of the same factory as another, with another flag
UNPAIRED = ("uniform", "softmax", "thompson", "epsilon_greedy", "blend")


COMPONENTS = {
    name: table[name]
    for table, names in (
        (registry.ESTIMATORS, ALL),
        (registry.RETRIEVAL, UNPAIRED),
        (registry.WORLDS, list(registry.WORLDS)),
    )
    for name in names
}
SLOW = {"backdoor", "thompson", "discounted_step", "last_outcome", "memory_worth_oracle", "never_updated", "noisy_or"}
"""Like others that are checked each time."""


@pytest.mark.parametrize(
    "factory",
    [pytest.param(one, id=name, marks=[pytest.mark.slow] * (name in SLOW)) for name, one in COMPONENTS.items()],
)
def test_our_components_keep_the_contract(factory):
    assert check_component(factory) in ("estimator", "retrieval", "outcome")


@pytest.mark.parametrize("name", ["pairs", "diverse", "pools"])
@pytest.mark.parametrize("masks", [False, True])
def test_our_retrieval_of_structured_stores_keeps_the_contract(name, masks):
    settings = {"num_memories": 14, "num_retrieved": 5, "can_mask": masks}
    pools = {"pool_sizes": (9, 5), "pool_slots": ((5, 0), (3, 2)), "num_contexts": 2}
    config = Config(**settings, **(pools if name == "pools" else {"num_pairs": 2}))
    assert check_component(registry.RETRIEVAL[name], config) == "retrieval"


def wilson(config):
    """Lower end of the 95 % Wilson interval: an estimator that reads the integer counters."""

    def worth(params, state, counts):
        n, z = counts.evidence.astype(jnp.float32), jnp.float32(1.96)
        p = jnp.where(n > 0, counts.successes.astype(jnp.float32) / jnp.maximum(n, 1.0), jnp.float32(0.5))
        n = jnp.maximum(n, 1.0)
        root = jnp.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
        return jnp.clip((p + z * z / (2 * n) - z * root) / (1 + z * z / n), 0.0, 1.0)

    return estimators.Estimator(lambda lives: (), lambda params, state, step: (), worth)


def discounted(config):
    """Evidence of an episode halves the weight of what a memory had before: an estimator with a state of its own."""

    def update(params, table, step):
        old = lanes.take(table, step.retrieved)
        new = jnp.where(step.success, jnp.float32(1), jnp.float32(0))
        return lanes.add(table, step.retrieved, (new - old) * jnp.float32(0.5))

    init = lambda lives: jnp.full(lives * config.num_memories, 0.5, jnp.float32)
    return estimators.Estimator(
        init, update, lambda params, table, counts: lanes.rows(table, counts.evidence.shape[-1])
    )


def best_first(config):
    """The k memories of highest worth, ties by index: a retrieval that exploits."""

    def retrieve(params, state, step, words):
        return jax.lax.top_k(step.worth.T, config.num_retrieved)[1].T.astype(jnp.int32), state

    return retrieval.Retrieval(0, lambda params, worth: (), retrieve, uses_worth=True)


def weakest_link(config):
    """Success with the least utility of the set: an outcome law."""

    return worlds.Outcome(lambda params, step: step.utility.min(axis=0))


@pytest.mark.parametrize("factory", [wilson, discounted, best_first, weakest_link])
def test_a_strangers_component_needs_no_fork(factory):
    check_component(factory)


UNIFORM = lambda config: registry.RETRIEVAL["uniform"](config)


def bad_retrieval(retrieve, **settings):
    return lambda config: UNIFORM(config)._replace(retrieve=lambda *args: retrieve(config, *args), **settings)


def peeks(config, params, state, step, words):
    sets = retrieval.subset(words, config.num_memories)
    return sets if step.success is None else jnp.where(step.success, sets, sets[::-1]), state


def bad_worth(worth):
    return lambda config: estimators.counter(config)._replace(worth=worth, at=None)


def impure():
    calls = iter(range(10**6))
    return bad_worth(lambda p, s, c: jnp.full(c.evidence.shape, next(calls) % 7 / 7, jnp.float32))


GROWING = lambda config: estimators.counter(config)._replace(
    init=lambda lives: jnp.zeros(lives, jnp.float32), update=lambda p, s, step: s.astype(jnp.int32)
)
FAULTS = {
    "looks at the outcome before it acts": bad_retrieval(peeks),
    "reads a Step field that is not known yet": bad_retrieval(
        lambda c, p, s, step, w: (retrieval.subset(w, c.num_memories) + step.success.astype(jnp.int32) * 0, s)
    ),
    "must be int32": bad_retrieval(
        lambda c, p, s, step, w: (retrieval.subset(w, c.num_memories).astype(jnp.uint32), s)
    ),
    "repeats a memory or leaves": bad_retrieval(lambda c, p, s, step, w: (jnp.zeros(w.shape, jnp.int32), s)),
    "its state changes from": GROWING,
    "leaves [0, 1]": bad_worth(lambda p, s, c: c.evidence.astype(jnp.float32)),
    "is not finite": bad_worth(lambda p, s, c: c.successes / c.evidence),
    "must be float32": bad_worth(lambda p, s, c: c.successes),
    "a memory that was never shown changes its worth": bad_worth(
        lambda p, s, c: jnp.broadcast_to(c.successes.sum(0) / 10_000, c.evidence.shape).astype(jnp.float32)
    ),
    "relabelling the memories changes": bad_worth(
        lambda p, s, c: jnp.where(
            c.evidence > 0, (jnp.arange(c.evidence.shape[0], dtype=jnp.float32) / 100)[:, None], jnp.float32(0.5)
        )
    ),
    "watching the same life twice": impure(),
    "must be uint32": lambda config: worlds.mean(config)._replace(chance=lambda p, step: step.score[0]),
    "exceeds 2**24": lambda config: worlds.mean(config)._replace(
        chance=lambda p, step: step.utility.sum(0, dtype="uint32")
    ),
    "`at` tells another worth": lambda config: estimators.counter(config)._replace(at=lambda p, s, c, i: i / 100),
    "must be an Estimator": lambda config: 7,
}


@pytest.mark.parametrize("fault", FAULTS)
def test_each_fault_is_refused_in_one_line(fault):
    with pytest.raises(ComponentError) as caught:
        check_component(FAULTS[fault])
    message = str(caught.value)
    assert "\n" not in message
    assert fault in message
