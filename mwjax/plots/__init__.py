"""Dataset -> matplotlib Figure; what is drawn follows from what the Dataset holds."""

from __future__ import annotations

import xarray
from matplotlib.figure import Figure

from mwjax.plots import (
    compare,
    delay,
    difficulty,
    drift,
    feedback,
    generic,
    governance,
    hitchhiker,
    price,
    ranking,
    separation,
    text,
    thresholds,
)
from mwjax.plots.style import CLOSED, HIGH, LINES, LOW, MAX_POINTS, NAMES, STYLE, save, settings_of

__all__ = ["CLOSED", "HIGH", "LINES", "LOW", "MAX_POINTS", "NAMES", "STYLE", "figure", "save"]


def figure(dataset: xarray.Dataset) -> Figure:
    """Draw a run, a sweep, rules compared or a map of thresholds; raises InputError where a metric is missing."""
    kind = dataset.attrs.get("kind")
    if kind == "separation":
        return separation.figure(dataset)
    if compare.is_compare(dataset):
        return compare.figure(dataset)
    if kind == "sweep":
        return next(draw for draw, fits in SWEEPS if fits(dataset))(dataset)
    return next(draw for draw, fits in RUNS if fits(dataset))(dataset)


SWEEPS = (
    (price.figure, price.is_sweep),
    (delay.figure, delay.is_sweep),
    (thresholds.figure, thresholds.is_sweep),
    (feedback.sweep_figure, feedback.is_sweep),
    (difficulty.sweep_figure, difficulty.is_sweep),
    (hitchhiker.sweep_figure, hitchhiker.is_sweep),
    (generic.figure, lambda dataset: True),
)
RUNS = (
    (text.figure, text.is_run),
    (drift.figure, drift.is_run),
    (governance.figure, governance.is_run),
    (hitchhiker.figure, lambda dataset: "pair_count" in dataset),
    (difficulty.figure, lambda dataset: settings_of(dataset).get("num_contexts", 1) > 1),
    (feedback.figure, lambda dataset: "expected_hits" in dataset),
    (ranking.figure, lambda dataset: True),
)
"""Figure and whether it fits, tried in order."""
