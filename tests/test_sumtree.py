"""The sum tree against a plain NumPy loop over one life: the same words must give the same bits."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from mwjax import streams, sumtree

LOWEST, HIGHEST = -37, 30  # powers of ten of the weights


def total(values):
    return np.add.accumulate(values, dtype=np.float32)[-1]


def levels_of(tree, life):
    """The levels of one life, from a tree of NumPy arrays."""
    *tables, top = tree.levels
    return [*(table.reshape(top.shape[1], -1)[life].copy() for table in tables), top[:, life].copy()]


def put(levels, memory, weight):
    levels[0][memory] = weight
    for below, above in itertools.pairwise(levels):
        fan = len(below) // len(above)
        memory //= fan
        above[memory] = total(below[memory * fan : (memory + 1) * fan])


def pick(levels, word):
    x = np.float32(int(word) >> 8) * np.float32(2**-24) * total(levels[-1])
    node, start = 0, np.float32(0)
    for level, above in zip(reversed(levels), [levels[-1][:1], *reversed(levels[1:])], strict=True):
        fan = len(level) // len(above)
        rows = level[node * fan : (node + 1) * fan]
        line = np.add.accumulate([start, *rows], dtype=np.float32)[:-1]
        child = np.flatnonzero((rows > 0) & (line <= x))[-1]
        node, start = node * fan + child, line[child]
    return node


def plain_build(weights):
    leaves = np.pad(weights, (0, -len(weights) % math.prod(sumtree.fans(len(weights)))))
    levels = [leaves]
    for fan in sumtree.fans(len(weights)):
        levels.append(np.array([total(children) for children in levels[-1].reshape(-1, fan)]))
    return levels


def equal(levels, others):
    return all(np.array_equal(one, other) for one, other in zip(levels, others, strict=True))


def random_weights(generator, shape):
    return (10.0 ** generator.uniform(LOWEST, HIGHEST, shape)).astype(np.float32)


def random_words(generator, shape):
    """Uniform, the extremes more often."""
    words, kind = generator.integers(0, 2**32, shape, np.uint32), generator.random(shape)
    return np.where(kind < 0.05, 0, np.where(kind > 0.95, 2**32 - 1, words)).astype(np.uint32)


@jax.jit
def episodes(weights, words, fresh):
    """weights [memory, life], words and fresh [episode, k, life] -> tree, (drawn, tree after draw, after update)."""

    def episode(tree, xs):
        drawn, without = sumtree.draw(tree, xs[0])
        after = sumtree.update(without, drawn, xs[1])
        return after, (drawn, without, after)

    tree = sumtree.build(weights)
    return tree, jax.lax.scan(episode, tree, (words, fresh))[1]


@pytest.mark.parametrize(
    ("num_memories", "k", "num_episodes"),
    [
        *[(1, 1, 50), (2, 2, 50), (7, 3, 200), (100, 8, 200), (100, 100, 2), (1000, 255, 1), (5000, 8, 20)],
    ],
)
def test_draws_and_sums_equal_a_plain_loop(num_memories, k, num_episodes):
    lives, generator = 4, np.random.default_rng([num_memories, k])
    weights, shape = random_weights(generator, (num_memories, lives)), (num_episodes, k, lives)
    words, fresh = random_words(generator, shape), random_weights(generator, shape)
    if 2 * k <= num_memories:
        weights[generator.permutation(num_memories)[: num_memories // 4]] = 0  # dead
    tree, (drawn, without, after) = jax.tree.map(np.asarray, episodes(weights, words, fresh))
    for life in range(lives):
        levels = plain_build(weights[:, life])
        assert equal(levels, levels_of(tree, life))
        for t in range(num_episodes):
            without_t, after_t = jax.tree.map(lambda x, t=t: x[t], (without, after))
            for slot in range(k):
                memory = pick(levels, words[t, slot, life])
                assert levels[0][memory] > 0
                assert memory == drawn[t, slot, life]
                put(levels, memory, np.float32(0))
            assert equal(levels, levels_of(without_t, life))
            for slot in range(k):
                put(levels, drawn[t, slot, life], fresh[t, slot, life])
            assert equal(levels, levels_of(after_t, life))


def test_draws_follow_the_law_of_successive_draws():
    """Pr(sequence) = product of weight / weight not yet drawn, every sequence within 5 standard errors."""
    weights, k, lives = np.array([1, 0, 2, 3.5, 0.25, 7], np.float32), 3, 200_000
    words = streams.cipher(
        jnp.uint32(5), jnp.arange(lives, dtype=jnp.uint32), 9, jnp.arange(k, dtype=jnp.uint32)[:, None]
    )
    drawn, _ = jax.jit(sumtree.draw)(sumtree.build(jnp.broadcast_to(weights[:, None], (6, lives))), words[0])
    found = np.bincount(np.ravel_multi_index(tuple(np.asarray(drawn)), (6,) * k), minlength=6**k).reshape((6,) * k)
    for sequence in itertools.product(range(6), repeat=k):
        left, prob = weights.astype(np.float64), 1.0
        for memory in sequence:
            prob *= left[memory] / left.sum()
            left[memory] = 0
        error = np.sqrt(prob * (1 - prob) / lives)
        assert abs(found[sequence] / lives - prob) <= 5 * error, sequence


@pytest.mark.parametrize("num_memories", [5, 300])
def test_an_override_sees_the_remaining_total_and_takes_its_memory_out_too(num_memories):
    lives, k, generator = 6, 4, np.random.default_rng(num_memories)
    weights = random_weights(generator, (num_memories, lives))
    weights[0] = 0
    words, use = random_words(generator, (k, lives)), generator.random((k, lives)) < 0.5
    ends, known, totals = [], np.zeros((k, lives), np.int32), np.zeros((k, lives), np.float32)
    for life in range(lives):
        levels, drawn = plain_build(weights[:, life]), []
        for slot in range(k):
            totals[slot, life] = total(levels[-1])
            first = next(memory for memory in range(num_memories) if memory not in drawn)
            drawn.append(first if use[slot, life] else pick(levels, words[slot, life]))
            put(levels, drawn[-1], np.float32(0))
        known[:, life] = drawn
        ends.append(levels)

    def override(slot, remaining, drawn):
        """The first memory not drawn yet, dead or not; nowhere if the total is not the known one."""
        first = jnp.zeros(lives, jnp.int32)
        for _ in range(k):
            first = jnp.where((drawn == first).any(0), first + 1, first)
        return jnp.asarray(use)[slot] & (remaining == jnp.asarray(totals)[slot]), first

    draw = jax.jit(lambda tree, words: sumtree.draw(tree, words, override))
    drawn, tree = jax.tree.map(np.asarray, draw(sumtree.build(jnp.asarray(weights)), words))
    np.testing.assert_array_equal(drawn, known)
    assert all(equal(levels, levels_of(tree, life)) for life, levels in enumerate(ends))
