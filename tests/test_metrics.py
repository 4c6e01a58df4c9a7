import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from mwjax import metrics
from mwjax.config import Config, make_params

PARAMS = make_params(Config(), num_episodes=10)


def correlate(x, y):
    ranks = [metrics.order(jnp.asarray(v, jnp.float32)).ranks() for v in (x, y)]
    return np.asarray(metrics.spearman(*ranks))


@pytest.mark.parametrize("size", [2, 3, 100, 512, 513, 1100])
@pytest.mark.parametrize("levels", [3, 50, 10**6])
def test_spearman_equals_scipy(size, levels):
    rng = np.random.default_rng(size + levels)
    x, y = rng.integers(0, levels, (2, size, 3)) / levels
    x[0], x[1] = 0, 1  # never constant
    y[0], y[1] = 1, 0
    expected = [stats.spearmanr(a.astype(np.float32), b.astype(np.float32))[0] for a, b in zip(x.T, y.T, strict=True)]
    np.testing.assert_allclose(correlate(x, y), expected, atol=1e-6)


def test_spearman_of_a_constant_is_zero():
    x = np.linspace(0, 1, 5)[:, None]
    assert correlate(np.full((5, 1), 0.5), x) == 0
    assert correlate(x, np.full((5, 1), 0.5)) == 0
    assert correlate(x[:1], x[:1]) == 0


def test_ranks_by_pairs_and_by_sorting_agree(monkeypatch):
    x = jnp.asarray(np.random.default_rng(0).integers(0, 20, (60, 4)), jnp.int32)
    pairs = metrics.order(x)
    monkeypatch.setattr(metrics, "PAIRWISE_MEMORIES", 0)
    for a, b in zip(pairs, metrics.order(x), strict=True):
        assert (a == b).all()
    ranks = stats.rankdata(np.asarray(x), axis=0)
    assert (np.asarray(pairs.ranks()) == 2 * ranks - 61).all()


@pytest.mark.parametrize("size", [1, 2, 10, 101])
def test_quantiles_are_order_statistics(size):
    x = np.random.default_rng(size).integers(0, 9, (size, 5)).astype(np.int32)
    found = metrics.quantiles(jnp.asarray(x), metrics.order(jnp.asarray(x)))
    assert (np.asarray(found) == np.quantile(x, metrics.QUANTILES, axis=0, method="lower")).all()


def test_labels_at_their_edges():
    worth = jnp.asarray([[0.4], [0.40001], [0.6], [0.59999], [0.9], [0.1]], jnp.float32)
    evidence = jnp.asarray([[10], [10], [10], [10], [9], [10]], jnp.int32)
    labels = metrics.label(PARAMS, worth, evidence)
    assert np.asarray(labels)[:, 0].tolist() == [0, 1, 2, 1, 3, 0]
    truth = jnp.asarray([[0], [1], [1], [2], [2], [1]], jnp.int32)
    expected = np.zeros((3, 4), int)
    np.add.at(expected, (np.asarray(truth)[:, 0], np.asarray(labels)[:, 0]), 1)
    assert (np.asarray(metrics.label_count(labels[None], truth[None]))[0, :, :, 0, 0] == expected).all()


def test_rmse():
    worth, p_plus = jnp.asarray([[0.1], [0.5]], jnp.float32), jnp.asarray([[0.4], [0.1]], jnp.float32)
    np.testing.assert_allclose(metrics.rmse(worth, p_plus), np.sqrt((0.09 + 0.16) / 2), rtol=1e-6)
