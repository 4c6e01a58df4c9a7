"""What a log says of its memories: records, and how they are written."""

from __future__ import annotations

import contextlib
import csv
import math
import os
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mwjax.replay.reliability import Prequential
from mwjax.replay.rule import RuleValue
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
    """What the log says of one memory. None stands for what the log does not support."""

    id: str
    shown: int
    evidence: int
    successes: int
    worth: float
    interval: tuple[float, float]  # 95 %, equal tails, of the success probability under Beta(1, 1)
    label: str
    posterior: float | None = None  # mean under the empirical-Bayes prior
    posterior_interval: tuple[float, float] | None = None  # 95 %, equal tails
    e_value: float | None = None  # against the base rate
    credible: bool | None = None  # differs from the base rate, all memories considered
    adjusted: float | None = None  # success probability, companions held fixed
    adjusted_interval: tuple[float, float] | None = None
    adjusted_se: float | None = None  # of the logit
    adjusted_label: str | None = None
    residual: float | None = None  # mean outcome less the base rate of its context
    ips: Inclusion | None = None
    snips: Inclusion | None = None
    doubly_robust: Inclusion | None = None
    ess: float | None = None  # effective sample size (Kish), the lesser of in and out; warned of below 30
    change_points: tuple[Change, ...] = ()
    borrows_from: str | None = None  # of a suspect: the companion that lends most


@dataclass(frozen=True)
class Inclusion:
    """What showing a memory does, where propensities are known, by one estimator; standard errors over units."""

    value: float  # E[y | do(in)]
    value_se: float
    effect: float | None = None  # E[y | do(in)] - E[y | do(out)]
    effect_se: float | None = None


@dataclass(frozen=True)
class Change:
    """The success probability of a memory changed."""

    episode: int  # of the first outcome after it, from 0 in the order of time
    time: float | None
    before: float
    after: float


@dataclass(frozen=True)
class Pair:
    """Two memories that are shown together: (evidence, successes) with both, with the first alone, the second alone."""

    first: str
    second: str
    phi: float  # correlation of the two being shown
    together: tuple[int, int]
    only_first: tuple[int, int]
    only_second: tuple[int, int]
    contrast: float | None = None  # adjusted logit of the first less that of the second
    contrast_se: float | None = None


@dataclass(frozen=True)
class Suspect:
    """A memory whose interval lies above the base rate and whose adjusted one does not: its worth seems borrowed."""

    id: str
    companion: str  # the one it borrows most from
    together: float  # share of its evidence in which the companion was present
    borrowed: float  # logit that the companion lends it
    contrast: float  # logit of the companion less its own, adjusted
    contrast_se: float
    clear: bool  # the 95 % interval of the contrast is above 0


@dataclass(frozen=True)
class Homogeneity:
    """Chi-square test that all memories share one success probability."""

    chi2: float
    degrees_of_freedom: int
    p_value: float
    caveat: str = CAVEAT


@dataclass(frozen=True)
class Spread:
    """How much the memories differ: an empirical-Bayes Beta(a, b), and the test that they do."""

    a: float
    b: float
    capped: bool  # the counters vary no more than by chance: a + b is at its cap
    chi2: float | None = None  # as in Homogeneity
    permuted_mean: float | None = None  # of chi2, outcomes permuted over units
    permuted_sd: float | None = None
    permutations: int | None = None
    p_value: float | None = None
    verdict: str | None = None


@dataclass(frozen=True)
class Adjustment:
    """The regression behind the adjusted worth."""

    penalty: float
    intercept: float
    rows: int
    left_out: int  # episodes without a row
    chosen_by: str  # "given" or "cross-validation"
    correlation_with_worth: float | None  # rank correlation over memories with min_evidence, None below three


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
    spread: Spread | None = None
    adjustment: Adjustment | None = None


@dataclass(frozen=True)
class Report:
    """Memories are in order of appearance. What the log does not support is None or empty, and `notes` say why."""

    episodes: Episodes
    memories: tuple[MemoryReport, ...]
    overall: Overall
    pairs: tuple[Pair, ...] = ()  # the most entangled, first
    suspects: tuple[Suspect, ...] = ()  # memories whose worth seems borrowed, the greatest loan first
    reliability: Prequential | None = None
    rule: RuleValue | None = None
    notes: tuple[str, ...] = ()


def plain(value: Any) -> Any:
    """Records as JSON has them; NaN and infinity are null, fields without a value absent."""
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in fields(value)}
    elif isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = dict(zip(value._fields, value, strict=True))  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items() if one is not None}
    return [plain(one) for one in value] if isinstance(value, list | tuple) else value


def report_json(report: Report) -> dict[str, Any]:
    """{"episodes": {...}, "memories": [...], "overall": {...}, ...}, as json.loads would return it."""
    found = plain(report)
    if report.rule is not None:
        found["rule"]["support"] = report.rule.support
    return found


def report_csv(report: Report, path: str | Path) -> None:
    """Write one row a memory; the file appears whole or not at all."""
    path = Path(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with open(part, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            for memory in report.memories:
                writer.writerow(_row(memory))
        os.replace(part, path)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror})") from error
    finally:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)


PARTS = {
    "interval": ("low", "high"),
    "posterior_interval": ("low", "high"),
    "adjusted_interval": ("low", "high"),
    **{name: tuple(field.name for field in fields(Inclusion)) for name in ("ips", "snips", "doubly_robust")},
}
"""Fields of MemoryReport that are several columns of the CSV file."""
COLUMNS = tuple(
    f"{field.name}_{part}" if part else field.name
    for field in fields(MemoryReport)
    for part in PARTS.get(field.name, ("",))
)


def _row(memory: MemoryReport) -> list[Any]:
    """The values of COLUMNS; of change points the episodes, between spaces."""
    found: list[Any] = []
    for field in fields(MemoryReport):
        value, parts = getattr(memory, field.name), PARTS.get(field.name)
        if field.name == "change_points":
            found.append(" ".join(str(change.episode) for change in value))
        elif parts is None:
            found.append(value)
        elif value is None:
            found += [None] * len(parts)
        else:
            found += list(value) if isinstance(value, tuple) else [getattr(value, part) for part in parts]
    return found
