"""The difficulty world's closed forms against every set of small worlds and against simulated lives."""

import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats

from mwjax import theory
from mwjax.theory import difficulty

SIZES, SLOTS, SHARES, BASE, GAIN = (70, 30), ((8, 0), (4, 4)), (0.5, 0.5), (0.78, 0.28), 0.16


class Lives(NamedTuple):
    utility: np.ndarray  # [life, memory]
    shown: np.ndarray  # [context, life, memory]
    hits: np.ndarray
    residual: np.ndarray  # [life, memory]: sum of y - base

    @property
    def worth(self):
        return worth(self.shown.sum(axis=0), self.hits.sum(axis=0))


def worth(shown, hits):
    return np.where(shown > 0, hits / np.maximum(shown, 1), 0.5)


def draw(rng, rows, size, number):
    """Smallest keys of a row of random ones: `number` of range(size), uniformly."""
    return np.argpartition(rng.random((rows, size), dtype=np.float32), number - 1, axis=1)[:, :number]


def simulate(num_episodes, *, lives, seed):
    """Generalists U(0, 1), specialists .85, contexts by a fair coin; written from the definition."""
    rng, n, k = np.random.default_rng(seed), sum(SIZES), 8
    utility = np.concatenate([rng.random((lives, 70)), np.full((lives, 30), 0.85)], axis=1)
    shown, hits, residual = np.zeros((2, lives * n)), np.zeros((2, lives * n)), np.zeros(lives * n)
    for _ in range(num_episodes // 50):
        life = np.repeat(np.arange(lives), 50)
        hard = rng.random(len(life)) < 0.5
        for context, mine in enumerate((life[~hard], life[hard])):
            sets = draw(rng, len(mine), 70, SLOTS[context][0])
            if context:
                sets = np.concatenate([sets, 70 + draw(rng, len(mine), 30, 4)], axis=1)
            p = BASE[context] + GAIN * (utility[mine[:, None], sets].mean(axis=1) - 0.5)
            y, cells = rng.random(len(mine)) < p, (mine[:, None] * n + sets).ravel()
            shown[context] += np.bincount(cells, minlength=lives * n)
            hits[context] += np.bincount(cells, np.repeat(y, k), minlength=lives * n)
            residual += np.bincount(cells, np.repeat(y - BASE[context], k), minlength=lives * n)
    return Lives(utility, shown.reshape(2, lives, n), hits.reshape(2, lives, n), residual.reshape(lives, n))


@pytest.fixture(scope="module")
def lives():
    return simulate(2_000, lives=300, seed=4)


def rank_correlations(values, truth):
    a, b = (stats.rankdata(x, axis=1) - (x.shape[1] + 1) / 2 for x in (values, truth))
    return (a * b).sum(axis=1) / np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))


def assert_mean(values, expected):
    """Within five standard errors over lives."""
    error = values.std(ddof=1) / math.sqrt(len(values))
    assert abs(values.mean() - np.mean(expected)) < 5 * error, (values.mean(), np.mean(expected), error)


def test_p_plus_against_every_set():
    sizes, slots, shares, base, gain = (
        (4, 3, 1),
        ((3, 0, 0), (1, 2, 0), (1, 1, 1)),
        (0.5, 0.3, 0.2),
        (0.7, 0.2, 0.4),
        0.3,
    )
    utility = np.array([0.1, 0.9, 0.4, 0.6, 0.85, 0.2, 0.7, 1.0])
    pools = np.split(np.arange(8), np.cumsum(sizes)[:-1])
    shown, hits = np.zeros((2, 3, 8))
    for c, row in enumerate(slots):
        choices = [itertools.combinations(pool, s) for pool, s in zip(pools, row, strict=True)]
        sets = [np.concatenate(parts).astype(int) for parts in itertools.product(*choices)]
        for chosen in sets:
            shown[c, chosen] += 1 / len(sets)
            hits[c, chosen] += (base[c] + gain * (utility[chosen].mean() - 0.5)) / len(sets)
    found = difficulty.context_p_plus(utility, sizes, slots, base, gain)
    assert (np.isnan(found) == (shown == 0)).all()
    assert found[shown > 0] == pytest.approx(hits[shown > 0] / shown[shown > 0])
    assert difficulty.inclusion(sizes, slots) == pytest.approx(shown)
    expected = (np.array(shares) @ hits) / (np.array(shares) @ shown)
    assert difficulty.p_plus(utility, sizes, slots, shares, base, gain) == pytest.approx(expected)


def test_p_plus_of_a_memory_in_no_context_is_not_a_number():
    found = difficulty.p_plus([0.1, 0.2, 0.9], (2, 1), ((1, 0), (2, 0)), (0.5, 0.5), (0.5, 0.5), 1.0)
    assert np.isnan(found).tolist() == [False, False, True]
    assert found[:2].mean() == pytest.approx(0.15)


def test_one_pool_and_one_context_are_the_plain_world():
    utility = np.random.default_rng(2).random(30)
    found = difficulty.p_plus(utility, [30], [[6]], [1.0], [0.5], 1.0)
    assert found == pytest.approx(theory.p_plus(utility, 6))


def test_p_plus_against_simulated_lives(lives):
    for pool in (slice(0, 70), slice(70, 100)):
        expected = [difficulty.p_plus(u, SIZES, SLOTS, SHARES, BASE, GAIN)[pool] for u in lives.utility]
        assert_mean((lives.worth[:, pool] - np.array(expected)).mean(axis=1), 0)


