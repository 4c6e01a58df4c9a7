"""A world of texts by kind of memory: worth before and after the switch, what is borrowed, what rules noticed."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import xarray

from mwjax import texts, theory
from mwjax.experiment import Experiment

OTHERS = ("specialist", "hitchhiker", "control")
"""Kinds that are not to fall."""
STALE, HITCHHIKER, ACTING = "stale", "hitchhiker", "acting"


def coordinates(experiment: Experiment) -> dict[str, Any]:
    """What a result keeps of its texts: name and kind [memory], alone and p_plus_by_phase [phase, memory]."""
    fields = experiment.fields
    if "texts" not in fields:
        return {}
    corpus = texts.read(texts.find(fields["texts"], experiment.source.parent))
    known, k = texts.known(corpus), fields["num_retrieved"]
    flip = lambda p: fields["flip_prob"] + (1 - 2 * fields["flip_prob"]) * p
    found: dict[str, Any] = {
        "name": ("memory", np.array(corpus.ids, object), {"long_name": "id of the memory"}),
        "kind": ("memory", np.array(corpus.kinds, object), {"long_name": "kind of the memory"}),
        "alone": (("phase", "memory"), flip(texts.alone(known)), {"long_name": "what it earns alone, as reported"}),
    }
    reader = fields["outcome"]
    if reader in texts.READERS:
        p = texts.p_plus(known, k, reader, floor=fields["exploration_floor"])
        about = {"long_name": "p+ as it is reported, retrieval by similarity alone"}
        found["p_plus_by_phase"] = (("phase", "memory"), flip(p), about)
    return found


def is_text(dataset: xarray.Dataset) -> bool:
    """A run of texts?"""
    return "kind" in dataset.coords and "phase" in dataset.dims


def of_kind(dataset: xarray.Dataset, kind: str) -> np.ndarray:
    """Which memories are of a kind, bool [memory]."""
    return np.asarray(dataset["kind"].values == kind, bool)


def kinds(dataset: xarray.Dataset) -> list[str]:
    """The kinds there are, those of texts.KINDS first."""
    there = list(dict.fromkeys(str(one) for one in dataset["kind"].values))
    return [*(one for one in texts.KINDS if one in there), *(one for one in there if one not in texts.KINDS)]


def curve(dataset: xarray.Dataset, estimator: str, kind: str) -> np.ndarray:
    """Mean worth of the memories of a kind, float64 [seed, checkpoint]; NaN before the end if only that is kept."""
    worth = dataset.worth.sel(estimator=estimator).values[..., of_kind(dataset, kind)].astype(np.float64).mean(-1)
    if worth.ndim == 2:
        return worth
    return np.concatenate([np.full((len(worth), dataset.sizes["checkpoint"] - 1), np.nan), worth[:, None]], axis=1)


def measure(dataset: xarray.Dataset) -> Iterator[tuple[str, np.ndarray]]:
    """(name, [seed, checkpoint] or, of the whole life, [seed]).

    estimator.KIND_worth at every checkpoint; estimator.stale_before (at the switch), stale_after (at the end),
    stale_crossing (episode at which worth comes down to theta_low, linear between checkpoints, NaN where it does not),
    others_low and others_high (of the kinds in OTHERS, at the end), borrowed (worth of the hitchhikers less what they
    earn alone); rule.stale_detected, stale_delay (retrievals since the switch), others_decided (share).
    """
    fields, there = json.loads(dataset.attrs["config"]), kinds(dataset)
    for estimator in map(str, dataset.estimator.values):
        each = {kind: curve(dataset, estimator, kind) for kind in there}
        yield from ((f"{estimator}.{kind}_worth", values) for kind, values in each.items())
        others = [each[kind][:, -1] for kind in OTHERS if kind in each]
        if others:
            yield f"{estimator}.others_low", np.min(others, axis=0)
            yield f"{estimator}.others_high", np.max(others, axis=0)
        if HITCHHIKER in each:
            own = float(dataset["alone"].values[-1, of_kind(dataset, HITCHHIKER)].mean())
            yield f"{estimator}.borrowed", each[HITCHHIKER][:, -1] - own
        if STALE in each and fields["switch_at"] in dataset.checkpoint.values:
            before = dataset.checkpoint.values.tolist().index(fields["switch_at"])
            yield f"{estimator}.stale_before", each[STALE][:, before]
            yield f"{estimator}.stale_after", each[STALE][:, -1]
            late = dataset.checkpoint.values[before:].astype(np.float64)
            yield f"{estimator}.stale_crossing", crossing(late, each[STALE][:, before:], fields["theta_low"])
    if "decisions" in dataset:
        yield from _rules(dataset, fields)


def crossing(marks: np.ndarray, values: np.ndarray, level: float) -> np.ndarray:
    """Where curves (values [seed, mark]) first come down to a level, linear between marks: [seed], NaN if never."""
    low = values <= level
    first, rows = low.argmax(1), np.arange(len(values))
    prior = np.maximum(first - 1, 0)
    top, bottom = values[rows, prior], values[rows, first]
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(first > 0, (top - level) / (top - bottom), 0.0)
    return np.where(low.any(1), marks[prior] + share * (marks[first] - marks[prior]), np.nan)


def _rules(dataset: xarray.Dataset, fields: Mapping[str, Any]) -> Iterator[tuple[str, np.ndarray]]:
    """What every rule decided: against the stale from the switch on, against the others at any time."""
    names = [str(one) for one in dataset["rule"].values]
    if fields["governance"] != "none":
        names[0] = ACTING
    stale, others = of_kind(dataset, STALE), np.isin(dataset["kind"].values, OTHERS)
    switch, timed = fields["switch_at"], "after_episode" in dataset.decision.values
    for i, name in enumerate(names):
        decided = dataset.decisions.values[:, i]
        if others.any():
            yield f"{name}.others_decided", (decided[:, 0, others] >= 0).mean(1)
        if stale.any() and timed and switch in dataset.checkpoint.values:
            found = decided[:, 2][:, stale] >= 0
            passed = decided[:, 3][:, stale] - dataset.shown_at.sel(checkpoint=switch).values[:, stale]
            yield f"{name}.stale_detected", found.mean(1)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", RuntimeWarning)  # where none was detected
                yield f"{name}.stale_delay", np.nanmean(np.where(found, passed, np.nan), axis=1)


def predicted(dataset: xarray.Dataset) -> tuple[float, float, float, float] | None:
    """(n1, p1, p2, retrievals after the switch until worth is at theta_low) of the stale memories, by the closed form.

    n1: their retrievals at the switch, p1 and p2: their p+ in both phases; None where they are not known.
    """
    fields, stale = json.loads(dataset.attrs["config"]), of_kind(dataset, STALE)
    switch = fields["switch_at"]
    if not stale.any() or "p_plus_by_phase" not in dataset.coords or switch not in dataset.checkpoint.values:
        return None
    shown = float(dataset.shown_at.sel(checkpoint=switch).values[:, stale].mean())
    p1, p2 = (float(one) for one in dataset["p_plus_by_phase"].values[:, stale].mean(1))
    return shown, p1, p2, theory.deprecation.lifetime_delay(shown, p1, p2, fields["theta_low"])


def predicted_crossing(dataset: xarray.Dataset) -> float | None:
    """The episode of that crossing, at the rate at which the stale memories are retrieved after the switch."""
    known = predicted(dataset)
    if known is None or not np.isfinite(known[3]):
        return None
    switch, stale = json.loads(dataset.attrs["config"])["switch_at"], of_kind(dataset, STALE)
    later = dataset.shown.values[:, stale].mean() - known[0]
    rate = later / max(int(dataset.attrs["episodes"]) - switch, 1)
    return None if rate <= 0 else switch + known[3] / float(rate)
