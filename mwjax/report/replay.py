"""What a log says of its memories, as text."""

from __future__ import annotations

from collections.abc import Iterator

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mwjax.replay.heterogeneity import NO_DIFFERENCES
from mwjax.replay.records import Inclusion, MemoryReport, Pair, Report
from mwjax.report.backtest import print_rule
from mwjax.report.text import say

MOST_CHANGES = 10
LEAST_PHI = 0.1


def print_replay(report: Report, console: Console, *, rows: int = 10) -> None:
    """The tally; the log as a whole; tables of the best, the worst and the undecided memories; what else there is."""
    episodes = report.episodes
    say(console, f"{episodes.read:,} lines read, {episodes.used:,} used, {episodes.skipped:,} skipped")
    for line in (*(f"  {count:,} {reason}" for reason, count in episodes.reasons.items()), *episodes.messages):
        console.print(line, markup=False, highlight=False, soft_wrap=True)
    for line in _overall(report):
        say(console, line)
    if _nothing_credible(report):
        expected = 0.025 * sum(m.evidence > 0 for m in report.memories)
        say(console, f"By chance alone about {expected:.0f} intervals would lie above the base rate, as many below.")
    for title, memories in _standings(report).items():
        say(console, Text(f"\n{title}: {min(rows, len(memories))} of {len(memories):,}", style="bold"))
        if memories:
            console.print(_memories(memories[:rows]))
    _print_suspects(report, console, rows)
    _print_pairs(report, console, rows)
    _print_changes(report, console)
    _print_effects(report, console, rows)
    if report.reliability is not None:
        say(console, _calibration(report))
    if report.rule is not None:
        say(console, "")
        print_rule(report.rule, console)
    for one in report.notes:
        say(console, f"Note: {one}")


def _nothing_credible(report: Report) -> bool:
    """No credible differences: single intervals are then what chance would show."""
    spread = report.overall.spread
    return spread is not None and spread.verdict == NO_DIFFERENCES


def _overall(report: Report) -> Iterator[str]:
    """The log as a whole."""
    overall, test = report.overall, report.overall.homogeneity
    yield f"{overall.memories:,} memories, {overall.hits:,} successes of {overall.evidence:,}: {overall.base_rate:.4f}"
    yield f"95 % interval above this base rate: {overall.interval_above:,}, below: {overall.interval_below:,}"
    spread = overall.spread
    if spread is not None and spread.p_value is not None:
        yield (
            f"Heterogeneity: chi2 {spread.chi2:.2f}; outcomes permuted over units {spread.permutations:,} times: mean "
            f"{spread.permuted_mean:.1f}, sd {spread.permuted_sd:.1f}, p {spread.p_value:.2g}: {spread.verdict}"
        )
    else:
        yield f"Homogeneity: chi2 {test.chi2:.2f} on {test.degrees_of_freedom:,}, p {test.p_value:.2g} ({test.caveat})"
    if spread is not None:
        strength = spread.a + spread.b
        cap = "; at its cap, as the counters vary no more than by chance" if spread.capped else ""
        yield f"Empirical-Bayes prior: Beta({spread.a:.4g}, {spread.b:.4g}), worth {strength:,.0f} outcomes{cap}"
    adjustment = overall.adjustment
    if adjustment is not None:
        rho = adjustment.correlation_with_worth
        yield (
            f"Adjusted worth: logistic ridge on {adjustment.rows:,} rows, penalty {adjustment.penalty:g} "
            f"({adjustment.chosen_by}), intercept {adjustment.intercept:.6f}"
            + (f"; rank correlation with worth {rho:.3f}" if rho is not None else "")
        )


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


def _table(*headings: str, left: tuple[str, ...] = ()) -> Table:
    """The first column alone may shrink."""
    table = Table(headings[0], box=box.SIMPLE_HEAD, pad_edge=False)
    for heading in headings[1:]:
        table.add_column(heading, justify="left" if heading in left else "right", no_wrap=True)
    return table


def _name(text: str) -> Text:
    return Text("".join(c if c.isprintable() else "?" for c in text), no_wrap=True, overflow="ellipsis")


def _memories(memories: list[MemoryReport]) -> Table:
    adjusted = any(m.adjusted is not None for m in memories)
    headings = ("memory", "evidence", "hits", "worth", "95 % interval", "label", *(("adjusted",) if adjusted else ()))
    table = _table(*headings, left=("label",))
    for m in memories:
        interval = f"{m.interval[0]:.3f} - {m.interval[1]:.3f}"
        row = [_name(m.id), f"{m.evidence:,}", f"{m.successes:,}", f"{m.worth:.3f}", interval, m.label]
        table.add_row(*row, *(("-" if m.adjusted is None else f"{m.adjusted:.3f}",) if adjusted else ()))
    return table


