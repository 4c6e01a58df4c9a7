"""Any sweep: one metric of every estimator against the first axis, small multiples over the second."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
import xarray
from matplotlib.figure import Figure

from mwjax.plots.style import (
    DENSE,
    NAMES,
    called,
    legend_below,
    line_styles,
    lives,
    mean_line,
    new_figure,
    settings_of,
    value_axis,
)
from mwjax.types import InputError

PREFERRED = ("spearman", "rmse")
LABELS = {"spearman": "Spearman's ρ with utility", "rmse": "rms of worth - p+"}
MOST_PANELS, SHADE = 4, 0.06
"""In a row; so many values of the second axis are shown at most twice."""


def axes_of(dataset: xarray.Dataset) -> list[str]:
    """The names of a sweep's axes, in order."""
    return json.loads(dataset.attrs["axes"])


def usual(dataset: xarray.Dataset, name: str) -> Any:
    """The value of an axis that the base of the sweep has, else the middle one."""
    values, base = dataset[name].values.tolist(), settings_of(dataset).get(name)
    return base if base in values else values[len(values) // 2]


def hold(dataset: xarray.Dataset, keep: list[str]) -> tuple[xarray.Dataset, str]:
    """The last checkpoint, every axis but those in `keep` at its usual value; and words that say so."""
    held = {name: usual(dataset, name) for name in axes_of(dataset) if name not in keep}
    return dataset.isel(checkpoint=-1).sel(held), words(held)


def words(held: Mapping[str, Any]) -> str:
    """Settings as words, for a title."""
    return ", ".join(f"{called(name)} = {value}" for name, value in held.items())


def metrics_of(dataset: xarray.Dataset, suffix: str) -> dict[str, str]:
    """Estimator -> variable, of the metric."""
    return {str(one).removesuffix(f".{suffix}"): str(one) for one in dataset if str(one).endswith(f".{suffix}")}


def lead(dataset: xarray.Dataset) -> tuple[str, dict[str, str]]:
    """What to draw: the first preferred metric of estimators, else the first metric there is."""
    for suffix in PREFERRED:
        if found := metrics_of(dataset, suffix):
            return suffix, found
    if not len(dataset.data_vars):
        raise InputError("metrics: the sweep has none to draw")
    first = str(next(iter(dataset.data_vars)))
    suffix = first.rpartition(".")[2]
    return suffix, metrics_of(dataset, suffix) if "." in first else {first: first}


def figure(dataset: xarray.Dataset) -> Figure:
    """Lines over the first numeric axis, one an estimator, a panel for each value of the next axis."""
    names = axes_of(dataset)
    across = next((one for one in names if np.issubdtype(dataset[one].dtype, np.number)), names[0])
    rest = [one for one in names if one != across]
    shown, held = hold(dataset, [across, *rest[:1]])
    suffix, found = lead(dataset)
    over = [None] if not rest else dataset[rest[0]].values.tolist()[: 2 * MOST_PANELS]
    columns = min(len(over), MOST_PANELS)
    rows = -(-len(over) // columns)
    with matplotlib.rc_context(DENSE):
        made = new_figure(max(3.6, min(6.5, 2.1 * columns)), 0.9 + 2.3 * rows)
        panels = made.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel()
        for axes, value in zip(panels, over, strict=False):
            cell = shown if value is None else shown.sel({rest[0]: value})
            x = value_axis(axes, dataset[across].values.tolist(), called(across))
            for (name, variable), line in zip(found.items(), line_styles(list(found)), strict=True):
                values = cell[variable].transpose("seed", across).values
                mean_line(axes, x, values, shade=SHADE, label=NAMES.get(name, name.replace("_", " ")), **line)
            axes.set_title("" if value is None else words({rest[0]: value}))
            axes.tick_params(axis="x", labelrotation=45 if columns > 2 else 0)
        for axes in panels[len(over) :]:
            axes.set_visible(False)
        panels[0].set_ylabel(LABELS.get(suffix, suffix.replace("_", " ")))
        when = f"{lives(dataset.sizes['seed'])} a point, {int(dataset.checkpoint[-1]):,} episodes"
        made.suptitle(f"{when}{', ' + held if held else ''}", fontsize=9, x=0.02, ha="left")
        legend_below(made, panels[:1], 3)
    return made
