"""Sweeps, maps and sensitivity as text and as one JSON object."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import xarray
from rich.console import Console
from rich.text import Text

from mwjax.report.text import new_table, number, say
from mwjax.results import statistics

COLUMNS = (
    "spearman", "mean_success", "evidence_least", "starved", "coverage_p_plus", "gap", "anchor_above", "delay",
    "acting.false_deprecation", "acting.missed",
)  # fmt: skip
"""Metrics that a table shows, in this order; all are in --json."""


SHORT = {"exploration_floor": "eps", "temperature": "tau", "floor_mode": "floor", "spearman": "rho"}
SHORT |= {"mean_success": "success", "evidence_least": "least n", "coverage_p_plus": "p+ covered"}
SHORT |= {
    "acting.false_deprecation": "false p+",
    "acting.missed": "missed",
    "num_retrieved": "k",
    "num_memories": "N",
    "anchor_above": "Pr above",
}


def print_sweep(dataset: xarray.Dataset, console: Console) -> None:
    """The cells of a sweep at the last checkpoint, or the thresholds of a map."""
    say(console, Text(dataset.attrs["title"] or dataset.attrs["experiment"], style="bold"))
    if dataset.attrs["kind"] == "separation":
        _print_map(dataset, console)
    else:
        _print_cells(dataset, console)
    place = dataset.encoding.get("source")
    say(console, f"Took {dataset.attrs['wall_s']:.0f} s" + (f"; stored in {place}" if place else ""))


def _print_cells(dataset: xarray.Dataset, console: Console) -> None:
    axes = json.loads(dataset.attrs["axes"])
    names = [name for end in COLUMNS for name in map(str, dataset.data_vars) if end in (name, name.rpartition(".")[2])]
    several = len({name.partition(".")[0] for name in names if "." in name}) > 1
    heads = [name.removesuffix(".spearman") if several else name.rpartition(".")[2] for name in names]
    heads = [SHORT.get(head, head.replace("memory_worth", "mw")) for head in (*axes, *heads)]
    heads = [f"delay of\n{head.removesuffix('.delay')}" if head.endswith(".delay") else head for head in heads]
    table = new_table(*heads)
    last = {name: dataset[name].isel(checkpoint=-1).mean("seed").transpose(*axes).values for name in names}
    for index in itertools.product(*(range(dataset.sizes[axis]) for axis in axes)):
        cell = [str(dataset[axis].values[i]) for axis, i in zip(axes, index, strict=True)]
        table.add_row(*cell, *(number(float(last[name][index])) for name in names))
    say(console, f"{dataset.sizes['seed']:,} lives a cell, after {int(dataset.checkpoint[-1]):,} episodes")
    console.print(table)


def _print_map(dataset: xarray.Dataset, console: Console) -> None:
    level = json.loads(dataset.attrs["aim"])["level"]
    say(console, f"Least separation at which a criterion holds with probability {level:g} (95 % band)")
    names = dataset.criterion.values.tolist()
    least = float(dataset.separation[0])
    table = new_table("after", "closed", "f*", "band", *(name.removesuffix("_above") for name in names[1:]))
    for i, mark in enumerate(dataset.checkpoint.values.tolist()):
        low, high = (float(dataset[end].values[0, i]) for end in ("low", "high"))
        found = [float(dataset.threshold.values[j, i]) for j in range(1, len(names))]
        others = [f"<= {value:.3f}" if value == least else _share(value) for value in found]
        closed, found = _share(float(dataset.closed_form.values[i])), _share(float(dataset.threshold.values[0, i]))
        table.add_row(f"{mark:,}", closed, found, f"{_share(low)}..{_share(high)}", *others)
    console.print(table)
    lives = dataset.lives.values
    say(console, "f*: the anchor's worth above the hitchhiker's. gap: by more than .02. posterior: Pr[p above] > .95.")
    say(console, "disjoint: 95 % intervals. removal: taking away the anchor costs more success than the hitchhiker.")
    say(console, f"{lives.min():,} to {lives.max():,} lives a cell; 'never': not within the separations looked at")
    for field in [
        str(name).removesuffix("_threshold") for name in dataset.data_vars if str(name).endswith("_threshold")
    ]:
        table = new_table(field, "closed", "f*", "band")
        for i, value in enumerate(dataset[field].values.tolist()):
            at = lambda end, i=i, field=field: _share(float(dataset[f"{field}_{end}"].values[i]))
            table.add_row(str(value), at("closed_form"), at("threshold"), f"{at('low')}..{at('high')}")
        console.print(table)


def _share(value: float) -> str:
    return "never" if not np.isfinite(value) or value > 1 else f"{value:.3f}"


def sweep_json(dataset: xarray.Dataset) -> dict[str, Any]:
    """Every metric with its uncertainty over seeds as nested lists along the axes and checkpoints, or the whole map."""
    attrs = dataset.attrs
    head = {"experiment": attrs["experiment"], "config": json.loads(attrs["config"]), "wall_s": attrs["wall_s"]}
    coords = {str(name): one.values.tolist() for name, one in dataset.coords.items() if name != "seed"}
    if attrs["kind"] == "separation":
        found = {str(name): _plain(one.values) for name, one in dataset.data_vars.items()}
        return head | {"aim": json.loads(attrs["aim"]), "metrics": found, "coords": coords}
    axes = json.loads(attrs["axes"])
    metrics = {}
    for name, one in dataset.data_vars.items():
        mean, sd, low, high = statistics(one.transpose("seed", *axes, "checkpoint").values)
        metrics[str(name)] = {"mean": _plain(mean), "sd": _plain(sd), "ci95": [_plain(low), _plain(high)]}
    return head | {"axes": axes, "seeds": dataset.sizes["seed"], "metrics": metrics, "coords": coords}


def _plain(values: np.ndarray) -> Any:
    """Nested lists with null for what is not a finite number."""
    plain = values.astype(object)
    plain[~np.isfinite(values)] = None
    return plain.tolist()


def print_sensitivity(rows: Sequence[Mapping[str, Any]], console: Console) -> None:
    """For every fitted number: what it becomes over its open settings, and which other settings also fit it."""
    for quantity, group in itertools.groupby(rows, key=lambda row: row["quantity"]):
        cells = list(group)
        accepted = f"published {cells[0]['published']:g}, accepted within {cells[0]['tolerance']:g}"
        say(console, Text(f"\n{quantity} ({accepted})", style="bold"))
        table = new_table("setting", "here", "fits")
        for row in cells:
            table.add_row(row["setting"], number(row["here"]), "yes" if row["fits"] else "no")
        console.print(table)
        values, fits = [row["here"] for row in cells], sum(row["fits"] for row in cells)
        say(console, f"Ranges from {min(values):.3f} to {max(values):.3f}; {fits} of {len(cells)} settings fit.")
