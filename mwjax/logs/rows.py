"""The rows of CSV and Parquet files in batches, with their numbers, by pyarrow.

All cells of a CSV file are text, so that ids stay as they are written; an empty cell is null. Row N of a file: in CSV
the header is row 1.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute
from pyarrow import csv, parquet

from mwjax.logs import lines
from mwjax.logs.lines import Progress
from mwjax.logs.tally import BadLine, one_line
from mwjax.types import InputError

BATCH_ROWS = 1 << 17
BLOCK_BYTES = 1 << 22
pc: Any = pyarrow.compute  # whose functions are made at run time


class Rows(NamedTuple):
    """Consecutive rows; the columns are called as in COLUMNS."""

    table: pa.Table
    number: np.ndarray  # int64 [row], place in the file


def records(path: str | Path, names: Sequence[str]) -> Iterator[tuple[int, Any]]:
    """(Number, {name: value}) of every row, or a BadLine; a column that is not there is null."""
    bad: list[tuple[int, BadLine]] = []
    there = set(header(path))
    found = {name: name for name in names if name in there}
    if names[0] not in found:
        raise InputError(f"{path}: {names[0]!r} is none of its columns: {listed(there)}")
    for batch in batches(path, found, bad, None):
        for place, row in zip(batch.number.tolist(), batch.table.to_pylist(), strict=True):
            yield place, {name: value(row.get(name)) for name in names}
    yield from bad


def header(path: str | Path) -> list[str]:
    """The names of the columns."""
    opened = _open(path, None, [])
    opened.close()
    return opened.names


def listed(names: Iterable[str]) -> str:
    """Names of columns for a message."""
    return one_line(", ".join(names))


class Opened(NamedTuple):
    """A table about to be read."""

    names: list[str]  # of its columns
    batches: Iterator[Any]
    first: int  # number of the first row
    done: Callable[[], int]  # how much of `total` has been read
    total: int
    close: Callable[[], None]


def batches(
    path: str | Path, columns: Mapping[str, str], bad: list[tuple[int, BadLine]], progress: Progress | None
) -> Iterator[Rows]:
    """Batches of rows with their numbers; rows with too few or too many cells go to `bad`."""
    opened = _open(path, list(dict.fromkeys(columns.values())), bad)
    start, seen = opened.first, 0
    try:
        for batch in opened.batches:
            skipped = np.array([place for place, _ in bad[seen:]], np.int64)
            seen = len(bad)
            place = np.arange(start, start + batch.num_rows + len(skipped))
            if len(skipped):
                place = np.setdiff1d(place, skipped)[: batch.num_rows]
            start = int(place[-1]) + 1 if len(place) else start
            cells = [_scalars(batch.column(name), f"{path}: column {name!r}") for name in columns.values()]
            table = pa.Table.from_arrays(cells, list(columns))
            if progress is not None:
                progress(opened.done(), opened.total)
            yield Rows(table, place)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read as a table ({one_line(error)})") from None
    finally:
        opened.close()


def _scalars(column: Any, place: str) -> Any:
    """The column as text, integers, floats, truth values or times, NaN as null; InputError for any other kind."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _scalars(column.cast(kind.value_type), place)
    if pa.types.is_date(kind):
        return column.cast(pa.timestamp("us"))
    if pa.types.is_decimal(kind) or pa.types.is_float16(kind):
        return column.cast(pa.float64())
    if pa.types.is_string_view(kind) or pa.types.is_null(kind):
        return column.cast(pa.large_string())
    if pa.types.is_floating(kind):
        return pc.if_else(pc.is_nan(column), None, column)
    known = ("string", "large_string", "integer", "boolean", "timestamp")
    if not any(getattr(pa.types, f"is_{name}")(kind) for name in known):
        raise InputError(f"{place}: {kind}; must hold text, numbers, truth values or times")
    return column


def _open(path: str | Path, wanted: list[str] | None, bad: list[tuple[int, BadLine]]) -> Opened:
    with lines.open_bytes(path) as file:
        start = file.read(4)
    try:
        if start == b"PAR1":
            return _open_parquet(path, wanted)
        if Path(path).suffix.lower() in (".parquet", ".pq"):
            raise InputError(f"{path}: not a Parquet file")
        text = _Text(path)
        try:
            return _open_csv(text, wanted, bad)
        except BaseException:
            text.close()
            raise
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path}: cannot be read as a table ({one_line(error)})") from None


