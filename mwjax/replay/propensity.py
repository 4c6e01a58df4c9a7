"""Causal worth where inclusion was randomised: inverse propensities, normalised ones, and doubly robust.

Over the episodes in which memory m was a candidate, with z = included, p = Pr[included], y the outcome and w = z/p:

    IPS    E[y | do(in)] = mean w y                    (Horvitz & Thompson 1952)
    SNIPS  E[y | do(in)] = sum w y / sum w             (Hajek 1971; Swaminathan & Joachims 2015)
    DR     E[y | do(in)] = mean q_1 + w (y - q_1)      (Robins, Rotnitzky & Zhao 1994)

and likewise for do(out) with (1 - z)/(1 - p). q_z is the adjusted regression (mwjax.replay.adjusted), fitted on the
other half of the units and read at what is known before the draw: every other candidate enters with its propensity.
The population of m is its own candidate episodes; effects are in minus out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse, special

from mwjax.checks import check_number
from mwjax.logs.journal import Journal
from mwjax.replay import adjusted
from mwjax.replay.adjusted import Sparse
from mwjax.types import InputError

SMALL_ESS = 30
"""Kish effective sample size below which an estimate carries a warning."""


class Estimate(NamedTuple):
    """One estimator; arrays [memory], NaN where the log has none. Standard errors are over units."""

    value_in: np.ndarray  # float64, E[y | do(in)]
    value_in_error: np.ndarray
    value_out: np.ndarray  # float64, E[y | do(out)]
    value_out_error: np.ndarray
    effect: np.ndarray  # float64, E[y | do(in)] - E[y | do(out)]
    effect_error: np.ndarray


@dataclass(frozen=True)
class Propensities:
    """What randomised inclusion says of every memory; arrays [memory]."""

    naive: np.ndarray  # float64, mean y where it was included: worth, an association
    ips: Estimate
    snips: Estimate
    doubly_robust: Estimate | None  # None where only the propensities of shown memories are known
    candidates: np.ndarray  # int64, episodes it could have been in, with 0 < p < 1
    included: np.ndarray  # int64, those that it was in
    ess_in: np.ndarray  # float64, (sum w)^2 / sum w^2 (Kish 1965)
    ess_out: np.ndarray  # NaN where only the propensities of shown memories are known
    excluded: int  # candidates with a propensity of 0 or 1: nothing was drawn
    estimand: str

    @property
    def small(self) -> np.ndarray:
        """Whether either effective sample size is below SMALL_ESS, bool [memory]."""
        return np.fmin(self.ess_in, self.ess_out) < SMALL_ESS


class _Draws(NamedTuple):
    """Candidates with something to draw: arrays [candidate]."""

    episode: np.ndarray
    memory: np.ndarray
    p: np.ndarray
    z: np.ndarray  # 1.0 where included
    y: np.ndarray  # the outcome of the episode
    unit: np.ndarray


def propensities(journal: Journal, *, penalty: float = 10.0, seed: int = 0) -> Propensities:
    """Values and effects of every memory by three estimators; `penalty` is lambda of the outcome model of DR.

    With candidates, all of it. With propensities of shown memories only, values of inclusion by IPS and SNIPS: then
    every episode is taken for one that could have shown the memory, and the weight of those that did not is 0.
    InputError where no propensity lies between 0 and 1.
    """
    check_number("penalty", penalty, 1e-6, 1e12)
    if journal.candidates is not None and len(journal.candidates.memory):
        return _randomised(journal, penalty, seed)
    if journal.propensity is not None and np.isfinite(journal.propensity).any():
        return _shown_only(journal)
    raise InputError("propensity: the log has none, so effects of inclusion cannot be told from associations")


def _randomised(journal: Journal, penalty: float, seed: int) -> Propensities:
    draws, excluded = _draws(journal)
    number, m = len(journal.memories), draws.memory
    count, included = np.bincount(m, minlength=number), np.bincount(m, draws.z, minlength=number).astype(np.int64)
    into, out = draws.z / draws.p, (1 - draws.z) / (1 - draws.p)
    model_in, model_out = _model(journal, draws, penalty, seed)
    y, zero = draws.y, np.zeros(len(m))
    total = lambda x: np.bincount(m, x, minlength=number)
    hits = _over(total(draws.z * y), included)
    return Propensities(
        naive=hits,
        ips=_estimate(draws, number, (into * y, np.ones(len(m))), (out * y, np.ones(len(m)))),
        snips=_estimate(draws, number, (into * y, into), (out * y, out)),
        doubly_robust=_estimate(
            draws,
            number,
            (model_in + into * (y - model_in), zero + 1),
            (model_out + out * (y - model_out), zero + 1),
        ),
        candidates=count,
        included=included,
        ess_in=_over(total(into) ** 2, total(into**2)),
        ess_out=_over(total(out) ** 2, total(out**2)),
        excluded=excluded,
        estimand="in and out over the episodes in which the memory was a candidate",
    )


def _draws(journal: Journal) -> tuple[_Draws, int]:
    """Candidates in episodes of known outcome, and how many of them had nothing to draw."""
    of = journal.candidates
    assert of is not None
    episode = np.repeat(np.arange(len(journal.outcome)), np.diff(of.start))
    known = journal.outcome[episode] >= 0
    free = (of.propensity > 0) & (of.propensity < 1)
    keep = known & free
    if not keep.any():
        raise InputError("propensity: all are 0 or 1 (nothing was randomised), so effects of inclusion are not known")
    episode = episode[keep]
    z, y = of.included[keep].astype(np.float64), (journal.outcome[episode] == 1).astype(np.float64)
    return _Draws(episode, of.memory[keep], of.propensity[keep], z, y, journal.unit[episode]), int(
        (known & ~free).sum()
    )


def _over(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The quotient, NaN where b is 0."""
    return np.divide(a, b, out=np.full(len(a), np.nan), where=b > 0)


