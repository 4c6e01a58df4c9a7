import itertools
import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy import integrate, stats

from mwjax import theory

DENSE = {"num_memories": 20, "num_retrieved": 8, "num_episodes": 600}
"""Few memories, large sets: what the memories of a set share weighs most."""


class Lives(NamedTuple):
    utility: np.ndarray  # [life, memory]
    worth: np.ndarray
    weighted: np.ndarray  # worth with weights U(0, 1)
    evidence: np.ndarray


def simulate(num_memories, num_retrieved, num_episodes, *, lives, seed, utility_low=0.0):
    """The mean law under uniform retrieval, written once more from its definition."""
    rng, rows = np.random.default_rng(seed), np.arange(lives)[:, None]
    utility = rng.uniform(utility_low, 1, (lives, num_memories))
    evidence, hits, total, weighted = np.zeros((4, lives, num_memories))
    for _ in range(num_episodes):
        chosen = np.argpartition(rng.random((lives, num_memories)), num_retrieved - 1, axis=1)[:, :num_retrieved]
        success = rng.random((lives, 1)) < utility[rows, chosen].mean(axis=1, keepdims=True)
        weight = rng.random(chosen.shape)
        evidence[rows, chosen] += 1
        hits[rows, chosen] += success
        total[rows, chosen] += weight
        weighted[rows, chosen] += weight * success
    return Lives(utility, hits / evidence, weighted / total, evidence)


@pytest.fixture(scope="module")
def dense():
    return simulate(**DENSE, lives=2_000, seed=5)


def rank_correlations(values, truth):
    a, b = (stats.rankdata(x, axis=1) - (x.shape[1] + 1) / 2 for x in (values, truth))
    return (a * b).sum(axis=1) / np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1))


def assert_mean(values, expected):
    """Within five standard errors over lives."""
    error = values.std(ddof=1) / math.sqrt(len(values))
    assert abs(values.mean() - expected) < 5 * error, (values.mean(), expected, error)


@pytest.mark.parametrize(
    ("num_memories", "num_retrieved", "num_episodes", "expected"),
    [
        (100, 8, 2_000, 0.662), (100, 8, 5_000, 0.817), (100, 8, 10_000, 0.894),
        (100, 3, 10_000, 0.957), (100, 5, 10_000, 0.931), (100, 10, 10_000, 0.871), (100, 20, 10_000, 0.761),
        (60, 4, 3_000, 0.894),
    ],
)  # fmt: skip
def test_spearman_to_three_digits(num_memories, num_retrieved, num_episodes, expected):
    assert theory.spearman(num_memories, num_retrieved, num_episodes) == pytest.approx(expected, abs=6e-4)


def test_spearman_by_adaptive_quadrature_of_the_definition():
    """rho = 12 E[U F_X(X)] - 3 and tau straight from their definitions, in two dimensions."""
    n, k, episodes = 100, 8, 2_000
    slope = (n - k) / (k * (n - 1))
    variance = 0.25 - slope**2 / 12
    noise = math.sqrt(k * n * (n - 1) * variance / (episodes * (n - k)))  # s, so that s^2 = Var(U) / SNR
    above = lambda u, v: stats.norm.cdf((u - v) / (noise * math.sqrt(2)))
    grid, weight = np.polynomial.legendre.leggauss(120)
    u, w = (grid + 1) / 2, weight / 2
    table = above(u[:, None], u[None, :])
    rho = 12 * np.einsum("i,j,i,ij", w, w, u, table) - 3
    tau = 2 * integrate.quad(lambda d: 2 * (1 - d) * above(d, 0.0), 0, 1)[0] - 1
    assert theory.spearman(n, k, episodes) == pytest.approx(((n - 2) * rho + 3 * tau) / (n + 1), abs=1e-6)


