"""Any JSON as a stream of records: JSON Lines, or one document that holds a list of them.

A file is JSON Lines if its first line that is not blank is a JSON value by itself, else one document, which must then
fit in memory. A list stands for its members. Records that lie deeper are found by a JMESPath.
"""

from __future__ import annotations

import mmap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jmespath
import msgspec
from jmespath.exceptions import JMESPathError

from mwjax.logs import lines
from mwjax.logs.lines import Progress
from mwjax.logs.schema import not_json
from mwjax.logs.tally import BadLine, Tally, one_line, show
from mwjax.types import InputError

BATCH_RECORDS = 4096

Batch = tuple[list[dict[str, Any]], list[int], list[tuple[int, BadLine]]]
"""Records, which are objects, their numbers, and (number, what is wrong) of what is none."""


def path(option: str, expression: str) -> Callable[[Any], Any]:
    """A JMESPath as a function of a value; the function raises BadLine where the path cannot be applied."""
    try:
        search = jmespath.compile(expression).search
    except (JMESPathError, RecursionError) as error:
        raise InputError(f"{option}: {expression!r}; must be a JMESPath ({one_line(error)})") from None

    def find(value: Any) -> Any:
        try:
            return search(value)
        except (JMESPathError, RecursionError, ValueError, TypeError, ArithmeticError) as error:
            raise BadLine(option, f"{one_line(error)}; must be found by {expression}") from None

    return find


def batches(
    file: str | Path, tally: Tally, inner: str | None = None, progress: Progress | None = None
) -> Iterator[Batch]:
    """The records of a file, counted as read, a batch at a time. `inner`: JMESPath from a document to its records.

    A record's number is that of its line, in one document its place in the list, from 1.
    """
    search = None if inner is None else path("records", inner)
    whole = not _is_json_lines(file)
    found: Batch = ([], [], [])
    for number, document in [(0, _whole(file))] if whole else _lines(file, tally, progress):
        for index, record in enumerate(_records(document, search), start=1):
            tally.read += 1
            place = index if whole else number
            if isinstance(record, dict):
                found[0].append(record)
                found[1].append(place)
            else:
                bad = record if isinstance(record, BadLine) else BadLine("record", f"{show(record)}; must be an object")
                found[2].append((place, bad))
            if len(found[0]) + len(found[2]) >= BATCH_RECORDS:
                yield found
                found = ([], [], [])
    yield found


def _records(document: Any, search: Callable[[Any], Any] | None) -> list[Any]:
    if isinstance(document, BadLine):
        return [document]
    if search is not None:
        try:
            document = search(document)
        except BadLine as bad:
            return [bad]
        if document is None:
            return [BadLine("records", "missing; must be a list of objects")]
    return document if isinstance(document, list) else [document]


def _lines(file: str | Path, tally: Tally, progress: Progress | None) -> Iterator[tuple[int, Any]]:
    for block in lines.blocks(file, progress):
        for number, line in lines.split(block):
            if line is not None and not line.strip():
                tally.read += 1
                tally.skipped["blank line"] += 1
                continue
            yield number, _value(line)


def _value(line: bytes | None) -> Any:
    """The value of a line, or the BadLine that it is."""
    if line is None:
        return BadLine("record", f"longer than {lines.MAX_LINE_BYTES:,} bytes")
    try:
        return msgspec.json.decode(line)
    except (ValueError, RecursionError) as error:
        return not_json(error)


def _is_json_lines(file: str | Path) -> bool:
    for block in lines.blocks(file):
        for _, line in lines.split(block):
            if line is None:
                return False
            if line.strip():
                return not isinstance(_value(line), BadLine) or not _is_document(file)
    return True


def _is_document(file: str | Path) -> bool:
    try:
        _whole(file)
    except InputError:
        return False
    return True


def _whole(file: str | Path) -> Any:
    """The one value of a file."""
    with lines.open_bytes(file) as opened, mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ) as view:
        try:
            return msgspec.json.decode(memoryview(view)[3:] if view[:3] == b"\xef\xbb\xbf" else view)
        except (ValueError, RecursionError) as error:
            place, problem = not_json(error).args
            raise InputError(f"{file}: {place}: {problem}") from None
