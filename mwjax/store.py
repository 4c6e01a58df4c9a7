"""Results <-> xarray on disk: a Zarr v3 directory with its provenance, there as a whole or not at all.

Lives arrive in consecutive batches and leave for the disk in chunks along `seed`, so the memory held does not depend on
their number. Everything is written under a temporary name beside the target, which is renamed when it is finished; a
result that exists is replaced after the new one is complete, and only if it is one of ours.
"""

from __future__ import annotations

import json
import os
import shutil
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np
import xarray
import zarr
from numpy.typing import DTypeLike

from mwjax.types import InputError

CHUNK_BYTES = 8 << 20
"""What the lives of one chunk take in memory, all variables together."""
MAX_CHUNK_LIVES = 4096
MARK, CONTENT_BYTES = "mwjax_store", "mwjax_content_bytes"
"""Attributes of the root group: the version of this format; the size of the chunk files, which only a whole one has."""

PROBLEMS = {
    "missing": "there is no such folder",
    "file": "is a file, not a folder of results",
    "foreign": "exists and is not an mwjax store",
    "damaged": "is damaged: its files changed since they were written",
    "unfinished": "is an unfinished mwjax store",
    "finished": "holds a finished result",
}


def variable(dims: tuple[str, ...], shape: tuple[int, ...], dtype: DTypeLike, **attrs: str) -> xarray.Variable:
    """One variable of a template: its dimensions and type, values that take no memory, long_name and units."""
    return xarray.Variable(dims, np.broadcast_to(np.zeros((), dtype), shape), attrs)


