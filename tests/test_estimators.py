import jax.numpy as jnp
import numpy as np
import pytest

from mwjax import estimators, lanes
from mwjax.config import Config, make_params
from mwjax.types import UTILITY_ONE, Step

CONFIG = Config(num_memories=4, num_retrieved=2)
PARAMS = make_params(CONFIG, num_episodes=10)
EPISODES = [([0, 1], True), ([1, 2], False), ([0, 1], False), ([0, 2], True)]  # memory 3 is never shown
UTILITY = np.array([0.5, 0.25, 1.0, 0.125])
SCORE = np.array([0.5, 1.0, 0.75, 0.5])


def watch(**settings):
    estimator = estimators.counter(CONFIG, **settings)
    state, tally = estimator.init(1), estimators.new_tally(CONFIG, 1)
    for t, (retrieved, success) in enumerate(EPISODES):
        index = jnp.asarray(retrieved, jnp.int32)[:, None]
        step = Step(
            episode=jnp.int32(t),
            context=jnp.zeros(1, jnp.int32),
            retrieved=index,
            utility=jnp.asarray(UTILITY * UTILITY_ONE, jnp.uint32)[index],
            score=jnp.asarray(SCORE, jnp.float32)[index],
            success=jnp.asarray([success]),
        )
        state, tally = estimator.update(PARAMS, state, step), estimators.tally(CONFIG, tally, step)
    counts = estimators.counts(CONFIG, tally)
    return np.asarray(estimator.worth(PARAMS, state, counts))[:, 0], counts


def test_the_integer_counters_by_hand():
    _, counts = watch()
    assert np.asarray(counts.evidence)[:, 0].tolist() == [3, 3, 2, 0]
    assert np.asarray(counts.successes)[:, 0].tolist() == [2, 1, 1, 0]
    assert counts.evidence.dtype == counts.successes.dtype == jnp.int32


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, [2 / 3, 1 / 3, 1 / 2, 0.5]),
        ({"prior": True}, [3 / 5, 2 / 5, 2 / 4, 0.5]),
        ({"weight": "none"}, [0.5] * 4),
        ({"weight": "score"}, [2 / 3, 1 / 3, 1 / 2, 0.5]),  # a constant weight of a memory cancels
        ({"weight": "oracle_raw"}, [2 / 3, 1 / 3, 1 / 2, 0.5]),
        (
            {"weight": "score_normalised"},  # sets weigh 1/3 2/3, 4/7 3/7, 1/3 2/3, 2/5 3/5
            [
                (1 / 3 + 2 / 5) / (1 / 3 + 2 / 5 + 1 / 3),
                (2 / 3) / (2 / 3 + 4 / 7 + 2 / 3),
                (3 / 5) / (3 / 5 + 3 / 7),
                0.5,
            ],
        ),
        (
            {"weight": "oracle"},  # sets weigh 2/3 1/3, 1/5 4/5, 2/3 1/3, 1/3 2/3
            [
                (2 / 3 + 1 / 3) / (2 / 3 + 1 / 3 + 2 / 3),
                (1 / 3) / (1 / 3 + 1 / 5 + 1 / 3),
                (2 / 3) / (2 / 3 + 4 / 5),
                0.5,
            ],
        ),
    ],
)
def test_worth_by_hand(settings, expected):
    worth, _ = watch(**settings)
    np.testing.assert_allclose(worth, expected, rtol=1e-6)


def test_normalised_weights_sum_to_one_and_fall_back_to_one_over_k():
    weight = jnp.asarray([[0.2, 0.0], [0.6, 0.0]], jnp.float32)
    np.testing.assert_allclose(estimators.normalised(weight), [[0.25, 0.5], [0.75, 0.5]], rtol=1e-6)


def test_tables_add_and_take_at_the_right_life():
    values = jnp.arange(12, dtype=jnp.int32).reshape(4, 3)
    index = jnp.asarray([[0, 1, 2], [3, 3, 0]], jnp.int32)
    table = lanes.table(values)
    assert (lanes.take(table, index) == values[index, jnp.arange(3)]).all()
    added = lanes.rows(lanes.add(table, index, jnp.asarray([10, 20, 30], jnp.int32)), 3)
    expected = np.array(values)
    for slot in np.asarray(index):
        expected[slot, range(3)] += [10, 20, 30]
    assert (np.asarray(added) == expected).all()
