"""Governance as text: rules compared, what decisions of a run were worth, and how well forecasts are calibrated."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray
from rich.console import Console
from rich.text import Text

from mwjax import compare, results
from mwjax.analysis import calibration, survival, verdicts
from mwjax.config.governed import MOST_STRENGTH
from mwjax.report.text import new_table, number, say

SHARES = ("false_deprecation", "false_by_removal", "missed", "false_alarms")


EXPLAINED = (
    "Points: success in % less that of doing nothing, +- 95 %. false, rem.: % of the good memories deprecated, by p+ "
    "and by removal value. miss: % of the bad ones not. alarm: false ones per 1,000 retrievals. kept, util.: memories "
    "left and their mean utility. delay: median, retrievals from the switch on. undet.: % of the stale ones never seen."
)


def print_compare(dataset: xarray.Dataset, console: Console) -> None:
    """One row a setting, success points first, and which rule wins at equal error."""
    say(console, Text(dataset.attrs["title"] or dataset.attrs["experiment"], style="bold"))
    say(
        console,
        f"{dataset.sizes['seed']:,} lives of {dataset.attrs['episodes']:,} episodes, the same for every setting",
    )
    stale = bool(np.isfinite(dataset.undetected.values).any())
    heads = ("rule", "points", "false", "rem.", "miss", "alarm", "kept", "util.")
    table = new_table(*heads, *(("delay", "undet.") if stale else ()))
    last = ""
    for row in compare.table(dataset):
        if row["rule"] != last:
            table.add_section()
            if row["knob"]:
                table.add_row(row["rule"])
        last = row["rule"]
        table.add_row(*_compared(row), *((number(row["delay"], 0), _percent(row["undetected"])) if stale else ()))
    console.print(table)
    knobs = {row["rule"]: row["knob"] for row in compare.table(dataset) if row["knob"]}
    say(console, f"Below a rule: {', '.join(f'{knob} of {rule}' for rule, knob in knobs.items())}. {EXPLAINED}")
    say(console, "At equal false deprecation: " + compare.verdict(dataset))
    place = dataset.encoding.get("source")
    say(console, f"Took {dataset.attrs['wall_s']:.0f} s" + (f"; stored in {place}" if place else ""))


def _compared(row: Mapping[str, Any]) -> list[str]:
    """One setting: its name, points and shares."""
    value = row["value"]
    name = row["rule"] if value is None else f"  {value:g}"
    mean, (low, high) = row["gained"]["mean"], row["gained"]["ci95"]
    spread = "" if low is None or high is None else f" +-{50 * (high - low):.2f}"
    shares = [_percent(row[one]["mean"]) for one in SHARES[:3]]
    rest = (
        number(row["false_alarms"]["mean"], 2),
        number(row["store_size"]["mean"], 0),
        number(row["kept_utility"]["mean"]),
    )
    return [name, f"{100 * mean:+.2f}{spread}", *shares, *rest]


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f}"


def print_decisions(dataset: xarray.Dataset, console: Console) -> None:
    """What every rule of a run decided, against the truth."""
    found = [{name: results.statistics(x) for name, x in one.items()} for one in verdicts.each(dataset)]
    acts = fields_of(dataset)["governance"] != "none"
    stale = "after_episode" in dataset.decision.values
    table = new_table("rule", "decided", "false p+", "false rem.", "missed", "alarms", *(("delay", "undet.") * stale))
    for i, rule in enumerate(dataset["rule"].values.tolist()):
        cells = [number(float(found[i][name][0])) for name in ("decided", *SHARES)]
        if stale:
            retrievals, _, censored = verdicts.delays(dataset, i)
            median = survival.median_delay(retrievals, censored) if len(retrievals) else None
            cells += [number(median, 0), number(float(censored.mean()), 2) if len(retrievals) else "-"]
        table.add_row(f"{rule} (acts)" if acts and i == 0 else str(rule), *cells)
    say(console, "\nDecisions of rules: memories of a life decided against, and shares of those of the kind")
    console.print(table)


def print_calibration(dataset: xarray.Dataset, console: Console) -> None:
    """Forecasts made before each outcome, held against it."""
    table = new_table("forecast before the outcome", "Brier", "skill", "log loss", "ECE")
    found = calibration.measure(dataset)
    for name in dataset.forecaster.values.tolist():
        each = [found.get(f"{name}.{one}") for one in ("brier", "skill", "log_loss", "ece")]
        table.add_row(str(name), *("-" if x is None else number(float(np.nanmean(x)), 4) for x in each))
    say(console, "\nCalibration (prequential): skill is against the base rate so far, above 0 is better than it")
    console.print(table)


def lines(dataset: xarray.Dataset, config: Mapping[str, Any]) -> Iterator[str]:
    """What there is to say of a store under governance."""
    if "store_size" in dataset:
        size, active, utility = (
            float(dataset[name].isel(checkpoint=-1).mean()) for name in ("store_size", "active_size", "kept_utility")
        )
        whole = float(dataset.utility.mean())
        yield f"Store at the end: {size:.1f} live, {active:.1f} active; mean utility {utility:.4f}, of all {whole:.4f}"
    if "prior_strength" in dataset:
        strength = dataset.prior_strength.isel(checkpoint=-1).values
        capped = (strength >= 0.999 * MOST_STRENGTH).mean()
        middle = f"strength {strength.mean():.0f} on average, median {np.median(strength):.0f}"
        yield f"Empirical-Bayes prior: {middle}; at its cap of {MOST_STRENGTH:,} in {capped:.0%} of the lives"
    if config["governance"] == "none":
        return
    held = float(dataset.held_back.mean())
    if held:
        yield f"Held back: {held:.1f} decisions a life, as fewer than num_retrieved memories would be left."
    if config["theta_mode"] == "absolute":
        yield from _diluted(dataset, config)


def _diluted(dataset: xarray.Dataset, config: Mapping[str, Any]) -> Iterator[str]:
    """Say it where no memory's p+ lies on the other side of an absolute theta."""
    p, theta = dataset.p_plus.values, config["theta"]
    if config["rule"] == "none" or not np.isfinite(p).all():
        return
    low, high = float(p.min()), float(p.max())
    if not low < theta <= high:
        yield (
            f"Dilution: p+ lies within [{low:.3f}, {high:.3f}], all on one side of theta = {theta:g}; an absolute "
            "threshold means nothing here. Use theta_mode = 'relative' or 'quantile'."
        )


def fields_of(dataset: xarray.Dataset) -> dict[str, Any]:
    """The settings of a result."""
    return json.loads(dataset.attrs["config"])
