"""Columns of a table as arrays of numbers and codes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from mwjax.logs.outcomes import number, seconds
from mwjax.logs.rows import pc
from mwjax.logs.tally import BadLine, show


def codes(column: pa.ChunkedArray) -> tuple[Any, np.ndarray]:
    """(Distinct values in order of appearance, null among them; the place of each row's value, int64 [row])."""
    found = pc.dictionary_encode(column, null_encoding="encode").unify_dictionaries().combine_chunks()
    if isinstance(found, pa.ChunkedArray):
        found = found.chunk(0) if found.num_chunks else pa.array([], column.type).dictionary_encode()
    return found.dictionary, found.indices.to_numpy(zero_copy_only=False).astype(np.int64)


def floats(column: pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
    """(Numbers, NaN for anything else; which cells hold something)."""
    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        found = column.cast(pa.float64()).to_numpy()
        return np.where(np.isfinite(found), found, np.nan), np.zeros(len(found), bool) | np.isinf(found)
    values, code = codes(column)
    given = values.to_pylist()
    found = np.array([number(one) for one in given], np.float64)[code] if given else np.zeros(0)
    return found, np.array([one is not None for one in given], bool)[code] if given else np.zeros(0, bool)


def times(column: pa.ChunkedArray, place: str, blame: Callable[..., None]) -> np.ndarray:
    """Seconds since 1970, float64 [row]."""
    if pa.types.is_timestamp(column.type):
        whole = column.cast(pa.timestamp("us", tz=column.type.tz)).cast(pa.int64())
        return whole.to_numpy().astype(np.float64) / 1e6
    if pa.types.is_floating(column.type) or pa.types.is_integer(column.type):
        found, infinite = floats(column)
        blame(infinite, place, lambda row: f"{column[row].as_py()}; must be a number of seconds or ISO 8601 text")
        return found
    values, code = codes(column)
    given, found, wrong = values.to_pylist(), [], []
    for one in given:
        as_number = number(one)
        try:
            found.append(as_number if as_number == as_number else seconds(one))
            wrong.append(False)
        except BadLine:
            found.append(np.nan)
            wrong.append(True)
    told = lambda row: f"{show(given[code[row]])}; must be a number of seconds or ISO 8601 text"
    if any(wrong):
        blame(np.array(wrong, bool)[code], place, told)
    return np.array(found, np.float64)[code] if given else np.zeros(0)
