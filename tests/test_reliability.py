"""Forecasts of a log before its outcomes: the counters behind them by a plain loop, their scores by known numbers."""

import json
import math
from pathlib import Path

import numpy as np
import pytest

from mwjax.logs.journal import Journal, journal
from mwjax.replay.reliability import (
    CLOCKS,
    base_rate,
    counters,
    forecasts,
    mean_and_error,
    permute,
    reliability,
)
from mwjax.types import InputError

WNBA = Path(__file__).parents[2] / "shared" / "data" / "wnba_2024_lineups.jsonl"


def world(
    seed: int, episodes: int = 3_000, memories: int = 100, retrieved: int = 8, *, reverse: bool = False
) -> tuple[np.ndarray, Journal]:
    """Uniform retrieval, Pr[success] = mean utility; with `reverse` every utility U is 1 - U in the second half."""
    rng = np.random.default_rng(seed)
    utility = rng.random(memories)
    sets = np.argpartition(rng.random((episodes, memories)), retrieved, axis=1)[:, :retrieved]
    chance = utility[sets].mean(axis=1)
    if reverse:
        chance[episodes // 2 :] = 1 - chance[episodes // 2 :]
    return utility, journal(sets, (rng.random(episodes) < chance).astype(np.int8), memories)


@pytest.fixture(scope="module")
def wnba() -> Journal:
    if not WNBA.exists():
        pytest.skip("the log is not here")
    names: dict[str, int] = {}
    rows = [json.loads(line) for line in WNBA.read_text().splitlines()]
    sets = [[names.setdefault(one, len(names)) for one in row["retrieved"]] for row in rows]
    unit = np.arange(len(rows), dtype=np.int32) // 2  # the two sides of a stint
    return journal(sets, [row["outcome"] for row in rows])._replace(memories=tuple(names), unit=unit)


def awkward(seed: int) -> Journal:
    """Units of several episodes, unknown outcomes, verdicts of single memories, sets of unequal size, uneven times."""
    rng = np.random.default_rng(seed)
    sets = [rng.permutation(9)[: rng.integers(1, 5)] for _ in range(120)]
    made = journal(sets, rng.integers(-1, 2, 120), 10)  # memory 9 is never shown
    own = np.where(rng.random(len(made.memory)) < 0.2, rng.integers(-1, 2, len(made.memory)), made.success)
    unit = np.cumsum(rng.random(120) < 0.6).astype(np.int32)
    return made._replace(success=own.astype(np.int8), unit=unit - unit[0], time=np.cumsum(rng.random(120) * 3))


def by_loop(about: Journal, half_life: float, clock: str) -> np.ndarray:
    """Counters (successes, evidence) of every entry before its unit, one observation after the other."""
    seen: dict[int, list[tuple[int, int]]] = {}  # memory -> (episode, success)
    found, waiting = np.zeros((2, len(about.memory))), []
    for episode in range(len(about.outcome)):
        if episode and about.unit[episode] != about.unit[episode - 1]:
            for memory, what in waiting:
                seen.setdefault(memory, []).append(what)
            waiting = []
        first = episode
        while first and about.unit[first - 1] == about.unit[episode]:
            first -= 1
        for entry in range(about.start[episode], about.start[episode + 1]):
            memory = int(about.memory[entry])
            mine = seen.get(memory, [])
            # the counters are those at the memory's first entry in the unit
            again = [e for e in range(first, episode) if memory in about.memory[about.start[e] : about.start[e + 1]]]
            now = again[0] if again else episode
            for rank, (then, success) in enumerate(reversed(mine)):
                times = about.time if about.time is not None else np.zeros(0)
                age = {
                    "observation": rank,
                    "step": now - 1 - then,
                    "time": times[now] - times[then] if clock == "time" else 0,
                    "last_outcome": now - 1 - mine[-1][0],
                }[clock]
                found[:, entry] += np.array([success, 1]) * 0.5 ** (age / half_life)
            if about.success[entry] >= 0:
                waiting.append((memory, (episode, int(about.success[entry]))))
    return found


@pytest.mark.parametrize("clock", CLOCKS)
@pytest.mark.parametrize("half_life", [3.0, math.inf])
def test_counters_are_those_of_a_plain_loop(clock, half_life):
    for seed in range(3):
        about = awkward(seed)
        np.testing.assert_allclose(np.stack(counters(about, half_life, clock)), by_loop(about, half_life, clock))


def test_counters_that_never_forget_are_whole():
    about = awkward(1)
    for one in counters(about):
        np.testing.assert_array_equal(one, np.round(one))


def test_a_clock_of_time_needs_times():
    with pytest.raises(InputError, match="time"):
        counters(journal([[0], [1]], [1, 0]), 5.0, "time")


def test_the_future_changes_no_forecast():
    about = awkward(4)
    cut = int(about.start[60])
    other = about._replace(
        outcome=np.concatenate([about.outcome[:60], 1 - np.abs(about.outcome[60:])]).astype(np.int8),
        success=np.concatenate([about.success[:cut], 1 - np.abs(about.success[cut:])]).astype(np.int8),
    )
    until = int(np.flatnonzero(about.unit == about.unit[60])[0]) + 1
    for forecaster in ("mean_worth", "calibrated"):
        before, after = (forecasts(one, forecaster, (1.0, 1.0)) for one in (about, other))
        np.testing.assert_array_equal(before[:until], after[:until])
        assert (before[until:] != after[until:]).any()


def test_the_players_of_2024(wnba):
    found = reliability(wnba, permuted=10)
    assert (found.episodes, found.units) == (10_148, 5_074)
    assert found.base_brier == 0.25  # one side wins, one loses
    assert f"{found.skill:+.4f}" == "+0.0002"
    assert f"{found.permuted_skill:+.3f}" == "-0.006"
    assert found.skill_interval[0] < 0 < found.skill_interval[1]
    known = (wnba.successes + 1) / (wnba.evidence + 2)
    in_sample = known[wnba.memory].reshape(-1, 5).mean(axis=1)
    assert f"{1 - ((in_sample - wnba.outcome) ** 2).mean() / 0.25:+.4f}" == "+0.0116"


def test_calibration_undoes_the_dilution():
    """With the prior of the law itself, a mean of worths says k times too little (theory.dilution)."""
    logs = [world(seed)[1] for seed in range(8)]
    diluted, calibrated = (
        np.array([reliability(one, forecaster=name, prior=(110.0, 110.0), permuted=0).skill for one in logs])
        for name in ("mean_worth", "calibrated")
    )
    assert (calibrated > 0).all()
    assert calibrated.mean() > 2 * diluted.mean()


def test_permuted_outcomes_leave_no_skill():
    rng, skills = np.random.default_rng(3), []
    for seed in range(30):
        again = permute(world(seed)[1], rng)
        skills.append([reliability(again, forecaster=one, permuted=0).skill for one in ("mean_worth", "calibrated")])
    assert (np.mean(skills, axis=0) < 0).all()


def test_permuting_keeps_what_units_hold():
    about = awkward(2)._replace(unit=np.arange(120, dtype=np.int32) // 4)
    full = about._replace(outcome=(np.arange(120) // 4 % 2).astype(np.int8))
    again = permute(full, np.random.default_rng(0))
    assert again.outcome.sum() == full.outcome.sum()
    assert (again.outcome.reshape(-1, 4) == again.outcome.reshape(-1, 4)[:, :1]).all()
    assert (again.outcome != full.outcome).any()
    np.testing.assert_array_equal(again.success < 0, about.success < 0)


def test_the_error_of_a_mean_is_that_of_its_blocks():
    rng = np.random.default_rng(5)
    steps = rng.normal(size=(400, 900))
    errors = np.array([mean_and_error(one, np.arange(900))[:2] for one in steps])
    assert abs(errors[:, 1].mean() - 1 / 30) < 5 * errors[:, 1].std() / 20
    assert abs(errors[:, 0].std() * 30 - 1) < 5 / math.sqrt(2 * 400)
    shared = np.repeat(steps[:, :300], 3, axis=1)  # units of three equal values
    wide = [mean_and_error(one, np.repeat(np.arange(300), 3))[1] for one in shared]
    assert abs(np.mean(wide) * math.sqrt(300) - 1) < 5 * np.std(wide) * math.sqrt(300) / 20
    drift = steps + np.linspace(0, 3, 900)
    still = [mean_and_error(one, np.arange(900), drifts=True)[1] for one in drift]
    assert 0.95 < np.mean(still) * 30 < 1.15
    assert np.mean([mean_and_error(one, np.arange(900))[1] for one in drift]) * 30 > 4


def test_too_little_to_score():
    with pytest.raises(InputError, match="known outcome: 1"):
        reliability(journal([[0], [1], [0]], [1, -1, -1]))
    assert base_rate(journal([[0], [1]], [1, 0])).tolist() == [0.5, 2 / 3]
