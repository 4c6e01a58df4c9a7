"""Sweeps over theta and the minimum evidence: success and false deprecation, a value a cell."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
import xarray
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from mwjax.analysis import verdicts
from mwjax.plots.generic import axes_of, hold
from mwjax.plots.rules import in_words, need
from mwjax.plots.style import DENSE, called, lives, new_figure, settings_of, size_of
from mwjax.results import statistics

THETA, EVIDENCE = "theta", "min_evidence"
MOST_PANELS, MOST_WRITTEN = 4, 7
"""Worlds side by side; columns up to which the values are written in the cells."""
LEAST_SPAN, WORTH_A_FRAME = 1.0, 0.1
"""Points of success that a colour scale spans at least; that the best cell must stand out by to be framed."""
MAPS = {"mean_success": "cividis", "false_deprecation": "Reds"}
NAMES = {"mean_success": "success (% of episodes)", "false_deprecation": "good memories deprecated (%)"}


def is_sweep(dataset: xarray.Dataset) -> bool:
    """A sweep over theta and the minimum evidence with success."""
    return {THETA, EVIDENCE} <= set(axes_of(dataset)) and "mean_success" in dataset


def figure(dataset: xarray.Dataset) -> Figure:
    """Mean success above, false deprecation by the acting rule below, a column for each value of the first other axis.

    Success has a colour scale in each world, as worlds differ by more than rules do; false deprecation has one for all.
    """
    need(dataset, "mean_success")
    settings = settings_of(dataset)
    other = next((name for name in axes_of(dataset) if name not in (THETA, EVIDENCE)), None)
    shown, held = hold(dataset, [THETA, EVIDENCE, *([other] if other else [])])
    over = [None] if other is None else dataset[other].values.tolist()[:MOST_PANELS]
    wrong = f"{verdicts.ACTING}.false_deprecation"
    rows = {"mean_success": "mean_success"} | ({"false_deprecation": wrong} if wrong in dataset else {})
    with matplotlib.rc_context(DENSE):
        made = new_figure(6.5 if len(over) > 1 else 3.8, 0.75 + 2.15 * len(rows))
        panels = made.subplots(len(rows), len(over), squeeze=False, sharex=True, sharey=True)
        empty = False
        for line, (kind, variable) in zip(panels, rows.items(), strict=True):
            cells = [_cell(shown if value is None else shown.sel({other: value}), variable) for value in over]
            empty |= not np.isfinite(cells).all()
            limits = None if kind == "mean_success" else (0.0, max(float(np.nanmax(cells)), 1.0))
            for axes, values, value in zip(line, cells, over, strict=True):
                _heat(axes, dataset, values, MAPS[kind], limits)
                title = "" if value is None else str(value).replace("_", " ")
                axes.set_title(f"{title}\n{NAMES[kind]}" if kind == "mean_success" else NAMES[kind], fontsize=8.5)
            line[0].set_ylabel("minimum evidence")
        for axes in panels[-1]:
            axes.set_xlabel("θ")
        if other:
            panels[0, 0].set_title(f"{called(other)}: {panels[0, 0].get_title(loc='left')}", fontsize=8.5)
        rule = f"{in_words(settings['rule'])} {'acts' if settings['governance'] != 'none' else 'watches'}"
        rule += '; "none": no memory was ever good' if empty else ""
        when = f"{lives(dataset.sizes['seed'])} a cell, {int(dataset.checkpoint[-1]):,} episodes, {size_of(settings)}"
        made.suptitle(f"{when}, {rule}{', ' + held if held else ''}", fontsize=9, x=0.02, ha="left")
    return made


def _cell(shown: xarray.Dataset, variable: str) -> np.ndarray:
    """Mean over the lives that have such memories in percent, [min_evidence, theta]; NaN where none has."""
    return 100 * statistics(shown[variable].transpose("seed", EVIDENCE, THETA).values.astype(np.float64))[0]


def _heat(
    axes: Axes, dataset: xarray.Dataset, values: np.ndarray, name: str, limits: tuple[float, float] | None
) -> None:
    """Cells in colour, their values written in them; "none" where no memory is good; the greatest success framed."""
    low, high = limits or (
        min(float(np.nanmin(values)), float(np.nanmax(values)) - LEAST_SPAN),
        float(np.nanmax(values)),
    )
    image = axes.imshow(values, aspect="auto", origin="lower", cmap=name, vmin=low, vmax=high)
    thetas, evidence = dataset[THETA].values.tolist(), dataset[EVIDENCE].values.tolist()
    axes.set_xticks(range(len(thetas)), [f"{one:g}".removeprefix("0") or "0" for one in thetas])
    axes.set_yticks(range(len(evidence)), [f"{one:g}" for one in evidence])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if len(thetas) <= MOST_WRITTEN:
        for (row, column), value in np.ndenumerate(values):
            ink = "w" if np.isfinite(value) and _dark(image.cmap(image.norm(value))) else "k"
            text = f"{value:.1f}" if np.isfinite(value) else "none"
            axes.text(column, row, text, ha="center", va="center", fontsize=8, color=ink)
    if limits is None and np.ptp(values) > WORTH_A_FRAME:
        row, column = np.unravel_index(np.nanargmax(values), values.shape)
        axes.add_patch(Rectangle((column - 0.48, row - 0.48), 0.96, 0.96, fill=False, ec="#D55E00", lw=1.8))


def _dark(color: Any) -> bool:
    """Does white read better on that colour?"""
    return 0.299 * color[0] + 0.587 * color[1] + 0.114 * color[2] < 0.55