def _ratio(draws: _Draws, number: int, top: np.ndarray, bottom: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """sum top / sum bottom of every memory, and what each candidate moves it by (its influence)."""
    below = np.bincount(draws.memory, bottom, minlength=number)
    value = _over(np.bincount(draws.memory, top, minlength=number), below)
    return value, (top - value[draws.memory] * bottom) / np.where(below > 0, below, np.nan)[draws.memory]


def _error(draws: _Draws, number: int, influence: np.ndarray) -> np.ndarray:
    """Root of the sum over units of squared influence, times sqrt(n / (n - 1)), n units."""
    key, inverse = np.unique(draws.unit.astype(np.int64) * number + draws.memory, return_inverse=True)
    memory = key % number
    square = np.bincount(memory, np.bincount(inverse, influence) ** 2, minlength=number)
    units = np.bincount(memory, minlength=number)
    return np.sqrt(square * _over(units.astype(np.float64), units - 1.0))


def _estimate(draws: _Draws, number: int, into: tuple, out: tuple) -> Estimate:
    """Quotients of sums: (top, bottom) for in and out."""
    value_in, by_in = _ratio(draws, number, *into)
    value_out, by_out = _ratio(draws, number, *out)
    error = lambda influence: _error(draws, number, influence)
    return Estimate(value_in, error(by_in), value_out, error(by_out), value_in - value_out, error(by_in - by_out))


def _model(journal: Journal, draws: _Draws, penalty: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Success with the candidate in, and out, float64 [candidate] each: of the half of the units that it is not in."""
    of = journal.candidates
    assert of is not None
    number, episodes = len(journal.memories), len(journal.outcome)
    context = np.full(episodes, -1) if journal.context is None else journal.context
    contexts = int(context.max(initial=-1)) + 1
    start = of.start
    chance: Sparse = sparse.csr_array((of.propensity, of.memory, start), shape=(episodes, number))
    shown: Sparse = sparse.csr_array((of.included.astype(np.float64), of.memory, start), shape=(episodes, number))
    if contexts:
        has = np.flatnonzero(context >= 0)
        own = sparse.csr_array((np.ones(len(has)), (has, context[has])), shape=(episodes, contexts))
        chance, shown = (sparse.hstack([one, own], format="csr") for one in (chance, shown))
    half = np.random.default_rng(seed).permutation(np.arange(int(journal.unit.max()) + 1) % 2)[journal.unit]
    mine = half[draws.episode]
    eta, b = np.zeros(len(mine)), np.zeros(len(mine))
    for side in (0, 1):
        rows = np.flatnonzero((half != side) & (journal.outcome >= 0))
        y = (journal.outcome[rows] == 1).astype(np.float64)
        if not 0 < y.sum() < len(y):
            raise InputError("outcome: half of the units has one outcome only; too little for a doubly robust estimate")
        flat = np.zeros(shown.shape[1])
        about = adjusted.Design(shown[rows], y, journal.unit[rows].astype(np.int64), flat, float(y.mean()), 0)
        found = adjusted.fit(about, penalty)
        here = mine == side
        eta[here] = (found.intercept + chance @ found.coefficient)[draws.episode[here]]
        b[here] = found.coefficient[draws.memory[here]]
    out = eta - draws.p * b
    return special.expit(out + b), special.expit(out)


def _shown_only(journal: Journal) -> Propensities:
    p = journal.propensity
    assert p is not None
    known = (journal.outcome >= 0)[journal.episode] & np.isfinite(p)
    if not ((p[known] > 0) & (p[known] < 1)).any():
        raise InputError("propensity: all are 0 or 1 (nothing was randomised), so effects of inclusion are not known")
    keep = known & (p > 0)
    episode, number = journal.episode[keep], len(journal.memories)
    y = (journal.outcome[episode] == 1).astype(np.float64)
    draws = _Draws(episode, journal.memory[keep], p[keep], np.ones(keep.sum()), y, journal.unit[episode])
    total = lambda x: np.bincount(draws.memory, x, minlength=number)
    weight, count = 1 / draws.p, total(draws.z).astype(np.int64)
    episodes = int((journal.outcome >= 0).sum())
    units = len(np.unique(journal.unit[journal.outcome >= 0]))
    nothing = np.full(number, np.nan)
    horvitz = np.where(count > 0, total(weight * y) / episodes, np.nan)
    key, inverse = np.unique(draws.unit.astype(np.int64) * number + draws.memory, return_inverse=True)
    square = np.bincount(key % number, np.bincount(inverse, weight * y) ** 2, minlength=number)
    spread = square - units * (horvitz * episodes / units) ** 2  # units that never showed it add 0
    error = np.sqrt(np.maximum(spread, 0) * units / max(units - 1, 1)) / episodes
    value, influence = _ratio(draws, number, weight * y, weight)
    return Propensities(
        naive=_over(total(y), count),
        ips=Estimate(horvitz, error, nothing, nothing, nothing, nothing),
        snips=Estimate(value, _error(draws, number, influence), nothing, nothing, nothing, nothing),
        doubly_robust=None,
        candidates=np.full(number, episodes),
        included=count,
        ess_in=_over(total(weight) ** 2, total(weight**2)),
        ess_out=nothing,
        excluded=int((known & (p >= 1)).sum()),
        estimand="in over all episodes, each taken for one that could have shown the memory",
    )
