"""Memories, topics and their vectors: what is read from a TOML of texts and the .npz beside it.

[[memories]]
id = "prague"
text = "Prague is the capital of Czechoslovakia."
kind = "stale"                   # any word; stale, specialist, hitchhiker, control, companion are drawn in colour

[[topics]]
name = "country"
answers = ["czechoslovakia", "czech republic"]   # in both phases; one text stands for both; lists: alternatives
queries = ["Which country is Prague in?"]
frequency = [2.0, 1.0]           # of the topic in both phases, shared by its queries; optional, 1 without
group = "europe"                 # optional: task types, in order of appearance, where num_contexts counts them
"""

from __future__ import annotations

import hashlib
import re
import tomllib
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mwjax.checks import nearest
from mwjax.types import InputError

PLACE = Path(__file__).parent
KINDS = ("stale", "specialist", "hitchhiker", "control", "companion")
"""Kinds of memories that reports and figures know."""
PHASES = 2
MEMORY = {"id", "text", "kind"}
TOPIC = {"name", "answers", "queries", "frequency", "group"}


@dataclass(frozen=True)
class Topic:
    """What is asked, and which keywords answer it, phase by phase."""

    name: str
    answers: tuple[tuple[str, ...], ...]  # [phase][alternative]
    queries: tuple[str, ...]
    frequency: tuple[float, ...]  # [phase], relative
    group: str


@dataclass(frozen=True)
class Corpus:
    """Memories and topics; `model` is the folder of the model that new vectors may be made by."""

    path: Path
    ids: tuple[str, ...]
    memories: tuple[str, ...]
    kinds: tuple[str, ...]
    topics: tuple[Topic, ...]
    model: str | None = None

    @property
    def queries(self) -> tuple[str, ...]:
        """All queries, topic after topic."""
        return tuple(query for topic in self.topics for query in topic.queries)

    @property
    def groups(self) -> tuple[str, ...]:
        """Task types in the order of appearance."""
        return tuple(dict.fromkeys(topic.group for topic in self.topics))

    def texts(self) -> list[str]:
        """All that has a vector, each once."""
        return list(dict.fromkeys((*self.memories, *self.queries)))


def built_in() -> list[str]:
    """Names of the texts that come with the package."""
    return sorted(path.stem for path in PLACE.glob("*.toml"))


def find(name: str, near: Path | None = None) -> Path:
    """The TOML of built-in texts, or a path: as it stands, or in the folder `near`."""
    if name in built_in():
        return PLACE / f"{name}.toml"
    places = [Path(name), *([near / name] if near else [])]
    found = next((place for place in places if place.is_file()), None)
    if found is None:
        choice = f"must be one of {', '.join(built_in())}, or a TOML file{nearest(name, built_in())}"
        raise InputError(f"texts = {name!r}: {choice}")
    return found


def read(path: Path) -> Corpus:
    """Read and check a TOML of texts; raises InputError with file, entry, field and range."""
    try:
        table = tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: is not TOML: {error}") from error
    _known(path, "the file", table, {"memories", "topics", "model"})
    memories = [_memory(path, i, one) for i, one in enumerate(_tables(path, table, "memories"))]
    topics = [_topic(path, i, one) for i, one in enumerate(_tables(path, table, "topics"))]
    ids = [one[0] for one in memories]
    twice = [name for name in ids if ids.count(name) > 1]
    if twice:
        raise InputError(f"{path}: memories: the id {twice[0]!r} is given twice")
    for phase in range(PHASES):
        if not sum(topic.frequency[phase] for topic in topics) > 0:
            raise InputError(f"{path}: topics: all frequencies of phase {phase + 1} are 0")
    model = _text(path, "the file", table, "model") if "model" in table else None
    return Corpus(
        path,
        ids=tuple(ids),
        memories=tuple(one[1] for one in memories),
        kinds=tuple(one[2] for one in memories),
        topics=tuple(topics),
        model=model,
    )


