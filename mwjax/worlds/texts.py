"""A world of texts: a query is asked, memories are similar to it, and the texts of some hold its answer."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from mwjax import lanes, streams
from mwjax.config import Config, Params


def phase(params: Params, t: Array) -> Array:
    """0 before Params.switch_at, 1 from then on: int32 [life or 1]."""
    return (t >= params.switch_at).astype(jnp.int32)


def query(config: Config, params: Params, root: Array, seed: Array, t: Array) -> Array:
    """The query of episode t, int32 [life], by its frequency in the phase: the same whatever is retrieved."""
    word = streams.cipher(root, seed, streams.QUERY, t.astype(jnp.uint32)[None])[0]
    first, second = (params.texts.limits[i : i + config.num_queries - 1] for i in (0, config.num_queries))
    limits = jnp.where(phase(params, t) > 0, second, first)
    return lanes.apart(lambda limits, word: (limits <= word >> jnp.uint32(8)).sum(0, dtype=jnp.int32), limits, word)


def similarity(config: Config, params: Params, asked: Array, memory: Array) -> Array:
    """Of memories (int32 [..., life]) to the query, float32 in [0, 1], 24 bits."""
    found = lanes.lookup(params.texts.similarity, asked * jnp.int32(config.num_memories) + memory)
    return found.astype(jnp.float32) * jnp.float32(2**-24)


def answers(config: Config, params: Params, t: Array, asked: Array, memory: Array) -> Array:
    """24-bit utility of memories (int32 [..., life]) for the query in episode t: 1 where the text holds its answer."""
    row = phase(params, t) * jnp.int32(config.num_queries) + asked
    return lanes.lookup(params.texts.answers, row * jnp.int32(config.num_memories) + memory)


def own(config: Config, params: Params, t: Array, memory: Array) -> Array:
    """24-bit utility of memories in episode t over all queries: how often they hold the answer that they are for."""
    index = jnp.broadcast_to(phase(params, t) * jnp.int32(config.num_memories) + memory, memory.shape)
    return lanes.lookup(params.texts.own, index)


def group(params: Params, asked: Array) -> Array:
    """The task type of a query, int32 [life]."""
    return lanes.lookup(params.texts.group, asked)
