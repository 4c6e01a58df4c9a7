"""Closed forms that the simulation is held against: the mean outcome law under uniform retrieval. float64, no jax.

The success probability of a set is its mean utility and the outcome is shared by its k memories, so the worth of a
memory behaves like X = U + s Z with Z standard normal and

    Var(U) / s^2 = T (N - k) Var(U) / (k N (N - 1) v),    v = E[p+ (1 - p+)].
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations

import numpy as np
from scipy import special, stats

NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(400)


def p_plus(utility: Sequence[float] | np.ndarray, num_retrieved: int) -> np.ndarray:
    """Pr[success | m shown] = U_m / k + (k - 1)/k x mean utility of the others (Simsek 2026, Theorem 4.1), [memory]."""
    utility = np.asarray(utility, np.float64)
    others = (utility.sum() - utility) / max(len(utility) - 1, 1)
    return utility / num_retrieved + (num_retrieved - 1) / num_retrieved * others


def dilution(num_memories: int, num_retrieved: int) -> float:
    """Change of p+ within a store for a change of 1 in a memory's utility, (N - k) / (k (N - 1))."""
    return (num_memories - num_retrieved) / (num_retrieved * max(num_memories - 1, 1))


def p_plus_range(
    num_memories: int, num_retrieved: int, *, utility_low: float = 0.0, utility_high: float = 1.0
) -> tuple[float, float]:
    """p+ of the worst and the best memory among companions of mean utility: middle -+ width / (2 k)."""
    middle, half = (utility_low + utility_high) / 2, (utility_high - utility_low) / 2
    reach = half / min(num_retrieved, num_memories)
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
    coefficient has mean ((N - 2) rho + 3 tau) / (N + 1) (Moran 1948). Good to about .003 where T k / N >= 15 and
    k >= 3; with fewer retrievals worth is not normal.

    `effective` is the share of the evidence that weights leave (see effective_evidence). The variance of one worth,
    v N / (T k), grows by 1 / effective; the covariance of two, (k - 1) / (N - 1) of it, does not, as independent
    weights average out of the outcome that both share. N - k of the SNR becomes (N - k)^2 / `apart`.
    """
    n, k = num_memories, num_retrieved
    variance = _outcome_variance(n, k, utility_low, utility_high)
    spread = utility_high - utility_low
    if n < 2 or k >= n or spread == 0:
        return 0.0
    apart = (n - 1) / effective - (k - 1)
    precision = num_episodes * (n - k) ** 2 / (k * n * (n - 1) * variance * apart) * spread**2
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
    """Expected shares of memories labelled low (worth <= theta_low) and high (>= theta_high), U* uniform on [0, 1].

    Evidence n ~ Binomial(T, k / N) and, given n, successes ~ Binomial(n, p+), both exactly; p+ = (U + (k - 1) C) / k
    with the companions' mean utility C taken as normal with its own variance, 1 / (12 (N - 1)). A label that
    p+ contradicts is sampling noise: all of them where p_plus_range lies between the thresholds and C varies little.
    Leaves out evidence that occurs with probability below 1e-12 at either end.
    """
    rate = num_retrieved / num_memories
    first, last = stats.binom.ppf([1e-12, 1 - 1e-12], num_episodes, rate)
    evidence = np.arange(max(first, min_evidence, 1), last + 1)[:, None]
    chance = stats.binom.pmf(evidence, num_episodes, rate)
    p, weight = _p_plus_law(num_memories, num_retrieved)
    low = stats.binom.cdf(np.floor(theta_low * evidence + 1e-9), evidence, p)
    high = stats.binom.sf(np.ceil(theta_high * evidence - 1e-9) - 1, evidence, p)
    return float((chance * low).sum(0) @ weight), float((chance * high).sum(0) @ weight)


def _p_plus_law(num_memories: int, num_retrieved: int) -> tuple[np.ndarray, np.ndarray]:
    """Nodes of p+ over memories and stores, and their weights: Gauss-Legendre in U by Gauss-Hermite in C."""
    utility, utility_weight = special.roots_legendre(24)
    deviation, normal_weight = special.roots_hermitenorm(12)
    companions = 0.5 + deviation / math.sqrt(12 * max(num_memories - 1, 1))
    p = ((utility[:, None] + 1) / 2 + (num_retrieved - 1) * companions) / num_retrieved
    weight = np.outer(utility_weight, normal_weight)
    return np.clip(p, 0, 1).ravel(), (weight / weight.sum()).ravel()


def spearman_by_enumeration(utility: Sequence[float] | np.ndarray, num_episodes: int) -> float:
    """Exact expected Spearman for k = 1 and a short list of utilities.

    Every episode falls into one of 2 N cells, memory m with success (probability U_m / N) or with failure
    ((1 - U_m) / N), so the counters are multinomial: all C(T + 2 N - 1, 2 N - 1) of them are enumerated. Unseen
    memories stand at 0.5; a constant worth correlates 0. N = 4, T = 8 are 6,435 cases.
    """
    utility = np.asarray(utility, np.float64)
    counts = _compositions(num_episodes, 2 * len(utility))
    cells = np.concatenate([utility, 1 - utility]) / len(utility)
    ways = math.factorial(num_episodes) / special.factorial(counts).prod(axis=1)
    successes, failures = np.split(counts, 2, axis=1)
    evidence = successes + failures
    worth = np.where(evidence > 0, successes / np.maximum(evidence, 1), 0.5)
    return float((ways * (cells**counts).prod(axis=1)) @ _spearman(worth, utility))


def _compositions(total: int, parts: int) -> np.ndarray:
    """Every way to write total as an ordered sum of counts, [way, part], by stars and bars."""
    places = total + parts - 1
    bars = [(-1, *bar, places) for bar in combinations(range(places), parts - 1)]
    return np.diff(np.array(bars), axis=1) - 1


def _spearman(values: np.ndarray, truth: np.ndarray) -> np.ndarray:
    """Rank correlation of every row of values with truth, [row, memory] -> [row]; average ranks, 0 for a constant."""
    a, b = (stats.rankdata(x, axis=-1) - (len(truth) + 1) / 2 for x in (values, truth))
    scale = np.sqrt((a**2).sum(axis=-1) * (b**2).sum())
    return np.divide(a @ b, scale, out=np.zeros(len(a)), where=scale > 0)
