"""Scores of forecasts: histograms against the forecasts themselves, and forecasters whose scores are known."""

import numpy as np
import pytest
from scipy import special

from mwjax.analysis import calibration
from mwjax.analysis.calibration import LEVELS, MIDPOINTS
from mwjax.types import InputError


def histograms(forecast, outcome):
    """count and successes, [..., level], of forecasts and outcomes [..., time]."""
    rows = forecast.reshape(-1, forecast.shape[-1]), outcome.reshape(-1, outcome.shape[-1])
    found = [
        [np.bincount(calibration.level(q), weights, LEVELS) for q, weights in zip(rows[0], weighted, strict=True)]
        for weighted in (np.ones(rows[1].shape), rows[1])
    ]
    return tuple(np.reshape(x, (*forecast.shape[:-1], LEVELS)).astype(np.int64) for x in found)


def drawn(seed, shape, *, calibrated=True):
    rng = np.random.default_rng(seed)
    forecast = rng.beta(2, 3, shape)
    return forecast, rng.random(shape) < (forecast if calibrated else forecast**2)


def assert_mean(values, expected):
    """Within five standard errors over the first axis."""
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert abs(values.mean() - expected) < 5 * error, (values.mean(), expected, error)


def test_levels_are_half_open_and_one_belongs_to_the_last():
    forecast = np.array([0, 1 / 256 - 1e-12, 1 / 256, 0.5, 1 - 1e-12, 1])
    assert calibration.level(forecast).tolist() == [0, 0, 1, 128, 255, 255]
    with pytest.raises(InputError, match=r"forecast is 1.5, not in \[0, 1\]"):
        calibration.level([0.5, 1.5])


def test_scores_equal_their_definitions_on_midpoints():
    forecast, outcome = drawn(0, (3, 4, 500), calibrated=False)
    count, successes = histograms(forecast, outcome)
    m = MIDPOINTS[calibration.level(forecast)]
    assert calibration.brier(count, successes) == pytest.approx(((m - outcome) ** 2).mean(-1), rel=1e-12)
    twin = -np.log(np.where(outcome, m, 1 - m)).mean(-1)
    assert calibration.log_loss(count, successes) == pytest.approx(twin, rel=1e-12)
    for bins in (1, 7, 10, 256):
        where = np.floor(m * bins)
        gaps = [abs(((m - outcome) * (where == i)).sum(-1)) for i in range(bins)]
        assert calibration.ece(count, successes, bins=bins) == pytest.approx(sum(gaps) / 500, rel=1e-9)


def test_reliability_equals_its_definition_bin_by_bin():
    forecast, outcome = drawn(1, 2_000, calibrated=False)
    m = MIDPOINTS[calibration.level(forecast)]
    found = calibration.reliability(*histograms(forecast, outcome), bins=10)
    z = special.ndtri(0.975)
    for i in range(10):
        here = np.floor(m * 10) == i
        n, share = here.sum(), outcome[here].mean()
        assert found.n[i] == n
        assert (found.forecast[i], found.observed[i]) == pytest.approx((m[here].mean(), share), rel=1e-12)
        # The ends of the score interval solve |share - t| = z sqrt(t (1 - t) / n).
        for end, side in ((found.low[i], 1), (found.high[i], -1)):
            assert share - end == pytest.approx(side * z * np.sqrt(end * (1 - end) / n), abs=1e-9)


def test_murphy_decomposition():
    """Brier = reliability - resolution + uncertainty, exactly, as all forecasts of a level are the same."""
    count, successes = histograms(*drawn(2, (5, 3_000), calibrated=False))
    weight = count / count.sum(-1, keepdims=True)
    share, base = successes / np.maximum(count, 1), (successes.sum(-1) / count.sum(-1))[:, None]
    parts = (weight * ((MIDPOINTS - share) ** 2 - (share - base) ** 2)).sum(-1) + (base * (1 - base))[:, 0]
    assert calibration.brier(count, successes) == pytest.approx(parts, rel=1e-12)


def test_midpoints_cost_what_the_module_says():
    uniform = (np.arange(16 * LEVELS) + 0.5) / (16 * LEVELS)  # 16 forecasts a level
    m = MIDPOINTS[calibration.level(uniform)]
    square = (1 / 512) ** 2 / 3 * (1 - 1 / 16**2)  # of 16 even steps; the last factor tends to 1

    def lost(forecast, midpoint, chance):
        """Expected Brier score of the forecasts less that of their midpoints."""
        each = [(chance * (1 - q) ** 2 + (1 - chance) * q**2).mean() for q in (forecast, midpoint)]
        return each[0] - each[1]

    assert lost(uniform, m, uniform) == pytest.approx(-square, rel=1e-9)
    assert lost(uniform, m, m) == pytest.approx(square, rel=1e-9)
    assert lost(uniform, m, 0.3) == pytest.approx(square, rel=1e-9)
    edge = np.array([0.5])  # where Beta(1, 1) starts: the furthest from its midpoint that a calibrated forecast may be
    assert lost(edge, MIDPOINTS[calibration.level(edge)], edge) == pytest.approx(-((1 / 512) ** 2), rel=1e-9)
    for chance in (0.0, 1.0):
        assert abs(lost(np.array([1.0]), MIDPOINTS[-1:], chance)) < 1 / 256
    q = np.linspace(0, 1, 10_001)
    m = MIDPOINTS[calibration.level(q)]
    worst = max(np.abs((q - y) ** 2 - (m - y) ** 2).max() for y in (0, 1))
    assert 0.99 / 256 < worst < 1 / 256


