"""Retrieval policies of one life: retrieve(episode's words, context, ...) -> memories in the order of the slots."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from mwjax.config import LEVELS, Config, Params
from mwjax.config.tables import fans
from mwjax.reference.changes import ACTIVE, Roster
from mwjax.reference.words import below
from mwjax.reference.worlds import fixed_point

F = np.float32


def subset(word: np.ndarray, size: int, masked: int = -1) -> list[int]:
    """Different memories below `size`, without `masked`, one a word (Floyd's subset draw), in the order drawn."""
    inside = 0 <= masked < size
    drawn: list[int] = []
    for i, one in enumerate(word):
        last = size - inside - len(word) + i
        index = below(one, last + 1)
        drawn.append(last if index in drawn else index)
    return [index + (inside and index >= masked) for index in drawn]


class Policy:
    """Uniform retrieval, and what the others share."""

    uses_worth = False

    def __init__(self, config: Config, params: Params, worth: np.ndarray, roster: Roster) -> None:
        """`worth` is the actor's before any episode."""
        self.config, self.params, self.k, self.n = config, params, config.num_retrieved, config.num_memories
        self.masked, self.roster = int(params.masked), roster
        self.begin(worth)

    def begin(self, worth: np.ndarray) -> None:
        """Prepare what a policy keeps."""

    def num_words(self) -> int:
        """Words an episode takes: one a slot, and a coin where suppressed memories take part in some episodes."""
        return self.k + (self.config.governance == "suppress")

    def retrieve(
        self, word: np.ndarray, context: int, worth: np.ndarray, score: np.ndarray, lot: np.ndarray
    ) -> list[int]:
        """The retrieved set."""
        explores = self.config.governance == "suppress" and self.explores(word[self.k])
        return self.among(word, self.roster.live if explores else self.roster.active)

    def among(self, word: np.ndarray, size: int) -> list[int]:
        """A uniform set of the first so many memories in the order of the roster."""
        return [self.roster.order[i] for i in subset(word[: self.k], size, self.masked)]

    def explores(self, word: int) -> bool:
        """Is this an episode of the floor?"""
        return int(word) >> 8 < fixed_point(self.params.exploration_floor)

    def observe(self, retrieved: list[int], worth: np.ndarray) -> None:
        """Follow the worth of what was shown, or has changed its status."""


class Pools(Policy):
    """So many memories of each pool."""

    def retrieve(
        self, word: np.ndarray, context: int, worth: np.ndarray, score: np.ndarray, lot: np.ndarray
    ) -> list[int]:
        """Pool by pool."""
        row, found, place = self.config.pool_slots[context], [], 0
        starts = [0, *accumulate(self.config.pool_sizes)]
        for start, size, slots in zip(starts, self.config.pool_sizes, row, strict=False):
            found += [start + i for i in subset(word[place : place + slots], size, self.masked - start)]
            place += slots
        return found


class Pairs(Policy):
    """Pairs are units of the draw."""

    def begin(self, worth: np.ndarray) -> None:
        """Counters of the pairs, which only Diverse heeds."""
        self.shown, self.apart = np.zeros((2, self.config.num_pairs), int)

    def num_words(self) -> int:
        """Units, separations, halves, and one for what gives way."""
        return self.k + 2 * self.config.num_pairs + 1

    def separated(self, pair: int, word: int) -> bool:
        """Is the pair separated in this episode?"""
        return int(word) >> 8 < fixed_point(self.params.separation)

    def retrieve(
        self, word: np.ndarray, context: int, worth: np.ndarray, score: np.ndarray, lot: np.ndarray
    ) -> list[int]:
        """Fill the slots."""
        k, p, masked = self.k, self.config.num_pairs, self.masked
        units = subset(word[:k], self.n - p, masked - p if masked >= 2 * p else -1)
        apart = [self.separated(i, word[k + i]) or masked in (i, p + i) for i in range(p)]
        choice = [bool(int(word[k + p + i]) >> 31) for i in range(p)]
        half = choice if self.config.separation_mode == "split" else [False] * p
        half, choice = ([masked == i or (x and masked != p + i) for i, x in enumerate(xs)] for xs in (half, choice))
        if p == 1:
            return self.one_gives_way(units, int(word[k + 2]), apart[0], half[0])
        begin, found = below(word[k + 2 * p], k), []
        for unit in units[begin:] + units[:begin]:
            if len(found) == k:
                break
            if unit >= p:
                found.append(unit + p)
                continue
            whole = not apart[unit] and len(found) + 1 < k
            side = half[unit] if apart[unit] else choice[unit]
            found += [unit, unit + p] if whole else [unit + p * side]
            self.count(unit, whole)
        return found

    def one_gives_way(self, units: list[int], word: int, apart: bool, half: bool) -> list[int]:
        """A single pair takes the slot of another unit too."""
        found = [unit + 1 for unit in units]
        if 0 in units:
            place = units.index(0)
            found[place] = int(apart and half)
            if not apart:
                other = below(word, self.k - 1)
                found[other + (other >= place)] = 1
            self.count(0, not apart)
        return found

    def count(self, pair: int, whole: bool) -> None:
        """Remember an episode of a pair."""
        self.shown[pair] += 1
        self.apart[pair] += not whole


class Diverse(Pairs):
    """Pairs are also separated where too few of their episodes were."""

    def separated(self, pair: int, word: int) -> bool:
        """By nature, or because it is due."""
        due = F(self.apart[pair]) < F(self.params.diversity) * F(self.shown[pair] + 1)
        return bool(due) or super().separated(pair, word)


class Softmax(Policy):
    """Successive draws from a sum tree."""

    uses_worth = True

    def begin(self, worth: np.ndarray) -> None:
        """Build the tree."""
        self.fans = fans(self.n)
        below_top = int(np.prod(self.fans))
        leaves = np.zeros(-(-self.n // below_top) * below_top, F)
        leaves[: self.n] = self.weigh(worth)
        for memory in range(self.n):
            if self.out(memory):
                leaves[memory] = 0
        self.levels = [leaves]
        for fan in self.fans:
            self.levels.append(np.array([ordered_sum(row) for row in self.levels[-1].reshape(-1, fan)], F))

    def num_words(self) -> int:
        """One a slot; with a floor, a coin for the episode or for each slot."""
        return {"none": self.k, "episode": self.k + 1, "slot": 2 * self.k}[self.config.floor_mode]

    def out(self, memory: int) -> bool:
        """Is it never drawn by its weight?"""
        return memory == self.masked or self.roster.status(memory) != ACTIVE

    def weigh(self, worth: np.ndarray) -> np.ndarray:
        """Weights by the table."""
        return self.params.weights[np.floor(LEVELS * worth.astype(F)).astype(int)]

    def put(self, memory: int, weight: np.floating) -> None:
        """Change a weight and the sums above it."""
        self.levels[0][memory] = weight
        for depth, fan in enumerate(self.fans):
            memory //= fan
            self.levels[depth + 1][memory] = ordered_sum(self.levels[depth][memory * fan : (memory + 1) * fan])

    def pick(self, word: int, total: np.floating) -> int:
        """The memory where the word falls."""
        x, node, start = F(int(word) >> 8) * F(2**-24) * total, 0, F(0)
        for level, fan in zip(reversed(self.levels), (len(self.levels[-1]), *reversed(self.fans)), strict=True):
            line, first = start, node * fan
            for i in range(first, first + fan):
                if level[i] > 0 and line <= x:
                    node, start = i, line
                line = line + level[i]
        return node

    def retrieve(
        self, word: np.ndarray, context: int, worth: np.ndarray, score: np.ndarray, lot: np.ndarray
    ) -> list[int]:
        """Successive draws, each taken out of the tree."""
        k, mode, found = self.k, self.config.floor_mode, []
        uniform = mode == "episode" and self.explores(word[k])
        whole, every = ordered_sum(self.levels[-1]), self.among(word, self.roster.live)
        for slot in range(k):
            remaining = ordered_sum(self.levels[-1])
            if uniform:
                memory = every[slot]
            elif mode == "slot" and self.floor(int(word[k + slot]), whole, remaining, slot):
                live = self.roster.order[: self.roster.live]
                left = [memory for memory in live if memory not in found and memory != self.masked]
                memory = left[below(word[slot], len(left))]
            else:
                memory = self.pick(int(word[slot]), remaining)
            self.put(memory, F(0))
            found.append(memory)
        return found

    def floor(self, word: int, whole: np.floating, remaining: np.floating, slot: int) -> bool:
        """Does the slot draw from the uniform component?"""
        live, eps = self.roster.live - (self.masked >= 0), F(self.params.exploration_floor)
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = whole * F(live - slot) * eps / (remaining * ((F(1) - eps) * F(live)))
            return not F(word >> 8) * F(2**-24) * (F(1) + odds) < F(1) if np.isfinite(odds) else True

    def observe(self, retrieved: list[int], worth: np.ndarray) -> None:
        """Weigh what was shown anew."""
        for memory, weight in zip(retrieved, self.weigh(worth), strict=True):
            self.put(memory, F(0) if self.out(memory) else weight)


def ordered_sum(values: np.ndarray) -> np.floating:
    """Sum in float32, first to last."""
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


class Greedy(Policy):
    """The k of greatest key, or a uniform set."""

    uses_worth = True

    def num_words(self) -> int:
        """The uniform set, and a coin."""
        return self.k + 1

    def key(self, worth: np.ndarray, score: np.ndarray, lot: np.ndarray) -> np.ndarray:
        """Worth in steps of 1/4096, ties by lot."""
        return (np.floor(LEVELS * worth.astype(F)).astype(np.int64) << 18) | (lot >> np.uint64(14)).astype(np.int64)

    def retrieve(
        self, word: np.ndarray, context: int, worth: np.ndarray, score: np.ndarray, lot: np.ndarray
    ) -> list[int]:
        """Best first; equal keys by index."""
        if self.explores(word[self.k]):
            return self.among(word, self.roster.live)
        key = self.key(worth, score, lot)
        key[self.roster.order[self.roster.active :]] = -1
        if self.masked >= 0:
            key[self.masked] = -1
        return np.argsort(-key, kind="stable")[: self.k].tolist()


class Blend(Greedy):
    """Similarity and worth."""

    def key(self, worth: np.ndarray, score: np.ndarray, lot: np.ndarray) -> np.ndarray:
        """In 31 bits."""
        weight = fixed_point(self.params.similarity_weight) << 7
        level = np.floor(LEVELS * worth.astype(F)).astype(np.int64)
        return np.array(
            [
                below(fixed_point(s) << 7, weight) + below(int(w) << 19, 2**31 - weight)
                for s, w in zip(score, level, strict=True)
            ]
        )


POLICIES = {
    "uniform": Policy,
    "pools": Pools,
    "pairs": Pairs,
    "diverse": Diverse,
    "softmax": Softmax,
    "epsilon_greedy": Greedy,
    "blend": Blend,
}
