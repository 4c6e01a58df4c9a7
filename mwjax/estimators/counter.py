"""What an agent believes of its memories: one counter law, and estimators as named settings of it.

An estimator adds the weight w_t(m) of each retrieval to the memory's success or failure counter and reads

    worth(m) = (hits+ + a) / (hits+ + a + hits- + b),    0.5 where that is 0 / 0     (Simsek 2026, "Memory Worth")

with a = b = 0 for Memory Worth and (a, b) = (prior_a, prior_b) for the mean of the Beta posterior. Any number of
estimators watch the same life. Those whose weights are constant read the integer counters that every life keeps.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from mwjax import lanes
from mwjax.config import Config, Params
from mwjax.estimators.base import Estimator, Evidence, add_weight, both, new_counters, of_counts, ratio
from mwjax.types import Counts, Pytree, Step


def score_weight(params: Params, step: Step) -> Array:
    """w = score(m)."""
    del params
    return step.score


def oracle_raw_weight(params: Params, step: Step) -> Array:
    """w = U*(m): cancels in worth, up to rounding."""
    del params
    return step.utility.astype(jnp.float32) * jnp.float32(2**-24)


def normalised(weight: Array) -> Array:
    """Weights that sum to 1 over the retrieved set; 1/k each where all are 0."""
    total, k = lanes.total(weight), weight.shape[0]
    return jnp.where(total > 0, weight / jnp.where(total > 0, total, jnp.float32(1)), jnp.float32(1 / k))


def oracle_weight(params: Params, step: Step) -> Array:
    """w = U*(m) / sum of U* over the retrieved set."""
    return normalised(oracle_raw_weight(params, step))


WEIGHTS = {
    "score": score_weight,
    "score_normalised": lambda params, step: normalised(score_weight(params, step)),
    "oracle": oracle_weight,
    "oracle_raw": oracle_raw_weight,
}


def counter(config: Config, *, weight: str = "uniform", prior: bool = False) -> Estimator:
    """The counter law. `weight`: uniform, none (never updated) or a key of WEIGHTS; `prior`: read with Beta(a, b)."""
    unweighted = weight in ("uniform", "none")

    def init(lives: int) -> Pytree:
        return () if unweighted else new_counters(config.num_memories, lives, jnp.dtype(jnp.float32))

    def update(params: Params, state: Pytree, step: Step) -> Pytree:
        return () if unweighted else add_weight(state, step, WEIGHTS[weight](params, step))

    def read(params: Params, failure: Array, success: Array) -> Array:
        total = success + failure
        if prior:
            success, total = success + params.prior_a, total + (params.prior_a + params.prior_b)
        return ratio(success, total)

    def worth(params: Params, state: Pytree, counts: Counts) -> Array:
        if unweighted:
            seen = jnp.int32(weight == "uniform")
            pair = (seen * (counts.evidence - counts.successes), seen * counts.successes)
            return read(params, *(x.astype(jnp.float32) for x in pair))
        return read(params, *both(state, counts.evidence.shape[-1]))

    def at(params: Params, state: Pytree, counts: Counts, index: Array) -> Array:
        if unweighted:
            return worth(params, state, counts)
        return read(params, *both(state, index.shape[-1], index))

    def evidence(params: Params, state: Pytree, counts: Counts, index: Array | None) -> Evidence:
        del params, state, index
        return of_counts(counts.successes, counts.evidence)

    flags = {"uses_score": weight.startswith("score"), "uses_utility": weight.startswith("oracle")}
    return Estimator(init, update, worth, **flags, at=at, evidence=evidence if weight == "uniform" else None)
