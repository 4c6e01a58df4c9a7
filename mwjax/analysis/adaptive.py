"""Worth against the two things it may be said to estimate when retrieval depends on it.

The compensator expected_hits(m) is the sum of Pr[success] over the episodes that show m: hits - expected_hits is a
martingale, of mean 0 in every world. The static p+ assumes companions that are not chosen by worth.
"""

from __future__ import annotations

import numpy as np
import xarray
from scipy import special


def measure(dataset: xarray.Dataset) -> dict[str, np.ndarray]:
    """Means over the memories of a life that were ever shown, [seed], at the end.

    compensator: hits - expected_hits. bias_*: hits / n less p+ or expected_hits / n; bias_*_rare over the least shown
    quarter. coverage_*: share of the equal-tailed 95 % intervals under Beta(1, 1) that cover it.
    """
    n, hits = dataset.evidence.values.astype(np.float64), dataset.successes.values.astype(np.float64)
    expected, p_plus = dataset.expected_hits.values.astype(np.float64), dataset.p_plus.values.astype(np.float64)
    seen, shown = n > 0, np.maximum(n, 1)
    over = lambda values, which: (values * which).sum(1) / np.maximum(which.sum(1), 1)
    rank = n.argsort(axis=1, kind="stable").argsort(axis=1)
    rare = seen & (rank < n.shape[1] // 4)
    low, high = (special.betaincinv(hits + 1, n - hits + 1, q) for q in (0.025, 0.975))
    found = {
        "compensator": (hits - expected).mean(1),
        "memory_worth.bias_expected": over((hits - expected) / shown, seen),
        "memory_worth.bias_expected_rare": over((hits - expected) / shown, rare),
        "memory_worth.coverage_expected": over((low <= expected / shown) & (expected / shown <= high), seen),
    }
    if np.isfinite(p_plus).all():
        found |= {
            "memory_worth.bias_p_plus": over(hits / shown - p_plus, seen),
            "memory_worth.bias_p_plus_rare": over(hits / shown - p_plus, rare),
            "memory_worth.coverage_p_plus": over((low <= p_plus) & (p_plus <= high), seen),
        }
    return found
