"""What figures of governance rules share: names in words, styles, percent axes, points with both intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.ticker import NullLocator

from mwjax.plots.style import LINES, line_style, settings_of
from mwjax.results import statistics
from mwjax.types import InputError

PERCENT = (0, 0.1, 0.3, 1, 3, 10, 30, 100)
"""Ticks of a percent axis."""
KNEE = 0.1
"""Percent below which a percent axis is linear, so that it has room for 0."""


def need(dataset: xarray.Dataset, *names: str) -> None:
    """Raise InputError, one line, unless the Dataset has the variables."""
    missing = [name for name in names if name not in dataset]
    if missing:
        raise InputError(f"metrics: the figure needs {', '.join(missing)}, which this result does not have")


def in_words(rule: str) -> str:
    """A rule as a legend calls it: `beta:counter=discounted,delta=.01` is "beta on discounted, delta .01"."""
    name = rule.partition(":")[0]
    told = knobs_of(rule)
    counter = told.pop("counter", None)
    parts = [name if counter is None else f"{name} on {counter}", *(f"{key} {value}" for key, value in told.items())]
    return ", ".join(parts).replace("_", " ")


def knobs_of(rule: str) -> dict[str, str]:
    """What a watcher is told, as written: {"counter": "discounted", "delta": ".01"}."""
    given = [one.split("=", 1) for one in rule.partition(":")[2].split(",") if "=" in one]
    return {one[0].strip(): one[1].strip() for one in given}


def labels_of(dataset: xarray.Dataset) -> list[str]:
    """The rules of a run in words, the one that acts so labelled."""
    words = [in_words(str(one)) for one in dataset["rule"].values]
    return [f"{words[0]} (acts)", *words[1:]] if acts(dataset) else words


def acts(dataset: xarray.Dataset) -> bool:
    """Does the first rule act?"""
    return settings_of(dataset)["governance"] != "none"


def rule_styles(count: int) -> list[dict[str, Any]]:
    """Colour, marker and dashes of every rule; beyond the LINES, markers are open."""
    styles = [line_style(i) for i in range(count)]
    return [{**one, "mfc": "w" if i >= len(LINES) else one["color"]} for i, one in enumerate(styles)]


def columns(labels: Sequence[str], width: float = 6.5) -> int:
    """How many columns of a legend fit into a figure of so many inches: at most 3."""
    return int(np.clip(width / (0.6 + 0.06 * max(map(len, labels), default=0)), 1, 3))


def percent_axis(axes: Axes, side: str, most: float, name: str) -> None:
    """A share in percent, linear up to KNEE and logarithmic beyond where the greatest value makes that worth it."""
    axis = axes.xaxis if side == "x" else axes.yaxis
    wide = most > 4
    if wide:
        (axes.set_xscale if side == "x" else axes.set_yscale)("symlog", linthresh=KNEE, linscale=0.4)
        shown = [one for one in PERCENT if one <= 1.3 * most]
        axis.set_ticks(shown, [f"{one:g}" for one in shown])
        axis.set_minor_locator(NullLocator())
    pad = (-0.04 if wide else -0.05 * max(most, 0.1), 1.3 * most if wide else 1.08 * max(most, 0.1))
    (axes.set_xlim if side == "x" else axes.set_ylim)(*pad)
    (axes.set_xlabel if side == "x" else axes.set_ylabel)(name)


def point(axes: Axes, x: np.ndarray, y: np.ndarray, **style: Any) -> tuple[float, float]:
    """Means of two values per life, each with its 95 % interval, as an open marker; returns the means."""
    (at, _, left, right), (height, _, low, high) = (statistics(np.asarray(one, np.float64)) for one in (x, y))
    look = {key: value for key, value in style.items() if key not in ("ls", "mfc")}
    bars = {"xerr": _bars(at, left, right), "yerr": _bars(height, low, high)}
    axes.errorbar([at], [height], **bars, elinewidth=1, mew=1.4, ms=6.5, mfc="none", ls="", **look)
    return float(at), float(height)


def _bars(mean: Any, low: Any, high: Any) -> np.ndarray | None:
    """Lengths of an error bar, [2, 1]; None for one life, which has no interval."""
    ends = np.array([[mean - low], [high - mean]])
    return np.maximum(ends, 0) if np.isfinite(ends).all() else None


def upper(values: Sequence[np.ndarray]) -> float:
    """The greatest upper end of the 95 % intervals of means over lives, for the reach of an axis."""
    found = [statistics(np.asarray(one, np.float64)) for one in values]
    ends = [float(np.nanmax(np.append(high, mean))) for mean, _, _, high in found if np.isfinite(mean).any()]
    return max([0.0, *ends])


OFFSETS = (
    (0, 9),
    (0, -9),
    (9, 8),
    (9, -8),
    (-9, 8),
    (-9, -8),
    (15, 0),
    (-15, 0),
    (0, 18),
    (0, -18),
    (18, 15),
    (18, -15),
)
"""Where the middle of a label may lie from its point, in points, best first."""


def place_labels(
    made: Figure, axes: Axes, labels: Sequence[tuple[float, float, str, str]], marks: Sequence[np.ndarray]
) -> None:
    """Texts (x, y, text, colour) beside their points, clear of each other and, as far as may be, of marks [point, 2].

    To be called when the figure is complete, as it takes the layout to be final.
    """
    made.draw_without_rendering()
    unit, seen = made.dpi / 72, axes.transData.transform(np.concatenate(marks))
    frame, taken = axes.get_window_extent(), np.empty((0, 4))
    for x, y, text, color in labels:
        half = np.array([2.8 * len(text) + 1, 4.5]) * unit
        at = axes.transData.transform((x, y)) + np.array(OFFSETS) * unit
        at[:, 0] += np.sign(np.array(OFFSETS)[:, 0]) * (half[0] - 4 * unit)
        low, high = at - half, at + half
        overlap = ((low[:, None] < taken[:, 2:]) & (high[:, None] > taken[:, :2])).all(-1).sum(1)
        outside = (low < (frame.x0, frame.y0)).any(1) | (high > (frame.x1, frame.y1)).any(1)
        hidden = ((low[:, None] < seen) & (high[:, None] > seen)).all(-1).sum(1)
        best = int(np.argmin(1e4 * overlap + 1e3 * outside + hidden))
        taken = np.append(taken, [np.append(low[best], high[best])], axis=0)
        place = axes.transData.inverted().transform(at[best])
        halo = [withStroke(linewidth=2, foreground="w")]
        axes.text(*place, text, fontsize=8, color=color, ha="center", va="center", path_effects=halo)
