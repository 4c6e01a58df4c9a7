"""Real logs as arrays. A module a format turns lines into `Episode`s; `batches` packs them, whatever the format."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import NamedTuple

import numpy as np

from mwjax.types import InputError

BATCH_EPISODES = 4096
MESSAGE_LIMIT = 20


class BadLine(Exception):
    """A line that cannot be used: (field at fault, what is wrong with it and what is allowed)."""


class Entry(NamedTuple):
    """What an episode says of one memory it retrieved."""

    success: int  # 1, 0, or -1 for no evidence (unused, or outcome unknown)
    score: float | None = None
    propensity: float | None = None


class Episode(NamedTuple):
    """One checked episode."""

    entries: dict[str, Entry]  # of the distinct memories retrieved, by id
    outcome: int  # 1, 0, or -1 for unknown
    time: float | None  # seconds since 1970 where the log gives dates
    context: str | None


class Batch(NamedTuple):
    """Consecutive episodes as arrays; slots beyond an episode's set, and what is not given, hold -1, in floats NaN."""

    memory: np.ndarray  # int32 [episode, slot], index into Log.memories
    success: np.ndarray  # int8 [episode, slot], 1, 0 or -1 for no evidence
    score: np.ndarray  # float64 [episode, slot]
    propensity: np.ndarray  # float64 [episode, slot]
    outcome: np.ndarray  # int8 [episode], 1, 0 or -1 for unknown
    time: np.ndarray  # float64 [episode]
    context: np.ndarray  # int32 [episode], index into Log.contexts


@dataclass
class Log:
    """A log and what is known of it so far: names behind the indices, tally of lines. Grows as batches are taken."""

    path: str | Path
    strict: bool = False  # raise InputError at the first bad line
    memories: dict[str, int] = field(default_factory=dict)  # id -> index, in order of appearance
    contexts: dict[str, int] = field(default_factory=dict)
    num_slots: int = 0  # size of the largest retrieved set
    read: int = 0
    skipped: Counter[str] = field(default_factory=Counter)  # reason -> lines
    num_bad: int = 0
    messages: list[str] = field(default_factory=list)  # of the first MESSAGE_LIMIT bad lines

    @property
    def used(self) -> int:
        """Lines that gave evidence on at least one memory."""
        return self.read - self.skipped.total()

    def reject(self, number: int, bad: BadLine) -> None:
        """Count line `number` as bad and keep its message, FILE:LINE: field: what is wrong."""
        place, problem = bad.args
        message = f"{self.path}:{number}: {place}: {problem}"
        if self.strict:
            raise InputError(message)
        self.skipped["bad " + re.sub(r"\[\d*\]", "", place)] += 1
        self.num_bad += 1
        if self.num_bad <= MESSAGE_LIMIT:
            self.messages.append(message)

    def problems(self) -> tuple[str, ...]:
        """The messages, and how many more there were."""
        more = self.num_bad - len(self.messages)
        return (*self.messages, *([f"{self.path}: {more:,} more bad lines"] if more else []))


def batches(log: Log, episodes: Iterable[Episode]) -> Iterator[Batch]:
    """Pack episodes into arrays. Those without evidence are packed, since they were shown, and counted as skipped."""
    remaining = iter(episodes)
    while taken := list(islice(remaining, BATCH_EPISODES)):
        batch = _pack(log, taken)
        empty, known = (batch.success < 0).all(axis=1), batch.outcome >= 0
        log.skipped["outcome unknown"] += int((empty & ~known).sum())
        log.skipped["every memory unused"] += int((empty & known).sum())
        yield batch


def _pack(log: Log, episodes: list[Episode]) -> Batch:
    lengths = np.array([len(episode.entries) for episode in episodes])
    log.num_slots = max(log.num_slots, int(lengths.max()))
    filled = np.arange(log.num_slots) < lengths[:, None]

    def slots(values: Iterable[float | None], dtype: type, empty: float) -> np.ndarray:
        padded = np.full(filled.shape, empty, dtype)
        padded[filled] = np.array(values, dtype)
        return padded

    index = lambda table, name: table.setdefault(name, len(table))
    success, score, propensity = zip(*chain.from_iterable(e.entries.values() for e in episodes), strict=True)
    return Batch(
        memory=slots([index(log.memories, name) for e in episodes for name in e.entries], np.int32, -1),
        success=slots(success, np.int8, -1),
        score=slots(score, np.float64, np.nan),
        propensity=slots(propensity, np.float64, np.nan),
        outcome=np.array([e.outcome for e in episodes], np.int8),
        time=np.array([e.time for e in episodes], np.float64),
        context=np.array([-1 if e.context is None else index(log.contexts, e.context) for e in episodes], np.int32),
    )
