"""The sections of a report, each from what it needs; what a log does not support becomes a note."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from scipy import stats

from mwjax.logs import Journal
from mwjax.replay import adjusted, changes, entangled, heterogeneity, propensity, reliability
from mwjax.replay.records import Adjustment, Change, Inclusion, Pair, Report, Spread, Suspect
from mwjax.types import InputError

MOST_PAIRS = 20
PERMUTED_ENTRIES = 1_000_000_000
"""Entries that all permutations together may move."""
LEAST_PERMUTATIONS = 19
LARGEST_LOG = 700.0  # e^700 is still a float64


def of_counters(report: Report, evidence: np.ndarray, successes: np.ndarray) -> Report:
    """The empirical-Bayes prior and what it says of every memory; evidence against the base rate."""
    found, rate = heterogeneity.posterior(successes, evidence), report.overall.base_rate
    told = heterogeneity.evalues(successes, evidence, rate) if 0 < rate < 1 else None
    memories = []
    for i, memory in enumerate(report.memories):
        low, high = found.interval[i].tolist()
        memory = replace(memory, posterior=float(found.mean[i]), posterior_interval=(low, high))
        if told is not None:
            e_value = float(np.exp(min(told.log_e[i], LARGEST_LOG)))
            memory = replace(memory, e_value=e_value, credible=bool(told.differs[i]))
        memories.append(memory)
    overall = replace(report.overall, spread=Spread(found.prior_a, found.prior_b, found.capped))
    return replace(report, memories=tuple(memories), overall=overall)


def of_episodes(report: Report, journal: Journal, *, ridge: float | str, permutations: int) -> Report:
    """What takes whole episodes. Each section that the log does not support leaves a note."""
    together = entangled.entangled(journal, MOST_PAIRS)
    sections: tuple[tuple[str, Callable[[Report], Report]], ...] = (
        ("pairs", lambda report: _pairs(report, journal.memories, together)),
        ("adjusted worth", lambda report: _adjusted(report, journal, ridge, together)),
        ("heterogeneity", lambda report: _heterogeneity(report, journal, permutations)),
        ("change points", lambda report: _changes(report, journal)),
        ("inclusion", lambda report: _effects(report, journal)),
        ("calibration", lambda report: replace(report, reliability=reliability.reliability(journal))),
    )
    for name, section in sections:
        try:
            report = section(report)
        except InputError as error:
            report = replace(report, notes=(*report.notes, f"{name}: {error}"))
    return report


def _pairs(report: Report, names: tuple[str, ...], found: entangled.Pairs) -> Report:
    """The most entangled pairs."""
    columns = zip(*(column.tolist() for column in found), strict=True)
    pairs = tuple(
        Pair(names[a], names[b], phi, (n, s), (n_a, s_a), (n_b, s_b)) for a, b, phi, n, s, n_a, s_a, n_b, s_b in columns
    )
    return replace(report, pairs=pairs)


def _adjusted(report: Report, journal: Journal, ridge: float | str, together: entangled.Pairs) -> Report:
    """Adjusted worth beside raw worth, residual worth by context, suspects."""
    about = adjusted.design(journal)
    found = adjusted.adjust(about, penalty=ridge)
    overall, names = report.overall, journal.memories
    contrast, contrast_error = (one.tolist() for one in entangled.contrasts(together, found, about))
    pairs = tuple(
        replace(one, contrast=logit, contrast_se=se)
        for one, logit, se in zip(report.pairs, contrast, contrast_error, strict=True)
    )
    suspects = tuple(_suspect(one, names) for one in entangled.suspects(journal, found, about=about))
    lender = {one.id: one.companion for one in suspects}
    residual = None if journal.context is None else adjusted.residual(journal)
    labels = adjusted.labels(found, theta_low=overall.theta_low, theta_high=overall.theta_high).tolist()
    values, bounds, error = found.worth.tolist(), found.interval.tolist(), found.standard_error.tolist()
    memories = []
    for i, memory in enumerate(report.memories):
        known = bool(np.isfinite(error[i]))
        memories.append(
            replace(
                memory,
                adjusted=values[i],
                adjusted_interval=(bounds[i][0], bounds[i][1]) if known else None,
                adjusted_se=error[i] if known else None,
                adjusted_label=labels[i] if known and memory.evidence >= overall.min_evidence else "uncertain",
                residual=None if residual is None or not np.isfinite(residual[i]) else float(residual[i]),
                borrows_from=lender.get(memory.id),
            )
        )
    seen = np.array([m.evidence >= max(overall.min_evidence, 1) for m in report.memories])
    both = np.array([m.worth for m in report.memories])[seen], found.worth[seen]
    enough = len(both[0]) > 2 and min(np.ptp(both[0]), np.ptp(both[1])) > 0
    adjustment = Adjustment(
        penalty=found.penalty,
        intercept=found.intercept,
        rows=found.rows,
        left_out=found.left_out,
        chosen_by="given" if found.validation is None else "cross-validation",
        correlation_with_worth=float(stats.spearmanr(*both).statistic) if enough else None,  # pyright: ignore[reportAttributeAccessIssue]
    )
    return replace(
        report,
        memories=tuple(memories),
        overall=replace(overall, adjustment=adjustment),
        suspects=suspects,
        pairs=pairs,
    )


def _heterogeneity(report: Report, journal: Journal, permutations: int) -> Report:
    """Whether memories differ at all, by permutation over units; a long log is permuted less often, and says so."""
    affordable = max(PERMUTED_ENTRIES // max(len(journal.memory), 1), LEAST_PERMUTATIONS)
    if affordable < permutations:
        report = replace(report, notes=(*report.notes, f"heterogeneity: {affordable} permutations, as the log is long"))
    found, spread = (
        heterogeneity.heterogeneity(journal, permutations=min(permutations, affordable)),
        report.overall.spread,
    )
    assert spread is not None
    if found.movable < 1:
        note = f"heterogeneity: {found.movable:.0%} of the units have another of their shape; the others stay in place"
        report = replace(report, notes=(*report.notes, note))
    spread = replace(
        spread,
        chi2=found.chi2,
        permuted_mean=found.mean,
        permuted_sd=found.standard_deviation,
        permutations=found.permutations,
        p_value=found.p_value,
        verdict=found.verdict,
    )
    return replace(report, overall=replace(report.overall, spread=spread))


def _changes(report: Report, journal: Journal) -> Report:
    """Change points of every memory."""
    found = changes.changes(journal)
    by_memory: dict[int, list[Change]] = {}
    columns = (found.memory, found.episode, found.time, found.rate_before, found.rate_after)
    for memory, episode, time, before, after in zip(*(one.tolist() for one in columns), strict=True):
        known = None if math.isnan(time) else time
        by_memory.setdefault(memory, []).append(Change(episode, known, before, after))
    memories = tuple(
        replace(one, change_points=tuple(by_memory[i])) if i in by_memory else one
        for i, one in enumerate(report.memories)
    )
    return replace(report, memories=memories)


def _effects(report: Report, journal: Journal) -> Report:
    """Values and effects of inclusion, where the log has propensities; without, no note: most logs have none."""
    if journal.candidates is None and journal.propensity is None:
        return report
    found = propensity.propensities(journal)
    ess, small = np.fmin(found.ess_in, found.ess_out), int((found.small & (found.included > 0)).sum())
    memories = []
    for i, memory in enumerate(report.memories):
        each = {name: _inclusion(getattr(found, name), i) for name in ("ips", "snips", "doubly_robust")}
        memories.append(replace(memory, **each, ess=None if math.isnan(ess[i]) else float(ess[i])))
    notes = [f"inclusion: {found.estimand}"]
    if small:
        notes.append(f"inclusion: {small:,} memories have an effective sample size below {propensity.SMALL_ESS}")
    if found.excluded:
        notes.append(f"inclusion: {found.excluded:,} propensities of 0 or 1 are left out, as nothing was drawn")
    return replace(report, memories=tuple(memories), notes=(*report.notes, *notes))


def _inclusion(found: propensity.Estimate | None, memory: int) -> Inclusion | None:
    if found is None or math.isnan(found.value_in[memory]):
        return None
    effect, error = float(found.effect[memory]), float(found.effect_error[memory])
    both = (None, None) if math.isnan(effect) else (effect, error)
    return Inclusion(float(found.value_in[memory]), float(found.value_in_error[memory]), *both)


def _suspect(one: entangled.Suspect, names: tuple[str, ...]) -> Suspect:
    return Suspect(
        id=names[one.memory],
        companion=names[one.companion],
        together=one.together,
        borrowed=one.borrowed,
        contrast=one.contrast,
        contrast_se=one.contrast_error,
        clear=one.clear,
    )
