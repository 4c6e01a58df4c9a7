"""What a log says of forgetting, of a rule and of its own forecasts, as text and as JSON."""

from __future__ import annotations

import math
import textwrap
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.text import Text

from mwjax.replay.backtest import ESTIMATORS, UNITS, Backtest, Setting
from mwjax.replay.reliability import Prequential
from mwjax.replay.rule import Drop, RuleValue
from mwjax.report.text import new_table, number, say

MILLI = 1_000
ASSUMPTION = (
    "It assumes that, within a context, whether a dropped memory was retrieved tells nothing else of the episode, and "
    "that others take its place as they do where it is not retrieved."
)
METHODS = {
    "direct": "later episodes whose set held none of the memories dropped by then, against all",
    "additive": "later outcomes against how many dropped memories the set held, taken as linear",
}


def print_backtest(result: Backtest, console: Console) -> None:
    """Every setting with its distance to the best one, and the verdict."""
    say(console, Text("Forecast, then update: which half-life does the log support?", style="bold"))
    _wrap(console, f"{result.episodes:,} episodes in {result.units:,} units; {_base(result)}.")
    several = len({(one.estimator, one.prior) for one in result.settings}) > 1
    extra = ("counters", "prior") if several else ()
    table = new_table(*extra, "half-life", "log loss", "worse by", "+-", *([] if several else ["Brier"]), "skill", "")
    for i in sorted(range(len(result.settings)), key=lambda i: _group(result.settings[i])):
        one, mark = result.settings[i], "*" if i == result.chosen else "best" if i == result.best else ""
        named = [one.estimator, one.prior] if several else []
        gap, error = (f"{MILLI * x:.3f}" if math.isfinite(x) else "-" for x in (one.difference, one.standard_error))
        brier = [] if several else [f"{one.brier:.6f}"]
        table.add_row(
            *named, f"{one.half_life:g}", f"{one.log_loss:.6f}", gap, error, *brier, f"{one.skill:+.4f}", mark
        )
    console.print(table)
    units = dict.fromkeys(UNITS[ESTIMATORS[one.estimator]] for one in result.settings)
    how = f"paired, over {result.blocks:,} blocks of consecutive units"
    _wrap(console, f"Half-lives in {' or '.join(units)}. Worse by: nats per 1,000 episodes, one standard error, {how}.")
    _wrap(console, f"* {result.sentence}")


def backtest_json(result: Backtest) -> dict[str, Any]:
    """The fields of a Backtest and its sentence; half-lives that never end are "inf", what is not known is null."""
    return _plain(asdict(result) | {"sentence": result.sentence})


def print_rule(value: RuleValue, console: Console, *, rows: int = 10) -> None:
    """What the rule would have dropped and when, and what the log lets one say of the change."""
    name = f"{value.rule}, theta = {value.knobs.theta:g}"
    say(console, Text(f"{name}: {len(value.dropped):,} memories dropped", style="bold"))
    if value.dropped:
        table = new_table("memory", "after episode", "evidence", "worth", "later", "later worth")
        for drop in value.dropped[:rows]:
            table.add_row(*_drop(drop))
        console.print(table)
        if len(value.dropped) > rows:
            say(console, f"and {len(value.dropped) - rows:,} more")
        support = f"{value.with_dropped:,} of {value.later:,} later episodes ({value.support:.1%})"
        _wrap(console, f"Support: {support} held a memory dropped before, {value.without:,} did not.")
    _wrap(console, rule_sentence(value))
    if value.dropped and value.change is not None:
        _wrap(console, f"Compared: {METHODS[value.method]}. {ASSUMPTION}")
    for warning in value.warnings:
        _wrap(console, f"Warning: {warning}")


def rule_sentence(value: RuleValue) -> str:
    """What the log says of the rule, in one sentence."""
    if not value.dropped:
        return "The rule would have dropped nothing, and so changed nothing."
    if value.change is None or value.interval is None:
        return str(value.refusal)
    low, high = value.interval
    told = "more often" if low > 0 else "less often" if high < 0 else "neither credibly more nor less often"
    gap = f"{100 * value.change:+.2f} points, 95 % interval {100 * low:+.2f} to {100 * high:+.2f}"
    return f"Without them, later episodes would have succeeded {told}: {gap} on {100 * value.success:.2f} %."


def rule_json(value: RuleValue) -> dict[str, Any]:
    """The fields of a RuleValue, its support and its sentence; what is not known is null."""
    fields = asdict(value) | {"knobs": value.knobs._asdict(), "dropped": [one._asdict() for one in value.dropped]}
    return _plain(fields | {"support": value.support, "sentence": rule_sentence(value)})


def print_reliability(found: Prequential, console: Console) -> None:
    """Scores, the control with permuted outcomes, and the reliability diagram."""
    say(console, Text("Forecast, then update: are the memories' worths forecasts?", style="bold"))
    low, high = found.skill_interval
    _wrap(console, f"{found.episodes:,} episodes in {found.units:,} units; {_base(found)}.")
    line = f"Brier {found.brier:.6f}, log loss {found.log_loss:.6f}, calibration error {found.ece:.4f}"
    _wrap(console, f"{line}; skill {found.skill:+.4f} (95 % {low:+.4f} to {high:+.4f}).")
    if found.permuted:
        spread = f" (sd {found.permuted_sd:.4f})" if math.isfinite(found.permuted_sd) else ""
        again = f"Outcomes permuted over units {found.permuted:,} times: skill {found.permuted_skill:+.4f}{spread}"
        _wrap(console, f"{again}, p {found.p_value:.3g}.")
    table = new_table("forecast", "observed", "95 %", "n")
    for one in found.bins:
        table.add_row(number(one.forecast), number(one.observed), f"{one.low:.3f}..{one.high:.3f}", f"{one.n:,}")
    console.print(table)


def reliability_json(found: Prequential) -> dict[str, Any]:
    """The fields of a Prequential; what is not known is null."""
    return _plain(asdict(found) | {"bins": [one._asdict() for one in found.bins]})


def _base(result: Backtest | Prequential) -> str:
    return f"running base rate: log loss {result.base_log_loss:.6f}, Brier {result.base_brier:.6f}"


def _group(one: Setting) -> tuple[str, str]:
    return one.estimator, one.prior


def _drop(drop: Drop) -> tuple[str, ...]:
    later = number(drop.later_successes / drop.later_shown) if drop.later_shown else "-"
    name = "".join(c if c.isprintable() else "?" for c in drop.id[:24])
    worth = number(drop.successes / drop.evidence)
    return name, f"{drop.episode + 1:,}", f"{drop.evidence:,}", worth, f"{drop.later_shown:,}", later


def _wrap(console: Console, text: str) -> None:
    for line in textwrap.wrap(text, 79):
        say(console, line)


def _plain(value: Any) -> Any:
    """As JSON would return it: tuples as lists, infinite as "inf", NaN as null."""
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else "inf"
    return value
