"""Contexts of unequal difficulty: whose worth ranks memories that only hard tasks call for?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
import xarray
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mwjax import theory
from mwjax.plots.generic import axes_of, hold, metrics_of, usual
from mwjax.plots.style import (
    CLOSED,
    DENSE,
    LINES,
    MAX_POINTS,
    legend_below,
    line_styles,
    lives,
    mean_line,
    new_figure,
    settings_of,
    size_of,
    usual_life,
    value_axis,
)

POOLS = ("generalists", "specialists")
LABELS = {"gain": "gain (effect of utility)", "hard_share": "share of hard tasks"}


def is_sweep(dataset: xarray.Dataset) -> bool:
    """A sweep over gain or the share of hard tasks with Spearman by estimator."""
    return bool(set(LABELS) & set(axes_of(dataset))) and bool(metrics_of(dataset, "spearman"))


def sweep_figure(dataset: xarray.Dataset) -> Figure:
    """Spearman by estimator against gain and against the share of hard tasks, the other at its value in the base."""
    across = [name for name in LABELS if name in axes_of(dataset)]
    found = metrics_of(dataset, "spearman")
    with matplotlib.rc_context(DENSE):
        made = new_figure(6.5 if len(across) > 1 else 4, 3.9)
        panels = made.subplots(1, len(across), sharey=True, squeeze=False)[0]
        for axes, name in zip(panels, across, strict=True):
            shown, held = hold(dataset, [name])
            x = value_axis(axes, dataset[name].values.tolist(), LABELS[name], linear=name == "hard_share")
            _structure(axes, settings_of(dataset))
            _expected(axes, dataset, name, x)
            for (one, variable), line in zip(found.items(), line_styles(list(found)), strict=True):
                label = one.replace("_", " ")
                mean_line(axes, x, shown[variable].transpose("seed", name).values, label=label, **line)
            axes.set_title(f"at {held}" if held else "")
        panels[0].set_ylabel("Spearman's ρ with utility")
        when = f"{lives(dataset.sizes['seed'])} a point, {int(dataset.checkpoint[-1]):,} episodes"
        made.suptitle(f"{when}, {size_of(settings_of(dataset))}", fontsize=9, x=0.02, ha="left")
        legend_below(made, panels[:1], 3)
    return made


def _two_pools(settings: Mapping[str, Any]) -> bool:
    """Generalists and specialists of one utility, as theory.difficulty.structural_spearman has them."""
    low, high = settings.get("utility_low"), settings.get("utility_high")
    if not isinstance(low, list) or not isinstance(high, list) or len(settings.get("pool_sizes") or ()) != 2:
        return False
    return low[1] == high[1] and (low[0], high[0]) == (0, 1)


def _structure(axes: Axes, settings: Mapping[str, Any]) -> None:
    """Spearman if every specialist stood below every generalist, whatever the order within the generalists."""
    if not _two_pools(settings):
        return
    size, level = settings["pool_sizes"], settings["utility_low"][1]
    ends = [theory.difficulty.structural_spearman(size[0], size[1], rho, level=level) for rho in (0.0, 1.0)]
    label = "specialists all below generalists\n(ρ among generalists 0 to 1)"
    axes.axhspan(ends[0], ends[1], color="#7F7F7F", alpha=0.18, lw=0, label=label)


def _expected(axes: Axes, dataset: xarray.Dataset, name: str, x: np.ndarray) -> None:
    """What theory expects of the worth that ignores the context, along one axis."""
    settings = settings_of(dataset)
    known = settings["retrieval"] == "pools" and settings["outcome"] == "linear" and _two_pools(settings)
    if not known or settings.get("num_contexts") != 2 or settings.get("context_share") is not None:
        return
    general, special = settings["pool_sizes"]
    utility = np.append((np.arange(general) + 0.5) / general, np.full(special, settings["utility_low"][1]))
    held = {one: usual(dataset, one) for one in axes_of(dataset)}
    expected = []
    for value in dataset[name].values.tolist():
        here = {**settings, **held, name: value}
        hard = 0.5 if here["hard_share"] is None else here["hard_share"]
        law = (settings["pool_sizes"], here["pool_slots"], [1 - hard, hard], here["base_success"], here["gain"])
        episodes = int(dataset.checkpoint[-1])
        expected.append(theory.difficulty.expected_spearman(utility, *law, num_episodes=episodes))
    axes.plot(x, expected, color=CLOSED, lw=5, zorder=1, label="closed form of memory worth")


def figure(dataset: xarray.Dataset) -> Figure:
    """A run: Spearman by estimator against episodes, and what the worth of one life says of utility, by pool."""
    with matplotlib.rc_context(DENSE):
        made = new_figure(6.5, 3.6)
        panels = made.subplots(1, 2 if "spearman" in dataset else 1, squeeze=False)[0]
        if "spearman" in dataset:
            _ranking(panels[0], dataset)
            legend_below(made, panels[:1], 3)
        _scatter(panels[-1], dataset)
    return made


def _ranking(axes: Axes, dataset: xarray.Dataset) -> None:
    names = [str(one) for one in dataset.estimator.values]
    _structure(axes, settings_of(dataset))
    for i, (name, line) in enumerate(zip(names, line_styles(names), strict=True)):
        mean_line(
            axes, dataset.checkpoint.values, dataset.spearman.values[..., i], label=name.replace("_", " "), **line
        )
    axes.set(xscale="log", xlabel="episodes (log scale)", ylabel="Spearman's ρ with utility")
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.xaxis.set_minor_formatter("")
    axes.set_title(f"{lives(dataset.sizes['seed'])}, {size_of(settings_of(dataset))}")


def _scatter(axes: Axes, dataset: xarray.Dataset) -> None:
    """Worth of the first estimator against utility in one life; a colour and a marker for each pool."""
    seed, settings = usual_life(dataset), settings_of(dataset)
    life = dataset.isel(seed=seed, estimator=0)
    worth = life.worth.values if life.worth.ndim == 1 else life.worth.values[-1]
    sizes = settings.get("pool_sizes") or [len(worth)]
    pool = np.repeat(np.arange(len(sizes)), sizes)
    for i, size in enumerate(sizes):
        some = np.flatnonzero(pool == i)[:: -(-size // MAX_POINTS)]
        color, marker, _ = LINES[(3, 1, 5, 2)[i % 4]]
        label = f"{size:,} {POOLS[i] if len(sizes) == 2 else f'of pool {i}'}"
        axes.plot(life.utility.values[some], worth[some], marker, color=color, mfc="none", ms=4, mew=1, label=label)
    axes.set(xlabel="true utility U*", xlim=(-0.02, 1.02))
    name = str(dataset.estimator.values[0]).replace("_", " ")
    axes.set_ylabel(f"{name} after {int(dataset.checkpoint[-1]):,} episodes")
    axes.set_title(f"each memory of one life (seed {seed})")
    low, high = worth.min(), worth.max()
    axes.set_ylim(low - 0.05 * (high - low + 0.01), high + 0.3 * (high - low + 0.01))
    axes.legend(loc="upper left", frameon=False)
