"""What the decisions of rules were worth: held against the truth of the store at the time of each decision."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import xarray

from mwjax import theory
from mwjax.config import governed
from mwjax.rules import Knobs

ACTING = "acting"
"""What the acting rule is called in the names of metrics, so that sweeps over rules keep them."""
EVENTS = 2_000
"""Decisions whose truth is worked out at once."""
FIXED = ("pools", "pairs", "diverse")
"""Retrieval whose p+ is that of the result itself, as companions are not uniform."""


class Store(NamedTuple):
    """The memories of all lives as time goes by."""

    fields: Mapping[str, Any]
    utility: np.ndarray  # float64 [seed, memory], at first
    born: np.ndarray  # int64 [memory], episode
    gone: np.ndarray  # int64 [seed, memory], the episode of deprecation; beyond all episodes where there is none
    static: np.ndarray | None  # float64 [seed, memory], p+ where retrieval is one of FIXED, else None
    phases: np.ndarray | None = None  # float64 [phase, memory], p+ in a world of texts, by similarity alone

    def alive(self, seed: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Who is in the store when a decision falls at the end of episode t: bool [event, memory]."""
        return (self.born <= t[:, None]) & (self.gone[seed] >= t[:, None])

    def value(self, seed: np.ndarray, t: np.ndarray) -> np.ndarray:
        """True utilities in episode t: float64 [event, memory]."""
        fields, first = self.fields, self.utility[seed]
        since = np.clip(t - fields["switch_at"] + 1, 0, fields["drift_span"])
        share = since * 256 // fields["drift_span"] / 256
        drifting = np.arange(first.shape[1]) < int(fields["drift_share"] * first.shape[1])
        return np.where(drifting, first + share[:, None] * (fields["drift_utility"] - first), first)


class Truth(NamedTuple):
    """Of memories at a time, [event, memory]."""

    p_plus: np.ndarray
    removal: np.ndarray
    rate: np.ndarray  # [event], success of the whole store


def store_of(dataset: xarray.Dataset) -> Store:
    """The memories of a result."""
    fields = json.loads(dataset.attrs["config"])
    seeds, memories = dataset.sizes["seed"], dataset.sizes["memory"]
    initial, never = fields.get("num_initial") or memories, np.iinfo(np.int64).max
    born = np.maximum(np.arange(memories) - initial + 1, 0) * fields["birth_every"]
    gone = np.full((seeds, memories), never)
    if fields["governance"] == "deprecate":
        first = dataset.decisions.values[:, 0, 0].astype(np.int64)
        gone = np.where(first >= 0, first, never)
    static = dataset.p_plus.values.astype(float) if fields["retrieval"] in FIXED else None
    phases = dataset["p_plus_by_phase"].values if "p_plus_by_phase" in dataset.coords else None
    return Store(fields, dataset.utility.values.astype(float), born, gone, static, phases)


def truth(store: Store, seed: np.ndarray, t: np.ndarray) -> Truth:
    """Truth of every memory of the lives `seed` at the end of episodes t (both [event])."""
    fields, alive, value = store.fields, store.alive(seed, t), store.value(seed, t)
    if store.phases is not None:
        p = store.phases[(t >= fields["switch_at"]).astype(int)]
        return Truth(p, np.full(p.shape, np.nan), np.full(len(p), np.nan))
    if store.static is not None:
        return _static(fields, store.static[seed], value)
    found = np.zeros((2, *value.shape)), np.zeros(len(value))
    for share, base, utility in _contexts(fields, value):
        how = {"k": fields["num_retrieved"], "law": fields["outcome"], "base": base, "gain": fields["gain"]}
        parts = theory.stores.p_plus(utility, alive, **how), theory.stores.removal_value(utility, alive, **how)
        found[0][:] += share * np.stack(parts)
        found[1][:] += share * theory.stores.success_rate(utility, alive, **how)
    return Truth(found[0][0], found[0][1], found[1])


