"""Right-censored delays: those that were not over when the life ended."""

from __future__ import annotations

import numpy as np
from scipy import stats


def survival(delays: np.ndarray, censored: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(times, share still undetected after each) by Kaplan and Meier (1958); `censored` delays ended undetected."""
    data = stats.CensoredData(uncensored=delays[~censored], right=delays[censored])
    found = stats.ecdf(data).sf
    return found.quantiles, found.probabilities


def median_delay(delays: np.ndarray, censored: np.ndarray) -> float:
    """The first delay by which half is detected; NaN where half never is."""
    if not (~censored).any():
        return np.nan
    times, left = survival(delays, censored)
    over = np.flatnonzero(left <= 0.5)
    return float(times[over[0]]) if len(over) else np.nan
