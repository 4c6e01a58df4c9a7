"""Dataset -> matplotlib Figure. Colours of Okabe and Ito; markers and dashes tell the lines apart without colour."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
import xarray
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mwjax.sweep import statistics
from mwjax.types import InputError

STYLE = {"font.size": 10, "axes.titlesize": 10, "axes.spines.top": False, "axes.spines.right": False, "svg.hashsalt": "mwjax"}
LINES = (
    ("#000000", "o", "-"),
    ("#D55E00", "s", (0, (5, 1.5))),
    ("#CC79A7", "D", (0, (3, 1, 1, 1))),
    ("#0072B2", "^", (0, (1, 1))),
    ("#56B4E9", "v", (0, (5, 1, 1, 1, 1, 1))),
    ("#009E73", "X", (0, (7, 2))),
    ("#7F7F7F", "P", (0, (2, 2))),
    ("#E69F00", "*", (0, (4, 1))),
)
"""Colour, marker, dashes of the estimators in the order of the Dataset."""
NAMES = {
    "memory_worth": "uniform",
    "memory_worth_score": "score",
    "memory_worth_score_normalised": "score, normalised",
    "memory_worth_oracle": "oracle",
    "memory_worth_oracle_raw": "oracle, raw",
    "never_updated": "never updated",
}
CLOSE = 0.05
"""Estimators whose ranking stays this close to the first one's are told apart in a strip of their own."""
MAX_POINTS = 400


def figure(dataset: xarray.Dataset) -> Figure:
    """Left: Spearman against episodes, below it the small differences. Right: worth of one life against true utility."""
    settings = {"num_memories": dataset.sizes["memory"], **json.loads(dataset.attrs["config"])}
    with matplotlib.rc_context(STYLE):
        made = Figure(figsize=(7.0, 4.6), layout="constrained")
        grid = made.add_gridspec(2, 2, height_ratios=(2.6, 1), width_ratios=(1.15, 1))
        top, right = made.add_subplot(grid[0, 0]), made.add_subplot(grid[:, 1])
        strip = made.add_subplot(grid[1, 0], sharex=top)
        _ranking(top, dataset, settings)
        _differences(strip, dataset)
        _labels(right, dataset, settings)
        made.legend(*top.get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=9, frameon=False)
    return made


def _ranking(axes: Axes, dataset: xarray.Dataset, settings: Mapping[str, Any]) -> None:
    episodes, values = dataset.checkpoint.values, dataset.spearman.values
    for i, name in enumerate(dataset.estimator.values):
        found, (color, marker, dashes) = statistics(values[..., i]), LINES[i % len(LINES)]
        if i == 0:
            axes.fill_between(episodes, found.mean - found.sd, found.mean + found.sd, color=color, alpha=0.1, lw=0)
        axes.fill_between(episodes, found.low, found.high, color=color, alpha=0.3, lw=0)
        axes.plot(episodes, found.mean, color=color, marker=marker, ls=dashes, markevery=(i % 6, 6), label=NAMES.get(name, name), ms=5, lw=1.2)
    axes.set(xscale="log", ylim=(-0.05, 1), ylabel="Spearman's ρ(worth, utility)", title="Ranking of the memories")
    axes.tick_params(labelbottom=False)


def _differences(axes: Axes, dataset: xarray.Dataset) -> None:
    episodes, values = dataset.checkpoint.values, dataset.spearman.values
    for i, name in enumerate(dataset.estimator.values):
        found, (color, marker, dashes) = statistics(values[..., i] - values[..., 0]), LINES[i % len(LINES)]
        if np.abs(found.mean).max() < CLOSE:
            axes.fill_between(episodes, found.low, found.high, color=color, alpha=0.2, lw=0)
            axes.plot(episodes, found.mean, color=color, marker=marker, ls=dashes, ms=4, lw=1)
    axes.set(xlabel="episodes", ylabel="ρ - ρ(uniform)")


def _labels(axes: Axes, dataset: xarray.Dataset, settings: Mapping[str, Any]) -> None:
    life = dataset.isel(seed=0)
    utility, p_plus = life.utility.values, life.p_plus.values
    worth = life.worth.isel(estimator=0).values
    order = np.argsort(utility)
    axes.plot([0, 1], [0, 1], color="#7F7F7F", ls=":", lw=1)
    axes.plot(utility[order], p_plus[order], color="#0072B2", lw=1.5)
    axes.plot(utility, worth, "o", color="k", ms=3, mfc="none", mew=0.8)
    low, high = settings.get("theta_low", 0.4), settings.get("theta_high", 0.6)
    axes.axhspan(high, 1, color="#009E73", alpha=0.15, lw=0)
    axes.axhspan(0, low, color="#D55E00", alpha=0.15, lw=0)
    axes.set(xlim=(0, 1), ylim=(0, 1), aspect="equal", xlabel="true utility U*", ylabel="worth after")


def save(drawn: Figure, path: str | Path) -> tuple[Path, Path]:
    """PNG and SVG"""
    base = Path(path)
    drawn.savefig(base.with_suffix(".png"), dpi=200)
    return base, base
