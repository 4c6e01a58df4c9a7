"""Closed forms of the difficulty world: pools of memories, contexts with their own base rate and mix of pools.

The memories of pool g are consecutive, n_g of them. An episode has context c with probability share_c; its set holds
s[c][g] memories of pool g, drawn uniformly within the pool, k = sum_g s[c][g]; and
Pr[success] = base_c + gain (mean U of the set - 0.5), which must lie within [0, 1].
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy import special, stats

Floats = Sequence[float] | np.ndarray
Slots = Sequence[Sequence[int]] | np.ndarray


def inclusion(pool_sizes: Sequence[int] | np.ndarray, pool_slots: Slots) -> np.ndarray:
    """P(m shown in an episode of context c) = s[c][g] / n_g, [context, memory]; every row sums to k."""
    sizes, slots = np.asarray(pool_sizes), np.asarray(pool_slots, np.float64)
    return np.repeat(slots / np.maximum(sizes, 1), sizes, axis=1)


def _context_success(utility: np.ndarray, sizes: np.ndarray, slots: np.ndarray, base, gain: float) -> np.ndarray:
    """Mean success probability of each context, [context]."""
    total = np.add.reduceat(utility, np.cumsum(sizes) - sizes)
    return np.asarray(base) + gain * (slots @ (total / sizes) / slots.sum(axis=1) - 0.5)


def context_p_plus(
    utility: Floats,
    pool_sizes: Sequence[int] | np.ndarray,
    pool_slots: Slots,
    base_success: Floats,
    gain: float,
) -> np.ndarray:
    """Pr[success | m shown, context c], [context, memory]; exact, NaN where c never shows m.

    base_c + gain (A / k - 0.5), A = U_m + (s_g - 1) mean of the others of its pool + sum over the other pools of
    s_h x mean of the pool. No pool may be empty.
    """
    utility, sizes, slots = np.asarray(utility, np.float64), np.asarray(pool_sizes), np.asarray(pool_slots, np.float64)
    of_pool = lambda values: np.repeat(values, sizes, axis=-1)
    total = np.add.reduceat(utility, np.cumsum(sizes) - sizes)
    others = (of_pool(total) - utility) / np.maximum(of_pool(sizes) - 1, 1)
    change = utility - of_pool(total / sizes) + (of_pool(slots) - 1) * (others - of_pool(total / sizes))
    mean = _context_success(utility, sizes, slots, base_success, gain)
    p = mean[:, None] + gain * change / slots.sum(axis=1, keepdims=True)
    return np.where(of_pool(slots) > 0, p, np.nan)


def p_plus(
    utility: Floats,
    pool_sizes: Sequence[int] | np.ndarray,
    pool_slots: Slots,
    shares: Floats,
    base_success: Floats,
    gain: float,
) -> np.ndarray:
    """Pr[success | m shown], [memory]: context_p_plus weighted by share_c x inclusion; exact, NaN if never shown."""
    shown = np.asarray(shares, np.float64)[:, None] * inclusion(pool_sizes, pool_slots)
    hits = shown * np.nan_to_num(context_p_plus(utility, pool_sizes, pool_slots, base_success, gain))
    total = shown.sum(axis=0)
    return np.divide(hits.sum(axis=0), total, out=np.full(len(total), np.nan), where=total > 0)


def structural_spearman(
    num_generalists: int, num_specialists: int, rho_generalists: float, *, level: float = 0.85
) -> float:
    """Expected Spearman of worth with utility if every specialist lies below every generalist in worth.

    G generalists U(0, 1), S specialists tied at `level` u (average ranks), N = G + S, B ~ Binomial(G, u) generalists
    below them in utility. With rho the rank correlation within the generalists, mean worth rank linear in utility rank,

        {rho [(G^3 - G)/12 + S E[B (G - B)]/2] - S N (E[B] - G/2)/2} / sqrt((N^3 - N)(N^3 - N - S^3 + S))/12.

    G = 70, S = 30, u = .85: -.447 + .460 rho. Exact at rho = 0 and 1.
    """
    g, s, n = num_generalists, num_specialists, num_generalists + num_specialists
    within = (g**3 - g) / 12 + s * g * (g - 1) * level * (1 - level) / 2
    between = s * n * g * (level - 0.5) / 2
    scale = math.sqrt((n**3 - n) * (n**3 - n - s**3 + s)) / 12
    return (rho_generalists * within - between) / scale if scale else 0.0


def expected_spearman(
    utility: Floats,
    pool_sizes: Sequence[int] | np.ndarray,
    pool_slots: Slots,
    shares: Floats,
    base_success: Floats,
    gain: float,
    *,
    num_episodes: int,
    baseline: Floats | None = None,
) -> float:
    """Expected Spearman of worth with these utilities after T episodes; a context alone by a one-hot share.

    Given U, the mean rank of m is 1 + sum_j P(worth_m > worth_j); worths are taken as normal around p_plus with the
    covariance of worth_law. Memories never shown tie at 0.5. `baseline` [context] is subtracted from the outcome first
    (residual worth, absent memories at 0): base_success - baseline is what is left of difficulty.
    """
    utility = np.asarray(utility, np.float64)
    mean, covariance = worth_law(
        utility, pool_sizes, pool_slots, shares, base_success, gain, num_episodes=num_episodes, baseline=baseline
    )
    n, unseen = len(utility), int((np.diag(covariance) == 0).sum())
    variance = np.diag(covariance)[:, None] + np.diag(covariance) - 2 * covariance
    above = special.ndtr((mean[:, None] - mean) / np.sqrt(np.maximum(variance, 1e-300)))
    truth = stats.rankdata(utility) - (n + 1) / 2
    scale = math.sqrt((n**3 - n - unseen**3 + unseen) / 12 * np.square(truth).sum())
    return float(above.sum(axis=1) @ truth / scale) if scale else 0.0


def worth_law(
    utility: Floats,
    pool_sizes: Sequence[int] | np.ndarray,
    pool_slots: Slots,
    shares: Floats,
    base_success: Floats,
    gain: float,
    *,
    num_episodes: int,
    baseline: Floats | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Mean [memory] and covariance [memory, memory] of worth after T episodes, to order 1/T (delta method).

    With z = y - baseline_c and r_i = E[z | i shown],
    Cov = sum_c share_c pi_ij|c E[(z - r_i)(z - r_j) | i, j, c] / (T pi_i pi_j), where p_ij|c = p_i|c + p_j|c - p_c.
    """
    utility, sizes, slots = np.asarray(utility, np.float64), np.asarray(pool_sizes), np.asarray(pool_slots, np.float64)
    shares = np.asarray(shares, np.float64)
    baseline = np.zeros(len(slots)) if baseline is None else np.asarray(baseline, np.float64)
    p = np.nan_to_num(context_p_plus(utility, sizes, slots, base_success, gain))
    overall = _context_success(utility, sizes, slots, base_success, gain)
    shown = shares @ inclusion(sizes, slots)
    seen, safe = shown > 0, np.where(shown > 0, shown, 1)
    mean = (shares[:, None] * inclusion(sizes, slots) * (p - baseline[:, None])).sum(axis=0) / safe
    covariance = np.zeros((len(utility), len(utility)))
    for share, both, own, middle, base in zip(shares, _pairs(sizes, slots), p, overall, baseline, strict=True):
        pair = own[:, None] + own - middle
        np.fill_diagonal(pair, own)
        square = pair * (1 - 2 * base) + base**2
        covariance += share * both * (square - (mean[:, None] + mean) * (pair - base) + mean[:, None] * mean)
    unseen = 0.5 if not baseline.any() else 0.0
    return np.where(seen, mean, unseen), covariance / (num_episodes * safe[:, None] * safe)


def _pairs(sizes: np.ndarray, slots: np.ndarray) -> np.ndarray:
    """P(i and j shown | context), [context, memory, memory]; the diagonal is P(i shown)."""
    both = slots[:, :, None] * slots[:, None, :] / (sizes[:, None] * sizes)
    pool = np.arange(len(sizes))
    both[:, pool, pool] = slots * (slots - 1) / np.maximum(sizes * (sizes - 1), 1)
    pairs = np.repeat(np.repeat(both, sizes, axis=1), sizes, axis=2)
    memory = np.arange(sizes.sum())
    pairs[:, memory, memory] = inclusion(sizes, slots)
    return pairs
