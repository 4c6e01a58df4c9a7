"""What a log says of its memories: records, and how they are written."""

from __future__ import annotations

import contextlib
import csv
import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mwjax.types import InputError

CAVEAT = "nominal: too narrow where memories or episodes share an outcome; permute outcomes over units for a valid test"


@dataclass(frozen=True)
class Episodes:
    """The tally of a log's lines: read = used + skipped."""

    read: int
    used: int
    skipped: int
    reasons: dict[str, int]  # why skipped -> lines
    messages: tuple[str, ...]  # FILE:LINE: field: what is wrong, for the first bad lines


@dataclass(frozen=True)
class MemoryReport:
    """What the log says of one memory."""

    id: str
    shown: int
    evidence: int
    successes: int
    worth: float
    interval: tuple[float, float]  # 95 %, equal tails, of the success probability under Beta(1, 1)
    label: str


@dataclass(frozen=True)
class Homogeneity:
    """Chi-square test that all memories share one success probability."""

    chi2: float
    degrees_of_freedom: int
    p_value: float
    caveat: str = CAVEAT


@dataclass(frozen=True)
class Overall:
    """The log as a whole."""

    estimator: str
    memories: int
    evidence: int
    hits: int  # successes over all memories
    base_rate: float  # hits / evidence
    interval_above: int  # memories whose interval lies above the base rate
    interval_below: int
    homogeneity: Homogeneity
    theta_low: float
    theta_high: float
    min_evidence: int


@dataclass(frozen=True)
class Report:
    """Memories are in order of appearance."""

    episodes: Episodes
    memories: tuple[MemoryReport, ...]
    overall: Overall


def report_json(report: Report) -> dict[str, Any]:
    """{"episodes": {...}, "memories": [...], "overall": {...}}, as json.loads would return it."""
    return json.loads(json.dumps(asdict(report)))


def report_csv(report: Report, path: str | Path) -> None:
    """Write one row a memory; the file appears whole or not at all."""
    path = Path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(["id", "shown", "evidence", "successes", "worth", "interval_low", "interval_high", "label"])
            for m in report.memories:
                writer.writerow([m.id, m.shown, m.evidence, m.successes, m.worth, *m.interval, m.label])
        os.replace(part, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
