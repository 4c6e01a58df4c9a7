"""P(worth of the anchor > worth of the hitchhiker) from the counts of three kinds of episodes.

Kinds: whole (both shown), anchor alone, hitchhiker alone; W, a and h of T episodes, with s, x and y successes. The
worths are (s + x)/(W + a) and (s + y)/(W + h), 0.5 without evidence; ties count half.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from scipy import special, stats

FEW = 20
"""Episodes of a kind that decides, expected, below which counts are enumerated rather than taken by their series."""


def anchor_above(num_episodes: int, chance: np.ndarray, success: np.ndarray) -> np.ndarray:
    """P(anchor above), ties half, [store], for chances of the kinds [kind] and their success chances [store, kind].

    Where the hitchhiker is never shown alone, the anchor's own episodes are held against the whole ones.
    """
    deciding = chance[1:] if chance[2] > 0 else chance[:2]
    few = num_episodes * deciding[deciding > 0].min() < FEW
    return (_above_enumerated if few else _above_series)(num_episodes, chance, success)


def _counts(num_episodes: int, chance: float, *, most: int) -> np.ndarray:
    """Binomial counts that carry all but 2e-8 of the mass; every step-th where there are more than `most`."""
    first, last = (int(x) for x in stats.binom.ppf([1e-8, 1 - 1e-8], num_episodes, chance))
    return np.arange(max(first, 0), last + 1, max(1, math.ceil((last + 1 - first) / most)))


def _multinomial(num_episodes: int, counts: tuple[np.ndarray, ...], chance: np.ndarray) -> np.ndarray:
    """Multinomial weights of counts of the kinds (the rest of the episodes is of none), scaled to sum 1."""
    rest, nowhere = num_episodes - sum(counts), max(1 - chance[: len(counts)].sum(), 0)
    log = special.xlogy(rest, nowhere) - special.gammaln(np.maximum(rest, 0) + 1)
    for count, p in zip(counts, chance, strict=False):
        log = log + special.xlogy(count, p) - special.gammaln(count + 1)
    log = np.where(rest >= 0, log, -np.inf)
    weight = np.exp(log - log.max())
    return weight / weight.sum()


def _above_series(num_episodes: int, chance: np.ndarray, success: np.ndarray) -> np.ndarray:
    """P(anchor above) for every row of success, [store]: series given the counts, summed over a lattice of counts."""
    counts = np.meshgrid(*(_counts(num_episodes, p, most=40) for p in chance), indexing="ij", sparse=True)
    whole, anchor, hitchhiker = counts
    weight = _multinomial(num_episodes, tuple(counts), chance)
    size_a, size_h = np.maximum(whole + anchor, 1), np.maximum(whole + hitchhiker, 1)
    unseen = 0.5 * ((whole + anchor == 0) * 1.0 - (whole + hitchhiker == 0))
    slopes = 1 / size_a - 1 / size_h, 1 / size_a, -1 / size_h
    return np.array([np.sum(weight * _positive(unseen, counts, slopes, p)) for p in success])


def _positive(offset: np.ndarray, counts, slopes, success: np.ndarray) -> np.ndarray:
    """P(offset + sum of slope x Binomial(count, p) > 0) by Edgeworth's series to order 1/count; no lattice term."""
    p = success
    bernoulli = p, p * (1 - p), p * (1 - p) * (1 - 2 * p), p * (1 - p) * (1 - 6 * p * (1 - p))
    mean, variance, third, fourth = (
        sum(count * slope**order * kappa for count, slope, kappa in zip(counts, slopes, kappas, strict=True))
        for order, kappas in enumerate(bernoulli, start=1)
    )
    scale = np.sqrt(np.maximum(variance, 1e-60))
    z = np.clip((offset + mean) / scale, -9, 9)
    skew, excess = third / scale**3, fourth / scale**4
    correction = skew / 6 * (z**2 - 1) - excess / 24 * (z**3 - 3 * z) - skew**2 / 72 * (z**5 - 10 * z**3 + 15 * z)
    return np.clip(special.ndtr(z) + np.exp(-(z**2) / 2) / math.sqrt(2 * math.pi) * correction, 0, 1)


