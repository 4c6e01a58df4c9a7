"""A run in which memories go stale: worth around the switch, how long rules overlook it, and the price in alarms."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
import xarray
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from mwjax.analysis import survival, verdicts
from mwjax.plots.rules import acts, columns, knobs_of, labels_of, need, point, rule_styles, upper
from mwjax.plots.style import DENSE, NAMES, legend_below, line_style, lives, new_figure, settings_of, size_of

GREY = "#7F7F7F"
MOST_LIVES = 20
"""Lives whose p+ is averaged for the dashed line."""
LEAD, BAND = 0.65, (0.1, 0.9)
"""Time shown before the switch, of that after it; quantiles over lives of the band."""


def is_run(dataset: xarray.Dataset) -> bool:
    """A run with rules in which utilities drift."""
    return "decisions" in dataset and "after_episode" in dataset.get("decision", xarray.DataArray([])).values


def figure(dataset: xarray.Dataset) -> Figure:
    """Worth of the stale memories around the switch; how many stay undetected; mean delay against false alarms."""
    need(dataset, "decisions", "utility", "shown", "shown_at")
    labels, styles = labels_of(dataset), rule_styles(dataset.sizes["rule"])
    kept = "worth" in dataset and "checkpoint" in dataset.worth.dims
    with matplotlib.rc_context(DENSE):
        rows = -(-len(labels) // columns(labels))
        made = new_figure(6.5, (5.6 if kept else 3.2) + 0.16 * rows)
        grid = made.add_gridspec(1 + kept, 2, height_ratios=[1, 1.1] if kept else [1])
        if kept:
            _worth(made.add_subplot(grid[0, :]), dataset)
        left, right = made.add_subplot(grid[-1, 0]), made.add_subplot(grid[-1, 1])
        _undetected(left, dataset, labels, styles)
        _price(right, dataset, labels, styles)
        made.suptitle(_heading(dataset), fontsize=9, x=0.02, ha="left")
        legend_below(made, [left], columns(labels))
    return made


def _heading(dataset: xarray.Dataset) -> str:
    settings = settings_of(dataset)
    stale = f"{settings['drift_share']:.0%} of the memories drift to U* = {settings['drift_utility']:g}"
    return f"{lives(dataset.sizes['seed'])}, {size_of(settings)}; {stale} at episode {settings['switch_at']:,}"


def drifting(dataset: xarray.Dataset) -> int:
    """How many memories drift: the first ones."""
    return int(settings_of(dataset)["drift_share"] * dataset.sizes["memory"])


def estimator_styles(dataset: xarray.Dataset) -> list[dict[str, Any]]:
    """Each estimator as the first rule that reads its counters; the others in what is left."""
    settings, styles = settings_of(dataset), rule_styles(dataset.sizes["rule"])
    read: dict[str, int] = {}
    for i, rule in enumerate(dataset["rule"].values.tolist()):
        own = settings.get("counter", "lifetime") if acts(dataset) and i == 0 else "lifetime"
        counter = knobs_of(str(rule)).get("counter", own)
        read.setdefault({"lifetime": "memory_worth"}.get(counter, counter), i)
    names = [str(one) for one in dataset.estimator.values]
    free = iter(i for i in range(len(names) + len(styles)) if i not in [read[name] for name in names if name in read])
    return [styles[read[name]] if name in read else line_style(next(free)) for name in names]


def _worth(axes: Axes, dataset: xarray.Dataset) -> None:
    """Worth of the drifting memories of a life, on average: mean and middle 80 % of lives, by estimator; and their p+.

    Estimators whose worth is everywhere that of an earlier one share its line.
    """
    count, marks = drifting(dataset), dataset.checkpoint.values
    values = dataset.worth.values[..., :count].astype(np.float64).mean(-1)
    drawn: list[tuple[str, np.ndarray, dict[str, Any]]] = []
    for name, one, style in zip(
        dataset.estimator.values, np.moveaxis(values, 2, 0), estimator_styles(dataset), strict=True
    ):
        words = NAMES.get(str(name), str(name)).replace("_", " ") if name != "memory_worth" else "memory worth"
        same = [i for i, (_, other, _) in enumerate(drawn) if np.array_equal(other, one, equal_nan=True)]
        if same:
            drawn[same[0]] = (f"{drawn[same[0]][0]}, {words}", *drawn[same[0]][1:])
        else:
            drawn.append((words, one, style))
    for words, one, style in drawn:
        low, high = np.nanquantile(one, BAND, axis=0)
        axes.fill_between(marks, low, high, color=style["color"], alpha=0.1, lw=0)
        axes.plot(marks, np.nanmean(one, axis=0), label=words, **{**style, "ms": 4, "lw": 1.2})
    _true(axes, dataset, count)
    switch, last = settings_of(dataset)["switch_at"], int(dataset.attrs["episodes"])
    axes.axvline(switch, color=GREY, lw=1, zorder=0)
    axes.set(xlim=(max(0, switch - LEAD * (last - switch)), last), xlabel="episodes", ylabel="worth")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.set_title("worth of the drifting memories (mean; band: middle 80 % of lives)")
    falls = settings_of(dataset)["drift_utility"] < float(dataset.utility.values[:, :count].mean())
    axes.legend(loc="lower left" if falls else "upper left", frameon=False, handlelength=2.8, labelspacing=0.35)


def _true(axes: Axes, dataset: xarray.Dataset, count: int) -> None:
    """Mean p+ of the drifting memories by the truth of the moment, over the first MOST_LIVES lives."""
    settings = settings_of(dataset)
    switch, last = settings["switch_at"], int(dataset.attrs["episodes"])
    span = np.linspace(switch - 1, min(switch - 1 + settings["drift_span"], last - 1), 9).astype(int)
    times = np.unique([0, *np.maximum(span, 0), last - 1])
    known, seeds = verdicts.store_of(dataset), np.arange(min(dataset.sizes["seed"], MOST_LIVES))
    p = [verdicts.truth(known, seeds, np.full(len(seeds), t)).p_plus[:, :count].mean() for t in times]
    axes.plot(times + 1, p, color="#E69F00", lw=1.4, ls=(0, (4, 2)), label="p+ now", zorder=1)


def _undetected(axes: Axes, dataset: xarray.Dataset, labels: list[str], styles: list[dict[str, Any]]) -> None:
    """Kaplan-Meier: share of the stale memories that a rule has not noticed, against retrievals since the switch."""
    longest = 1.0
    for i, (label, style) in enumerate(zip(labels, styles, strict=True)):
        retrievals, _, censored = verdicts.delays(dataset, i)
        if not len(retrievals):
            axes.plot([], [], label=f"{label} (none stale)", lw=1.3, **style)
            continue
        times, share = survival.survival(retrievals, censored)
        x, y = np.append(0, times), np.append(1.0, share)
        longest = max(longest, float(times[-1]))
        even = np.unique(np.searchsorted(x, np.linspace(0.06, 0.94, 4) * x[-1])).tolist()
        axes.plot(x, y, drawstyle="steps-post", label=label, lw=1.3, ms=4.5, markevery=even, **style)
    axes.axhline(0.5, color=GREY, lw=0.8, ls=":", zorder=0)
    axes.set(xlabel="retrievals since the switch", ylabel="share still undetected")
    axes.set(xlim=(0, 1.02 * longest), ylim=(-0.02, 1.03))
    axes.set_title("stale memories (Kaplan-Meier)")


def _price(axes: Axes, dataset: xarray.Dataset, labels: list[str], styles: list[dict[str, Any]]) -> None:
    """Mean delay, cut at the end of the life, against false alarms; a point a rule with both 95 % intervals."""
    found = verdicts.each(dataset)
    alarms, delay = ([one[name] for one in found] for name in ("false_alarms", "delay"))
    for x, y, label, style in zip(alarms, delay, labels, styles, strict=True):
        point(axes, x, y, **{**style, "label": label})
    axes.set(xlabel="false alarms per 1,000 retrievals", ylabel="mean delay (retrievals,\ncut at the end of the life)")
    axes.set_xlim(-0.05 * max(upper(alarms), 0.1), 1.08 * max(upper(alarms), 0.1))
    axes.set_ylim(0, 1.1 * max(upper(delay), 1))
    axes.xaxis.set_major_locator(MaxNLocator(5))
    axes.set_title("delay and price")
