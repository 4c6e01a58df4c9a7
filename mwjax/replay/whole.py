"""Real logs through the estimators of the simulation: what a log says of each memory, with its uncertainty."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path

import jax.numpy as jnp
import numpy as np
from scipy import special, stats

from mwjax import metrics
from mwjax.config import MAX_EPISODES, MAX_EVIDENCE, Config, Params, make_params
from mwjax.logs import Log, canonical
from mwjax.replay import counting
from mwjax.replay.records import Episodes, Homogeneity, MemoryReport, Overall, Report
from mwjax.types import LABELS, InputError

SPOOL_BYTES = 1 << 26
"""Batches wait until the number of memories is known: in memory up to so many bytes, then on disk."""


def replay(
    path: str | Path,
    *,
    estimator: str = "memory_worth",
    theta_low: float = 0.4,
    theta_high: float = 0.6,
    min_evidence: int = 10,
    strict: bool = False,
) -> Report:
    """Read the log at `path` and report on its memories. `strict`: InputError at the first bad line."""
    read_out = {"theta_low": theta_low, "theta_high": theta_high, "min_evidence": min_evidence}
    make_params(Config(), **read_out)
    log, uses_score = Log(path, strict=strict), counting.uses_score(estimator)
    with tempfile.SpooledTemporaryFile(SPOOL_BYTES) as spool:
        for batch in canonical.read(log, weigh_by_score=uses_score):
            pickle.dump(batch, spool)
        pickle.dump(None, spool)
        spool.seek(0)
        episodes = _tally(log)
        if uses_score and log.used > MAX_EPISODES:
            raise InputError(f"{path}: {log.used:,} episodes; {estimator} counts at most {MAX_EPISODES:,} in float32")
        config = Config(max_evidence=min(log.used, MAX_EVIDENCE))
        params = make_params(config, num_episodes=log.used if log.used <= MAX_EVIDENCE else 1, **read_out)
        counts, worth = counting.run(config, estimator, params, log, spool)
    memories = _memories(params, list(log.memories), counts, worth)
    return Report(episodes, memories, _overall(estimator, params, counts, memories))


def _tally(log: Log) -> Episodes:
    reasons = {reason: count for reason, count in log.skipped.items() if count}
    if not log.used:
        why = [f"{count:,} {reason}" for reason, count in reasons.items()] + log.messages[:1]
        raise InputError("; ".join([f"{log.path}: no episode with evidence in {log.read:,} lines", *why]))
    return Episodes(log.read, log.used, log.skipped.total(), reasons, log.problems())


def intervals(successes: np.ndarray, evidence: np.ndarray) -> np.ndarray:
    """Equal-tailed 95 % intervals [memory, (low, high)] of success probabilities under a Beta(1, 1) prior."""
    a, b = successes + 1.0, evidence - successes + 1.0
    return special.betaincinv(a[:, None], b[:, None], np.array([0.025, 0.975]))


def homogeneity(successes: np.ndarray, evidence: np.ndarray) -> Homogeneity:
    """sum over memories of (successes - n p)^2 / (n p (1 - p)), p the pooled rate, against chi-square(memories - 1)."""
    seen = evidence > 0
    n, hits = evidence[seen].astype(np.float64), successes[seen].astype(np.float64)
    rate, degrees = hits.sum() / n.sum(), len(n) - 1
    chi2 = float(((hits - n * rate) ** 2 / (n * rate * (1 - rate))).sum()) if 0 < rate < 1 else 0.0
    return Homogeneity(chi2, degrees, float(stats.chi2.sf(chi2, degrees)) if degrees else 1.0)


def _memories(params: Params, ids: list[str], counts: np.ndarray, worth: np.ndarray) -> tuple[MemoryReport, ...]:
    _, evidence, successes = counts
    labels = np.asarray(metrics.label(params, jnp.asarray(worth), jnp.asarray(evidence)))
    values = np.round(worth.astype(np.float64), 7).tolist()  # without the digits a float32 does not have
    bounds = map(tuple, intervals(successes, evidence).tolist())
    columns = (ids, *counts.tolist(), values, bounds, (LABELS[index] for index in labels))
    return tuple(MemoryReport(*row) for row in zip(*columns, strict=True))


def _overall(estimator: str, params: Params, counts: np.ndarray, memories: tuple[MemoryReport, ...]) -> Overall:
    _, evidence, hits = counts.sum(axis=1, dtype=np.int64).tolist()
    rate = hits / evidence
    return Overall(
        estimator=estimator,
        memories=len(memories),
        evidence=evidence,
        hits=hits,
        base_rate=rate,
        interval_above=sum(memory.interval[0] > rate for memory in memories),
        interval_below=sum(memory.interval[1] < rate for memory in memories),
        homogeneity=homogeneity(counts[2], counts[1]),
        theta_low=round(float(params.theta_low), 7),
        theta_high=round(float(params.theta_high), 7),
        min_evidence=int(params.min_evidence),
    )
