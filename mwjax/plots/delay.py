"""Sweeps of the moment at which memories go stale: how much later a rule notices the older the memory is."""

from __future__ import annotations

import matplotlib
import numpy as np
import xarray
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mwjax.plots.generic import axes_of, hold, metrics_of
from mwjax.plots.rules import in_words, knobs_of, rule_styles
from mwjax.plots.style import DENSE, legend_below, lives, mean_line, new_figure, settings_of, size_of
from mwjax.theory import deprecation
from mwjax.types import InputError

SWITCH = "switch_at"
SHADE = "#7F7F7F"


def is_sweep(dataset: xarray.Dataset) -> bool:
    """A sweep over the moment of the switch with delays of rules."""
    return SWITCH in axes_of(dataset) and bool(metrics_of(dataset, "delay"))


def figure(dataset: xarray.Dataset) -> Figure:
    """Mean delay against age at the switch, both in retrievals, a line a rule; and the laws where they hold."""
    shown, held = hold(dataset, [SWITCH])
    shown = shown.isel({SWITCH: shown[SWITCH].values > 0})
    if not shown.sizes[SWITCH]:
        raise InputError("axes.switch_at: the figure needs a switch after the first episode")
    settings, found = settings_of(dataset), metrics_of(dataset, "delay")
    pace = settings["num_retrieved"] / settings["num_memories"]
    age = shown[SWITCH].values * pace
    with matplotlib.rc_context(DENSE):
        made = new_figure(4.6, 4.4)
        axes = made.subplots()
        for (rule, variable), style in zip(found.items(), rule_styles(len(found)), strict=True):
            mean_line(axes, age, shown[variable].transpose("seed", SWITCH).values, **{**style, "label": in_words(rule)})
        _life(axes, age, (int(dataset.attrs["episodes"]) - shown[SWITCH].values) * pace)
        _laws(axes, dataset, list(found), age)
        axes.set(xscale="log", yscale="log", xlabel="age at the switch (expected retrievals, log scale)")
        axes.set_ylabel("mean delay (retrievals, log scale)")
        axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.0f}")
        axes.minorticks_off()
        axes.set_xticks(age, [f"{one:,.3g}" if one < 1_000 else f"{one:,.0f}" for one in age])
        theta = f"θ = {settings['theta']:g}"
        action = f", {held}" if held else ""
        made.suptitle(
            f"{lives(dataset.sizes['seed'])} a point, {size_of(settings)}, {theta}{action}",
            fontsize=9,
            x=0.02,
            ha="left",
        )
        legend_below(made, [axes], 2)
    return made


def _life(axes: Axes, age: np.ndarray, rest: np.ndarray) -> None:
    """What is left of a life after the switch, in expected retrievals: no delay can be longer."""
    axes.plot(age, rest, color=SHADE, lw=1, ls=(0, (1, 2)), label="end of the life")


def _laws(axes: Axes, dataset: xarray.Dataset, rules: list[str], age: np.ndarray) -> None:
    """The closed laws of the counters that some rule reads, where a memory's p+ is its utility (k = 1)."""
    settings = settings_of(dataset)
    low, high = settings["utility_low"], settings["utility_high"]
    if settings["num_retrieved"] != 1 or settings["outcome"] != "mean" or isinstance(low, list):
        return
    p1, p2, theta = (low + high) / 2, settings["drift_utility"], settings["theta"]
    read = {knobs_of(rule).get("counter", "lifetime") for rule in rules}
    laws = {
        "lifetime": [deprecation.lifetime_delay(one, p1, p2, theta) for one in age],
        "discounted": [deprecation.discounted_delay(settings["discount"], p1, p2, theta)] * len(age),
    }
    for (name, values), dashes in zip(laws.items(), ((0, (6, 2)), (0, (3, 2))), strict=True):
        if name in read and np.isfinite(values).all() and np.greater(values, 0).all():
            axes.plot(age, values, color="#0072B2", lw=1.2, ls=dashes, label=f"law of {name} counters")
