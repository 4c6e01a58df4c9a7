"""Folders that a command writes: there as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

FILES = {
    "replay": {"replay.json", "memories.csv", "figure.png", "figure.svg"},
    "backtest": {"backtest.json", "figure.png", "figure.svg"},
}
"""Command -> the files it may write."""


@contextlib.contextmanager
def written_folder(out: Path, command: str) -> Iterator[Path]:
    """A folder beside `out`; its files move there when all are written, and replace those of an earlier one."""
    from mwjax.types import InputError

    aside = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        if out.exists() and not {path.name for path in out.iterdir()} <= FILES[command]:
            raise InputError(f"{out}: holds other files than those of a {command}; give another folder")
        aside.mkdir(parents=True)
        yield aside
        out.mkdir(exist_ok=True)
        for name in FILES[command]:
            (out / name).unlink(missing_ok=True)
        for path in sorted(aside.iterdir()):
            os.replace(path, out / path.name)
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror})") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
