"""Folders that a command writes: there as a whole or not at all."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

REPLAY_FILES = {"replay.json", "memories.csv"}


@contextlib.contextmanager
def replay_folder(out: Path) -> Iterator[Path]:
    """A folder beside `out`; its files move there when all are written, and replace only those of an earlier replay."""
    from mwjax.types import InputError

    aside = out.with_name(f".{out.name}.{os.getpid()}")
    try:
        if out.exists() and {path.name for path in out.iterdir()} not in (set(), REPLAY_FILES):
            raise InputError(f"{out}: holds other files than those of a replay; give another folder")
        aside.mkdir(parents=True)
        yield aside
        out.mkdir(exist_ok=True)
        for name in sorted(REPLAY_FILES):
            os.replace(aside / name, out / name)
    except OSError as error:
        raise InputError(f"{out}: cannot be written ({error.strerror})") from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)
