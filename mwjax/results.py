"""What a life is reduced to: the variables of a Dataset, the metrics by name, and their statistics over seeds."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import xarray
from scipy import special

from mwjax import registry, store
from mwjax.analysis import adaptive, calibration, pairs, texts, verdicts
from mwjax.config import METRICS
from mwjax.episode.records import FORECAST_LEVELS
from mwjax.experiment import Experiment
from mwjax.governance import DECISIONS, num_decisions
from mwjax.metrics import QUANTILES
from mwjax.types import LABELS, TRUTH_SCALES, TRUTHS, UTILITY_ONE, InputError, Trace

VARIABLES: dict[str, tuple[str, type, str, str]] = {
    "spearman": ("checkpoint estimator", np.float32, "Spearman's rank correlation of worth with utility", "1"),
    "rmse": ("checkpoint estimator", np.float32, "root mean square of worth - p+ over the memories", "1"),
    "label_count": ("checkpoint truth_scale true_label label estimator", np.int32, "memories so labelled", "memory"),
    "evidence_quantile": ("checkpoint quantile", np.int32, "quantile of evidence over the memories", "retrieval"),
    "mean_success": ("checkpoint", np.float32, "share of the episodes so far that succeeded", "1"),
    "starved": ("checkpoint", np.float32, "share of the memories with less evidence than min_evidence", "1"),
    "pair_count": ("checkpoint count role pair", np.int32, "evidence and successes of paired memories", "retrieval"),
    "store_size": ("checkpoint", np.int32, "live memories", "memory"),
    "active_size": ("checkpoint", np.int32, "live memories that are not suppressed", "memory"),
    "kept_utility": ("checkpoint", np.float32, "mean true utility of the live memories", "1"),
    "prior_strength": ("checkpoint", np.float32, "a + b of the fitted prior", "retrieval"),
    "decisions": ("rule decision memory", np.int32, "when rules decided against the memory; -1: never", "1"),
    "calibration": ("forecaster outcome level", np.int32, "outcomes by the forecast made before", "retrieval"),
    "utility": ("memory", np.float32, "true utility U*", "1"),
    "p_plus": ("memory", np.float32, "p+, Pr[success given that the memory is retrieved]", "1"),
    "shown": ("memory", np.int32, "retrievals of the memory", "retrieval"),
    "shown_at": ("checkpoint memory", np.int32, "retrievals of the memory so far", "retrieval"),
    "evidence": ("memory", np.int32, "retrievals whose outcome has been applied", "retrieval"),
    "successes": ("memory", np.int32, "evidence that ended in success", "retrieval"),
    "expected_hits": ("memory", np.float32, "sum of Pr[success] over the retrievals of the memory", "retrieval"),
    "context_evidence": ("context memory", np.int32, "evidence of the memory by context", "retrieval"),
    "context_successes": ("context memory", np.int32, "successes of the memory by context", "retrieval"),
    "removal_value": ("removed", np.float32, "mean success less mean success without the memory, same words", "1"),
    "worth": ("estimator memory", np.float32, "worth of the memory", "1"),
    "held_back": ("", np.int32, "decisions not carried out, as too few memories would be left", "1"),
    "non_finite_worth": ("", np.int32, "worth values that were not finite at a checkpoint", "1"),
}
"""Name -> dimensions after `seed`, type (label_count: the smallest that holds all memories), long_name, units."""


def arrays(experiment: Experiment, trace: Trace) -> dict[str, np.ndarray]:
    """The variables of a batch of lives, with the lives in front, as `template` describes them."""
    utility = np.asarray(trace.utility).astype(np.float32) * np.float32(1 / UTILITY_ONE)
    found = {**trace.metrics, "utility": utility, "p_plus": trace.p_plus, "worth": trace.worth}
    found |= trace.counts._asdict() | trace.health._asdict() | {"expected_hits": trace.expected_hits}
    found |= {"decisions": trace.decisions, "calibration": trace.calibration, "shown_at": trace.shown_at}
    return {name: np.asarray(found[name]) for name in names(experiment) if name != "removal_value"}


def names(experiment: Experiment) -> list[str]:
    """The variables of an experiment."""
    config = experiment.config
    without = set(METRICS) - set(config.metrics)
    without |= {"store_size", "active_size", "kept_utility", "prior_strength"} if "store" in without else set()
    without |= set() if config.drifts else {"shown_at"}
    without |= set() if config.refits else {"prior_strength"}
    without |= set() if config.governance != "none" else {"held_back"}
    without |= set() if rule_names(experiment) else {"decisions"}
    without |= {"expected_hits"} if "compensator" in without else set()
    without |= set() if experiment.removed else {"removal_value"}
    without |= set() if config.num_contexts > 1 else {"context_evidence", "context_successes"}
    return [name for name in VARIABLES if name not in without]


def rule_names(experiment: Experiment) -> list[str]:
    """The rules whose decisions are recorded, the acting one first."""
    fields = experiment.fields
    acting = [fields["rule"]] if experiment.config.governance != "none" else []
    return [*acting, *fields.get("watchers", [])]


def template(experiment: Experiment) -> xarray.Dataset:
    """The Dataset of an experiment before it has run: coordinates, and variables that take no memory yet."""
    made, coords, config = {}, _coordinates(experiment), experiment.config
    for name in names(experiment):
        axes, dtype, long_name, units = VARIABLES[name]
        if name == "label_count":
            dtype = np.min_scalar_type(-1 - config.num_memories)
        every = ["checkpoint"] if name == "worth" and config.keep_worth == "all" else []
        dims = ("seed", *every, *axes.split())
        shape = tuple(coords.sizes[dim] for dim in dims)
        made[name] = store.variable(dims, shape, dtype, long_name=long_name, units=units)
    used = {dim for one in made.values() for dim in one.dims}
    kept = coords.drop_vars([name for name in coords.coords if name not in used]).assign(made)
    return kept.assign_coords(texts.coordinates(experiment))


def _coordinates(experiment: Experiment) -> xarray.Dataset:
    estimators = [registry.name_of(one) for one in experiment.config.observers]
    if len(set(estimators)) < len(estimators):
        raise InputError(f"observers: {estimators}: two have the same name in results; rename one factory")
    named = {
        "seed": (np.arange(experiment.seeds), "seed of the life"),
        "checkpoint": (np.asarray(experiment.params.checkpoints, np.int64), "episodes completed"),
        "estimator": (np.array(estimators, object), "worth estimator"),
        "memory": (np.arange(experiment.config.num_memories), "index of the memory"),
        "context": (np.arange(experiment.config.num_contexts), "task type"),
        "removed": (np.asarray(experiment.removed, np.int64), "memory that is taken away"),
        "rule": (np.array(rule_names(experiment), object), "rule, the acting one first"),
        "decision": (np.array(DECISIONS[: num_decisions(experiment.config)], object), "what is known of a decision"),
        "forecaster": (np.array([*estimators, "base_rate"], object), "what foretold the outcome"),
        "outcome": (np.array(["failure", "success"], object), "outcome as it was reported"),
        "level": (np.arange(FORECAST_LEVELS), "floor(256 x forecast)"),
        "count": (np.array(["evidence", "successes"], object), "what is counted"),
        "role": (np.array(["anchor", "hitchhiker"], object), "half of a pair"),
        "pair": (np.arange(experiment.config.num_pairs), "index of the pair"),
        "quantile": (list(QUANTILES), "share of the memories"),
        "truth_scale": (np.array(TRUTH_SCALES, object), "what a label is judged by"),
        "true_label": (np.array(TRUTHS, object), "label by the truth"),
        "label": (np.array(LABELS, object), "label by the worth"),
    }
    return xarray.Dataset(coords={name: (name, values, {"long_name": text}) for name, (values, text) in named.items()})


def statistics(values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Mean, standard deviation and both ends of the mean's 95 % t interval along axis 0.

    Lives without a value (NaN) do not count; NaN where there is none, and for the spread where there is but one.
    """
    values = np.asarray(values, np.float64)
    count = np.isfinite(values).sum(axis=0)
    with warnings.catch_warnings(), np.errstate(invalid="ignore", divide="ignore"):
        warnings.simplefilter("ignore", RuntimeWarning)  # of means over nothing
        mean = np.asarray(np.nanmean(values, axis=0, dtype=np.float64))
        sd = np.asarray(np.nanstd(values, axis=0, ddof=1, dtype=np.float64))
        half = special.stdtrit(count - 1, 0.975) * sd / np.sqrt(count)
    return mean, sd, mean - half, mean + half


