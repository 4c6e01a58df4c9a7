"""The simulation equals the plain NumPy loop, integer for integer and field by field."""

import numpy as np
import pytest

from mwjax import engine, reference
from mwjax.config import Config, checkpoint_grid, make_params
from mwjax.registry import ESTIMATORS
from mwjax.types import InputError

COUNTED = ("memory_worth", "beta", "never_updated")  # worth from integers: ranks and labels are exact
CASES = {
    "paper": ({"num_memories": 100, "num_retrieved": 8}, {"num_episodes": 1_500}),
    "one a set": ({"num_memories": 7, "num_retrieved": 1}, {"num_episodes": 400}),
    "all shown": ({"num_memories": 9, "num_retrieved": 9}, {"num_episodes": 200}),
    "long set": (
        {"num_memories": 33, "num_retrieved": 20},
        {"num_episodes": 300, "theta_low": 0.45, "theta_high": 0.5},
    ),
    "one memory": ({"num_memories": 1, "num_retrieved": 1}, {"num_episodes": 30}),
    "listed": (
        {"num_memories": 3, "num_retrieved": 2, "utility": "list"},
        {"num_episodes": 200, "utilities": [0, 1, 0.5]},
    ),
    "narrow": ({"num_memories": 12, "num_retrieved": 3}, {"num_episodes": 200, "utility_low": 0.9, "score_low": 0.0}),
}


@pytest.mark.parametrize("case", CASES)
def test_integers_are_equal_and_floats_agree(case):
    static, traced = CASES[case]
    marks = checkpoint_grid(traced["num_episodes"])
    config = Config(**static, observers=tuple(ESTIMATORS), num_checkpoints=len(marks))
    params = make_params(config, checkpoints=marks, **traced)
    seeds = np.array([0, 1, 2**32 - 1], np.uint32)
    trace = next(engine.run_lives(config, params, seeds, root_seed=2**31 + 5, chunk=4)).trace
    exact = [config.observers.index(name) for name in COUNTED]
    for i, seed in enumerate(seeds):
        life = reference.simulate(config, params, 2**31 + 5, int(seed))
        assert (trace.utility[i] == life.utility).all()
        assert (trace.counts.evidence[i] == life.evidence).all()
        assert (trace.counts.shown[i] == life.evidence).all()
        assert (trace.counts.successes[i] == life.successes).all()
        np.testing.assert_allclose(trace.worth[i], life.worth, rtol=1e-5)
        np.testing.assert_allclose(trace.p_plus[i], life.p_plus, rtol=1e-5)
        found = {name: values[i] for name, values in trace.metrics.items()}
        assert (found["evidence_quantile"] == life.metrics["evidence_quantile"]).all()
        assert (found["label_count"][..., exact] == life.metrics["label_count"][..., exact]).all()
        np.testing.assert_allclose(found["spearman"][:, exact], life.metrics["spearman"][:, exact], atol=1e-6)
        np.testing.assert_allclose(found["rmse"], life.metrics["rmse"], rtol=1e-4, atol=1e-6)
        np.testing.assert_allclose(found["mean_success"], life.metrics["mean_success"], rtol=1e-6)


def test_the_reference_refuses_what_it_does_not_know():
    config = Config(retrieval=lambda config: None)
    with pytest.raises(InputError, match="reference"):
        reference.simulate(config, make_params(Config(), num_episodes=5), 0, 0)
