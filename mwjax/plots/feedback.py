"""Retrieval by worth, which feeds on itself: what an exploration floor buys, and what worth then estimates."""

from __future__ import annotations

import itertools
from typing import Any

import matplotlib
import numpy as np
import xarray
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke

from mwjax.plots.generic import axes_of, metrics_of, words
from mwjax.plots.style import (
    DENSE,
    LINES,
    MAX_POINTS,
    episodes_axis,
    legend_below,
    line_style,
    lives,
    mean_line,
    new_figure,
    settings_of,
    size_of,
    usual_life,
    value_axis,
)

FLOOR, TEMPERATURE = "exploration_floor", "temperature"
AXES = {FLOOR: "exploration floor ε", TEMPERATURE: "temperature τ"}
PANELS = {
    "evidence_least": "least evidence of a memory",
    "starved": "share of memories starved",
}
COVERAGES = {"memory_worth.coverage_expected": "of expected hits/n", "memory_worth.coverage_p_plus": "of static p+"}
SHORT = {"temperature": "τ = {}", "floor_mode": "floor per {}", "exploration_floor": "ε = {}"}
ORDER = (3, 1, 5, 2, 7, 4, 0, 6)


def is_sweep(dataset: xarray.Dataset) -> bool:
    """A sweep over exploration floor or temperature that says something of ranking or evidence."""
    known = {*PANELS, *COVERAGES} & {str(one) for one in dataset} or metrics_of(dataset, "spearman")
    return bool({FLOOR, TEMPERATURE} & set(axes_of(dataset))) and bool(known)


