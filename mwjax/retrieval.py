"""Which memories an episode shows."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

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
    drawn = jnp.full(words.shape, -1, jnp.int32) if k > UNROLLED else None
    rows: list[Array] = []
    for i in range(k):
        last = num_memories - k + i
        index = streams.below(words[i], last + 1).astype(jnp.int32)
        if drawn is None:
            taken = [row == index for row in rows]
            repeated = taken[0] if taken else None
            for match in taken[1:]:
                repeated = repeated | match
            rows.append(index if repeated is None else jnp.where(repeated, jnp.int32(last), index))
        else:
            index = jnp.where((drawn == index).any(axis=0), jnp.int32(last), index)
            drawn = drawn.at[i].set(index)
    return jnp.stack(rows) if drawn is None else drawn
