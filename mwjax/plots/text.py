"""A run of texts: worth by kind, the stale memory by counter, what memories earn alone, and what rules noticed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
import xarray
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mwjax.analysis import texts
from mwjax.plots.style import DENSE, line_style, lives, new_figure, settings_of, size_of
from mwjax.results import statistics

COLORS = {
    "stale": ("#D55E00", "s", (0, (6, 1.5))),
    "specialist": ("#0072B2", "^", "-"),
    "hitchhiker": ("#CC79A7", "D", (0, (8, 2, 2, 2))),
    "control": ("#000000", "o", (0, (1, 1))),
    "companion": ("#7F7F7F", "P", (0, (2, 2))),
}
"""Of a kind: colour, marker, dashes."""
BAND = (0.1, 0.9)
"""Quantiles over lives."""
GREY = "#7F7F7F"
BACK: Any = {"fc": "white", "ec": "none", "alpha": 0.85, "pad": 1}
MOST_KINDS, MOST_RULES = 8, 14


def is_run(dataset: xarray.Dataset) -> bool:
    """A run of texts whose worth is kept at every checkpoint."""
    return texts.is_text(dataset) and "checkpoint" in dataset.worth.dims


def figure(dataset: xarray.Dataset) -> Figure:
    """Four panels; the two below need rules that decide, and readers whose p+ is known."""
    with matplotlib.rc_context(DENSE):
        ruled = "decisions" in dataset
        made = new_figure(7.2, 6.4)
        above, below = np.ravel(np.asarray(made.subfigures(2, 1, height_ratios=[1, 1.05])))
        left, right = above.subplots(1, 2)
        _kinds(left, dataset)
        _counters(right, dataset)
        lower = below.subplots(1, 1 + ruled, width_ratios=[1.25, 1][: 1 + ruled], squeeze=False)[0]
        _own(lower[0], dataset)
        if ruled:
            _rules(lower[1], dataset)
        settings = settings_of(dataset)
        when = f"the world changes at episode {settings['switch_at']:,}"
        title = f"{lives(dataset.sizes['seed'])}, {size_of(settings)}; {when}"
        made.suptitle(title, fontsize=9, x=0.02, ha="left")
    return made


def kind_style(dataset: xarray.Dataset, kind: str) -> dict[str, Any]:
    """Colour, marker and dashes of a kind."""
    if kind in COLORS:
        return dict(zip(("color", "marker", "ls"), COLORS[kind], strict=True))
    return line_style(4 + texts.kinds(dataset).index(kind))


def _time(axes: Axes, dataset: xarray.Dataset) -> None:
    settings, last = settings_of(dataset), int(dataset.attrs["episodes"])
    marks = dataset.checkpoint.values
    axes.axvline(settings["switch_at"], color=GREY, lw=1, zorder=0)
    axes.axhline(settings["theta_low"], color=GREY, lw=0.9, ls=":", zorder=0)
    axes.set(xscale="log", xlim=(max(int(marks[0]), 1), last), ylim=(0, 1.02), xlabel="episodes (log scale)")
    ticks = [x for x in (10, 30, 100, 300, 1_000, 3_000, 10_000, 30_000) if marks[0] <= x <= last]
    axes.set_xticks(ticks, [f"{x:,}" for x in ticks])
    axes.minorticks_off()


def _kinds(axes: Axes, dataset: xarray.Dataset) -> None:
    """Memory worth by kind: mean over lives, and the middle 80 %; the crossing that the closed form expects."""
    first, marks = str(dataset.estimator.values[0]), dataset.checkpoint.values
    for kind in texts.kinds(dataset)[:MOST_KINDS]:
        values, style = texts.curve(dataset, first, kind), kind_style(dataset, kind)
        low, high = np.quantile(values, BAND, axis=0)
        axes.fill_between(marks, low, high, color=style["color"], alpha=0.13, lw=0)
        axes.plot(marks, values.mean(0), label=kind, lw=1.4, ms=3.5, markevery=4, **style)
    _time(axes, dataset)
    at, level = texts.predicted_crossing(dataset), settings_of(dataset)["theta_low"]
    if at is not None:
        axes.plot([at], [level], marker="x", ms=8, mew=2, color="#000000", ls="none", zorder=5)
        axes.annotate(f"closed form: {at:,.0f}", (at, level), (9, 9), textcoords="offset points", fontsize=8, bbox=BACK)
    axes.set(ylabel=f"worth ({first.replace('_', ' ')})")
    axes.set_title("(a) worth by kind (mean; band: middle 80 % of lives)")
    axes.legend(loc="lower left", frameon=False, labelspacing=0.3, handlelength=2.6)


def _counters(axes: Axes, dataset: xarray.Dataset) -> None:
    """The stale memory by every counter; those whose curves are equal share a line."""
    marks, drawn = dataset.checkpoint.values, list[tuple[str, np.ndarray]]()
    if not texts.of_kind(dataset, texts.STALE).any():
        axes.set_axis_off()
        return
    for name in map(str, dataset.estimator.values):
        mean = texts.curve(dataset, name, texts.STALE).mean(0)
        same = [i for i, (_, other) in enumerate(drawn) if np.allclose(other, mean, atol=0.002)]
        if same:
            drawn[same[0]] = (f"{drawn[same[0]][0]}, {name}", drawn[same[0]][1])
        else:
            drawn.append((name, mean))
    for i, (name, mean) in enumerate(drawn):
        axes.plot(marks, mean, label=name.replace("_", " "), lw=1.3, ms=3.5, markevery=(i % 4, 4), **line_style(i))
    _time(axes, dataset)
    axes.set_xlim(left=settings_of(dataset)["switch_at"] * 0.8)
    axes.set_title("(b) the stale memory by counter (mean)")
    axes.legend(loc="upper right", frameon=False, labelspacing=0.25, handlelength=2.6, fontsize=8)


def _own(axes: Axes, dataset: xarray.Dataset) -> None:
    """Worth of every memory at the end against what it earns alone: above the line it is borrowed."""
    first = dataset.worth.isel(estimator=0, checkpoint=-1).values.astype(np.float64)
    mean, low, high = first.mean(0), *np.quantile(first, BAND, axis=0)
    own = dataset["alone"].values[-1]
    for kind in texts.kinds(dataset):
        mine, style = texts.of_kind(dataset, kind), kind_style(dataset, kind)
        error = [mean[mine] - low[mine], high[mine] - mean[mine]]
        axes.errorbar(
            own[mine], mean[mine], yerror_of(error), fmt=style["marker"], color=style["color"], ms=5.5, lw=0.9,
            label=kind, alpha=0.9,
        )  # fmt: skip
    axes.plot([0, 1], [0, 1], color=GREY, lw=0.9, ls=":", zorder=0)
    axes.annotate("borrowed", (0.03, 0.95), fontsize=8.5, color=GREY)
    axes.annotate("dragged down", (0.68, 0.06), fontsize=8.5, color=GREY)
    axes.set(
        xlim=(-0.05, 1.05),
        ylim=(0, 1.02),
        xlabel="success when retrieved alone (0.5: never)",
        ylabel="worth at the end",
    )
    axes.set_title("(c) worth against what a memory earns alone")


def yerror_of(error: Sequence[np.ndarray]) -> np.ndarray:
    """Distances to both ends, none below 0."""
    return np.maximum(np.stack(error), 0)


def _rules(axes: Axes, dataset: xarray.Dataset) -> None:
    """Retrievals since the switch until each rule decides against the stale memory, and how many others it condemns."""
    found = {name: values for name, values in texts.measure(dataset) if values.ndim == 1}
    names = [name.rpartition(".")[0] for name in found if name.endswith(".stale_delay")][:MOST_RULES]
    for place, name in enumerate(names):
        values, share = found[f"{name}.stale_delay"], float(found[f"{name}.stale_detected"].mean())
        wrong = float(found.get(f"{name}.others_decided", np.array([np.nan])).mean())
        mean = float(statistics(values)[0])
        if np.isfinite(mean):
            ends = np.nanquantile(values, BAND)
            axes.plot(ends, [place, place], color=GREY, lw=1.4)
            axes.plot([mean], [place], marker="o", color="#0072B2", ms=5)
        said = f"{wrong:.1%}" + ("" if share == 1 else f" (found {share:.0%})")
        axes.annotate(said, (1.01, place), xycoords=("axes fraction", "data"), fontsize=8, va="center")
    axes.set_yticks(range(len(names)), [name.replace("_", " ").replace("counter=", "") for name in names])
    axes.set(
        ylim=(len(names) - 0.4, -0.6),
        xlim=(0, None),
        xlabel="retrievals until it is noticed\n(line: middle 80 % of lives)",
    )
    axes.set_title("(d) rules; right: others condemned", x=-0.25)
