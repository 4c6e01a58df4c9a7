"""What a run of texts says: worth by kind, what is borrowed, the crossing, and what every rule noticed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import xarray
from rich.console import Console
from rich.table import Table

from mwjax.analysis import texts
from mwjax.report.text import new_table, number, say
from mwjax.results import statistics

Found = Mapping[str, tuple[np.ndarray, ...]]


def print_texts(dataset: xarray.Dataset, console: Console) -> None:
    """Three tables and the closed form."""
    found = {name: statistics(values) for name, values in texts.measure(dataset)}
    _kinds(dataset, console)
    say(console, "\nThe stale memory by counter; where it crosses theta_low (episode); kinds that should not fall")
    table = new_table("counter", "at switch", "at end", "crosses", "others low", "high")
    metrics = ("stale_before", "stale_after", "stale_crossing", "others_low", "others_high")
    _rows(table, found, [str(one) for one in dataset.estimator.values], metrics, (3, 3, 0, 3, 3))
    console.print(table)
    if "decisions" in dataset:
        say(console, "\nRules: share of the lives that notice the stale memory; share of the others condemned")
        table = new_table("rule", "noticed", "after retrievals", "others condemned")
        rules = [str(one) for one in dict.fromkeys(n.rpartition(".")[0] for n in found if n.endswith("others_decided"))]
        _rows(table, found, rules, ("stale_detected", "stale_delay", "others_decided"), (2, 0, 4))
        console.print(table)
    for line in lines(dataset, found):
        say(console, line)


def _rows(table: Table, found: Found, names: Sequence[str], metrics: Sequence[str], digits: Sequence[int]) -> None:
    for name in names:
        cells = [found.get(f"{name}.{metric}") for metric in metrics]
        mean = [None if one is None else float(one[0]) for one in cells]
        table.add_row(name, *(number(x, n) for x, n in zip(mean, digits, strict=True)))


def _kinds(dataset: xarray.Dataset, console: Console) -> None:
    """Every kind: how many, worth of the first estimator, p+ and what they earn alone in the last phase."""
    table = new_table("kind", "memories", "worth", "95 %", "p+, similarity", "alone")
    first = str(dataset.estimator.values[0])
    for kind in texts.kinds(dataset):
        mine = texts.of_kind(dataset, kind)
        mean, _, low, high = (float(one) for one in statistics(texts.curve(dataset, first, kind)[:, -1]))
        p = dataset["p_plus_by_phase"].values[-1, mine].mean() if "p_plus_by_phase" in dataset.coords else None
        ends = f"{low:.3f}..{high:.3f}" if np.isfinite(low) else "-"
        alone = float(dataset["alone"].values[-1, mine].mean())
        table.add_row(kind, f"{mine.sum()}", number(mean), ends, number(p), number(alone))
    say(console, f"\nWorth ({first}) at the end by kind; p+; and what they earn alone (k = 1; 0.5: never retrieved)")
    console.print(table)


def lines(dataset: xarray.Dataset, found: Found) -> Iterator[str]:
    """The closed form and what the hitchhiker borrows, in words."""
    known, at = texts.predicted(dataset), texts.predicted_crossing(dataset)
    if known is not None and at is not None:
        n1, p1, p2, delay = known
        yield (
            f"Closed form: n1 (p1 - theta)/(theta - p2) = {delay:.1f} retrievals after the switch (n1 {n1:.1f}, p1 "
            f"{p1:.3f}, p2 {p2:.3f}), near episode {at:,.0f}: the older a memory, the longer it is trusted."
        )
    borrowed = found.get(f"{dataset.estimator.values[0]}.borrowed")
    if borrowed is not None:
        yield (
            f"Borrowed: the worth of the hitchhikers is {float(borrowed[0]):.3f} more than what they earn alone; "
            "the memories beside them earn it."
        )
    yield "An outcome is shared by the set: what is retrieved beside the stale memory (companions) sinks with it."
