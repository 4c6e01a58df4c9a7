"""The words of a life, in 64-bit NumPy arithmetic."""

from __future__ import annotations

import numpy as np

TAG, UTILITY, EPISODE, SCORE, LOT, REPORT, QUERY = 0x6D776A78, 1, 2, 3, 4, 5, 6
ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
MASK = np.uint64(0xFFFFFFFF)
BLOCK = 512
"""Episodes whose words are made at once."""


def threefry2x32(key: tuple[int, int], counter: tuple[int, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011) in 64-bit arithmetic; counter[1] is an array."""
    schedule = [np.uint64(word) for word in (*key, key[0] ^ key[1] ^ 0x1BD11BDA)]
    y = np.asarray(counter[1], np.uint64)
    x = (np.full_like(y, counter[0]) + schedule[0]) & MASK
    y = (y + schedule[1]) & MASK
    for i in range(20):
        rotation = np.uint64(ROTATIONS[i % 8])
        x = (x + y) & MASK
        y = (((y << rotation) | (y >> (np.uint64(32) - rotation))) & MASK) ^ x
        if i % 4 == 3:
            j = i // 4 + 1
            x, y = (x + schedule[j % 3]) & MASK, (y + schedule[(j + 1) % 3] + np.uint64(j)) & MASK
    return x, y


def words(root_seed: int, seed: int, purpose: int, first_episode: int, episodes: int, width: int) -> np.ndarray:
    """All words of consecutive episodes, uint64 [episode, 2 x width]: first outputs, then second ones."""
    index = np.arange(first_episode * width, (first_episode + episodes) * width, dtype=np.uint64)
    pair = threefry2x32((root_seed, TAG ^ purpose), (seed, index))
    return np.concatenate([half.reshape(episodes, width) for half in pair], axis=1)


class Stream:
    """The words of one purpose, episode by episode."""

    def __init__(self, root_seed: int, seed: int, purpose: int, width: int) -> None:
        """`width` pairs of words an episode."""
        self.address, self.width, self.block = (root_seed, seed, purpose), width, np.zeros((0, 0), np.uint64)

    def at(self, episode: int) -> np.ndarray:
        """uint64 [2 x width]; episodes come one after the other."""
        if episode % BLOCK == 0:
            self.block = words(*self.address, episode, BLOCK, self.width)
        return self.block[episode % BLOCK]


def below(word: int, bound: int) -> int:
    """floor(word x bound / 2**32)."""
    return int(word) * int(bound) >> 32
