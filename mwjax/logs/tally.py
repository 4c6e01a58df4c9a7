"""What became of the lines of a log: read, used, skipped and why."""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mwjax.types import InputError

MESSAGE_LIMIT = 20


class BadLine(Exception):
    """A line that cannot be used: (field at fault, what is wrong with it and what is allowed)."""


@dataclass
class Tally:
    """Lines (rows of a table, records of a document, files of a folder) so far: read = used + skipped."""

    path: str | Path
    strict: bool = False  # raise InputError at the first bad line
    read: int = 0
    skipped: Counter[str] = field(default_factory=Counter)  # reason -> lines
    num_bad: int = 0  # bad lines; of a table, bad episodes and rows
    messages: list[str] = field(default_factory=list)  # of the first MESSAGE_LIMIT bad lines
    notes: list[str] = field(default_factory=list)  # what else a reader of the log should know

    @property
    def used(self) -> int:
        """Lines that gave evidence on at least one memory, or on randomised candidates."""
        return self.read - self.skipped.total()

    def reject(self, number: int, bad: BadLine, lines: int = 1) -> None:
        """Count the `lines` of a bad record that begins at line `number`: FILE:LINE: field: what is wrong."""
        place, problem = bad.args
        message = f"{self.path}:{number}: {place}: {problem}"
        if self.strict:
            raise InputError(message)
        self.skipped["bad " + re.sub(r"\[[^]]*\]", "", place)] += lines
        self.num_bad += 1
        if self.num_bad <= MESSAGE_LIMIT:
            self.messages.append(message)

    def problems(self) -> tuple[str, ...]:
        """The messages, how many more there were, and the notes."""
        more = self.num_bad - len(self.messages)
        return (*self.messages, *([f"{self.path}: {more:,} more bad lines"] if more else []), *self.notes)


def show(value: Any) -> str:
    """A value as short JSON in ASCII."""
    if isinstance(value, list | dict):
        return f"a list of {len(value):,}" if isinstance(value, list) else "an object"
    if isinstance(value, int) and abs(value) >= 10**300:
        return "an enormous integer"
    shown = json.dumps(value[:41] if isinstance(value, str) else value, default=lambda other: str(other)[:41])
    return shown if len(shown) <= 42 else shown[:40] + "..."


def one_line(error: Exception | str) -> str:
    """The first line of another library's message, short and printable."""
    text = (str(error).splitlines() or [type(error).__name__])[0]
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    return text if len(text) <= 160 else text[:157] + "..."
