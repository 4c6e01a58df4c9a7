"""Governance rules on the same lives: every rule with each value of its knob, beside doing nothing and an oracle."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import numpy as np
import xarray

from mwjax import results, sweep
from mwjax.analysis import survival, verdicts
from mwjax.experiment import Experiment, vary
from mwjax.types import InputError

NOTHING, ORACLE = "nothing", "oracle"
LEVELS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)
"""False deprecation at which rules are compared."""
DRAWS = 2_000
"""Resamplings of the seeds."""
MEASURES = {
    "success": "share of the episodes that succeeded",
    "gained": "success points gained against doing nothing",
    "false_deprecation": "share of the good memories deprecated, by p+",
    "false_by_removal": "share of the useful memories deprecated, by removal value",
    "missed": "share of the bad memories not deprecated",
    "false_alarms": "good memories deprecated, per 1,000 of their retrievals",
    "detected": "share of the stale memories deprecated after the switch",
    "store_size": "live memories at the end",
    "kept_utility": "mean true utility of the live memories at the end",
}


class Setting(NamedTuple):
    """A rule with one value of its knob."""

    rule: str
    knob: str
    value: float

    @property
    def changes(self) -> dict[str, Any]:
        """The fields that make it."""
        if self.rule == NOTHING:
            return {"rule": "none"}
        if self.rule == ORACLE:
            return {"rule": "threshold", "counter": "truth", "min_evidence": 0, "theta": self.value}
        whole = self.knob == "min_evidence"
        return {"rule": self.rule, self.knob: int(self.value) if whole else self.value}


def settings(experiment: Experiment) -> list[Setting]:
    """Doing nothing, the oracle, and every rule with every value of its knob."""
    if not experiment.rules:
        raise InputError(f"rules: {experiment.source} has no table [rules], such as rules.beta.delta = [0.01, 0.05]")
    theta = (
        experiment.fields["theta"] if experiment.config.theta_mode == "quantile" else experiment.fields["oracle_theta"]
    )
    found = [Setting(NOTHING, "", np.nan), Setting(ORACLE, "theta", theta)]
    for name, values in experiment.rules.items():
        rule, _, knob = name.partition(".")
        found += [Setting(rule, knob, value) for value in values]
    return found


def compare(
    experiment: Experiment,
    *,
    progress: Callable[[int, int], None] | None = None,
    devices: Sequence[Any] | None = None,
) -> xarray.Dataset:
    """Run every setting on the same seeds: variables [seed, setting], each with its long_name in MEASURES.

    The episode's words are the same in all settings, so lives differ by what the rule does alone.
    """
    began, every = time.perf_counter(), settings(experiment)
    if experiment.config.governance != "deprecate":
        raise InputError("governance: must be 'deprecate' to compare rules")
    planned = [vary(experiment, **one.changes) for one in every]
    columns: dict[str, list[np.ndarray]] = {}
    medians, undetected = [], []
    for done, asked in enumerate(planned):
        found = sweep.run(asked, devices=devices)
        for name, values in _measures(found):
            columns.setdefault(name, []).append(values)
        delay = _delay(found)
        medians.append(delay[0])
        undetected.append(delay[1])
        if progress is not None:
            progress((done + 1) * experiment.seeds, len(planned) * experiment.seeds)
    made = xarray.Dataset(coords={"seed": np.arange(experiment.seeds), "setting": np.arange(len(every))})
    for field in Setting._fields:
        kind = float if field == "value" else object
        made = made.assign_coords({field: ("setting", np.array([getattr(one, field) for one in every], kind))})
    for name, values in columns.items():
        made[name] = (("seed", "setting"), np.stack(values, axis=1), {"long_name": MEASURES[name]})
    made["delay"] = ("setting", np.array(medians), {"long_name": "median delay", "units": "retrieval"})
    made["undetected"] = ("setting", np.array(undetected), {"long_name": "share never detected", "units": "1"})
    attrs = sweep.provenance(experiment, tuple(devices or jax.local_devices()))
    attrs |= {"kind": "compare", "sweep_fingerprint": sweep.sweep_fingerprint(experiment)}
    wall = time.perf_counter() - began
    return made.assign_attrs(attrs | {"wall_s": wall, "run_s": wall, "compile_s": 0.0, "reused": False})


def _measures(found: xarray.Dataset) -> Iterator[tuple[str, np.ndarray]]:
    """Of one setting, by name: [seed]."""
    known = dict(results.per_life(found))
    yield "success", known["mean_success"][:, -1]
    for name in MEASURES:
        values = known.get(name, known.get(f"{verdicts.ACTING}.{name}"))
        if values is not None:
            yield name, values[:, -1].astype(np.float64)


def _delay(found: xarray.Dataset) -> tuple[float, float]:
    """(median delay in retrievals, share undetected) of the stale memories, NaN where there are none."""
    if "after_episode" not in found.decision.values:
        return np.nan, np.nan
    retrievals, _, censored = verdicts.delays(found, 0)
    if not len(retrievals):
        return np.nan, np.nan
    return survival.median_delay(retrievals, censored), float(censored.mean())


def gained(dataset: xarray.Dataset) -> np.ndarray:
    """Success of every setting less that of doing nothing on the same seeds, float64 [seed, setting]."""
    success = dataset.success.values.astype(np.float64)
    return success - success[:, dataset["rule"].values.tolist().index(NOTHING)][:, None]


class Contest(NamedTuple):
    """Two rules at equal error."""

    first: str
    second: str
    level: float  # false deprecation
    difference: float  # of the success gained, first less second
    low: float
    high: float


def contests(dataset: xarray.Dataset) -> list[Contest]:
    """Every two rules at the levels of false deprecation that both reach: the difference in success, 95 % interval.

    Each rule is a curve, success gained against false deprecation, through the means of its settings; the interval is
    of DRAWS resamplings of the seeds, the same for both.
    """
    error, gain = dataset.false_deprecation.values, gained(dataset)
    draw = np.random.default_rng(0).multinomial(len(gain), np.full(len(gain), 1 / len(gain)), DRAWS)
    weight = np.concatenate([np.ones((1, len(gain))), draw])
    count = np.maximum(weight @ np.isfinite(error), 1)
    x, y = weight @ np.nan_to_num(error) / count, weight @ gain / weight.sum(1, keepdims=True)
    names = [name for name in dict.fromkeys(dataset["rule"].values.tolist()) if name not in (NOTHING, ORACLE)]
    curves = {name: np.flatnonzero(dataset["rule"].values == name) for name in names}
    found = []
    for (first, one), (second, two) in itertools.combinations(curves.items(), 2):
        for level in LEVELS:
            ends = [_at(x[:, mine], y[:, mine], level) for mine in (one, two)]
            difference = ends[0] - ends[1]
            if np.isfinite(difference[0]):
                low, high = np.nanquantile(difference[1:], [0.025, 0.975])
                found.append(Contest(str(first), str(second), level, float(difference[0]), float(low), float(high)))
    return found


def _at(x: np.ndarray, y: np.ndarray, level: float) -> np.ndarray:
    """Every row's curve (x, y) at x = level, [row]; NaN outside of it."""
    order = np.argsort(x, axis=1, kind="stable")
    x, y = np.take_along_axis(x, order, 1), np.take_along_axis(y, order, 1)
    return np.array([np.interp(level, a, b, left=np.nan, right=np.nan) for a, b in zip(x, y, strict=True)])


