"""What the tests of figures share."""

import io
from typing import Any

import xarray
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from mwjax import plots


def rendered(dataset: xarray.Dataset) -> Figure:
    drawn = plots.figure(dataset)
    drawn.savefig(io.BytesIO(), dpi=40)
    return drawn


def line(axes: Axes, label: str) -> Any:
    return next(one for one in axes.get_lines() if one.get_label() == label)