def _open_parquet(path: str | Path, wanted: list[str] | None) -> Opened:
    file, count = parquet.ParquetFile(path), 0
    _check_names(path, file.schema_arrow.names)

    def counted() -> Iterator[Any]:
        nonlocal count
        for batch in file.iter_batches(BATCH_ROWS, columns=wanted):
            count += batch.num_rows
            yield batch

    return Opened(file.schema_arrow.names, counted(), 1, lambda: count, file.metadata.num_rows, file.close)


def _check_names(path: str | Path, names: list[str]) -> None:
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise InputError(f"{path}: two columns are called {twice!r}")


def _open_csv(text: _Text, wanted: list[str] | None, bad: list[tuple[int, BadLine]]) -> Opened:
    path = text.path
    lines.check_text(path, text.start)
    if not text.start.strip():
        raise InputError(f"{path}: is empty; must have a header and rows")

    def wrong(row: Any) -> str:
        bad.append((row.number or 0, BadLine("row", f"{row.actual_columns} cells; must be {row.expected_columns}")))
        return "skip"

    size = csv.ReadOptions(block_size=BLOCK_BYTES, use_threads=False)
    parse = csv.ParseOptions(
        delimiter="\t" if Path(path).suffix.lower() == ".tsv" else ",",
        newlines_in_values=True,
        invalid_row_handler=wrong,
    )
    if wanted is None:
        names = csv.open_csv(pa.PythonFile(text, mode="r"), size, parse).schema.names
        _check_names(path, names)
        return Opened(names, iter(()), 2, lambda: 0, 0, text.close)
    cells = csv.ConvertOptions(
        column_types=dict.fromkeys(wanted, pa.string()),
        strings_can_be_null=True,
        null_values=[""],
        include_columns=wanted,
    )
    found = csv.open_csv(pa.PythonFile(text, mode="r"), size, parse, cells)
    return Opened(wanted, found, 2, lambda: text.done, text.total, text.close)


class _Text:
    """A file as pyarrow reads it, that must be UTF-8 to its end."""

    def __init__(self, path: str | Path) -> None:
        """Open it and look at its start."""
        self.path, self.file, self.done, self.closed = path, lines.open_bytes(path), 0, False
        self.total = os.fstat(self.file.fileno()).st_size
        self.start = self.file.read(1 << 16)
        self.file.seek(0)
        self.decoder = codecs.getincrementaldecoder("utf-8")()

    def read(self, size: int = -1) -> bytes:
        """The next bytes; InputError where they are not UTF-8."""
        part = self.file.read(size)
        pending = len(self.decoder.getstate()[0])
        try:
            self.decoder.decode(part, final=not part)
        except UnicodeDecodeError as error:
            place = self.done - pending + error.start
            raise InputError(f"{self.path}: not UTF-8 at byte {place:,}; must be UTF-8 text") from None
        self.done += len(part)
        return part

    def close(self) -> None:
        """Close the file."""
        self.closed = True
        self.file.close()


def join(parts: list[Rows]) -> Rows:
    """All rows in one."""
    if len(parts) == 1:
        return parts[0]
    return Rows(pa.concat_tables([one.table for one in parts]), np.concatenate([one.number for one in parts]))


def split(rows: Rows) -> tuple[Rows, Rows]:
    """All but the rows of the last episode, and those."""
    column = rows.table["episode"]
    last = column[len(column) - 1]
    differs = pc.fill_null(pc.not_equal(column, last), True) if last.is_valid else pc.is_valid(column)
    other = np.flatnonzero(differs.to_numpy())
    cut = int(other[-1]) + 1 if len(other) else 0
    part = lambda one: Rows(rows.table[one], rows.number[one])
    return part(slice(0, cut)), part(slice(cut, len(column)))


def value(value: Any) -> Any:
    """NaN is null."""
    return None if isinstance(value, float) and value != value else value
