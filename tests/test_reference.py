"""The simulation equals the plain NumPy loop, integer for integer and field by field."""

import jax
import numpy as np
import pytest

from mwjax import engine, reference
from mwjax.config import METRICS, Config, make_params
from mwjax.registry import ESTIMATORS
from mwjax.types import InputError

COUNTED = ("memory_worth", "beta", "never_updated", "contextual")  # worth from integers: ranks are exact
LONG = {"num_memories": 33, "num_retrieved": 20}
POOLS = {"num_memories": 30, "num_retrieved": 4, "retrieval": "pools", "outcome": "linear", "num_contexts": 2}
POOLS |= {"pool_sizes": (20, 10), "pool_slots": ((4, 0), (2, 2))}
HARD = {"num_episodes": 400, "base_success": [0.78, 0.28], "gain": 0.16, "hard_share": 0.3}
HARD |= {"utility_low": [0, 0.85], "utility_high": [1, 0.85]}
THREE = {**POOLS, "num_contexts": 3, "pool_slots": ((4, 0), (2, 2), (3, 1)), "target_context": 1}
PAIR = {"num_memories": 20, "num_retrieved": 5, "retrieval": "pairs", "num_pairs": 1}
SOFT = {"num_memories": 30, "num_retrieved": 5, "retrieval": "softmax"}
EVERY = ("paper", "narrow")
CASES = {
    "paper": ({"num_memories": 100, "num_retrieved": 8}, {"num_episodes": 600}),
    "one a set": ({"num_memories": 7, "num_retrieved": 1}, {"num_episodes": 400}),
    "all shown": ({"num_memories": 9, "num_retrieved": 9}, {"num_episodes": 200}),
    "long set": (LONG, {"num_episodes": 300, "theta_low": 0.45, "theta_high": 0.5}),
    "one memory": ({"num_memories": 1, "num_retrieved": 1}, {"num_episodes": 30}),
    "listed": (
        {"num_memories": 3, "num_retrieved": 2, "utility": "list"},
        {"num_episodes": 200, "utilities": [0, 1, 0.5]},
    ),
    "narrow": ({"num_memories": 12, "num_retrieved": 3}, {"num_episodes": 200, "utility_low": 0.9, "score_low": 0.0}),
    "beta utilities": (
        {"num_memories": 40, "num_retrieved": 5, "utility": "beta"},
        {"num_episodes": 200, "utility_a": 0.5, "utility_b": 2},
    ),
    "linear": ({"num_memories": 20, "outcome": "linear"}, {"num_episodes": 200, "gain": 3.0, "base_success": 0.3}),
    "best": ({"num_memories": 20, "outcome": "linear_best"}, {"num_episodes": 200, "gain": 0.7}),
    "worst": ({"num_memories": 20, "outcome": "linear_worst"}, {"num_episodes": 200, "gain": 0.7}),
    "logistic": ({"num_memories": 20, "outcome": "logistic"}, {"num_episodes": 200, "gain": 2, "base_success": 0.3}),
    "masked": ({"num_memories": 20, "can_mask": True}, {"num_episodes": 200, "masked": 4}),
    "mask unused": ({"num_memories": 20, "can_mask": True}, {"num_episodes": 100}),
    "difficulty": (POOLS, HARD),
    "difficulty, masked": ({**POOLS, "can_mask": True}, {**HARD, "masked": 22}),
    "difficulty, logistic": ({**POOLS, "outcome": "logistic"}, HARD),
    "three contexts": (
        THREE,
        {"num_episodes": 300, "base_success": [0.9, 0.5, 0.1], "context_share": [0.2, 0.5, 0.3]},
    ),
    "pair": (PAIR, {"num_episodes": 400, "separation": 0.3}),
    "pair, anchor only": ({**PAIR, "separation_mode": "anchor_only"}, {"num_episodes": 300, "separation": 0.6}),
    "pair, always apart": (PAIR, {"num_episodes": 200, "separation": 1.0}),
    "pair, anchor masked": ({**PAIR, "can_mask": True}, {"num_episodes": 300, "masked": 0}),
    "pair, hitchhiker masked": ({**PAIR, "can_mask": True}, {"num_episodes": 300, "masked": 1, "separation": 0.2}),
    "pair, filler masked": ({**PAIR, "can_mask": True}, {"num_episodes": 300, "masked": 9}),
    "pairs": ({**PAIR, "num_pairs": 2}, {"num_episodes": 400, "separation": 0.3}),
    "pairs, masked": ({**PAIR, "num_pairs": 2, "can_mask": True}, {"num_episodes": 400, "masked": 3}),
    "diverse": ({**PAIR, "retrieval": "diverse", "num_pairs": 2}, {"num_episodes": 400, "diversity": 0.25}),
    "softmax": ({**SOFT, "floor_mode": "none"}, {"num_episodes": 400, "temperature": 0.1}),
    "softmax, beta acts": ({**SOFT, "actor": "beta"}, {"num_episodes": 300, "temperature": 0.05}),
    "softmax, weighted actor": ({**SOFT, "actor": "memory_worth_score"}, {"num_episodes": 300, "temperature": 0.2}),
    "softmax, cold": (SOFT, {"num_episodes": 400, "temperature": 0.005, "exploration_floor": 0.1}),
    "softmax, floor a slot": (
        {**SOFT, "floor_mode": "slot"},
        {"num_episodes": 400, "temperature": 0.02, "exploration_floor": 0.1},
    ),
    "softmax, masked": (
        {**SOFT, "floor_mode": "slot", "can_mask": True},
        {"num_episodes": 300, "temperature": 0.05, "exploration_floor": 0.3, "masked": 7},
    ),
    "softmax, all shown": (
        {**SOFT, "num_memories": 5, "floor_mode": "slot"},
        {"num_episodes": 100, "exploration_floor": 1},
    ),
    "softmax, many": ({**SOFT, "num_memories": 700}, {"num_episodes": 200, "temperature": 0.05}),
    "greedy": ({**SOFT, "retrieval": "epsilon_greedy"}, {"num_episodes": 300, "exploration_floor": 0.1}),
    "blend": (
        {**SOFT, "retrieval": "blend"},
        {"num_episodes": 300, "exploration_floor": 0.1, "similarity_weight": 0.3},
    ),
}


