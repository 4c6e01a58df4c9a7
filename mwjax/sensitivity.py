"""How far the fitted numbers depend on what the paper does not publish: each open setting is let go, one at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mwjax import paper, results, sweep
from mwjax.experiment import load, vary

OPEN: dict[str, list[dict[str, Any]]] = {
    "difficulty": [
        {},
        {"gain": 0.08},
        {"gain": 0.24},
        {"hard_share": 0.3},
        {"hard_share": 0.7},
        {"pool_slots": [[8, 0], [2, 6]]},
        {"pool_slots": [[8, 0], [6, 2]]},
        {"pool_slots": [[7, 1], [4, 4]]},
        {"num_retrieved": 5, "pool_slots": [[5, 0], [2, 3]]},
        {"outcome": "logistic", "gain": 0.16},
        {"outcome": "logistic", "gain": 0.24},
        {"outcome": "linear_best", "gain": 0.6},
        {"outcome": "linear_best", "gain": 0.3},
        {"outcome": "linear_worst", "gain": 0.3},
    ],
    "feedback": [
        {},
        {"temperature": 10.0},
        {"temperature": 0.3},
        {"temperature": 0.1},
        {"temperature": 0.1, "exploration_floor": 0.0},
        {"temperature": 0.05},
        {"temperature": 0.02},
        {"temperature": 0.1, "exploration_floor": 0.2, "floor_mode": "slot"},
        {"temperature": 0.1, "exploration_floor": 0.4, "floor_mode": "slot"},
        {"temperature": 0.02, "exploration_floor": 0.0},
    ],
    "hitchhiker": [
        {},
        {"num_retrieved": 4},
        {"num_retrieved": 12},
        {"num_memories": 50},
        {"num_memories": 200},
        {"outcome": "linear", "gain": 0.75},
        {"utility_low": 0.3, "utility_high": 0.7},
        {"separation_mode": "anchor_only"},
    ],
}
"""Experiment -> changes of its open settings, the default first."""


def survey(*, seeds: int, progress: Callable[[int, int], None] | None = None) -> list[dict[str, Any]]:
    """One dict a fitted number and setting: quantity, published, tolerance, setting, here, fits."""
    rows = [row for row in paper.ROWS if row.status == "fitted" and row.experiment in OPEN]
    found, done = [], 0
    total = sum(len(OPEN[name]) for name in {row.experiment for row in rows})
    cells: dict[tuple[str, int], dict[Any, dict[str, float]]] = {}
    for name, changes in OPEN.items():
        ats = dict.fromkeys(row.at for row in rows if row.experiment == name)
        for i, change in enumerate(changes):
            cells[name, i] = {at: _means(name, seeds, {**change, **dict(at)}) for at in ats}
            done += 1
            if progress is not None:
                progress(done * seeds, total * seeds)
    for row in rows:
        for i, change in enumerate(OPEN[row.experiment]):
            here = cells[row.experiment, i][row.at][row.metric]
            side = here if row.threshold is None else float(here >= row.threshold)
            words = ", ".join(f"{name} = {value}" for name, value in change.items()) or "as in the experiment"
            line = {"experiment": row.experiment, "quantity": row.quantity, "published": row.published}
            fits = bool(abs(side - row.published) <= row.tolerance)
            found.append({**line, "tolerance": row.tolerance, "setting": words, "here": here, "fits": fits})
    return found


def _means(name: str, seeds: int, changes: dict[str, Any]) -> dict[str, float]:
    """Metric -> mean over seeds at the end."""
    cell = vary(load(name, seeds=seeds), **{"removed": [], **changes})
    return {metric: float(np.mean(values[:, -1])) for metric, values in results.per_life(sweep.run(cell))}
