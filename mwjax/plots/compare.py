"""Governance rules on the same lives: what each gains at each price, and who wins at equal error."""

from __future__ import annotations

import itertools
from typing import Any

import matplotlib
import numpy as np
import xarray
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mwjax import compare
from mwjax.plots.rules import in_words, need, percent_axis, place_labels, rule_styles
from mwjax.plots.style import DENSE, called, legend_below, lives, new_figure, settings_of, size_of
from mwjax.results import statistics

GREY = "#7F7F7F"
MOST_PAIRS, FAR, TITLE = 6, 1.7, 32
"""Pairs of rules shown; times the best gain up to which the oracle is drawn as a line; letters in a title."""


def is_compare(dataset: xarray.Dataset) -> bool:
    """A result of `mwjax compare`."""
    return dataset.attrs.get("kind") == "compare"


def figure(dataset: xarray.Dataset) -> Figure:
    """Success gained against false deprecation, a curve a rule; and the differences of the rules at equal error."""
    need(dataset, "success", "false_deprecation")
    found = compare.contests(dataset)
    pairs = list(dict.fromkeys((one.first, one.second) for one in found))
    shown = pairs[:MOST_PAIRS]
    tall = sum(_joint(pair) != " " for pair in shown)
    with matplotlib.rc_context(DENSE):
        made = new_figure(6.5, max(3.7, 1.5 + 0.85 * len(shown) + 0.15 * tall))
        grid = made.add_gridspec(max(len(shown), 1), 2, width_ratios=[1.25, 1] if shown else [1, 1e-3])
        left = made.add_subplot(grid[:, 0])
        labels, marks = _curves(left, dataset)
        panels: list[Axes] = []
        for i, pair in enumerate(shown):
            panels.append(made.add_subplot(grid[i, 1], sharex=panels[0] if panels else None))
            _contest(panels[-1], [one for one in found if (one.first, one.second) == pair], pair)
        if panels:
            _finish(panels, sorted({one.level for one in found}), len(pairs))
        action = f"{int(dataset.attrs['episodes']):,} episodes, {size_of(settings_of(dataset))}"
        made.suptitle(f"{lives(dataset.sizes['seed'])} a point, {action}", fontsize=9, x=0.02, ha="left")
        legend_below(made, [left], 2)
        place_labels(made, left, labels, marks)
    return made


def _curves(axes: Axes, dataset: xarray.Dataset) -> tuple[list[Any], list[np.ndarray]]:
    """One curve a rule through the values of its knob, 95 % intervals both ways; labels to place and what is drawn.

    Between the settings a curve runs as `compare.contests` has it: linear in the error, whatever the scale.
    """
    gain, error = 100 * compare.gained(dataset), 100 * dataset.false_deprecation.values.astype(np.float64)
    (y, _, low, high), (x, _, left, right) = statistics(gain), statistics(error)
    names = dataset["rule"].values.tolist()
    rules = [one for one in dict.fromkeys(names) if one not in (compare.NOTHING, compare.ORACLE)]
    ruled = np.array([i for i, name in enumerate(names) if name in rules])
    axes.axhline(0, color=GREY, lw=1, label="doing nothing")
    labels, marks = [], []
    for name, style in zip(rules, rule_styles(len(rules)), strict=True):
        own = ruled[[names[i] == name for i in ruled]]
        own = own[np.argsort(x[own], kind="stable")]
        look = {"color": style["color"]}
        if np.isfinite(low[own]).all() and np.isfinite(left[own]).all():
            bars = {"xerr": [x[own] - left[own], right[own] - x[own]], "yerr": [y[own] - low[own], high[own] - y[own]]}
            axes.errorbar(x[own], y[own], **bars, **look, ls="", elinewidth=0.8)
            marks += [np.stack(one, 1) for one in ((x[own], low[own]), (x[own], high[own]))]
        along = _between(x[own])
        axes.plot(along, np.interp(along, x[own], y[own]), **look, lw=1.2, ls=style["ls"])
        label = f"{in_words(name)}, {called(str(dataset['knob'].values[own[0]]))}"
        axes.plot(x[own], y[own], ms=4.5, ls="", marker=style["marker"], mfc=style["mfc"], **look)
        axes.plot([], [], ms=4.5, lw=1.2, label=label, **style)
        marks += [np.stack([along, np.interp(along, x[own], y[own])], 1)]
        labels += [
            (x[i], y[i], f"{dataset['value'].values[i]:g}", style["color"]) for i in _told(own, dataset["value"].values)
        ]
    percent_axis(axes, "x", float(np.nanmax(np.append(right[ruled], x[ruled]))), "good memories deprecated (%)")
    axes.set(ylabel="success points gained", title="gain and price, labelled with the knob")
    _oracle(axes, y, names, float(np.nanmax(y[ruled])))
    return labels, marks


