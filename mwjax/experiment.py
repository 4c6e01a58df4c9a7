"""Experiments: the fields of a TOML file -> Config and Params, every value checked, every message with its place."""

from __future__ import annotations

import hashlib
import inspect
import json
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from mwjax import config as limits
from mwjax import registry, texts
from mwjax.config import Config, Params, check_integer, governed, make_params, nearest
from mwjax.estimators import Estimator
from mwjax.fields import PARAMS, Fields
from mwjax.rules import Knobs
from mwjax.settings import Settings, read_file, read_override
from mwjax.types import InputError

SWEEPS = next(one for one in (Path(__file__).with_name("sweeps"), Path(__file__).parents[1] / "sweeps") if one.is_dir())
"""Where the built-in experiments lie, in an installed package or in a checkout."""
KINDS = {"estimator": "observers", "retrieval": "retrieval", "outcome": "outcome"}
"""Kind of a component -> the field it belongs to."""


@dataclass(frozen=True)
class Aim:
    """What a map of thresholds looks for, and how closely."""

    level: float
    precision: float
    first_seeds: int
    most_seeds: int


@dataclass(frozen=True)
class Experiment:
    """A question with all its settings, ready to run."""

    name: str
    title: str
    config: Config
    params: Params
    num_episodes: int
    seeds: int
    root_seed: int
    source: Path
    removed: tuple[int, ...]
    axes: dict[str, list[Any]]
    axes_place: str
    slices: dict[str, list[Any]]
    rules: dict[str, list[Any]]
    aim: Aim | None
    fields: dict[str, Any]
    """All fields that a run heeds, as plain values; "code" holds digests of components from outside."""


def load(
    name_or_path: str, *, overrides: Sequence[str] = (), components: Sequence[str] = (), **fields: Any
) -> Experiment:
    """Read a built-in experiment by name, or a TOML file; raises InputError with field, value, range and place.

    Later ones win: the file; `fields`; `overrides`, each "key=value" with a TOML value or bare text; `components`,
    each "package.module:name": an estimator joins the observers, others take the place of the file's.
    """
    source, settings = find(name_or_path), Settings()
    read_file(source, settings)
    for name, value in fields.items():
        settings.give(name, value, "")
    for text in overrides:
        read_override(text, settings)
    try:
        for path in components:
            _add_component(path, settings)
        found = _build(source, validate(settings.values))
        return replace(found, axes_place=settings.places.get("axes", str(source)))
    except InputError as error:
        raise InputError(f"{error}{settings.places_of(str(error))}") from error


def experiments() -> dict[str, Path]:
    """The built-in experiments by name."""
    return {path.stem: path for path in sorted(SWEEPS.glob("*.toml"))}


def find(name_or_path: str) -> Path:
    """The file of a built-in experiment, or the path itself."""
    known, path = experiments(), Path(name_or_path)
    if name_or_path in known:
        return known[name_or_path]
    if path.suffix == ".toml" or len(path.parts) > 1 or path.exists():
        return path
    choice = f"must be one of {', '.join(known)}, or a TOML file{nearest(name_or_path, known)}"
    raise InputError(f"experiment = {name_or_path!r}: {choice}")


def _add_component(path: str, settings: Settings) -> None:
    """Make a component from outside, after the contract test, the value of the field that it belongs to."""
    from mwjax import testing

    factory = _outside(f"--with {path}", registry.load, path)
    try:
        name = KINDS[testing.check_component(factory)]
    except InputError as error:
        raise InputError(f"--with {path}: {error}") from error
    before = settings.values.get("observers", Config.observers)
    settings.give(name, [*before, path] if name == "observers" else path, f"--with {path}")


def _outside(what: str, call: Callable[..., Any], *args: Any) -> Any:
    """Call code that others wrote; whatever it raises becomes one line."""
    try:
        return call(*args)
    except InputError:
        raise
    except Exception as error:
        frame, said = traceback.extract_tb(error.__traceback__)[-1], " ".join(str(error).split())
        raise InputError(f"{what}: {type(error).__name__}: {said} ({frame.filename}, line {frame.lineno})") from error


