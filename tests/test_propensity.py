"""Effects of randomised inclusion: unbiased where worth is not, with honest standard errors; refused without chance."""

import math

import numpy as np
import pytest
from scipy import special

from mwjax.logs.journal import Candidates, Journal, journal
from mwjax.replay import propensity
from mwjax.replay.propensity import propensities
from mwjax.types import InputError

MEMORIES, CANDIDATES = 12, 6
CHANCE = np.linspace(0.9, 0.1, CANDIDATES)


def bernoulli_world(rng, episodes: int, *, sessions: int = 1) -> tuple[Journal, np.ndarray]:
    """Half of the tasks hard; the better half of the memories is wanted there, so that worth misleads. And the truth.

    Candidates are ranked, each in with a chance that falls from .9 to .1; logit success = task + sum of effects. The
    truth [memory, (in, out)] is the mean success of the same episodes with the memory forced in, and out.
    """
    effect = np.linspace(-0.6, 0.6, MEMORIES)
    hard = rng.integers(0, 2, episodes)
    luck = np.repeat(rng.normal(0, 3 * (sessions > 1), episodes // sessions), sessions)
    weight = np.where(hard[:, None] == 1, np.arange(MEMORIES), MEMORIES - 1 - np.arange(MEMORIES))
    rank = np.argsort(-(weight / MEMORIES + rng.random((episodes, MEMORIES))), axis=1)[:, :CANDIDATES]
    z = rng.random((episodes, CANDIDATES)) < CHANCE
    task = np.where(hard, -1.2, 1.2) + luck
    total = task + (effect[rank] * z).sum(axis=1)
    y = rng.random(episodes) < special.expit(total)
    truth = np.zeros((MEMORIES, 2))
    own = effect[rank]
    for i, forced in enumerate((1, 0)):
        value = special.expit(total[:, None] + own * (forced - z))
        truth[:, i] = [value[rank == m].mean() for m in range(MEMORIES)]
    log = journal([r[i] for r, i in zip(rank, z, strict=True)], y.astype(int), MEMORIES)
    start = np.arange(episodes + 1) * CANDIDATES
    drawn = Candidates(start, rank.ravel().astype(np.int32), np.tile(CHANCE, episodes), z.ravel())
    context = hard.astype(np.int32)
    return log._replace(candidates=drawn, context=context, contexts=("easy", "hard")), truth


@pytest.fixture(scope="module")
def worlds():
    rng = np.random.default_rng(1)
    found = []
    for _ in range(60):
        log, truth = bernoulli_world(rng, 3_000)
        found.append((propensities(log), truth))
    return found


@pytest.mark.parametrize("name", ["ips", "snips", "doubly_robust"])
def test_estimates_are_unbiased_with_honest_standard_errors(worlds, name):
    for field, true in (
        ("value_in", lambda t: t[:, 0]),
        ("value_out", lambda t: t[:, 1]),
        ("effect", lambda t: t[:, 0] - t[:, 1]),
    ):
        wrong = np.array([getattr(getattr(one, name), field) - true(truth) for one, truth in worlds])
        error = wrong.std(axis=0, ddof=1) / math.sqrt(len(wrong))
        allowed = 5 * error + 0.002 * (name == "snips")  # a ratio is off by O(1/n)
        assert (abs(wrong.mean(axis=0)) < allowed).all(), field
        said = np.array([getattr(getattr(one, name), f"{field}_error") for one, _ in worlds])
        inside = (abs(wrong) < 1.96 * said).mean(axis=1)
        assert inside.mean() > 0.94 - 5 * inside.std(ddof=1) / math.sqrt(len(inside)), field


def test_worth_is_biased_where_they_are_not(worlds):
    wrong = np.array([one.naive - truth[:, 0] for one, truth in worlds])
    sure = abs(wrong.mean(axis=0)) > 5 * wrong.std(axis=0, ddof=1) / math.sqrt(len(wrong))
    assert sure.sum() >= MEMORIES / 2


def test_the_outcome_model_makes_it_surer(worlds):
    spread = lambda name: np.mean([getattr(one, name).effect_error for one, _ in worlds])
    assert spread("doubly_robust") < spread("snips") < 0.9 * spread("ips")


def test_estimates_equal_a_plain_loop():
    log, _ = bernoulli_world(np.random.default_rng(2), 200)
    found, of = propensities(log), log.candidates
    for m in range(MEMORIES):
        rows = np.flatnonzero(of.memory == m)
        z, p, y = of.included[rows], of.propensity[rows], log.outcome[rows // CANDIDATES]
        w, v, n = z / p, (1 - z) / (1 - p), len(rows)
        assert (found.candidates[m], found.included[m]) == (n, z.sum())
        assert found.ips.value_in[m] == pytest.approx((w * y).mean())
        assert found.ips.effect[m] == pytest.approx((w * y - v * y).mean())
        assert found.ips.effect_error[m] == pytest.approx((w * y - v * y).std(ddof=1) / math.sqrt(n))
        assert found.snips.value_out[m] == pytest.approx((v * y).sum() / v.sum())
        assert found.ess_in[m] == pytest.approx(w.sum() ** 2 / (w @ w))
        assert found.naive[m] == pytest.approx(y[z].mean())
        assert found.small[m] == (min(found.ess_in[m], v.sum() ** 2 / (v @ v)) < 30)


def test_units_that_share_their_luck_widen_the_error():
    log, _ = bernoulli_world(np.random.default_rng(3), 2_000, sessions=20)
    apart, together = propensities(log), propensities(log._replace(unit=(np.arange(2_000) // 20).astype(np.int32)))
    np.testing.assert_allclose(apart.snips.effect, together.snips.effect)
    assert (together.ips.value_in_error > 1.3 * apart.ips.value_in_error).mean() > 0.5


def shown_only(rng, episodes: int) -> Journal:
    """Every episode shows memory 0 with a known chance, and then succeeds more often where that chance is high."""
    p = rng.uniform(0.2, 0.9, episodes)
    z = rng.random(episodes) < p
    y = rng.random(episodes) < 0.2 + 0.6 * p
    log = journal([[0] if one else [] for one in z], y.astype(int), 2)
    return log._replace(propensity=p[z])


def test_an_outcome_model_has_not_seen_what_it_predicts():
    log, _ = bernoulli_world(np.random.default_rng(7), 200)
    held = np.random.default_rng(0).permutation(np.arange(200) % 2) == 0
    other = log._replace(outcome=np.where(held, 1 - log.outcome, log.outcome))
    mine = np.repeat(held, CANDIDATES)
    for before, after in zip(
        *(propensity._model(x, propensity._draws(x)[0], 10.0, 0) for x in (log, other)), strict=True
    ):
        np.testing.assert_array_equal(before[mine], after[mine])
        assert (before[~mine] != after[~mine]).all()


def test_episodes_that_did_not_show_it_count_as_zeros():
    log = shown_only(np.random.default_rng(8), 300)
    weighted = np.zeros(300)
    weighted[log.episode] = (log.outcome[log.episode] == 1) / log.propensity
    found = propensities(log)
    assert found.ips.value_in[0] == pytest.approx(weighted.mean())
    assert found.ips.value_in_error[0] == pytest.approx(weighted.std(ddof=1) / math.sqrt(300))


def test_with_propensities_of_shown_memories_only_values_are_told():
    rng, truth = np.random.default_rng(4), 0.2 + 0.6 * 0.55
    found = [propensities(shown_only(rng, 1_000)) for _ in range(200)]
    for name in ("ips", "snips"):
        values = np.array([getattr(one, name).value_in[0] for one in found])
        said = np.array([getattr(one, name).value_in_error[0] for one in found])
        assert abs(values.mean() - truth) < 5 * values.std(ddof=1) / math.sqrt(200)
        assert abs(said.mean() / values.std(ddof=1) - 1) < 5 / math.sqrt(2 * 200)
    assert np.mean([one.naive[0] for one in found]) > truth + 0.03
    assert found[0].doubly_robust is None
    assert np.isnan(found[0].ips.effect).all()
    assert np.isnan(found[0].ips.value_in[1])
    assert not found[0].small[0]


def test_without_chance_it_refuses():
    log, _ = bernoulli_world(np.random.default_rng(5), 100)
    with pytest.raises(InputError, match="propensity: the log has none"):
        propensities(log._replace(candidates=None))
    sure = log.candidates._replace(propensity=log.candidates.included.astype(float))
    with pytest.raises(InputError, match="propensity: all are 0 or 1"):
        propensities(log._replace(candidates=sure))
    with pytest.raises(InputError, match="propensity: all are 0 or 1"):
        propensities(log._replace(candidates=None, propensity=np.ones(len(log.memory))))


def test_candidates_without_a_draw_are_left_out_and_counted():
    log, _ = bernoulli_world(np.random.default_rng(6), 300)
    of = log.candidates
    sure = np.arange(len(of.memory)) % 10 == 0
    mixed = of._replace(propensity=np.where(sure, 1.0, of.propensity), included=of.included | sure)
    found = propensities(log._replace(candidates=mixed))
    assert found.excluded == sure.sum()
    assert found.candidates.sum() == (~sure).sum()
