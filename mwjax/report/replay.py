"""What a log says of its memories, as text."""

from __future__ import annotations

import functools

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mwjax.replay.records import MemoryReport, Report


def print_replay(report: Report, console: Console, *, rows: int = 10) -> None:
    """The tally, and tables of the best, the worst and the undecided memories."""
    episodes, overall = report.episodes, report.overall
    say = functools.partial(console.print, markup=False, highlight=False)
    say(f"{episodes.read:,} lines read, {episodes.used:,} used, {episodes.skipped:,} skipped")
    for line in (*(f"  {count:,} {reason}" for reason, count in episodes.reasons.items()), *episodes.messages):
        say(line, soft_wrap=True)
    say(f"{overall.memories:,} memories, {overall.hits:,} successes of {overall.evidence:,}: {overall.base_rate:.4f}")
    say(f"95 % interval above this base rate: {overall.interval_above:,}, below: {overall.interval_below:,}")
    test = overall.homogeneity
    say(f"Homogeneity: chi2 {test.chi2:.2f} on {test.degrees_of_freedom:,}, p {test.p_value:.2g} ({test.caveat})")
    for title, memories in _standings(report).items():
        say(Text(f"\n{title}: {min(rows, len(memories))} of {len(memories):,}", style="bold"))
        if memories:
            console.print(_table(memories[:rows]))


def _standings(report: Report) -> dict[str, list[MemoryReport]]:
    """Memories above the base rate, best first; below it, worst first; and the rest, most evidence first."""
    rate, enough = report.overall.base_rate, report.overall.min_evidence
    sides: dict[int, list[MemoryReport]] = {1: [], -1: [], 0: []}
    for m in report.memories:
        side = (m.interval[0] > rate) - (m.interval[1] < rate)
        sides[side if m.evidence >= enough else 0].append(m)
    return {
        "Top (interval above the base rate)": sorted(sides[1], key=lambda m: -m.worth),
        "Bottom (interval below the base rate)": sorted(sides[-1], key=lambda m: m.worth),
        "Undecided (the rest, most seen first)": sorted(sides[0], key=lambda m: -m.evidence),
    }


def _table(memories: list[MemoryReport]) -> Table:
    table = Table("memory", box=box.SIMPLE_HEAD)  # the only column that may shrink
    for heading in ("evidence", "successes", "worth", "95 % interval", "label"):
        table.add_column(heading, justify="left" if heading == "label" else "right", no_wrap=True)
    for m in memories:
        name = Text("".join(c if c.isprintable() else "?" for c in m.id), no_wrap=True, overflow="ellipsis")
        interval = f"{m.interval[0]:.3f} - {m.interval[1]:.3f}"
        table.add_row(name, f"{m.evidence:,}", f"{m.successes:,}", f"{m.worth:.3f}", interval, m.label)
    return table