def validate(values: dict[str, Any]) -> Fields:
    """The fields, typed."""
    try:
        found = Fields.model_validate(values)
    except ValidationError as error:
        name = str(error.errors()[0]["loc"][0])
        raise InputError(f"{name} = {values[name]!r}: must be {Fields.model_fields[name].description}") from error
    if isinstance(found.utility, list):
        if found.utilities is not None:
            raise InputError("utilities: give either this or a list as utility")
        found.utility, found.utilities = "list", found.utility
    return found


def memory_worth_score(config: Config) -> Estimator:
    """The estimator of that name under score_mode = "normalised"."""
    return registry.ESTIMATORS["memory_worth_score_normalised"](config)


def make_config(fields: Fields, queries: int = 0) -> Config:
    """The static part, but for the number of checkpoints."""
    limits.check_name("score_mode", fields.score_mode, ("raw", "normalised"))
    values: dict[str, Any] = {name: value for name, value in fields if name in Config.__dataclass_fields__}
    if fields.score_mode == "normalised":
        swap = lambda one: memory_worth_score if one == "memory_worth_score" else one
        values |= {"observers": [swap(one) for one in fields.observers], "actor": swap(fields.actor)}
    values["can_mask"] = bool(fields.removed) or fields.masked != -1
    values |= _needed(fields) | {"num_queries": queries}
    return Config(**{name: _tuples(value) for name, value in values.items()})


FORGETTING = ("discounted", "discounted_beta", "discounted_step", "last_outcome")
STILL = ("lifetime", "discounted", "discounted_beta", "windowed", "cusum", "cusum_reset")
"""Counters that change with the outcomes of the memory only."""


def _needed(fields: Fields) -> dict[str, Any]:
    """What the program must provide for, as the values of the fields ask."""
    usual = fields.flip_prob == 0 and fields.unused_prob == 0 and fields.observe_success == fields.observe_failure == 1
    watched = [governed.parse(text, Knobs())[2] for text in fields.watchers]
    if len(set(fields.watchers)) < len(fields.watchers):
        raise InputError(f"watchers = {fields.watchers}: each rule may be named once")
    governs = fields.governance != "none"
    ruled = governs or bool(watched) or any(name in FORGETTING for name in fields.observers)
    at_once = fields.theta_mode == "absolute" and fields.decide_every == 1 and fields.counter in STILL
    refits = governs and fields.rule == "empirical_bayes"
    return {
        "drifts": fields.drift_share != 0 or fields.texts is not None,
        "births": fields.num_initial not in (None, fields.num_memories),
        "noisy": not usual or fields.observe_prob not in (1, 1.0),
        "watched": watched,
        "refits": refits,
        "scans": governs and (refits or not at_once),
        "max_evidence": fields.num_episodes if ruled and isinstance(fields.num_episodes, int) else 0,
    }


