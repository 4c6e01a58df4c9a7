"""`run`: an experiment -> chunks of lives -> engine -> a Dataset in memory or on disk, and its summary over seeds."""

from __future__ import annotations

import hashlib
import json
import platform
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import jax
import jaxlib.version
import numpy as np
import xarray
from scipy import special

import mwjax
from mwjax import config, engine, registry, store
from mwjax.experiment import Experiment, load
from mwjax.metrics import QUANTILES
from mwjax.types import LABELS, TRUTH_SCALES, TRUTHS, UTILITY_ONE, InputError, Trace

NUMBERS_VERSION = 1
"""Goes up whenever the same settings give other numbers, so that old results are not taken for new ones."""

VARIABLES: dict[str, tuple[str, type, str, str]] = {
    "spearman": ("checkpoint estimator", np.float32, "Spearman's rank correlation of worth with utility", "1"),
    "rmse": ("checkpoint estimator", np.float32, "root mean square of worth - p+ over the memories", "1"),
    "label_count": ("checkpoint truth_scale true_label label estimator", np.int32, "memories so labelled", "memory"),
    "evidence_quantile": ("checkpoint quantile", np.int32, "quantile of evidence over the memories", "retrieval"),
    "mean_success": ("checkpoint", np.float32, "share of the episodes so far that succeeded", "1"),
    "utility": ("memory", np.float32, "true utility U*", "1"),
    "p_plus": ("memory", np.float32, "p+, Pr[success given that the memory is retrieved]", "1"),
    "shown": ("memory", np.int32, "retrievals of the memory", "retrieval"),
    "evidence": ("memory", np.int32, "retrievals whose outcome has been applied", "retrieval"),
    "successes": ("memory", np.int32, "evidence that ended in success", "retrieval"),
    "worth": ("estimator memory", np.float32, "worth of the memory", "1"),
    "non_finite_worth": ("", np.int32, "worth values that were not finite at a checkpoint", "1"),
}
"""Name -> dimensions after `seed`, type (label_count: the smallest that holds all memories), long_name, units."""


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
    devices, empty = tuple(devices or jax.local_devices()), template(experiment)
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
        sink.write(arrays(batch.trace))
        size = max(size, lives := len(batch.trace.utility))
        if engine.compile_chunk.cache_info().misses > programs:
            compile_s = batch.compile_s
        if progress is not None:
            progress(batch.start + lives, experiment.seeds)
    wall = time.perf_counter() - began
    return {"chunk": size, "compile_s": compile_s, "run_s": wall - compile_s, "wall_s": wall}


def _check_health(experiment: Experiment, batch: engine.Batch) -> None:
    count = np.asarray(batch.trace.health.non_finite_worth)
    if broken := np.flatnonzero(count).tolist():
        where = f"{experiment.name} ({experiment.source}), seed {batch.start + broken[0]}"
        raise TroubleError(f"{where}: {count[broken[0]]} worth values are not finite")


def arrays(trace: Trace) -> dict[str, np.ndarray]:
    """The variables of a batch of lives, with the lives in front, as `template` describes them."""
    utility = np.asarray(trace.utility).astype(np.float32) * np.float32(1 / UTILITY_ONE)
    found = {**trace.metrics, "utility": utility, "p_plus": trace.p_plus, "worth": trace.worth}
    return {k: np.asarray(v) for k, v in (found | trace.counts._asdict() | trace.health._asdict()).items()}


def template(experiment: Experiment) -> xarray.Dataset:
    """The Dataset of an experiment before it has run: coordinates, and variables that take no memory yet."""
    made, coords, setting = {}, _coordinates(experiment), experiment.config
    for name, (axes, dtype, long_name, units) in VARIABLES.items():
        if name in config.METRICS and name not in setting.metrics:
            continue
        if name == "label_count":
            dtype = np.min_scalar_type(-1 - setting.num_memories)
        every = ["checkpoint"] if name == "worth" and setting.keep_worth == "all" else []
        dims = ("seed", *every, *axes.split())
        shape = tuple(coords.sizes[dim] for dim in dims)
        made[name] = store.variable(dims, shape, dtype, long_name=long_name, units=units)
    return coords.assign(made)


