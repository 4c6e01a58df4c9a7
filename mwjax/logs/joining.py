"""Outcomes from a second file, by episode: JSON or JSON Lines by JMESPath, CSV or Parquet by column."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mwjax.logs import documents
from mwjax.logs.outcomes import WRONG, Rule, as_text, rule
from mwjax.logs.source import Source
from mwjax.logs.tally import BadLine, Tally, show
from mwjax.types import InputError

TABLES = (".csv", ".tsv", ".parquet", ".pq")


def outcomes(source: Source, episode: str, tally: Tally) -> dict[str, int]:
    """Episode -> 1, 0 or -1, from `source.join`. What is wrong with its lines goes to the notes of `tally`.

    `episode`: what the file calls the episode, unless the fields name it join_episode.
    """
    path, fields = source.join, source.fields
    assert path is not None
    names = fields.get("join_episode", episode), fields.get("outcome", "outcome")
    table = Path(path).suffix.lower() in TABLES
    how, second = rule(fields, text=table), Tally(path, strict=source.strict)
    found: dict[str, int] = {}
    for place, record in _rows(path, names, second, table):
        try:
            name, code = _pair(record, names, how)
            if found.setdefault(name, code) != code:
                raise BadLine(names[0], f"{show(name)} again, with another outcome; must be the same in both")
        except BadLine as bad:
            second.reject(place, bad)
    if not found:
        why = second.messages[0] if second.messages else "no outcome in it"
        raise InputError(f"join: {path}: {second.read:,} lines, none of use; {why}")
    tally.notes += second.problems()
    return found


def _rows(path: str | Path, names: tuple[str, str], tally: Tally, table: bool) -> Iterator[tuple[int, Any]]:
    """Number of the line, and (episode, outcome) or a BadLine."""
    if table:
        from mwjax.logs import rows

        for place, row in rows.records(path, names):
            tally.read += 1
            yield place, row if isinstance(row, BadLine) else tuple(row[name] for name in names)
        return
    episode, outcome = documents.path("join_episode", names[0]), documents.path("outcome", names[1])
    for records, numbers, bad in documents.batches(path, tally):
        pairs = [*zip(numbers, records, strict=True), *bad]
        for place, record in sorted(pairs, key=lambda item: item[0]):
            try:
                yield place, (episode(record), outcome(record)) if isinstance(record, dict) else record
            except BadLine as problem:
                yield place, problem


def _pair(record: Any, names: tuple[str, str], how: Rule) -> tuple[str, int]:
    if isinstance(record, BadLine):
        raise record
    name, value = record
    if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
        raise BadLine(names[0], f"{'missing' if name is None else show(name)}; must be text or an integer")
    code = WRONG if isinstance(value, list | dict) else next(iter(how.codes([value])))
    if code == WRONG:
        raise BadLine(names[1], f"{show(value)}; must be {how.allowed}")
    return as_text(name), code
