"""Delays that may outlast the life: right-censored times of the retrievals or episodes until a decision."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from mwjax.types import InputError


def survival(delays: ArrayLike, censored: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """(times, share still undetected after them): the Kaplan-Meier estimate (1958), prod (1 - events / at risk).

    delays [case] and censored [case], true where the life ended at that delay undetected. Times are the different
    delays, ascending; before the first the share is 1. A case censored at a time was at risk there.
    """
    times, ended = _checked(delays, censored)
    curve = stats.ecdf(stats.CensoredData.right_censored(times, ended)).sf
    return curve.quantiles, curve.probabilities


def median_delay(delays: ArrayLike, censored: ArrayLike) -> float:
    """Least time after which at most half are undetected; NaN where the estimate does not come down to it."""
    times, share = survival(delays, censored)
    reached = share <= 0.5 + 1e-12  # a product of quotients
    return float(times[reached.argmax()]) if reached.any() else float("nan")


def share_undetected(censored: ArrayLike) -> float:
    """Share of the cases that ended undetected; of cases followed equally long it estimates Pr[undetected]."""
    ended = np.asarray(censored, bool)
    if ended.size == 0:
        raise InputError("censored is empty, not one value a case")
    return float(ended.mean())


def _checked(delays: ArrayLike, censored: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    times, ended = np.asarray(delays, np.float64), np.asarray(censored, bool)
    if times.ndim != 1 or times.size == 0 or times.shape != ended.shape:
        raise InputError(f"delays {times.shape} and censored {ended.shape} are not both [case] of one case or more")
    if not (np.isfinite(times) & (times >= 0)).all():
        raise InputError(f"delays hold {times[~(np.isfinite(times) & (times >= 0))][0]}, not values in [0, inf)")
    return times, ended