def _above_enumerated(num_episodes: int, chance: np.ndarray, success: np.ndarray) -> np.ndarray:
    """P(anchor above) for every row of success, [store]: exact given the counts, which are enumerated.

    Only the number of whole episodes, where large, is taken at three nodes or one: the probability hardly moves with
    it, and least where both halves have episodes of their own.
    """
    pmf = functools.cache(lambda kind, count: _binomial(count, success[:, kind]))
    few = 4 if chance[2] > 0 else 30
    alone = np.meshgrid(*(_counts(num_episodes, p, most=60) for p in chance[1:]), indexing="ij")
    weight = _multinomial(num_episodes, tuple(alone), chance[1:])
    total, mass = np.zeros(len(success)), 0.0
    for anchor, hitchhiker, w in zip(*(x.ravel().tolist() for x in (*alone, weight)), strict=True):
        if w < 1e-6:
            continue
        for whole, v in _whole_counts(num_episodes - anchor - hitchhiker, chance[0] / (1 - chance[1:].sum()), few):
            total += w * v * _above(*(pmf(kind, count) for kind, count in enumerate((whole, anchor, hitchhiker))))
            mass += w * v
    return total / mass


def _whole_counts(num_episodes: int, chance: float, few: int) -> list[tuple[int, float]]:
    """Binomial counts with their probabilities: all, the three of Gauss-Hermite, or the mean, as more are expected."""
    mean = num_episodes * chance
    if mean < few:
        counts = _counts(num_episodes, chance, most=60)
        return list(zip(counts.tolist(), stats.binom.pmf(counts, num_episodes, chance).tolist(), strict=True))
    if mean > 60:
        return [(round(mean), 1.0)]
    reach = math.sqrt(3 * mean * (1 - chance))
    return [(round(mean - reach), 1 / 6), (round(mean), 2 / 3), (min(round(mean + reach), num_episodes), 1 / 6)]


def _binomial(count: int, success: np.ndarray) -> np.ndarray:
    """Probabilities of 0 .. count successes, [store, successes]."""
    return stats.binom.pmf(np.arange(count + 1), count, success[:, None])


def _above(whole: np.ndarray, anchor: np.ndarray, hitchhiker: np.ndarray) -> np.ndarray:
    """P(worth_A > worth_H), ties half, from the laws of the successes of each kind, [store, successes] -> [store].

    (s + x)/(W + a) against (s + y)/(W + h), compared as integers; an unseen half counts as 1 of 2.
    """
    seen_a, seen_h = (whole.shape[1] + own.shape[1] - 2 for own in (anchor, hitchhiker))
    likely = np.flatnonzero(whole.max(axis=0) > 1e-9)
    whole, shared = whole[:, likely[0] : likely[-1] + 1], np.arange(likely[0], likely[-1] + 1)[:, None]
    hits_a, size_a = (shared + np.arange(anchor.shape[1]), seen_a) if seen_a else (np.array([[1]]), 2)
    law_h, size_h = (hitchhiker, seen_h) if seen_h else (np.array([[0.0, 1.0]]), 2)
    upto = np.pad(np.cumsum(law_h, axis=1), ((0, 0), (1, 1)), mode="edge")  # P(y <= -1 .. h + 1)
    upto[:, 0] = 0
    table = np.stack([upto - np.pad(law_h, ((0, 0), (1, 1))) / 2, upto], axis=2).reshape(len(upto), -1)
    least, left = np.divmod(hits_a * size_h - shared * size_a, size_a)  # A above iff y < least + left / size_a
    above = table[:, 2 * np.clip(least + 1, 0, law_h.shape[1] + 1) + (left > 0)]
    weighted = np.broadcast_to(above, (len(whole), whole.shape[1], anchor.shape[1])) @ anchor[:, :, None]
    return np.einsum("ns,ns->n", whole, weighted[:, :, 0])
