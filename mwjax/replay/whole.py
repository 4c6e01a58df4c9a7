"""What a log says of each memory, with its uncertainty: counters first, then what only whole episodes can tell."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
from scipy import stats

from mwjax import logs, metrics, rules
from mwjax.checks import check_integer, check_number
from mwjax.config import MAX_EVIDENCE, Config, Params, make_params
from mwjax.logs import Journal, Source, Tally
from mwjax.logs.lines import Progress
from mwjax.replay import counting, sections
from mwjax.replay.entangled import intervals
from mwjax.replay.records import Episodes, Homogeneity, MemoryReport, Overall, Report
from mwjax.replay.rule import METHODS, value_of_rule
from mwjax.types import LABELS, InputError

COUNTERS_NOTE = "counters only: pairs, adjusted worth, drift, calibration and rules need the episodes"


@dataclass(frozen=True)
class Options:
    """What is asked of a log."""

    estimator: str = "memory_worth"
    theta_low: float = 0.4  # labels, as in simulations
    theta_high: float = 0.6
    min_evidence: int = 10
    ridge: float | str = "cv"  # penalty of the adjusted worth; "cv": by cross-validation
    permutations: int = 999  # of outcomes over units, for the test of heterogeneity
    rule: str | None = None  # whose decisions are replayed
    additive: bool = False  # success is linear in the slots of a set: the rule's worth needs fewer episodes then
    knobs: rules.Knobs = field(default_factory=rules.Knobs)
    counters_only: bool = False  # keep no episodes: one pass in bounded memory
    strict: bool = False  # InputError at the first bad line


def replay(log: Source | str | Path, *, progress: Progress | None = None, **options: Any) -> Report:
    """Read a log and report on its memories; `options` are those of Options. InputError where nothing can be said."""
    return read(log, Options(**options), progress)[0]


def read(log: Source | str | Path, options: Options, progress: Progress | None = None) -> tuple[Report, Journal | None]:
    """The report, and the episodes behind it, for figures."""
    estimator = options.estimator
    read_out = {name: getattr(options, name) for name in ("theta_low", "theta_high", "min_evidence")}
    _check(options)
    source = log if isinstance(log, Source) else Source(log)
    source = replace(source, strict=options.strict or source.strict, weigh_by_score=counting.uses_score(estimator))
    journal: Journal | None = None
    if options.counters_only:
        names, shown, evidence, successes, tally = logs.count(source, progress=progress)
    else:
        loaded = logs.load(source, progress=progress)
        journal, tally = loaded.journal, loaded.tally
        if journal is not None:
            shown = np.bincount(journal.memory, minlength=len(journal.memories))
            names, evidence, successes = journal.memories, journal.evidence, journal.successes
        else:
            assert loaded.counters is not None
            names, shown, evidence, successes = loaded.counters
    episodes = _tally(source.path, tally, int(evidence.sum()))
    params = make_params(Config(max_evidence=1), num_episodes=1, **read_out)
    worth = counting.of_counters(estimator, params, shown, evidence, successes)
    if worth is None:
        if journal is None:
            raise InputError(f"estimator = {estimator!r}: needs the episodes; here are counters only")
        most = min(len(journal.outcome), MAX_EVIDENCE)
        config = Config(max_evidence=most)
        worth = counting.of_journal(config, estimator, make_params(config, num_episodes=most, **read_out), journal)
    memories = _memories(params, names, np.stack([shown, evidence, successes]), worth)
    report = Report(episodes, memories, _overall(estimator, params, evidence, successes, memories))
    report = sections.of_counters(report, evidence, successes)
    if journal is None:
        return replace(report, notes=(*report.notes, COUNTERS_NOTE)), None
    report = sections.of_episodes(report, journal, ridge=options.ridge, permutations=options.permutations)
    if options.rule is not None:
        report = replace(
            report, rule=value_of_rule(journal, options.rule, options.knobs, method=METHODS[options.additive])
        )
    return report, journal


def episodes(source: Source, progress: Progress | None = None) -> Journal:
    """The episodes of a log. InputError where it has none with evidence."""
    loaded = logs.load(source, progress=progress)
    if loaded.journal is None:
        raise InputError(f"{source.path}: has counters only; needs the episodes")
    _tally(source.path, loaded.tally, int(loaded.journal.evidence.sum()))
    return loaded.journal


def _check(options: Options) -> None:
    """Before anything is read."""
    make_params(Config(), theta_low=options.theta_low, theta_high=options.theta_high, min_evidence=options.min_evidence)
    check_integer("permutations", options.permutations, 19, 1_000_000)
    if options.ridge != "cv":
        check_number("ridge", options.ridge, 1e-6, 1e12)
    if options.rule is not None:
        rules.check(options.knobs, options.rule)
        if options.counters_only:
            raise InputError(f"rule = {options.rule!r}: needs the episodes; leave out counters_only")


def _tally(path: str | Path, tally: Tally, evidence: int) -> Episodes:
    reasons = {reason: count for reason, count in tally.skipped.items() if count}
    if not evidence:
        why = [f"{count:,} {reason}" for reason, count in reasons.items()] + tally.messages[:1]
        raise InputError("; ".join([f"{path}: no episode with evidence in {tally.read:,} lines", *why]))
    return Episodes(tally.read, tally.used, tally.skipped.total(), reasons, tally.problems())


def homogeneity(successes: np.ndarray, evidence: np.ndarray) -> Homogeneity:
    """sum over memories of (successes - n p)^2 / (n p (1 - p)), p the pooled rate, against chi-square(memories - 1)."""
    seen = evidence > 0
    n, hits = evidence[seen].astype(np.float64), successes[seen].astype(np.float64)
    rate, degrees = hits.sum() / n.sum(), len(n) - 1
    chi2 = float(((hits - n * rate) ** 2 / (n * rate * (1 - rate))).sum()) if 0 < rate < 1 else 0.0
    return Homogeneity(chi2, degrees, float(stats.chi2.sf(chi2, degrees)) if degrees else 1.0)


def _memories(params: Params, ids: tuple[str, ...], counts: np.ndarray, worth: np.ndarray) -> tuple[MemoryReport, ...]:
    _, evidence, successes = counts
    labels = np.asarray(metrics.label(params, jnp.asarray(worth, jnp.float32), jnp.asarray(evidence, jnp.int32)))
    values = np.round(worth, 7).tolist()  # without the digits a float32 does not have
    bounds = map(tuple, intervals(successes, evidence).tolist())
    columns = (ids, *counts.tolist(), values, bounds, (LABELS[index] for index in labels))
    return tuple(MemoryReport(*row) for row in zip(*columns, strict=True))


def _overall(
    estimator: str, params: Params, evidence: np.ndarray, successes: np.ndarray, memories: tuple[MemoryReport, ...]
) -> Overall:
    total, hits = int(evidence.sum()), int(successes.sum())
    rate = hits / total
    return Overall(
        estimator=estimator,
        memories=len(memories),
        evidence=total,
        hits=hits,
        base_rate=rate,
        interval_above=sum(memory.interval[0] > rate for memory in memories),
        interval_below=sum(memory.interval[1] < rate for memory in memories),
        homogeneity=homogeneity(successes, evidence),
        theta_low=round(float(params.theta_low), 7),
        theta_high=round(float(params.theta_high), 7),
        min_evidence=int(params.min_evidence),
    )
