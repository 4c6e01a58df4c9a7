"""A log, whatever its format, as a Journal or as counters."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from mwjax.formats import COUNTERS_ONLY, PRESETS
from mwjax.logs import canonical, counters, importers, joining
from mwjax.logs.building import build
from mwjax.logs.counters import Counters
from mwjax.logs.detection import detect
from mwjax.logs.intake import Chunk, Intake
from mwjax.logs.journal import Journal
from mwjax.logs.lines import Progress
from mwjax.logs.schema import schema
from mwjax.logs.source import Source
from mwjax.logs.tally import Tally
from mwjax.types import InputError


class Loaded(NamedTuple):
    """A log in memory: either its journal or, of a format that has no episodes, its counters."""

    journal: Journal | None
    counters: Counters | None
    tally: Tally
    format: str  # the one found, where it was to be found


def load(source: Source, *, progress: Progress | None = None) -> Loaded:
    """Read a whole log. Raises InputError: a file or an option that cannot be used, and with `strict` any bad line.

    A tally with no line of use is the caller's to judge.
    """
    source, shape = resolve(source)
    tally = Tally(source.path, strict=source.strict)
    if source.format in COUNTERS_ONLY:
        return Loaded(None, counters.read(source, tally, progress), tally, shape)
    intake = _intake(source, tally)
    chunks = list(_chunks(source, intake, progress))
    return Loaded(build(chunks, intake), None, tally, shape)


def count(
    source: Source, *, progress: Progress | None = None
) -> tuple[tuple[str, ...], np.ndarray, np.ndarray, np.ndarray, Tally]:
    """(names, shown, evidence, successes, tally) of a log of any length; the arrays int64 [memory].

    Nothing is kept of an episode, but for the outcomes of a joined file and the traces of OpenInference. The rows of a
    table are taken as they come: those of one episode must stand together, or its memories count once for each part.
    """
    source, _ = resolve(source)
    tally = Tally(source.path, strict=source.strict)
    if source.format in COUNTERS_ONLY:
        found = counters.read(source, tally, progress)
        return found.names, found.shown, found.evidence, found.successes, tally
    intake = replace(_intake(source, tally), details=False)
    counts = np.zeros((3, 0), np.int64)
    for chunk in _chunks(source, intake, progress):
        size = len(intake.memories.text)
        counts = np.pad(counts, [(0, 0), (0, size - counts.shape[1])])
        for row, part in enumerate((chunk.success >= -1, chunk.success >= 0, chunk.success == 1)):
            counts[row] += np.bincount(chunk.memory[part], minlength=size)
    return tuple(intake.memories.text), counts[0], counts[1], counts[2], tally


def resolve(source: Source) -> tuple[Source, str]:
    """The source with its format found and its preset filled in, and the name of that format."""
    shape = detect(source) if source.format == "auto" else source.format
    if source.join is not None and shape in COUNTERS_ONLY:
        raise InputError(f"join: {str(source.join)!r}; must be absent with the format {shape}, which has counters only")
    base, preset = PRESETS.get(shape, (shape, {}))
    if "success" in source.fields:
        preset = {name: value for name, value in preset.items() if name != "failure"}
    return replace(source, format=base, fields={**preset, **source.fields}), shape


def _intake(source: Source, tally: Tally) -> Intake:
    return Intake(
        tally,
        weigh_by_score=source.weigh_by_score,
        empty_is_bad=source.format == "jsonl" and "retrieved" not in source.fields,
    )


def _chunks(source: Source, intake: Intake, progress: Progress | None) -> Iterator[Chunk]:
    """The episodes of a log, as they come."""
    fields, joins = source.fields, source.join is not None
    episode = fields.get("episode", "trace_id" if source.format == "openinference" else "episode")
    if source.format == "openinference" and not joins:
        raise InputError("join: missing; must be a second file with the outcomes, for the format openinference")
    if joins and source.format in ("csv", "parquet") and "episode" not in fields:
        raise InputError("episode: missing; must be the column that two files are joined on")
    joined = joining.outcomes(source, episode, intake.tally) if joins else None
    if source.format == "jsonl":
        return canonical.stream(source.path, intake, schema(fields, joined=joins), joined, progress)
    if source.format in ("csv", "parquet"):
        from mwjax.logs import gathering

        return gathering.read(source, intake, joined, progress)
    ours = {name: fields[name] for name in ("success", "failure") if name in fields}
    how = schema(ours | {name: name for name in ("unit", "opponent") if name in fields}, joined=joins)
    if source.format == "openinference":
        assert joined is not None
        return importers.spans(source, intake, how, joined, progress)
    make = importers.randomised(fields) if source.format == "randomised" else importers.by_paths(fields, joined=joins)
    return importers.read(source, intake, how, make, joined, progress)
