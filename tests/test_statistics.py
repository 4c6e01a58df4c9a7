"""The simulation against closed forms, at five standard errors of its own."""

import numpy as np
import pytest

from mwjax import engine, theory
from mwjax.config import Config, make_params
from mwjax.types import UTILITY_ONE

SEEDS = np.arange(200)


def simulate(
    seeds=SEEDS, root_seed=11, observers=("memory_worth",), checkpoints=None, metrics=("spearman", "rmse"), **settings
):
    static = {name: settings.pop(name) for name in ("num_memories", "num_retrieved", "utility") if name in settings}
    marks = checkpoints or [settings["num_episodes"]]
    config = Config(**static, observers=observers, num_checkpoints=len(marks), metrics=metrics)
    params = make_params(config, checkpoints=marks, **settings)
    batches = [batch.trace for batch in engine.run_lives(config, params, seeds, root_seed=root_seed)]
    return batches


def gather(batches, read):
    return np.concatenate([read(trace) for trace in batches])


def error(values):
    return values.std(ddof=1) / np.sqrt(len(values))


@pytest.mark.parametrize(
    ("n", "k", "episodes"),
    [(100, 8, 2_000), (100, 3, 2_000), (60, 4, 3_000), (50, 20, 1_000), (200, 10, 2_000), (30, 5, 500)],
)
def test_ranking_follows_the_closed_form(n, k, episodes):
    found = gather(
        simulate(num_memories=n, num_retrieved=k, num_episodes=episodes),
        lambda trace: trace.metrics["spearman"][:, 0, 0],
    )
    assert abs(found.mean() - theory.spearman(n, k, episodes)) < 0.004 + 5 * error(found)


@pytest.mark.parametrize(("utility", "episodes"), [([0.2, 0.9, 0.5], 6), ([0.1, 0.2, 0.9, 0.4], 5)])
def test_one_memory_a_set_against_enumeration(utility, episodes):
    found = gather(
        simulate(
            np.arange(4_000),
            num_memories=len(utility),
            num_retrieved=1,
            utility="list",
            utilities=utility,
            num_episodes=episodes,
        ),
        lambda trace: trace.metrics["spearman"][:, 0, 0],
    )
    assert abs(found.mean() - theory.spearman_by_enumeration(utility, episodes)) < 5 * error(found)


def test_random_scores_cost_precision_only():
    observers = ("memory_worth_score",)
    batches = simulate(observers=observers, num_memories=50, num_retrieved=5, num_episodes=1_000, score_low=0.0)
    found = gather(batches, lambda trace: trace.metrics["spearman"][:, 0, 0])
    expected = theory.spearman(50, 5, 1_000, effective=theory.effective_evidence(0.0))
    assert abs(found.mean() - expected) < 0.004 + 5 * error(found)
    assert abs(found.mean() - theory.spearman(50, 5, 1_000)) > 0.03


def test_success_comes_at_the_mean_utility():
    batches = simulate(metrics=("mean_success",), num_memories=20, num_retrieved=4, num_episodes=1_000)
    rate = gather(batches, lambda trace: trace.metrics["mean_success"][:, -1])
    utility = gather(batches, lambda trace: trace.utility.mean(axis=1) / UTILITY_ONE)
    assert abs((rate - utility).mean()) < 5 * error(rate - utility)


def test_worth_converges_to_p_plus_at_the_root_law():
    marks = [500, 1_000, 2_000, 4_000]
    batches = simulate(checkpoints=marks, num_memories=50, num_retrieved=5, num_episodes=4_000)
    square = gather(batches, lambda trace: np.square(trace.metrics["rmse"][:, :, 0]))
    for found, episodes in zip(square.T, marks, strict=True):
        expected = theory.rmse(50, 5, episodes) ** 2
        assert abs(found.mean() - expected) < 0.01 * expected + 5 * error(found)
    slope = np.polyfit(np.log(marks), np.log(square.mean(axis=0)) / 2, 1)[0]
    assert slope == pytest.approx(-0.5, abs=0.02)


def test_worth_is_centred_on_p_plus_memory_by_memory():
    utilities = np.linspace(0, 1, 12).tolist()
    batches = simulate(
        np.arange(2_000),
        metrics=(),
        num_memories=12,
        num_retrieved=3,
        utility="list",
        utilities=utilities,
        num_episodes=200,
    )
    off = gather(batches, lambda trace: trace.worth[:, 0] - theory.p_plus(utilities, 3))
    assert (np.abs(off.mean(axis=0)) < 5 * off.std(axis=0, ddof=1) / np.sqrt(len(off))).all()
    np.testing.assert_allclose(batches[0].p_plus[0], theory.p_plus(utilities, 3), rtol=1e-5)


def test_utilities_are_uniform_on_their_interval():
    batches = simulate(np.arange(400), metrics=(), num_memories=50, num_retrieved=1, num_episodes=1, utility_low=0.25)
    utility = gather(batches, lambda trace: trace.utility.ravel() / UTILITY_ONE)
    assert utility.min() >= 0.25
    assert utility.max() < 1
    assert abs(utility.mean() - 0.625) < 5 * error(utility)
    assert abs(utility.var() - 0.75**2 / 12) < 5 * error((utility - 0.625) ** 2)
