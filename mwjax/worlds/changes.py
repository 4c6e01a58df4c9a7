"""A world that does not stand still: drifting and contextual utilities, births, and reports that are not outcomes."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from mwjax import lanes, streams
from mwjax.config import Config, Params
from mwjax.types import UTILITY_ONE, Step
from mwjax.worlds import texts
from mwjax.worlds.draws import by_context, fixed_point

PROGRESS = 256
"""Steps that a drift is made in."""


def current(config: Config, params: Params, t: Array, context: Array | None, memory: Array, utility: Array) -> Array:
    """Utilities (uint32 [..., life], 24-bit) of `memory` (int32 [..., life]) in episode t and a context [life].

    The first Params.drifting memories move to drift_utility from switch_at on, in drift_span episodes; the last
    Config.num_contextual have utility 1 - U in every context but the first. In a world of texts: see texts.own.
    """
    if config.num_queries:
        return texts.own(config, params, t, memory)
    if config.drifts:
        done = drift_progress(params, t)
        target = fixed_point(params.drift_utility)
        way = lambda x: (x >> jnp.uint32(8)) * done
        moved = jnp.where(target >= utility, utility + way(target - utility), utility - way(utility - target))
        moved = jnp.where(done == jnp.uint32(PROGRESS), target, moved)
        utility = jnp.where(memory < params.drifting, moved, utility)
    return utility if context is None else turn(config, context, memory, utility)


def turn(config: Config, context: Array, memory: Array, utility: Array) -> Array:
    """Utilities of the contextual memories in a context."""
    if not config.num_contextual:
        return utility
    turned = (memory >= jnp.int32(config.num_memories - config.num_contextual)) & (context > 0)
    return jnp.where(turned, jnp.uint32(UTILITY_ONE) - utility, utility)


def drift_progress(params: Params, t: Array) -> Array:
    """How far the drift has come in episode t, uint32 in 0..PROGRESS."""
    since = jnp.clip(t - params.switch_at + jnp.int32(1), 0, params.drift_span)
    return (since * jnp.int32(PROGRESS) // params.drift_span).astype(jnp.uint32)


def born(params: Params, t: Array) -> tuple[Array, Array]:
    """The memory born at the beginning of episode t, and whether there is one: int32 and bool, [life or 1].

    Memory num_initial + i is born at episode (i + 1) birth_every.
    """
    memory = params.num_initial - jnp.int32(1) + t // params.birth_every
    return memory, (t > 0) & (t % params.birth_every == 0)


def report_pairs(config: Config) -> int:
    """Pairs of words that the report of an episode takes."""
    return 1 + (config.num_retrieved + 1) // 2


def used(config: Config, params: Params, root: Array, seed: Array, t: Array) -> tuple[Array, Array]:
    """(words of the report uint32 [2, life], which retrieved memories have a part in the outcome bool [slot, life])."""
    words = streams.unpack(streams.episode_pairs(root, seed, streams.REPORT, t, report_pairs(config)))
    own = jnp.stack([words[0], words[report_pairs(config)]])
    rest = jnp.concatenate([words[1 : report_pairs(config)], words[report_pairs(config) + 1 :]])
    return own, rest[: config.num_retrieved] >> jnp.uint32(8) >= fixed_point(params.unused_prob)


def report(params: Params, words: Array, step: Step) -> tuple[Array, Array]:
    """(the outcome as it is reported, whether it is reported at all), bool [life] each.

    An outcome y is reported with probability observe_prob of the context x observe_success or observe_failure, and then
    as its opposite with probability flip_prob.
    """
    rate = by_context(params.observe_prob, step.context)
    rate = rate * jnp.where(step.success, params.observe_success, params.observe_failure)
    heard = words[1] >> jnp.uint32(8) < fixed_point(rate)
    return step.success ^ (words[0] >> jnp.uint32(8) < fixed_point(params.flip_prob)), heard


def ring(config: Config, lives: int) -> Array:
    """Outcomes that are not known yet: a table of `delay` rows (the set, the report, the chance)."""
    return jnp.zeros(lives * config.delay * (config.num_retrieved + 2), jnp.int32)


def exchange(config: Config, waiting: Array, t: Array, row: Array) -> tuple[Array, Array]:
    """(the row [entry, life] of episode t - delay, zeros before any; the ring with this episode's in its place)."""
    size = row.shape[0]
    index = (t % jnp.int32(config.delay)) * jnp.int32(size) + jnp.arange(size, dtype=jnp.int32)
    index = jnp.broadcast_to(index[:, None], row.shape)
    return lanes.take(waiting, index), lanes.put(waiting, index, row)