def test_expected_spearman_against_simulated_lives(lives):
    """Over all episodes, within hard and within easy tasks (specialists at 0.5), and of residual worth."""
    residual = lives.residual / lives.shown.sum(axis=0)
    cases = [
        (lives.worth, SHARES, 2_000, None),
        (worth(lives.shown[1], lives.hits[1]), (0, 1), 1_000, None),
        (worth(lives.shown[0], lives.hits[0]), (1, 0), 1_000, None),
        (residual, SHARES, 2_000, BASE),
    ]
    for values, shares, episodes, baseline in cases:
        expected = [
            difficulty.expected_spearman(u, SIZES, SLOTS, shares, BASE, GAIN, num_episodes=episodes, baseline=baseline)
            for u in lives.utility
        ]
        assert_mean(rank_correlations(values, lives.utility) - np.array(expected), 0)


def test_worth_law_against_simulated_lives(lives):
    """Variance of worth - p+, and of the sum over a pool, which the covariances decide."""
    off, own, pool = [], [], []
    for utility, values in zip(lives.utility, lives.worth, strict=True):
        mean, covariance = difficulty.worth_law(utility, SIZES, SLOTS, SHARES, BASE, GAIN, num_episodes=2_000)
        off.append(values - mean)
        own.append(np.diag(covariance).mean())
        pool.append(covariance[70:, 70:].sum())
    off = np.array(off)
    assert_mean(np.square(off).mean(axis=1), own)
    assert_mean(np.square(off[:, 70:].sum(axis=1)), pool)


def test_expected_spearman_of_endless_lives_is_that_of_p_plus():
    """Thirty specialists tied at 0.5 in easy tasks; average ranks on both sides."""
    utility = np.concatenate([np.random.default_rng(1).random(70), np.full(30, 0.85)])
    for shares in (SHARES, (0, 1), (1, 0)):
        p = np.nan_to_num(difficulty.p_plus(utility, SIZES, SLOTS, shares, BASE, GAIN), nan=0.5)
        p[70:] = p[70:].mean()  # equal up to rounding
        found = difficulty.expected_spearman(utility, SIZES, SLOTS, shares, BASE, GAIN, num_episodes=10**14)
        ties = 1 if shares == (1, 0) else math.sqrt((100**3 - 100 - 30**3 + 30) / (100**3 - 100))
        assert found == pytest.approx(stats.spearmanr(p, utility)[0] * ties, abs=1e-4)


def test_expected_spearman_of_one_pool_is_that_of_the_ranking():
    """Large sets of few memories, where the covariance within a set weighs most."""
    rng = np.random.default_rng(3)
    found = [
        difficulty.expected_spearman(rng.random(20), [20], [[8]], [1], [0.5], 1.0, num_episodes=600) for _ in range(600)
    ]
    assert_mean(np.array(found), theory.spearman(20, 8, 600))


def test_expected_spearman_of_the_paper():
    """Its table: global -.314, within hard +.129, residual +.220 (standard error .006 each, 200 seeds)."""
    rng, found = np.random.default_rng(0), []
    for _ in range(100):
        utility = np.concatenate([rng.random(70), np.full(30, 0.85)])
        mean = np.array([8 * utility[:70].mean(), 4 * utility[:70].mean() + 3.4]) / 8
        rate = np.array(BASE) + GAIN * (mean - 0.5)
        rows = ((SHARES, 10_000, None), ((0, 1), 5_000, None), (SHARES, 10_000, rate))
        found.append(
            [
                difficulty.expected_spearman(utility, SIZES, SLOTS, s, BASE, GAIN, num_episodes=t, baseline=b)
                for s, t, b in rows
            ]
        )
    found = np.array(found)
    error = np.sqrt(found.var(axis=0, ddof=1) / 100 + 0.006**2)
    assert (abs(found.mean(axis=0) - [-0.314, 0.129, 0.220]) < 5 * error).all(), (found.mean(axis=0), error)


@pytest.mark.parametrize("level", [0.85, 0.3])
@pytest.mark.parametrize("noise", [0.0, 0.3, 1.0, 50.0])
def test_structural_spearman_against_draws(level, noise):
    """Worth = U + noise within the generalists, every specialist below; paired with their own rank correlation."""
    rng, rows = np.random.default_rng(7), 2_000
    utility = np.concatenate([rng.random((rows, 70)), np.full((rows, 30), level)], axis=1)
    values = utility + noise * rng.normal(size=utility.shape)
    values[:, 70:] = -1_000 + rng.random((rows, 30))
    within = rank_correlations(values[:, :70], utility[:, :70])
    expected = [difficulty.structural_spearman(70, 30, rho, level=level) for rho in within]
    assert_mean(rank_correlations(values, utility) - expected, 0)


def test_structural_spearman_in_the_limits():
    at = difficulty.structural_spearman
    assert at(70, 30, 0.0) == pytest.approx(-0.447, abs=5e-4)
    assert at(70, 30, 1.0) - at(70, 30, 0.0) == pytest.approx(0.460, abs=5e-4)
    assert at(70, 0, 0.4) == pytest.approx(0.4)
    assert at(0, 30, 0.4) == 0
    assert at(70, 30, 1.0, level=0.0) == pytest.approx(math.sqrt(1 - (30**3 - 30) / (100**3 - 100)))
