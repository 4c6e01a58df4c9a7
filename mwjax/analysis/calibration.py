"""Is a worth a probability? Scores of forecasts made before the outcome (prequential), from histograms [..., level].

A forecast q belongs to level floor(256 q), 1 to the last, and is scored as the midpoint m = (level + 1/2) / 256 of its
level. With d = q - m, at most 1/512, the Brier score of the forecasts themselves is that of the midpoints plus the mean
of d^2 + 2 d (m - y):

    calibrated forecasts            -E d^2: between -(1/512)^2 and 0, and -(1/512)^2 / 3 = -1.3e-6 with d uniform
    outcomes that d says nothing of +E d^2 where d is centred in every level: +1.3e-6 with d uniform
    always                          less than 1/256 in absolute value
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import xarray
from numpy.typing import ArrayLike

from mwjax.rules import wilson
from mwjax.types import InputError

LEVELS = 256
MIDPOINTS = (np.arange(LEVELS) + 0.5) / LEVELS


class Reliability(NamedTuple):
    """A reliability diagram, [..., bin] each; NaN where a bin is empty."""

    forecast: np.ndarray  # mean
    observed: np.ndarray  # share of successes
    low: np.ndarray  # Wilson's 95 % interval of the share, as if outcomes were independent
    high: np.ndarray
    n: np.ndarray


def level(forecast: ArrayLike) -> np.ndarray:
    """Level of a forecast in [0, 1], int64: floor(256 q), and 255 for q = 1."""
    q = np.asarray(forecast, np.float64)
    if not ((q >= 0) & (q <= 1)).all():
        raise InputError(f"forecast is {q[~((q >= 0) & (q <= 1))][0]}, not in [0, 1]")
    return np.minimum(q * LEVELS, LEVELS - 1).astype(np.int64)


def brier(count: ArrayLike, successes: ArrayLike) -> np.ndarray:
    """Mean of (m - y)^2 over the forecasts, [...] (Brier 1950); NaN without forecasts. Error: see the module."""
    n, s = _checked(count, successes)
    return _share((s * (1 - MIDPOINTS) ** 2 + (n - s) * MIDPOINTS**2).sum(-1), n.sum(-1))


def log_loss(count: ArrayLike, successes: ArrayLike) -> np.ndarray:
    """Mean of -ln Pr[y] in nats, [...]; NaN without forecasts.

    A level costs at least ln(512/511) and at most ln 512 = 6.24, also where a forecast of 0 or 1 that fails would cost
    infinity. Calibrated forecasts cost about E d^2 / (2 m (1 - m)) less than their midpoints.
    """
    n, s = _checked(count, successes)
    return _share(-(s * np.log(MIDPOINTS) + (n - s) * np.log1p(-MIDPOINTS)).sum(-1), n.sum(-1))


def ece(count: ArrayLike, successes: ArrayLike, *, bins: int = 10) -> np.ndarray:
    """Expected calibration error, [...]: mean over the forecasts of |mean forecast - share of successes| of their bin.

    Noise makes it positive: about sum over bins of sqrt(2 n p (1 - p) / pi), over N, where calibrated. Levels go to one
    of `bins` bins of equal width by their midpoint. NaN without forecasts.
    """
    n, s, forecasts = _binned(count, successes, bins)
    return _share(np.abs(forecasts - s).sum(-1), n.sum(-1))


def skill(count: ArrayLike, successes: ArrayLike, base_count: ArrayLike, base_successes: ArrayLike) -> np.ndarray:
    """Brier skill, [...]: 1 - Brier score / that of the base rate, forecast of the same outcomes by its own histogram.

    The base rate must be prequential too: against the final base rate every honest forecaster loses. NaN without
    forecasts.
    """
    n, base_n = (np.asarray(x).sum(-1) for x in (count, base_count))
    if (np.broadcast_arrays(n, base_n)[0] != base_n).any():
        raise InputError(f"base_count has {int(base_n.sum())} forecasts, not the {int(n.sum())} of count")
    return 1 - brier(count, successes) / brier(base_count, base_successes)


def reliability(count: ArrayLike, successes: ArrayLike, *, bins: int = 10) -> Reliability:
    """The reliability diagram in bins of equal width, levels by their midpoint.

    The interval takes a bin's outcomes for independent; where several forecasts share one, it is too narrow.
    """
    n, s, forecasts = _binned(count, successes, bins)
    low, high = (np.where(n > 0, end, np.nan) for end in wilson(s, n))
    return Reliability(_share(forecasts, n), _share(s, n), low, high, n.astype(np.int64))


def _checked(count: ArrayLike, successes: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    n, s = np.asarray(count, np.float64), np.asarray(successes, np.float64)
    if n.shape != s.shape or n.shape[-1:] != (LEVELS,):
        raise InputError(f"count {n.shape} and successes {s.shape} are not both [..., {LEVELS}]")
    wrong = ~((s >= 0) & (s <= n))
    if wrong.any():
        raise InputError(f"successes {s[wrong][0]:g} of count {n[wrong][0]:g} are not in 0 .. count")
    return n, s


def _binned(count: ArrayLike, successes: ArrayLike, bins: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count, successes and sum of forecasts of every bin, [..., bin]."""
    n, s = _checked(count, successes)
    if not 1 <= bins <= LEVELS:
        raise InputError(f"bins is {bins}, not in 1 .. {LEVELS}")
    first = np.searchsorted(MIDPOINTS * bins, np.arange(bins))
    n, s, forecasts = (np.add.reduceat(x, first, axis=-1) for x in (n, s, n * MIDPOINTS))
    return n, s, forecasts


def _share(part: np.ndarray, total: np.ndarray) -> np.ndarray:
    """Quotient, NaN where the total is 0."""
    return np.divide(part, total, out=np.full(np.shape(total), np.nan), where=total > 0)


def measure(dataset: xarray.Dataset) -> dict[str, np.ndarray]:
    """forecaster.brier, .log_loss, .ece and .skill (against base_rate) of every life, [seed]."""
    values = dataset.calibration.values.astype(np.float64)
    counts = {
        str(name): (one.sum(1), one[:, 1])
        for name, one in zip(dataset.forecaster.values, values.swapaxes(0, 1), strict=True)
    }
    found = {}
    for name, histogram in counts.items():
        found |= {f"{name}.brier": brier(*histogram), f"{name}.log_loss": log_loss(*histogram)}
        found[f"{name}.ece"] = ece(*histogram)
        if name != "base_rate":
            found[f"{name}.skill"] = skill(*histogram, *counts["base_rate"])
    return found
