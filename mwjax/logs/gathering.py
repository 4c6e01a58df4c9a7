"""CSV and Parquet with one row a retrieved memory: rows gather to episodes.

Options name the columns; one that is not named is looked for under the option's own name. Rows with the same `episode`
are one episode, wherever they stand; without that column every row is one. What an episode says more than once must be
the same in all its rows. A bad row makes its episode bad.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from mwjax.logs import cells
from mwjax.logs.intake import Chunk, Intake, Names, distinct, settle, starts
from mwjax.logs.lines import Progress
from mwjax.logs.outcomes import VERDICTS, WRONG, Rule, as_text, rule
from mwjax.logs.rows import Rows, batches, header, join, listed, split, value
from mwjax.logs.source import Source
from mwjax.logs.tally import BadLine, show
from mwjax.types import InputError

COLUMNS = ("id", "outcome", "episode", "score", "propensity", "verdict", "context", "time", "unit", "opponent")
NO_VERDICT = -3


def read(
    source: Source, intake: Intake, joined: Mapping[str, int] | None = None, progress: Progress | None = None
) -> Iterator[Chunk]:
    """Stream the episodes of a table; where `intake` wants details, in one chunk, as their rows may stand anywhere."""
    bad: list[tuple[int, BadLine]] = []
    how = rule(source.fields, text=True)
    waiting: list[Rows] = []
    for rows in batches(source.path, _columns(source, joined is not None), bad, progress):
        intake.tally.read += rows.table.num_rows
        waiting.append(rows)
        if not intake.details and "episode" in rows.table.column_names:
            whole, rest = split(join(waiting))
            waiting = [rest]
            yield _admit(whole, source, intake, how, joined)
        elif not intake.details:
            yield _admit(join(waiting), source, intake, how, joined)
            waiting = []
    for place, problem in bad:
        intake.tally.read += 1
        intake.tally.reject(place, problem)
    if waiting:
        yield _admit(join(waiting), source, intake, how, joined)


def _columns(source: Source, joined: bool) -> dict[str, str]:
    """Option -> column, of those that are there. InputError where one that is named or needed is not."""
    there, found = header(source.path), {}
    needed = ("id", "episode") if joined else ("id", "outcome")
    for option in COLUMNS:
        column = source.fields.get(option, option)
        if column in there:
            found[option] = column
        elif option in source.fields or option in needed:
            raise InputError(f"{option}: {column!r}; must be one of the columns of {source.path}: {listed(there)}")
    if joined:
        found.pop("outcome", None)
    return found


def _admit(rows: Rows, source: Source, intake: Intake, how: Rule, joined: Mapping[str, int] | None) -> Chunk:
    """The episodes of some rows; reject the bad ones, which leave no trace in the names."""
    size = intake.size()
    chunk, bad, group, line_count = _pack(rows, source, intake, how, joined)
    if bad:
        intake.restore(size)
        for episode, (row, problem) in sorted(bad.items(), key=lambda item: item[1][0]):
            intake.tally.reject(int(rows.number[row]), problem, int(line_count[episode]))
        good = np.flatnonzero(~np.isin(group, list(bad)))
        rows = Rows(rows.table.take(pa.array(good)), rows.number[good])
        chunk, _, _, line_count = _pack(rows, source, intake, how, joined)
    return settle(chunk, intake, line_count)


Bad = dict[int, tuple[int, BadLine]]
"""Episode -> (a row of it, what is wrong there)."""


def _pack(
    rows: Rows, source: Source, intake: Intake, how: Rule, joined: Mapping[str, int] | None
) -> tuple[Chunk, Bad, np.ndarray, np.ndarray]:
    """(Chunk, what is wrong with which episodes, the episode of every row, the rows of every episode)."""
    table, count = rows.table, rows.table.num_rows
    names = None
    if "episode" in table.column_names:
        names, group = cells.codes(table["episode"])
    else:
        group = np.arange(count)
    order = np.arange(count) if (np.diff(group) >= 0).all() else np.argsort(group, kind="stable")
    size = np.bincount(group, minlength=len(names) if names is not None else count)
    start, bad = starts(size), {}
    first = order[start[:-1]] if count else np.zeros(0, np.int64)

    def blame(wrong: np.ndarray, place: str, told: Callable[[int], str]) -> None:
        for row in np.flatnonzero(wrong).tolist():
            bad.setdefault(int(group[row]), (row, BadLine(place, told(row))))

    called = lambda option: source.fields.get(option, option)
    if names is not None and names.null_count:
        null = names.is_null().to_numpy(zero_copy_only=False)
        blame(null[group], called("episode"), lambda row: "missing; must be text or a number")
    texts, code = cells.codes(table["id"])
    given = [value(one) for one in texts.to_pylist()]
    empty = np.array([one is None or one == "" for one in given], bool)
    blame(empty[code], called("id"), lambda row: "missing; must be text or a number")
    memory = intake.memories.array(["" if one is None else one for one in given], len(given))[code]
    outcome, success = _outcome(rows, names, group, first, source, how, joined, blame)
    floats = {}
    for option, low, high, allowed in (
        ("score", -np.inf, np.inf, "a number"), ("propensity", 0, 1, "a number above 0, up to 1")
    ):  # fmt: skip
        if option in table.column_names:
            found, raw = cells.floats(table[option])
            wrong = (raw & np.isnan(found)) | (found <= low) | (found > high)
            column = table[option]
            blame(
                wrong,
                called(option),
                lambda row, column=column, allowed=allowed: f"{show(column[row].as_py())}; must be {allowed}",
            )
            floats[option] = found[order]
    chunk = Chunk(start, memory[order], success[order], outcome, floats.get("score"), floats.get("propensity"))
    if "time" in table.column_names:
        chunk = chunk._replace(time=cells.times(table["time"], called("time"), blame)[first])
    if intake.details:
        held = (("context", intake.contexts), ("unit", intake.units), ("opponent", intake.opponents))
        chunk = chunk._replace(**{
            option: _same(rows, option, called(option), index, group, first, blame)
            for option, index in held
            if option in table.column_names and (option != "opponent" or "opponent" in source.fields)
        })  # fmt: skip
    chunk, worse = distinct(chunk, intake, called("id"))
    for episode, problem in worse.items():
        bad.setdefault(episode, (int(first[episode]), problem))
    return chunk, bad, group, size


def _outcome(
    rows: Rows, names: Any, group: np.ndarray, first: np.ndarray, source: Source, how: Rule,
    joined: Mapping[str, int] | None, blame: Callable[..., None],
) -> tuple[np.ndarray, np.ndarray]:  # fmt: skip
    """(Outcome int8 [episode], success int8 [row])."""
    table = rows.table
    if joined is not None:
        texts = [as_text(one) for one in names.to_pylist()]
        outcome = np.array([joined.get(one, -1) for one in texts], np.int8)
        success = outcome[group]
    else:
        values, code = cells.codes(table["outcome"])
        given = [value(one) for one in values.to_pylist()]
        success = np.array(list(how.codes(given)), np.int8)[code] if given else np.zeros(0, np.int8)
        place = source.fields.get("outcome", "outcome")
        blame(success == WRONG, place, lambda row: f"{show(given[code[row]])}; must be {how.allowed}")
        outcome = success[first]
        blame(
            success != outcome[group],
            place,
            lambda row: f"{show(given[code[row]])}; must be the same in all rows of an episode",
        )
    if "verdict" in table.column_names:
        values, code = cells.codes(table["verdict"])
        given = [value(one) for one in values.to_pylist()]
        codes = np.array([NO_VERDICT if one is None else VERDICTS.get(one, WRONG) for one in given], np.int8)[code]
        place, allowed = source.fields.get("verdict", "verdict"), "helpful, not, unused or empty (then the episode's)"
        blame(codes == WRONG, place, lambda row: f"{show(given[code[row]])}; must be {allowed}")
        success = np.where(codes == NO_VERDICT, success, codes)
    return outcome, success


def _same(
    rows: Rows, option: str, place: str, index: Names, group: np.ndarray, first: np.ndarray, blame: Callable[..., None]
) -> np.ndarray:
    """Index of a value that all rows of an episode share, int32 [episode], -1 for none."""
    values, code = cells.codes(rows.table[option])
    given = [value(one) for one in values.to_pylist()]
    found = index.array(given, len(given))[code] if given else np.zeros(0, np.int32)
    told = lambda row: f"{show(given[code[row]])}; must be the same in all rows of an episode"
    blame(found != found[first][group], place, told)
    return found[first]
