"""Range checks: one line that names field, value and allowed range."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mwjax.types import InputError


def check_integer(name: str, value: Any, low: int, high: int) -> None:
    """Raise InputError unless `value` is an integer in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{name} = {value!r}: must be an integer from {low:,} to {high:,}")
    if not low <= value <= high:
        raise InputError(f"{name} = {value}: must be from {low:,} to {high:,}")


def check_number(name: str, value: Any, low: float, high: float) -> None:
    """Raise InputError unless `value` is a finite number in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise InputError(f"{name} = {value!r}: must be a number from {low:g} to {high:g}")
    if not low <= value <= high:  # NaN and infinities fail too
        raise InputError(f"{name} = {value}: must be from {low:g} to {high:g}")


def check_name(name: str, value: Any, allowed: Sequence[str]) -> None:
    """Raise InputError unless `value` is one of the allowed names; suggest the nearest one."""
    if value not in allowed:
        raise InputError(f"{name} = {value!r}: must be one of {', '.join(allowed)}{nearest(value, allowed)}")


def nearest(value: Any, allowed: Iterable[str]) -> str:
    """A suggestion for a misspelt name, or nothing."""
    import difflib

    found = difflib.get_close_matches(str(value), list(allowed), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""
