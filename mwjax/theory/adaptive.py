"""Closed forms for retrieval by weight: successive draws without repetition, floors, and the evidence they leave."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import stats

from mwjax.theory.ranking import dilution


def successive_inclusion(weights: Sequence[float] | np.ndarray, num_retrieved: int) -> np.ndarray:
    """P(m drawn) in k successive draws, each proportional to the weights of the undrawn, [memory]; exact.

    By enumeration of sets as bit masks: f({}) = 1, f(S + i) gains f(S) w_i / (weight outside S), and P(m drawn) is the
    sum of f over the sets of k that hold m. 2^N sets, so N <= 20 or so. Needs k positive weights.
    """
    weights = np.asarray(weights, np.float64)
    if np.count_nonzero(weights) < num_retrieved:
        raise ValueError(f"weights: {np.count_nonzero(weights)} are positive, {num_retrieved} are drawn")
    inside = np.zeros(1)
    for weight in weights:
        inside = np.concatenate([inside, inside + weight])
    outside = inside[::-1]  # the mask of the complement is 2^N - 1 - mask
    chance = np.zeros(len(inside))
    chance[0], drawn = 1, np.zeros(1, np.int64)
    for _ in range(num_retrieved):
        for memory, weight in enumerate(weights):
            before = drawn[drawn >> memory & 1 == 0]
            chance[before | 1 << memory] += chance[before] * weight / outside[before]
        grown = np.unique(np.concatenate([drawn | 1 << memory for memory in range(len(weights))]))
        drawn = grown[(np.bitwise_count(grown) > np.bitwise_count(drawn[0])) & (chance[grown] > 0)]
    return np.array([chance[drawn[drawn >> memory & 1 == 1]].sum() for memory in range(len(weights))])


def with_floor(weights: Sequence[float] | np.ndarray, floor: float) -> np.ndarray:
    """W = (1 - eps) w / sum w + eps / N, [memory]: the floor per slot, for successive draws proportional to W.

    W is formed once and not renormalised between draws, so a memory is drawn with probability at least
    1 - (1 - eps/N)^k in an episode, whatever the weights.
    """
    weights = np.asarray(weights, np.float64)
    return (1 - floor) * weights / weights.sum() + floor / len(weights)


def uniform_floor(weights: Sequence[float] | np.ndarray, num_retrieved: int, floor: float) -> np.ndarray:
    """P(m drawn) with the floor per episode, [memory]: (1 - eps) successive_inclusion + eps k / N; exact."""
    drawn = successive_inclusion(weights, num_retrieved)
    return (1 - floor) * drawn + floor * num_retrieved / len(drawn)


def least_evidence_bound(
    num_memories: int, num_retrieved: int, num_episodes: int, floor: float, quantile: float
) -> int:
    """Evidence that a floor eps per episode alone guarantees: the `quantile` of Binomial(T, eps k / N).

    The floor's coin is independent of the policy, so whatever the weights do, P(evidence of m < bound) <= quantile.
    For the least of all N memories the same holds with quantile / N (union bound).
    """
    return int(stats.binom.ppf(quantile, num_episodes, floor * num_retrieved / num_memories))


def rmse_by_evidence(num_memories: int, num_retrieved: int, num_episodes: int) -> float:
    """Root mean square of worth - p+ under uniform retrieval, U* ~ U(0, 1), with the evidence n ~ Binomial(T, k/N).

    sqrt(v E[1/n; n > 0] + Var(p+) P(n = 0)), v = E[p+ (1 - p+)], an unseen memory at 0.5. ranking.rmse takes
    n = T k/N for 1/E[1/n]: the same in the limit. Var(p+) leaves out the companions' own spread, 1/(12 (N - 1)).
    """
    rate = num_retrieved / num_memories
    spread = dilution(num_memories, num_retrieved) ** 2 / 12
    first, last = stats.binom.ppf([1e-12, 1 - 1e-12], num_episodes, rate)
    evidence = np.arange(max(first, 1), last + 1)
    inverse = stats.binom.pmf(evidence, num_episodes, rate) @ (1 / evidence)
    return math.sqrt((0.25 - spread) * inverse + spread * (1 - rate) ** num_episodes)


def log_slope(num_episodes: Sequence[float] | np.ndarray, values: Sequence[float] | np.ndarray) -> float:
    """Least-squares slope of log values on log T: -1/2 for an error that falls as T^-1/2."""
    x, y = np.log(np.asarray(num_episodes, np.float64)), np.log(np.asarray(values, np.float64))
    return float((x - x.mean()) @ y / np.square(x - x.mean()).sum())


def rmse_slope(num_memories: int, num_retrieved: int, num_episodes: Sequence[int]) -> float:
    """log_slope of rmse_by_evidence over horizons T: -1/2, and a little steeper where T k/N is small."""
    values = [rmse_by_evidence(num_memories, num_retrieved, episodes) for episodes in num_episodes]
    return log_slope(num_episodes, values)
