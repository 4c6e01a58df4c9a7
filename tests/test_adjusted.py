"""Adjusted worth: the checked values, a dense twin, standard errors by simulation and by formula, labels."""

import math

import numpy as np
import pytest
from scipy import optimize, special, stats

from mwjax.logs.journal import Journal, journal
from mwjax.replay import adjusted
from mwjax.types import InputError


def random_log(rng, episodes=400, memories=12, sizes=(1, 5), b=None) -> Journal:
    """Sets of various sizes; logit of success 0.3 + the sum of b."""
    sets = [rng.choice(memories, rng.integers(*sizes), replace=False) for _ in range(episodes)]
    b = rng.normal(0, 0.5, memories) if b is None else b
    chance = special.expit([0.3 + b[one].sum() for one in sets])
    return journal(sets, (rng.random(episodes) < chance).astype(int), memories)


def dense(log: Journal) -> np.ndarray:
    shown = np.zeros((len(log.outcome), len(log.memories)))
    shown[log.episode, log.memory] = 1
    return shown


def twin(x: np.ndarray, y: np.ndarray, penalty: float) -> tuple[float, np.ndarray]:
    """Intercept and b by a general minimiser of the formula."""
    sign = 2 * y - 1

    def loss(v):
        margin = sign * (v[0] + x @ v[1:])
        slope = -sign * special.expit(-margin)
        value = np.logaddexp(0, -margin).sum() + penalty / 2 * v[1:] @ v[1:]
        return value, np.concatenate([[slope.sum()], x.T @ slope + penalty * v[1:]])

    found = optimize.minimize(loss, np.zeros(x.shape[1] + 1), jac=True, method="BFGS", options={"gtol": 1e-9})
    return found.x[0], found.x[1:]


def test_lineups_give_the_checked_values(stints):
    found = adjusted.adjust(stints, penalty=30)
    b = dict(zip(stints.memories, found.coefficient, strict=True))
    assert (found.rows, found.left_out) == (5_074, 0)
    assert round(found.intercept, 6) == 0.011067
    values = {"p039": 0.2705, "p057": 0.2209, "p082": 0.2124, "p009": 0.022}
    assert {one: round(b[one], 3 if one == "p009" else 4) for one in values} == values
    often = stints.evidence >= 200
    worth = stints.successes / stints.evidence
    assert often.sum() == 108
    assert round(stats.spearmanr(worth[often], found.coefficient[often]).statistic, 3) == 0.709
    alike = [worth[stints.memories.index(one)] for one in ("p009", "p057")]
    assert np.round(alike, 3).tolist() == [0.560, 0.570]


def test_cross_validation_of_the_lineups_says_how_sure_it_is(stints):
    found = adjusted.cross_validate(adjusted.design(stints), grid=(1, 30, 100, 10_000))
    assert found.chosen in (30, 100)
    assert found.excess[0] > 2 * found.standard_error[0]
    assert found.excess[found.penalty == found.chosen] == 0


@pytest.mark.parametrize("penalty", [0.1, 3.0, 100.0])
@pytest.mark.parametrize("limit", [0, 1_000])
def test_the_fit_equals_a_general_minimiser(penalty, limit, monkeypatch):
    monkeypatch.setattr(adjusted, "DENSE", limit)
    log = random_log(np.random.default_rng(1))
    found = adjusted.fit(adjusted.design(log), penalty)
    intercept, b = twin(dense(log), log.outcome.astype(float), penalty)
    np.testing.assert_allclose([found.intercept, *found.coefficient], [intercept, *b], atol=1e-5)


def test_a_steep_log_converges():
    """Success is rare, but for one memory certain: a whole Newton step would go 200 logits and never come back."""
    sets = [[i % 20 == 0, 2 + i % 3] for i in range(2_000)]
    y = [int(0 not in one and i % 3 < 1) for i, one in enumerate(sets)]
    log = journal([[int(m) for m in one] for one in sets], y)
    found = adjusted.fit(adjusted.design(log), 1e-2)
    intercept, b = twin(dense(log), np.array(y, float), 1e-2)
    np.testing.assert_allclose([found.intercept, *found.coefficient], [intercept, *b], atol=1e-3)


