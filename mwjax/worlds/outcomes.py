"""Outcome laws: with what probability an episode succeeds, given the retrieved set."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from mwjax import lanes, streams
from mwjax.config import LEVELS, Config, Params
from mwjax.types import UTILITY_ONE, Step
from mwjax.worlds.draws import by_context, fixed_point


class Outcome(NamedTuple):
    """An outcome law: with what probability does the episode succeed, given the retrieved set?"""

    chance: Callable[[Params, Step], Array]
    """(params, step) -> 2**24 Pr[success], uint32 [life], in integers: the episode succeeds iff word >> 8 is below."""
    expected: Callable[[Params, Array], Array] | None = None
    """(params, mean utility float32 [context, memory, life]) -> Pr[success] of that shape, for laws linear in it."""
    uses_score: bool = False
    """It needs step.score of the retrieved memories."""
    neutral: int = UTILITY_ONE // 2
    """The 24-bit utility that a memory without a part in the outcome counts as."""


def uniform_companions(config: Config, utility: Array, live: Array | None = None) -> Array:
    """Mean utility of the set, given that m is in it and its companions are uniform: float32 [memory, life].

    U_m / k + (k - 1)/k times the mean utility of the other memories (Simsek 2026), of those `live` (bool) if some are
    not in the store.
    """
    k = config.num_retrieved
    u = utility.astype(jnp.float32) * jnp.float32(2**-24)
    if live is None:
        rest = (lanes.total(u) - u) * jnp.float32(1 / max(config.num_memories - 1, 1))
    else:
        there = jnp.where(live, u, 0)
        others = live.sum(0, dtype=jnp.int32) - live.astype(jnp.int32)
        rest = (lanes.total(there) - there) / jnp.maximum(others, 1).astype(jnp.float32)
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
