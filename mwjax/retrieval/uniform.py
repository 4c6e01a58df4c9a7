"""Retrieval that ignores worth: every subset alike, or so many memories out of each pool."""

from __future__ import annotations

import functools
from itertools import accumulate

import jax.numpy as jnp
from jax import Array, lax

from mwjax import lanes, streams
from mwjax.config import Config, Params
from mwjax.retrieval.base import Retrieval
from mwjax.types import InputError, Pytree, Roster, Step
from mwjax.worlds import by_context, fixed_point

UNROLLED = 16


def uniform(config: Config) -> Retrieval:
    """Every subset of num_retrieved memories equally likely (Floyd's algorithm; Bentley and Floyd, CACM 1987).

    Suppressed memories take part only in a share `exploration_floor` of the episodes.
    """
    k, floored = config.num_retrieved, config.governance == "suppress"

    def retrieve(params: Params, state: Pytree, step: Step, words: Array) -> tuple[Array, Pytree]:
        if step.roster is None:
            return subset(words, config.num_memories, masked(config, params)), state
        size = step.roster.active
        if floored:
            explore = words[k] >> jnp.uint32(8) < fixed_point(params.exploration_floor)
            size = jnp.where(explore, step.roster.live, size)
        return among(words[:k], step.roster, size), state

    return Retrieval(k + floored, lambda params, worth: (), retrieve)


def masked(config: Config, params: Params) -> Array | None:
    """The memory that is never retrieved, int32 [life or 1], -1 for none; None where the program knows no mask."""
    return params.masked if config.can_mask else None


def whole(config: Config, params: Params, step: Step, words: Array) -> Array:
    """A uniform set of all memories that are not gone, int32 [k, life]."""
    if step.roster is not None:
        return among(words, step.roster, step.roster.live)
    return subset(words, config.num_memories, masked(config, params))


def among(words: Array, roster: Roster, size: Array) -> Array:
    """A uniform set of the first `size` (int32 [life]) memories in the order of the roster."""
    memories = roster.order.shape[0] // size.shape[-1]
    return lanes.take(roster.order, lanes.apart(lambda words, size: _floyd(words, size, memories), words, size))


def subset(words: Array, num_memories: int, masked: Array | None = None) -> Array:
    """words uint32 [k, life] -> k different indices below num_memories, int32 [k, life], each set equally likely.

    Without the index `masked`, where that is in range.
    """
    if masked is None:
        return _floyd(words, num_memories)
    inside = (masked >= 0) & (masked < jnp.int32(num_memories))
    drawn = _floyd(words, jnp.int32(num_memories) - inside.astype(jnp.int32))
    return drawn + (inside & (drawn >= masked)).astype(jnp.int32)


def _floyd(words: Array, size: int | Array, most: int = 1 << 32) -> Array:
    """`size` is a number, or int32 [life or 1] up to `most`; long sets are drawn in a loop, so programs stay small."""
    k = words.shape[0]
    if k > UNROLLED:
        return _long_floyd(words, jnp.asarray(size, jnp.int32))
    rows: list[Array] = []
    for i in range(k):
        last = size - k + i
        bound = last + 1 if isinstance(last, int) else (last + 1).astype(jnp.uint32)
        index = streams.below(words[i], bound, most).astype(jnp.int32)
        taken = functools.reduce(jnp.logical_or, [row == index for row in rows], jnp.zeros(index.shape, jnp.bool_))
        rows.append(jnp.where(taken, jnp.int32(last), index))
    return jnp.stack(rows)


def _long_floyd(words: Array, size: Array) -> Array:
    k = words.shape[0]

    def draw(i: Array, drawn: Array) -> Array:
        last = size - jnp.int32(k) + i
        index = streams.below(words[i], (last + jnp.int32(1)).astype(jnp.uint32)).astype(jnp.int32)
        return drawn.at[i].set(jnp.where((drawn == index).any(axis=0), last, index))

    return lax.fori_loop(0, k, draw, jnp.full(words.shape, -1, jnp.int32))


def pools(config: Config) -> Retrieval:
    """In context c, pool_slots[c][g] memories of pool g, every such set equally likely."""
    if len(config.pool_slots) != config.num_contexts:
        raise InputError("retrieval = 'pools': needs pool_sizes, and pool_slots with one row a context")
    starts = [0, *accumulate(config.pool_sizes)]

    def retrieve(params: Params, state: Pytree, step: Step, words: Array) -> tuple[Array, Pytree]:
        mask, sets = masked(config, params), []
        for row in config.pool_slots:
            ends, drawn = [0, *accumulate(row)], []
            for pool, slots in enumerate(row):
                if slots:
                    inside = None if mask is None else mask - jnp.int32(starts[pool])
                    part = subset(words[ends[pool] : ends[pool + 1]], config.pool_sizes[pool], inside)
                    drawn.append(part + jnp.int32(starts[pool]))
            sets.append(jnp.concatenate(drawn))
        return by_context(jnp.stack(sets), step.context), state

    return Retrieval(
        config.num_retrieved,
        lambda params, worth: (),
        retrieve,
        companions=lambda params, utility: _pool_companions(config, utility),
    )


def _pool_companions(config: Config, utility: Array) -> tuple[Array, Array]:
    """Pr[shown] and the expected mean utility of the set given m, [context, memory, life] each."""
    u = utility.astype(jnp.float32) * jnp.float32(2**-24)
    starts, k = [0, *accumulate(config.pool_sizes)], config.num_retrieved
    parts = [u[starts[i] : starts[i + 1]] for i in range(len(config.pool_sizes))]
    sums = [lanes.total(part) for part in parts]
    shown, mean = [], []
    for row in config.pool_slots:
        expected = sum(slots / size * total for slots, size, total in zip(row, config.pool_sizes, sums, strict=True))
        both = []
        for part, total, slots, size in zip(parts, sums, row, config.pool_sizes, strict=True):
            rest = max(slots - 1, 0) / max(size - 1, 1)
            both.append((part + rest * (total - part) + (expected - slots / size * total)) * jnp.float32(1 / k))
        mean.append(jnp.concatenate(both))
        chances = [
            jnp.full(part.shape, slots / size, jnp.float32)
            for part, slots, size in zip(parts, row, config.pool_sizes, strict=True)
        ]
        shown.append(jnp.concatenate(chances))
    return jnp.stack(shown), jnp.stack(mean)