class Memory:
    """Receives consecutive batches of lives and keeps them all."""

    def __init__(self, template: xarray.Dataset) -> None:
        """`template` holds the coordinates, and the variables in their final shape, `seed` first."""
        self.dataset = template.copy(data={str(k): np.zeros(v.shape, v.dtype) for k, v in template.data_vars.items()})
        self._written = 0

    def write(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Add the next lives: for every variable an array with the lives in front."""
        stop = self._written + len(next(iter(arrays.values())))
        for name, kept in self.dataset.data_vars.items():
            kept.values[self._written : stop] = arrays[str(name)]
        self._written = stop

    def finish(self, attrs: Mapping[str, Any]) -> xarray.Dataset:
        """The whole Dataset, with its attributes."""
        return self.dataset.assign_attrs(attrs)


class Writer:
    """Receives consecutive batches of lives and writes them to a store; made by `create`."""

    def __init__(self, path: Path, aside: Path, template: xarray.Dataset, fresh: bool) -> None:
        """An empty store under the temporary name `aside`, in chunks of `chunk_lives` lives."""
        self.path, self._aside, self._fresh, self._lives = path, aside, fresh, template.sizes["seed"]
        self.chunk_lives = max(1, min(CHUNK_BYTES * self._lives // template.nbytes, MAX_CHUNK_LIVES, self._lives))
        coords = template.drop_vars(list(template.data_vars)).assign_attrs({MARK: 1})
        coords.to_zarr(aside, mode="w-", zarr_format=3, consolidated=False)
        self._group = zarr.open_group(aside, mode="r+", zarr_format=3)
        self._arrays = {str(name): self._new_array(str(name), one) for name, one in template.data_vars.items()}
        self.held = {name: np.zeros(array.chunks, array.dtype) for name, array in self._arrays.items()}
        self._written = self._waiting = 0

    def _new_array(self, name: str, one: xarray.DataArray) -> zarr.Array:
        return self._group.create_array(
            name,
            shape=one.shape,
            chunks=(self.chunk_lives, *one.shape[1:]),
            dtype=one.dtype,
            dimension_names=[str(dim) for dim in one.dims],
            attributes=one.attrs,
        )

    def write(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Add the next lives: for every variable an array with the lives in front."""
        lives, taken = len(next(iter(arrays.values()))), 0
        while taken < lives:
            size = min(lives - taken, self.chunk_lives - self._waiting)
            for name, rows in self.held.items():
                rows[self._waiting : self._waiting + size] = arrays[name][taken : taken + size]
            self._waiting, taken = self._waiting + size, taken + size
            if self._waiting == self.chunk_lives:
                self._flush()

    def _flush(self) -> None:
        stop = self._written + self._waiting
        with _disk_errors(self.path):
            for name, rows in self.held.items():
                self._arrays[name][self._written : stop] = rows[: self._waiting]
        self._written, self._waiting = stop, 0

    def finish(self, attrs: Mapping[str, Any]) -> xarray.Dataset:
        """Write what is left and the attributes, give the store its name, and open it."""
        self._flush()
        if self._written != self._lives:
            raise ValueError(f"{self.path}: {self._written} lives of {self._lives} were written")
        return _settle(self._group, self._aside, self.path, self._fresh, attrs)


@contextmanager
def create(path: str | Path, template: xarray.Dataset, *, fresh: bool = False) -> Iterator[Writer]:
    """A Writer of a new store at `path`; left without `finish` (an exception, Ctrl-C), all is as before.

    `fresh` replaces a store of ours. InputError where the target may not be replaced or cannot be written.
    """
    path = Path(path)
    with _place_aside(path, fresh) as aside:
        with _disk_errors(path):
            writer = Writer(path, aside, template, fresh)
        yield writer


@contextmanager
def _place_aside(path: Path, fresh: bool) -> Iterator[Path]:
    """A temporary name beside a target that may be replaced; nothing of it is left afterwards."""
    refuse(path, fresh)
    target = path.resolve()
    aside = target.with_name(f".{target.name}.{os.getpid()}-{uuid4().hex[:8]}")
    try:
        with _disk_errors(path):
            target.parent.mkdir(parents=True, exist_ok=True)
        yield aside
    finally:
        _remove(aside)
        if target.exists():
            _remove(aside.with_name(f"{aside.name}-old"))


def _settle(group: zarr.Group, aside: Path, path: Path, fresh: bool, attrs: Mapping[str, Any]) -> xarray.Dataset:
    """Give what was written aside its attributes and its name, and open it."""
    with _disk_errors(path), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Consolidated metadata is currently not part")
        group.attrs.update({**attrs, CONTENT_BYTES: content_bytes(aside)})
        zarr.consolidate_metadata(str(aside), zarr_format=3)
        refuse(path, fresh)
        _replace(aside, path.resolve())
    return open_store(path)


def open_store(path: str | Path) -> xarray.Dataset:
    """The Dataset at `path`, read from disk when used. InputError where there is no whole one."""
    place, found = Path(path), state(path)
    if found != "finished":
        raise InputError(f"{path}: {PROBLEMS[found]}")
    try:
        dataset = xarray.open_dataset(place, engine="zarr", consolidated=True, chunks=None, cache=False)
        text = {k: (v.dims, v.values.astype(object), v.attrs) for k, v in dataset.coords.items() if v.dtype.kind == "T"}
        whole = dataset.attrs.pop(CONTENT_BYTES) == content_bytes(place) and dataset.attrs.pop(MARK) == 1
    except Exception as error:  # a damaged file shows as any of Zarr's, the codec's or NumPy's errors
        raise InputError(f"{path}: {PROBLEMS['damaged']}") from error
    if not whole:
        raise InputError(f"{path}: {PROBLEMS['damaged']}")
    return dataset.assign_coords(text)


def state(path: str | Path) -> str:
    """What lies at `path`: a key of PROBLEMS."""
    place = Path(path)
    if not place.is_dir():
        return "file" if os.path.lexists(place) else "missing"
    try:
        attributes = dict(json.loads((place / "zarr.json").read_text())["attributes"])
    except FileNotFoundError:
        return "foreign"
    except (OSError, ValueError, KeyError, TypeError):
        return "damaged"
    if MARK not in attributes:
        return "foreign"
    return "finished" if CONTENT_BYTES in attributes else "unfinished"


def refuse(path: Path, fresh: bool) -> None:
    """InputError unless a new store may take the name `path`; `fresh` gives up one of ours, or an empty folder."""
    found = state(path)
    replaceable = found in ("finished", "unfinished") or (found == "foreign" and not any(path.iterdir()))
    if found != "missing" and not (fresh and replaceable):
        advice = " or add --fresh to replace it" if replaceable else ""
        raise InputError(f"{path}: {PROBLEMS[found]}; give another folder{advice}")


def content_bytes(path: Path) -> int:
    """Size of all chunk files of a store, bytes."""
    return sum(file.stat().st_size for file in path.glob("*/c/**/*") if file.is_file())


def _replace(new: Path, target: Path) -> None:
    """Give `new` the name `target`; what had it is called as `new` was, with -old."""
    old = new.with_name(f"{new.name}-old")
    try:
        if target.exists():
            target.rename(old)
        new.rename(target)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        raise


def _remove(path: Path) -> None:
    """Delete a folder, again if an interrupted write still adds files to it."""
    for _ in range(20):
        shutil.rmtree(path, ignore_errors=True)
        if not path.exists():
            return
        time.sleep(0.05)


@contextmanager
def _disk_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(f"{path}: cannot write the results ({error.strerror or error})") from error


def save(dataset: xarray.Dataset, path: str | Path, *, fresh: bool = False) -> xarray.Dataset:
    """Write a whole Dataset as a store at `path`, and open it. InputError as `create`."""
    path = Path(path)
    with _place_aside(path, fresh) as aside:
        with _disk_errors(path):
            dataset.assign_attrs({MARK: 1}).to_zarr(aside, mode="w-", zarr_format=3, consolidated=False)
        return _settle(zarr.open_group(aside, mode="r+", zarr_format=3), aside, path, fresh, {})
