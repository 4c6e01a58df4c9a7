"""Draws by weight and floors: closed forms against draws, integrals and simulated lives."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from mwjax import theory
from mwjax.theory import adaptive

WEIGHTS = np.array([0.5, 2.0, 1.0, 0.05, 3.0, 0.1, 1.0])


def successive(rng, weights, number, rows):
    """Successive draws by the smallest exponential clocks, [row, number]."""
    clocks = rng.exponential(size=(rows, len(weights))) / weights
    return np.argpartition(clocks, number - 1, axis=1)[:, :number]


def assert_shares(chosen, expected):
    """Inclusion in rows of sets, within five standard errors."""
    found = np.bincount(chosen.ravel(), minlength=len(expected)) / len(chosen)
    assert (abs(found - expected) < 5 * np.sqrt(expected * (1 - expected) / len(chosen))).all(), (found, expected)


@pytest.mark.parametrize("num_retrieved", [1, 2, 4, 6])
def test_successive_inclusion_against_clocks(num_retrieved):
    """Drawn = fewer than k other clocks ring before the own one: an integral over its time."""
    expected = []
    for m, w in enumerate(WEIGHTS):
        others = np.delete(WEIGHTS, m)

        def ahead(t, w=w, others=others):
            law = np.ones(1)
            for other in others:
                law = np.convolve(law, [math.exp(-other * t), -math.expm1(-other * t)])
            return w * math.exp(-w * t) * law[:num_retrieved].sum()

        expected.append(integrate.quad(ahead, 0, 5)[0] + integrate.quad(ahead, 5, 600, limit=200)[0])
    found = adaptive.successive_inclusion(WEIGHTS, num_retrieved)
    assert found == pytest.approx(expected, abs=1e-7)
    assert found.sum() == pytest.approx(num_retrieved)


def test_successive_inclusion_against_draws_one_after_the_other():
    rng, rows = np.random.default_rng(0), 20_000
    chosen = np.array([rng.choice(7, 3, replace=False, p=WEIGHTS / WEIGHTS.sum()) for _ in range(rows)])
    assert_shares(chosen, adaptive.successive_inclusion(WEIGHTS, 3))


def test_successive_inclusion_in_the_limits():
    assert adaptive.successive_inclusion(WEIGHTS, 1) == pytest.approx(WEIGHTS / WEIGHTS.sum())
    assert adaptive.successive_inclusion(np.full(9, 2.0), 4) == pytest.approx(np.full(9, 4 / 9))
    assert adaptive.successive_inclusion([1.0, 0.0, 5.0], 2) == pytest.approx([1, 0, 1])
    assert adaptive.successive_inclusion([2.0, 1.0], 2) == pytest.approx([1, 1])
    with pytest.raises(ValueError, match="1 are positive, 2 are drawn"):
        adaptive.successive_inclusion([1.0, 0.0, 0.0], 2)


def test_floors_against_draws():
    rng, rows, floor = np.random.default_rng(1), 200_000, 0.2
    share = WEIGHTS / WEIGHTS.sum()
    slots = successive(rng, (1 - floor) * share + floor / 7, 3, rows)
    assert_shares(slots, adaptive.successive_inclusion(adaptive.with_floor(WEIGHTS, floor), 3))
    uniform = rng.random((rows, 1)) < floor
    sets = np.where(uniform, successive(rng, np.ones(7), 3, rows), successive(rng, WEIGHTS, 3, rows))
    assert_shares(sets, adaptive.uniform_floor(WEIGHTS, 3, floor))


def test_floors_in_the_limits():
    assert adaptive.with_floor(WEIGHTS, 0.0) == pytest.approx(WEIGHTS / WEIGHTS.sum())
    assert adaptive.with_floor(WEIGHTS, 1.0) == pytest.approx(np.full(7, 1 / 7))
    assert adaptive.with_floor(WEIGHTS, 0.3).sum() == pytest.approx(1)
    assert adaptive.uniform_floor(WEIGHTS, 3, 1.0) == pytest.approx(np.full(7, 3 / 7))
    least = adaptive.successive_inclusion(adaptive.with_floor([1, 1, 1, 0.0], 0.4), 2)[3]
    assert least >= 1 - (1 - 0.4 / 4) ** 2


def test_evidence_bound_holds_whatever_the_weights_do():
    """A policy that always takes the same memories otherwise: the bound is met, and nearly tight."""
    rng, n, k, episodes, floor, lives = np.random.default_rng(2), 20, 3, 500, 0.1, 20_000
    uniform = rng.binomial(episodes, floor, lives)
    shown = rng.binomial(uniform, k / n)  # of a memory that only the floor shows
    for quantile in (0.01, 0.5):
        bound = adaptive.least_evidence_bound(n, k, episodes, floor, quantile)
        below = (shown < bound).mean()
        assert below < quantile + 5 * math.sqrt(quantile * (1 - quantile) / lives)
        assert (shown <= bound).mean() > quantile - 5 * math.sqrt(quantile * (1 - quantile) / lives)


def test_evidence_bound_of_the_paper():
    """Its closed loops with a floor per episode keep at least what the floor alone guarantees the least of 100."""
    for floor, medians in ((0.05, (147,)), (0.1, (202, 73, 63))):
        bound = adaptive.least_evidence_bound(100, 8, 10_000, floor, 0.5 / 100)
        assert bound <= min(medians), (floor, bound)
    assert adaptive.least_evidence_bound(100, 8, 10_000, 0.1, 0.5 / 100) == stats.binom.ppf(0.005, 10_000, 0.008) == 58


def test_rmse_by_evidence_against_simulated_lives():
    """Few retrievals, some memories unseen: E[1/n] is well above 1/E[n]."""
    rng, n, k, episodes, lives = np.random.default_rng(3), 40, 4, 40, 5_000
    utility = rng.random((lives, n))
    evidence, hits = np.zeros((2, lives, n))
    rows = np.arange(lives)[:, None]
    for _ in range(episodes):
        chosen = np.argpartition(rng.random((lives, n)), k - 1, axis=1)[:, :k]
        evidence[rows, chosen] += 1
        hits[rows, chosen] += rng.random((lives, 1)) < utility[rows, chosen].mean(axis=1, keepdims=True)
    p = utility / k + (k - 1) / k * (utility.sum(axis=1, keepdims=True) - utility) / (n - 1)
    square = np.square(np.where(evidence > 0, hits / np.maximum(evidence, 1), 0.5) - p).mean(axis=1)
    expected = adaptive.rmse_by_evidence(n, k, episodes) ** 2
    error = square.std(ddof=1) / math.sqrt(lives)
    assert abs(square.mean() - expected) < 5 * error, (square.mean(), expected, error)
    assert abs(square.mean() - theory.rmse(n, k, episodes) ** 2) > 20 * error


def test_rmse_slope():
    assert adaptive.log_slope([1, 10, 100], [3, 0.3, 0.03]) == pytest.approx(-1)
    assert adaptive.rmse_slope(100, 8, [10**6, 10**7]) == pytest.approx(-0.5, abs=1e-5)
    slope = adaptive.rmse_slope(100, 8, [1_000, 3_000, 10_000, 30_000, 100_000, 300_000])
    assert -0.502 < slope < -0.5
    few = np.array([adaptive.rmse_by_evidence(100, 8, t) for t in (100, 1_000)])
    assert adaptive.rmse_slope(100, 8, [100, 1_000]) == pytest.approx(math.log10(few[1] / few[0]))