def _between(x: np.ndarray) -> np.ndarray:
    """The values of x with 40 more between each two."""
    return np.unique(np.concatenate([np.linspace(one, two, 41) for one, two in itertools.pairwise(x)] or [x]))


def _told(own: np.ndarray, values: np.ndarray) -> list[int]:
    """The settings whose values are written out: the least, the greatest and the middle one."""
    ranked = own[np.argsort(values[own])]
    return [int(ranked[i]) for i in dict.fromkeys((len(own) - 1, 0, len(own) // 2))]


def _oracle(axes: Axes, y: np.ndarray, names: list[str], top: float) -> None:
    """The oracle's gain: a line, or a note where it lies far above every rule."""
    axes.margins(y=0.12)
    if compare.ORACLE not in names:
        return
    gain = y[names.index(compare.ORACLE)]
    if gain <= FAR * max(top, 1e-9):
        axes.axhline(gain, color=GREY, lw=1.2, ls=(0, (5, 2)), label=f"oracle ({gain:+.2f})")
    else:
        axes.text(0.02, 0.98, f"↑ oracle: {gain:+.2f}", transform=axes.transAxes, va="top", color="#555555")


def _contest(axes: Axes, found: list[compare.Contest], pair: tuple[str, str]) -> None:
    """First less second at every level that both reach, with the 95 % interval; filled where that excludes 0."""
    axes.axhline(0, color=GREY, lw=1)
    for one in found:
        middle, low, high = (100 * value for value in (one.difference, one.low, one.high))
        clear = one.low > 0 or one.high < 0
        bars: Any = np.maximum([[middle - low], [high - middle]], 0)
        place = compare.LEVELS.index(one.level)
        fill = "k" if clear else "w"
        axes.errorbar([place], [middle], yerr=bars, color="k", marker="o", ms=4.5, mfc=fill, elinewidth=1, ls="")
    first, second = map(in_words, pair)
    axes.set_title(f"{first}{_joint(pair)}less {second}", fontsize=8.5)
    axes.set_ylabel("points")
    axes.margins(y=0.15)


def _joint(pair: tuple[str, str]) -> str:
    """A space, or a new line where both names do not fit into one."""
    return " " if len(pair[0]) + len(pair[1]) <= TITLE else "\n"


def _finish(panels: list[Axes], levels: list[float], count: int) -> None:
    """One x axis of levels for all pairs, a title of the column, and how many pairs are left out."""
    places = [compare.LEVELS.index(one) for one in levels]
    for axes in panels:
        axes.set_xticks(places, [f"{100 * one:g}" for one in levels])
        axes.tick_params(axis="x", labelbottom=axes is panels[-1])
        axes.set_xlim(min(places) - 0.5, max(places) + 0.5)
    left_out = f"\n({count - len(panels)} more pairs not shown)" if count > len(panels) else ""
    panels[-1].set_xlabel(f"at equal share of good memories\ndeprecated (%){left_out}")
