"""Figures of a log's forecasts: what each half-life loses to the best one, and the reliability diagram."""

from __future__ import annotations

import math

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mwjax.plots.style import DENSE, HIGH, legend_below, line_style, new_figure
from mwjax.replay.backtest import ESTIMATORS, UNITS, Backtest, Setting
from mwjax.replay.reliability import Prequential
from mwjax.rules import Z_95

GREY = "#7F7F7F"
VERDICTS = {"forget": "the log supports forgetting", "keep": "the log supports no forgetting"}


def backtest_figure(result: Backtest) -> Figure:
    """Log loss beyond that of the best setting, by half-life, a line an estimator and prior; 95 % paired intervals."""
    half_lives = sorted({one.half_life for one in result.settings})
    lines: dict[tuple[str, str], list[Setting]] = {}
    for one in result.settings:
        lines.setdefault((one.estimator, one.prior), []).append(one)
    with matplotlib.rc_context(DENSE):
        made = new_figure(4.6, 3.4 + 0.17 * (1 + len(lines) // 2))
        axes = made.subplots()
        width = min(0.5, 0.12 * (len(lines) - 1))
        for i, (name, settings) in enumerate(lines.items()):
            shift = width * (i / max(len(lines) - 1, 1) - 0.5)
            x = [half_lives.index(one.half_life) + shift for one in settings]
            gap = 1_000 * np.array([one.difference for one in settings])
            bars = 1_000 * Z_95 * np.nan_to_num([one.standard_error for one in settings])
            look = line_style(i)
            label = ", ".join(name).replace("_", " ")
            axes.errorbar(x, gap, yerr=bars, ms=5, lw=1.2, elinewidth=1, capsize=2.5, label=label, **look)
        base = 1_000 * (result.base_log_loss - result.settings[result.best].log_loss)
        axes.axhline(base, color=GREY, lw=1, ls=":", label="base rate")
        axes.axhline(0, color=GREY, lw=0.6)
        chosen = result.settings[result.chosen]
        place = half_lives.index(chosen.half_life)
        axes.axvspan(place - 0.4, place + 0.4, color=HIGH, alpha=0.13, lw=0)
        units = dict.fromkeys(UNITS[ESTIMATORS[one.estimator]] for one in result.settings)
        axes.set_xticks(range(len(half_lives)), ["never forgets" if h == math.inf else f"{h:g}" for h in half_lives])
        axes.set(xlabel=f"half-life ({' or '.join(units)})", xlim=(-0.6, len(half_lives) - 0.4))
        axes.set_ylabel("log loss beyond the best\n(nats per 1,000 episodes)")
        verdict = VERDICTS.get(result.verdict, "the log cannot tell")
        axes.set_title(f"{verdict}: {result.episodes:,} episodes,\npaired 95 % intervals, chosen half-life shaded")
        legend_below(made, [axes], 2)
    return made


def reliability_figure(found: Prequential) -> Figure:
    """Share of successes against the forecast made before, with Wilson intervals; below, how many forecasts."""
    with matplotlib.rc_context(DENSE):
        made = new_figure(3.9, 4.3)
        top, below = made.subplots(2, 1, sharex=True, height_ratios=(3, 1))
        _diagram(top, found)
        x, n = ([getattr(one, name) for one in found.bins] for name in ("forecast", "n"))
        below.bar(x, n, width=0.03, color=GREY)
        below.set(yscale="log", ylim=(0.7, 2 * max(n)), ylabel="forecasts", xlabel="forecast of success, made before")
        below.yaxis.set_major_formatter(lambda y, _: f"{y:,.0f}")
        below.minorticks_off()
    return made


def _diagram(axes: Axes, found: Prequential) -> None:
    x, y, low, high = (
        np.array([getattr(one, name) for one in found.bins]) for name in ("forecast", "observed", "low", "high")
    )
    axes.plot([0, 1], [0, 1], color=GREY, lw=1, ls=":")
    bars = np.maximum([y - low, high - y], 0)
    axes.errorbar(x, y, yerr=bars, ms=5, lw=1.2, elinewidth=1, capsize=2.5, **line_style(0))
    axes.set(ylabel="share that succeeded", xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    permuted = f", permuted {found.permuted_skill:+.4f}" if found.permuted else ""
    axes.set_title(f"{found.episodes:,} episodes; skill {found.skill:+.4f}{permuted}\n95 % Wilson intervals")
