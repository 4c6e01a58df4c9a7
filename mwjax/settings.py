"""Values of fields as they were given, by a file, a call or `--set`, and the place of each for messages."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mwjax.config import governed, nearest
from mwjax.fields import Fields
from mwjax.rules import RULES, Knobs
from mwjax.types import InputError

RELATED = {"num_retrieved": "num_memories", "checkpoints": "num_episodes", "utilities": "utility", "actor": "observers"}
RELATED |= {"utility_high": "utility_low", "theta_high": "theta_low"}
"""Fields whose allowed values depend on another field."""
TABLES = ("axes", "slices", "rules")
"""Fields that hold lists of values: of other fields, or (rules.RULE.KNOB) of what a rule may be told."""


@dataclass(frozen=True)
class Settings:
    """Field values as they were given, a later one over an earlier one, and where."""

    values: dict[str, Any] = field(default_factory=dict)
    places: dict[str, str] = field(default_factory=dict)

    def give(self, name: str, value: Any, place: str) -> None:
        """Take a value; names that are not of a field are refused."""
        table, _, axis = name.partition(".")
        if table in TABLES and (axis in Fields.model_fields or (table == "rules" and _is_knob(name, axis, place))):
            given = _plain(value)
            if not isinstance(given, list) or not given:
                raise InputError(f"{name} = {given!r}: must be a list of values{f' ({place})' if place else ''}")
            self.values[table] = {**self.values.get(table, {}), axis: given}
            self.places[table] = place
            return
        if name not in Fields.model_fields or name in TABLES:
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


def _is_knob(name: str, axis: str, place: str) -> bool:
    """Is it RULE.KNOB? A wrong name of either is refused."""
    rule, _, knob = axis.partition(".")
    for what, given, known in (("rule", rule, (*governed.ACTING, *RULES)), ("knob", knob, Knobs._fields)):
        if given not in known:
            hint = f"the {what} must be one of {', '.join(known)}{nearest(given, known)}"
            raise InputError(f"{name}: {hint}{f' ({place})' if place else ''}")
    return True


def _plain(value: Any) -> Any:
    """NumPy values and tuples as the Python values that TOML would give."""
    if isinstance(value, np.generic | np.ndarray):
        return value.tolist()
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value


def read_file(path: Path, settings: Settings) -> None:
    """Take the values of a TOML file."""
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


def read_override(text: str, settings: Settings) -> None:
    """Take "key=value" with a TOML value or bare text."""
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