def _static(fields: Mapping[str, Any], p_plus: np.ndarray, value: np.ndarray) -> Truth:
    """Retrieval is one of FIXED: removal values are known beside a single pair whose success is linear in utility."""
    removal = np.full(value.shape, np.nan)
    if fields["retrieval"] == "pairs" and fields["num_pairs"] == 1 and fields["outcome"] in ("mean", "linear"):
        how = {"gain": fields["gain"] if fields["outcome"] == "linear" else 1.0, "mode": fields["separation_mode"]}
        each = [
            share * theory.hitchhiker.removal_of_each(utility, fields["num_retrieved"], fields["separation"], **how)
            for share, _, utility in _contexts(fields, value)
        ]
        removal = np.sum(each, axis=0)
    return Truth(p_plus, removal, np.full(len(value), np.nan))


def _contexts(fields: Mapping[str, Any], value: np.ndarray) -> Iterator[tuple[float, float, np.ndarray]]:
    """(how frequent, base success, utilities) of every context."""
    contexts = fields["num_contexts"]
    hard = fields.get("hard_share")
    shares = fields.get("context_share") or ([1 / contexts] * contexts if hard is None else [1 - hard, hard])
    base = np.broadcast_to(fields["base_success"], contexts)
    turned = np.arange(value.shape[1]) >= value.shape[1] - fields["num_contextual"]
    for context, share in enumerate(shares):
        yield share, float(base[context]), np.where(turned & (context > 0), 1 - value, value)


def knobs_of(fields: Mapping[str, Any], rule: str) -> Knobs:
    """The knobs of a rule as the result calls it."""
    own = {"theta", "delta", "alpha", "prior_a", "prior_b", "min_evidence"}
    common = Knobs(**{name: fields[name] for name in own})
    return governed.parse(rule, common)[1] if rule.partition(":")[0] not in governed.ACTING else common


def theta_of(store: Store, rule: str, acting: bool) -> np.ndarray:
    """What p+ is held against, float64 [seed]: theta, or what it means at first where it moves with the store."""
    theta, mode, seeds = knobs_of(store.fields, rule).theta, store.fields["theta_mode"], len(store.utility)
    if not acting or mode == "absolute":
        return np.full(seeds, theta)
    start = truth(store, np.arange(seeds), np.zeros(seeds, int))
    if mode == "relative":
        return theta * start.rate
    place = int(theta * start.p_plus.shape[1])
    return np.sort(start.p_plus, axis=1)[:, min(place, start.p_plus.shape[1] - 1)]


def measure(dataset: xarray.Dataset) -> dict[str, np.ndarray]:
    """Metrics of the whole life by name, [seed]: rule.metric, with `acting` for the acting rule, whichever it is."""
    names = dataset["rule"].values.tolist()
    if json.loads(dataset.attrs["config"])["governance"] != "none":
        names[0] = ACTING
    return {f"{rule}.{name}": x for rule, one in zip(names, each(dataset), strict=True) for name, x in one.items()}


def each(dataset: xarray.Dataset) -> list[dict[str, np.ndarray]]:
    """What `of_rule` says of every rule, in order."""
    store, names = store_of(dataset), dataset["rule"].values.tolist()
    acts = store.fields["governance"] != "none"
    thetas = [theta_of(store, rule, acts and i == 0) for i, rule in enumerate(names)]
    return [of_rule(dataset, store, i, theta) for i, theta in enumerate(thetas)]


def of_rule(dataset: xarray.Dataset, store: Store, rule: int, theta: np.ndarray) -> dict[str, np.ndarray]:
    """decided: memories decided against. Shares of the memories of a life, NaN where there are none of the kind:

    false_deprecation: decided while p+ >= theta, of those ever good; false_by_removal: decided though removal lowers
    success, of those for which it does at first or at the end; missed: not decided, of those bad at the end;
    false_alarms: decided while p+ >= theta, per 1,000 retrievals of such memories until then; detected: decided from
    switch_at on, of the drifting memories whose p+ falls below theta and which were there; delay: their mean number of
    retrievals until then or the end.
    """
    first, shown = dataset.decisions.values[:, rule, 0], dataset.decisions.values[:, rule, 1]
    seeds, every = len(first), np.arange(len(first))
    episodes, limit = int(dataset.attrs["episodes"]), theta[:, None]
    start, end = truth(store, every, np.zeros(seeds, int)), truth(store, every, np.full(seeds, episodes - 1))
    p, removal = _at_decisions(store, first)
    decided = first >= 0
    wrong, bad = decided & (p >= limit), end.p_plus < limit
    good, useful = (start.p_plus >= limit) | ~bad, (start.removal > 0) | (end.removal > 0)
    risk = np.where(decided, shown, _shown_while_good(dataset, store, theta))
    found = {
        "decided": decided.sum(1).astype(float),
        "false_deprecation": _share(wrong & good, good),
        "false_by_removal": _share(decided & (removal > 0), useful | (decided & (removal > 0))),
        "missed": _share(bad & ~decided, bad),
        "false_alarms": 1_000 * _share(wrong, np.where(good, risk, 0)),
    }
    if "after_episode" in dataset.decision.values:
        stale, after = stale_memories(dataset, store, rule, theta), dataset.decisions.values[:, rule, 2] >= 0
        found["detected"] = _share(stale & after, stale)
        found["delay"] = _share(np.where(stale, _retrievals(dataset, store, rule), 0), stale)
    return found


