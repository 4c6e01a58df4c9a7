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
    uses_utility: bool = False
    """It needs the truth: experiments only."""
    uses_context: bool = False
    """It tells task types apart."""
    at: Callable[[Params, Pytree, Counts, Array], Array] | None = None
    """(params, state, counts of the retrieved memories only, retrieved int32 [retrieved, life]) -> their worth,
    float32 [retrieved, life]: what `worth` says of them. None: an actor's worth is read in full instead."""


class Tally(NamedTuple):
    """The integer counters that every life keeps."""

    memories: Array  # int32, a table of two counters side by side (failures, successes) a context and memory
    episodes: Array  # int32 [context, life]
    successes: Array  # int32 [context, life], of the episodes


def new_tally(config: Config, lives: int) -> Tally:
    """Empty counters."""
    none = jnp.zeros((config.num_contexts, lives), jnp.int32)
    return Tally(new_counters(config.num_memories * config.num_contexts, lives, jnp.int32), none, none)


def new_counters(num_memories: int, lives: int, dtype: jnp.dtype) -> Array:
    """A table with two entries a memory, side by side: failures, successes."""
    return jnp.zeros(lives * 2 * num_memories, dtype)


def tally(config: Config, counted: Tally, step: Step) -> Tally:
    """Count an episode."""
    here = step.context == jnp.arange(config.num_contexts, dtype=jnp.int32)[:, None]
    memory = step.retrieved + step.context * jnp.int32(config.num_memories)
    return Tally(
        lanes.add(counted.memories, side(memory, step.success), jnp.int32(1)),
        counted.episodes + here.astype(jnp.int32),
        counted.successes + (here & step.success).astype(jnp.int32),
    )


def side(memory: Array, success: Array | bool) -> Array:
    """The entry of a memory's successes (of its failures) in a table of counters."""
    return memory * jnp.int32(2) + jnp.asarray(success, jnp.int32)


def add_weight(counters: Array, step: Step, weight: Array) -> Array:
    """Add `weight` (float32 [retrieved, life]) to the success or failure counter of each retrieved memory."""
    return lanes.add(counters, side(step.retrieved, step.success), weight)


def both(counters: Array, lives: int, index: Array | None = None) -> tuple[Array, Array]:
    """(failures, successes) of a table, [memory, life], or of the memories in index, [..., life]."""
    if index is None:
        read = lanes.rows(counters, lives).reshape(-1, 2, lives)
        return read[:, 0], read[:, 1]
    return lanes.take(counters, side(index, False)), lanes.take(counters, side(index, True))


def counts(config: Config, counted: Tally, index: Array | None = None) -> Counts:
    """Read the counters: of all memories, or of those in `index` (int32 [retrieved, life])."""
    lives, contexts = counted.episodes.shape[-1], config.num_contexts
    if index is not None:
        starts = jnp.arange(contexts, dtype=jnp.int32)[:, None, None] * jnp.int32(config.num_memories)
        index = (starts + index).reshape(-1, lives)
    failures, successes = (x.reshape(contexts, -1, lives) for x in both(counted.memories, lives, index))
    evidence = failures + successes
    whole = evidence.sum(0, dtype=jnp.int32)
    return Counts(
        shown=whole,
        evidence=whole,
        successes=successes.sum(0, dtype=jnp.int32),
        context_evidence=evidence,
        context_successes=successes,
        episodes=counted.episodes,
        episode_successes=counted.successes,
    )


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

    flags = {"uses_score": weight.startswith("score"), "uses_utility": weight.startswith("oracle")}
    return Estimator(init, update, worth, **flags, at=at)


def contextual(config: Config) -> Estimator:
    """Worth within one context (`target_context`, by default the last), by its own counters; 0.5 where never shown."""

    def worth(params: Params, state: Pytree, counts: Counts) -> Array:
        del params, state
        pair = counts.context_successes[config.context_read], counts.context_evidence[config.context_read]
        return ratio(*(x.astype(jnp.float32) for x in pair))

    return by_counts(worth)


def backdoor(config: Config, *, fill: str = "base_rate") -> Estimator:
    """sum over contexts of Pr[context] x worth within it (back-door adjustment; Pearl, Causality 2009, eq. 3.19).

    Where a memory was never shown in a context its worth there is unsupported: the base rate of the context stands in,
    or with fill = "half" the value 0.5; one never shown at all stays at 0.5. Pr[context] and base rates are the shares
    observed so far.
    """
    del config

    def worth(params: Params, state: Pytree, counts: Counts) -> Array:
        del params, state
        successes, evidence = (x.astype(jnp.float32) for x in (counts.context_successes, counts.context_evidence))
        absent = base_rate(counts) if fill == "base_rate" else jnp.full_like(base_rate(counts), 0.5)
        known = jnp.where(evidence > 0, ratio(successes, evidence), absent)
        share = counts.episodes.astype(jnp.float32)[:, None]
        adjusted = ratio(lanes.total(jnp.moveaxis(known * share, 0, -2)), lanes.total(share[:, 0])[None])
        return jnp.where(counts.evidence > 0, jnp.clip(adjusted, 0, 1), jnp.float32(0.5))

    return by_counts(worth)


def residual(config: Config) -> Estimator:
    """(1 + mean over the episodes that show m of (y - base rate of their context)) / 2, with y in {0, 1}.

    0.5 means: as often as its contexts succeed anyway. Needs one counter a context beside those of the memories.
    """
    del config

    def worth(params: Params, state: Pytree, counts: Counts) -> Array:
        del params, state
        expected = counts.context_evidence.astype(jnp.float32) * base_rate(counts)
        surplus = counts.successes.astype(jnp.float32) - lanes.total(jnp.moveaxis(expected, 0, -2))
        seen = counts.evidence.astype(jnp.float32)
        return jnp.clip((seen + surplus) / (2 * jnp.maximum(seen, 1)), 0, 1) + jnp.where(seen > 0, 0, 0.5)

    return by_counts(worth)


def base_rate(counts: Counts) -> Array:
    """Share of each context's episodes that succeeded so far, 0.5 before any: float32 [context, 1, life]."""
    return ratio(*(x.astype(jnp.float32) for x in (counts.episode_successes, counts.episodes)))[:, None]


def by_counts(worth: Callable[[Params, Pytree, Counts], Array]) -> Estimator:
    """An estimator that only reads the counters by context."""
    return Estimator(
        init=lambda lives: (),
        update=lambda params, state, step: (),
        worth=worth,
        uses_context=True,
        at=lambda params, state, counts, index: worth(params, state, counts),
    )
