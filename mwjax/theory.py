"""Closed forms that the simulation is held against: the mean outcome law under uniform retrieval. float64, no jax.

The success probability of a set is its mean utility and the outcome is shared by its k memories, so the worth of a
memory behaves like X = U + s Z with Z standard normal and

    Var(U) / s^2 = T (N - k) Var(U) / (k N (N - 1) v),    v = E[p+ (1 - p+)].
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
from scipy import special, stats

NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(400)


def p_plus(utility: Sequence[float] | np.ndarray, num_retrieved: int) -> np.ndarray:
    """Pr[success | m shown] = U_m / k + (k - 1)/k x mean utility of the others (Simsek 2026, Theorem 4.1), [memory]."""
    utility = np.asarray(utility, np.float64)
    others = (utility.sum() - utility) / max(len(utility) - 1, 1)
    return utility / num_retrieved + (num_retrieved - 1) / num_retrieved * others


def dilution(num_memories: int, num_retrieved: int) -> float:
    """Change of p+ for a change of 1 in a memory's utility: (N - k) / (k (N - 1)); the other k - 1 share the outcome."""
    return (num_memories - num_retrieved) / (num_retrieved * max(num_memories - 1, 1))


def p_plus_range(
    num_memories: int, num_retrieved: int, *, utility_low: float = 0.0, utility_high: float = 1.0
) -> tuple[float, float]:
    """The interval that p+ of a memory can lie in, in a store of uniform utilities with the expected mean."""
    middle, half = (utility_low + utility_high) / 2, (utility_high - utility_low) / 2
    reach = dilution(num_memories, num_retrieved) * half
    return middle - reach, middle + reach


def _outcome_variance(num_memories: int, num_retrieved: int, low: float, high: float) -> float:
    """E[p+ (1 - p+)] for utilities uniform on [low, high]."""
    middle = (low + high) / 2
    return middle * (1 - middle) - dilution(num_memories, num_retrieved) ** 2 * (high - low) ** 2 / 12


def spearman(
    num_memories: int,
    num_retrieved: int,
    num_episodes: int,
    *,
    effective: float = 1.0,
    utility_low: float = 0.0,
    utility_high: float = 1.0,
) -> float:
    """Expected Spearman correlation of worth with utility over N memories after T episodes.

    Population values rho = 12 E[U F_X(X)] - 3 and tau = 2 E[Phi(|U1 - U2| / (s sqrt 2))] - 1 by quadrature; the sample
    coefficient has mean ((N - 2) rho + 3 tau) / (N + 1) (Moran 1948). `effective` scales the evidence (see
    effective_evidence). Good to about .003 where T k / N >= 15 and k >= 3; with fewer retrievals worth is not normal.
    """
    n, k = num_memories, num_retrieved
    variance = _outcome_variance(n, k, utility_low, utility_high)
    spread = utility_high - utility_low
    if n < 2 or k >= n or spread == 0:
        return 0.0
    precision = effective * num_episodes * (n - k) / (k * n * (n - 1) * variance) * spread**2
    gap = (NODES + 1) / 2
    weight = NODE_WEIGHTS / 2 * 2 * (1 - gap)  # density of |U1 - U2|
    above = special.ndtr(gap * math.sqrt(precision / 2))
    rho, tau = 6 * np.sum(weight * gap * above) - 1, 2 * np.sum(weight * above) - 1
    return float(((n - 2) * rho + 3 * tau) / (n + 1))


def effective_evidence(score_low: float) -> float:
    """Share of the evidence that survives random score weights w ~ U(score_low, 1): E[w]^2 / E[w^2] (Kish)."""
    return ((1 + score_low) / 2) ** 2 / ((1 + score_low + score_low**2) / 3)


def rmse(num_memories: int, num_retrieved: int, num_episodes: int) -> float:
    """Root mean square of worth - p+: sqrt(E[p+ (1 - p+)] / n), n = T k / N retrievals a memory; falls as T^-1/2."""
    variance = _outcome_variance(num_memories, num_retrieved, 0.0, 1.0)
    return math.sqrt(variance * num_memories / (num_episodes * num_retrieved))


def label_shares(
    num_memories: int,
    num_retrieved: int,
    num_episodes: int,
    *,
    theta_low: float = 0.4,
    theta_high: float = 0.6,
    min_evidence: int = 10,
) -> tuple[float, float]:
    """Expected shares of memories labelled low and high, utilities uniform on [0, 1].

    Worth is taken as normal around p+ with variance p+ (1 - p+) / n at the mean evidence n = T k / N, and evidence as
    Binomial(T, k / N).
    """
    low, high = p_plus_range(num_memories, num_retrieved)
    p = low + (high - low) * (NODES + 1) / 2
    deviation = np.sqrt(p * (1 - p) * num_memories / (num_episodes * num_retrieved))
    enough = stats.binom.sf(min_evidence - 1, num_episodes, num_retrieved / num_memories)
    average = lambda values: float(enough * np.sum(NODE_WEIGHTS / 2 * values))
    return average(special.ndtr((theta_low - p) / deviation)), average(special.ndtr((p - theta_high) / deviation))


def spearman_by_enumeration(utility: Sequence[float], num_episodes: int) -> float:
    """Exact expected Spearman for k = 1 and a short list of utilities: every split of the episodes, every outcome.

    Unseen memories stand at 0.5; a constant worth correlates 0. Work grows as T^(2N): N <= 4, T <= 8.
    """
    total = 0.0
    for evidence in _splits(num_episodes, len(utility)):
        split = math.factorial(num_episodes) / math.prod(math.factorial(n) for n in evidence)
        chance = split / len(utility) ** num_episodes
        for successes in product(*(range(n + 1) for n in evidence)):
            worth = [s / n if n else 0.5 for s, n in zip(successes, evidence, strict=True)]
            each = (
                math.comb(n, s) * u**s * (1 - u) ** (n - s)
                for n, s, u in zip(evidence, successes, utility, strict=True)
            )
            total += chance * math.prod(each) * _spearman(worth, utility)
    return total


def _splits(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        yield from ((first, *rest) for rest in _splits(total - first, parts - 1))


def _spearman(x: Sequence[float], y: Sequence[float]) -> float:
    a, b = stats.rankdata(x), stats.rankdata(y)
    a, b = a - a.mean(), b - b.mean()
    scale = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / scale if scale else 0.0