def test_two_sides_are_one_row(stints):
    about = adjusted.design(stints)
    assert about.matrix.shape == (5_074, 157)
    assert (about.matrix.sum(axis=1) == 0).all()
    broken = stints._replace(outcome=np.where(np.arange(len(stints.outcome)) < 3, -1, stints.outcome))
    assert adjusted.design(broken).left_out == 4
    assert adjusted.design(broken).matrix.shape[0] == 5_072


def test_of_a_fixed_size_the_average_showing_is_zero():
    log = random_log(np.random.default_rng(2), sizes=(3, 4))
    found = adjusted.adjust(log, penalty=5.0)
    assert abs(found.coefficient.sum()) < 1e-6
    assert abs(np.average(found.relative, weights=log.evidence)) < 1e-9
    assert adjusted.adjust(random_log(np.random.default_rng(2)), penalty=5.0).reference == 0


@pytest.mark.parametrize("sizes", [(1, 5), (3, 4)])
def test_standard_errors_equal_the_inverse_hessian(sizes, monkeypatch):
    log = random_log(np.random.default_rng(3), sizes=sizes)
    found = adjusted.adjust(log, penalty=2.0)
    x = np.column_stack([np.ones(len(log.outcome)), dense(log)])
    p = special.expit(x @ np.array([found.intercept, *found.coefficient]))
    hessian = (x.T * (p * (1 - p))) @ x + np.diag([0] + [2.0] * 12)
    share = log.evidence / log.evidence.sum() if sizes == (3, 4) else np.zeros(12)
    contrast = np.column_stack([np.zeros(12), np.eye(12) - share])
    expected = np.sqrt(np.diag(contrast @ np.linalg.inv(hessian) @ contrast.T))
    np.testing.assert_allclose(found.standard_error, expected, rtol=1e-8)
    inner = hessian[1:, 1:] - np.outer(hessian[0, 1:], hessian[0, 1:]) / hessian[0, 0]
    inflation = np.diag(inner) * np.diag(np.linalg.inv(inner))
    np.testing.assert_allclose(found.variance_inflation, inflation, rtol=1e-8)
    monkeypatch.setattr(adjusted, "DENSE", 0)
    some = adjusted.adjust(log, penalty=2.0, memories=[4, 7])
    np.testing.assert_allclose(some.standard_error[[4, 7]], expected[[4, 7]], rtol=1e-5)
    assert np.isnan(some.standard_error).sum() == 10


def test_intervals_cover_where_effects_follow_the_prior():
    rng, inside = np.random.default_rng(4), []
    for _ in range(60):
        b = rng.normal(0, 0.4, 20)
        found = adjusted.adjust(random_log(rng, 500, 20, b=b), penalty=1 / 0.4**2)
        inside.append(np.abs(found.relative - b) < adjusted.Z_95 * found.standard_error)
    share = np.mean(inside, axis=1)
    assert abs(share.mean() - 0.95) < 5 * share.std(ddof=1) / math.sqrt(60)


def test_rows_that_repeat_do_not_make_it_surer():
    """Every row four times, as one unit: intervals are at least those of the rows once, whose penalty is a quarter."""
    log = random_log(np.random.default_rng(5))
    four = np.repeat(np.arange(400), 4)
    sets = np.split(log.memory, log.start[1:-1])
    longer = journal([sets[i] for i in four], log.outcome[four], 12)
    naive = adjusted.adjust(longer, penalty=8.0)
    honest = adjusted.adjust(longer._replace(unit=four.astype(np.int32)), penalty=8.0)
    once = adjusted.adjust(log, penalty=2.0)
    np.testing.assert_allclose(honest.coefficient, once.coefficient, atol=1e-6)
    assert (honest.standard_error > 1.5 * naive.standard_error).all()
    assert (honest.standard_error > 0.85 * once.standard_error).all()