def test_spearman_in_the_limits():
    assert theory.spearman(100, 8, 10**12) == pytest.approx(1, abs=1e-4)
    assert theory.spearman(100, 8, 0) == pytest.approx(0, abs=1e-12)
    assert theory.spearman(100, 100, 10_000) == 0
    assert theory.spearman(1, 1, 10_000) == 0
    assert theory.spearman(100, 8, 10_000, utility_low=0.5, utility_high=0.5) == 0
    assert theory.spearman(100, 1, 1_000, effective=0.5) == pytest.approx(theory.spearman(100, 1, 500))
    assert theory.spearman(100, 8, 500) > theory.spearman(100, 8, 1_000, effective=0.5)
    assert theory.spearman(100, 8, 1_000, utility_high=0.5) < theory.spearman(100, 8, 1_000)


def test_spearman_of_long_lives_by_its_expansion():
    """With a = sqrt(3 SNR): rho = 6 int D (1 - D) erf(a D) dD, tau = 2 int (1 - D) erf(a D) dD, up to exp(-a^2)."""
    n, k, episodes = 100, 8, 1_000_000
    snr = episodes * (n - k) / 12 / (k * n * (n - 1) * (0.25 - theory.dilution(n, k) ** 2 / 12))
    a = math.sqrt(3 * snr)
    rho = 1 - 6 * (1 / (4 * a**2) - 1 / (3 * math.sqrt(math.pi) * a**3))
    tau = 1 - 2 / (math.sqrt(math.pi) * a) + 1 / (2 * a**2)
    assert theory.spearman(n, k, episodes) == pytest.approx(((n - 2) * rho + 3 * tau) / (n + 1), abs=1e-10)


def test_spearman_turns_with_the_sign_of_success():
    """Failures instead of successes: U -> 1 - U ranks the other way round, just as well."""
    mirrored = theory.spearman(100, 8, 1_000, utility_low=0.6, utility_high=0.9)
    assert theory.spearman(100, 8, 1_000, utility_low=0.1, utility_high=0.4) == pytest.approx(mirrored, rel=1e-12)


def test_spearman_against_simulated_lives(dense):
    assert_mean(rank_correlations(dense.worth, dense.utility), theory.spearman(**DENSE))


def test_spearman_of_another_interval_against_simulated_lives():
    lives = simulate(20, 4, 300, lives=1_500, seed=6, utility_low=0.6)
    expected = theory.spearman(20, 4, 300, utility_low=0.6)
    assert_mean(rank_correlations(lives.worth, lives.utility), expected)


def test_spearman_under_random_weights_against_simulated_lives(dense):
    """What two memories of a set have in common does not shrink: fewer episodes by the same factor cost less."""
    expected = theory.spearman(**DENSE, effective=theory.effective_evidence(0.0))
    assert_mean(rank_correlations(dense.weighted, dense.utility), expected)


def test_random_weights_lower_the_rank_correlation_as_expected(dense):
    """The same lives with and without weights: paired, so that a small difference shows."""
    lost = rank_correlations(dense.worth, dense.utility) - rank_correlations(dense.weighted, dense.utility)
    expected = theory.spearman(**DENSE) - theory.spearman(**DENSE, effective=0.75)
    assert_mean(lost, expected)


@pytest.mark.parametrize("num_retrieved", [1, 2, 3, 5])
def test_p_plus_against_every_subset(num_retrieved):
    utility = np.array([0.1, 0.7, 0.35, 1.0, 0.0])
    for memory, found in enumerate(theory.p_plus(utility, num_retrieved)):
        sets = [s for s in itertools.combinations(range(5), num_retrieved) if memory in s]
        assert found == pytest.approx(np.mean([utility[list(s)].mean() for s in sets]))


def test_variance_of_p_plus_is_that_of_utility_diluted():
    utility = np.random.default_rng(0).random(50)
    expected = utility.var() * theory.dilution(50, 6) ** 2
    assert theory.p_plus(utility, 6).var() == pytest.approx(expected)
    assert theory.p_plus([0.3], 1) == pytest.approx([0.3])


def test_effective_evidence_is_kish():
    weight = 0.2 + 0.8 * (np.arange(100_000) + 0.5) / 100_000
    assert theory.effective_evidence(0.2) == pytest.approx(weight.mean() ** 2 / (weight**2).mean(), abs=1e-6)
    assert theory.effective_evidence(0) == pytest.approx(0.75)
    assert theory.effective_evidence(1) == 1