def _tables(path: Path, table: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = table.get(name)
    if not isinstance(found, list) or not found or not all(isinstance(one, dict) for one in found):
        raise InputError(f"{path}: needs one [[{name}]] or more")
    return found


def _known(path: Path, place: str, table: dict[str, Any], names: set[str]) -> None:
    for name in table:
        if name not in names:
            choice = f"must be one of {', '.join(sorted(names))}{nearest(name, sorted(names))}"
            raise InputError(f"{path}: {place}: there is no field {name!r}; {choice}")


def _text(path: Path, place: str, table: dict[str, Any], name: str, usual: str | None = None) -> str:
    value = table.get(name, usual)
    if not isinstance(value, str) or not value.strip():
        raise InputError(f"{path}: {place}: {name} = {value!r}, must be a text")
    return value


def _memory(path: Path, i: int, table: dict[str, Any]) -> tuple[str, str, str]:
    place = f"memories[{i}]"
    _known(path, place, table, MEMORY)
    return (
        _text(path, place, table, "id"),
        _text(path, place, table, "text"),
        _text(path, place, table, "kind", "control"),
    )


def _topic(path: Path, i: int, table: dict[str, Any]) -> Topic:
    place = f"topics[{i}]"
    _known(path, place, table, TOPIC)
    answers: Any = table.get("answers")
    queries: Any = table.get("queries")
    frequency: Any = table.get("frequency", 1.0)
    phases = [answers] * PHASES if isinstance(answers, str) else answers
    phases = [[one] if isinstance(one, str) else one for one in phases] if isinstance(phases, list) else []
    if len(phases) != PHASES or not all(_texts(one) for one in phases):
        raise InputError(f"{path}: {place}: answers = {answers!r}, must be a text, or a list of {PHASES}: one a phase")
    if not _texts(queries):
        raise InputError(f"{path}: {place}: queries = {queries!r}, must be a list of texts")
    shares = frequency if isinstance(frequency, list) else [frequency] * PHASES
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) and 0 <= one < 1e9 for one in shares)
    if len(shares) != PHASES or not numbers:
        raise InputError(
            f"{path}: {place}: frequency = {frequency!r}, must be a number from 0, or {PHASES}: one a phase"
        )
    return Topic(
        _text(path, place, table, "name", f"topic {i + 1}"),
        tuple(tuple(one) for one in phases),
        tuple(queries),
        tuple(float(one) for one in shares),
        _text(path, place, table, "group", "all"),
    )


def _texts(values: Any) -> bool:
    return isinstance(values, list) and bool(values) and all(isinstance(one, str) and one.strip() for one in values)


def holds(text: str, answers: tuple[str, ...]) -> bool:
    """Does a text hold one of the answers as whole words? "slovakia" does not lie in "Czechoslovakia"."""
    return any(re.search(rf"(?<!\w){re.escape(one.casefold())}(?!\w)", text.casefold()) for one in answers)


def vectors(corpus: Corpus) -> dict[str, np.ndarray]:
    """Unit vectors by text, float64: out of the .npz beside the TOML, new ones by the model that the TOML names."""
    from mwjax.texts.embed import embed

    place, known = corpus.path.with_suffix(".npz"), {}
    if place.is_file():
        try:
            with np.load(place, allow_pickle=False) as file:
                table = np.asarray(file["vector"], np.float64)
                known = dict(zip(file["text"].tolist(), table, strict=True))
        except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
            raise InputError(f"{place}: must hold text and vector, as `python -m mwjax.texts.embed` writes") from error
    lacking = [text for text in corpus.texts() if text not in known]
    if lacking and corpus.model is None:
        what = f"has no vectors of {len(lacking)} texts, such as {lacking[0]!r}" if known else "does not exist"
        hint = f"`python -m mwjax.texts.embed {corpus.path} --model FOLDER` makes them (extra `text`)"
        raise InputError(f"{place}: {what}; {hint}, or name a model folder in the TOML as `model`")
    if lacking:
        known |= dict(zip(lacking, np.asarray(embed(lacking, str(corpus.model)), np.float64), strict=True))
    return {text: _unit(place, text, known[text]) for text in corpus.texts()}


def _unit(place: Path, text: str, vector: np.ndarray) -> np.ndarray:
    length = float(np.sqrt(np.square(vector).sum()))
    if not np.isfinite(length) or length == 0:
        raise InputError(f"{place}: the vector of {text!r} has length {length:g}, must be above 0")
    return vector / length


def digest(corpus: Corpus) -> str:
    """SHA-256, 16 digits, of the texts and their vectors: other texts are another experiment."""
    found = hashlib.sha256(corpus.path.read_bytes())
    place = corpus.path.with_suffix(".npz")
    found.update(place.read_bytes() if place.is_file() else b"")
    return found.hexdigest()[:16]