def test_memories_that_are_never_apart_share_their_worth_and_stay_unsure():
    rng = np.random.default_rng(6)
    sets = [[0, 1] if rng.random() < 0.5 else [2] for _ in range(2_000)]
    log = journal(sets, [int(rng.random() < (0.8 if 0 in one else 0.4)) for one in sets])
    about = adjusted.design(log)
    found = adjusted.fit(about, 4.0)
    assert found.coefficient[0] == pytest.approx(found.coefficient[1], abs=1e-6)
    apart = adjusted.contrast_errors(about, found, np.array([[1.0, -1, 0]]))
    assert apart == pytest.approx(math.sqrt(2 / 4.0), rel=1e-6)  # the prior's
    assert adjusted.adjust(log, penalty=4.0).variance_inflation[0] > 10


def test_labels_by_the_whole_interval():
    found = adjusted.Adjusted(
        penalty=1.0,
        intercept=0.0,
        coefficient=np.array([2.0, -2, 0, 0.6, 2]),
        reference=0.0,
        base_rate=0.5,
        standard_error=np.array([0.1, 0.1, 0.1, 0.3, np.nan]),
        variance_inflation=np.ones(5),
        rows=1,
        left_out=0,
        validation=None,
    )
    assert adjusted.labels(found).tolist() == ["high", "low", "mixed", "uncertain", "uncertain"]
    assert found.worth[0] == pytest.approx(special.expit(2.0))


def test_cross_validation_equals_a_plain_loop():
    log = random_log(np.random.default_rng(7), episodes=120)
    log = log._replace(unit=(np.arange(120) // 2).astype(np.int32))
    about, penalties = adjusted.design(log), (1.0, 10.0)
    found = adjusted.cross_validate(about, folds=3, grid=penalties, seed=5)
    fold = np.random.default_rng(5).permutation(np.arange(60) % 3)[about.unit]
    x, y, loss = dense(log), log.outcome.astype(float), np.zeros((2, 120))
    for out in range(3):
        for i, penalty in enumerate(penalties):
            intercept, b = twin(x[fold != out], y[fold != out], penalty)
            p = special.expit(intercept + x[fold == out] @ b)
            loss[i, fold == out] = -np.log(np.where(y[fold == out] == 1, p, 1 - p))
    np.testing.assert_allclose(found.loss, loss.mean(axis=1), rtol=1e-6)
    worse, best = int(found.loss.argmax()), int(found.loss.argmin())
    difference = (loss[worse] - loss[best]).reshape(60, 2).sum(axis=1)
    assert found.chosen == penalties[best]
    assert found.standard_error[worse] == pytest.approx(difference.std(ddof=1) * math.sqrt(60) / 120, rel=1e-5)


def test_residual_worth_takes_the_base_rate_of_its_context_out():
    sets, y, context = [[0], [1], [0], [1], [0]], [1, 0, 1, 1, 0], [0, 0, 1, 1, -1]
    log = journal(sets, y, 3)._replace(context=np.array(context, np.int32), contexts=("easy", "hard"))
    found = adjusted.residual(log)
    np.testing.assert_allclose(found[:2], [(0.5 + 0 + 0) / 3, (-0.5 + 0) / 2])
    assert np.isnan(found[2])
    assert adjusted.residual(journal(sets, y)).tolist() == pytest.approx([2 / 3 - 0.6, 0.5 - 0.6])


def test_unused_memories_and_unknown_outcomes_do_not_enter():
    log = journal([[0, 1], [1], [0]], [1, 0, -1], 2)
    about = adjusted.design(log._replace(success=np.array([1, -1, 0, -1], np.int8)))
    assert about.matrix.toarray().tolist() == [[1, 0], [0, 1]]
    assert about.left_out == 1


def test_bad_input_is_said_in_one_line():
    with pytest.raises(InputError, match="outcome: 2 successes of 2"):
        adjusted.adjust(journal([[0], [1]], [1, 1]))
    log = random_log(np.random.default_rng(8))
    with pytest.raises(InputError, match="penalty"):
        adjusted.adjust(log, penalty=0)
    with pytest.raises(InputError, match="penalty"):
        adjusted.adjust(log, penalty="best")
    with pytest.raises(InputError, match="folds = 1"):
        adjusted.adjust(log, folds=1)
