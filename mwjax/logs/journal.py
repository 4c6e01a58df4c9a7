"""All episodes of a log in memory, as flat arrays: what an analysis that looks at whole sets works on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np


class Candidates(NamedTuple):
    """Memories whose inclusion was randomised. Those of episode e are start[e]:start[e + 1]."""

    start: np.ndarray  # int64 [episode + 1]
    memory: np.ndarray  # int32 [candidate]
    propensity: np.ndarray  # float64 [candidate], Pr[included], above 0 and below 1
    included: np.ndarray  # bool [candidate]


class Journal(NamedTuple):
    """Episodes in the order of time. Those whose outcome is unknown are there too: they were shown.

    The entries of episode e are start[e]:start[e + 1], distinct memories. Arrays that a log does not fill are None.
    """

    memories: tuple[str, ...]  # id of every index
    start: np.ndarray  # int64 [episode + 1]
    memory: np.ndarray  # int32 [entry], index into memories
    success: np.ndarray  # int8 [entry]: 1, 0, or -1 for no evidence
    outcome: np.ndarray  # int8 [episode]: 1, 0, or -1 for unknown
    unit: np.ndarray  # int32 [episode]: the independent unit it belongs to, from 0 in order of appearance
    score: np.ndarray | None = None  # float64 [entry], NaN where there is none
    propensity: np.ndarray | None = None  # float64 [entry], Pr[retrieved], NaN where it is not known
    time: np.ndarray | None = None  # float64 [episode], NaN where it is not known
    context: np.ndarray | None = None  # int32 [episode], index into contexts, -1 for none
    contexts: tuple[str, ...] = ()
    candidates: Candidates | None = None
    side: np.ndarray | None = None  # int8 [episode]: 1 or -1, the sides of a unit with two; 0 where a unit has not two

    @property
    def episode(self) -> np.ndarray:
        """The episode of every entry, int32 [entry]."""
        return np.repeat(np.arange(len(self.outcome), dtype=np.int32), np.diff(self.start))

    @property
    def evidence(self) -> np.ndarray:
        """Outcomes of every memory, int64 [memory]."""
        return np.bincount(self.memory[self.success >= 0], minlength=len(self.memories))

    @property
    def successes(self) -> np.ndarray:
        """Successes of every memory, int64 [memory]."""
        return np.bincount(self.memory[self.success == 1], minlength=len(self.memories))


def journal(retrieved: Iterable[Sequence[int]], outcome: Sequence[int], num_memories: int | None = None) -> Journal:
    """A journal of plain sets of memory indices and outcomes 1, 0 or -1, each episode a unit of its own."""
    sets = [np.asarray(one, np.int32) for one in retrieved]
    start = np.concatenate([[0], np.cumsum([len(one) for one in sets])]).astype(np.int64)
    memory = np.concatenate(sets) if sets else np.zeros(0, np.int32)
    known = np.asarray(outcome, np.int8)
    number = num_memories if num_memories is not None else int(memory.max(initial=-1)) + 1
    success = np.repeat(known, np.diff(start))
    names = tuple(f"m{i}" for i in range(number))
    return Journal(names, start, memory, success, known, np.arange(len(known), dtype=np.int32))
