"""Which memories an episode shows."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from mwjax import streams
from mwjax.config import Config, Params
from mwjax.types import Pytree, Step

UNROLLED = 16


class Retrieval(NamedTuple):
    """A retrieval policy."""

    num_words: int
    """Random words an episode takes."""
    init: Callable[[int], Pytree]
    """(lives) -> state; () for none."""
    retrieve: Callable[[Params, Pytree, Step, Array], tuple[Array, Pytree]]
    """(params, state, step, words uint32 [num_words, life]) -> (int32 [retrieved, life] without repetition, state).

    Only step.episode and, if uses_worth, step.worth are known at this point."""
    uses_worth: bool = False


def uniform(config: Config) -> Retrieval:
    """Every subset of num_retrieved memories equally likely (Floyd's algorithm; Bentley and Floyd, CACM 1987)."""

    def retrieve(params: Params, state: Pytree, step: Step, words: Array) -> tuple[Array, Pytree]:
        del params, step
        return subset(words, config.num_memories), state

    return Retrieval(config.num_retrieved, lambda lives: (), retrieve)


def subset(words: Array, num_memories: int) -> Array:
    """words uint32 [k, life] -> k different indices below num_memories, int32 [k, life], each set equally likely."""
    k = words.shape[0]
    if k > UNROLLED:
        return _long_subset(words, num_memories)
    rows: list[Array] = []
    for i in range(k):
        last = num_memories - k + i
        index = streams.below(words[i], last + 1).astype(jnp.int32)
        taken = functools.reduce(jnp.logical_or, [row == index for row in rows], jnp.zeros(index.shape, jnp.bool_))
        rows.append(jnp.where(taken, jnp.int32(last), index))
    return jnp.stack(rows)


def _long_subset(words: Array, num_memories: int) -> Array:
    """The same as a loop, so that the program does not grow with the set."""
    k = words.shape[0]

    def draw(i: Array, drawn: Array) -> Array:
        last = jnp.int32(num_memories - k) + i
        index = streams.below(words[i], (last + jnp.int32(1)).astype(jnp.uint32)).astype(jnp.int32)
        return drawn.at[i].set(jnp.where((drawn == index).any(axis=0), last, index))

    return lax.fori_loop(0, k, draw, jnp.full(words.shape, -1, jnp.int32))
