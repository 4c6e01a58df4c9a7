"""Sweeps over action and exploration floor: what suppressing costs against deprecating, and who is left to starve."""

from __future__ import annotations

import itertools
from typing import Any

import matplotlib
import numpy as np
import xarray
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mwjax.plots.generic import axes_of, hold
from mwjax.plots.rules import in_words, need
from mwjax.plots.style import (
    DENSE,
    legend_below,
    line_style,
    lives,
    mean_line,
    new_figure,
    settings_of,
    size_of,
    value_axis,
)

ACTION, FLOOR, MODE = "governance", "exploration_floor", "floor_mode"
LOOK = {"none": 0, "suppress": 3, "deprecate": 1}
"""Action -> its line; dashes tell the floor modes apart."""
CALLED = {"none": "no action", "suppress": "suppress", "deprecate": "deprecate"}
DASHES = ("-", (0, (4, 1.5)), (0, (1, 1)))


def is_sweep(dataset: xarray.Dataset) -> bool:
    """A sweep over what a decision does and the exploration floor."""
    return {ACTION, FLOOR} <= set(axes_of(dataset))


def figure(dataset: xarray.Dataset) -> Figure:
    """Mean success, who starves, good memories lost and bad ones missed, against the floor, a line an action."""
    need(dataset, "mean_success")
    rule = settings_of(dataset)["rule"]
    known = {
        "mean_success": ("success (% of episodes)", "what it costs", 100),
        "starved": (
            f"memories with under {settings_of(dataset)['min_evidence']}\nretrievals (%)",
            "who starves (deprecated ones too)",
            100,
        ),
        "evidence_least": ("least retrievals of a memory", "the least seen memory", 1),
        f"{rule}.missed": ("bad memories missed (%)", "what is overlooked", 100),
    }
    found = {name: one for name, one in known.items() if name in dataset}
    shown, held = hold(dataset, [ACTION, FLOOR, MODE])
    with matplotlib.rc_context(DENSE):
        rows = -(-len(found) // 2)
        made = new_figure(6.5, 1.15 + 2.3 * rows)
        panels = made.subplots(rows, 2, squeeze=False).ravel()
        for axes, (name, (label, title, scale)) in zip(panels, found.items(), strict=False):
            _against(axes, shown, name, scale)
            axes.set(ylabel=label, title=title)
        for axes in panels[len(found) :]:
            axes.set_visible(False)
        when = f"{lives(dataset.sizes['seed'])} a point, {int(dataset.checkpoint[-1]):,} episodes"
        asked = f"{size_of(settings_of(dataset))}, rule: {in_words(rule)}{', ' + held if held else ''}"
        made.suptitle(f"{when}, {asked}", fontsize=9, x=0.02, ha="left")
        legend_below(made, panels[:1], shown.sizes[ACTION])
    return made


def curves(shown: xarray.Dataset) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """The cell along which each curve runs, and its style: colours for actions, dashes for floor modes."""
    modes = [str(one) for one in shown[MODE].values] if MODE in shown.dims else [""]
    made = []
    for action, mode in itertools.product([str(one) for one in shown[ACTION].values], modes):
        place = modes.index(mode)
        base = line_style(LOOK.get(action, 5))
        look = {**base, "ls": DASHES[place % 3], "mfc": "w" if place else base["color"]}
        label = CALLED.get(action, action) + (f", per {mode}" if mode else "")
        made.append(({ACTION: action} | ({MODE: mode} if mode else {}), {**look, "label": label}))
    return made


def _against(axes: Axes, shown: xarray.Dataset, name: str, scale: float) -> None:
    """One line an action and floor mode."""
    x = value_axis(
        axes,
        shown[FLOOR].values.tolist(),
        "exploration floor ε" + (" (per episode or per slot)" if MODE in shown.dims else ""),
    )
    for at, style in curves(shown):
        values = scale * shown[name].sel(at).transpose("seed", FLOOR).values.astype(np.float64)
        mean_line(axes, x, values, shade=0.08, **{"ms": 4.5, **style})
    axes.margins(y=0.08)
