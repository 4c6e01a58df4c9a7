"""The map of the separation threshold: how often a pair must be seen apart before its memories are told apart."""

from __future__ import annotations

import json
from typing import Any

import matplotlib
import numpy as np
import xarray
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from mwjax.plots.style import CLOSED, DENSE, new_figure, settings_of, size_of
from mwjax.separation import SLICE_EPISODES

CRITERIA: dict[str, tuple[str, str, str, Any]] = {
    "gap_above": ("gap > .02", "#D55E00", "s", (0, (6, 1.5))),
    "posterior": ("posterior > .95", "#0072B2", "^", (0, (1, 1))),
    "disjoint": ("95 % intervals\ndisjoint", "#CC79A7", "D", (0, (8, 2, 2, 2))),
    "removal": ("removal value", "#009E73", "X", (0, (3, 1, 1, 1))),
}
"""Criterion -> label, colour, marker, dashes."""
MAIN = "anchor_above"
SHADES = LinearSegmentedColormap.from_list("shades", ["#FFFFFF", "#D6E6F4", "#94C4DF"])
LEVELS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 1.0)
NAMES = {
    "num_memories": "memories N",
    "num_retrieved": "retrieved k",
    "hitchhiker_utility": "hitchhiker's utility",
}
HALF_LINE = 0.023
"""Half the height of a line of a label, as a share of the map's height."""


def figure(dataset: xarray.Dataset) -> Figure:
    """Left the map over separation and episodes with the thresholds of all criteria; right those along the slices."""
    fields = [str(name).removesuffix("_threshold") for name in dataset if str(name).endswith("_threshold")]
    with matplotlib.rc_context(DENSE):
        made = new_figure(6.5, 4.3 if len(fields) < 3 else 4.9)
        grid = made.add_gridspec(max(len(fields), 1), 2 if fields else 1, width_ratios=(2.35, 1) if fields else None)
        axes = made.add_subplot(grid[:, 0])
        _map(axes, dataset)
        _thresholds(axes, dataset)
        for i, field in enumerate(fields):
            _slice(made.add_subplot(grid[i, 1]), dataset, field, first=i == 0)
        settings = settings_of(dataset)
        ends = f"anchor U* = {settings['anchor_utility']:g}, hitchhiker U* = {settings['hitchhiker_utility']:g}"
        made.suptitle(f"{size_of(settings)}, {ends}", fontsize=9, x=0.02, ha="left")
        made.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return made


def _map(axes: Axes, dataset: xarray.Dataset) -> None:
    """P(worth of the anchor > worth of the hitchhiker) as measured, between the cells linear in f and T."""
    score, aim = dataset.score.sel(criterion=MAIN).values, json.loads(dataset.attrs["aim"])
    place: tuple[Any, ...] = (dataset.checkpoint.values, dataset.separation.values, np.clip(score, 0, 1))
    if min(score.shape) > 1:
        axes.contourf(*place, levels=LEVELS, cmap=SHADES)
        levels = [one for one in LEVELS[1:-1] if one != aim["level"]]
        lines = axes.contour(*place, levels=levels, colors="#7F7F7F", linewidths=0.6)
        for text in axes.clabel(lines, fontsize=8, fmt=lambda p: f"{p:.2f}".rstrip("0")[1:], colors="#404040"):
            text.set_zorder(2.5)
    axes.set_title(
        "Shades: P(worth of anchor > worth of hitchhiker)\n"
        f"Lines: least f at which {100 * aim['level']:g} % of lives meet a criterion"
    )
    axes.set(xscale="log", yscale="log", xlabel="episodes T (log scale)", ylabel="separation f (log scale)")
    axes.set(xlim=(place[0][0], place[0][-1]), ylim=(place[1].min(), 1))
    _plain_ticks(axes.xaxis, place[0], "{:,.0f}", most=5)
    _plain_ticks(axes.yaxis, np.array([0.02, 0.05, 0.06, 0.1, 0.2, 0.3, 0.5, 1.0]), "{:g}", most=8)


def _plain_ticks(axis: Any, values: np.ndarray, form: str, most: int) -> None:
    """Ticks at some of the values, both ends among them, written out."""
    low, high = axis.get_view_interval()
    inside = values[(values >= low) & (values <= high)]
    some = inside[np.unique(np.linspace(0, len(inside) - 1, min(len(inside), most)).round().astype(int))]
    axis.set_ticks(some, [form.format(one) for one in some])
    axis.set_minor_formatter("")
    axis.set_tick_params(which="minor", length=0)


