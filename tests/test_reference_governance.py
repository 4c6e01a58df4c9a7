"""Drift, births, reports, counters that forget, rosters and rules equal the plain NumPy loop, integer for integer."""

import functools

import jax
import numpy as np
import pytest

from mwjax import engine, reference
from mwjax.config import Config, make_params

METRICS = ("spearman", "evidence_quantile", "mean_success", "starved", "store", "calibration", "compensator")
SEEDS, ROOT = np.array([0, 1, 77, 2**32 - 1], np.uint32), 2**31 + 5
FORGETFUL = ("discounted", "discounted_beta", "discounted_step", "last_outcome", "windowed", "cusum", "cusum_reset")
DRIFT = {"drift_share": 0.5, "drift_utility": 0.1, "switch_at": 120}
NOISE = {"flip_prob": 0.1, "observe_success": 0.9, "observe_failure": 0.7, "unused_prob": 0.2}
BIRTHS = {"num_initial": 10, "birth_every": 40}
FADES = {"discount": 0.95, "half_life": 60.0, "cusum_limit": 1.5, "cusum_good": 0.55, "cusum_bad": 0.4}
THRESHOLD = {"rule": "threshold", "theta": 0.45, "min_evidence": 8}
SUPPRESS = {"governance": "suppress", "restores": True}
SCANS = {**SUPPRESS, "scans": True}
BACK = {"hysteresis": 0.05, "exploration_floor": 0.3}
WATCHED = ("lifetime", *FORGETFUL, "truth")
WATCHERS = [f"threshold:theta=0.45,min_evidence=6,counter={name}" for name in WATCHED]

CASES = {  # static fields, traced values
    "births, no rule": (
        {"retrieval": "softmax", "floor_mode": "slot", "births": True},
        {**BIRTHS, "temperature": 0.1, "exploration_floor": 0.3},
    ),
    "at once, drift and births": (
        {"governance": "deprecate", "drifts": True, "births": True, "watched": ("lifetime",) * 2},
        {**THRESHOLD, **DRIFT, **BIRTHS, "watchers": ["beta:theta=0.48", "wilson_upper:theta=0.6"]},
    ),
    "softmax acts on what it forgets": (
        {"retrieval": "softmax", "actor": "discounted", "counter": "discounted", "births": True, "noisy": True}
        | {"delay": 7, "drifts": True, **SCANS},
        {**DRIFT, **NOISE, **BIRTHS, **FADES, **THRESHOLD, **BACK, "temperature": 0.1, "decide_every": 5},
    ),
    "softmax at once, alarms": (
        {"retrieval": "softmax", "floor_mode": "slot", "counter": "cusum", "drifts": True, "governance": "suppress"}
        | {"actor": "cusum_reset", "observers": FORGETFUL},
        {**DRIFT, **FADES, **THRESHOLD, "drift_span": 90, "temperature": 0.2, "exploration_floor": 0.4},
    ),
    "softmax without floor, windows": (
        {"retrieval": "softmax", "floor_mode": "none", "counter": "windowed", "actor": "windowed", "window": 37}
        | {"drifts": True, **SCANS},
        {**DRIFT, **FADES, **THRESHOLD, "temperature": 0.3, "hysteresis": 0.02, "drift_utility": 0.0},
    ),
    "greedy": (
        {"retrieval": "epsilon_greedy", "actor": "discounted_beta", "counter": "discounted_step", "delay": 3}
        | {"noisy": True, **SUPPRESS},
        {**NOISE, **FADES, **BACK, "rule": "beta", "theta": 0.5, "delta": 0.2},
    ),
    "blend": (
        {"retrieval": "blend", "actor": "last_outcome", "counter": "last_outcome", "births": True, "delay": 2}
        | {"governance": "deprecate", "scans": True},
        {**BIRTHS, **FADES, **THRESHOLD, "exploration_floor": 0.3, "decide_every": 3, "num_initial": 6},
    ),
    "relative": (
        {"theta_mode": "relative", "noisy": True, "unused_as": "outcome", **SCANS},
        {**THRESHOLD, **BACK, **NOISE, "theta": 0.9, "decide_every": 4},
    ),
    "quantile": (
        {"theta_mode": "quantile", "births": True, "drifts": True, **SCANS},
        {**THRESHOLD, **BACK, **BIRTHS, **DRIFT, "theta": 0.3, "min_evidence": 3, "hysteresis": 0.1},
    ),
    "quantile of what is forgotten": (
        {"theta_mode": "quantile", "counter": "discounted", "retrieval": "softmax", **SCANS},
        {**THRESHOLD, **BACK, **FADES, "theta": 0.25, "temperature": 0.5, "decide_every": 2},
    ),
    "every context": (
        {"num_contexts": 3, "num_contextual": 9, "scope": "every_context", "outcome": "linear", "noisy": True}
        | {"delay": 1, "retrieval": "softmax", **SUPPRESS},
        {**THRESHOLD, **BACK, "observe_prob": [1.0, 0.6, 0.1], "theta": 0.5, "min_evidence": 5, "temperature": 0.5},
    ),
    "fitted prior": (
        {"refits": True, "scans": True, "governance": "deprecate", "births": True},
        {**BIRTHS, "rule": "empirical_bayes", "theta": 0.46, "delta": 0.3, "decide_every": 7},
    ),
    "truth": (
        {"counter": "truth", "drifts": True, "retrieval": "softmax", "outcome": "noisy_or", "noisy": True, **SCANS},
        {**THRESHOLD, **BACK, **DRIFT, **NOISE, "drift_span": 100, "decide_every": 10, "temperature": 0.3}
        | {"drift_share": 1.0, "drift_utility": 0.5},
    ),
    "watching": (
        {"drifts": True, "noisy": True, "delay": 2, "observers": FORGETFUL, "watched": WATCHED},
        {**DRIFT, **NOISE, **FADES, "watchers": WATCHERS, "prior_a": 0.7},
    ),
    "held back": (
        {"num_memories": 24, "num_retrieved": 18, "num_contexts": 2, "num_contextual": 4, **SUPPRESS},
        {**THRESHOLD, **BACK, "theta": 0.52, "min_evidence": 20, "hysteresis": 0.0},
    ),
}