def test_a_calibrated_forecaster_scores_what_it_should():
    forecast, outcome = drawn(3, (200, 2_000))
    count, successes = histograms(forecast, outcome)
    entropy = special.entr(forecast) + special.entr(1 - forecast)
    assert_mean(calibration.log_loss(count, successes) - entropy.mean(-1), 0)
    assert_mean(calibration.brier(count, successes) - (forecast * (1 - forecast)).mean(-1), 0)
    pooled = count.sum(0), successes.sum(0)
    n = calibration.reliability(*pooled).n
    noise = (n * 0.25) ** 0.5  # at most
    assert calibration.ece(*pooled) < (np.sqrt(2 / np.pi) * noise.sum() + 5 * np.sqrt((noise**2).sum())) / n.sum()
    wrong = histograms(*drawn(3, (200, 2_000), calibrated=False))
    assert calibration.ece(wrong[0].sum(0), wrong[1].sum(0)) > 0.1


def prequential(memory, outcome, *, memories):
    """Forecasts (s + 1) / (n + 2) of each memory's own counter, made before each outcome, [life, time]."""
    n, s = np.zeros((2, len(outcome), memories))
    made, life = np.empty(outcome.shape), np.arange(len(outcome))
    for t in range(outcome.shape[1]):
        m = memory[:, t]
        made[:, t] = (s[life, m] + 1) / (n[life, m] + 2)
        n[life, m] += 1
        s[life, m] += outcome[:, t]
    return made


def test_skill_is_positive_only_where_memories_differ():
    rng = np.random.default_rng(4)
    lives, times, memories = 300, 600, 20
    memory = rng.integers(memories, size=(lives, times))
    chance = rng.beta(2, 2, (lives, memories))
    outcome = rng.random((lives, times)) < np.take_along_axis(chance, memory, axis=1)

    def found(outcome):
        own = histograms(prequential(memory, outcome, memories=memories), outcome)
        base = histograms(prequential(np.zeros_like(memory), outcome, memories=1), outcome)
        return calibration.skill(*own, *base)

    real, permuted = found(outcome), found(rng.permuted(outcome, axis=1))
    error = [x.std(ddof=1) / np.sqrt(lives) for x in (real, permuted)]
    assert real.mean() > 5 * error[0]
    assert permuted.mean() <= 5 * error[1]
    # Nothing to learn: twenty counters pay for it twenty times, the pool once.
    assert permuted.mean() < -5 * error[1]


def test_skill_is_one_less_the_ratio_and_wants_the_same_forecasts():
    own = histograms(np.array([0.9, 0.1, 0.9]), np.array([1, 0, 0]))
    base = histograms(np.array([0.5, 0.5, 0.5]), np.array([1, 0, 0]))
    assert calibration.skill(*own, *base) == 1 - calibration.brier(*own) / calibration.brier(*base)
    assert calibration.skill(*base, *base) == 0
    with pytest.raises(InputError, match="base_count has 6 forecasts, not the 3 of count"):
        calibration.skill(*own, 2 * base[0], 2 * base[1])


def test_no_evidence_scores_nan():
    empty = np.zeros((2, LEVELS), np.int64)
    for score in (calibration.brier, calibration.log_loss, calibration.ece):
        assert np.isnan(score(empty, empty)).tolist() == [True, True]
    assert np.isnan(calibration.skill(empty, empty, empty, empty)).all()
    one = calibration.reliability(*histograms(np.array([0.55, 0.55]), np.array([1, 0])))
    assert one.n.tolist() == [0, 0, 0, 0, 0, 2, 0, 0, 0, 0]
    for name in ("forecast", "observed", "low", "high"):
        assert np.isfinite(getattr(one, name)).tolist() == (one.n > 0).tolist(), name


def test_a_failed_certainty_costs_ln_512():
    certain = histograms(np.array([1.0]), np.array([0]))
    assert calibration.log_loss(*certain) == pytest.approx(np.log(512))


def test_histograms_are_checked():
    empty = np.zeros(LEVELS)
    with pytest.raises(InputError, match=r"not both \[..., 256\]"):
        calibration.brier(np.zeros(10), np.zeros(10))
    with pytest.raises(InputError, match=r"successes 1 of count 0 are not in 0 .. count"):
        calibration.brier(empty, np.eye(LEVELS)[7])
    for bins in (0, 257):
        with pytest.raises(InputError, match=rf"bins is {bins}, not in 1 .. 256"):
            calibration.ece(empty, empty, bins=bins)
