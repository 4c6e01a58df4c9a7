"""How a value becomes an outcome: 1, 0, -1 (not known); never by guessing."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from itertools import repeat
from typing import Any, NamedTuple

from mwjax.logs.tally import BadLine, show
from mwjax.types import InputError

VERDICTS = {"helpful": 1, "not": 0, "unused": -1}
PLAIN = {1: 1, 0: 0, None: -1}
COMPARISONS = {">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt}
WRONG = -2


class Rule(NamedTuple):
    """What counts as success."""

    codes: Callable[[Iterable[Any]], Iterable[int]]  # of each value: 1, 0, -1 for not known, WRONG for anything else
    allowed: str  # what a message says a value must be


def rule(fields: Mapping[str, str], *, text: bool = False) -> Rule:
    """The rule of `success` and `failure` in `fields`; without them 1, 0, true, false or null. `text`: also as text."""
    if "success" not in fields:
        return Rule(_plain_text if text else _plain, "1, 0, true, false or null (not known)")
    wanted = fields["success"].strip()
    if compared := re.fullmatch(r"(>=|<=|>|<)\s*(\S+)", wanted):
        limit = number(compared[2])
        if math.isnan(limit):
            raise InputError(
                f"success: {fields['success']!r}; must be values between commas or a comparison like >=0.5"
            )
        return Rule(_comparison(COMPARISONS[compared[1]], limit), "a number, or null (not known)")
    successes, failures = _values(wanted), _values(fields["failure"]) if "failure" in fields else None
    if failures is None:
        return Rule(_choice(successes, None), "text, a number, true, false or null (not known)")
    if both := sorted(successes & failures):
        raise InputError(f"failure: {both[0]!r} is a success too; must be one of them")
    allowed = f"{', '.join(sorted(successes))} (success), {', '.join(sorted(failures))} (failure) or null (not known)"
    return Rule(_choice(successes, failures), allowed)


def _plain(values: Iterable[Any]) -> Iterable[int]:
    return map(PLAIN.get, values, repeat(WRONG))


def _plain_text(values: Iterable[Any]) -> list[int]:
    """Also of values written as text, as in a CSV file."""
    words = {"true": 1, "false": 0, "": -1}

    def code(value: Any) -> int:
        if isinstance(value, str):
            word = words.get(value.strip().lower())
            return PLAIN.get(number(value), WRONG) if word is None else word
        return PLAIN.get(value, WRONG)

    return [code(value) for value in values]


def _values(text: str) -> set[str]:
    return {value.strip() for value in text.split(",")}


def _comparison(compare: Callable[[float, float], bool], limit: float) -> Callable[[Iterable[Any]], list[int]]:
    def code(value: Any) -> int:
        if value is None or value == "":
            return -1
        found = number(value)
        return WRONG if math.isnan(found) else int(compare(found, limit))

    return lambda values: [code(value) for value in values]


def _choice(successes: set[str], failures: set[str] | None) -> Callable[[Iterable[Any]], list[int]]:
    def code(value: Any) -> int:
        if value is None or (value == "" and "" not in successes):
            return -1
        if isinstance(value, list | dict):
            return WRONG
        text = as_text(value)
        if text in successes:
            return 1
        return 0 if failures is None or text in failures else WRONG

    return lambda values: [code(value) for value in values]


def as_text(value: Any) -> str:
    """A scalar as JSON writes it, text as it is; 7 and 7.0 alike."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return str(int(value))
    return str(value)


def number(value: Any) -> float:
    """A number, or text that is one, as float; NaN for anything else, enormous ones too."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return math.nan
    if isinstance(value, str) and "_" in value:
        return math.nan
    try:
        found = float(value)
    except (ValueError, OverflowError):
        return math.nan
    return found if math.isfinite(found) else math.nan


def seconds(value: Any) -> float:
    """Seconds since 1970 of a number or ISO 8601 text (UTC where it has no offset); NaN for null. May raise BadLine."""
    if value is None:
        return math.nan
    if isinstance(value, str):
        try:
            found = datetime.fromisoformat(value)
            return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()
        except (ValueError, OverflowError):
            pass
    elif not math.isnan(found := number(value)):
        return found
    raise BadLine("time", f"{show(value)}; must be a number of seconds or ISO 8601 text")
