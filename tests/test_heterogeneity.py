"""Heterogeneity: permutations keep units whole, the p-value is uniform under the null, real differences are seen."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from mwjax.logs.journal import Journal, journal
from mwjax.replay.heterogeneity import DIFFERENCES, NO_DIFFERENCES, evalues, heterogeneity, posterior
from mwjax.types import InputError


def random_log(rng, episodes: int = 300, memories: int = 20, size: int = 4) -> Journal:
    sets = [rng.choice(memories, size, replace=False) for _ in range(episodes)]
    return journal(sets, rng.integers(0, 2, episodes), memories)


def test_lineups_give_the_checked_values(stints):
    log = stints
    found = heterogeneity(log)
    assert round(found.chi2, 2) == 447.67
    assert (found.p_value, found.verdict, found.units, found.movable) == (0.001, DIFFERENCES, 5_074, 1.0)
    home, away, won = log.memory[log.side[log.episode] == 1], log.memory[log.side[log.episode] == -1], log.outcome
    won, rng, n = won[log.side == 1], np.random.default_rng(9), log.evidence

    def chi2(y):
        five = np.repeat(y, 5)
        s = np.bincount(home, five, minlength=len(n)) + np.bincount(away, 1 - five, minlength=len(n))
        return ((s - n / 2) ** 2 / (n / 4)).sum()

    twin = np.array([chi2(rng.permutation(won)) for _ in range(999)])
    spread, tail = twin.std(ddof=1), stats.kurtosis(twin, fisher=False)
    error = lambda size: spread * math.sqrt((tail - 1) / 4 / size)  # of a standard deviation
    assert abs(found.mean - twin.mean()) < 5 * spread * math.sqrt(2 / 999)
    assert abs(found.standard_deviation - spread) < 5 * math.sqrt(2) * error(999)
    assert abs(found.mean - 156.6) < 5 * spread / math.sqrt(999)
    assert abs(found.standard_deviation - 26.2) < 5 * error(200)  # as published, of some 200 permutations


def test_the_order_of_the_lines_does_not_matter(stints):
    """Units far apart, and the other side first: the same units, the same permutations."""
    log = stints
    first = np.argsort(-np.arange(len(log.outcome)) % 2, kind="stable")  # all away lines, then all home ones
    sets = np.split(log.memory, log.start[1:-1])
    other = journal([sets[i] for i in first], log.outcome[first], len(log.memories))
    other = other._replace(memories=log.memories, unit=log.unit[first], side=log.side[first])
    one, two = (heterogeneity(x, permutations=29) for x in (log, other))
    assert (one.mean, one.standard_deviation) == pytest.approx((two.mean, two.standard_deviation))


def test_the_mean_over_all_permutations_is_that_of_an_enumeration():
    sets, y = [[0, 1], [0], [1, 2], [2], [0, 2]], [1, 0, 1, 1, 0]

    def chi2(outcomes):
        n, s = np.zeros(3), np.zeros(3)
        for memories, outcome in zip(sets, outcomes, strict=True):
            n[memories] += 1
            s[memories] += outcome
        p = s.sum() / n.sum()
        return ((s - n * p) ** 2 / (n * p * (1 - p))).sum()

    every = [chi2(one) for one in itertools.permutations(y)]
    found = heterogeneity(journal(sets, y), permutations=4_000)
    assert found.chi2 == pytest.approx(chi2(y))
    assert abs(found.mean - np.mean(every)) < 5 * np.std(every) / math.sqrt(4_000)
    share = np.mean(np.array(every) >= chi2(y) - 1e-9)
    assert abs(found.p_value - share) < 5 * math.sqrt(share * (1 - share) / 4_000) + 1 / 4_000


def test_a_homogeneous_log_at_a_low_base_rate_has_no_credible_differences():
    rng = np.random.default_rng(4)
    sets = rng.integers(0, 2_000, 40_000)[:, None]
    log = journal(sets, (rng.random(40_000) < 0.004).astype(int), 2_000)
    found = heterogeneity(log, permutations=199)
    assert found.verdict == NO_DIFFERENCES
    above = evalues(log.successes, log.evidence, log.successes.sum() / 40_000)
    assert not above.differs.any()


def test_p_values_are_uniform_under_the_null():
    rng = np.random.default_rng(5)
    values = [heterogeneity(random_log(rng, 100), permutations=19, seed=i).p_value for i in range(400)]
    counts = np.bincount(np.rint(np.multiply(values, 20)).astype(int), minlength=21)[1:]
    assert (abs(counts - 20) < 5 * math.sqrt(400 * 0.05 * 0.95)).all(), counts


def test_outcomes_shared_by_a_unit_do_not_pass_for_differences():
    """Sessions of five episodes with one memory and one outcome: by episodes they differ, by sessions they do not."""
    rng = np.random.default_rng(6)
    memory, luck = rng.integers(0, 30, 200), rng.integers(0, 2, 200)
    log = journal(np.repeat(memory, 5)[:, None], np.repeat(luck, 5), 30)
    assert heterogeneity(log).p_value < 0.01
    found = heterogeneity(log._replace(unit=np.repeat(np.arange(200, dtype=np.int32), 5)))
    assert found.p_value > 0.02
    assert found.units == 200


def test_units_of_a_shape_of_their_own_stay():
    log = journal([[0], [1], [0], [1], [0]], [1, 0, 1, 0, 1])._replace(unit=np.array([0, 0, 1, 1, 2], np.int32))
    found = heterogeneity(log, permutations=49)
    assert found.movable == pytest.approx(2 / 3)
    assert found.standard_deviation == 0
    assert found.p_value == 1


def test_verdicts_of_single_memories_move_too():
    rng = np.random.default_rng(7)
    sets = np.array([rng.permutation(10)[:3] for _ in range(600)])
    log = journal(sets, np.ones(600, int), 10)
    verdict = (rng.random(1_800) < np.where(sets.ravel() == 0, 0.9, 0.4)).astype(np.int8)
    verdict[rng.random(1_800) < 0.2] = -1
    assert heterogeneity(log._replace(success=verdict)).p_value == 0.001
    assert heterogeneity(log._replace(success=rng.permutation(verdict))).p_value > 0.01


def test_an_outcome_of_one_kind_shows_no_differences():
    assert heterogeneity(journal([[0], [1]], [1, 1])).verdict == NO_DIFFERENCES


def test_a_log_without_outcomes_is_refused():
    with pytest.raises(InputError, match="outcome: no episode has one"):
        heterogeneity(journal([[0]], [-1]))


def test_e_values_have_mean_one_under_the_base_rate():
    for p, n in ((0.5, 12), (0.1, 30), (0.8, 15)):
        s = np.arange(n + 1)
        e = np.exp(evalues(s, np.full(n + 1, n), p).log_e)
        assert stats.binom.pmf(s, n, p) @ e == pytest.approx(1)
    half = evalues(np.array([9]), np.array([10]), 0.5)
    assert math.exp(half.log_e[0]) == pytest.approx(2**10 / 110)  # B(10, 2) = 1/110


def test_e_bh_names_those_that_differ():
    s, n = np.array([95, 50, 52, 3, 0]), np.array([100, 100, 100, 100, 0])
    assert evalues(s, n, 0.5).differs.tolist() == [True, False, False, True, False]


def test_the_posterior_follows_the_fitted_prior():
    rng = np.random.default_rng(8)
    p = rng.beta(20, 60, 120)
    n = rng.integers(50, 400, 120)
    found = posterior(rng.binomial(n, p), n)
    assert not found.capped
    assert 50 < found.prior_a + found.prior_b < 130
    inside = (found.interval[:, 0] < p) & (p < found.interval[:, 1])
    assert abs(inside.mean() - 0.95) < 5 * math.sqrt(0.95 * 0.05 / 120)
    assert posterior(rng.binomial(n, 0.3), n).capped
