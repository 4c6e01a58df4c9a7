"""Exact truths of a store: k of its L live memories are retrieved uniformly, without repetition.

Every law here is offset + slope x s(set), with s the mean of U over the set or a product over it. The mean of a product
over all sets of j of the first n live memories, M_j(n) = e_j / C(n, j) with e_j the elementary symmetric polynomial, is

    M_j(n + 1) = (1 - j/(n + 1)) M_j(n) + j/(n + 1) U M_{j-1}(n),

an average of averages, so nothing overflows. Leading axes (lives) come along. O(L k) time and memory a store, for
p_plus and removal_value of all memories too: leaving m out joins the memories before m with those after it.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from mwjax.types import InputError


class _Law(NamedTuple):
    """offset + slope x (mean or product over the set) of `value`."""

    product: bool
    value: np.ndarray  # float64 [..., memory]
    offset: float
    slope: float


LAWS = ("mean", "linear", "weakest_link", "noisy_or", "top_ranked")
"""Outcome laws with an exact truth; under others all results are NaN."""


def success_rate(
    utility: np.ndarray, alive: np.ndarray, k: int, law: str, *, base: float = 0.5, gain: float = 1.0
) -> np.ndarray:
    """Expected success of an episode, float64 [...], from utility and alive [..., memory].

    Of U over the live: mean and top_ranked, mean; linear, base + gain (mean - 0.5), its clipping to [0, 1] ignored;
    weakest_link, base e_k(U)/C(L, k); noisy_or, 1 - (1 - base) e_k(1 - U)/C(L, k). NaN where fewer than k are live.
    """
    made, alive = _law(utility, alive, k, law, base, gain)
    if made.product:
        found = _prefixes(made.value, alive, k)[..., -1, -1]
    else:
        found = _ratio(np.where(alive, made.value, 0).sum(axis=-1), alive.sum(axis=-1))
    return np.where(alive.sum(axis=-1) >= k, made.offset + made.slope * found, np.nan)


def p_plus(
    utility: np.ndarray, alive: np.ndarray, k: int, law: str, *, base: float = 0.5, gain: float = 1.0
) -> np.ndarray:
    """Pr[success | m is shown], float64 [..., memory], its companions uniform over the other live memories.

    A memory that is not alive is taken as if it were, beside the live ones. NaN with fewer than k - 1 others.
    """
    made, alive = _law(utility, alive, k, law, base, gain)
    others = _others(made, alive, k - 1)
    return made.offset + made.slope * (made.value * others if made.product else (made.value + (k - 1) * others) / k)


def removal_value(
    utility: np.ndarray, alive: np.ndarray, k: int, law: str, *, base: float = 0.5, gain: float = 1.0
) -> np.ndarray:
    """success_rate less success_rate without m, float64 [..., memory]; 0 where m is not alive.

    As success_rate = (k/L) p_plus(m) + (1 - k/L) rate without m, this is (k/L) (p_plus(m) - rate without m): exact to
    rounding though the difference is small. NaN for live memories where fewer than k others are live.
    """
    made, alive = _law(utility, alive, k, law, base, gain)
    without = made.offset + made.slope * _others(made, alive, k)
    share = k / np.maximum(alive.sum(axis=-1, keepdims=True), 1)
    return np.where(alive, share * (p_plus(utility, alive, k, law, base=base, gain=gain) - without), 0)


def _law(utility: np.ndarray, alive: np.ndarray, k: int, law: str, base: float, gain: float) -> tuple[_Law, np.ndarray]:
    """The law's terms, and `alive` in the shape of the utilities."""
    u, live = np.broadcast_arrays(np.asarray(utility, np.float64), np.asarray(alive, np.bool_))
    if not 1 <= k <= u.shape[-1]:
        raise InputError(f"k = {k}: must be from 1 to the number of memories, {u.shape[-1]}")
    made = {
        "mean": _Law(False, u, 0, 1),
        "linear": _Law(False, u, base - gain / 2, gain),
        "weakest_link": _Law(True, u, 0, base),
        "noisy_or": _Law(True, 1 - u, 1, base - 1),
        "top_ranked": _Law(False, u, 0, 1),
    }
    return made.get(law, _Law(False, u, np.nan, np.nan)), live


def _ratio(total: np.ndarray, count: np.ndarray) -> np.ndarray:
    return total / np.maximum(count, 1)


def _prefixes(value: np.ndarray, alive: np.ndarray, most: int) -> np.ndarray:
    """M_j of the live memories before m, float64 [..., memory + 1, j] for j = 0..most; 0 where there are fewer than j.

    The last row is that of all memories.
    """
    j, count = np.arange(most + 1), np.zeros((*value.shape[:-1], 1))
    means = np.zeros((*value.shape[:-1], value.shape[-1] + 1, most + 1))
    means[..., 0, 0] = 1
    for m in range(value.shape[-1]):
        old, taken, live = means[..., m, :], means[..., m + 1, :], alive[..., m, None]
        taken[..., 1:] = value[..., m, None] * old[..., :-1]
        share = np.where(live, np.minimum(j / (count + 1), 1), 0)
        means[..., m + 1, :] = (1 - share) * old + share * taken
        count += live
    return means


def _others(law: _Law, alive: np.ndarray, size: int) -> np.ndarray:
    """Mean of the law's statistic over the sets of `size` of the other live memories, [..., memory]; NaN if too few."""
    before = np.cumsum(alive, axis=-1) - alive
    number = alive.sum(axis=-1, keepdims=True) - alive
    if not law.product:
        rest = np.where(alive, law.value, 0).sum(axis=-1, keepdims=True) - np.where(alive, law.value, 0)
        return np.where(number >= size, _ratio(rest, number), np.nan)
    first = _prefixes(law.value, alive, size)[..., :-1, :]
    last = _prefixes(law.value[..., ::-1], alive[..., ::-1], size)[..., -2::-1, ::-1]
    found = (_split(before, number - before, size, alive.shape[-1]) * first * last).sum(axis=-1)
    return np.where(number >= size, found, np.nan)


def _split(before: np.ndarray, after: np.ndarray, size: int, most: int) -> np.ndarray:
    """P(j of `size` draws from before + after fall before), hypergeometric, [..., j]; 0 where there are too few."""
    n, j = np.arange(most + 1)[:, None], np.arange(size + 1)
    choose = special.gammaln(n + 1) - special.gammaln(j + 1) - special.gammaln(np.maximum(n - j, 0) + 1)
    choose = np.where(n >= j, choose, -np.inf)
    every = np.where(before + after >= size, choose[before + after, size], 0)
    return np.exp(choose[before] + choose[after][..., ::-1] - every[..., None])
