"""The canonical episode log: JSON Lines, one record a line.

    {"episode": "e17", "time": 1719930000.0, "retrieved": [{"id": "m4", "score": 0.71}, "m9"], "outcome": 1}

`retrieved` and `outcome` must be there; elsewhere null stands for absent. Ids are text: 7 and "7" are the same memory,
"07" is another. A memory listed twice counts once, by its first entry, and must have the same outcome in both. A
memory's own outcome counts instead of the episode's; one unused, or with no known outcome, was shown without evidence.
Times without an offset are UTC; episodes keep the order of the file. Other fields are allowed and not read; of a key
given twice the last counts. Blank lines are skipped and counted, without a message.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mwjax.config import MAX_RETRIEVED
from mwjax.logs import BadLine, Batch, Entry, Episode, Log, batches
from mwjax.types import InputError

MAX_LINE_BYTES = 1 << 24
VERDICTS = {"helpful": 1, "not": 0, "unused": -1}

Name = Annotated[str, Field(min_length=1)] | int


class Memory(BaseModel):
    """A retrieved memory with fields of its own."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)
    id: Name
    score: float | None = None
    propensity: Annotated[float, Field(gt=0, le=1)] | None = None
    outcome: Literal["helpful", "not", "unused"] | None = None


class Record(BaseModel):
    """One line."""

    model_config = ConfigDict(strict=True, allow_inf_nan=False)
    episode: Name | None = None
    time: float | Annotated[datetime, Field(strict=False)] | None = None
    retrieved: Annotated[list[Name | Memory], Field(min_length=1, fail_fast=True)]
    outcome: Annotated[float, Field(ge=0, le=1, multiple_of=1)] | bool | None
    context: Name | None = None


NAME = "text or an integer"
ALLOWED = {
    "record": "an object",
    "time": "a number of seconds or ISO 8601 text",
    "retrieved": f"a list of 1 to {MAX_RETRIEVED} ids, or objects with an id",
    "retrieved[]": f"{NAME}, or an object with an id",
    "retrieved[].score": "a number",
    "retrieved[].propensity": "a number above 0, up to 1",
    "retrieved[].outcome": "helpful, not, unused or null (then the episode's)",
    "outcome": "1, 0, true, false or null (not known)",
}
FIELDS = {*Record.model_fields, *Memory.model_fields}


def read(log: Log, *, weigh_by_score: bool = False) -> Iterator[Batch]:
    """Stream the log at `log.path`. With `weigh_by_score` every memory must have a score from 0 to 1."""
    return batches(log, _episodes(log, weigh_by_score))


def _episodes(log: Log, weigh_by_score: bool) -> Iterator[Episode]:
    for number, line in enumerate(_lines(log.path), start=1):
        log.read += 1
        if not line.strip():
            log.skipped["blank line"] += 1
            continue
        try:
            episode = parse(line, weigh_by_score=weigh_by_score)
        except BadLine as bad:
            log.reject(number, bad)
        else:
            yield episode


def _lines(path: str | Path) -> Iterator[bytes]:
    """The lines of a file, without its byte order mark; of a line over MAX_LINE_BYTES only the start."""
    try:
        with open(path, "rb") as file:
            if file.read(3) != codecs.BOM_UTF8:
                file.seek(0)
            while line := file.readline(MAX_LINE_BYTES + 1):
                yield line
                while len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
                    line = file.readline(MAX_LINE_BYTES + 1)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error


def parse(line: bytes, *, weigh_by_score: bool = False) -> Episode:
    """One line as an Episode; BadLine says what is wrong with it."""
    if len(line) > MAX_LINE_BYTES:
        raise BadLine("record", f"longer than {MAX_LINE_BYTES:,} bytes")
    try:
        record = Record.model_validate_json(line.rstrip(b"\r\n"))
    except ValidationError as error:
        raise _bad_line(error) from None
    outcome = -1 if record.outcome is None else int(record.outcome)
    entries = _entries(record.retrieved, outcome)
    if weigh_by_score:
        _check_weights(entries)
    time, context = record.time, record.context
    if isinstance(time, datetime):
        time = (time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp()
    return Episode(entries, outcome, time, None if context is None else str(context))


def _entries(retrieved: list[str | int | Memory], outcome: int) -> dict[str, Entry]:
    plain, entries = Entry(outcome), {}
    for slot, item in enumerate(retrieved):
        if isinstance(item, Memory):
            success = outcome if item.outcome is None else VERDICTS[item.outcome]
            name, entry = str(item.id), Entry(success, item.score, item.propensity)
        else:
            name, entry = str(item), plain
        if entries.setdefault(name, entry).success != entry.success:
            raise BadLine(f"retrieved[{slot}]", f"{_show(name)} again, with another outcome; must be the same in both")
    if len(entries) > MAX_RETRIEVED:
        raise BadLine("retrieved", f"{len(entries):,} memories; must be {ALLOWED['retrieved']}")
    return entries


def _check_weights(entries: dict[str, Entry]) -> None:
    for name, entry in entries.items():
        if entry.score is None or not 0 <= entry.score <= 1:
            score = "missing" if entry.score is None else _show(entry.score)
            raise BadLine("retrieved[].score", f"{score} for {_show(name)}; must be from 0 to 1, as it is the weight")


def _bad_line(error: ValidationError) -> BadLine:
    """The most specific of the errors in a line."""
    found = max(error.errors(include_url=False), key=lambda one: len(one["loc"]))
    if found["type"] == "json_invalid":
        return BadLine("record", found["msg"].replace("Invalid JSON", "not JSON").replace(" line 1", ""))
    parts = [
        f".{part}" if part in FIELDS else f"[{part}]" for part in found["loc"] if part in FIELDS or type(part) is int
    ]
    place = "".join(parts).removeprefix(".") or "record"
    value = "missing" if found["type"] == "missing" else _show(found["input"])
    return BadLine(place, f"{value}; must be {ALLOWED.get(re.sub('[0-9]+', '', place), NAME)}")


def _show(value: Any) -> str:
    """A value as short JSON in ASCII."""
    if isinstance(value, list | dict):
        return f"a list of {len(value):,}" if isinstance(value, list) else "an object"
    shown = json.dumps(value[:41] if isinstance(value, str) else value)
    return shown if len(shown) <= 42 else shown[:40] + "..."
