"""The tables of a run and of `reproduce`."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
import xarray
from rich.console import Console
from rich.table import Table
from rich.text import Text

from mwjax import paper, theory
from mwjax.analysis.texts import is_text
from mwjax.config import PUBLISHED_CHECKPOINTS
from mwjax.report import governance, texts, worlds
from mwjax.report.text import new_table, number, say
from mwjax.results import per_life, statistics
from mwjax.types import TRUTH_SCALES

UNIFORM = {"utility": "uniform", "retrieval": "uniform", "outcome": "mean"}
"""Settings under which the closed forms hold; further, those of the published numbers."""
THE_PAPERS = {**UNIFORM, "utility_low": 0, "utility_high": 1, "num_memories": paper.N, "num_retrieved": paper.K}
LEAST_EVIDENCE, LEAST_RETRIEVED = 15, 3
"""The closed form of Spearman needs so many retrievals a memory, and so many memories in a set."""


def print_run(dataset: xarray.Dataset, console: Console) -> None:
    """The tables of one result, what its labels are worth, where it is and what it took."""
    config, attrs, sizes = json.loads(dataset.attrs["config"]), dataset.attrs, dataset.sizes
    lives = f"{sizes['seed']:,} {'lives' if sizes['seed'] > 1 else 'life'} of {attrs['episodes']:,} episodes"
    say(console, Text(attrs["title"] or attrs["experiment"], style="bold"))
    say(console, f"{lives}; {sizes['memory']:,} memories, {config['num_retrieved']:,} retrieved in an episode")
    if "spearman" in dataset:
        _print_ranking(dataset, config, console)
    if "label_count" in dataset:
        _print_labels(dataset, config, console)
    if is_text(dataset):
        texts.print_texts(dataset, console)
    elif "decisions" in dataset:
        governance.print_decisions(dataset, console)
    if "calibration" in dataset:
        governance.print_calibration(dataset, console)
    for line in [
        *_life_lines(dataset),
        *worlds.lines(dataset, config),
        *governance.lines(dataset, config),
        *_run_lines(dataset),
    ]:
        say(console, line)


def _same(config: Mapping[str, Any], settings: Mapping[str, Any]) -> bool:
    return all(config.get(name) == value for name, value in settings.items())


def _print_ranking(dataset: xarray.Dataset, config: Mapping[str, Any], console: Console) -> None:
    """Spearman of every estimator at the published checkpoints and the last one: Table 1 of the paper."""
    known = {(row.metric, row.checkpoint): row for row in paper.ROWS if row.experiment == "ranking"}
    published = known if _same(config, THE_PAPERS) else {}
    found = {name: statistics(values) for name, values in per_life(dataset) if name.endswith(".spearman")}
    marks = dataset.checkpoint.values.tolist()
    shown = [i for i, mark in enumerate(marks) if mark in PUBLISHED_CHECKPOINTS or i == len(marks) - 1]
    table = new_table("estimator", "after", *(["published"] if published else []), "mean", "sd", "95 %", "closed")
    for name in found:
        for i in shown:
            cells = [name.removesuffix(".spearman") if i == shown[0] else "", f"{marks[i]:,}"]
            if published:
                row = published.get((name, marks[i]))
                cells.append("" if row is None else _spread(row.published, row.spread))
            table.add_row(*cells, *_cells(found[name], i), number(closed_spearman(config, name, marks[i])))
        if len(shown) > 1:
            table.add_section()
    say(console, "\nSpearman's rank correlation of worth with true utility")
    console.print(table)
    if published:
        status = "All of it is predicted: given k = 8 and the mean law, no setting was chosen to match."
        say(console, f"published: {paper.TABLE_1}; mean +- sd over 20 seeds. {status}")


def closed_spearman(config: Mapping[str, Any], metric: str, episodes: int) -> float | None:
    """What theory expects of an estimator under these settings; None where it has no closed form that is good."""
    memories, retrieved = config["num_memories"], config["num_retrieved"]
    if metric == "never_updated.spearman":
        return 0.0
    enough = retrieved >= LEAST_RETRIEVED and episodes * retrieved / memories >= LEAST_EVIDENCE
    bounds = {name: config[name] for name in ("utility_low", "utility_high")}
    share = {"memory_worth.spearman": 1.0, "memory_worth_oracle_raw.spearman": 1.0}
    if config["score_mode"] == "raw":
        share["memory_worth_score.spearman"] = theory.effective_evidence(config["score_low"])
    if metric not in share or not enough or not _same(config, UNIFORM):
        return None
    return theory.spearman(memories, retrieved, episodes, effective=share[metric], **bounds)


def _spread(value: float, spread: float | None, digits: int = 2) -> str:
    """value +- spread."""
    return number(value, digits) + ("" if spread is None else f" +- {number(spread, digits).removeprefix('0')}")


def _cells(found: Sequence[np.ndarray], i: int) -> tuple[str, str, str]:
    """Mean, sd and 95 % interval at position i."""
    mean, sd, low, high = (one[i] for one in found)
    return number(mean), number(sd), f"{low:.3f}..{high:.3f}" if np.isfinite(low) else "-"


def _life_lines(dataset: xarray.Dataset) -> list[str]:
    """Mean success, and how evidence spreads over the memories."""
    lines = []
    if "mean_success" in dataset:
        mean, sd, interval = _cells(statistics(dataset.mean_success.values), -1)
        lines.append(f"Mean success: {mean} (sd {sd}; 95 % interval {interval})")
    if "evidence_quantile" in dataset:
        names, found = {0.0: "least", 0.5: "median", 1.0: "most"}, dataset.evidence_quantile.isel(checkpoint=-1)
        shares = found["quantile"].values.tolist()
        each = [f"{names.get(q, f'{q:.0%}')} {found.sel(quantile=q).mean():,.0f}" for q in shares]
        lines.append(f"Evidence of a memory: {', '.join(each)}")
    return lines


def _print_labels(dataset: xarray.Dataset, config: Mapping[str, Any], console: Console) -> None:
    """How many labels are wrong at the end, and why."""
    low, high, k = config["theta_low"], config["theta_high"], config["num_retrieved"]
    count = dataset.label_count.isel(checkpoint=-1).astype(np.int64).mean("seed")
    sides, both = count.sel(label=["low", "high"]), ("true_label", "label")
    given = sides.sum(both)
    wrong = given - sides.sel(true_label="low", label="low") - sides.sel(true_label="high", label="high")
    truly = count.isel(estimator=0).sel(true_label=["low", "high"]).sum(both).values
    say(console, f"\nMemories of a life labelled low (worth <= {low:g}) or high (>= {high:g}) at the end")
    table = new_table("estimator", "labelled", "wrong by p+", "wrong by U*")
    for name in dataset.estimator.values:
        errors = (float(wrong.sel(estimator=name, truth_scale=scale)) for scale in TRUTH_SCALES)
        table.add_row(name, f"{float(given.sel(estimator=name)[0]):.2f}", *(f"{value:.2f}" for value in errors))
    console.print(table)
    say(console, f"By p+ itself {truly[0]:.2f} memories of a life are low or high, by U* {truly[1]:.2f}.")
    bounds = (config["utility_low"], config["utility_high"])
    least, most = (bound / k + sum(bounds) / 2 * (k - 1) / k for bound in bounds)
    if _same(config, UNIFORM) and low < least < most < high:
        why = f"Dilution: {k} memories share an outcome. Beside companions of average utility {sum(bounds) / 2:g},"
        what = "so no memory can rightly be called low or high: such labels are sampling noise, save"
        say(console, f"{why} p+ lies within about [{least:.4f}, {most:.4f}], {what} in lives far from that average.")


def _run_lines(dataset: xarray.Dataset) -> list[str]:
    """Time and place."""
    attrs, rate = dataset.attrs, dataset.sizes["seed"] * dataset.attrs["episodes"] / dataset.attrs["run_s"]
    took = f"Compiled in {attrs['compile_s']:.1f} s, ran in {attrs['run_s']:.1f} s: {rate:,.0f} episodes/s"
    lines = [f"{took} on {attrs['device_count']} x {attrs['device_kind']}"]
    place = dataset.encoding.get("source")
    return [*lines, f"Stored in {place} ({attrs['created']}, mwjax {attrs['mwjax']})"] if place else lines


def print_reproduce(table: Sequence[Mapping[str, Any]], console: Console) -> None:
    """One row a published number, in groups of an experiment and a status, and the verdict on the predicted ones."""
    sources = list(dict.fromkeys(row["source"] for row in table))
    missing: list[str] = []
    for (name, status, source), rows in groupby(
        table, key=lambda row: (row["experiment"], row["status"], row["source"])
    ):
        head, group = f"{name} ({status}) [{sources.index(source) + 1}]", list(rows)
        absent = [f"{row['quantity']} {_published(row)}" for row in group if row["verdict"] == "missing"]
        missing += [f"  {head}: {'; '.join(absent)}"] if absent else []
        if len(absent) < len(group):
            say(console, Text(f"\n{head}", style="bold"))
            console.print(_compared([row for row in group if row["verdict"] != "missing"]))
    notes = ["\nMissing, as these experiments do not exist here yet:", *missing] if missing else []
    for line in [*notes, *(f"[{i}] {source}" for i, source in enumerate(sources, 1))]:
        say(console, line)
    judged = sum(row["status"] == "predicted" and row["verdict"] != "missing" for row in table)
    off = len(paper.predicted_rows_off([dict(row) for row in table]))
    say(console, f"{judged} predicted numbers are judged: {judged - off} ok, {off} off")


def _compared(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Rows whose number was found; those that differ in the episode only share the words before them."""
    table = new_table("published number", "after", "published", "here, 95 %", "sd", "closed", "verdict")
    for quantity, group in groupby(rows, key=lambda row: row["quantity"]):
        same = list(group)
        words = textwrap.wrap(quantity, 18)
        words = [*words[: len(same) - 1], "\n".join(words[len(same) - 1 :]), *[""] * len(same)]
        for row, text in zip(same, words, strict=False):
            half = None if row["ci95"] is None else (row["ci95"][1] - row["ci95"][0]) / 2
            verdict = Text(row["verdict"], style="green" if row["verdict"] == "ok" else "bold red")
            cells = _published(row), _spread(row["here"], half, 3), number(row["sd"]), number(row["closed_form"])
            table.add_row(text, f"{row['checkpoint']:,}" if row["checkpoint"] else "", *cells, verdict)
        table.add_section()
    return table


def _published(row: Mapping[str, Any]) -> str:
    return _spread(row["published"], row["spread"], 2 if round(row["published"], 2) == row["published"] else 3)