def _tuples(value: Any) -> Any:
    """Lists as tuples, also within lists."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _marks(fields: Fields, most: int) -> list[int]:
    """The checkpoints of a run: without those beyond num_episodes, with the last episode and that of a switch."""
    check_integer("num_episodes", fields.num_episodes, 1, most)
    marks = limits.checkpoint_grid(fields.num_episodes) if fields.checkpoints is None else fields.checkpoints
    for mark in marks:
        check_integer("checkpoints", mark, 1, limits.MAX_EPISODES)
    inside, switch = [mark for mark in marks if mark < fields.num_episodes], fields.switch_at
    changing = fields.drift_share != 0 or fields.texts is not None
    if changing and isinstance(switch, int) and 0 < switch < fields.num_episodes:
        inside = [*(x for x in inside if x < switch), switch, *(x for x in inside if x > switch)]
    return [*inside, fields.num_episodes]


def _build(source: Path, fields: Fields) -> Experiment:
    corpus = None if fields.texts is None else texts.read(texts.find(fields.texts, source.parent))
    if corpus is not None:
        _fit(fields, corpus)
    config = make_config(fields, 0 if corpus is None else len(corpus.queries))
    fields.checkpoints = _marks(fields, limits.max_episodes(config))
    config = replace(config, num_checkpoints=len(fields.checkpoints))
    values = {name: getattr(fields, name) for name in PARAMS}
    values["texts"] = None if corpus is None else texts.tables(texts.known(corpus), config.num_retrieved)
    params = make_params(config, **values)
    check_integer("seeds", fields.seeds, 1, 1 << 32)
    check_integer("root_seed", fields.root_seed, 0, (1 << 32) - 1)
    _outside("component", registry.parts, config)
    if fields.utilities is not None:
        fields.utilities = [float(one) for one in fields.utilities]
    for memory in fields.removed:
        check_integer("removed", memory, 0, config.num_memories - 1)
    plain = fields.model_dump(exclude={"title", *UNHEEDED}, exclude_none=True) | _digests(fields, corpus)
    return Experiment(
        name=source.stem,
        config=config,
        params=params,
        source=source,
        removed=tuple(fields.removed),
        axes=fields.axes,
        axes_place=str(source),
        slices=fields.slices,
        rules=fields.rules,
        aim=_aim(fields),
        fields=json.loads(json.dumps(plain, default=_path)),
        **{name: getattr(fields, name) for name in ("title", "num_episodes", "seeds", "root_seed")},
    )


def _fit(fields: Fields, corpus: texts.Corpus) -> None:
    """The fields that the texts decide, or must agree with."""
    memories, groups = len(corpus.memories), len(corpus.groups)
    if "num_memories" in fields.model_fields_set:
        limits.check_integer("num_memories", fields.num_memories, memories, memories)
    if fields.num_contexts not in (1, groups):
        raise InputError(f"num_contexts = {fields.num_contexts!r}: must be 1, or {groups}, the groups of {corpus.path}")
    fields.num_memories = memories
    limits.check_number("drift_share", fields.drift_share, 0, 0)


UNHEEDED = ("axes", "slices", "rules", "level", "precision", "first_seeds", "most_seeds")
"""Fields of sweeps and maps, which do not change a run."""


def _aim(fields: Fields) -> Aim | None:
    if fields.level is None:
        return None
    limits.check_number("level", fields.level, 0.5, 0.999)
    limits.check_number("precision", fields.precision, 0.001, 1)
    check_integer("first_seeds", fields.first_seeds, 10, 1 << 20)
    check_integer("most_seeds", fields.most_seeds, fields.first_seeds, 1 << 24)
    return Aim(fields.level, fields.precision, fields.first_seeds, fields.most_seeds)


def vary(experiment: Experiment, **changes: Any) -> Experiment:
    """The same experiment with other values of some fields."""
    settings = Settings()
    for name, value in {**experiment.fields, **changes}.items():
        if name != "code":
            settings.give(name, value, "")
    found = _build(experiment.source, validate(settings.values))
    return replace(found, name=experiment.name, title=experiment.title, aim=experiment.aim)


def _path(factory: Any) -> str:
    """The name by which a factory can be imported."""
    return factory if isinstance(factory, str) else f"{factory.__module__}:{getattr(factory, '__qualname__', factory)}"


def _digests(fields: Fields, corpus: texts.Corpus | None) -> dict[str, Any]:
    """Digests of texts and of the files of components from outside: changed ones are another experiment."""
    components = (fields.outcome, fields.retrieval, *fields.observers)
    outside = [one for one in components if not isinstance(one, str) or ":" in one]
    digests = {_path(one): _digest(registry.resolve("", one)) for one in outside}
    digests |= {} if corpus is None else {"texts": texts.digest(corpus)}
    return {"code": digests} if digests else {}


def _digest(factory: Callable[..., Any]) -> str:
    try:
        text = Path(inspect.getfile(factory)).read_bytes()
    except (OSError, TypeError):
        text = repr(factory).encode()
    return hashlib.sha256(text).hexdigest()[:16]
