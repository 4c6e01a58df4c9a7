"""Records of other tools as canonical records.

json                 any record, by JMESPath: `id` finds the list of ids (or one), `score`, `propensity` and `verdict`
                     lists as long; `outcome`, `episode`, `context`, `time`, `unit` and `opponent` one value each
randomised           {"task_id", "task_type", "candidate_ids": [], "propensities": {id: p}, "included": {id: 0 | 1},
                     "success"}; the included ones are retrieved, with their propensities
openinference        spans whose `openinference.span.kind` is RETRIEVER, with `retrieval.documents.{i}.document.id` and
                     `.score`, attributes flat, nested or as a list of keys and values; all those of a trace are one
                     episode, whose outcome a second file gives
ace, remnic_trajectories      instances of jsonl and json, see source.PRESETS
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from mwjax.logs import documents
from mwjax.logs.intake import Chunk, Intake
from mwjax.logs.lines import Progress
from mwjax.logs.outcomes import as_text, number
from mwjax.logs.records import admit, convert
from mwjax.logs.schema import NAME, Schema
from mwjax.logs.source import Source
from mwjax.logs.tally import BadLine, show
from mwjax.types import InputError

Canonical = Callable[[dict[str, Any]], dict[str, Any]]
SCALARS = ("outcome", "episode", "context", "time", "unit", "opponent")
PARALLEL = ("score", "propensity", "verdict")


def read(
    source: Source,
    intake: Intake,
    how: Schema,
    canonical: Canonical,
    joined: Mapping[str, int] | None = None,
    progress: Progress | None = None,
) -> Iterator[Chunk]:
    """Stream the records of a file, each made canonical."""
    for found, numbers, bad in documents.batches(source.path, intake.tally, source.fields.get("records"), progress):
        records, good = [], []
        for record, place in zip(found, numbers, strict=True):
            try:
                records.append(convert(canonical(record), how))
                good.append(place)
            except BadLine as problem:
                bad.append((place, problem))
        yield admit(intake, how, joined, records, good, bad)


def by_paths(fields: Mapping[str, str], *, joined: bool) -> Canonical:
    """The canonical record that JMESPaths find in another."""
    for needed in ("id", "episode") if joined else ("id", "outcome"):
        if needed not in fields:
            raise InputError(f"{needed}: missing; must be the JMESPath to it, for the format json")
    find = {name: documents.path(name, fields[name]) for name in ("id", *PARALLEL, *SCALARS) if name in fields}
    scalars, parallel = [n for n in SCALARS if n in find], [n for n in PARALLEL if n in find]
    inner = {"score": "score", "propensity": "propensity", "verdict": "outcome"}

    def canonical(record: dict[str, Any]) -> dict[str, Any]:
        ids = find["id"](record)
        if ids is None:
            raise BadLine("id", f"missing; must be found by {fields['id']}")
        ids = ids if isinstance(ids, list) else [ids]
        retrieved = [{"id": one} for one in ids] if parallel else ids
        for name in parallel:
            values = find[name](record)
            values = values if isinstance(values, list) else [values] * (len(ids) if values is None else 1)
            if len(values) != len(ids):
                raise BadLine(name, f"{show(values)}; must be as many as ids, {len(ids):,}")
            for item, value in zip(retrieved, values, strict=True):
                item[inner[name]] = value
        return {"retrieved": retrieved, **{name: find[name](record) for name in scalars}}

    return canonical


def randomised(fields: Mapping[str, str]) -> Canonical:
    """The canonical record of a log with randomised inclusion."""
    called = {"episode": "task_id", "context": "task_type", "outcome": "success", "time": "time", **fields}

    def canonical(record: dict[str, Any]) -> dict[str, Any]:
        ids = _of_kind(record, "candidate_ids", list, "a list of ids")
        chances = _of_kind(record, "propensities", dict, "an object of probabilities by id")
        included = _of_kind(record, "included", dict, "an object of 0 or 1 by id")
        if called["outcome"] not in record:
            raise BadLine(called["outcome"], "missing; must be 1, 0, true, false or null (not known)")
        candidates = []
        for one in ids:
            if isinstance(one, bool) or not isinstance(one, str | int) or one == "":
                raise BadLine("candidate_ids[]", f"{show(one)}; must be {NAME}")
            chance, inside = chances.get(as_text(one)), included.get(as_text(one))
            if not 0 < number(chance) < 1:
                raise BadLine("propensities", f"{show(chance)} for {show(one)}; must be a number above 0, below 1")
            if inside not in (0, 1):
                raise BadLine("included", f"{show(inside)} for {show(one)}; must be 1, 0, true or false")
            candidates.append({"id": one, "propensity": chance, "included": bool(inside)})
        retrieved = [{"id": one["id"], "propensity": one["propensity"]} for one in candidates if one["included"]]
        scalars = {name: record.get(called[name]) for name in SCALARS if name in called}
        return {"retrieved": retrieved, "candidates": candidates, **scalars}

    return canonical


def _of_kind(record: dict[str, Any], name: str, kind: type, what: str) -> Any:
    if not isinstance(record.get(name), kind) or not record[name]:
        raise BadLine(name, f"{show(record[name]) if name in record else 'missing'}; must be {what}")
    return record[name]


def spans(
    source: Source, intake: Intake, how: Schema, joined: Mapping[str, int], progress: Progress | None = None
) -> Iterator[Chunk]:
    """Retriever spans, those of a trace together. The traces are kept in memory."""
    traces: dict[str, dict[str, Any]] = {}
    lines: dict[str, list[int]] = {}
    bad: list[tuple[int, BadLine]] = []
    for found, numbers, problems in documents.batches(
        source.path, intake.tally, source.fields.get("records"), progress
    ):
        bad += problems
        for span, place in zip(found, numbers, strict=True):
            try:
                record = _span(span, source.fields)
            except BadLine as problem:
                bad.append((place, problem))
                continue
            if record is None:
                intake.tally.skipped["not a retriever span"] += 1
                continue
            trace = traces.setdefault(record["episode"], {**record, "retrieved": []})
            trace["retrieved"] += record["retrieved"]
            lines.setdefault(record["episode"], []).append(place)
    records, places, weights = [], [], []
    for episode, trace in traces.items():
        try:
            records.append(convert(trace, how))
        except BadLine as problem:
            intake.tally.reject(lines[episode][0], problem, len(lines[episode]))
        else:
            places.append(lines[episode][0])
            weights.append(len(lines[episode]))
    yield admit(intake, how, joined, records, places, bad, np.array(weights, np.int64))


TRACE = ("context.trace_id", "trace_id", "traceId", "context.traceId")
MAX_DEPTH = 32
DOCUMENT = re.compile(r"retrieval\.documents\.(\d{1,6})\.document\.(id|score)")


def _span(span: dict[str, Any], fields: Mapping[str, str]) -> dict[str, Any] | None:
    """The canonical record of one retriever span, without outcome; None for other spans."""
    flat = flatten(span)
    if flat.get("openinference.span.kind") != "RETRIEVER":
        return None
    names = (fields["episode"],) if "episode" in fields else TRACE
    trace = next((flat[name] for name in names if flat.get(name) not in (None, "")), None)
    if isinstance(trace, bool) or not isinstance(trace, str | int):
        raise BadLine(names[0], f"{'missing' if trace is None else show(trace)}; must be the id of the trace")
    found: dict[int, dict[str, Any]] = {}
    for key, value in flat.items():
        if parts := DOCUMENT.fullmatch(key):
            found.setdefault(int(parts[1]), {})[parts[2]] = value
    scalars = {name: flat.get(fields[name]) for name in ("context", "time", "unit", "opponent") if name in fields}
    return {"episode": as_text(trace), "retrieved": [found[index] for index in sorted(found)], **scalars}


def flatten(span: dict[str, Any]) -> dict[str, Any]:
    """{"a": {"b": [1]}} as {"a.b.0": 1}; `attributes` adds no level; lists of {"key", "value"} are objects."""
    flat: dict[str, Any] = {}
    waiting: list[tuple[str, Any, int]] = [("", span, 0)]
    while waiting:
        prefix, value, depth = waiting.pop()
        if isinstance(value, list):
            value = _object(value)
        if not isinstance(value, dict) or depth == MAX_DEPTH:
            flat[prefix.removesuffix(".")] = value
            continue
        for key, inner in value.items():
            key = key.removeprefix("attributes.")
            waiting.append((prefix if key == "attributes" else f"{prefix}{key}.", inner, depth + 1))
    return flat


def _object(values: list[Any]) -> dict[str, Any]:
    if values and all(isinstance(one, dict) and one.keys() == {"key", "value"} for one in values):
        pairs = {str(one["key"]): one["value"] for one in values}
        return {key: next(iter(one.values()), None) if isinstance(one, dict) else one for key, one in pairs.items()}
    return {str(index): one for index, one in enumerate(values)}
