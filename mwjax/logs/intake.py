"""Checked records to flat arrays, a batch at a time: the one place where ids become indices, whatever the format."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mwjax.config import MAX_RETRIEVED
from mwjax.logs.journal import Candidates
from mwjax.logs.outcomes import as_text
from mwjax.logs.tally import BadLine, Tally, show

AGAIN = "again, with another outcome; must be the same in both"
TOO_MANY = f"must be a list of 1 to {MAX_RETRIEVED} ids, or objects with an id"
WEIGHT = "must be from 0 to 1, as it is the weight"


class Names(dict[Any, int]):
    """Raw value -> index of its text; 7 and "7" share one. `text` has the texts in order of appearance; None is -1."""

    def __init__(self) -> None:
        """Empty."""
        super().__init__({None: -1})
        self.text: dict[str, int] = {}

    def __missing__(self, raw: Any) -> int:
        """The index of a value not met before."""
        index = self[raw] = self.text.setdefault(raw if type(raw) is str else as_text(raw), len(self.text))
        return index

    def size(self) -> tuple[int, int]:
        """What `restore` needs to forget all that came later."""
        return len(self), len(self.text)

    def restore(self, size: tuple[int, int]) -> None:
        """Forget all values that came after `size()`."""
        while len(self) > size[0]:
            self.popitem()
        while len(self.text) > size[1]:
            self.text.popitem()

    def array(self, values: Iterator[Any] | Sequence[Any], count: int) -> np.ndarray:
        """Indices of `count` values, int32. TypeError where one is not hashable."""
        return np.fromiter(map(self.__getitem__, values), np.int32, count)


@dataclass
class Intake:
    """The names met so far, the tally, and what is wanted."""

    tally: Tally
    details: bool = True  # keep what only a Journal needs: contexts, units, sides
    weigh_by_score: bool = False
    empty_is_bad: bool = True  # an empty set is a bad line; else it is skipped and counted
    memories: Names = field(default_factory=Names)
    contexts: Names = field(default_factory=Names)
    units: Names = field(default_factory=Names)
    opponents: Names = field(default_factory=Names)

    def size(self) -> list[tuple[int, int]]:
        """Of all names."""
        return [names.size() for names in self._names()]

    def restore(self, size: list[tuple[int, int]]) -> None:
        """Forget the names that came after `size()`."""
        for names, before in zip(self._names(), size, strict=True):
            names.restore(before)

    def _names(self) -> tuple[Names, ...]:
        return self.memories, self.contexts, self.units, self.opponents


class Chunk(NamedTuple):
    """Consecutive episodes; the entries of episode e are start[e]:start[e + 1]. As in Journal, None: not given."""

    start: np.ndarray  # int64 [episode + 1]
    memory: np.ndarray  # int32 [entry]
    success: np.ndarray  # int8 [entry]
    outcome: np.ndarray  # int8 [episode]
    score: np.ndarray | None = None  # float64 [entry]
    propensity: np.ndarray | None = None  # float64 [entry]
    time: np.ndarray | None = None  # float64 [episode]
    context: np.ndarray | None = None  # int32 [episode], -1 for none; likewise unit and opponent
    unit: np.ndarray | None = None
    opponent: np.ndarray | None = None
    candidates: Candidates | None = None

    @property
    def episode(self) -> np.ndarray:
        """The episode of every entry, int64 [entry]."""
        return np.repeat(np.arange(len(self.outcome)), np.diff(self.start))


def starts(lengths: np.ndarray) -> np.ndarray:
    """Where the entries of each episode begin, int64 [episode + 1]."""
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths, dtype=np.int64)])


def distinct(chunk: Chunk, intake: Intake, place: str = "retrieved") -> tuple[Chunk, dict[int, BadLine]]:
    """The chunk with every memory once an episode, by its first entry; and what is wrong with which episodes."""
    bad: dict[int, BadLine] = {}
    episode = chunk.episode
    key = episode << 32 | chunk.memory
    ordered = np.sort(key)
    if (ordered[1:] == ordered[:-1]).any():
        order = np.argsort(key, kind="stable")
        again = order[1:][key[order[1:]] == key[order[:-1]]]
        before = order[:-1][key[order[1:]] == key[order[:-1]]]
        conflicts = np.sort(again[chunk.success[again] != chunk.success[before]]).tolist()
        names = list(intake.memories.text) if conflicts else []
        for entry in conflicts:
            slot, name = entry - int(chunk.start[episode[entry]]), names[chunk.memory[entry]]
            bad.setdefault(int(episode[entry]), BadLine(f"{place}[{slot}]", f"{show(name)} {AGAIN}"))
        keep = np.ones(len(key), bool)
        keep[again] = False
        start = starts(np.bincount(episode[keep], minlength=len(chunk.outcome)))
        pick = lambda values: None if values is None else values[keep]
        chunk = chunk._replace(
            start=start,
            memory=chunk.memory[keep],
            success=chunk.success[keep],
            score=pick(chunk.score),
            propensity=pick(chunk.propensity),
        )
    lengths = np.diff(chunk.start)
    if lengths.max(initial=0) > MAX_RETRIEVED:
        for one in np.flatnonzero(lengths > MAX_RETRIEVED).tolist():
            bad.setdefault(one, BadLine(place, f"{lengths[one]:,} memories; {TOO_MANY}"))
    if intake.weigh_by_score:
        bad = _weights(chunk, intake, place) | bad
    return chunk, bad


def _weights(chunk: Chunk, intake: Intake, place: str) -> dict[int, BadLine]:
    """Episodes with a score that cannot be a weight."""
    score = np.full(len(chunk.memory), np.nan) if chunk.score is None else chunk.score
    bad, episode = {}, chunk.episode
    wrong = np.flatnonzero(~((score >= 0) & (score <= 1))).tolist()
    names = list(intake.memories.text) if wrong else []
    for entry in wrong:
        value = "missing" if np.isnan(score[entry]) else show(_plain(float(score[entry])))
        name = names[chunk.memory[entry]]
        bad.setdefault(int(episode[entry]), BadLine(f"{place}[].score", f"{value} for {show(name)}; {WEIGHT}"))
    return bad


def _plain(value: float) -> float | int:
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def settle(chunk: Chunk, intake: Intake, lines: np.ndarray | None = None) -> Chunk:
    """Count episodes without evidence as skipped (of `lines` lines each) and drop those that retrieved nothing."""
    size, lengths = len(chunk.outcome), np.diff(chunk.start)
    lines = np.ones(size, np.int64) if lines is None else lines
    known = chunk.outcome >= 0
    evidence = np.bincount(chunk.episode[chunk.success >= 0], minlength=size) > 0
    empty = lengths == 0
    if chunk.candidates is not None:
        randomised = np.diff(chunk.candidates.start) > 0
        evidence |= randomised & known
        empty &= ~randomised
    skipped = intake.tally.skipped
    skipped["no memory retrieved"] += int(lines[empty].sum())
    skipped["outcome unknown"] += int(lines[~evidence & ~known & ~empty].sum())
    skipped["every memory unused"] += int(lines[~evidence & known & ~empty].sum())
    return take(chunk, ~empty) if empty.any() else chunk


def take(chunk: Chunk, episodes: np.ndarray) -> Chunk:
    """The episodes at these indices, in their order, or where the mask holds."""
    chosen = np.flatnonzero(episodes) if episodes.dtype == bool else episodes
    pick = lambda values: None if values is None else values[chosen]
    start, entries = gather(chunk.start, chosen)
    inner = lambda values: None if values is None else values[entries]
    candidates = chunk.candidates
    if candidates is not None:
        first, inside = gather(candidates.start, chosen)
        candidates = Candidates(first, *(values[inside] for values in candidates[1:]))
    return Chunk(
        start,
        chunk.memory[entries],
        chunk.success[entries],
        chunk.outcome[chosen],
        score=inner(chunk.score),
        propensity=inner(chunk.propensity),
        time=pick(chunk.time),
        context=pick(chunk.context),
        unit=pick(chunk.unit),
        opponent=pick(chunk.opponent),
        candidates=candidates,
    )


def gather(start: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For the groups `chosen` out of start[i]:start[i + 1]: their starts when laid end to end, and their members."""
    lengths = np.diff(start)[chosen]
    first = starts(lengths)
    return first, np.arange(first[-1]) + np.repeat(start[chosen] - first[:-1], lengths)
