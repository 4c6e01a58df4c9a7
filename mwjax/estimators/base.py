"""The record of a worth estimator, and the integer counters that every life keeps."""

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
    evidence: Callable[[Params, Pytree, Counts, Array | None], Evidence] | None = None
    """(params, state, counts, retrieved or None for all memories) -> the counters that a rule may decide by."""


class Evidence(NamedTuple):
    """Counters for a rule, [..., life]: successes in units of 2**-12, evidence as a whole number and a fraction."""

    successes: Array  # int32
    whole: Array  # int32
    fraction: Array | None = None  # uint32, in 2**-32ths; None: no fraction


UNIT_BITS = 12
"""Of Evidence.successes; see rules.UNIT."""


def of_counts(successes: Array, evidence: Array) -> Evidence:
    """Integer counters as Evidence."""
    return Evidence(successes << jnp.int32(UNIT_BITS), evidence)


class Tally(NamedTuple):
    """The integer counters that every life keeps."""

    memories: Array  # int32, a table of two counters side by side (failures, successes) a context and memory
    episodes: Array  # int32 [context, life]
    successes: Array  # int32 [context, life], of the episodes
    shown: Array | None  # int32, a table of the retrievals of a memory; None where each is evidence at once


def new_tally(config: Config, lives: int) -> Tally:
    """Empty counters."""
    none = jnp.zeros((config.num_contexts, lives), jnp.int32)
    shown = jnp.zeros(lives * config.num_memories, jnp.int32) if config.lossy else None
    return Tally(new_counters(config.num_memories * config.num_contexts, lives, jnp.int32), none, none, shown)


def new_counters(num_memories: int, lives: int, dtype: jnp.dtype) -> Array:
    """A table with two entries a memory, side by side: failures, successes."""
    return jnp.zeros(lives * 2 * num_memories, dtype)


def tally(config: Config, counted: Tally, step: Step) -> Tally:
    """Count an episode as far as its report goes."""
    here = step.context == jnp.arange(config.num_contexts, dtype=jnp.int32)[:, None]
    here = here if step.heard is None else here & step.heard
    memory = step.retrieved + step.context * jnp.int32(config.num_memories)
    amount = jnp.int32(1) if step.seen is None else step.seen.astype(jnp.int32)
    return counted._replace(
        memories=lanes.add(counted.memories, side(memory, step.success), amount),
        episodes=counted.episodes + here.astype(jnp.int32),
        successes=counted.successes + (here & step.success).astype(jnp.int32),
    )


def show(counted: Tally, retrieved: Array) -> Tally:
    """Count retrievals, where they are not evidence at once."""
    if counted.shown is None:
        return counted
    return counted._replace(shown=lanes.add(counted.shown, retrieved, jnp.int32(1)))


def side(memory: Array, success: Array | bool) -> Array:
    """The entry of a memory's successes (of its failures) in a table of counters."""
    return memory * jnp.int32(2) + jnp.asarray(success, jnp.int32)


def add_weight(counters: Array, step: Step, weight: Array) -> Array:
    """Add `weight` (float32 [retrieved, life]) to the success or failure counter of each memory it is evidence for."""
    weight = weight if step.seen is None else jnp.where(step.seen, weight, jnp.float32(0))
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
    shown = None
    if counted.shown is not None:
        shown = lanes.rows(counted.shown, lives) if index is None else lanes.take(counted.shown, index)
    if index is not None:
        starts = jnp.arange(contexts, dtype=jnp.int32)[:, None, None] * jnp.int32(config.num_memories)
        index = (starts + index).reshape(-1, lives)
    failures, successes = (x.reshape(contexts, -1, lives) for x in both(counted.memories, lives, index))
    evidence = failures + successes
    whole = evidence.sum(0, dtype=jnp.int32)
    return Counts(
        shown=whole if shown is None else shown,
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
