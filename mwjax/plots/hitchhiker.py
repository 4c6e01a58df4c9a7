"""Pairs that are retrieved together: is the anchor told apart from its hitchhiker?"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import matplotlib
import numpy as np
import xarray
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mwjax import theory
from mwjax.analysis import pairs
from mwjax.plots.generic import axes_of, hold
from mwjax.plots.style import (
    CLOSED,
    DENSE,
    episodes_axis,
    legend_below,
    line_style,
    lives,
    mean_line,
    new_figure,
    settings_of,
    size_of,
    value_axis,
)
from mwjax.results import statistics

AXES = {"separation": "separation f", "diversity": "diversity (least share\nof the pair seen apart)"}
PANELS = {
    "memory_worth.anchor_above": "P(worth of anchor > hitchhiker)",
    "memory_worth.gap": "gap: worth of anchor - hitchhiker",
    "mean_success": "mean success",
}
ROLES = ("anchor", "hitchhiker")
SHADE = {"anchor": 3, "hitchhiker": 1}


def is_sweep(dataset: xarray.Dataset) -> bool:
    """A sweep over how often pairs are seen apart."""
    return bool(set(AXES) & set(axes_of(dataset))) and bool(set(PANELS) & {str(one) for one in dataset})


def law_of(settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """The arguments of theory.hitchhiker where it holds: one pair drawn as a unit among fillers of one pool."""
    known = settings["retrieval"] == "pairs" and settings["num_pairs"] == 1 and settings["utility"] == "uniform"
    low, high = settings.get("utility_low"), settings.get("utility_high")
    if not known or settings["outcome"] not in ("mean", "linear") or not isinstance(low, int | float):
        return None
    gain, base = (1.0, 0.5) if settings["outcome"] == "mean" else (settings["gain"], settings["base_success"])
    if not isinstance(high, int | float) or np.any(np.asarray(base) != 0.5):
        return None
    ends = {"anchor": settings["anchor_utility"], "hitchhiker": settings["hitchhiker_utility"]}
    return {**ends, "filler": (low + high) / 2, "gain": gain, "mode": settings["separation_mode"]}


def mean_success(num_memories: int, num_retrieved: int, separation: float, **law: Any) -> float:
    """0.5 + gain (sum of inclusion x U / k - 0.5): exact, as every set holds k memories and success is linear."""
    anchor, hitchhiker, filler = theory.hitchhiker.inclusion(num_memories, num_retrieved, separation, mode=law["mode"])
    total = anchor * law["anchor"] + hitchhiker * law["hitchhiker"] + filler * (num_memories - 2) * law["filler"]
    return 0.5 + law["gain"] * (total / num_retrieved - 0.5)


def sweep_figure(dataset: xarray.Dataset) -> Figure:
    """P(anchor above), gap and mean success against the axis; closed forms where retrieval is by pairs."""
    across = next(name for name in AXES if name in axes_of(dataset))
    shown, held = hold(dataset, [across])
    names = [name for name in PANELS if name in dataset]
    with matplotlib.rc_context(DENSE):
        made = new_figure(6.5 if len(names) > 2 else 2.6 * len(names) + 1, 2.9)
        panels = made.subplots(1, len(names), squeeze=False)[0]
        for axes, name in zip(panels, names, strict=True):
            x = value_axis(axes, dataset[across].values.tolist(), AXES[across])
            _expected(axes, dataset, across, name)
            values = shown[name].transpose("seed", across).values
            mean_line(axes, x, values, label="simulated, 95 % interval", **line_style(0))
            axes.set_title(PANELS[name], fontsize=8.5)
            axes.tick_params(axis="x", labelrotation=45)
        when = f"{lives(dataset.sizes['seed'])} a point, {int(dataset.checkpoint[-1]):,} episodes"
        title = ", ".join(one for one in (when, size_of(settings_of(dataset)), held) if one)
        made.suptitle(title, fontsize=9, x=0.02, ha="left")
        legend_below(made, panels, 2)
    return made


def _expected(axes: Axes, dataset: xarray.Dataset, across: str, name: str) -> None:
    settings = {**settings_of(dataset), **_held(dataset, across)}
    law = law_of(settings)
    if law is None or across != "separation":
        return
    size, episodes = (settings["num_memories"], settings["num_retrieved"]), int(dataset.checkpoint[-1])
    values = dataset.separation.values.astype(np.float64)
    fine = np.unique(np.append(values, values.max() * np.linspace(0, 1, 61) ** 3))
    fine = fine[fine >= values.min()]
    forms: dict[str, Callable[[float], float]] = {
        "memory_worth.anchor_above": lambda f: theory.hitchhiker.anchor_above_normal(
            *size, f, num_episodes=episodes, **law
        ),
        "memory_worth.gap": lambda f: theory.hitchhiker.gap(*size, f, **law),
        "mean_success": lambda f: mean_success(*size, f, **law),
    }
    axes.plot(fine, [forms[name](float(f)) for f in fine], color=CLOSED, lw=5, zorder=1, label="closed form")


def _held(dataset: xarray.Dataset, across: str) -> dict[str, Any]:
    """The values at which `hold` keeps the other axes."""
    shown, _ = hold(dataset, [across])
    return {name: shown[name].values.item() for name in axes_of(dataset) if name != across}


def figure(dataset: xarray.Dataset) -> Figure:
    """A run: worths of anchor and hitchhiker and their gap against episodes, and removal values where measured."""
    removal = "removal_value" in dataset
    evidence, successes = (dataset.pair_count.sel(count=name).values for name in ("evidence", "successes"))
    found = dict(pairs.measure(evidence, successes))
    with matplotlib.rc_context(DENSE):
        made = new_figure(6.5, 3.2)
        panels = made.subplots(1, 3 if removal else 2, width_ratios=(1.25, 1.25, 1) if removal else None)
        _worths(panels[0], dataset, found)
        _gap(panels[1], dataset, found["memory_worth.gap"])
        if removal:
            _removal(panels[2], dataset)
        settings = settings_of(dataset)
        apart = f"separation f = {settings['separation']:g}"
        title = f"{lives(dataset.sizes['seed'])}, {size_of(settings)}, {apart}"
        made.suptitle(title, fontsize=9, x=0.02, ha="left")
        legend_below(made, panels[:2], 5)
    return made


def _curve(axes: Axes, dataset: xarray.Dataset, values: np.ndarray, index: int, label: str) -> None:
    """Mean over lives with a band of one standard deviation."""
    style, x = line_style(index), dataset.checkpoint.values
    mean, sd, _, _ = statistics(values)
    band = "± sd over lives" if index == 0 else None
    axes.fill_between(x, mean - sd, mean + sd, color=style["color"], alpha=0.2, lw=0, label=band)
    axes.plot(x, mean, ms=5, lw=1.2, label=label, **style)


def _worths(axes: Axes, dataset: xarray.Dataset, found: Mapping[str, np.ndarray]) -> None:
    settings = settings_of(dataset)
    law = law_of(settings)
    if law is not None:
        size = settings["num_memories"], settings["num_retrieved"], settings["separation"]
        for i, value in enumerate(theory.hitchhiker.pair_p_plus(*size, **law)):
            axes.axhline(value, color=CLOSED, lw=4, zorder=1, label="closed form" if i == 0 else None)
    for role in ROLES:
        _curve(axes, dataset, found[f"memory_worth.{role}_worth"], SHADE[role], role)
    episodes_axis(axes)
    axes.set(ylabel="worth")


def _gap(axes: Axes, dataset: xarray.Dataset, values: np.ndarray) -> None:
    settings = settings_of(dataset)
    law = law_of(settings)
    axes.axhline(0, color="#7F7F7F", lw=0.8, ls=":")
    if law is not None:
        size = settings["num_memories"], settings["num_retrieved"], settings["separation"]
        axes.axhline(theory.hitchhiker.gap(*size, **law), color=CLOSED, lw=4, zorder=1)
    _curve(axes, dataset, values, 0, "gap")
    episodes_axis(axes)
    axes.set(ylabel="gap: worth of anchor - hitchhiker")


def _removal(axes: Axes, dataset: xarray.Dataset) -> None:
    """Bars with the 95 % interval of the mean over lives."""
    count = settings_of(dataset)["num_pairs"]
    mean, _, low, high = statistics(dataset.removal_value.values)
    for i, memory in enumerate(dataset.removed.values):
        role = ROLES[int(memory) // count] if memory < 2 * count else "filler"
        style: dict[str, Any] = {
            "color": line_style(SHADE.get(role, 6))["color"],
            "hatch": "" if role == "anchor" else "//",
        }
        axes.bar(i, mean[i], width=0.6, alpha=0.8, ec="w", **style)
        if np.isfinite(low[i]):
            axes.errorbar(i, mean[i], [[mean[i] - low[i]], [high[i] - mean[i]]], color="k", capsize=3, lw=1.2)
    names = [ROLES[int(one) // count] if one < 2 * count else f"memory {one}" for one in dataset.removed.values]
    axes.axhline(0, color="k", lw=0.8)
    axes.set_xticks(range(len(names)), names)
    axes.set(ylabel="mean success lost without it")
    axes.set_title("removal value\n(95 % interval)")
