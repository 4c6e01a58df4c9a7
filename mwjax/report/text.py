"""What all texts share: lines as they are, tables of numbers, and numbers for tables."""

from __future__ import annotations

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text


def say(console: Console, text: str | Text) -> None:
    """Print one line as it is."""
    console.print(text, markup=False, highlight=False)


def new_table(*headings: str) -> Table:
    """A table whose first column is text and may wrap, the others numbers."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for i, heading in enumerate(headings):
        table.add_column(heading, justify="right" if i else "left", no_wrap=i > 0)
    return table


def number(value: float | None, digits: int = 3) -> str:
    """A number for a table, - for none."""
    if value is None or not np.isfinite(value):
        return "-"
    return f"{value:.{digits}f}" if abs(value) < 10 else f"{value:,.0f}"