def _coordinates(experiment: Experiment) -> xarray.Dataset:
    estimators = [registry.name_of(one) for one in experiment.config.observers]
    if len(set(estimators)) < len(estimators):
        raise InputError(f"observers: {estimators}: two have the same name in results; rename one factory")
    named = {
        "seed": (np.arange(experiment.seeds), "seed of the life"),
        "checkpoint": (np.asarray(experiment.params.checkpoints, np.int64), "episodes completed"),
        "estimator": (np.array(estimators, object), "worth estimator"),
        "memory": (np.arange(experiment.config.num_memories), "index of the memory"),
        "quantile": (list(QUANTILES), "share of the memories"),
        "truth_scale": (np.array(TRUTH_SCALES, object), "what a label is judged by"),
        "true_label": (np.array(TRUTHS, object), "label by the truth"),
        "label": (np.array(LABELS, object), "label by the worth"),
    }
    return xarray.Dataset(coords={name: (name, values, {"long_name": text}) for name, (values, text) in named.items()})


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


def statistics(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean, standard deviation and both ends of the mean's 95 % t interval along axis 0; NaN where one seed is mute."""
    seeds, mean = len(values), values.mean(axis=0, dtype=np.float64)
    if seeds == 1:
        return mean, *np.full((3, *mean.shape), np.nan)
    sd = values.std(axis=0, ddof=1, dtype=np.float64)
    half = special.stdtrit(seeds - 1, 0.975) * sd / np.sqrt(seeds)
    return mean, sd, mean - half, mean + half


def per_life(dataset: xarray.Dataset) -> Iterator[tuple[str, np.ndarray]]:
    """The metrics of a Dataset by name, one read at a time: (estimator.metric or metric, [seed, checkpoint])."""
    for name in [name for name in ("spearman", "rmse") if name in dataset]:
        values = dataset[name].values
        yield from ((f"{one}.{name}", values[..., i]) for i, one in enumerate(dataset.estimator.values))
    for one in dataset.estimator.values if "label_count" in dataset else ():
        count = dataset.label_count.sel(truth_scale="p_plus", estimator=one, label=["low", "high"]).astype(np.int32)
        given = count.sum(("true_label", "label"))
        right = count.sel(true_label="low", label="low") + count.sel(true_label="high", label="high")
        yield from ((f"{one}.labels_given", given.values), (f"{one}.labels_wrong", (given - right).values))
    if "evidence_quantile" in dataset:
        yield "evidence_median", dataset.evidence_quantile.sel(quantile=0.5).values
    if "mean_success" in dataset:
        yield "mean_success", dataset.mean_success.values


def summary(dataset: xarray.Dataset) -> dict[str, Any]:
    """The object that `--json` prints: every metric with its uncertainty over seeds, null where one seed says nothing.

    Metrics vary along the checkpoints: "mean", "sd" and both ends of "ci95" are lists as long as coords["checkpoint"].
    labels_given counts the memories of a life labelled low or high, labels_wrong those that p+ puts elsewhere.
    """
    attrs, seeds = dataset.attrs, dataset.sizes["seed"]
    episodes, run_s = attrs["episodes"], attrs["run_s"]
    return {
        "experiment": attrs["experiment"],
        "config": json.loads(attrs["config"]),
        "seeds": seeds,
        "episodes": episodes,
        "metrics": {name: _plain(statistics(values)) for name, values in per_life(dataset)},
        "health": {"non_finite_worth": int(dataset.non_finite_worth.values.sum())},
        "timing": {"compile_s": attrs["compile_s"], "run_s": run_s, "episodes_per_s": seeds * episodes / run_s},
        "coords": {"checkpoint": dataset.checkpoint.values.tolist()},
    }


def _plain(found: Sequence[np.ndarray]) -> dict[str, Any]:
    lists = ([x if np.isfinite(x) else None for x in one.tolist()] for one in found)
    mean, sd, low, high = (one if any(x is not None for x in one) else None for one in lists)
    return {"mean": mean, "sd": sd, "ci95": None if low is None else [low, high]}
