"""Experiments: the fields of a TOML file -> Config and Params, every value checked, every message with its place."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
import tomllib
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mwjax import config as limits
from mwjax import registry
from mwjax.config import Component, Config, Params, check_integer, make_params, nearest
from mwjax.estimators import Estimator
from mwjax.types import InputError

SWEEPS = next(one for one in (Path(__file__).with_name("sweeps"), Path(__file__).parents[1] / "sweeps") if one.is_dir())
"""Where the built-in experiments lie, in an installed package or in a checkout."""
PARAMS: dict[str, Any] = dict(make_params.__kwdefaults__ or {})
KINDS = {"estimator": "observers", "retrieval": "retrieval", "outcome": "outcome"}
"""Kind of a component -> the field it belongs to."""
RELATED = {"num_retrieved": "num_memories", "checkpoints": "num_episodes", "utilities": "utility", "actor": "observers"}
RELATED |= {"utility_high": "utility_low", "theta_high": "theta_low"}
"""Fields whose allowed values depend on another field."""
Whole = int | Any
Number = Annotated[float | Any, Field(union_mode="left_to_right")]
"""Converted if possible, else left as it is: Config and make_params then name the type and the range together."""


class Fields(BaseModel):
    """The fields of an experiment's TOML, which `--set` takes too."""

    model_config = ConfigDict(strict=True, extra="forbid", arbitrary_types_allowed=True)

    title: str = Field("", description="a text: what the experiment asks")
    num_memories: Whole = Field(Config.num_memories, description="memories of an agent, N")
    num_retrieved: Whole = Field(Config.num_retrieved, description="memories shown in an episode, k")
    num_episodes: Whole = Field(PARAMS["num_episodes"], description="episodes of a life, T")
    seeds: Whole = Field(20, description="number of lives: seeds 0, 1, ...")
    root_seed: Whole = Field(0, description="another root seed gives other lives")
    checkpoints: list[int] | None = Field(None, description="a list of episode counts at which metrics are taken")
    utility: str | list[Any] = Field(Config.utility, description="'uniform', or a list of num_memories numbers")
    utility_low: Number = Field(PARAMS["utility_low"], description="least true utility that 'uniform' draws")
    utility_high: Number = Field(PARAMS["utility_high"], description="greatest true utility that 'uniform' draws")
    utilities: list[Any] | None = Field(None, description="a list of num_memories numbers, with utility = 'list'")
    outcome: Component = Field(Config.outcome, description="one of `mwjax list worlds`")
    retrieval: Component = Field(Config.retrieval, description="one of `mwjax list retrieval`")
    observers: list[Component] = Field(list(Config.observers), description="a list out of `mwjax list estimators`")
    actor: Component | None = Field(None, description="the one of the observers whose worth feeds retrieval")
    score_low: Number = Field(PARAMS["score_low"], description="relevance scores are uniform on [score_low, 1]")
    score_mode: str = Field("raw", description="'raw', or 'normalised': scores divided by their sum over the set")
    prior_a: Number = Field(PARAMS["prior_a"], description="successes that beta starts from")
    prior_b: Number = Field(PARAMS["prior_b"], description="failures that beta starts from")
    theta_low: Number = Field(PARAMS["theta_low"], description="worth up to this is labelled low")
    theta_high: Number = Field(PARAMS["theta_high"], description="worth from this on is labelled high")
    min_evidence: Whole = Field(PARAMS["min_evidence"], description="less evidence is labelled uncertain")
    metrics: list[str] = Field(list(Config.metrics), description=f"a list out of {', '.join(limits.METRICS)}")
    keep_worth: str = Field(Config.keep_worth, description="'last', or 'all': worth is stored at every checkpoint")


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
    fields: dict[str, Any]
    """All fields but the title, as plain values; "code" holds digests of components from outside, if there are any."""


@dataclass(frozen=True)
class Settings:
    """Field values as they were given, a later one over an earlier one, and where."""

    values: dict[str, Any] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    def give(self, name: str, value: Any, place: str) -> None:
        """Take a value; names that are not of a field are refused."""
        if name not in Fields.model_fields:
            hint = nearest(name, Fields.model_fields) or "; `mwjax list fields` shows all"
            raise InputError(f"{name}: there is no such field{hint}{f' ({place})' if place else ''}")
        self.values[name], self.places[name] = _plain(value), place

    def places_of(self, message: str) -> str:
        """Where the field that a message begins with was given, and the one that limits it if that is less obvious."""
        name = re.split(r"\W", message, maxsplit=1)[0]
        other = RELATED.get(name, "")
        place, limit = self.places.get(name, ""), self.places.get(other, "")
        found = [place, limit if limit.startswith("--") else f"{other}: {limit}" if limit and not place else ""]
        return f" ({'; '.join(filter(None, found))})" if any(found) else ""