def stale_memories(dataset: xarray.Dataset, store: Store, rule: int, theta: np.ndarray) -> np.ndarray:
    """Drifting memories whose p+ falls from theta or above to below it, and that no decision took before: bool."""
    switch, seeds = store.fields["switch_at"], len(store.utility)
    every, episodes = np.arange(seeds), int(dataset.attrs["episodes"])
    before = truth(store, every, np.full(seeds, max(switch - 1, 0))).p_plus >= theta[:, None]
    after = truth(store, every, np.full(seeds, episodes - 1)).p_plus < theta[:, None]
    first = dataset.decisions.values[:, rule, 0]
    there = (first < 0) | (first >= switch)
    if store.fields["governance"] != "deprecate" or rule:
        there = np.ones_like(there)
    return before & after & there


def delays(dataset: xarray.Dataset, rule: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Of every stale memory of all lives: (delay in retrievals since the switch, in episodes, still undetected)."""
    store, names = store_of(dataset), dataset["rule"].values.tolist()
    acting = store.fields["governance"] != "none" and rule == 0
    theta = theta_of(store, str(names[rule]), acting)
    stale = stale_memories(dataset, store, rule, theta)
    switch, episodes = store.fields["switch_at"], int(dataset.attrs["episodes"])
    when = dataset.decisions.values[:, rule, 2]
    passed = np.where(when < 0, episodes - switch, when - switch + 1)
    return _retrievals(dataset, store, rule)[stale], passed[stale], when[stale] < 0


def _retrievals(dataset: xarray.Dataset, store: Store, rule: int) -> np.ndarray:
    """Retrievals from the switch until the first decision after it, or the end: [seed, memory]."""
    switch, (when, shown) = store.fields["switch_at"], dataset.decisions.values[:, rule, 2:4].swapaxes(0, 1)
    before = dataset.shown_at.sel(checkpoint=switch).values if switch else 0
    return np.where(when < 0, dataset.shown.values, shown) - before


def _at_decisions(store: Store, first: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(p+, removal value) of every memory when it was decided against; NaN where it never was."""
    found = np.full((2, *first.shape), np.nan)
    seed, memory = np.nonzero(first >= 0)
    for start in range(0, len(seed), EVENTS):
        i, m = seed[start : start + EVENTS], memory[start : start + EVENTS]
        known, row = truth(store, i, first[i, m]), np.arange(len(i))
        found[0][i, m], found[1][i, m] = known.p_plus[row, m], known.removal[row, m]
    return found[0], found[1]


def _shown_while_good(dataset: xarray.Dataset, store: Store, theta: np.ndarray) -> np.ndarray:
    """Retrievals until the switch for drifting memories (of texts: those that end bad), all of them for others."""
    shown, switch = dataset.shown.values, store.fields["switch_at"]
    if "shown_at" not in dataset or switch not in dataset.checkpoint.values:
        return shown
    drifting = np.arange(shown.shape[1]) < int(store.fields["drift_share"] * shown.shape[1])
    if store.phases is not None:
        drifting = store.phases[-1] < theta[:, None]
    return np.where(drifting, dataset.shown_at.sel(checkpoint=switch).values, shown)


def _share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
    count = whole.sum(1)
    return np.where(count > 0, part.sum(1) / np.maximum(count, 1), np.nan)
