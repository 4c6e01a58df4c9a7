"""Outcome laws in which one memory may decide: a chain of parts, alternatives, and the first of a ranking."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from mwjax import lanes, streams
from mwjax.config import Config, Params
from mwjax.types import UTILITY_ONE, Step
from mwjax.worlds.draws import by_context, fixed_point
from mwjax.worlds.outcomes import Outcome


def times(a: Array, b: Array) -> Array:
    """floor(a b / 2**24), uint32, for a, b in [0, 2**24]: exact, and a itself where b = 2**24."""
    return streams.below(a << jnp.uint32(4), b << jnp.uint32(4))


def product(start: Array, factors: Array) -> Array:
    """p <- floor(p q / 2**24) over the factors q (uint32 [slot, life] in [0, 2**24]), slot 0 first: uint32 [life]."""
    start = jnp.broadcast_to(start, factors.shape[1:])
    return lax.scan(lambda p, q: (times(p, q), None), start, factors, unroll=lanes.UNROLLED)[0]


def weakest_link(config: Config) -> Outcome:
    """Pr[success] = base_success of the context x product over the set of U: every memory may do harm, 1 - U."""
    del config

    def chance(params: Params, step: Step) -> Array:
        return product(by_context(fixed_point(params.base_success), step.context), step.utility)

    return Outcome(chance, neutral=UTILITY_ONE)


def noisy_or(config: Config) -> Outcome:
    """Pr[success] = 1 - (1 - base_success of the context) x product over the set of (1 - U): each may do alone."""
    del config

    def chance(params: Params, step: Step) -> Array:
        one = jnp.uint32(UTILITY_ONE)
        base = by_context(fixed_point(params.base_success), step.context)
        return one - product(one - base, one - step.utility)

    return Outcome(chance, neutral=0)


def first(config: Config) -> Outcome:
    """Pr[success] = U of the first of the retrieved memories, in the order in which retrieval ranks them."""
    del config
    return Outcome(lambda params, step: step.utility[0])


def best(config: Config) -> Outcome:
    """Pr[success] = the greatest U of the set: one memory that helps is enough."""
    del config
    return Outcome(lambda params, step: step.utility.max(axis=0), neutral=0)


def top_ranked(config: Config) -> Outcome:
    """Pr[success] = U of the retrieved memory of greatest relevance score, of equal ones that in the earlier slot."""
    del config

    def chance(params: Params, step: Step) -> Array:
        del params
        first = jnp.argmax(step.score, axis=0).astype(jnp.int32)
        return jnp.take_along_axis(step.utility, first[None], axis=0)[0]

    return Outcome(chance, lambda params, mean_utility: mean_utility, uses_score=True)
