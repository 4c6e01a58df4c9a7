"""The k best memories of a ranking made anew in every episode: O(N) work, where a sum tree takes O(k log N)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array, lax

from mwjax import lanes, roster, streams
from mwjax.config import LEVELS, Config, Params
from mwjax.retrieval.base import Retrieval
from mwjax.retrieval.uniform import UNROLLED, masked, whole
from mwjax.types import Pytree, Step
from mwjax.worlds import fixed_point

NOISE_BITS = 18
"""Ties of worth are broken by so many bits."""
LEAST_PRIOR = 2.0**-10
"""Beta(0, 0) has no density: Thompson draws from at least this."""


def epsilon_greedy(config: Config) -> Retrieval:
    """The k memories of greatest worth (in steps of 1/4096, ties by lot); uniform in a share `exploration_floor`."""

    def retrieve(params: Params, state: Pytree, step: Step, words: Array) -> tuple[Array, Pytree]:
        noise = step.lot >> jnp.uint32(32 - NOISE_BITS)
        level = _level(step.worth).astype(jnp.uint32) << jnp.uint32(NOISE_BITS)
        return _greedy(config, params, step, words, (level | noise).astype(jnp.int32)), state

    return Retrieval(config.num_retrieved + 1, lambda params, worth: (), retrieve, uses_worth=True, uses_lot=True)


def blend(config: Config) -> Retrieval:
    """The k memories of greatest similarity_weight x similarity + (1 - similarity_weight) x worth; uniform as above.

    Similarity is the relevance score of the episode, worth counts in steps of 1/4096; sums are exact in 30 bits.
    """
    k = config.num_retrieved

    def retrieve(params: Params, state: Pytree, step: Step, words: Array) -> tuple[Array, Pytree]:
        weight = fixed_point(params.similarity_weight) << jnp.uint32(7)
        rest = jnp.uint32(1 << 31) - weight
        similarity = streams.below(fixed_point(step.score) << jnp.uint32(7), weight)
        worth = streams.below(_level(step.worth).astype(jnp.uint32) << jnp.uint32(19), rest)
        return _greedy(config, params, step, words, (similarity + worth).astype(jnp.int32)), state

    return Retrieval(k + 1, lambda params, worth: (), retrieve, uses_worth=True, uses_score=True)


def thompson(config: Config) -> Retrieval:
    """The k memories whose draws from their posteriors Beta(prior_a + successes, prior_b + failures) are greatest.

    The draws are those of jax.random.beta: the one retrieval whose sets may differ between kinds of device.
    """
    k = config.num_retrieved

    def retrieve(params: Params, state: Pytree, step: Step, words: Array) -> tuple[Array, Pytree]:
        successes, failures = step.counts.successes, step.counts.evidence - step.counts.successes
        a, b = params.prior_a + successes.astype(jnp.float32), params.prior_b + failures.astype(jnp.float32)
        draw = lambda word, a, b: jax.random.beta(jax.random.wrap_key_data(word), a, b, dtype=jnp.float32)
        theta = jax.vmap(draw, -1, -1)(words[k + 1 :], *(jnp.maximum(x, LEAST_PRIOR) for x in (a, b)))
        key = lax.bitcast_convert_type(
            jnp.clip(theta, 0, 1), jnp.int32
        )  # in the order of the floats, as none is negative
        return _greedy(config, params, step, words, key), state

    return Retrieval(k + 3, lambda params, worth: (), retrieve, uses_worth=True)


def greatest(key: Array, k: int) -> Array:
    """Indices of the k greatest of key (int32 [memory, life], >= -1), greatest first, of equal ones the first.

    Up to UNROLLED rounds of one maximum each vectorise over lives, as sorting does not: 4 us a life down to 0.1.
    """
    if k > UNROLLED:
        return lax.top_k(key.T, k)[1].T.astype(jnp.int32)
    index, found = jnp.arange(key.shape[0], dtype=jnp.int32)[:, None], []
    for _ in range(k):
        first = jnp.where(key == key.max(axis=0), index, jnp.int32(key.shape[0])).min(axis=0)
        key = jnp.where(index == first, jnp.int32(-2), key)
        found.append(first)
    return jnp.stack(found)


def _level(worth: Array) -> Array:
    return (jnp.clip(worth, 0, 1) * jnp.float32(LEVELS)).astype(jnp.int32)


def _greedy(config: Config, params: Params, step: Step, words: Array, key: Array) -> Array:
    """The k greatest of key (int32 [memory, life], >= 0), or in exploring lives a uniform set."""
    k, mask = config.num_retrieved, masked(config, params)
    if mask is not None:
        key = jnp.where(jnp.arange(config.num_memories, dtype=jnp.int32)[:, None] == mask, jnp.int32(-1), key)
    if step.roster is not None:
        key = jnp.where(roster.every_status(step.roster) == roster.ACTIVE, key, jnp.int32(-1))
    best = lanes.apart(lambda key: greatest(key, k), key)
    explore = words[k] >> jnp.uint32(8) < fixed_point(params.exploration_floor)
    return jnp.where(explore, whole(config, params, step, words[:k]), best)
