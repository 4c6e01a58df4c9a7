"""Retrieval by the softmax of worth against the published table (PAPER.md, experiment 3), 200 lives a row."""

import functools

import numpy as np
import pytest
import xarray

from mwjax import engine
from mwjax.analysis import adaptive
from mwjax.config import Config, make_params

LIVES = 200
TABLE = [
    # tau, eps, floor_mode, rho, its standard error, mean success, median of the least evidence
    (1.0, 0.0, "episode", 0.893, 0.0014, 0.511, 702),
    (1.0, 0.05, "episode", 0.893, 0.0014, 0.511, 703),
    (0.1, 0.0, "episode", 0.752, 0.0044, 0.602, 1),
    (0.1, 0.05, "episode", 0.878, 0.0017, 0.593, 147),
    (0.1, 0.1, "episode", 0.881, 0.0015, 0.590, 202),
    (0.1, 0.1, "slot", 0.888, 0.0016, 0.582, 267),
    (0.05, 0.0, "episode", 0.307, 0.0093, 0.678, 1),
    (0.05, 0.1, "episode", 0.739, 0.0039, 0.694, 73),
    (0.02, 0.0, "episode", 0.136, 0.0072, 0.736, 0),
    (0.02, 0.1, "episode", 0.539, 0.0043, 0.768, 63),
    (0.02, 0.1, "slot", 0.731, 0.0046, 0.750, 92),
]


@functools.cache
def lives(temperature, floor, floor_mode, num_episodes=10_000):
    """One program a floor_mode: the rest is traced."""
    metrics = ("spearman", "evidence_quantile", "mean_success", "compensator")
    config = Config(retrieval="softmax", actor="memory_worth", floor_mode=floor_mode, metrics=metrics)
    params = make_params(config, num_episodes=num_episodes, temperature=temperature, exploration_floor=floor)
    (batch,) = engine.run_lives(config, params, np.arange(LIVES), root_seed=31, chunk=LIVES)
    return batch.trace


def measured(trace):
    """adaptive.measure of a batch of lives."""
    fields = {"evidence": trace.counts.evidence, "successes": trace.counts.successes}
    fields |= {"expected_hits": trace.expected_hits, "p_plus": trace.p_plus}
    return adaptive.measure(xarray.Dataset({name: (("seed", "memory"), x) for name, x in fields.items()}))


def error(values):
    return values.std(ddof=1) / np.sqrt(len(values))


@pytest.mark.parametrize(("tau", "eps", "mode", "rho", "rho_error", "success", "least"), TABLE)
def test_every_row_of_the_table(tau, eps, mode, rho, rho_error, success, least):
    trace = lives(tau, eps, mode)
    found = trace.metrics["spearman"][:, 0, 0]
    assert abs(found.mean() - rho) < 5 * np.hypot(error(found), rho_error)
    assert abs(trace.metrics["mean_success"][:, -1].mean() - success) < 0.015
    fewest = trace.metrics["evidence_quantile"][:, 0, 0]
    np.testing.assert_array_equal(fewest, trace.counts.evidence.min(axis=1))
    reach = 5 * 0.5 * np.sqrt(2 / LIVES)  # of two medians of as many lives, as a change of the quantile
    assert np.quantile(fewest, 0.5 - reach) <= least <= np.quantile(fewest, 0.5 + reach)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]}-{row[1]}-{row[2]}")
def test_hits_are_what_the_compensator_expects(row):
    trace = lives(*row[:3])
    found = measured(trace)["compensator"]
    assert abs(found.mean()) < 5 * error(found)
    assert error(found) < 1  # of hundreds of hits: so the test can tell
    off = trace.counts.successes - trace.expected_hits.astype(np.float64)
    assert abs((off * trace.utility).mean(axis=1).mean()) < 5 * error((off * trace.utility).mean(axis=1))


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]}-{row[1]}-{row[2]}")
def test_evidence_is_shared_out_among_sets_without_repetition(row):
    evidence = lives(*row[:3]).counts.evidence
    assert (evidence.sum(axis=1) == 80_000).all()
    assert (evidence <= 10_000).all()


def test_a_floor_by_slot_ranks_better_than_one_by_episode():
    rho = {mode: lives(0.02, 0.1, mode).metrics["spearman"][:, 0, 0] for mode in ("episode", "slot")}
    gain = rho["slot"] - rho["episode"]
    assert gain.mean() - 0.15 > 5 * error(gain)


def test_static_p_plus_is_not_what_adaptive_counters_estimate():
    """Both are biased: hits / n as adaptive collection makes it (published: -.03, thrice that where rarely shown)."""
    trace = lives(0.05, 0.1, "episode", 3_000)
    found = {name.removeprefix("memory_worth."): values for name, values in measured(trace).items()}
    assert found["coverage_expected"].mean() == pytest.approx(0.95, abs=0.01)
    assert found["coverage_p_plus"].mean() == pytest.approx(0.45, abs=0.05)
    assert found["bias_expected"].mean() == pytest.approx(-0.03, abs=0.006)
    evidence = trace.counts.evidence
    rare = evidence.argsort(axis=1, kind="stable")[:, :25]
    off = (trace.counts.successes - trace.expected_hits) / np.maximum(evidence, 1)
    assert np.take_along_axis(off, rare, axis=1).mean() == pytest.approx(-0.09, abs=0.018)
    for name, sign in {"bias_p_plus": 1, "bias_p_plus_rare": -1}.items():  # good memories meet good companions
        assert sign * found[name].mean() > 0.05 + 5 * error(found[name])


def test_without_a_preference_counters_estimate_the_static_p_plus():
    found = measured(lives(1.0, 0.0, "episode"))
    assert found["memory_worth.coverage_expected"].mean() == pytest.approx(0.95, abs=0.01)
    assert found["memory_worth.coverage_p_plus"].mean() > 0.9
