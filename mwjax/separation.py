"""The map of the separation threshold: how often must a pair be seen apart before its memories are told apart?

Lives are added where the threshold needs them, in rounds, always seeds 0, 1, ... of a cell: cells share their random
numbers, so bands come from resampling seeds (see contour).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from typing import Any

import jax
import numpy as np
import xarray

from mwjax import contour, engine, sweep, theory
from mwjax.analysis import pairs
from mwjax.experiment import Aim, Experiment, vary
from mwjax.types import InputError

NAMES = (*pairs.CRITERIA, "removal")
SLICE_EPISODES = 10_000
NEAR = (0.5, 0.7, 0.85, 1.0, 1.2, 1.5)
"""Separations of a slice, as multiples of the closed form."""

Tick = Callable[[int, int], None]
Scores = dict[str, np.ndarray]
"""Criterion -> scores in [0, 1], float32 [seed, checkpoint]."""


def survey(
    experiment: Experiment, *, progress: Tick | None = None, devices: Sequence[Any] | None = None
) -> xarray.Dataset:
    """The map of an experiment with an aim: scores by criterion, separation and checkpoint, thresholds and bands.

    score [criterion, separation, checkpoint]; lives [separation]; threshold, low, high [criterion, checkpoint] and
    closed_form [checkpoint]; for each slice along a field the same four, named FIELD_threshold, ..., after 10,000
    episodes. A threshold is inf where no separation reaches the level.
    """
    aim, grid = experiment.aim, experiment.axes.get("separation")
    if aim is None or grid is None or experiment.config.num_pairs == 0:
        raise InputError("level: a map needs num_pairs, a level, and axes.separation with two or more values")
    began, devices = time.perf_counter(), tuple(devices or jax.local_devices())
    cells = [vary(experiment, separation=f) for f in grid]
    scores = collect(cells, aim, grid, devices, progress)
    removal = [{"removal": removal_scores(cell, aim.first_seeds, devices)} for cell in cells]
    scores = [one | two for one, two in zip(scores, removal, strict=True)]
    found = {name: contour.band(grid, [cell[name] for cell in scores], aim.level) for name in NAMES}
    marks = np.asarray(experiment.params.checkpoints, np.int64)
    made = xarray.Dataset(coords={"criterion": np.array(NAMES, object), "separation": grid, "checkpoint": marks})
    mean = np.array([[cell[name].mean(axis=0) for cell in scores] for name in NAMES])
    made["score"] = (("criterion", "separation", "checkpoint"), mean)
    made["lives"] = ("separation", np.array([len(cell["anchor_above"]) for cell in scores]))
    for i, end in enumerate(("threshold", "low", "high")):
        made[end] = (("criterion", "checkpoint"), np.array([found[name][i] for name in NAMES]))
    made["closed_form"] = ("checkpoint", np.array([closed_form(experiment, int(mark)) for mark in marks]))
    for field, values in experiment.slices.items():
        made = made.assign(cut(experiment, field, values, aim, devices))
    wall = time.perf_counter() - began
    attrs = {**sweep.provenance(experiment, devices), "kind": "separation", "aim": json.dumps(aim.__dict__)}
    attrs["sweep_fingerprint"] = sweep.sweep_fingerprint(experiment)
    return made.assign_attrs(attrs | {"wall_s": wall, "reused": False})


def collect(
    cells: Sequence[Experiment], aim: Aim, grid: Sequence[float], devices: tuple[Any, ...], progress: Tick | None
) -> list[Scores]:
    """Scores of every cell, in rounds, until the band of the threshold is as narrow as the aim asks."""
    counts = np.full(len(grid), aim.first_seeds)
    scores: list[Scores] = [{name: np.zeros((0, cells[0].config.num_checkpoints)) for name in pairs.CRITERIA}] * len(
        grid
    )
    while True:
        for i, cell in enumerate(cells):
            scores[i] = extend(cell, scores[i], int(counts[i]), devices)
            if progress is not None:
                progress(sum(len(one["anchor_above"]) for one in scores), int(counts.sum()))
        main = [one["anchor_above"] for one in scores]
        following = np.asarray(
            contour.next_seeds(
                grid, counts, *contour.band(grid, main, aim.level), target=aim.precision, most=aim.most_seeds
            )
        )
        if (following == counts).all():
            return scores
        counts = following


def extend(cell: Experiment, scores: Scores, seeds: int, devices: tuple[Any, ...]) -> Scores:
    """The scores of a cell for its first `seeds` seeds, given those of fewer."""
    have = len(scores["anchor_above"])
    if seeds <= have:
        return scores
    found: dict[str, list[np.ndarray]] = {name: [one] for name, one in scores.items()}
    lives = np.arange(have, seeds)
    for batch in engine.run_lives(cell.config, cell.params, lives, root_seed=cell.root_seed, devices=devices):
        evidence, successes = np.moveaxis(np.asarray(batch.trace.metrics["pair_count"]), 2, 0)
        for name, criterion in pairs.CRITERIA.items():
            found[name].append(criterion(evidence, successes).mean(-1).astype(np.float32))
    return {name: np.concatenate(parts) for name, parts in found.items()}


def removal_scores(cell: Experiment, seeds: int, devices: tuple[Any, ...]) -> np.ndarray:
    """1 where taking away the anchor costs a life more success than taking away the hitchhiker, ties half."""
    twin = vary(cell, removed=[0, cell.config.num_pairs], metrics=["mean_success"])
    rates = []
    for memory in twin.removed:
        params = twin.params._replace(masked=np.int32(memory))
        lives = engine.run_lives(twin.config, params, np.arange(seeds), root_seed=twin.root_seed, devices=devices)
        rates.append(np.concatenate([batch.trace.metrics["mean_success"] for batch in lives]))
    return (0.5 + 0.5 * np.sign(rates[1] - rates[0])).astype(np.float32)


def closed_form(experiment: Experiment, episodes: int) -> float:
    """f* of the normal law for one pair that is split (theory.hitchhiker.threshold), NaN for other settings."""
    config, params = experiment.config, experiment.params
    if config.num_pairs > 1 or config.separation_mode != "split" or experiment.aim is None:
        return np.nan
    ends = {"anchor": float(params.anchor_utility), "hitchhiker": float(params.hitchhiker_utility)}
    gain = 1.0 if config.outcome == "mean" else float(params.gain)
    size = config.num_memories, config.num_retrieved, episodes
    return theory.hitchhiker.threshold(*size, level=experiment.aim.level, gain=gain, **ends)


def cut(
    experiment: Experiment, field: str, values: Sequence[Any], aim: Aim, devices: tuple[Any, ...]
) -> dict[str, xarray.DataArray]:
    """The threshold along one field after SLICE_EPISODES episodes, from 2 x first_seeds lives a cell."""
    rows = []
    for value in values:
        change = {field: value, "num_episodes": SLICE_EPISODES, "checkpoints": [SLICE_EPISODES]}
        here = vary(experiment, **change)
        expected = closed_form(here, SLICE_EPISODES)
        grid = sorted({round(min(expected * near, 1.0), 4) for near in NEAR})
        if len(grid) < 3:
            rows.append((np.inf, np.inf, np.inf, expected))
            continue
        scores = [{name: np.zeros((0, 1)) for name in pairs.CRITERIA} for _ in grid]
        scores = [
            extend(vary(here, separation=f), one, 2 * aim.first_seeds, devices)
            for f, one in zip(grid, scores, strict=True)
        ]
        band = contour.band(grid, [one["anchor_above"] for one in scores], aim.level)
        rows.append((*(float(end[0]) for end in band), expected))
    columns = zip(("threshold", "low", "high", "closed_form"), zip(*rows, strict=True), strict=True)
    coords = {field: list(values)}
    return {f"{field}_{end}": xarray.DataArray(list(column), coords, (field,)) for end, column in columns}
