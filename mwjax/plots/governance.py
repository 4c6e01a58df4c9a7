"""A run with rules in a store that stands still: whom they decide against and when, and are the forecasts right."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
import xarray
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mwjax.analysis import calibration, verdicts
from mwjax.plots.rules import acts, columns, labels_of, need, percent_axis, point, rule_styles, upper
from mwjax.plots.style import (
    DENSE,
    NAMES,
    legend_below,
    line_styles,
    lives,
    new_figure,
    settings_of,
    size_of,
)

GREY = "#7F7F7F"
LEAST = 30
"""Forecasts that a bin of the reliability diagram must hold to be drawn."""
ACTIONS = {"suppress": "suppresses", "deprecate": "deprecates"}


def is_run(dataset: xarray.Dataset) -> bool:
    """A run with decisions of rules."""
    return "decisions" in dataset


def figure(dataset: xarray.Dataset) -> Figure:
    """Shares of the bad and of the good memories decided against; error against omission; reliability of forecasts."""
    need(dataset, "decisions", "utility")
    labels, styles = labels_of(dataset), rule_styles(dataset.sizes["rule"])
    with matplotlib.rc_context(DENSE):
        made = new_figure(6.5, 5.7 + 0.16 * -(-len(labels) // columns(labels)))
        bad, good, trade, reliable = made.subplots(2, 2).ravel()
        shares = decided_shares(dataset)
        for axes, kind in ((bad, "bad"), (good, "good")):
            _over_time(axes, shares[kind], kind, labels, styles)
        _trade(trade, dataset, labels, styles)
        if "calibration" in dataset:
            _reliability(reliable, dataset)
        else:
            reliable.set_visible(False)
        made.suptitle(_heading(dataset), fontsize=9, x=0.02, ha="left")
        legend_below(made, [bad], columns(labels))
    return made


def _heading(dataset: xarray.Dataset) -> str:
    """How many lives of what, and what the acting rule does."""
    settings = settings_of(dataset)
    action = f", {labels_of(dataset)[0].removesuffix(' (acts)')} {ACTIONS[settings['governance']]}"
    where = f"{lives(dataset.sizes['seed'])}, {size_of(settings)}, bad: p+ below {settings['theta']:g} at first"
    return where + (action if acts(dataset) else ", no rule acts")


def decided_shares(dataset: xarray.Dataset) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Of the bad and of the good memories by p+ at the start, pooled over lives: (episodes, share decided so far).

    Shares are [rule, episode], at the episodes at which a rule first decides against some memory.
    """
    known = verdicts.store_of(dataset)
    every = np.arange(dataset.sizes["seed"])
    start = verdicts.truth(known, every, np.zeros(len(every), int)).p_plus
    first = dataset.decisions.values[:, :, 0]
    moments = np.unique(np.append(first[first >= 0] + 1, [1, int(dataset.attrs["episodes"])]))
    found: dict[str, list[np.ndarray]] = {"bad": [], "good": []}
    for i, rule in enumerate(dataset["rule"].values.tolist()):
        limit = verdicts.theta_of(known, str(rule), acts(dataset) and i == 0)[:, None]
        for kind, chosen in (("bad", start < limit), ("good", start >= limit)):
            when = np.sort(first[:, i][chosen & (first[:, i] >= 0)] + 1)
            found[kind].append(np.searchsorted(when, moments, side="right") / max(chosen.sum(), 1))
    return {kind: (moments, np.stack(shares)) for kind, shares in found.items()}


def _over_time(
    axes: Axes, found: tuple[np.ndarray, np.ndarray], kind: str, labels: list[str], styles: list[dict[str, Any]]
) -> None:
    """Steps, one a rule; the acting rule as a broad line, so that a watcher with the same decisions shows on it."""
    moments, shares = found
    for share, label, style in zip(shares, labels, styles, strict=True):
        broad = {"lw": 3.2, "alpha": 0.45} if label.endswith("(acts)") else {"lw": 1.3}
        marks = {"marker": style["marker"], "ms": 4.5, "mfc": style["mfc"], "markevery": _marks(moments)}
        look = {"color": style["color"], "ls": "-" if label.endswith("(acts)") else style["ls"]}
        axes.plot(moments, 100 * share, drawstyle="steps-post", label=label, **look, **broad, **marks)
    axes.set(xlabel="episodes", xlim=(0, moments[-1] * 1.02), ylabel=f"{kind} memories decided\nagainst (%)")
    axes.set_ylim(-0.03 * max(100 * shares.max(), 0.1), 1.08 * max(100 * shares.max(), 0.1))
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    axes.set_title({"bad": "bad memories found", "good": "good memories lost (by p+)"}[kind])


def _marks(moments: np.ndarray) -> list[int]:
    """Places of markers: the ends of five equal stretches of time."""
    return np.unique(np.searchsorted(moments, np.linspace(0, moments[-1], 6)[1:])).tolist()


def _trade(axes: Axes, dataset: xarray.Dataset, labels: list[str], styles: list[dict[str, Any]]) -> None:
    """Missed against false deprecation at the end of the life, a point a rule with both 95 % intervals."""
    found = verdicts.each(dataset)
    error, missed = ([100 * one[name] for one in found] for name in ("false_deprecation", "missed"))
    for x, y, label, style in zip(error, missed, labels, styles, strict=True):
        point(axes, x, y, **{**style, "label": label})
    percent_axis(axes, "x", upper(error), "good memories decided against (%)")
    axes.set(ylabel="bad memories missed (%)", ylim=(-4, max(1.1 * upper(missed), 4)))
    axes.set_title("errors of both kinds")


def _reliability(axes: Axes, dataset: xarray.Dataset) -> None:
    """Share of successes against the forecast made before, pooled over lives, with Wilson intervals."""
    pooled = dataset.calibration.values.astype(np.float64).sum(0)
    names = [str(one) for one in dataset.forecaster.values]
    axes.plot([0, 1], [0, 1], color=GREY, lw=1, ls=":")
    for name, (failures, successes), style in zip(names, pooled, line_styles(names), strict=True):
        found = calibration.reliability(failures + successes, successes)
        enough = found.n >= LEAST
        x, y = found.forecast[enough], found.observed[enough]
        bars = np.maximum([y - found.low[enough], found.high[enough] - y], 0)
        label = name.replace("_", " ") if name == "memory_worth" else NAMES.get(name, name.replace("_", " "))
        axes.errorbar(x, y, yerr=bars, ms=4.5, lw=1.1, elinewidth=1, mew=1, label=label, **{**style, "mfc": "none"})
    axes.set(xlabel="forecast of success", ylabel="share that succeeded", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    axes.set_title("reliability, 95 % Wilson intervals")
    axes.legend(loc="upper left", frameon=False, handlelength=2.6)
