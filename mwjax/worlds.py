"""What the agent cannot change: true utilities, relevance scores and outcome laws."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from mwjax import lanes, streams
from mwjax.config import Config, Params
from mwjax.types import UTILITY_ONE, Step


class Outcome(NamedTuple):
    """An outcome law: does the episode succeed, given the retrieved set?"""

    num_words: int
    """Random words an episode takes."""
    success: Callable[[Params, Step, Array], Array]
    """(params, step, words uint32 [num_words, life]) -> bool [life]."""
    p_plus: Callable[[Params, Array], Array] | None = None
    """(params, utility uint32 [memory, life]) -> float32 [memory, life]: Pr[success | memory shown], or None."""


def utilities(config: Config, params: Params, root: Array, seed: Array) -> Array:
    """True utilities of every memory, uint32 [memory, life] with 2**24 standing for 1."""
    shape = (config.num_memories, seed.shape[0])
    if config.utility == "list":
        return jnp.broadcast_to(params.utilities, shape)
    pairs = (config.num_memories + 1) // 2
    words = streams.unpack(streams.episode_pairs(root, seed, streams.UTILITY, jnp.int32(0), pairs))
    low, high = (jnp.rint(x * UTILITY_ONE).astype(jnp.uint32) for x in (params.utility_low, params.utility_high))
    return low + streams.below(words[: config.num_memories], high - low)


def scores(config: Config, params: Params, root: Array, seed: Array, step: Step) -> Array:
    """Relevance of each retrieved memory, uniform on [score_low, 1], independent over (episode, memory)."""
    word = streams.memory_words(root, seed, streams.SCORE, step.episode, step.retrieved, config.num_memories)
    unit = (word >> jnp.uint32(8)).astype(jnp.float32) * jnp.float32(2**-24)
    return params.score_low + (jnp.float32(1) - params.score_low) * unit


def mean(config: Config) -> Outcome:
    """Pr[success] = mean utility of the retrieved set, decided in integers: (word >> 8) k < sum u."""
    k, others = config.num_retrieved, max(config.num_memories - 1, 1)

    def success(params: Params, step: Step, words: Array) -> Array:
        del params
        return (words[0] >> jnp.uint32(8)) * jnp.uint32(k) < step.utility.sum(axis=0, dtype=jnp.uint32)

    def p_plus(params: Params, utility: Array) -> Array:
        """U_m / k + (k - 1)/k times the mean utility of the other memories (Simsek 2026, under uniform retrieval)."""
        del params
        u = utility.astype(jnp.float32) * jnp.float32(2**-24)
        rest = (lanes.total(u) - u) * jnp.float32(1 / others)
        return u * jnp.float32(1 / k) + rest * jnp.float32((k - 1) / k)

    return Outcome(1, success, p_plus)
