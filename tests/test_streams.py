import jax
import jax.extend.random
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from mwjax import reference, streams

RANDOM123 = [  # Random123's known-answer vectors for threefry2x32 with 20 rounds: counter, key, result
    ((0x00000000, 0x00000000), (0x00000000, 0x00000000), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


def u32(values):
    return jnp.asarray(values, jnp.uint32)


@pytest.mark.parametrize(("counter", "key", "result"), RANDOM123)
def test_known_answers(counter, key, result):
    assert tuple(int(x) for x in streams.threefry2x32(tuple(map(u32, key)), tuple(map(u32, counter)))) == result
    found = reference.threefry2x32(key, (counter[0], np.array([counter[1]])))
    assert tuple(int(x[0]) for x in found) == result


def test_words_are_those_of_jax():
    """Laid out as jax does it: the first half of the counters beside the second half."""
    key, first, second = u32([7, 8]), u32([3] * 5), jnp.arange(5, dtype=jnp.uint32)
    expected = jax.extend.random.threefry_2x32(key, jnp.concatenate([first, second]))
    assert (jnp.concatenate(streams.threefry2x32((key[0], key[1]), (first, second))) == expected).all()


@pytest.mark.parametrize("pairs", [1, 5, 50])
def test_packed_pairs_are_the_reference_words(pairs):
    seeds = np.array([0, 1, 2**32 - 1], np.uint32)
    draw = jax.jit(lambda s: streams.unpack(streams.episode_pairs(u32([9]), s, streams.EPISODE, jnp.int32(11), pairs)))
    expected = [reference.words(9, int(s), reference.EPISODE, 11, 1, pairs)[0] for s in seeds]
    np.testing.assert_array_equal(np.asarray(draw(seeds)).T, expected)


@pytest.mark.parametrize("num_memories", [1, 2, 7, 100])
def test_memory_words_are_addressed_by_memory(num_memories):
    memory = jnp.arange(num_memories, dtype=jnp.int32)[:, None]
    found = streams.memory_words(u32([3]), u32([4]), streams.SCORE, jnp.int32(5), memory, num_memories)
    row = reference.words(3, 4, reference.SCORE, 5, 1, (num_memories + 1) // 2)[0]
    assert (np.asarray(found)[:, 0] == row[:num_memories]).all()


def test_every_bit_pattern_survives_packing():
    """Words pass through complex64; NaN payloads, infinities and subnormals must come back as they went in."""
    hard = [0, 1, 0x7F800000, 0x7F800001, 0x7FBFFFFF, 0x7FC00000, 0x7FFFFFFF, 0x80000000, 0xFF800001, 0xFFFFFFFF]
    first, second = u32(hard)[:, None], u32(hard[::-1])[:, None]
    pack = lambda a, b: jax.lax.complex(*(jax.lax.bitcast_convert_type(x, jnp.float32) for x in (a, b)))
    carried = jax.jit(lambda a, b: jax.lax.fori_loop(0, 3, lambda i, p: jnp.roll(p, 1, 0), pack(a, b)))(first, second)
    assert (streams.unpack(carried) == jnp.concatenate([jnp.roll(x, 3, 0) for x in (first, second)])).all()


@pytest.mark.parametrize("bound", [1, 2, 3, 100, 65_535, 65_536, 65_537, 2**24, 2**32 - 1])
def test_below_is_exact(bound):
    words = np.concatenate(
        [np.random.default_rng(0).integers(0, 2**32, 2_000, np.uint32), np.uint32([0, 1, 2**32 - 1])]
    )
    expected = [int(word) * bound >> 32 for word in words]
    for given in (bound, jnp.uint32(bound)):
        assert np.asarray(streams.below(jnp.asarray(words), given)).tolist() == expected


def used_words():
    draw = lambda t: streams.unpack(
        streams.episode_pairs(u32([1]), jnp.arange(64, dtype=jnp.uint32), streams.EPISODE, t, 5)
    )
    return np.asarray(jax.vmap(draw)(jnp.arange(500, dtype=jnp.int32)))  # [episode, word, life]


def test_words_are_uniform_and_uncorrelated():
    words = used_words()
    counts = np.bincount((words >> 24).ravel(), minlength=256)
    chi2 = ((counts - counts.mean()) ** 2 / counts.mean()).sum()
    assert abs(chi2 - 255) < 5 * np.sqrt(2 * 255)
    unit = words / 2**32 - 0.5
    for axis in range(3):
        a, b = np.take(unit, range(unit.shape[axis] - 1), axis), np.take(unit, range(1, unit.shape[axis]), axis)
        assert abs(stats.pearsonr(a.ravel(), b.ravel())[0]) < 5 / np.sqrt(a.size)


def test_purposes_roots_and_seeds_give_other_words():
    draw = lambda root, seed, purpose: int(streams.cipher(u32([root]), u32([seed]), purpose, u32([0]))[0][0])
    assert len({draw(r, s, p) for r in (0, 1) for s in (0, 1) for p in (1, 2, 3)}) == 12
