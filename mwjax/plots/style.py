"""What all figures share: colours of Okabe and Ito; markers and dashes tell the lines apart without colour."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import xarray
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mwjax.results import statistics
from mwjax.types import InputError

STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "axes.titlesize": 10,
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.fontsize": 9,
    "svg.hashsalt": "mwjax",
}
DENSE = STYLE | {
    "font.size": 9,
    "axes.titlesize": 9,
    "legend.fontsize": 8.5,
    "xtick.labelsize": 8,
    "ytick.labelsize": 8,
}
"""For figures of several panels; nothing under 8 points."""
LINES: tuple[tuple[str, str, Any], ...] = (
    ("#000000", "o", "-"),
    ("#D55E00", "s", (0, (6, 1.5))),
    ("#CC79A7", "D", (0, (8, 2, 2, 2))),
    ("#0072B2", "^", (0, (1, 1))),
    ("#56B4E9", "v", (0, (5, 1, 1, 1, 1, 1))),
    ("#009E73", "X", (0, (3, 1, 1, 1))),
    ("#7F7F7F", "P", (0, (2, 2))),
    ("#E69F00", "*", (0, (4, 1))),
)
"""Colour, marker and dashes: of the estimators in NAMES, then of others."""
NAMES = {
    "memory_worth": "uniform",
    "memory_worth_score": "score",
    "memory_worth_score_normalised": "score, normalised",
    "memory_worth_oracle": "oracle",
    "memory_worth_oracle_raw": "oracle, raw",
    "beta": "beta",
    "never_updated": "never updated",
}
SETTINGS = {"num_memories": "N", "num_retrieved": "k", "score_low": "lowest score"}
MAX_POINTS, MAX_TICKS = 300, 8
CLOSED, HIGH, LOW, P_PLUS = "#F0E442", "#009E73", "#D55E00", "#0072B2"


def line_styles(estimators: Sequence[str]) -> list[dict[str, Any]]:
    """How each estimator is drawn: those in NAMES the same in every figure, others in what is left, in their order."""
    taken = {list(NAMES).index(name): name for name in estimators if name in NAMES}
    free = [i for i in (*range(len(NAMES), len(LINES)), *range(len(NAMES))) if i not in taken] or [0]
    others = [name for name in estimators if name not in NAMES]
    place = {name: i for i, name in taken.items()} | {name: free[j % len(free)] for j, name in enumerate(others)}
    return [line_style(place[name]) for name in estimators]


def line_style(index: int) -> dict[str, Any]:
    """Colour, marker and dashes number `index`."""
    color, marker, dashes = LINES[index % len(LINES)]
    return {"color": color, "marker": marker, "ls": dashes}


def settings_of(dataset: xarray.Dataset) -> dict[str, Any]:
    """The settings of a run, or of the base of a sweep."""
    return json.loads(dataset.attrs["config"])


def episodes_axis(axes: Axes) -> None:
    """Episodes on a log scale, written out."""
    axes.set(xscale="log", xlabel="episodes (log scale)")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.xaxis.set_minor_formatter("")


def value_axis(axes: Axes, values: Sequence[Any], name: str, *, linear: bool = False) -> np.ndarray:
    """Values of a setting: wide ranges on a log scale that has room for 0, words side by side; returns the places."""
    axes.set_xlabel(name)
    if any(isinstance(one, str | bool) for one in values):
        axes.set_xticks(range(len(values)), [str(one) for one in values])
        return np.arange(len(values), dtype=np.float64)
    places = np.asarray(values, np.float64)
    above = np.sort(places[places > 0])
    if not linear and len(above) > 2 and places.min() >= 0 and above[-1] >= 8 * above[0]:
        axes.set_xscale("symlog", linthresh=above[0], linscale=0.5) if places.min() == 0 else axes.set_xscale("log")
        axes.minorticks_off()
    if len(places) <= MAX_TICKS:
        axes.set_xticks(places, [f"{one:g}" for one in places])
    return places


def new_figure(width: float, height: float) -> Figure:
    """An empty figure, in inches, whose parts make room for each other."""
    return Figure(figsize=(width, height), layout="constrained")


def legend_below(made: Figure, axes: Iterable[Axes], ncols: int) -> None:
    """One legend under all panels; each name once."""
    found = {label: one for each in axes for one, label in zip(*each.get_legend_handles_labels(), strict=True)}
    made.legend(list(found.values()), list(found), loc="outside lower center", ncols=ncols, frameon=False)


def usual_life(dataset: xarray.Dataset) -> int:
    """The seed with the median share of successes."""
    level = dataset.mean_success.values[:, -1] if "mean_success" in dataset else np.zeros(dataset.sizes["seed"])
    return int(np.argsort(level, kind="stable")[len(level) // 2])


def size_of(settings: Mapping[str, Any]) -> str:
    """N and k, for a title."""
    return f"N = {settings['num_memories']:,}, k = {settings['num_retrieved']}"


def called(name: str) -> str:
    """A setting in words."""
    return SETTINGS.get(name, name.replace("_", " "))


def lives(count: int) -> str:
    """How many lives, for a title."""
    return f"{count:,} {'life' if count == 1 else 'lives'}"


def mean_line(axes: Axes, x: np.ndarray, values: np.ndarray, *, shade: float = 0.2, **style: Any) -> np.ndarray:
    """The mean over lives, values [seed, x], with its 95 % interval shaded; returns the mean."""
    mean, _, low, high = statistics(np.asarray(values, np.float64))
    axes.fill_between(x, low, high, color=style.get("color", "k"), alpha=shade, lw=0)
    axes.plot(x, mean, **{"ms": 5, "lw": 1.2, **style})
    return mean


def save(drawn: Figure, path: str | Path) -> tuple[Path, Path]:
    """Write PNG (200 dots an inch) and SVG beside each other, the same bytes each time; returns both paths.

    `path` ends in .png, .svg or neither.
    """
    place = Path(path)
    base = place.with_suffix("") if place.suffix in (".png", ".svg") else place
    for kind, metadata in (("png", {"Software": None}), ("svg", {"Date": None})):
        content, target = io.BytesIO(), Path(f"{base}.{kind}")
        with matplotlib.rc_context(STYLE):
            drawn.savefig(content, format=kind, dpi=200, metadata=metadata)
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content.getvalue())
        except OSError as error:
            raise InputError(f"{target}: cannot write the figure ({error.strerror or error})") from error
    return Path(f"{base}.png"), Path(f"{base}.svg")
