"""Worth that tells task types apart: read from the counters by context that every life keeps."""

from __future__ import annotations

from collections.abc import Callable

import jax.numpy as jnp
from jax import Array

from mwjax import lanes
from mwjax.config import Config, Params
from mwjax.estimators.base import Estimator, ratio
from mwjax.types import Counts, Pytree


def contextual(config: Config) -> Estimator:
    """Worth within one context (`target_context`, by default the last), by its own counters; 0.5 where never shown."""

    def worth(params: Params, state: Pytree, counts: Counts) -> Array:
        del params, state
        pair = counts.context_successes[config.context_read], counts.context_evidence[config.context_read]
        return ratio(*(x.astype(jnp.float32) for x in pair))

    return by_counts(worth)


def backdoor(config: Config, *, fill: str = "base_rate") -> Estimator:
    """sum over contexts of Pr[context] x worth within it (back-door adjustment; Pearl, Causality 2009, eq. 3.19).

    Where a memory was never shown in a context its worth there is unsupported: the base rate of the context stands in,
    or with fill = "half" the value 0.5; one never shown at all stays at 0.5. Pr[context] and base rates are the shares
    observed so far.
    """
    del config

    def worth(params: Params, state: Pytree, counts: Counts) -> Array:
        del params, state
        successes, evidence = (x.astype(jnp.float32) for x in (counts.context_successes, counts.context_evidence))
        absent = base_rate(counts) if fill == "base_rate" else jnp.full_like(base_rate(counts), 0.5)
        known = jnp.where(evidence > 0, ratio(successes, evidence), absent)
        share = counts.episodes.astype(jnp.float32)[:, None]
        adjusted = ratio(lanes.total(jnp.moveaxis(known * share, 0, -2)), lanes.total(share[:, 0])[None])
        return jnp.where(counts.evidence > 0, jnp.clip(adjusted, 0, 1), jnp.float32(0.5))

    return by_counts(worth)


def residual(config: Config) -> Estimator:
    """(1 + mean over the episodes that show m of (y - base rate of their context)) / 2, with y in {0, 1}.

    0.5 means: as often as its contexts succeed anyway. Needs one counter a context beside those of the memories.
    """
    del config

    def worth(params: Params, state: Pytree, counts: Counts) -> Array:
        del params, state
        expected = counts.context_evidence.astype(jnp.float32) * base_rate(counts)
        surplus = counts.successes.astype(jnp.float32) - lanes.total(jnp.moveaxis(expected, 0, -2))
        seen = counts.evidence.astype(jnp.float32)
        return jnp.clip((seen + surplus) / (2 * jnp.maximum(seen, 1)), 0, 1) + jnp.where(seen > 0, 0, 0.5)

    return by_counts(worth)


def base_rate(counts: Counts) -> Array:
    """Share of each context's episodes that succeeded so far, 0.5 before any: float32 [context, 1, life]."""
    return ratio(*(x.astype(jnp.float32) for x in (counts.episode_successes, counts.episodes)))[:, None]


def by_counts(worth: Callable[[Params, Pytree, Counts], Array]) -> Estimator:
    """An estimator that only reads the counters by context."""
    return Estimator(
        init=lambda lives: (),
        update=lambda params, state, step: (),
        worth=worth,
        uses_context=True,
        at=lambda params, state, counts, index: worth(params, state, counts),
    )
