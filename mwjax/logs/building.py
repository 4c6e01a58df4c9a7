"""Chunks of a whole log to one Journal: order of time, units, sides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mwjax.logs.intake import Chunk, Intake, starts, take
from mwjax.logs.journal import Candidates, Journal


def build(chunks: Sequence[Chunk], intake: Intake) -> Journal:
    """Episodes in the order of the log; in that of time, stably, if every episode has one."""
    whole = concatenate(chunks)
    if whole.time is not None and not np.isnan(whole.time).any() and (np.diff(whole.time) < 0).any():
        whole = take(whole, np.argsort(whole.time, kind="stable"))
    unit, names = units(whole.unit, len(whole.outcome)), tuple(intake.memories.text)
    return Journal(
        memories=names,
        start=whole.start,
        memory=whole.memory,
        success=whole.success,
        outcome=whole.outcome,
        unit=unit,
        score=whole.score,
        propensity=whole.propensity,
        time=whole.time,
        context=whole.context,
        contexts=tuple(intake.contexts.text),
        candidates=whole.candidates,
        side=None if whole.opponent is None else sides(unit, whole.opponent),
    )


def units(unit: np.ndarray | None, size: int) -> np.ndarray:
    """Units numbered from 0 in order of appearance, int32; an episode that names none (-1) is one by itself."""
    if unit is None:
        return np.arange(size, dtype=np.int32)
    own = np.where(unit < 0, unit.max(initial=0) + 1 + np.arange(size), unit)
    _, first, inverse = np.unique(own, return_index=True, return_inverse=True)
    rank = np.empty(len(first), np.int32)
    rank[np.argsort(first)] = np.arange(len(first), dtype=np.int32)
    return rank[inverse]


def sides(unit: np.ndarray, opponent: np.ndarray) -> np.ndarray:
    """For the episodes of units that have two, of different opponents: 1 for the one seen first in the log, else -1."""
    side = np.zeros(len(unit), np.int8)
    order = np.argsort(unit, kind="stable")
    first = np.searchsorted(unit[order], np.flatnonzero(np.bincount(unit) == 2))
    one, other = order[first], order[first + 1]
    valid = (opponent[one] >= 0) & (opponent[other] >= 0)
    sign = np.sign(opponent[other] - opponent[one]).astype(np.int8) * valid
    side[one], side[other] = sign, -sign
    return side


def concatenate(chunks: Sequence[Chunk]) -> Chunk:
    """One chunk. What only some of them have is NaN, in indices -1, in the others."""
    join = lambda pieces, dtype: np.concatenate([np.zeros(0, dtype), *pieces]).astype(dtype, copy=False)

    def optional(name: str, length: str, dtype: type, empty: float) -> np.ndarray | None:
        found = [getattr(chunk, name) for chunk in chunks]
        if all(values is None for values in found):
            return None
        sizes = [len(getattr(chunk, length)) for chunk in chunks]
        return join(
            [
                np.full(size, empty, dtype) if values is None else values
                for values, size in zip(found, sizes, strict=True)
            ],
            dtype,
        )

    return Chunk(
        starts(join([np.diff(chunk.start) for chunk in chunks], np.int64)),
        join([chunk.memory for chunk in chunks], np.int32),
        join([chunk.success for chunk in chunks], np.int8),
        join([chunk.outcome for chunk in chunks], np.int8),
        score=optional("score", "memory", np.float64, np.nan),
        propensity=optional("propensity", "memory", np.float64, np.nan),
        time=optional("time", "outcome", np.float64, np.nan),
        context=optional("context", "outcome", np.int32, -1),
        unit=optional("unit", "outcome", np.int32, -1),
        opponent=optional("opponent", "outcome", np.int32, -1),
        candidates=_candidates(chunks),
    )


def _candidates(chunks: Sequence[Chunk]) -> Candidates | None:
    if all(chunk.candidates is None for chunk in chunks):
        return None
    none = lambda chunk: Candidates(
        np.zeros(len(chunk.outcome) + 1, np.int64), np.zeros(0, np.int32), np.zeros(0), np.zeros(0, bool)
    )
    found = [chunk.candidates or none(chunk) for chunk in chunks]
    start = starts(np.concatenate([np.diff(one.start) for one in found]))
    return Candidates(start, *(np.concatenate(column) for column in zip(*(one[1:] for one in found), strict=True)))
