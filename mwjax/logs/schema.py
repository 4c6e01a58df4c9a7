"""The schema of a record, one an episode: types, what its fields are called in a log, and its errors in words."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from mwjax.config import MAX_RETRIEVED
from mwjax.logs.outcomes import Rule, rule
from mwjax.logs.tally import BadLine, one_line, show
from mwjax.types import InputError

Name = Annotated[str, Meta(min_length=1)] | int
Propensity = Annotated[float, Meta(gt=0, le=1)]
Scalar = str | int | float | bool | None

NAME = "text or an integer"
LIST = f"a list of 1 to {MAX_RETRIEVED} ids, or objects with an id"
MISSING = object()


class Candidate(msgspec.Struct, gc=False):
    """A memory whose inclusion was drawn."""

    id: Name
    propensity: Annotated[float, Meta(gt=0, lt=1)]
    included: bool | Annotated[int, Meta(ge=0, le=1)]


OPTIONAL: Mapping[str, Any] = {
    "episode": Name | None,
    "time": float | str | None,
    "context": Name | None,
    "unit": Scalar,
    "opponent": Scalar,
    "candidates": list[Candidate] | None,
}


class Schema(NamedTuple):
    """How a record is read."""

    record: Any  # msgspec type; its attributes are `retrieved`, `outcome` and OPTIONAL, whatever a log calls them
    memory: Any  # msgspec type of a member of `retrieved`: `id`, `score`, `propensity`, `outcome`
    attribute: Mapping[str, str]  # `unit` and, if wanted, `opponent` -> the attribute that holds it
    allowed: Mapping[str, str]  # place in the log, without indices -> what a value there must be
    field: Mapping[str, str]  # attribute -> its name in the log
    rule: Rule


def schema(fields: Mapping[str, str], *, joined: bool = False) -> Schema:
    """The canonical record with fields called as in `fields`; where outcomes are `joined`, it needs none of its own."""
    top = {name: fields.get(name, name) for name in ("retrieved", "outcome", *OPTIONAL)}
    inner = {name: fields.get(name, name) for name in ("id", "score", "propensity")}
    inner["outcome"] = fields.get("verdict", "outcome")
    attribute = {"unit": "unit", "opponent": "opponent"}
    if "opponent" not in fields:
        del top["opponent"], attribute["opponent"]
    for name in [name for name in attribute if name in fields]:
        for other in ("episode", "time", "context"):
            if top.get(name) == top[other]:
                attribute[name] = other
                del top[name]
    if attribute["unit"] == attribute.get("opponent"):
        raise InputError(f"opponent: {fields['opponent']!r}; must be another field than the unit")
    for called in (top, inner):
        for name, value in called.items():
            if list(called.values()).count(value) > 1:
                raise InputError(f"{name}: {value!r}; must be a field that has no other meaning")
    outcomes = rule(fields)
    given = bool | int | float | None if "success" not in fields else Scalar
    memory = msgspec.defstruct(
        "Memory",
        [
            ("id", Name),
            ("score", float | None, None),
            ("propensity", Propensity | None, None),
            ("outcome", Literal["helpful", "not", "unused"] | None, None),
        ],
        rename=inner,
        gc=False,
    )
    record = msgspec.defstruct(
        "Record",
        [
            ("retrieved", list[Name | memory]),
            ("outcome", Any, None) if joined else ("outcome", given),
            *((name, kind, None) for name, kind in OPTIONAL.items() if name in top),
        ],
        rename=top,
        gc=False,
    )
    return Schema(record, memory, attribute, _allowed(top, inner, outcomes), top, outcomes)


def _allowed(top: Mapping[str, str], inner: Mapping[str, str], outcomes: Rule) -> dict[str, str]:
    retrieved, candidates = top["retrieved"], top["candidates"]
    scalars = {top[name]: "text, a number, true, false or null" for name in ("unit", "opponent") if name in top}
    return {
        **scalars,
        "record": "an object",
        retrieved: LIST,
        f"{retrieved}[]": f"{NAME}, or an object with an id",
        f"{retrieved}[].{inner['score']}": "a number",
        f"{retrieved}[].{inner['propensity']}": "a number above 0, up to 1",
        f"{retrieved}[].{inner['outcome']}": "helpful, not, unused or null (then the episode's)",
        top["outcome"]: outcomes.allowed,
        top["time"]: "a number of seconds or ISO 8601 text",
        candidates: "a list of objects with id, propensity and included",
        f"{candidates}[]": "an object with id, propensity and included",
        f"{candidates}[].propensity": "a number above 0, below 1",
        f"{candidates}[].included": "1, 0, true or false",
    }


def not_json(error: Exception) -> BadLine:
    """What is wrong with text that is not JSON."""
    if isinstance(error, RecursionError):
        return BadLine("record", "nested too deeply; must be a flat record")
    text = one_line(error).removeprefix("JSON is malformed: ").replace("Input data was truncated", "cut short")
    text = re.sub(r" - at `.*", "", text)
    return BadLine("record", f"not JSON: {text[0].lower()}{text[1:]}")


def wrong(error: msgspec.ValidationError, value: Any, how: Schema) -> BadLine:
    """What is wrong with `value`, which did not pass the schema: its place, what stands there, what must."""
    text, _, path = str(error).partition(" - at `$")
    place = path.removesuffix("`").removeprefix(".")
    for step in re.findall(r"\[(\d+)\]|\.?([^.\[\]]+)", place):
        value = _inside(value, step)
    if missing := re.search(r"missing required field `(.*)`", text):
        place, value = f"{place}.{missing[1]}".removeprefix("."), MISSING
    shown = (
        "missing" if value is MISSING else "an enormous number" if value is None and "range" in text else show(value)
    )
    place = place or "record"
    return BadLine(place, f"{shown}; must be {how.allowed.get(re.sub('[0-9]+', '', place), NAME)}")


def _inside(value: Any, step: tuple[str, str]) -> Any:
    index, key = step
    if isinstance(value, list) and index and int(index) < len(value):
        return value[int(index)]
    return value.get(key or index) if isinstance(value, dict) else None
