"""The canonical episode log: JSON Lines, one record a line.

    {"episode": "e17", "time": 1719930000.0, "retrieved": [{"id": "m4", "score": 0.71}, "m9"], "outcome": 1}

`retrieved` and `outcome` must be there; elsewhere null stands for absent. Ids are text: 7 and "7" are the same memory,
"07" is another. A memory listed twice counts once, by its first entry, and must have the same outcome in both. A
memory's own outcome, "helpful", "not" or "unused", counts instead of the episode's; one unused, or with no known
outcome, was shown without evidence. `candidates` [{"id", "propensity", "included"}] are memories whose inclusion was
randomised; a record that has them may retrieve none. `unit` names the independent unit the episode belongs to. Times
without an offset are UTC. Other fields are allowed and not read; of a key given twice the last counts. Blank lines are
skipped and counted, without a message.

A block of lines is decoded at once, against one msgspec schema; where that fails, line by line.
"""

from __future__ import annotations

import contextlib
import gc
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec

from mwjax.logs import lines
from mwjax.logs.intake import Chunk, Intake
from mwjax.logs.lines import Block, Progress
from mwjax.logs.records import Bad, admit
from mwjax.logs.schema import Schema, not_json, wrong
from mwjax.logs.tally import BadLine


def stream(
    path: str | Path,
    intake: Intake,
    how: Schema,
    joined: Mapping[str, int] | None = None,
    progress: Progress | None = None,
) -> Iterator[Chunk]:
    """Stream a log of records, one a line."""
    decoder = msgspec.json.Decoder(how.record)
    for block in lines.blocks(path, progress):
        with _no_collection():
            records, numbers, bad = _decode(decoder, block, how, intake)
            chunk = admit(intake, how, joined, records, numbers, bad)
        yield chunk


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Thousands of records a block would set the cyclic collector off again and again, and none is a cycle."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _decode(decoder: Any, block: Block, how: Schema, intake: Intake) -> tuple[list[Any], Any, list[Bad]]:
    """The records of a block, their line numbers, and the lines that are none."""
    text = block.text
    if text is not None and (count := _one_object_a_line(text)):
        with contextlib.suppress(ValueError, RecursionError):
            records = decoder.decode_lines(text)
            if len(records) == count:
                intake.tally.read += count
                return records, range(block.number, block.number + count), []
    records, numbers, bad = [], [], []
    for number, line in lines.split(block):
        intake.tally.read += 1
        if line is not None and not line.strip():
            intake.tally.skipped["blank line"] += 1
            continue
        try:
            records.append(parse(line, decoder, how))
            numbers.append(number)
        except BadLine as problem:
            bad.append((number, problem))
    return records, numbers, bad


def _one_object_a_line(text: bytes) -> int:
    """The number of lines, if all is UTF-8 and every newline stands between the end of one object and the next; else 0.

    Then no object reaches over two lines, as JSON text holds no raw newline and no `}` before a `{`.
    """
    try:
        if not text.isascii():
            text.decode()
    except UnicodeDecodeError:
        return 0
    inner = text.count(b"\n") - text.endswith(b"\n")
    between = text.count(b"}\n{")
    if between < inner:
        between += text.count(b"}\r\n{")
    return inner + 1 if text.startswith(b"{") and between == inner else 0


def parse(line: bytes | None, decoder: Any, how: Schema) -> Any:
    """One line as a record; BadLine says what is wrong with it. None: a line that was too long to keep."""
    if line is None:
        raise BadLine("record", f"longer than {lines.MAX_LINE_BYTES:,} bytes")
    try:
        line.decode()
    except UnicodeDecodeError as error:
        raise BadLine("record", f"not UTF-8: 0x{line[error.start]:02x} at byte {error.start}") from None
    try:
        return decoder.decode(line)
    except msgspec.ValidationError as error:
        raise wrong(error, untyped(line), how) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise not_json(error) from None


def untyped(line: bytes) -> Any:
    """A line as plain values, to show what was wrong with it; None where its numbers are too long to read."""
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