def _print_suspects(report: Report, console: Console, rows: int) -> None:
    if report.overall.adjustment is None:
        return
    found = report.suspects
    say(
        console,
        Text(f"\nSuspects (worth that seems borrowed): {min(rows, len(found))} of {len(found):,}", style="bold"),
    )
    if not found:
        return
    memories = {m.id: m for m in report.memories}
    table = _table("memory", "worth", "adjusted", "borrows from", "together", "its adjusted", "clear", left=("clear",))
    for one in found[:rows]:
        own, other = memories[one.id], memories.get(one.companion)
        table.add_row(
            _name(one.id),
            f"{own.worth:.3f}",
            f"{own.adjusted:.3f}",
            _name(one.companion),
            f"{one.together:.0%}",
            "-" if other is None or other.adjusted is None else f"{other.adjusted:.3f}",
            "yes" if one.clear else "no",
        )
    console.print(table)
    say(
        console,
        "Raw interval above the base rate, adjusted not. clear: the companion is credibly the better of the two.",
    )


def _print_pairs(report: Report, console: Console, rows: int) -> None:
    if not report.pairs:
        return
    shown = [pair for pair in report.pairs if pair.phi >= LEAST_PHI][:rows]
    if not shown:
        say(console, f"\nNo entangled pairs: the greatest correlation of being shown is {report.pairs[0].phi:.2f}")
        return
    say(console, Text(f"\nMost entangled pairs: {len(shown)}", style="bold"))
    table = _table("first", "second", "phi", "together", "only first", "only second", "better", left=("better",))
    for pair in shown:
        table.add_row(_name(pair.first), _name(pair.second), f"{pair.phi:.2f}", *_shares(pair), _better(pair))
    console.print(table)
    say(console, "Success of the episodes that show both, or one without the other. better: credibly so, adjusted.")


def _shares(pair: Pair) -> Iterator[str]:
    for n, s in (pair.together, pair.only_first, pair.only_second):
        yield f"{s / n:.3f} of {n:,}" if n else "never"


def _better(pair: Pair) -> str:
    """Which of the two is credibly the better one by the 95 % interval of their contrast."""
    if pair.contrast is None or pair.contrast_se is None or abs(pair.contrast) <= 1.96 * pair.contrast_se:
        return "-"
    return "first" if pair.contrast > 0 else "second"


def _print_changes(report: Report, console: Console) -> None:
    found = [(m, change) for m in report.memories for change in m.change_points]
    if not found:
        return
    most = sorted(found, key=lambda one: -abs(one[1].after - one[1].before))[:MOST_CHANGES]
    say(console, Text(f"\nChange points: {len(most)} of {len(found):,}, the greatest first", style="bold"))
    table = _table("memory", "at episode", "before", "after")
    for m, change in most:
        table.add_row(_name(m.id), f"{change.episode:,}", f"{change.before:.3f}", f"{change.after:.3f}")
    console.print(table)


def _print_effects(report: Report, console: Console, rows: int) -> None:
    """Effects where there are any, else values."""
    kind = "effect" if any(m.ips is not None and m.ips.effect is not None for m in report.memories) else "value"
    told = lambda one: None if one is None else getattr(one, kind)
    found = [m for m in report.memories if told(m.snips) is not None]
    if not found:
        return
    found.sort(key=lambda m: -abs(told(m.doubly_robust) or told(m.snips) or 0))
    what = "Effects of inclusion (success with less success without)" if kind == "effect" else "Success if included"
    say(console, Text(f"\n{what}: {min(rows, len(found))} of {len(found):,}", style="bold"))
    table = _table("memory", "IPS", "SNIPS", "doubly robust", "ESS")
    for m in found[:rows]:
        each = [_with_error(one, kind) for one in (m.ips, m.snips, m.doubly_robust)]
        table.add_row(_name(m.id), *each, "-" if m.ess is None else f"{m.ess:,.0f}")
    console.print(table)


def _with_error(one: Inclusion | None, kind: str) -> str:
    value, error = (None, None) if one is None else (getattr(one, kind), getattr(one, f"{kind}_se"))
    if value is None or error is None:
        return "-"
    return f"{value:{'+' if kind == 'effect' else ''}.3f} +-{1.96 * error:.3f}"


def _calibration(report: Report) -> str:
    """Forecasts made before each outcome, and the same on permuted outcomes."""
    found = report.reliability
    assert found is not None
    low, high = found.skill_interval
    return (
        f"\nCalibration (predict, then update): Brier {found.brier:.4f}, skill against the base rate so far "
        f"{found.skill:+.4f} ({low:+.4f} to {high:+.4f}), ECE {found.ece:.4f}; outcomes permuted over units: skill "
        f"{found.permuted_skill:+.4f}"
    )
