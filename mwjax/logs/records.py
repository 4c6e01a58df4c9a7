"""A batch of checked records to a Chunk of arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from mwjax.logs.intake import Chunk, Intake, distinct, settle, starts
from mwjax.logs.journal import Candidates
from mwjax.logs.outcomes import VERDICTS, WRONG, as_text, seconds
from mwjax.logs.schema import Schema, wrong
from mwjax.logs.tally import BadLine, show

Bad = tuple[int, BadLine]  # the line, what is wrong with it
NO_VERDICT = -3
ID, SCORE, PROPENSITY, VERDICT = map(attrgetter, ("id", "score", "propensity", "outcome"))


def convert(value: Any, how: Schema) -> Any:
    """A record that is JSON already as the type of the schema; BadLine says what is wrong with it."""
    try:
        return msgspec.convert(value, how.record)
    except msgspec.ValidationError as error:
        raise wrong(error, value, how) from None


def admit(
    intake: Intake,
    how: Schema,
    joined: Mapping[str, int] | None,
    records: Sequence[Any],
    numbers: Sequence[int],
    bad: Iterable[Bad] = (),
    lines: np.ndarray | None = None,
) -> Chunk:
    """Pack records found at these line numbers; reject those that cannot be used, and those in `bad`, in their order.

    A bad line leaves no trace in the names. `lines`: how many lines each record was made of.
    """
    size = intake.size()
    chunk, found = _pack(intake, how, joined, records)
    trouble = [(number, one, 1) for number, one in bad]
    if found:
        weight = [1] * len(records) if lines is None else lines.tolist()
        trouble += [(numbers[index], one, weight[index]) for index, one in found.items()]
        intake.restore(size)
        good = [index for index in range(len(records)) if index not in found]
        chunk, _ = _pack(intake, how, joined, [records[index] for index in good])
        lines = None if lines is None else lines[good]
    for number, one, weight in sorted(trouble, key=lambda item: item[0]):
        intake.tally.reject(number, one, weight)
    return settle(chunk, intake, lines)


def _pack(
    intake: Intake, how: Schema, joined: Mapping[str, int] | None, records: Sequence[Any]
) -> tuple[Chunk, dict[int, BadLine]]:
    sets = [record.retrieved for record in records]
    lengths = np.fromiter(map(len, sets), np.int64, len(sets))
    outcome, bad = _outcomes(how, joined, records)
    chunk = _entries(intake, how, list(chain.from_iterable(sets)), lengths, outcome)
    time, late = _times(how, records)
    chunk = chunk._replace(time=time, candidates=_candidates(intake, how, records, bad))
    chunk, worse = distinct(chunk, intake, how.field["retrieved"])
    if intake.empty_is_bad and not lengths.all():
        given = chunk.candidates
        alone = (lengths == 0) & (True if given is None else np.diff(given.start) == 0)
        place = how.field["retrieved"]
        worse |= {
            int(index): BadLine(place, f"a list of 0; must be {how.allowed[place]}") for index in np.flatnonzero(alone)
        }
    if intake.details:
        chunk = chunk._replace(
            context=_scalars(intake.contexts, [record.context for record in records]),
            unit=_scalars(intake.units, [getattr(record, how.attribute["unit"]) for record in records]),
        )
        if "opponent" in how.attribute:
            values = [getattr(record, how.attribute["opponent"]) for record in records]
            chunk = chunk._replace(opponent=_scalars(intake.opponents, values))
    return chunk, late | bad | worse


def _outcomes(
    how: Schema, joined: Mapping[str, int] | None, records: Sequence[Any]
) -> tuple[np.ndarray, dict[int, BadLine]]:
    if joined is not None:
        names = (None if record.episode is None else as_text(record.episode) for record in records)
        return np.fromiter((-1 if name is None else joined.get(name, -1) for name in names), np.int8, len(records)), {}
    values = [record.outcome for record in records]
    codes = np.fromiter(how.rule.codes(values), np.int8, len(values))
    problem = lambda value: BadLine(how.field["outcome"], f"{show(value)}; must be {how.rule.allowed}")
    return codes, {index: problem(values[index]) for index in np.flatnonzero(codes == WRONG).tolist()}


def _entries(intake: Intake, how: Schema, flat: list[Any], lengths: np.ndarray, outcome: np.ndarray) -> Chunk:
    """Plain ids, or objects with an id and more."""
    start, success = starts(lengths), np.repeat(outcome, lengths)
    try:
        return Chunk(start, intake.memories.array(flat, len(flat)), success, outcome)
    except TypeError:
        pass
    try:
        verdicts = list(map(VERDICT, flat))
    except AttributeError:
        flat = [item if type(item) is how.memory else how.memory(item) for item in flat]
        verdicts = list(map(VERDICT, flat))
    if verdicts.count(None) < len(verdicts):
        own = np.array([NO_VERDICT if verdict is None else VERDICTS[verdict] for verdict in verdicts], np.int8)
        success = np.where(own == NO_VERDICT, success, own)
    memory = intake.memories.array(map(ID, flat), len(flat))
    return Chunk(start, memory, success, outcome, _floats(map(SCORE, flat)), _floats(map(PROPENSITY, flat)))


def _floats(found: Iterable[Any]) -> np.ndarray | None:
    """As float64, NaN for None; None where all are."""
    values = list(found)
    return None if values.count(None) == len(values) else np.array(values, np.float64)


def _times(how: Schema, records: Sequence[Any]) -> tuple[np.ndarray | None, dict[int, BadLine]]:
    values, bad = [record.time for record in records], {}
    if str not in set(map(type, values)):
        return _floats(values), bad
    found = np.full(len(values), np.nan)
    for index, value in enumerate(values):
        try:
            found[index] = seconds(value)
        except BadLine as problem:
            bad[index] = BadLine(how.field["time"], problem.args[1])
    return found, bad


def _scalars(names: Any, values: list[Any]) -> np.ndarray | None:
    return None if values.count(None) == len(values) else names.array(values, len(values))


def _candidates(intake: Intake, how: Schema, records: Sequence[Any], bad: dict[int, BadLine]) -> Candidates | None:
    """The candidates of all records, if any has some; adds to `bad` those that name one twice."""
    groups = [record.candidates or () for record in records]
    if not any(groups):
        return None
    for index, group in enumerate(groups):
        names = [as_text(one.id) for one in group]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            bad[index] = BadLine(how.field["candidates"], f"{show(twice)} again; must be there once")
    flat = list(chain.from_iterable(groups))
    return Candidates(
        starts(np.array([len(group) for group in groups], np.int64)),
        intake.memories.array([one.id for one in flat], len(flat)),
        np.array([one.propensity for one in flat], np.float64),
        np.array([one.included for one in flat], bool),
    )
