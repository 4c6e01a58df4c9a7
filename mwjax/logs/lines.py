"""A text file in blocks of whole lines: bounded memory whatever the file, one answer for what is not text."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

from mwjax.types import InputError

BLOCK_BYTES = 1 << 20
MAX_LINE_BYTES = 1 << 24

Progress = Callable[[int, int], None]
"""Called with (bytes done, bytes in all) once a block; in all is 0 where it is not known."""

NOT_TEXT = {
    b"\xff\xfe": "UTF-16 text; must be UTF-8",
    b"\xfe\xff": "UTF-16 text; must be UTF-8",
    b"\x1f\x8b": "compressed by gzip; must be unpacked",
    b"\x28\xb5\x2f\xfd": "compressed by zstd; must be unpacked",
    b"PK\x03\x04": "a zip archive; must be unpacked",
    b"SQLite format 3": "an SQLite database; must be exported as CSV or JSON Lines",
    b"PAR1": "a Parquet file; must be read with the format parquet",
}
"""How a file begins -> what it is, and what it must be."""


class Block(NamedTuple):
    """Whole lines."""

    number: int  # of the first line, from 1
    text: bytes | None  # None: one line longer than MAX_LINE_BYTES


def open_bytes(path: str | Path) -> IO[bytes]:
    """Open a file to read, or say in one line why that cannot be."""
    try:
        return open(path, "rb")
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: cannot be read ({_reason(error)})") from error


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)


def check_text(path: str | Path, start: bytes) -> None:
    """Raise InputError where the first bytes are not those of UTF-8 text."""
    if b"\0" in start[:2]:
        raise InputError(f"{path}: UTF-16 text or binary; must be UTF-8 text")
    for magic, problem in NOT_TEXT.items():
        if start.startswith(magic):
            raise InputError(f"{path}: {problem}")


def blocks(path: str | Path, progress: Progress | None = None) -> Iterator[Block]:
    """The lines of a file, without its byte order mark; a line that is too long comes without its text."""
    with open_bytes(path) as file:
        total, number = os.fstat(file.fileno()).st_size, 1
        for index, part in enumerate(_parts(path, file)):
            if index == 0:
                check_text(path, part)
                part = part.removeprefix(b"\xef\xbb\xbf")
            for block in _checked(number, part):
                yield block
                number = block.number + (1 if block.text is None else block.text.count(b"\n"))
            if progress is not None:
                progress(file.tell() if total else 0, total)


def _parts(path: str | Path, file: IO[bytes]) -> Iterator[bytes]:
    """Whole lines; of a line that is too long only the start."""
    try:
        while part := file.read(BLOCK_BYTES):
            if not part.endswith(b"\n"):
                tail = file.readline(MAX_LINE_BYTES + 1)
                part += tail
                while len(tail) > MAX_LINE_BYTES and not tail.endswith(b"\n"):
                    tail = file.readline(MAX_LINE_BYTES + 1)
            yield part
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({_reason(error)})") from error


def _checked(number: int, text: bytes) -> Iterator[Block]:
    """The block, cut where a line is too long."""
    if len(text) <= MAX_LINE_BYTES:
        yield Block(number, text)
        return
    start = 0
    while start < len(text):
        end = text.rfind(b"\n", start, start + MAX_LINE_BYTES + 1) + 1
        long = not end and len(text) - start > MAX_LINE_BYTES
        end = end or text.find(b"\n", start) + 1 or len(text)
        yield Block(number, None if long else text[start:end])
        number, start = number + (1 if long else text.count(b"\n", start, end)), end


def split(block: Block) -> Iterator[tuple[int, bytes | None]]:
    """The lines of a block with their numbers."""
    if block.text is None:
        yield block.number, None
        return
    lines = block.text.split(b"\n")
    if not lines[-1]:
        lines.pop()
    yield from enumerate(lines, start=block.number)
