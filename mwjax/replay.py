"""Real logs through the estimators of the simulation: what a log says of each memory, with its uncertainty.

A log is one life (axis `life` of size 1). An episode becomes one step for each outcome its memories had: one step,
unless they carry outcomes of their own. Slots that are empty or have no part in a step point at spare rows behind the
last memory, one a slot, which are dropped at the end.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import json
import os
import pickle
import tempfile
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from scipy import special, stats

from mwjax import estimators, metrics, registry
from mwjax.config import MAX_EPISODES, MAX_EVIDENCE, Config, Params, check_name, make_params
from mwjax.logs import BATCH_EPISODES, Batch, Log, canonical
from mwjax.types import LABELS, InputError, Pytree, Step

SPOOL_BYTES = 1 << 26
"""Batches wait until the number of memories is known: in memory up to so many bytes, then on disk."""

CAVEAT = "nominal: too narrow where memories or episodes share an outcome; permute outcomes over units for a valid test"


@dataclass(frozen=True)
class Episodes:
    """The tally of a log's lines: read = used + skipped."""

    read: int
    used: int
    skipped: int
    reasons: dict[str, int]  # why skipped -> lines
    messages: tuple[str, ...]  # FILE:LINE: field: what is wrong, for the first bad lines


@dataclass(frozen=True)
class MemoryReport:
    """What the log says of one memory."""

    id: str
    shown: int
    evidence: int
    successes: int
    worth: float
    interval: tuple[float, float]  # 95 %, equal tails, of the success probability under Beta(1, 1)
    label: str


@dataclass(frozen=True)
class Homogeneity:
    """Chi-square test that all memories share one success probability."""

    chi2: float
    degrees_of_freedom: int
    p_value: float
    caveat: str = CAVEAT


@dataclass(frozen=True)
class Overall:
    """The log as a whole."""

    estimator: str
    memories: int
    evidence: int
    hits: int  # successes over all memories
    base_rate: float  # hits / evidence
    interval_above: int  # memories whose interval lies above the base rate
    interval_below: int
    homogeneity: Homogeneity
    theta_low: float
    theta_high: float
    min_evidence: int


@dataclass(frozen=True)
class Report:
    """Memories are in order of appearance."""

    episodes: Episodes
    memories: tuple[MemoryReport, ...]
    overall: Overall


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
    log, uses_score = Log(path, strict=strict), _uses_score(estimator)
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
        counts, worth = _run(config, estimator, params, log, spool)
    memories = _memories(params, list(log.memories), counts, worth)
    return Report(episodes, memories, _overall(estimator, params, counts, memories))


def _uses_score(estimator: str) -> bool:
    """Check the name of an estimator; True if it weighs by relevance scores."""
    if ":" not in estimator:
        made = {name: factory(Config(max_evidence=1)) for name, factory in registry.ESTIMATORS.items()}
        allowed = [name for name, one in made.items() if not (one.uses_utility or one.uses_context)]
        check_name("estimator", estimator, allowed)
    return registry.resolve("observers", estimator)(Config(max_evidence=1)).uses_score


def _tally(log: Log) -> Episodes:
    reasons = {reason: count for reason, count in log.skipped.items() if count}
    if not log.used:
        why = [f"{count:,} {reason}" for reason, count in reasons.items()] + log.messages[:1]
        raise InputError("; ".join([f"{log.path}: no episode with evidence in {log.read:,} lines", *why]))
    return Episodes(log.read, log.used, log.skipped.total(), reasons, log.problems())


def _run(config: Config, estimator: str, params: Params, log: Log, spool: IO[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Counts, int32 [3, memory]: shown, evidence, successes; and worth, float32 [memory], after the spooled batches."""
    num_memories, num_slots = len(log.memories), log.num_slots
    config = replace(config, num_memories=num_memories + num_slots, num_retrieved=num_slots)
    observer = registry.resolve("observers", estimator)(config)
    params = jax.tree.map(lambda leaf: leaf[..., None], params)
    state = (estimators.new_tally(config, 1), observer.init(1))
    shown, start = np.zeros(config.num_memories, np.int64), 0
    for batch in iter(lambda: pickle.load(spool), None):
        shown += np.bincount(batch.memory[batch.memory >= 0], minlength=config.num_memories)
        steps, size = _steps(batch, start, num_memories, num_slots, observer.uses_score)
        state = _advance(config, estimator, params, state, steps, size)
        start += len(batch.memory)
    counts = estimators.counts(config, state[0])._replace(shown=jnp.asarray(shown[:, None], jnp.int32))
    worth = observer.worth(params, state[1], counts)
    return np.asarray(jnp.stack(counts[:3]))[:, :num_memories, 0], np.asarray(worth)[:num_memories, 0]


def _steps(batch: Batch, start: int, num_memories: int, num_slots: int, uses_score: bool) -> tuple[Step, Array]:
    """The steps of a batch whose first episode is `start`, stacked to one shape for all batches, and their number."""

    def grow(values: np.ndarray, empty: float) -> np.ndarray:
        missing = (BATCH_EPISODES - len(values), num_slots - values.shape[1])
        return np.pad(values, [(0, size) for size in missing], constant_values=empty).repeat(2, axis=0)

    success, wanted = grow(batch.success, -1), np.tile([True, False], BATCH_EPISODES)
    part = success == wanted[:, None]
    is_step = part.any(axis=1)
    steps_first = np.argsort(~is_step, kind="stable")
    retrieved = np.where(part, grow(batch.memory, -1), num_memories + np.arange(num_slots, dtype=np.int32))
    step = Step(
        episode=jnp.asarray(np.arange(start, start + BATCH_EPISODES, dtype=np.int32).repeat(2)[steps_first]),
        retrieved=jnp.asarray(retrieved[steps_first, :, None]),
        success=jnp.asarray(wanted[steps_first, None]),
    )
    if uses_score:
        score = np.nan_to_num(grow(batch.score, 0)).astype(np.float32)
        step = step._replace(score=jnp.asarray(score[steps_first, :, None]))
    return step, jnp.int32(is_step.sum())


@functools.partial(jax.jit, static_argnames=("config", "estimator"))
def _advance(config: Config, estimator: str, params: Params, state: Pytree, steps: Step, size: Array) -> Pytree:
    """(tally, estimator state) after the first `size` steps."""
    observer = registry.resolve("observers", estimator)(config)

    def advance(row: Array, state: Pytree) -> Pytree:
        step = jax.tree.map(lambda values: values[row], steps)._replace(context=jnp.zeros(1, jnp.int32))
        return estimators.tally(config, state[0], step), observer.update(params, state[1], step)

    return lax.fori_loop(jnp.int32(0), size, advance, state)


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


def report_json(report: Report) -> dict[str, Any]:
    """{"episodes": {...}, "memories": [...], "overall": {...}}, as json.loads would return it."""
    return json.loads(json.dumps(asdict(report)))


def report_csv(report: Report, path: str | Path) -> None:
    """Write one row a memory; the file appears whole or not at all."""
    path = Path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "shown", "evidence", "successes", "worth", "interval_low", "interval_high", "label"])
            for m in report.memories:
                writer.writerow([m.id, m.shown, m.evidence, m.successes, m.worth, *m.interval, m.label])
        os.replace(part, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
