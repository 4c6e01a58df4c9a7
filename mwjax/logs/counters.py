"""Formats that hold counters only.

ace_playbook     text; lines `[id] helpful=H harmful=M :: text`, with or without a bullet, under `##` heads
remnic           memory files `<id>.md` with YAML front matter, integers `mw_success` and `mw_fail`, absent = 0; one, or
                 all below a folder
memex            rows with `success_co_count`, `failure_co_count`, `unused_co_count` (absent = 0) and an id, by default
                 called id; JSON, JSON Lines, CSV or Parquet
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from mwjax.logs import documents, lines
from mwjax.logs.lines import Progress
from mwjax.logs.outcomes import as_text, number
from mwjax.logs.source import Source
from mwjax.logs.tally import BadLine, Tally, show
from mwjax.types import InputError

LARGEST = 2**31 - 1
COUNT = f"an integer from 0 to {LARGEST:,}"
FRONT_MATTER_BYTES = 1 << 16
BULLET = re.compile(r"\s*(?:[-*]\s+)?\[([^\]]+)\]\s+helpful=(\S+)\s+harmful=(\S+)\s*(?:::.*)?")


class Counters(NamedTuple):
    """What a log says of each memory when it does not tell episodes apart."""

    names: tuple[str, ...]
    shown: np.ndarray  # int64 [memory]: times retrieved
    evidence: np.ndarray  # int64 [memory]: those with an outcome
    successes: np.ndarray  # int64 [memory]

    @property
    def unused(self) -> np.ndarray:
        """Times retrieved without an outcome, int64 [memory]."""
        return self.shown - self.evidence


Row = tuple[str, int, int, int]
"""Id, successes, failures, unused."""


def read(source: Source, tally: Tally, progress: Progress | None = None) -> Counters:
    """The counters of a log."""
    reader = {"ace_playbook": _playbook, "remnic": _remnic, "memex": _memex}[source.format]
    found: dict[str, Row] = {}
    for place, row in reader(source, tally, progress):
        if not isinstance(row, BadLine) and row[0] in found:
            row = BadLine("id", f"{show(row[0])} again; must be there once")
        if isinstance(row, BadLine):
            tally.reject(place, row)
        else:
            found[row[0]] = row
    table = np.array([row[1:] for row in found.values()], np.int64).reshape(-1, 3)
    return Counters(tuple(found), table.sum(axis=1), table[:, :2].sum(axis=1), table[:, 0])


def _playbook(source: Source, tally: Tally, progress: Progress | None) -> Iterator[tuple[int, Row | BadLine]]:
    for block in lines.blocks(source.path, progress):
        for place, line in lines.split(block):
            tally.read += 1
            if line is None:
                yield place, BadLine("record", f"longer than {lines.MAX_LINE_BYTES:,} bytes")
                continue
            try:
                text = line.decode().rstrip("\r")
            except UnicodeDecodeError:
                yield place, BadLine("record", "not UTF-8; must be UTF-8 text")
                continue
            if not re.match(r"\s*(?:[-*]\s+)?\[[^\]]*\]\s*helpful", text):
                tally.skipped["no memory on the line"] += 1
            elif found := BULLET.fullmatch(text):
                yield place, _row(found[1], {"helpful": found[2], "harmful": found[3]})
            else:
                yield place, BadLine("record", f"{show(text)}; must be [id] helpful=H harmful=M :: text")


def _remnic(source: Source, tally: Tally, progress: Progress | None) -> Iterator[tuple[int, Row | BadLine]]:
    root = Path(source.path)
    files = sorted(root.rglob("*.md")) if root.is_dir() else [root]
    if not files:
        raise InputError(f"{root}: no .md files; must hold memory files <id>.md")
    for index, file in enumerate(files, start=1):
        tally.read += 1
        with lines.open_bytes(file) as opened:
            start = opened.read(FRONT_MATTER_BYTES)
        if progress is not None:
            progress(index, len(files))
        lines.check_text(file, start)
        text = start.removeprefix(b"\xef\xbb\xbf").decode(errors="replace")
        found = re.match(r"---[ \t]*\r?\n(.*?)^---[ \t]*\r?$", text, re.DOTALL | re.MULTILINE)
        if found is None:
            tally.skipped["no front matter"] += 1
            continue
        values = {name: _yaml_value(found[1], name) for name in ("mw_success", "mw_fail")}
        yield index, _row(file.stem, values)


def _yaml_value(front: str, name: str) -> str | None:
    found = re.search(rf"^{name}[ \t]*:[ \t]*([^\r\n]*?)[ \t]*(?:[ \t]#.*)?\r?$", front, re.MULTILINE)
    return None if found is None or found[1] in ("", "null", "~") else found[1]


def _memex(source: Source, tally: Tally, progress: Progress | None) -> Iterator[tuple[int, Row | BadLine]]:
    key = source.fields.get("id", "id")
    names = ("success_co_count", "failure_co_count", "unused_co_count")
    for place, record in _rows(source, tally, (key, *names), progress):
        if isinstance(record, BadLine):
            yield place, record
            continue
        name = record.get(key)
        if isinstance(name, bool) or not isinstance(name, str | int) or name == "":
            yield place, BadLine(key, f"{'missing' if name is None else show(name)}; must be text or an integer")
        elif not any(field in record for field in names):
            yield place, BadLine(names[0], f"missing; must be {COUNT}")
        else:
            yield place, _row(as_text(name), {field: record.get(field) for field in names})


def _rows(source: Source, tally: Tally, names: Iterable[str], progress: Progress | None) -> Iterator[tuple[int, Any]]:
    if Path(source.path).suffix.lower() in (".csv", ".tsv", ".parquet"):
        from mwjax.logs import rows

        for place, row in rows.records(source.path, tuple(names)):
            tally.read += 1
            yield place, row
        return
    for records, numbers, bad in documents.batches(source.path, tally, source.fields.get("records"), progress):
        yield from sorted([*zip(numbers, records, strict=True), *bad], key=lambda item: item[0])


def _row(name: str, values: dict[str, Any]) -> Row | BadLine:
    counts = []
    for field, value in values.items():
        count = 0.0 if value is None or value == "" else number(value)
        if not (count.is_integer() and 0 <= count <= LARGEST):
            return BadLine(field, f"{show(value)}; must be {COUNT}")
        counts.append(int(count))
    success, failure, unused = [*counts, 0][:3]
    return name, success, failure, unused
