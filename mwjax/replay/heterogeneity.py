"""Do memories differ at all? A permutation test over independent units, and what may be said of single memories.

The statistic is that of the homogeneity test, chi2 = sum over memories of (s - n p)^2 / (n p (1 - p)), p the pooled
rate. Its nominal law does not hold where memories of a set share an outcome, or episodes of a unit their luck.
Permuting outcomes over units of equal shape keeps both and breaks only the tie to who was shown.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import sparse, special

from mwjax.checks import check_integer, check_number
from mwjax.logs.journal import Journal
from mwjax.types import InputError

NO_DIFFERENCES = "no credible differences"
DIFFERENCES = "memories differ"
CELLS = 1 << 24
"""Permuted outcomes that are held at a time."""


@dataclass(frozen=True)
class Heterogeneity:
    """The permutation test."""

    chi2: float
    mean: float  # of chi2 over permutations
    standard_deviation: float
    p_value: float  # (1 + permutations with chi2 at least the observed) / (1 + permutations)
    permutations: int
    units: int
    movable: float  # share of units that have another of their shape; the others keep their outcomes
    alpha: float

    @property
    def verdict(self) -> str:
        """NO_DIFFERENCES where p_value > alpha."""
        return DIFFERENCES if self.p_value <= self.alpha else NO_DIFFERENCES


class Posterior(NamedTuple):
    """Success probabilities under an empirical-Bayes Beta prior, arrays [memory]."""

    prior_a: float
    prior_b: float
    capped: bool  # the strength prior_a + prior_b is the cap: the counters vary no more than binomial noise does
    mean: np.ndarray  # float64
    interval: np.ndarray  # float64 [memory, (low, high)], 95 %, equal tails


class Evalues(NamedTuple):
    """Evidence against a success probability equal to the base rate, arrays [memory]."""

    log_e: np.ndarray  # float64, ln E; 0 without evidence
    differs: np.ndarray  # bool, named by e-BH at alpha
    alpha: float


def heterogeneity(journal: Journal, *, permutations: int = 999, alpha: float = 0.05, seed: int = 0) -> Heterogeneity:
    """The test. A unit's outcomes move whole, in its order, to another unit with equally many in each episode.

    In a unit with two sides those of side +1 come first, so that complementary outcomes stay complementary. Where
    memories carry verdicts of their own, verdicts move, slot by slot. Exact under the hypothesis that outcomes do not
    depend on who was shown and that units of one shape are exchangeable. Permutations are drawn by `seed`.
    """
    check_integer("permutations", permutations, 1, 1_000_000)
    check_number("alpha", alpha, 0, 1)
    shown, y, episode = _slots(journal)
    evidence = np.asarray(shown.sum(axis=1), np.float64)
    if not len(y):
        raise InputError("outcome: no episode has one; there is nothing to test")
    side = np.zeros(len(y), np.int8) if journal.side is None else journal.side[episode]
    blocks, movable, units = _exchangeable(episode, journal.unit[episode], side)
    rng, found, done = np.random.default_rng(seed), [_chi2(shown @ y[:, None], evidence)], 0
    width = max(1, min(permutations, CELLS // max(len(y), len(evidence))))
    while done < permutations:
        size = min(width, permutations - done)
        moved = np.repeat(y[:, None], size, axis=1)
        for block in blocks:
            for column in range(size):
                moved[block, column] = y[block[rng.permutation(len(block))]]
        found.append(_chi2(shown @ moved, evidence))
        done += size
    (chi2, *_), null = found[0], np.concatenate(found[1:])
    at_least = int((null >= chi2 * (1 - 1e-9)).sum())
    p_value = (1 + at_least) / (1 + permutations)
    spread = float(null.std(ddof=1)) if permutations > 1 else 0.0
    return Heterogeneity(float(chi2), float(null.mean()), spread, p_value, permutations, units, movable, alpha)


def _slots(journal: Journal) -> tuple[sparse.csr_array, np.ndarray, np.ndarray]:
    """Who is counted for which outcome, [memory, slot] of 0 and 1; outcomes float32 [slot]; their episodes."""
    seen = np.flatnonzero(journal.success >= 0)
    episode = journal.episode[seen]
    if (journal.success[seen] == journal.outcome[episode]).all():  # a slot is an episode
        told, slot = np.unique(episode, return_inverse=True)
        y = journal.outcome[told]
    else:  # or an entry
        slot, y, told = np.arange(len(seen)), journal.success[seen], episode
    shape = len(journal.memories), len(y)
    shown = sparse.csr_array((np.ones(len(seen), np.float32), (journal.memory[seen], slot)), shape=shape)
    return shown, y.astype(np.float32), told


def _exchangeable(episode: np.ndarray, unit: np.ndarray, side: np.ndarray) -> tuple[list[np.ndarray], float, int]:
    """Slots of units of one shape, [unit, slot] each; the share of units that can move; the number of units."""
    order = np.lexsort((np.arange(len(unit)), -side, unit))
    unit, episode, side = unit[order], episode[order], side[order]
    first = np.flatnonzero(np.diff(unit, prepend=-1))
    length = np.diff(np.append(first, len(unit)))
    code = side + 3 * (np.diff(episode, prepend=-1) != 0)  # equal codes: as many slots in every episode, sides alike
    blocks, fixed = [], 0
    for size in np.unique(length):
        rows = first[length == size][:, None] + np.arange(size)
        kind = np.zeros(len(rows), np.int64) if size == 1 and not side.any() else _kinds(code[rows])
        members = np.split(np.argsort(kind, kind="stable"), np.cumsum(np.bincount(kind))[:-1])
        fixed += sum(len(one) == 1 for one in members)
        blocks += [order[rows[one]] for one in members if len(one) > 1]
    return blocks, 1 - fixed / len(first), len(first)


def _kinds(rows: np.ndarray) -> np.ndarray:
    return np.unique(rows, axis=0, return_inverse=True)[1].reshape(-1)


def _chi2(successes: np.ndarray, evidence: np.ndarray) -> np.ndarray:
    """Chi2 of every column of successes [memory, column]."""
    n = evidence[evidence > 0][:, None]
    s = successes[evidence > 0].astype(np.float64)
    rate = s.sum(axis=0) / n.sum()
    noise = rate * (1 - rate)
    square = ((s - n * rate) ** 2 / n).sum(axis=0)
    return np.divide(square, noise, out=np.zeros_like(square), where=noise > 0)


def posterior(successes: np.ndarray, evidence: np.ndarray, *, most_strength: float = 10_000.0) -> Posterior:
    """Means and equal-tailed 95 % intervals under the Beta prior of mwjax.priors.fit, its strength at most the cap."""
    from mwjax import priors

    prior = priors.fit(successes, evidence, most_strength=most_strength)
    a, b = prior.a + successes, prior.b + (evidence - successes)
    interval = special.betaincinv(a[:, None], b[:, None], np.array([0.025, 0.975]))
    return Posterior(float(prior.a), float(prior.b), bool(prior.capped), a / (a + b), interval)


def evalues(successes: np.ndarray, evidence: np.ndarray, base_rate: float, *, alpha: float = 0.05) -> Evalues:
    """E = B(a + s, b + f) / (B(a, b) p^s (1 - p)^f) of every memory, p the base rate (Robbins 1970).

    The mixture Beta(a, b) has mean p and its lesser parameter is 1, so that E finds departures of the size of p itself;
    Beta(1, 1) at p = 1/2. E >= 1/alpha with probability at most alpha however often one looks, if p holds and outcomes
    of one memory are independent. e-BH (Wang & Ramdas 2022) names the k memories of the largest E, k the largest with
    E_(k) >= memories with evidence / (alpha k): at most a share alpha of those named do not differ, in expectation and
    however the memories depend on each other.
    """
    check_number("base_rate", base_rate, 1e-9, 1 - 1e-9)
    check_number("alpha", alpha, 1e-9, 1)
    s, n = np.asarray(successes, np.float64), np.asarray(evidence, np.float64)
    p = base_rate
    a, b = (1.0, 1 / p - 1) if p <= 0.5 else (1 / (1 - p) - 1, 1.0)
    log_e = special.betaln(a + s, b + n - s) - special.betaln(a, b) - s * np.log(p) - (n - s) * np.log1p(-p)
    log_e = np.where(n > 0, log_e, 0.0)
    memories = int((n > 0).sum())
    ranked = np.sort(log_e[n > 0])[::-1]
    passing = np.flatnonzero(ranked >= np.log(memories / alpha) - np.log(np.arange(1, memories + 1)))
    least = ranked[passing[-1]] if len(passing) else np.inf
    return Evalues(log_e, (log_e >= least) & (n > 0), alpha)
