"""A run of the ranking world, or any run of one pool under one context: Spearman over time, and the labels."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
import xarray
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mwjax import paper, theory
from mwjax.plots.style import CLOSED, HIGH, LINES, LOW, MAX_POINTS, NAMES, P_PLUS, STYLE, line_styles, usual_life
from mwjax.results import statistics
from mwjax.types import InputError

CLOSE = 0.05
"""Estimators whose Spearman stays this close to the first one's are told apart in a strip of differences."""
STAGGER = 4


def figure(dataset: xarray.Dataset) -> Figure:
    """Draw a run like the paper's first experiment; needs the metric spearman.

    Left: Spearman against episodes, under it what the estimators differ by on the same lives. Right: what the worth of
    one life says of the true utilities, and how many labels at the thresholds are wrong.
    """
    if "spearman" not in dataset:
        raise InputError("metrics: the figure needs spearman, which this result does not have")
    settings, values = json.loads(dataset.attrs["config"]), dataset.spearman.values
    close = np.flatnonzero(np.abs((values - values[..., :1]).mean(axis=0)).max(axis=0) < CLOSE)
    with matplotlib.rc_context(STYLE):
        made = Figure(figsize=(6.2, 4.5), layout="constrained")
        grid = made.add_gridspec(2, 2, height_ratios=(2.4, 1), width_ratios=(1.1, 1))
        top = made.add_subplot(grid[0, 0] if len(close) > 1 else grid[:, 0])
        bottom = made.add_subplot(grid[1, 0], sharex=top) if len(close) > 1 else top
        _ranking(top, dataset, values, settings)
        if bottom is not top:
            _differences(bottom, dataset, values, close)
        bottom.set_xlabel("episodes (log scale)")
        _labels(made.add_subplot(grid[:, 1]), dataset, settings)
        made.legend(*top.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return made


def _ranking(axes: Axes, dataset: xarray.Dataset, values: np.ndarray, settings: Mapping[str, Any]) -> None:
    episodes = dataset.checkpoint.values
    for i, (name, line) in enumerate(zip(dataset.estimator.values, line_styles(dataset.estimator.values), strict=True)):
        mean, sd, low, high = statistics(values[..., i])
        if i == 0 and len(values) > 1:
            axes.fill_between(episodes, mean - sd, mean + sd, color="k", alpha=0.12, lw=0, label="± sd over lives")
        axes.fill_between(episodes, low, high, color=line["color"], alpha=0.3, lw=0)
        every = (i % min(STAGGER, len(episodes)), STAGGER)
        axes.plot(episodes, mean, markevery=every, ms=5, lw=1.2, label=NAMES.get(name, name), **line)
    if [settings[name] for name in ("utility", "outcome", "retrieval")] == ["uniform", "mean", "uniform"]:
        _closed_form(axes, episodes, settings)
        _published(axes, episodes, settings)
    axes.set(xscale="log", ylim=(min(-0.05, values.mean(axis=0).min() - 0.05), 1), ylabel="Spearman's ρ with utility")
    n, k, lives = settings["num_memories"], settings["num_retrieved"], "lives" if len(values) > 1 else "life"
    axes.set_title(f"{len(values):,} {lives}, N = {n:,}, k = {k}")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.xaxis.set_minor_formatter("")
    axes.label_outer()


def _closed_form(axes: Axes, episodes: np.ndarray, settings: Mapping[str, Any]) -> None:
    """The line that theory predicts for uniform weights, over the range for which it is stated."""
    n, k = settings["num_memories"], settings["num_retrieved"]
    if k < 3 or episodes[-1] * k < 15 * n:
        return
    marks = np.geomspace(max(episodes[0], 15 * n / k), episodes[-1], 60)
    low, high = settings["utility_low"], settings["utility_high"]
    expected = [theory.spearman(n, k, mark, utility_low=low, utility_high=high) for mark in marks]
    axes.plot(marks, expected, color=CLOSED, lw=5, zorder=1, label="closed form")


def _published(axes: Axes, episodes: np.ndarray, settings: Mapping[str, Any]) -> None:
    """The published values, side by side in the colours of their estimators, where the settings are the paper's."""
    theirs = {"num_memories": paper.N, "num_retrieved": paper.K, "utility_low": 0, "utility_high": 1}
    if any(settings[name] != value for name, value in theirs.items()):
        return
    rows = [row for row in paper.ROWS if row.experiment == "ranking" and row.spread]
    order = list(dict.fromkeys(row.metric.removesuffix(".spearman") for row in rows))
    for row in (row for row in rows if (row.checkpoint or 0) <= episodes[-1]):
        shift = order.index(row.metric.removesuffix(".spearman"))
        color = LINES[list(NAMES).index(order[shift])][0]
        bar: dict[str, Any] = {"fmt": "d", "color": color, "mfc": "w", "ms": 5, "capsize": 2, "lw": 1, "zorder": 9}
        place, label = float(row.checkpoint or 0) * 1.12 ** (shift - 1), "published ± sd" if row is rows[0] else None
        axes.errorbar(place, row.published, float(row.spread or 0), **bar, label=label)


def _differences(axes: Axes, dataset: xarray.Dataset, values: np.ndarray, close: np.ndarray) -> None:
    lines, first = line_styles(dataset.estimator.values), dataset.estimator.values[0]
    for i in close:
        mean, _, low, high = statistics(values[..., i] - values[..., 0])
        axes.fill_between(dataset.checkpoint.values, low, high, color=lines[i]["color"], alpha=0.2, lw=0)
        axes.plot(dataset.checkpoint.values, mean, ms=4, lw=1, **lines[i])
    axes.set_ylabel("difference")
    axes.set_title(f"from {NAMES.get(first, first)}, same lives", fontsize=9)


def _labels(axes: Axes, dataset: xarray.Dataset, settings: Mapping[str, Any]) -> None:
    seed = usual_life(dataset)
    life = dataset.isel(seed=seed, estimator=0)
    utility, p_plus = life.utility.values, life.p_plus.values
    worth = life.worth.values if life.worth.ndim == 1 else life.worth.values[-1]
    order = np.argsort(utility, kind="stable")
    some = order[np.linspace(0, len(order) - 1, min(len(order), MAX_POINTS)).astype(int)]
    low, high = settings["theta_low"], settings["theta_high"]
    axes.axhspan(high, 1, color=HIGH, alpha=0.15, lw=0)
    axes.axhspan(0, low, color=LOW, alpha=0.15, lw=0)
    axes.plot([0, 1], [0, 1], color="#7F7F7F", ls=":", lw=1.2)
    axes.plot(utility[order], p_plus[order], color=P_PLUS, lw=2)
    axes.plot(utility[some], worth[some], "o", color="k", ms=3, mfc="none", mew=0.8)
    text: dict[str, Any] = {"fontsize": 9, "bbox": {"fc": "w", "ec": "none", "alpha": 0.6, "pad": 1}}
    axes.text(0.03, 0.97, _verdict(dataset, "high", f"≥ {high:g}"), va="top", **text)
    axes.text(0.97, 0.03, _verdict(dataset, "low", f"≤ {low:g}"), ha="right", **text)
    axes.text(0.1, 0.13, "worth = U*", rotation=45, rotation_mode="anchor", transform_rotates_text=True, fontsize=9)
    if np.ptp(utility) > 0 and np.isfinite(p_plus).all():
        slope, middle = np.polyfit(utility - 0.8, p_plus, 1)
        text = {"arrowprops": {"arrowstyle": "-"}, "ha": "right", "va": "top", "fontsize": 9, "color": P_PLUS}
        why = ",\nU* diluted by k" if settings["num_retrieved"] > 1 else ""
        axes.annotate(f"p+: slope {slope:.2f}{why}", (0.8, middle), (0.97, 0.36), **text)
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="true utility U*")
    axes.set_ylabel(f"worth after {int(dataset.checkpoint[-1]):,} episodes")
    axes.set_title(f"dots: seed {seed}; counts: all seeds")


def _verdict(dataset: xarray.Dataset, label: str, where: str) -> str:
    """Means over the lives: memories that a label fits by U*, that get it at the end, and how many by p+ should not."""
    if "label_count" not in dataset:
        return f"labelled {label} ({where})"
    count = dataset.label_count.isel(checkpoint=-1, estimator=0).mean("seed").load()
    should = float(count.sel(truth_scale="utility", true_label=label).sum())
    given = count.sel(truth_scale="p_plus", label=label)
    total, right = float(given.sum()), float(given.sel(true_label=label))
    wrong = f" ({(total - right) / total:.0%} wrong)" if total else ""
    return f"{should:.0f} memories have U* {where},\n{total:.{1 if total < 10 else 0}f} labelled {label}{wrong}"
