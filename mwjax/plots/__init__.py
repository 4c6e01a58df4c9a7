"""Dataset -> matplotlib Figure; what is drawn follows from what the Dataset holds."""

from __future__ import annotations

import xarray
from matplotlib.figure import Figure

from mwjax.plots import difficulty, feedback, generic, hitchhiker, ranking, separation
from mwjax.plots.style import CLOSED, HIGH, LINES, LOW, MAX_POINTS, NAMES, STYLE, save, settings_of

__all__ = ["CLOSED", "HIGH", "LINES", "LOW", "MAX_POINTS", "NAMES", "STYLE", "figure", "save"]


def figure(dataset: xarray.Dataset) -> Figure:
    """Draw a run, a sweep or a map of thresholds; raises InputError where a metric that the figure needs is missing."""
    kind = dataset.attrs.get("kind")
    if kind == "separation":
        return separation.figure(dataset)
    if kind == "sweep":
        return next(draw for draw, fits in SWEEPS if fits(dataset))(dataset)
    return next(draw for draw, fits in RUNS if fits(dataset))(dataset)


SWEEPS = (
    (feedback.sweep_figure, feedback.is_sweep),
    (difficulty.sweep_figure, difficulty.is_sweep),
    (hitchhiker.sweep_figure, hitchhiker.is_sweep),
    (generic.figure, lambda dataset: True),
)
RUNS = (
    (hitchhiker.figure, lambda dataset: "pair_count" in dataset),
    (difficulty.figure, lambda dataset: settings_of(dataset).get("num_contexts", 1) > 1),
    (feedback.figure, lambda dataset: "expected_hits" in dataset),
    (ranking.figure, lambda dataset: True),
)
"""Figure and whether it fits, tried in order."""
