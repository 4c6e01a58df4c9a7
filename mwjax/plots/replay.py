"""A log: worth with its intervals, raw against adjusted worth, entangled pairs, worth over time, calibration."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mwjax.logs import Journal
from mwjax.plots.style import DENSE, HIGH, LOW, P_PLUS, new_figure
from mwjax.replay.records import MemoryReport, Report

GREY = "#7F7F7F"
MOST_NAMES, MOST_PAIRS, MOST_LINES = 30, 8, 4
LEAST_WINDOW = 50
"""Outcomes of a memory over which its line is a mean, or a tenth of them."""


def figure(report: Report, journal: Journal) -> Figure:
    """One panel a question; those without data are left out."""
    panels = [_worth]
    panels += [_adjusted] if report.overall.adjustment is not None else []
    panels += [_pairs] if report.pairs else []
    panels += [_over_time]
    panels += [_reliability] if report.reliability is not None and report.reliability.bins else []
    with matplotlib.rc_context(DENSE):
        rows = -(-len(panels) // 2)
        made = new_figure(6.5, 2.9 * rows)
        places = made.subplots(rows, 2, squeeze=False).ravel()
        for place, panel in zip(places, panels, strict=False):
            panel(place, report, journal)
        for place in places[len(panels) :]:
            place.set_visible(False)
        overall = report.overall
        made.suptitle(
            f"{overall.memories:,} memories, {len(journal.outcome):,} episodes, {overall.evidence:,} outcomes of "
            f"memories, base rate {overall.base_rate:.3f}",
            fontsize=9,
            x=0.02,
            ha="left",
        )
    return made


def _colour(memory: MemoryReport, rate: float) -> str:
    return HIGH if memory.interval[0] > rate else LOW if memory.interval[1] < rate else GREY


def _worth(axes: Axes, report: Report, journal: Journal) -> None:
    """Every memory in the order of its worth; of many, those with most evidence."""
    del journal
    rate = report.overall.base_rate
    shown = sorted(report.memories, key=lambda m: -m.evidence)[:400]
    shown = sorted((m for m in shown if m.evidence), key=lambda m: m.worth)
    y = np.arange(len(shown))
    for memory, place in zip(shown, y, strict=True):
        axes.plot(memory.interval, (place, place), color=_colour(memory, rate), lw=0.8, solid_capstyle="butt")
    axes.scatter([m.worth for m in shown], y, s=4, color=[_colour(m, rate) for m in shown], zorder=3)
    axes.axvline(rate, color="k", lw=0.8, ls="--")
    axes.set(xlabel="worth (95 % interval)", title="Worth against the base rate (dashed)")
    if len(shown) <= MOST_NAMES:
        axes.set_yticks(y, [_short(m.id) for m in shown])
    else:
        axes.set(yticks=[], ylabel=f"{len(shown):,} memories, by worth")


def _adjusted(axes: Axes, report: Report, journal: Journal) -> None:
    """Raw against adjusted worth; suspects named, each tied to the companion it borrows from."""
    del journal
    rate, enough = report.overall.base_rate, max(report.overall.min_evidence, 1)
    shown = [m for m in report.memories if m.adjusted is not None and m.evidence >= enough]
    of = {m.id: m for m in shown}
    axes.scatter([m.worth for m in shown], [m.adjusted or 0 for m in shown], s=9, color=GREY, lw=0)
    named: list[tuple[float, float, str]] = []
    for one in report.suspects[:MOST_PAIRS]:
        if (own := of.get(one.id)) is None or own.adjusted is None:
            continue
        axes.plot(own.worth, own.adjusted, "o", ms=4, color=LOW)
        named.append((own.adjusted, own.worth, _short(one.id)))
        other = of.get(one.companion)
        if other is not None and other.adjusted is not None:
            axes.plot(other.worth, other.adjusted, "o", ms=4, mfc="none", color=P_PLUS)
            ends = (own.worth, other.worth), (own.adjusted, other.adjusted)
            axes.plot(*ends, color=P_PLUS, lw=0.6, zorder=1)
    axes.axvline(rate, color="k", lw=0.6, ls="--")
    axes.axhline(rate, color="k", lw=0.6, ls="--")
    _name_beside(axes, sorted(named))
    title = "Suspects (filled), their lenders (open)" if report.suspects else "No suspects"
    axes.set(xlabel=f"worth (evidence from {enough})", ylabel="adjusted worth", title=title)


def _name_beside(axes: Axes, named: list[tuple[float, float, str]]) -> None:
    """Names (y, x, name), by y, at the right edge, none over another, each tied to its point."""
    low, high = axes.get_ylim()
    places = [y for y, _, _ in named]
    for i in range(1, len(places)):
        places[i] = max(places[i], places[i - 1] + (high - low) / 18)
    over = max((places[-1] - high if places else 0), 0)
    for (y, x, name), place in zip(named, places, strict=True):
        axes.annotate(
            name, (x, y), (1.02, place - over), xycoords="data", textcoords=axes.get_yaxis_transform(), fontsize=7,
            va="center", arrowprops={"arrowstyle": "-", "lw": 0.4, "color": LOW, "shrinkA": 0, "shrinkB": 2},
            annotation_clip=False,
        )  # fmt: skip


def _pairs(axes: Axes, report: Report, journal: Journal) -> None:
    """Success together, with the first alone and with the second alone."""
    del journal
    shown = report.pairs[:MOST_PAIRS]
    y = np.arange(len(shown))[::-1]
    kinds = (
        ("together", "together", "o", "k"),
        ("only_first", "only first", "<", HIGH),
        ("only_second", "only second", ">", LOW),
    )
    for field, label, marker, colour in kinds:
        counts = np.array([getattr(pair, field) for pair in shown], np.float64)
        rate = np.divide(counts[:, 1], counts[:, 0], out=np.full(len(shown), np.nan), where=counts[:, 0] > 0)
        axes.plot(rate, y, marker, ms=4.5, color=colour, label=label, ls="", mfc="none" if marker != "o" else colour)
    axes.set_yticks(y, [f"{_short(pair.first)}, {_short(pair.second)}" for pair in shown])
    axes.axvline(report.overall.base_rate, color="k", lw=0.6, ls="--")
    axes.set(xlabel="success of the episode", title="Most entangled pairs (first, second)")
    axes.set_ylim(-0.6, len(shown) + 0.4)
    axes.legend(frameon=False, fontsize=7, loc="upper center", ncols=3, handletextpad=0.1, columnspacing=1)


def _over_time(axes: Axes, report: Report, journal: Journal) -> None:
    """Means over the last outcomes of the memories that changed most, or of those with most evidence."""
    changed = [m for m in report.memories if m.change_points]
    changed.sort(key=lambda m: -max(abs(change.after - change.before) for change in m.change_points))
    chosen = changed or sorted(report.memories, key=lambda m: -m.evidence)
    index = {name: i for i, name in enumerate(journal.memories)}
    episode, styles = journal.episode, ((HIGH, "-"), (LOW, "--"), (P_PLUS, "-."), ("k", ":"))
    for memory, (colour, dashes) in zip(chosen[:MOST_LINES], styles, strict=False):
        own = np.flatnonzero((journal.memory == index[memory.id]) & (journal.success >= 0))
        if not len(own):
            continue
        total = np.cumsum(np.append(0, journal.success[own] == 1))
        window = max(LEAST_WINDOW, len(own) // 10)
        last = np.arange(1, len(own) + 1)
        first = np.maximum(last - window, 0)
        mean = (total[last] - total[first]) / (last - first)
        late = last >= min(window, len(own)) // 2
        axes.plot(episode[own][late], mean[late], color=colour, ls=dashes, lw=1, label=_short(memory.id))
        for change in memory.change_points:
            axes.axvline(change.episode, color=colour, lw=0.8, ls=":")
    axes.axhline(report.overall.base_rate, color="k", lw=0.6, ls="--")
    title = "Memories that changed (dotted: when)" if changed else "No change points; the most seen"
    axes.set(xlabel="episode", ylabel="moving mean of its outcomes", title=title)
    axes.xaxis.set_major_formatter(lambda x, _: f"{x:,.0f}")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.22 * (high - low))
    axes.legend(frameon=False, fontsize=7, loc="upper center", ncols=2, columnspacing=1)


def _reliability(axes: Axes, report: Report, journal: Journal) -> None:
    """Share of successes against the forecast made before them."""
    del journal
    found = report.reliability
    assert found is not None
    forecast, observed = np.array([[b.forecast, b.observed] for b in found.bins]).T
    ends = np.array([[b.observed - b.low, b.high - b.observed] for b in found.bins]).T
    axes.errorbar(forecast, observed, np.maximum(ends, 0), fmt="o", ms=3.5, lw=0.9, color=P_PLUS)
    low, high = _range([*forecast, *observed])
    axes.plot((low, high), (low, high), color="k", lw=0.6, ls="--")
    axes.set(
        xlabel="forecast before the outcome",
        ylabel="share of successes",
        title=f"Calibration: skill {found.skill:+.4f}",
    )


def _range(values: Sequence[float]) -> tuple[float, float]:
    return min(values), max(values)


def _short(name: str) -> str:
    shown = "".join(c if c.isprintable() else "?" for c in name).replace("$", r"\$")
    return shown if len(shown) <= 16 else shown[:15] + "…"