def _thresholds(axes: Axes, dataset: xarray.Dataset) -> None:
    marks, level = dataset.checkpoint.values, json.loads(dataset.attrs["aim"])["level"]
    at = lambda name, end: dataset[end].sel(criterion=name).values
    if np.isfinite(dataset.closed_form).any():
        axes.plot(marks, dataset.closed_form, color=CLOSED, lw=5, zorder=3, label="closed form of f*")
    low, high = at(MAIN, "low"), at(MAIN, "high")
    axes.fill_between(marks, low, np.minimum(high, 1), color="k", alpha=0.25, lw=0, zorder=2.8, label="95 % band of f*")
    axes.plot(
        marks, at(MAIN, "threshold"), color="k", lw=2, zorder=4, label=f"f*: anchor above in {100 * level:g} % of lives"
    )
    labels, never = [(float(at(MAIN, "threshold")[-1]), "f*: anchor above", "k")], []
    for name, (label, color, marker, dashes) in CRITERIA.items():
        values = at(name, "threshold")
        if not np.isfinite(values).any():
            never.append(label.replace("\n", " "))
            continue
        style: dict[str, Any] = {"color": color, "marker": marker, "ls": dashes, "ms": 4.5, "lw": 1.5}
        halo = [withStroke(linewidth=3.5, foreground="w")]
        axes.plot(marks, values, zorder=3.8, clip_on=False, path_effects=halo, **style)
        below = bool((values <= dataset.separation.values.min()).all())
        labels.append((float(values[-1]), f"{label}\n(at most)" if below else label, color))
    _label_ends(axes, labels)
    if never:
        text = f"never, for f up to 1:\n{', '.join(never)}"
        axes.text(0.03, 0.03, text, transform=axes.transAxes, fontsize=8, bbox={"fc": "w", "ec": "none", "alpha": 0.8})


def _label_ends(axes: Axes, labels: list[tuple[float, str, str]]) -> None:
    """Each line's name at its right end, moved up where two would meet."""
    bottom, top = np.log10(axes.get_ylim())
    unit, last = (top - bottom) * HALF_LINE, bottom
    for value, label, color in sorted(labels):
        height = np.log10(value) if np.isfinite(value) else top
        half = unit * (1 + label.count("\n"))
        height = max(height, last + half)
        last = height + half
        axes.annotate(
            label,
            (1.0, (min(np.log10(value), top) - bottom) / (top - bottom) if np.isfinite(value) else 1.0),
            (1.05, (height - bottom) / (top - bottom)),
            xycoords="axes fraction",
            fontsize=8,
            va="center",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": color, "lw": 0.6, "shrinkA": 0, "shrinkB": 2},
        )


def _slice(axes: Axes, dataset: xarray.Dataset, field: str, *, first: bool) -> None:
    """f* along one field; where no separation reaches the level, a mark at the top."""
    at = lambda end: dataset[f"{field}_{end}"].values
    x, found, closed = dataset[field].values.astype(np.float64), at("threshold"), at("closed_form")
    axes.plot(x, closed, color=CLOSED, lw=4, zorder=1)
    reached = np.isfinite(found)
    middle, high = found[reached], np.minimum(at("high")[reached], TOP)
    spread = np.maximum([middle - at("low")[reached], high - middle], 0)
    axes.errorbar(x[reached], middle, spread, fmt="o", color="k", ms=4, lw=1.2, capsize=2.5, zorder=3)
    if not reached.all():
        axes.plot(x[~reached], np.full((~reached).sum(), 1.0), "^", color="k", mfc="w", ms=6, zorder=3, clip_on=False)
        for one in x[~reached]:
            axes.annotate("never", (one, 1.0), (-5, 0), textcoords="offset points", fontsize=8, ha="right", va="center")
    shown = np.concatenate([middle, at("low")[reached], closed[np.isfinite(closed) & (closed > 0)], [0.5]])
    axes.set(yscale="log", ylim=(max(min(shown.min() * 0.75, 0.5), 1e-3), TOP), xlabel=NAMES.get(field, field))
    if np.issubdtype(dataset[field].dtype, np.integer):
        axes.set_xscale("log")
        axes.minorticks_off()
    axes.set_xticks(x, [f"{one:g}" for one in x])
    axes.margins(x=0.12)
    _plain_ticks(axes.yaxis, np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0]), "{:g}", most=7)
    axes.set_ylabel("f*")
    if first:
        axes.set_title(f"f* after\n{SLICE_EPISODES:,} episodes")


TOP = 1.25
