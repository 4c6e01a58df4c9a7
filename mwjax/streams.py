"""The only source of randomness: word = f(root seed, seed, episode, purpose, index), and nothing else.

A word is one 32-bit output of the Threefry-2x32 block cipher with 20 rounds (Salmon et al., "Parallel random numbers:
as easy as 1, 2, 3", SC 2011). Key = (root seed, TAG ^ purpose), counter = (seed, episode x width + index), where width
is the number of counter values one episode of that purpose uses. Each counter yields a pair of words. Chunk size,
device, worker and neighbouring configurations therefore change nothing, and equal seeds are common random numbers.

The cipher is written out on arrays of counters because it then vectorises; its words equal those of
`jax.extend.random.threefry_2x32` (not of `jax.random.bits`, which xors each pair).
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

TAG = 0x6D776A78
"""Keeps our words apart from the children of a user's own `jax.random.split` and `fold_in`."""

UTILITY, EPISODE, SCORE, LOT, REPORT, QUERY = 1, 2, 3, 4, 5, 6
"""Purposes: initial utilities, an episode's draws, relevance scores, lots, reports, queries; draws, reports and queries
count words, the others are indexed by memory."""

ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
PARITY = 0x1BD11BDA


def threefry2x32(key: tuple[Array, Array], counter: tuple[Array, Array]) -> tuple[Array, Array]:
    """Encrypt uint32 counters (two arrays of one shape) under a key (scalars or arrays that broadcast)."""
    keys = (key[0], key[1], key[0] ^ key[1] ^ jnp.uint32(PARITY))
    x, y = counter[0] + keys[0], counter[1] + keys[1]
    for i in range(20):
        rotation = ROTATIONS[i % 8]
        x = x + y
        y = ((y << jnp.uint32(rotation)) | (y >> jnp.uint32(32 - rotation))) ^ x
        if i % 4 == 3:
            j = i // 4 + 1
            x, y = x + keys[j % 3], y + keys[(j + 1) % 3] + jnp.uint32(j)
    return x, y


def cipher(root: Array, seed: Array, purpose: int, index: Array) -> tuple[Array, Array]:
    """Both words of each counter in `index` (uint32 [..., life] or [..., 1]) for lives (root, seed) (uint32 [life])."""
    shape = jnp.broadcast_shapes(index.shape, seed.shape)
    over = lambda x: jnp.broadcast_to(x, shape)
    return threefry2x32((over(root), jnp.uint32(TAG ^ purpose)), (over(seed), over(index)))


def episode_pairs(root: Array, seed: Array, purpose: int, episode: Array, pairs: int) -> Array:
    """The words of one episode, packed two by two: complex64 [pairs, life], to be read by `unpack`.

    One element holds both outputs of a cipher, since XLA computes every output array by a loop of its own and would run
    the cipher twice for two. Only moves touch the packed values, so every bit pattern survives.
    """
    index = jnp.arange(pairs, dtype=jnp.uint32) + episode.astype(jnp.uint32) * jnp.uint32(pairs)
    first, second = cipher(root, seed, purpose, index[:, None])
    return lax.complex(*(lax.bitcast_convert_type(x, jnp.float32) for x in (first, second)))


def unpack(pairs: Array) -> Array:
    """complex64 [pairs, life] -> uint32 [2 x pairs, life]: the first outputs, then the second ones."""
    return jnp.concatenate([lax.bitcast_convert_type(half(pairs), jnp.uint32) for half in (lax.real, lax.imag)])


def memory_words(root: Array, seed: Array, purpose: int, episode: Array, memory: Array, num_memories: int) -> Array:
    """One word for each memory index in `memory` (int32 [..., life]), addressed by memory: uint32 of that shape."""
    half = (num_memories + 1) // 2
    second = memory >= half
    row = (memory - jnp.where(second, half, 0).astype(memory.dtype)).astype(jnp.uint32)
    words = cipher(root, seed, purpose, episode.astype(jnp.uint32) * jnp.uint32(half) + row)
    return jnp.where(second, words[1], words[0])


def below(word: Array, bound: Array | int, most: int = 1 << 32) -> Array:
    """floor(word x bound / 2**32), uint32 in [0, bound): uniform on the integers below `bound` to within 2**-32.

    Where it is known that bound is at most `most` <= 2**16, that is half the work.
    """
    low = word & jnp.uint32(0xFFFF)
    high = word >> jnp.uint32(16)
    small = (bound if isinstance(bound, int) else most) <= 1 << 16
    bound = jnp.asarray(bound, jnp.uint32)
    if small:
        return (high * bound + (low * bound >> jnp.uint32(16))) >> jnp.uint32(16)
    bound_low, bound_high = bound & jnp.uint32(0xFFFF), bound >> jnp.uint32(16)
    one, two = high * bound_low, low * bound_high
    middle = (low * bound_low >> jnp.uint32(16)) + (one & jnp.uint32(0xFFFF)) + (two & jnp.uint32(0xFFFF))
    return high * bound_high + (one >> jnp.uint32(16)) + (two >> jnp.uint32(16)) + (middle >> jnp.uint32(16))
