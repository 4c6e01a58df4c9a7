"""Memories that are shown together: which pairs a log can hardly tell apart, and whose worth is borrowed.

Counted are episodes whose outcome is known, and in them the memories whose verdict is not "unused".
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import sparse, special

from mwjax.checks import check_integer
from mwjax.logs.journal import Journal
from mwjax.replay import adjusted
from mwjax.replay.adjusted import Adjusted, Design, Fit, Sparse

BLOCK = 2_048
"""Memories whose companions are counted at a time."""


class Pairs(NamedTuple):
    """The most entangled pairs, the strongest first; arrays [pair]."""

    first: np.ndarray  # int64, index of a memory
    second: np.ndarray  # int64, of a later one
    phi: np.ndarray  # float64 in (0, 1], the correlation of the two being shown
    together: np.ndarray  # int64, episodes that show both
    together_successes: np.ndarray
    only_first: np.ndarray  # int64, episodes that show the first without the second
    only_first_successes: np.ndarray
    only_second: np.ndarray
    only_second_successes: np.ndarray

    @property
    def share_of_first(self) -> np.ndarray:
        """Share of the evidence of the first in which the second was present, float64 [pair]."""
        return self.together / (self.together + self.only_first)

    @property
    def share_of_second(self) -> np.ndarray:
        """Share of the evidence of the second in which the first was present, float64 [pair]."""
        return self.together / (self.together + self.only_second)


class Suspect(NamedTuple):
    """A memory whose raw 95 % interval lies above the base rate and whose adjusted one does not."""

    memory: int
    companion: int  # the memory it borrows most from
    evidence: int
    successes: int
    interval: tuple[float, float]  # raw, equal tails of Beta(1 + s, 1 + f)
    adjusted: float  # adjusted worth
    adjusted_interval: tuple[float, float]
    companion_adjusted: float  # adjusted worth of the companion
    together: float  # share of its evidence in which the companion was present
    borrowed: float  # logit that the companion lends it
    contrast: float  # logit of the companion less its own, adjusted
    contrast_error: float  # standard error of the contrast

    @property
    def clear(self) -> bool:
        """Whether the companion is credibly the better of the two: the 95 % interval of the contrast is above 0."""
        return self.contrast > adjusted.Z_95 * self.contrast_error


def inclusion(journal: Journal) -> tuple[Sparse, np.ndarray]:
    """Who was shown, float64 [episode, memory] of 0 and 1, and success, bool [episode], where the outcome is known."""
    known = journal.outcome >= 0
    row = np.cumsum(known) - 1
    shown = known[journal.episode] & (journal.success >= 0)
    at = row[journal.episode[shown]], journal.memory[shown]
    size = int(known.sum()), len(journal.memories)
    return sparse.csr_array((np.ones(len(at[0])), at), shape=size), journal.outcome[known] == 1


def entangled(journal: Journal, most: int = 20, *, least_together: int = 10) -> Pairs:
    """The pairs of the greatest phi > 0 among those shown together at least `least_together` times.

    phi = (T n_ab - n_a n_b) / sqrt(n_a (T - n_a) n_b (T - n_b)), T episodes. Companions are counted sparsely and in
    blocks of memories: time grows with the sum of squared sizes of the sets.
    """
    check_integer("most", most, 0, 1_000_000)
    shown, success = inclusion(journal)
    often = np.flatnonzero(np.bincount(shown.indices, minlength=shown.shape[1]) >= max(least_together, 1))
    shown = shown.tocsc()[:, often].tocsr()
    shown_t, total = shown.T.tocsr(), float(shown.shape[0])
    count = np.asarray(shown.sum(axis=0), np.float64)
    spread = np.sqrt(count * (total - count))
    first, second, phi = (np.zeros(0, kind) for kind in (np.int64, np.int64, np.float64))
    for begin in range(0, len(count), BLOCK):
        block = (shown_t[begin : begin + BLOCK] @ shown).tocoo()
        i, j = block.coords[0].astype(np.int64) + begin, block.coords[1].astype(np.int64)
        take = (j > i) & (block.data >= least_together) & (spread[i] * spread[j] > 0)
        i, j, n = i[take], j[take], block.data[take]
        value = (total * n - count[i] * count[j]) / (spread[i] * spread[j])
        first, second, phi = (np.concatenate(x) for x in ((first, i), (second, j), (phi, value)))
        best = np.lexsort((second, first, -phi))[:most]
        first, second, phi = first[best], second[best], phi[best]
    positive = phi > 0
    first, second, phi = first[positive], second[positive], phi[positive]
    counts = [_split(shown_t, success, a, b) for a, b in zip(first, second, strict=True)]
    return Pairs(often[first], often[second], phi, *np.array(counts, np.int64).reshape(-1, 6).T)


def _split(shown_t: Sparse, success: np.ndarray, a: int, b: int) -> tuple[int, ...]:
    """(Episodes, successes) with both, only a, only b."""
    of_a, of_b = (_episodes(shown_t, memory) for memory in (a, b))
    both = np.intersect1d(of_a, of_b, assume_unique=True)
    counts = [(len(both), int(success[both].sum()))]
    counts += [(len(of), int(success[of].sum())) for of in (of_a, of_b)]
    (n, s), (n_a, s_a), (n_b, s_b) = counts
    return n, s, n_a - n, s_a - s, n_b - n, s_b - s


def _episodes(shown_t: Sparse, memory: int) -> np.ndarray:
    return shown_t.indices[shown_t.indptr[memory] : shown_t.indptr[memory + 1]]


def contrasts(pairs: Pairs, result: Adjusted, about: Design) -> tuple[np.ndarray, np.ndarray]:
    """Adjusted logit of the first less that of the second, and its standard error: do they differ, who look alike?"""
    row, apart = np.arange(len(pairs.first)), np.zeros((len(pairs.first), len(result.coefficient)))
    apart[row, pairs.first], apart[row, pairs.second] = 1, -1
    error = adjusted.contrast_errors(about, Fit(result.penalty, result.intercept, result.coefficient), apart)
    return apart @ result.coefficient, error


def intervals(successes: np.ndarray, evidence: np.ndarray) -> np.ndarray:
    """Equal-tailed 95 % intervals [memory, (low, high)] under a Beta(1, 1) prior."""
    a, b = successes + 1.0, evidence - successes + 1.0
    return special.betaincinv(a[:, None], b[:, None], np.array([0.025, 0.975]))


def suspects(
    journal: Journal, result: Adjusted, *, about: Design | None = None, most: int = 100
) -> tuple[Suspect, ...]:
    """Memories whose worth seems borrowed, the greatest loan first: see `Suspect`. No loan, no suspect.

    The companion of m is the other memory i with the greatest (Pr[i shown | m shown] - Pr[i shown | m not]) relative_i:
    what i lends the raw worth of m. Where standard errors are still missing they are made for those of the `most`
    memories above the base rate that lose most by adjustment.
    """
    about = about if about is not None else adjusted.design(journal)
    found = Fit(result.penalty, result.intercept, result.coefficient)
    evidence, successes = journal.evidence, journal.successes
    raw = intervals(successes, evidence)
    above = np.flatnonzero((raw[:, 0] > result.base_rate) & (evidence > 0))
    lost = special.logit((successes[above] + 1) / (evidence[above] + 2)) - result.relative[above]
    above = above[np.argsort(-lost, kind="stable")]
    error = result.standard_error.copy()
    missing = above[np.isnan(error[above])][:most]
    if len(missing):
        error[missing] = adjusted.errors(about, found, missing)[0]
    low = result.relative - adjusted.Z_95 * error
    named = above[low[above] <= 0]
    shown, _ = inclusion(journal)
    shown_t = shown.T.tocsr()
    count = np.asarray(shown.sum(axis=0), np.float64)
    lenders = [_lender(shown, shown_t, count, result.relative, m) for m in named.tolist()]
    contrast = np.zeros((len(named), len(count)))
    for row, m, (companion, _, _) in zip(contrast, named, lenders, strict=True):
        row[m], row[companion] = -1, 1
    apart = contrast @ result.coefficient, adjusted.contrast_errors(about, found, contrast) if len(named) else ()
    ends = result.to_worth(result.relative[:, None] + np.array([-1, 1]) * adjusted.Z_95 * error[:, None])
    pair = lambda row: (float(row[0]), float(row[1]))
    records = [
        Suspect(
            memory=m,
            companion=companion,
            evidence=int(evidence[m]),
            successes=int(successes[m]),
            interval=pair(raw[m]),
            adjusted=float(result.worth[m]),
            adjusted_interval=pair(ends[m]),
            companion_adjusted=float(result.worth[companion]),
            together=together,
            borrowed=borrowed,
            contrast=float(difference),
            contrast_error=float(its_error),
        )
        for m, (companion, borrowed, together), difference, its_error in zip(
            named.tolist(), lenders, *apart, strict=True
        )
        if companion >= 0
    ]
    return tuple(sorted(records, key=lambda one: -one.borrowed))


def _lender(
    shown: Sparse, shown_t: Sparse, count: np.ndarray, relative: np.ndarray, memory: int
) -> tuple[int, float, float]:
    """The companion that lends `memory` most, how much, and the share of its evidence in which it was there."""
    here, total = count[memory], shown.shape[0]
    both = np.asarray(shown[_episodes(shown_t, memory)].sum(axis=0), np.float64)
    lent = (both / max(here, 1) - (count - both) / max(total - here, 1)) * relative
    lent[memory] = -np.inf
    best = int(lent.argmax())
    if lent[best] <= 0:
        return -1, 0.0, 0.0
    return best, float(lent[best]), float(both[best] / here)
