import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mwjax import reference, retrieval
from mwjax.retrieval.uniform import _long_floyd

DRAW = jax.jit(retrieval.subset, static_argnums=1)


def words(num_words, lives, seed=0):
    return np.random.default_rng(seed).integers(0, 2**32, (num_words, lives), np.uint32)


@pytest.mark.parametrize(("k", "n"), [(1, 1), (1, 9), (3, 3), (8, 100), (16, 16), (17, 40), (30, 30)])
def test_draws_are_the_reference_draws_and_sets(k, n):
    w = words(k, 200)
    drawn = np.asarray(DRAW(jnp.asarray(w), n))
    assert drawn.dtype == np.int32
    assert all(len(set(column)) == k for column in drawn.T)
    assert drawn.min() >= 0
    assert drawn.max() < n
    assert (drawn == np.stack([reference.subset(column, n) for column in w.T], axis=1)).all()


def test_long_and_short_draws_agree():
    w = jnp.asarray(words(16, 100))
    assert (retrieval.subset(w, 50) == _long_floyd(w, jnp.int32(50))).all()


@pytest.mark.parametrize(("k", "n"), [(3, 7), (8, 12)])
def test_singles_pairs_and_triples_follow_the_hypergeometric_law(k, n):
    lives = 60_000
    drawn = np.asarray(DRAW(jnp.asarray(words(k, lives, 1)), n))
    shown = np.zeros((lives, n), bool)
    shown[np.arange(lives), drawn] = True
    for size in (1, 2, 3):
        p = np.prod([(k - i) / (n - i) for i in range(size)])
        error = np.sqrt(p * (1 - p) / lives)
        for group in itertools.combinations(range(n), size):
            assert abs(shown[:, group].all(axis=1).mean() - p) < 5 * error, group
