"""`run`: an experiment -> chunks of lives -> engine -> a Dataset in memory or on disk, and its summary over seeds."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax
import jaxlib.version
import numpy as np
import xarray

import mwjax
from mwjax import config, engine, results, store
from mwjax.experiment import Experiment, load, vary
from mwjax.types import InputError, Trace

NUMBERS_VERSION = 2
"""Goes up whenever the same settings give other numbers, so that old results are not taken for new ones."""


class TroubleError(RuntimeError):
    """A life went wrong inside the compiled program; the message is one line that names configuration and seed."""


def run(
    experiment: Experiment | str,
    *,
    out: str | Path | None = None,
    fresh: bool = False,
    seeds: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    devices: Sequence[Any] | None = None,
    chunk: int | None = None,
    **fields: Any,
) -> xarray.Dataset:
    """Simulate an experiment (or the one of that name or TOML file, with `fields` changed) for seeds 0..seeds-1.

    Without `out` the Dataset is in memory. With `out` it is streamed to that folder and opened lazily; a finished
    result of the same settings found there is opened instead (attrs["reused"]), unless `fresh`. `chunk` lives run at
    once; after each chunk, `progress` is told the lives done and their total. Raises InputError, and TroubleError after
    a chunk whose Health counts trouble: then `out` is as it was.
    """
    experiment = _resolved(experiment, seeds, fields)
    config.check_integer("chunk", 1 if chunk is None else chunk, 1, 1 << 20)
    if out is not None and not fresh and store.state(out) == "finished":
        return _reopen(experiment, out)
    devices, empty = tuple(devices or jax.local_devices()), results.template(experiment)
    with nullcontext(store.Memory(empty)) if out is None else store.create(out, empty, fresh=fresh) as sink:
        timing = _simulate(experiment, sink, progress, {"chunk": chunk, "devices": devices})
        return sink.finish({**provenance(experiment, devices), **timing, "reused": False})


def _resolved(given: Experiment | str, seeds: int | None, fields: dict[str, Any]) -> Experiment:
    changes: dict[str, Any] = {} if seeds is None else {"seeds": seeds}
    if isinstance(given, str):
        return load(given, **fields, **changes)
    if fields:
        raise InputError(f"{next(iter(fields))}: can be set on an experiment given by name, not on an Experiment")
    config.check_integer("seeds", given.seeds if seeds is None else seeds, 1, 1 << 32)
    return replace(given, **changes, fields={**given.fields, **changes})


def _simulate(
    experiment: Experiment,
    sink: store.Memory | store.Writer,
    progress: Callable[[int, int], None] | None,
    how: dict[str, Any],
) -> dict[str, Any]:
    """Hand over all lives in order; returns what is known of the time taken."""
    began, programs, size, compile_s = time.perf_counter(), engine.compile_chunk.cache_info().misses, 0, 0.0
    seeds, how = np.arange(experiment.seeds), {"root_seed": experiment.root_seed, **how}
    for batch in engine.run_lives(experiment.config, experiment.params, seeds, **how):
        _check_health(experiment, batch)
        sink.write(results.arrays(experiment, batch.trace) | removal_values(experiment, batch, how))
        size = max(size, lives := len(batch.trace.utility))
        if engine.compile_chunk.cache_info().misses > programs:
            compile_s = batch.compile_s
        if progress is not None:
            progress(batch.start + lives, experiment.seeds)
    wall = time.perf_counter() - began
    return {"chunk": size, "compile_s": compile_s, "run_s": wall - compile_s, "wall_s": wall}


def removal_values(experiment: Experiment, batch: engine.Batch, how: dict[str, Any]) -> dict[str, np.ndarray]:
    """Mean success of the lives of a batch less that of the same lives without each removed memory: [life, removed]."""
    if not experiment.removed:
        return {}
    lives, params = len(batch.trace.utility), experiment.params
    seeds, found = np.arange(batch.start, batch.start + lives), []
    whole = success_rate(batch.trace, experiment)
    for memory in experiment.removed:
        without = engine.run_lives(experiment.config, params._replace(masked=np.int32(memory)), seeds, **how)
        found.append(whole - np.concatenate([success_rate(one.trace, experiment) for one in without]))
    return {"removal_value": np.stack(found, axis=1).astype(np.float32)}


def success_rate(trace: Trace, experiment: Experiment) -> np.ndarray:
    """Share of the episodes that succeeded, float64 [life]."""
    return np.asarray(trace.counts.episode_successes).sum(1) / experiment.num_episodes


def _check_health(experiment: Experiment, batch: engine.Batch) -> None:
    count = np.asarray(batch.trace.health.non_finite_worth)
    if broken := np.flatnonzero(count).tolist():
        where = f"{experiment.name} ({experiment.source}), seed {batch.start + broken[0]}"
        raise TroubleError(f"{where}: {count[broken[0]]} worth values are not finite")


def fingerprint(experiment: Experiment) -> str:
    """SHA-256 (hexadecimal) of the settings and the version of the numbers: equal where the results are."""
    settings = {"fields": experiment.fields, "numbers": NUMBERS_VERSION}
    return hashlib.sha256(json.dumps(settings, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def default_folder(experiment: Experiment) -> Path:
    """Where `mwjax run` stores an experiment: results/<name>-<8 digits of the fingerprint>."""
    return Path("results") / f"{experiment.name}-{fingerprint(experiment)[:8]}"


def provenance(experiment: Experiment, devices: Sequence[Any]) -> dict[str, Any]:
    """Where a result comes from, as attributes of its Dataset; "config" is the JSON of all fields."""
    who = {"experiment": experiment.name, "title": experiment.title, "source": str(experiment.source)}
    how = {"config": json.dumps(experiment.fields, sort_keys=True), "fingerprint": fingerprint(experiment)}
    how |= {"episodes": experiment.num_episodes, "root_seed": experiment.root_seed, "numbers_version": NUMBERS_VERSION}
    versions = {"mwjax": mwjax.__version__, "commit": _commit(), "jax": jax.__version__, "numpy": np.__version__}
    versions |= {"jaxlib": jaxlib.version.__version__, "python": platform.python_version()}
    where = {"device_kind": devices[0].device_kind, "device_count": len(devices)}
    return {**who, **how, **versions, **where, "created": datetime.now(UTC).isoformat(timespec="seconds")}


def _commit() -> str:
    """The git commit of the package where it is a checkout ("-dirty" when changed), else an empty string."""
    place, git = Path(mwjax.__file__).parents[1], shutil.which("git")
    if git is None or not (place / ".git").exists():
        return ""
    command = [git, "-C", str(place), "describe", "--always", "--dirty", "--exclude=*", "--abbrev=40"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def _reopen(experiment: Experiment, out: str | Path) -> xarray.Dataset:
    """The finished result at `out`, if it is of the same settings."""
    found = store.open_store(out)
    if found.attrs["fingerprint"] != fingerprint(experiment):
        theirs, ours = json.loads(found.attrs["config"]), json.loads(json.dumps(experiment.fields))
        other = (f"{key} = {theirs.get(key)!r}" for key in ours if theirs.get(key) != ours[key])
        what = next(other, f"numbers of version {found.attrs['numbers_version']}")
        raise InputError(f"{out}: holds a result with other settings ({what}); give another folder or add --fresh")
    return found.assign_attrs(reused=True)


def plan(experiment: Experiment) -> dict[str, Any]:
    """What a sweep would simulate: {"axes", "cells", "lives", "episodes"}; a map counts its first round."""
    if not experiment.axes:
        raise InputError(f"axes: {experiment.source} has no table [axes] with lists of values to sweep over")
    cells = math.prod(len(values) for values in experiment.axes.values())
    if len(set(experiment.axes.get("num_episodes", [0]))) > 1:
        raise InputError(
            "axes: num_episodes: the checkpoints must be the same in all cells; use checkpoints as an axis"
        )
    try:
        for values in itertools.product(*experiment.axes.values()):
            vary(experiment, **dict(zip(experiment.axes, values, strict=True)))
    except InputError as error:
        raise InputError(f"{error} (axes: {experiment.axes_place})") from error
    lives = cells * (experiment.aim.first_seeds if experiment.aim else experiment.seeds)
    return {"axes": experiment.axes, "cells": cells, "lives": lives, "episodes": lives * experiment.num_episodes}


def plan_lines(plan: dict[str, Any]) -> list[str]:
    """The plan for people."""
    axes = [f"{name}: {', '.join(map(str, values))}" for name, values in plan["axes"].items()]
    return [*axes, f"{plan['cells']:,} cells, {plan['lives']:,} lives, {plan['episodes']:,} episodes"]


def sweep_fingerprint(experiment: Experiment) -> str:
    """As `fingerprint`, with the axes, slices and the aim."""
    aim = experiment.aim.__dict__ if experiment.aim else None
    text = json.dumps(
        [fingerprint(experiment), experiment.axes, experiment.slices, experiment.rules, aim], sort_keys=True
    )
    return hashlib.sha256(text.encode()).hexdigest()


def sweep_folder(experiment: Experiment, kind: str = "sweep") -> Path:
    """Where `mwjax sweep` stores an experiment: results/sweep-<name>-<8 digits of the fingerprint>."""
    return Path("results") / f"{kind}-{experiment.name}-{sweep_fingerprint(experiment)[:8]}"


def reopen_sweep(experiment: Experiment, out: str | Path) -> xarray.Dataset:
    """The finished sweep at `out`, if it is of the same settings."""
    found = store.open_store(out)
    if found.attrs.get("sweep_fingerprint") != sweep_fingerprint(experiment):
        raise InputError(f"{out}: holds a result with other settings; give another folder or add --fresh")
    return found.assign_attrs(reused=True)


def sweep(
    experiment: Experiment,
    *,
    progress: Callable[[int, int], None] | None = None,
    devices: Sequence[Any] | None = None,
) -> xarray.Dataset:
    """Every combination of the values in experiment.axes on the same seeds: one variable a metric.

    Dimensions are seed, the axes in their order, checkpoint; where the cells differ in their checkpoints, the last one
    only. Cells of equal Config share one compilation. A metric that some cells lack is left out.
    """
    plan(experiment)
    names, shape = list(experiment.axes), [len(values) for values in experiment.axes.values()]
    began, cells, first = time.perf_counter(), list(itertools.product(*experiment.axes.values())), None
    found: dict[str, list[np.ndarray]] = {}
    same = True
    for done, values in enumerate(cells):
        cell = run(vary(experiment, **dict(zip(names, values, strict=True))), devices=devices)
        first = cell if first is None else first
        same &= np.array_equal(cell.checkpoint, first.checkpoint)
        for name, one in results.per_life(cell):
            found.setdefault(name, []).append(one.astype(np.float32))
        if progress is not None:
            progress((done + 1) * experiment.seeds, len(cells) * experiment.seeds)
    assert first is not None
    marks = first.checkpoint if same else first.checkpoint[-1:]
    made = xarray.Dataset(coords={"seed": first.seed, "checkpoint": marks})
    for name, values in experiment.axes.items():
        plain = values if all(isinstance(one, int | float | str) for one in values) else [str(one) for one in values]
        made = made.assign_coords({name: (name, np.asarray(plain, object if isinstance(plain[0], str) else None))})
    for name, values in found.items():
        if len(values) < len(cells):
            continue
        values = values if same else [one[:, -1:] for one in values]
        whole = np.stack(values, axis=1).reshape(len(values[0]), *shape, -1)
        made[name] = (("seed", *names, "checkpoint"), whole)
    attrs = {
        **provenance(experiment, tuple(devices or jax.local_devices())),
        "kind": "sweep",
        "axes": json.dumps(names),
    }
    attrs["sweep_fingerprint"] = sweep_fingerprint(experiment)
    wall = time.perf_counter() - began
    return made.assign_attrs(attrs | {"wall_s": wall, "run_s": wall, "compile_s": 0.0, "reused": False})