def verdict(dataset: xarray.Dataset) -> str:
    """Which rule wins at equal error, by how much and where, in a sentence."""
    found = contests(dataset)
    if not found:
        return "No two rules reach the same false deprecation: sweep their knobs further."
    said = []
    for pair in dict.fromkeys((one.first, one.second) for one in found):
        mine = [one for one in found if (one.first, one.second) == pair]
        clear = [one for one in mine if one.low > 0 or one.high < 0]
        if not clear:
            widest = max(abs(end) for one in mine for end in (one.low, one.high))
            said.append(f"{pair[0]} and {pair[1]} do not differ at equal error (within {100 * widest:.2f} points)")
            continue
        best = max(clear, key=lambda one: abs(one.difference))
        names = (pair[0], pair[1]) if best.difference > 0 else (pair[1], pair[0])
        ends = sorted(abs(100 * end) for end in (best.low, best.high))
        same = [one.level for one in clear if (one.difference > 0) == (best.difference > 0)]
        where = f"clear at {', '.join(f'{level:g}' for level in same)}"
        other = [f"{one.level:g}" for one in clear if one.level not in same]
        where += f"; the other way round at {', '.join(other)}" if other else ""
        said.append(
            f"{names[0]} gains {100 * abs(best.difference):.2f} success points ({ends[0]:.2f} .. {ends[1]:.2f}) more "
            f"than {names[1]} at false deprecation {best.level:g} ({where})"
        )
    return "; ".join(said) + "."


def table(dataset: xarray.Dataset) -> list[dict[str, Any]]:
    """One row a setting: rule, knob, value, and {"mean", "ci95"} of success gained (points come first) and the rest."""
    columns = {"gained": gained(dataset), **{n: dataset[n].values for n in MEASURES if n in dataset}}
    rows = []
    for i in range(dataset.sizes["setting"]):
        value = float(dataset["value"].values[i])
        row: dict[str, Any] = {"rule": str(dataset["rule"].values[i]), "knob": str(dataset["knob"].values[i])}
        row["value"] = value if np.isfinite(value) else None
        for name, values in columns.items():
            mean, _, low, high = (float(x) for x in results.statistics(values[:, i]))
            row[name] = {"mean": _plain(mean), "ci95": [_plain(low), _plain(high)]}
        row["delay"], row["undetected"] = _plain(float(dataset.delay[i])), _plain(float(dataset.undetected[i]))
        rows.append(row)
    return rows


def _plain(value: float) -> float | None:
    return value if np.isfinite(value) else None


def as_json(dataset: xarray.Dataset) -> dict[str, Any]:
    """The object that `mwjax compare --json` prints."""
    return {
        "experiment": dataset.attrs["experiment"],
        "config": json.loads(dataset.attrs["config"]),
        "seeds": dataset.sizes["seed"],
        "episodes": dataset.attrs["episodes"],
        "settings": table(dataset),
        "equal_error": [one._asdict() for one in contests(dataset)],
        "verdict": verdict(dataset),
    }
