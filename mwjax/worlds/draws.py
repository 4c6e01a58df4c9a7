"""True utilities, contexts and relevance scores: what a life draws."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from mwjax import lanes, streams
from mwjax.config import LEVELS, Config, Params
from mwjax.types import UTILITY_ONE, Step
from mwjax.worlds import texts


def fixed_point(value: Array) -> Array:
    """A number in [0, 1] as a 24-bit integer, uint32."""
    return jnp.rint(value * UTILITY_ONE).astype(jnp.uint32)


def utilities(config: Config, params: Params, root: Array, seed: Array) -> Array:
    """True utilities of every memory, uint32 [memory, life] with 2**24 standing for 1."""
    shape = (config.num_memories, seed.shape[0])
    if config.num_queries:
        return jnp.broadcast_to(params.texts.own[: config.num_memories], shape)
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
    """Relevance of memories (int32 [..., life]): similarity to the query in a world of texts, else as below.

    Uniform on [score_low, 1] in 24 bits, independent over all.
    """
    if config.num_queries:
        asked = texts.query(config, params, root, seed, step.episode)
        return texts.similarity(config, params, asked, memory)
    word = streams.memory_words(root, seed, streams.SCORE, step.episode, memory, config.num_memories)
    low = fixed_point(params.score_low)
    return (low + streams.below(word, jnp.uint32(UTILITY_ONE) - low)).astype(jnp.float32) * jnp.float32(2**-24)


def by_context(values: Array, context: Array) -> Array:
    """Of [context, ..., life or 1], the one that each life (context int32 [life]) is in: [..., life or 1]."""
    found = values[-1]
    for index in range(values.shape[0] - 1):
        found = jnp.where(context == jnp.int32(index), values[index], found)
    return found
