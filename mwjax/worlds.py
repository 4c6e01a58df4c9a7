"""What the agent cannot change: true utilities, contexts, relevance scores and outcome laws."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from mwjax import lanes, streams
from mwjax.config import LEVELS, Config, Params
from mwjax.types import UTILITY_ONE, Step


class Outcome(NamedTuple):
    """An outcome law: with what probability does the episode succeed, given the retrieved set?"""

    chance: Callable[[Params, Step], Array]
    """(params, step) -> 2**24 Pr[success], uint32 [life], in integers: the episode succeeds iff word >> 8 is below."""
    expected: Callable[[Params, Array], Array] | None = None
    """(params, mean utility float32 [context, memory, life]) -> Pr[success] of that shape, for laws linear in it."""


def fixed_point(value: Array) -> Array:
    """A number in [0, 1] as a 24-bit integer, uint32."""
    return jnp.rint(value * UTILITY_ONE).astype(jnp.uint32)


def utilities(config: Config, params: Params, root: Array, seed: Array) -> Array:
    """True utilities of every memory, uint32 [memory, life] with 2**24 standing for 1."""
    shape = (config.num_memories, seed.shape[0])
    if config.utility == "list":
        return jnp.broadcast_to(params.utilities, shape)
    pairs = (config.num_memories + 1) // 2
    words = streams.unpack(streams.episode_pairs(root, seed, streams.UTILITY, jnp.int32(0), pairs))
    words = words[: config.num_memories]
    if config.utility == "beta":
        drawn = _between_quantiles(params.utilities, words)
    else:
        low, high = (_by_memory(config, fixed_point(x)) for x in (params.utility_low, params.utility_high))
        drawn = low + streams.below(words, high - low)
    if config.num_pairs:
        ends = [fixed_point(x) for x in (params.anchor_utility, params.hitchhiker_utility)]
        drawn = jnp.concatenate(
            [*(jnp.broadcast_to(x, (config.num_pairs, shape[1])) for x in ends), drawn[2 * config.num_pairs :]]
        )
    return drawn


def _by_memory(config: Config, value: Array) -> Array:
    """[life] or [pool, life] -> something that broadcasts to [memory, life]."""
    if not config.pool_sizes:
        return value[None]
    return jnp.repeat(value, jnp.asarray(config.pool_sizes), axis=0, total_repeat_length=config.num_memories)


def _between_quantiles(quantiles: Array, words: Array) -> Array:
    """Inverse of a distribution function given at i / LEVELS, linear between, in integers."""
    level = streams.below(words, LEVELS).astype(jnp.int32)
    low = lanes.lookup(quantiles, level)
    return low + streams.below(words * jnp.uint32(LEVELS), lanes.lookup(quantiles, level + jnp.int32(1)) - low)


def context(config: Config, params: Params, word: Array) -> Array:
    """The task type of the episode from one word, int32 [life]."""
    limits = jnp.cumsum(fixed_point(params.context_share), axis=0, dtype=jnp.uint32)[: config.num_contexts - 1]
    return (limits <= word[None] >> jnp.uint32(8)).sum(0, dtype=jnp.int32)


def scores(config: Config, params: Params, root: Array, seed: Array, step: Step, memory: Array) -> Array:
    """Relevance of memories (int32 [..., life]), uniform on [score_low, 1] in 24 bits, independent over all."""
    word = streams.memory_words(root, seed, streams.SCORE, step.episode, memory, config.num_memories)
    low = fixed_point(params.score_low)
    return (low + streams.below(word, jnp.uint32(UTILITY_ONE) - low)).astype(jnp.float32) * jnp.float32(2**-24)


def uniform_companions(config: Config, utility: Array) -> Array:
    """Mean utility of the set, given that m is in it and its companions are uniform: float32 [memory, life].

    U_m / k + (k - 1)/k times the mean utility of the other memories (Simsek 2026).
    """
    k, others = config.num_retrieved, max(config.num_memories - 1, 1)
    u = utility.astype(jnp.float32) * jnp.float32(2**-24)
    rest = (lanes.total(u) - u) * jnp.float32(1 / others)
    return u * jnp.float32(1 / k) + rest * jnp.float32((k - 1) / k)


def mean(config: Config) -> Outcome:
    """Pr[success] = mean utility of the retrieved set, rounded up to 24 bits: word k < sum u in integers."""
    k = config.num_retrieved

    def chance(params: Params, step: Step) -> Array:
        del params
        return (step.utility.sum(axis=0, dtype=jnp.uint32) + jnp.uint32(k - 1)) // jnp.uint32(k)

    return Outcome(chance, lambda params, mean_utility: mean_utility)


def average(config: Config, utility: Array) -> Array:
    """Mean of 24-bit utilities over the set, rounded down."""
    return utility.sum(axis=0, dtype=jnp.uint32) // jnp.uint32(config.num_retrieved)


STATISTICS: dict[str, Callable[[Config, Array], Array]] = {
    "mean": average,
    "best": lambda config, utility: utility.max(axis=0),
    "worst": lambda config, utility: utility.min(axis=0),
}


def linear(config: Config, *, statistic: str = "mean") -> Outcome:
    """Pr[success] = base_success of the context + gain (statistic of the set's utilities - 0.5), clipped to [0, 1]."""

    def chance(params: Params, step: Step) -> Array:
        half = jnp.uint32(UTILITY_ONE // 2)
        value = STATISTICS[statistic](config, step.utility)
        above = value >= half
        distance = jnp.where(above, value - half, half - value) << jnp.uint32(4)
        shift = streams.below(jnp.rint(params.gain * jnp.float32(2**28)).astype(jnp.uint32), distance)
        base = by_context(fixed_point(params.base_success), step.context)
        return jnp.where(above, jnp.minimum(base + shift, jnp.uint32(UTILITY_ONE)), base - jnp.minimum(base, shift))

    def expected(params: Params, mean_utility: Array) -> Array:
        base = params.base_success[:, None]
        return jnp.clip(base + params.gain * (mean_utility - jnp.float32(0.5)), 0, 1)

    return Outcome(chance, expected if statistic == "mean" else None)


def by_context(values: Array, context: Array) -> Array:
    """Of [context, ..., life or 1], the one that each life (context int32 [life]) is in: [..., life or 1]."""
    found = values[-1]
    for index in range(values.shape[0] - 1):
        found = jnp.where(context == jnp.int32(index), values[index], found)
    return found


def logistic(config: Config) -> Outcome:
    """logit Pr[success] = logit(base_success of the context) + 4 gain (mean utility of the set - 0.5), by a table."""

    def chance(params: Params, step: Step) -> Array:
        value = average(config, step.utility)
        level = (value >> jnp.uint32(12)).astype(jnp.int32)
        rest = (value & jnp.uint32(4095)) << jnp.uint32(20)
        found = []
        for index in range(config.num_contexts):
            table = params.link[:, index]
            low = lanes.lookup(table, level)
            high = lanes.lookup(table, jnp.minimum(level + jnp.int32(1), jnp.int32(LEVELS)))
            found.append(low + streams.below(rest, high - low))
        return by_context(jnp.stack(found), step.context)

    return Outcome(chance)
