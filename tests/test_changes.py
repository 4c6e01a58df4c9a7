"""Change points: the scan equals a plain loop, alarms falsely no more often than said, and finds a reversal."""

import math

import numpy as np
import pytest

from mwjax.logs.journal import journal
from mwjax.replay.changes import changes
from mwjax.types import InputError


def kl(p: float, q: float) -> float:
    part = lambda a, b: 0.0 if a == 0 else a * math.log(a / b)
    return part(p, q) + part(1 - p, 1 - q)


def plain(y: list[int]) -> tuple[int, float]:
    """(Outcomes before the best split, its statistic) by the formula."""
    n, mean = len(y), sum(y) / len(y)
    found = [
        (s * kl(sum(y[:s]) / s, mean) + (n - s) * kl(sum(y[s:]) / (n - s), mean), -s)
        for s in range(1, n)
        if 0 < mean < 1
    ]
    value, s = max(found, default=(0.0, 0))
    return -s, value


def streams(*outcomes):
    """A log in which every episode shows one memory, in turn."""
    order = [(t, m) for m, y in enumerate(outcomes) for t in range(len(y))]
    order.sort()
    return journal([[m] for _, m in order], [outcomes[m][t] for t, m in order], len(outcomes))


def test_one_change_equals_a_plain_loop():
    rng = np.random.default_rng(1)
    outcomes = [(rng.random(60) < np.where(np.arange(60) < 25 + m, 0.95, 0.1)).astype(int).tolist() for m in range(8)]
    log = streams(*outcomes)
    found = changes(log)
    assert found.memory.tolist() == list(range(8))
    for i, y in enumerate(outcomes):
        s, value = plain(y)
        assert found.statistic[i] == pytest.approx(value, abs=1e-9)
        assert found.threshold[i] == pytest.approx(math.log(3 * 60**1.5 / 0.05))
        assert (found.evidence_before[i], found.evidence_after[i]) == (s, 60 - s)
        assert (found.rate_before[i], found.rate_after[i]) == pytest.approx((np.mean(y[:s]), np.mean(y[s:])))
        assert found.episode[i] == np.flatnonzero(log.memory == i)[s]


def test_both_changes_of_a_memory_are_found_in_order():
    found = changes(streams([1] * 40 + [0] * 40 + [1] * 40, [1, 0] * 60)._replace(time=np.arange(240.0) * 10))
    assert found.memory.tolist() == [0, 0]
    assert found.evidence_before.tolist() == [40, 40]
    assert found.evidence_after.tolist() == [40, 40]
    assert found.rate_before.tolist() == [1, 0]
    assert found.time.tolist() == [800.0, 1600.0]


def test_false_alarms_are_rarer_than_delta():
    rng, memories = np.random.default_rng(2), 4_000
    for rate, length in ((0.5, 60), (0.02, 200), (0.9, 20)):
        y = rng.random((length, memories)) < rate
        log = journal([[m] for m in range(memories)] * length, y.ravel().astype(int), memories)
        alarms = len(np.unique(changes(log, delta=0.2).memory))
        assert alarms / memories < 0.2 + 5 * math.sqrt(0.2 * 0.8 / memories)
        assert len(np.unique(changes(log, delta=1).memory)) < memories * 0.5


def test_a_reversal_is_found_near_its_place():
    rng, memories, length = np.random.default_rng(3), 500, 200
    rate = np.where(np.arange(length) < length // 2, 0.8, 0.2)[:, None]
    y = rng.random((length, memories)) < rate
    log = journal([[m] for m in range(memories)] * length, y.ravel().astype(int), memories)
    found = changes(log)
    assert len(np.unique(found.memory)) > 0.99 * memories
    assert abs(np.median(found.episode // memories) - length // 2) <= 1
    assert (found.rate_after < found.rate_before).mean() > 0.95


def test_outcomes_that_are_not_known_do_not_count():
    y = [1] * 30 + [0] * 30
    plain_log, gaps = streams(y), journal([[0]] * 120, np.stack([y, [-1] * 60], axis=1).ravel(), 1)
    assert changes(gaps).statistic.tolist() == changes(plain_log).statistic.tolist()
    assert changes(gaps).episode.tolist() == [60]


def test_an_empty_log_has_no_changes():
    assert len(changes(journal([], [], 3)).memory) == 0


def test_delta_is_checked():
    with pytest.raises(InputError, match="delta = 2"):
        changes(streams([1, 0]), delta=2)