def curves(dataset: xarray.Dataset, across: str) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The cells along which a curve runs and its style: colours for temperatures, dashes for the first other axis."""
    others = [name for name in axes_of(dataset) if name != across]
    values = [dataset[name].values.tolist() for name in others]
    colored = next((one for one in (TEMPERATURE, *others) if one in others), None)
    dashed = next((one for one in others if one != colored), None)
    made = []
    for cell in itertools.product(*values):
        at = dict(zip(others, cell, strict=True))
        color = dataset[colored].values.tolist().index(at[colored]) if colored else 0
        dash = dataset[dashed].values.tolist().index(at[dashed]) if dashed else 0
        hue, marker, _ = LINES[ORDER[color % len(ORDER)]]
        style = {"color": hue, "marker": marker, "ls": ("-", (0, (4, 1.5)), (0, (1, 1)))[dash % 3]}
        label = ", ".join(SHORT.get(name, name.replace("_", " ") + " {}").format(value) for name, value in at.items())
        made.append((at, {**style, "mfc": "w" if dash else hue, "label": label or "sweep"}))
    return made


def sweep_figure(dataset: xarray.Dataset) -> Figure:
    """Ranking against success along the floor; least evidence, starvation and coverage against it."""
    across = FLOOR if FLOOR in axes_of(dataset) else TEMPERATURE
    last = dataset.isel(checkpoint=-1)
    ranked = next(iter(metrics_of(dataset, "spearman").values()), None)
    names: list[Any] = [name for name in PANELS if name in dataset]
    names = [ranked] * bool(ranked and "mean_success" in dataset) + names
    names += ["coverage"] * any(name in dataset for name in COVERAGES)
    with matplotlib.rc_context(DENSE):
        rows = -(-len(names) // 2)
        made = new_figure(6.5, 1.2 + 2.5 * rows)
        panels = made.subplots(rows, 2, squeeze=False).ravel()
        for axes, name in zip(panels, names, strict=False):
            if name == ranked:
                _trade(axes, last, across, name)
            elif name == "coverage":
                _coverage(axes, last, across)
            else:
                _against(axes, last, across, name)
        for axes in panels[len(names) :]:
            axes.set_visible(False)
        when = f"{lives(dataset.sizes['seed'])} a point, {int(dataset.checkpoint[-1]):,} episodes"
        made.suptitle(f"{when}, {size_of(settings_of(dataset))}", fontsize=9, x=0.02, ha="left")
        legend_below(made, panels[:1], 3 if len(curves(dataset, across)) < 8 else 4)
    return made


def _trade(axes: Axes, last: xarray.Dataset, across: str, ranked: str) -> None:
    """Spearman against mean success, one curve along the axis; its values beside the curve that reaches furthest."""
    found = []
    for at, style in curves(last, across):
        x, y = (last[name].sel(at).transpose("seed", across).values.mean(0) for name in ("mean_success", ranked))
        axes.plot(x, y, ms=4, lw=1.2, **style)
        found.append((x, y, style))
    x, y, style = max(found, key=lambda one: np.ptp(one[0]))
    sign = {FLOOR: "ε", TEMPERATURE: "τ"}[across]
    axes.margins(0.12)
    for i, value in enumerate(last[across].values.tolist()):
        text = f"{sign} = {value:g}" if i == 0 else f"{value:g}"
        place: dict[str, Any] = {
            "textcoords": "offset points",
            "xytext": (5, 3),
            "fontsize": 8,
            "color": style["color"],
        }
        axes.annotate(text, (x[i], y[i]), path_effects=[withStroke(linewidth=2, foreground="w")], **place)
    axes.set(xlabel="mean success", ylabel="Spearman's ρ with utility")
    axes.set_title(f"ranking against success\nalong {sign} (labels: {style['label']})")


def _against(axes: Axes, last: xarray.Dataset, across: str, name: str) -> None:
    x = value_axis(axes, last[across].values.tolist(), AXES[across])
    for at, style in curves(last, across):
        mean_line(axes, x, last[name].sel(at).transpose("seed", across).values, **{"ms": 4, **style})
    if name == "evidence_least":
        axes.set_yscale("symlog", linthresh=1)
        axes.set_ylim(bottom=-0.2)
        axes.yaxis.set_major_formatter(lambda y, _: f"{y:,.0f}")
        axes.set_ylabel("retrievals")
    else:
        axes.set_ylabel(f"share with less than {settings_of(last)['min_evidence']}")
    axes.set_title(PANELS[name])


def _coverage(axes: Axes, last: xarray.Dataset, across: str) -> None:
    """How often 95 % intervals hold static p+ and the expected share of hits: range over the curves, and their mean."""
    x = value_axis(axes, last[across].values.tolist(), AXES[across])
    for name, index in zip(COVERAGES, (0, 2), strict=True):
        if name not in last:
            continue
        style = line_style(index)
        means = np.array([last[name].sel(at).mean("seed").values for at, _ in curves(last, across)])
        axes.fill_between(x, means.min(axis=0), means.max(axis=0), color=style["color"], alpha=0.2, lw=0)
        axes.plot(x, means.mean(axis=0), ms=4, lw=1.4, label=COVERAGES[name], **style)
    axes.axhline(0.95, color="#7F7F7F", lw=1, ls=":")
    axes.set_ylabel("share of memories covered")
    axes.set_title("coverage of 95 % intervals\n(mean and range of all curves)")
    low, high = axes.get_ylim()
    ticks = [tick for tick in axes.get_yticks() if 0 <= tick <= 1]
    axes.set(ylim=(low - 0.35 * (high - low), high), yticks=ticks)
    axes.legend(loc="lower left", frameon=False)


def figure(dataset: xarray.Dataset) -> Figure:
    """A run: ranking and success against episodes; worth against static p+ and against the expected share of hits."""
    over_time = [name for name in ("spearman", "mean_success") if name in dataset]
    with matplotlib.rc_context(DENSE):
        made = new_figure(6.5, 2.6 * (2 if over_time else 1))
        panels = made.subplots(2 if over_time else 1, 2, squeeze=False)
        for axes, name in zip(panels[0], over_time, strict=False):
            _over_time(axes, dataset, name)
        if len(over_time) == 1:
            panels[0, 1].set_visible(False)
        _scatter(panels[-1, 0], dataset, "static p+", dataset.p_plus.values)
        shown = np.maximum(dataset.evidence.values, 1)
        _scatter(panels[-1, 1], dataset, "expected hits / n", dataset.expected_hits.values / shown)
    return made


def _over_time(axes: Axes, dataset: xarray.Dataset, name: str) -> None:
    values = dataset[name].values
    columns = values if values.ndim == 3 else values[..., None]
    for i in range(columns.shape[-1]):
        label = str(dataset.estimator.values[i]).replace("_", " ") if values.ndim == 3 else None
        mean_line(axes, dataset.checkpoint.values, columns[..., i], label=label, **line_style(i))
    if columns.shape[-1] > 1:
        axes.legend(frameon=False)
    episodes_axis(axes)
    axes.set_ylabel({"spearman": "Spearman's ρ with utility", "mean_success": "mean success so far"}[name])
    settings = settings_of(dataset)
    held = {one: settings[one] for one in (TEMPERATURE, FLOOR)} if settings.get("retrieval") == "softmax" else {}
    axes.set_title(f"{lives(dataset.sizes['seed'])}, {size_of(settings)}" if name == "spearman" else words(held))


def _scatter(axes: Axes, dataset: xarray.Dataset, name: str, truth: np.ndarray) -> None:
    """hits / n of the memories of one life; the rarely shown (least shown quarter) as open triangles."""
    seed = usual_life(dataset)
    n, hits = dataset.evidence.values[seed].astype(np.float64), dataset.successes.values[seed]
    seen = np.flatnonzero(n > 0)[:: -(-max((n > 0).sum(), 1) // MAX_POINTS)]
    if not len(seen):
        return
    x, y, rare = truth[seed][seen], hits[seen] / n[seen], n[seen] <= np.quantile(n, 0.25)
    axes.plot(x[~rare], y[~rare], "o", color="#0072B2", ms=3.5, mfc="none", label="other memories")
    axes.plot(x[rare], y[rare], "^", color="#D55E00", ms=4, mfc="none", label="least shown quarter")
    ends = np.array([min(x.min(), y.min()), max(x.max(), y.max())])
    axes.plot(ends, ends, color="#7F7F7F", ls=":", lw=1.2)
    axes.set(xlabel=name, ylabel="worth = hits / n")
    axes.set_title(f"memories of one life (seed {seed})")
    axes.set_ylim(top=y.max() + 0.25 * max(np.ptp(y), 0.01))
    axes.legend(frameon=False, loc="upper left", handletextpad=0.2)