def test_rmse_falls_as_the_root():
    assert theory.rmse(100, 8, 10_000) == pytest.approx(theory.rmse(100, 8, 100) / 10)
    assert theory.rmse(100, 100, 400) == pytest.approx(math.sqrt(0.25 / 400))


def test_rmse_against_simulated_lives(dense):
    p_plus = np.stack([theory.p_plus(utility, DENSE["num_retrieved"]) for utility in dense.utility])
    assert_mean(np.square(dense.worth - p_plus).mean(axis=1), theory.rmse(**DENSE) ** 2)


def test_enumeration_against_every_sequence_of_episodes():
    utility, episodes = [0.2, 0.9, 0.5], 3
    total = 0.0
    for shown in itertools.product(range(3), repeat=episodes):
        for outcome in itertools.product((0, 1), repeat=episodes):
            chance = (
                math.prod(utility[m] if y else 1 - utility[m] for m, y in zip(shown, outcome, strict=True))
                / 3**episodes
            )
            mine = lambda m, shown=shown, outcome=outcome: [y for s, y in zip(shown, outcome, strict=True) if s == m]
            worth = [np.mean(mine(m)) if mine(m) else 0.5 for m in range(3)]
            total += chance * (0 if np.ptp(worth) == 0 else stats.spearmanr(worth, utility)[0])
    assert theory.spearman_by_enumeration(utility, episodes) == pytest.approx(total)


def test_label_shares_against_draws():
    rng, n, k, episodes, draws = np.random.default_rng(0), 100, 8, 600, 400_000
    companions = rng.normal(0.5, math.sqrt(1 / (12 * (n - 1))), draws)
    p = (rng.random(draws) + (k - 1) * companions) / k
    evidence = rng.binomial(episodes, k / n, draws)
    worth = rng.binomial(evidence, p) / np.maximum(evidence, 1)
    low, high = theory.label_shares(n, k, episodes)
    for share, labelled in ((low, worth <= 0.4), (high, worth >= 0.6)):
        found = (labelled & (evidence >= 10)).mean()
        assert abs(found - share) < 5 * math.sqrt(share / draws)


def test_enumeration_in_the_limits():
    assert theory.spearman_by_enumeration([0.1, 0.4, 0.9], 0) == 0
    assert theory.spearman_by_enumeration([0.5], 3) == 0
    assert theory.spearman_by_enumeration([0.5, 0.5], 3) == 0
    assert theory.spearman_by_enumeration([0.0, 1.0], 1) == pytest.approx(1)
    assert theory.spearman_by_enumeration([0.2, 0.4, 0.6, 0.8], 0) == 0
    turned = theory.spearman_by_enumeration([0.7, 0.4, 0.2], 5)
    assert theory.spearman_by_enumeration([0.3, 0.6, 0.8], 5) == pytest.approx(turned)


def test_p_plus_range():
    assert theory.p_plus_range(100, 8) == pytest.approx((0.4375, 0.5625))
    assert theory.p_plus_range(100, 1, utility_low=0.2, utility_high=0.6) == pytest.approx((0.2, 0.6))


def test_label_shares_against_simulated_lives(dense):
    low, high = theory.label_shares(**DENSE)
    assert_mean((dense.worth <= 0.4).mean(axis=1), low)
    assert_mean((dense.worth >= 0.6).mean(axis=1), high)
    some = (dense.worth <= 0.45) & (dense.evidence >= 250)
    assert_mean(some.mean(axis=1), theory.label_shares(**DENSE, theta_low=0.45, min_evidence=250)[0])


def test_label_shares_by_hand():
    """One memory, p+ = U uniform on [0, 1]: each of the T + 1 numbers of successes is equally likely."""
    assert theory.label_shares(1, 1, 10) == pytest.approx((5 / 11, 5 / 11))
    assert theory.label_shares(1, 1, 9) == (0, 0)
    assert theory.label_shares(1, 1, 14, theta_high=0.9) == pytest.approx((6 / 15, 2 / 15))