def made(case):
    static, traced = CASES[case]
    rule, marks = static.get("governance") is not None or "watched" in static, [101, 300]
    static = {"num_memories": 20, "num_retrieved": 3, **static}
    names = ("memory_worth", *{static.get("actor"), static.get("counter")}.difference({None, "truth", "lifetime"}))
    static = {"observers": tuple(sorted(names)), "max_evidence": marks[-1], **static}
    config = Config(num_checkpoints=len(marks), metrics=METRICS, **static)
    return config, make_params(config, checkpoints=marks, num_episodes=marks[-1], **traced), rule


@functools.cache
def traces(case):
    config, params, _ = made(case)
    return next(engine.run_lives(config, params, SEEDS, root_seed=ROOT, chunk=4, devices=jax.devices()[:1])).trace


def assert_equal(config, rule, trace, life):
    """Every integer of a life, and every float to rounding."""
    assert (trace.counts.shown == life.shown).all()
    assert (trace.counts.evidence == life.evidence).all()
    assert (trace.counts.successes == life.successes).all()
    assert (trace.counts.episodes == life.episodes.sum(1)).all()
    assert (trace.counts.episode_successes == life.episodes[:, 1]).all()
    assert trace.health.held_back == life.held_back
    assert not rule or (trace.decisions == life.decisions).all()
    assert not config.drifts or (trace.shown_at == life.shown_at).all()
    assert (trace.calibration == life.calibration).all()
    assert trace.calibration.sum() == life.evidence.sum() * (len(config.observers) + 1)
    whole, rest = divmod(life.expected_hits, 2**24)
    assert (trace.expected_hits == whole.astype(np.float32) + rest.astype(np.float32) * np.float32(2**-24)).all()
    for name in ("store_size", "active_size", "evidence_quantile"):
        assert (trace.metrics[name] == life.metrics[name]).all(), name
    for name in ("kept_utility", "spearman", "mean_success", "starved"):
        np.testing.assert_allclose(trace.metrics[name], life.metrics[name], rtol=1e-5, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(trace.worth, life.worth, rtol=1e-5)


SLOW = {
    "births, no rule", "softmax without floor, windows", "greedy", "relative", "quantile", "every context", "held back"
}  # fmt: skip
"""Their parts are in the others, otherwise combined."""


@pytest.mark.parametrize("case", [pytest.param(one, marks=[pytest.mark.slow] * (one in SLOW)) for one in CASES])
def test_integers_are_equal(case):
    config, params, rule = made(case)
    batch, decided, restored = traces(case), 0, 0
    for i, seed in enumerate(SEEDS):
        life = reference.simulate(config, params, ROOT, int(seed))
        assert_equal(config, rule, jax.tree.map(lambda x, i=i: x[i], batch), life)
        if config.refits:  # products feed sums in this float32 formula
            np.testing.assert_allclose(batch.metrics["prior_strength"][i], life.metrics["prior_strength"], rtol=1e-3)
        if rule:
            decided += (life.decisions >= 0).any(1).sum(1)
            restored += ((life.decisions[0, 0] >= 0) & (life.status == 0)).sum()
    assert not rule or np.all(decided > 0)
    assert not config.restores or restored or config.floor_mode == "none"  # nothing that is suppressed is shown again
    assert case != "held back" or batch.health.held_back.any()


def test_a_life_does_not_depend_on_its_batch():
    config, params, _ = made("softmax acts on what it forgets")
    alone = next(engine.run_lives(config, params, SEEDS[2:3], root_seed=ROOT, chunk=1, devices=jax.devices()[:1])).trace
    batch = traces("softmax acts on what it forgets")
    assert batch.health.held_back[2] != batch.health.held_back[3]
    jax.tree.map(
        lambda x, y: np.testing.assert_allclose(x[0], y[2], rtol=0 if x.dtype.kind in "iu" else 1e-6), alone, batch
    )


def test_lives_of_a_batch_may_decide_at_different_times():
    config, params, _ = made("fitted prior")
    every = np.array([7, 200, 64, 3], np.int32)
    axes = jax.tree.map(lambda _: None, params)
    axes = axes._replace(rules=axes.rules._replace(decide_every=0))
    keys = jax.random.wrap_key_data(np.stack([np.full(4, ROOT, np.uint32), SEEDS], axis=1))
    lives = jax.jit(jax.vmap(functools.partial(engine.simulate, config), (axes, 0)))
    batch = lives(params._replace(rules=params.rules._replace(decide_every=every)), keys)
    for i, (seed, one) in enumerate(zip(SEEDS, every, strict=True)):
        rules = params.rules._replace(decide_every=one)
        life = reference.simulate(config, params._replace(rules=rules), ROOT, int(seed))
        assert_equal(config, True, jax.tree.map(lambda x, i=i: np.asarray(x[i]), batch), life)
        np.testing.assert_allclose(batch.metrics["prior_strength"][i], life.metrics["prior_strength"], rtol=1e-3)