def per_life(dataset: xarray.Dataset) -> Iterator[tuple[str, np.ndarray]]:
    """The metrics of a Dataset by name, one read at a time: (estimator.metric or metric, [seed, checkpoint]).

    Metrics of the whole life are NaN at all checkpoints but the last.
    """
    for name in [name for name in ("spearman", "rmse") if name in dataset]:
        values = dataset[name].values
        yield from ((f"{one}.{name}", values[..., i]) for i, one in enumerate(dataset.estimator.values))
    for one in dataset.estimator.values if "label_count" in dataset else ():
        count = dataset.label_count.sel(truth_scale="p_plus", estimator=one, label=["low", "high"]).astype(np.int32)
        given = count.sum(("true_label", "label"))
        right = count.sel(true_label="low", label="low") + count.sel(true_label="high", label="high")
        yield from ((f"{one}.labels_given", given.values), (f"{one}.labels_wrong", (given - right).values))
    if "evidence_quantile" in dataset:
        yield "evidence_least", dataset.evidence_quantile.sel(quantile=0).values
        yield "evidence_median", dataset.evidence_quantile.sel(quantile=0.5).values
    yield from ((name, dataset[name].values) for name in ("mean_success", "starved") if name in dataset)
    if "pair_count" in dataset:
        evidence, successes = (dataset.pair_count.sel(count=name).values for name in ("evidence", "successes"))
        yield from pairs.measure(evidence, successes)
    for name in ("store_size", "active_size", "kept_utility", "prior_strength"):
        if name in dataset:
            yield name, dataset[name].values.astype(np.float32)
    whole = adaptive.measure(dataset) if "expected_hits" in dataset else {}
    if "decisions" in dataset:
        whole |= verdicts.measure(dataset)
    if "calibration" in dataset:
        whole |= calibration.measure(dataset)
    if texts.is_text(dataset):
        found = dict(texts.measure(dataset))
        yield from ((name, values) for name, values in found.items() if values.ndim == 2)
        whole |= {name: values for name, values in found.items() if values.ndim == 1}
    if "removal_value" in dataset:
        whole |= {f"removal_value.{m}": dataset.removal_value.sel(removed=m).values for m in dataset.removed.values}
    marks = dataset.sizes["checkpoint"]
    for name, values in whole.items():
        yield name, np.concatenate([np.full((len(values), marks - 1), np.nan), values[:, None]], axis=1)


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
