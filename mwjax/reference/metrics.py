"""The metrics of a checkpoint, by SciPy."""

from __future__ import annotations

import numpy as np
from scipy import stats

from mwjax.config import Config, Params
from mwjax.reference.governance import ordered_sum
from mwjax.reference.observers import Tally
from mwjax.reference.worlds import ONE

STORE = ("store_size", "active_size", "kept_utility", "prior_strength")
QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)


def measure(
    config: Config,
    params: Params,
    worth: np.ndarray,
    tally: Tally,
    utility: np.ndarray,
    p: np.ndarray | None,
    mean_success: float,
    live: np.ndarray,
) -> dict[str, np.ndarray]:
    """All metrics at one checkpoint, by the utilities then; with p+ all, else without those that need it.

    `live`: bool [memory], neither gone nor unborn.
    """
    position = [int(q * (len(utility) - 1)) for q in QUANTILES]
    evidence, pairs = tally.evidence, config.num_pairs
    found = {
        "spearman": np.array([spearman(one[live], utility[live]) for one in worth]),
        "evidence_quantile": np.sort(evidence)[position],
        "mean_success": np.array(mean_success),
        "starved": (evidence < int(params.min_evidence)).mean(),
        "pair_count": np.stack([evidence, tally.successes])[:, : 2 * pairs].reshape(2, 2, pairs),
    }
    if p is None:
        return found
    labels = label_count(params, worth, evidence, (p, utility / ONE))
    return found | {"rmse": np.sqrt(np.square(worth - p).mean(axis=1)), "label_count": labels}


def store(utility: np.ndarray, live: np.ndarray, active: int) -> dict[str, np.ndarray]:
    """How many memories are live, how many active, and the mean utility of the live ones, float32."""
    kept = ordered_sum(np.where(live, utility, 0).astype(np.float32) * np.float32(1 / ONE)) / np.float32(live.sum())
    return {"store_size": live.sum(), "active_size": np.array(active), "kept_utility": np.array(kept)}


def spearman(worth: np.ndarray, utility: np.ndarray) -> float:
    """Rank correlation with average ranks; 0 for a constant."""
    worth = worth.astype(np.float32)  # ties are ties of the float32 worth
    if np.ptp(worth) == 0 or np.ptp(utility) == 0:
        return 0.0
    return float(stats.spearmanr(worth, utility)[0])  # pyright: ignore[reportArgumentType]


def label_count(params: Params, worth: np.ndarray, evidence: np.ndarray, scales: tuple[np.ndarray, ...]) -> np.ndarray:
    """Confusion counts, [scale, true, label, estimator]: low, mixed, high (and uncertain) in that order."""
    low, high = np.float32(params.theta_low), np.float32(params.theta_high)
    classify = lambda x: np.where(np.float32(x) <= low, 0, np.where(np.float32(x) >= high, 2, 1))
    labels = np.where(evidence >= int(params.min_evidence), classify(worth), 3)
    counts = np.zeros((len(scales), 3, 4, len(worth)), np.int64)
    for i, scale in enumerate(scales):
        for estimator, label in enumerate(labels):
            np.add.at(counts[i, :, :, estimator], (classify(scale), label), 1)
    return counts
