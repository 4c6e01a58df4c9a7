"""Is the anchor told apart from its hitchhiker? Criteria on counters of pairs, [seed, checkpoint, role, pair]."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy import special


def measure(evidence: np.ndarray, successes: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    """Metrics of Memory Worth, [seed, checkpoint], means over the pairs of a life."""
    worth = np.divide(successes, evidence, out=np.full(evidence.shape, 0.5), where=evidence > 0)
    yield "memory_worth.anchor_worth", worth[..., 0, :].mean(-1)
    yield "memory_worth.hitchhiker_worth", worth[..., 1, :].mean(-1)
    yield "memory_worth.gap", (worth[..., 0, :] - worth[..., 1, :]).mean(-1)
    for name, criterion in CRITERIA.items():
        yield f"memory_worth.{name}", criterion(evidence, successes).mean(-1)


def anchor_above(evidence: np.ndarray, successes: np.ndarray) -> np.ndarray:
    """1 where the anchor's worth exceeds the hitchhiker's, 0.5 where they tie; unseen memories stand at 0.5."""
    total = np.where(evidence > 0, evidence, 2).astype(np.int64)
    hits = np.where(evidence > 0, successes, 1).astype(np.int64)
    return 0.5 + 0.5 * np.sign(hits[..., 0, :] * total[..., 1, :] - hits[..., 1, :] * total[..., 0, :])


def gap_above(evidence: np.ndarray, successes: np.ndarray, *, margin: float = 0.02) -> np.ndarray:
    """1 where the gap in worth exceeds `margin`."""
    worth = np.divide(successes, evidence, out=np.full(evidence.shape, 0.5), where=evidence > 0)
    return (worth[..., 0, :] - worth[..., 1, :] > margin).astype(np.float64)


def disjoint(evidence: np.ndarray, successes: np.ndarray) -> np.ndarray:
    """1 where the equal-tailed 95 % intervals under Beta(1, 1) do not overlap, the anchor's above."""
    a, b = successes + 1.0, evidence - successes + 1.0
    low = special.betaincinv(a[..., 0, :], b[..., 0, :], 0.025)
    high = special.betaincinv(a[..., 1, :], b[..., 1, :], 0.975)
    return (low > high).astype(np.float64)


def posterior(evidence: np.ndarray, successes: np.ndarray) -> np.ndarray:
    """1 where Pr[p of the anchor > p of the hitchhiker] > 0.95, independent Beta(1, 1) posteriors, normal law."""
    a, b = successes + 1.0, evidence - successes + 1.0
    mean, variance = a / (a + b), a * b / ((a + b) ** 2 * (a + b + 1))
    z = (mean[..., 0, :] - mean[..., 1, :]) / np.sqrt(variance.sum(-2))
    return (z > special.ndtri(0.95)).astype(np.float64)


CRITERIA: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "anchor_above": anchor_above,
    "gap_above": gap_above,
    "posterior": posterior,
    "disjoint": disjoint,
}
"""Name -> score in [0, 1], [seed, checkpoint, pair]."""
