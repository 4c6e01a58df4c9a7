"""Tables made on the host in float64, so that NumPy, CPU and GPU turn a number into another one by the same bits."""

from __future__ import annotations

import numpy as np

from mwjax.types import UTILITY_ONE

LEVELS = 4096
"""Worth, utility and probability index a table at floor(LEVELS x value): LEVELS + 1 entries."""
MIN_TEMPERATURE = 0.005
TOP_EXPONENT, BOTTOM_EXPONENT = 60.0, -85.0
"""Weights lie in [e^-85, e^60]: 2**40 of them still have a finite sum in float32, and none is zero or subnormal."""


def softmax_weights(temperature: float) -> np.ndarray:
    """exp((worth - 1) / temperature) up to a factor, float32 [LEVELS + 1].

    Exact down to worth = 1 - 145 temperature, which covers [0, 1] from temperature 1 / 145 up; at MIN_TEMPERATURE
    memories below worth .275 weigh as if they had .275.
    """
    worth = np.arange(LEVELS + 1) / LEVELS
    exponent = (worth - 1) / temperature + min(TOP_EXPONENT, 1 / temperature)
    return np.exp(np.maximum(exponent, BOTTOM_EXPONENT)).astype(np.float32)


def logistic_thresholds(base_success: np.ndarray, gain: float) -> np.ndarray:
    """2**24 Pr[success] at mean utility x, logit(p) = logit(base) + 4 gain (x - .5): uint32 [LEVELS + 1, context]."""
    shift = 4 * gain * (np.arange(LEVELS + 1)[:, None] / LEVELS - 0.5)
    with np.errstate(over="ignore", divide="ignore"):
        odds = base_success / (1 - base_success) * np.exp(shift)
        share = 1 - 1 / (1 + odds)
    return np.rint(share * UTILITY_ONE).astype(np.uint32)


def beta_quantiles(a: float, b: float) -> np.ndarray:
    """Quantiles of Beta(a, b) at i / LEVELS as 24-bit utilities, uint32 [LEVELS + 1]; between them linear."""
    from scipy import stats

    return np.rint(stats.beta.ppf(np.arange(LEVELS + 1) / LEVELS, a, b) * UTILITY_ONE).astype(np.uint32)


TOP, WIDEST = 16, 10
"""Of a sum tree: entries of the last level, where dense arithmetic is cheaper than looking up; children of a node."""


def fans(num_memories: int) -> tuple[int, ...]:
    """Children of a node of the sum tree, level for level from the weights up: few levels, of equal fan.

    They fix the order in which weights are added up.
    """
    depth = next(depth for depth in range(32) if num_memories <= TOP * WIDEST**depth)
    return (next(fan for fan in range(1, WIDEST + 1) if num_memories <= TOP * fan**depth),) * depth
