"""What an agent believes of its memories: one counter law, and estimators as named settings of it.

An estimator adds the weight w_t(m) of each retrieval to the memory's success or failure counter and reads

    worth(m) = (hits+ + a) / (hits+ + a + hits- + b),    0.5 where that is 0 / 0     (Simsek 2026, "Memory Worth")

with a = b = 0 for Memory Worth and (a, b) = (prior_a, prior_b) for the mean of the Beta posterior. Any number of
estimators watch the same life. Those whose weights are constant read the integer counters that every life keeps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from mwjax import lanes
from mwjax.config import Config, Params
from mwjax.types import Counts, Pytree, Step


class Estimator(NamedTuple):
    """A worth estimator."""

    init: Callable[[int], Pytree]
    """(lives) -> state: tables (see lanes.py) or arrays [..., life]; () for none."""
    update: Callable[[Params, Pytree, Step], Pytree]
    """(params, state, step) -> state after the outcome; deterministic."""
    worth: Callable[[Params, Pytree, Counts], Array]
    """(params, state, counts) -> float32 [memory, life] in [0, 1]."""
    uses_score: bool = False


def new_tally(num_memories: int, lives: int, dtype: jnp.dtype = jnp.int32) -> Array:
    """Empty counters: a table with two entries a memory, failures of every memory, then successes."""
    return jnp.zeros(lives * 2 * num_memories, dtype)


def tally(counters: Array, step: Step, weight: Array) -> Array:
    """Add `weight` ([retrieved, life] or a scalar) to the success or failure counter of each retrieved memory."""
    num_memories = counters.shape[0] // (2 * step.success.shape[0])
    return lanes.add(counters, step.retrieved + jnp.where(step.success, num_memories, 0).astype(jnp.int32), weight)


def read(counters: Array, lives: int) -> tuple[Array, Array]:
    """(failures, successes) of a tally, [memory, life] each."""
    failures, successes = jnp.split(lanes.rows(counters, lives), 2)
    return failures, successes


def counts(counters: Array, lives: int) -> Counts:
    """Read the integer tally."""
    failures, successes = read(counters, lives)
    evidence = failures + successes
    return Counts(shown=evidence, evidence=evidence, successes=successes)


def ratio(success: Array, total: Array) -> Array:
    """success / total, 0.5 where total is 0."""
    return jnp.where(total > 0, success / jnp.where(total > 0, total, jnp.float32(1)), jnp.float32(0.5))


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
        return () if unweighted else new_tally(config.num_memories, lives, jnp.float32)

    def update(params: Params, state: Pytree, step: Step) -> Pytree:
        return () if unweighted else tally(state, step, WEIGHTS[weight](params, step))

    def worth(params: Params, state: Pytree, counts: Counts) -> Array:
        if unweighted:
            seen = jnp.float32(weight == "uniform")
            success, total = counts.successes.astype(jnp.float32) * seen, counts.evidence.astype(jnp.float32) * seen
        else:
            failure, success = read(state, counts.evidence.shape[-1])
            total = success + failure
        if prior:
            success, total = success + params.prior_a, total + (params.prior_a + params.prior_b)
        return ratio(success, total)

    return Estimator(init, update, worth, uses_score=weight.startswith("score"))