def _plain(value: Any) -> Any:
    """NumPy values and tuples as the Python values that TOML would give."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def load(
    name_or_path: str, *, overrides: Sequence[str] = (), components: Sequence[str] = (), **fields: Any
) -> Experiment:
    """Read a built-in experiment by name, or a TOML file; raises InputError with field, value, range and place.

    Later ones win: the file; `fields`; `overrides`, each "key=value" with a TOML value or bare text; `components`,
    each "package.module:name": an estimator joins the observers, others take the place of the file's.
    """
    source, settings = find(name_or_path), Settings()
    _read_file(source, settings)
    for name, value in fields.items():
        settings.give(name, value, "")
    for text in overrides:
        _read_override(text, settings)
    try:
        for path in components:
            _add_component(path, settings)
        return _build(source, validate(settings.values))
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


def _read_file(path: Path, settings: Settings) -> None:
    try:
        text = path.read_text("utf-8-sig")
        table = tomllib.loads(text)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not TOML: {error}") from error
    for name, value in _flat(table).items():
        key = re.search(rf"^[ \t]*[\"']?{re.escape(name.rpartition('.')[2])}[\"']?[ \t]*=", text, re.MULTILINE)
        line = f", line {text.count(chr(10), 0, key.start()) + 1}" if key else ""
        settings.give(name, value, f"{path}{line}")


def _read_override(text: str, settings: Settings) -> None:
    name, equals, value = (part.strip() for part in text.partition("="))
    if not equals or not re.fullmatch(r"[\w-]+(\.[\w-]+)*", name):
        raise InputError(f"--set {text}: must be key=value, such as num_memories=500")
    try:
        table = tomllib.loads(f"value = {value}")
    except (ValueError, RecursionError):
        table = {}
    for key, one in _flat({name: table["value"] if set(table) == {"value"} else value}).items():
        settings.give(key, one, f"--set {text}")


def _flat(table: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested tables as dotted names."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        found |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) and value else {f"{prefix}{name}": value}
    return found


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


def make_config(fields: Fields) -> Config:
    """The static part, but for the number of checkpoints."""
    limits.check_name("score_mode", fields.score_mode, ("raw", "normalised"))
    values: dict[str, Any] = {name: value for name, value in fields if name in Config.__dataclass_fields__}
    if fields.score_mode == "normalised":
        swap = lambda one: memory_worth_score if one == "memory_worth_score" else one
        values |= {"observers": [swap(one) for one in fields.observers], "actor": swap(fields.actor)}
    values |= {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return Config(**values)


def _marks(fields: Fields, most: int) -> list[int]:
    """The checkpoints of a run: those beyond num_episodes are dropped, the last episode is always one."""
    check_integer("num_episodes", fields.num_episodes, 1, most)
    if fields.checkpoints is None:
        return limits.checkpoint_grid(fields.num_episodes)
    for mark in fields.checkpoints:
        check_integer("checkpoints", mark, 1, most)
    return [*(mark for mark in fields.checkpoints if mark < fields.num_episodes), fields.num_episodes]


def _build(source: Path, fields: Fields) -> Experiment:
    config = make_config(fields)
    fields.checkpoints = _marks(fields, limits.max_episodes(config))
    config = replace(config, num_checkpoints=len(fields.checkpoints))
    params = make_params(config, **{name: getattr(fields, name) for name in PARAMS})
    check_integer("seeds", fields.seeds, 1, 1 << 32)
    check_integer("root_seed", fields.root_seed, 0, (1 << 32) - 1)
    _outside("component", registry.parts, config)
    if fields.utilities is not None:
        fields.utilities = [float(one) for one in fields.utilities]
    plain = fields.model_dump(exclude={"title"}, exclude_none=True) | _digests(fields)
    return Experiment(
        name=source.stem,
        config=config,
        params=params,
        source=source,
        fields=json.loads(json.dumps(plain, default=_path)),
        **{name: getattr(fields, name) for name in ("title", "num_episodes", "seeds", "root_seed")},
    )


def _path(factory: Any) -> str:
    """The name by which a factory can be imported."""
    return factory if isinstance(factory, str) else f"{factory.__module__}:{getattr(factory, '__qualname__', factory)}"


def _digests(fields: Fields) -> dict[str, Any]:
    """Digests of the files that components from outside come from: changed code is another experiment."""
    components = (fields.outcome, fields.retrieval, *fields.observers)
    outside = [one for one in components if not isinstance(one, str) or ":" in one]
    digests = {_path(one): _digest(registry.resolve("", one)) for one in outside}
    return {"code": digests} if digests else {}


def _digest(factory: Callable[..., Any]) -> str:
    try:
        text = Path(inspect.getfile(factory)).read_bytes()
    except (OSError, TypeError):
        text = repr(factory).encode()
    return hashlib.sha256(text).hexdigest()[:16]