SLOW = {
    "paper",
    "softmax, cold",
    "softmax, many",
    "pair, anchor only",
    "pairs, masked",
    "difficulty, masked",
    "softmax, beta acts",
}
"""Their parts are in the others, otherwise combined."""


@pytest.mark.parametrize("case", [pytest.param(one, marks=[pytest.mark.slow] * (one in SLOW)) for one in CASES])
def test_integers_are_equal_and_floats_agree(case):
    static, traced = CASES[case]
    marks = [traced["num_episodes"] // 3, traced["num_episodes"]]
    several = "num_contexts" in static
    watch = (
        ("memory_worth", "contextual", "backdoor", "backdoor_half", "residual") if several else ("memory_worth", "beta")
    )
    watch = tuple(ESTIMATORS) if case in EVERY else watch
    watch = (*watch, static["actor"]) if static.get("actor", watch[0]) not in watch else watch
    static = {"max_evidence": traced["num_episodes"], **static} if case in EVERY else static
    config = Config(**static, observers=watch, num_checkpoints=len(marks), metrics=METRICS)
    params = make_params(config, checkpoints=marks, **traced)
    seeds = np.array([0, 1, 2**32 - 1], np.uint32)
    trace = next(engine.run_lives(config, params, seeds, root_seed=2**31 + 5, chunk=4, devices=jax.devices()[:1])).trace
    exact = [config.observers.index(name) for name in COUNTED if name in watch]
    for i, seed in enumerate(seeds):
        life = reference.simulate(config, params, 2**31 + 5, int(seed), trace.p_plus[i])
        assert (trace.utility[i] == life.utility).all()
        assert (trace.counts.evidence[i] == life.evidence).all()
        assert (trace.counts.shown[i] == life.shown).all()
        assert (trace.counts.successes[i] == life.successes).all()
        assert (trace.counts.episodes[i] == np.bincount(life.context, minlength=config.num_contexts)).all()
        np.testing.assert_allclose(trace.expected_hits[i], life.expected_hits / 2**24, rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(trace.worth[i], life.worth, rtol=1e-5, atol=1e-6)
        found = {name: values[i] for name, values in trace.metrics.items()}
        assert (trace.calibration[i, exact] == life.calibration[exact]).all()
        for name in ("evidence_quantile", "pair_count", "store_size", "active_size"):
            assert (found[name] == life.metrics[name]).all(), name
        assert (found["label_count"][..., exact] == life.metrics["label_count"][..., exact]).all()
        np.testing.assert_allclose(found["spearman"][:, exact], life.metrics["spearman"][:, exact], atol=1e-6)
        np.testing.assert_allclose(found["rmse"], life.metrics["rmse"], rtol=1e-4, atol=1e-6)
        for name in ("mean_success", "starved"):
            np.testing.assert_allclose(found[name], life.metrics[name], rtol=1e-6)


def test_the_reference_refuses_what_it_does_not_know():
    config = Config(retrieval=lambda config: None)
    with pytest.raises(InputError, match="reference"):
        reference.simulate(config, make_params(Config(), num_episodes=5), 0, 0)
