"""Whatever the bytes, a log gives a documented answer: an InputError of one line, or a tally that adds up."""

import contextlib
import json
import random
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from mwjax import logs
from mwjax.logs import Source, lines
from mwjax.types import InputError

hypothesis = pytest.importorskip("hypothesis")
st = hypothesis.strategies
settings = hypothesis.settings(
    max_examples=60,
    deadline=None,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)

CANONICAL = (
    {"episode": "e1", "time": 5.0, "retrieved": ["a", {"id": 7, "score": 0.5, "propensity": 0.2}], "outcome": 1},
    {"episode": 2, "time": "2024-07-02T10:00:00Z", "retrieved": [{"id": "b", "outcome": "unused"}, "é"], "outcome": 0},
    {"retrieved": [], "candidates": [{"id": "a", "propensity": 0.5, "included": 0}], "outcome": True, "unit": 3},
    {"retrieved": ["a", "a"], "outcome": None, "context": "hard"},
)
ACE = ({"sample_id": "s", "bullet_ids_used": ["a", "b"], "is_correct": True},)
RANDOMISED = (
    {"task_id": 1, "task_type": "x", "candidate_ids": ["a", 2], "propensities": {"a": 0.9, "2": 0.2},
     "included": {"a": 1, "2": 0}, "success": 1},
)  # fmt: skip
MEMEX = ({"id": "m", "success_co_count": 2, "failure_co_count": 1, "unused_co_count": 4},)
SPANS = (
    {"context": {"trace_id": "t"}, "attributes": {"openinference.span.kind": "RETRIEVER",
     "retrieval.documents.0.document.id": "d", "retrieval.documents.0.document.score": 0.5}},
    {"traceId": "u", "attributes": [{"key": "openinference.span.kind", "value": {"stringValue": "LLM"}}]},
)  # fmt: skip


def json_lines(records) -> bytes:
    return b"".join(json.dumps(one).encode() + b"\n" for one in records)


SEEDS = {
    "jsonl": ("log.jsonl", json_lines(CANONICAL)),
    "json": ("log.json", json.dumps([{"ids": ["a", "b"], "ok": 1}, {"ids": "c", "ok": 0}], indent=1).encode()),
    "csv": ("log.csv", b'id,outcome,episode,score,time\n07,1,e,0.5,1\n"x, y",1,e,,2024-07-02\n7,0,f,1,3\n'),
    "ace": ("log.jsonl", json_lines(ACE)),
    "ace_playbook": ("book.txt", b"## HEAD\n[a-1] helpful=3 harmful=0 :: text\n- [b] helpful=0 harmful=2 :: more\n"),
    "remnic": ("m1.md", b"---\ntitle: x\nmw_success: 5\nmw_fail: 2 # note\n---\ntext\n"),
    "remnic_trajectories": (
        "log.json",
        json.dumps({"trajectories": [{"taskId": "t", "factIds": ["f"], "outcome": "fail"}]}).encode(),
    ),
    "memex": ("log.jsonl", json_lines(MEMEX)),
    "openinference": ("log.jsonl", json_lines(SPANS)),
    "randomised": ("log.jsonl", json_lines(RANDOMISED)),
}
OPTIONS = {"json": {"id": "ids", "outcome": "ok"}}
FUZZ = 60  # spoilt files a format
SPECIAL = (
    b"\0", b"\xff", b"\xff\xfe", b"\xef\xbb\xbf", b"\r", b"\n", b"\n\n", b'"', b"{", b"}", b"[", b"]", b",", b"\\ud800",
    b"1e999", b"NaN", b"9" * 400, b"9" * 5000, b"-1", b"null", b"true", b"1.5", b'""', b"[" * 5000, b'{"a":' * 5000,
    b"\x1b[31m", "\u2028".encode(), b"'", b";", b"\t", b"--", b":", b"0",
)  # fmt: skip


def answer(folder: Path, name: str, content: bytes, shape: str) -> logs.Loaded | None:
    """What load says, checked; None where it refused in one line. `count` must say the same."""
    path = folder / name
    path.write_bytes(content)
    join = folder / "outcomes" if shape == "openinference" else None
    if join is not None:
        join.write_bytes(b'{"trace_id": "t", "outcome": 1}\n')
    source = Source(path, format=shape, fields=OPTIONS.get(shape, {}), join=join)
    loaded, refusal = None, ""
    try:
        loaded = logs.load(source)
    except InputError as error:
        refusal = str(error)
    if loaded is None:
        assert refusal.isprintable()
        assert str(path) in refusal or refusal.partition(":")[0] in {"id", "outcome", "episode", "join"}
        with contextlib.suppress(InputError):
            logs.count(source)
        return None
    tally = loaded.tally
    assert tally.read == tally.used + tally.skipped.total()
    assert 0 <= tally.used <= tally.read
    assert all(message.isprintable() and len(message) < len(str(path)) + 400 for message in tally.problems())
    assert all(reason.isprintable() and len(reason) < 60 for reason in tally.skipped)
    if shape == "csv" or loaded.format == "csv":
        return loaded  # rows of one episode that stand apart: `count` takes each part for an episode
    names, shown, evidence, successes, counted = logs.count(source)
    assert (counted.read, +counted.skipped) == (tally.read, +tally.skipped)
    found = loaded.journal or loaded.counters
    if loaded.journal is not None:
        check(loaded.journal)
        assert dict(zip(names, shown.tolist(), strict=True)) == {
            name: int((loaded.journal.memory == index).sum()) for index, name in enumerate(loaded.journal.memories)
        }
    assert (evidence.sum(), successes.sum()) == (found.evidence.sum(), found.successes.sum())
    assert (successes <= evidence).all()
    assert (evidence <= shown).all()
    return loaded


def check(journal: logs.Journal) -> None:
    """The invariants of a journal."""
    size, entries = len(journal.outcome), len(journal.memory)
    assert (journal.start[0], journal.start[-1]) == (0, entries)
    assert (np.diff(journal.start) >= 0).all()
    assert set(journal.memory.tolist()) <= set(range(len(journal.memories)))
    assert len(set(zip(journal.episode.tolist(), journal.memory.tolist(), strict=True))) == entries
    assert set(journal.success.tolist()) | set(journal.outcome.tolist()) <= {-1, 0, 1}
    assert len(set(journal.memories)) == len(journal.memories)
    assert "" not in journal.memories
    units = journal.unit.tolist()
    assert list(dict.fromkeys(units)) == list(range(len(set(units))))
    for values, length in ((journal.score, entries), (journal.propensity, entries), (journal.time, size)):
        assert values is None or (len(values) == length and not np.isinf(values).any())


@pytest.mark.parametrize("shape", [*SEEDS, "parquet", "auto"])
def test_any_bytes_get_an_answer(tmp_path, shape):
    name = SEEDS.get(shape, ("log.parquet" if shape == "parquet" else "log", b""))[0]

    @settings
    @hypothesis.given(st.binary(max_size=200))
    def run(content):
        answer(tmp_path, name, content, shape)

    run()


def mutated(content: bytes, dice: random.Random) -> bytes:
    """Cut, doubled, moved, recoded or spoilt, up to three times."""
    for _ in range(dice.randint(1, 3)):
        content = spoilt(content, dice)
    return content


def spoilt(content: bytes, dice: random.Random) -> bytes:
    a, b = sorted((dice.randint(0, len(content)), dice.randint(0, len(content))))
    rows, special = content.splitlines(keepends=True), dice.choice(SPECIAL)
    ways = (
        lambda: content[:b],
        lambda: content[:a] + content[b:],
        lambda: content[:b] + content[a:],
        lambda: content[:a] + special + content[a:],
        lambda: content[:a] + special + content[b:],
        lambda: content[:a] + special + content[a + 1 :],
        lambda: b"".join(dice.sample(rows, len(rows))),
        lambda: content + dice.choice(list(SEEDS.values()))[1],
        lambda: content.decode(errors="replace").encode(dice.choice(["utf-16", "utf-16-le", "utf-8-sig"])),
        lambda: content.replace(b"\n", b"\r\n"),
    )
    return dice.choice(ways)()


@pytest.mark.parametrize("shape", SEEDS)
def test_spoilt_logs_get_an_answer(tmp_path, shape):
    name, content = SEEDS[shape]
    assert answer(tmp_path, name, content, shape).tally.num_bad == 0
    dice = random.Random(shape)
    for _ in range(FUZZ):
        answer(tmp_path, name, mutated(content, dice), shape)
        answer(tmp_path, name, mutated(content, dice), "auto")


def test_a_spoilt_parquet_file_gets_an_answer(tmp_path):
    parquet.write_table(pyarrow.table({"id": ["a", "b"], "outcome": [1, 0]}), tmp_path / "seed.parquet")
    content, dice = (tmp_path / "seed.parquet").read_bytes(), random.Random(3)
    assert answer(tmp_path, "log.parquet", content, "parquet").tally.used == 2
    for _ in range(FUZZ):
        answer(tmp_path, "log.parquet", mutated(content, dice), "parquet")


def twin(text: str, unit: str | None, opponent: str | None) -> dict:
    """What a journal of these lines holds, by a plain loop over json.loads."""
    verdicts = {"helpful": 1, "not": 0, "unused": -1}
    records = [json.loads(line) for line in text.split("\n")]
    values: list = []
    episodes = []
    for record in records:
        outcome = -1 if record["outcome"] is None else int(record["outcome"])
        entries: dict = {}
        for item in record["retrieved"]:
            item = item if isinstance(item, dict) else {"id": item}
            success = verdicts[item["outcome"]] if item.get("outcome") else outcome
            entries.setdefault(str(item["id"]), (success, item.get("score"), item.get("propensity")))
        value = None if opponent is None else record.get(opponent)
        if value is not None and value not in values:
            values.append(value)
        episodes.append(
            (record.get("time"), outcome, entries, record.get("context"), record.get(unit or "unit"), value)
        )
    if all(one[0] is not None for one in episodes):
        episodes.sort(key=lambda one: one[0])
    units: dict = {}
    number = [units.setdefault(("own", i) if one[4] is None else one[4], len(units)) for i, one in enumerate(episodes)]
    side = []
    for i, one in enumerate(episodes):
        others = [other[5] for j, other in enumerate(episodes) if number[j] == number[i] and j != i]
        paired = len(others) == 1 and None not in (one[5], others[0]) and one[5] != others[0]
        side.append((1 if values.index(one[5]) < values.index(others[0]) else -1) if paired else 0)
    return {
        "outcome": [one[1] for one in episodes],
        "entries": [one[2] for one in episodes],
        "time": [one[0] for one in episodes],
        "context": [one[3] for one in episodes],
        "unit": number,
        "side": side,
    }


def plain(journal: logs.Journal) -> dict:
    """The same of a journal."""
    none = lambda value: None if np.isnan(value) else float(value)
    column = lambda values, index: None if values is None else none(values[index])
    entries = []
    for first, last in zip(journal.start[:-1], journal.start[1:], strict=True):
        entries.append(
            {
                journal.memories[journal.memory[i]]: (
                    int(journal.success[i]), column(journal.score, i), column(journal.propensity, i)
                )
                for i in range(first, last)
            }
        )  # fmt: skip
    size = range(len(journal.outcome))
    context = [None if journal.context is None or journal.context[i] < 0 else journal.context[i] for i in size]
    return {
        "outcome": journal.outcome.tolist(),
        "entries": entries,
        "time": [column(journal.time, i) for i in size],
        "context": [None if one is None else journal.contexts[one] for one in context],
        "unit": journal.unit.tolist(),
        "side": [0] * len(size) if journal.side is None else journal.side.tolist(),
    }


WORDS = st.text(st.characters(codec="utf-8"), min_size=1, max_size=3)
memories = st.fixed_dictionaries(
    {"id": st.integers(-9, 9) | WORDS},
    optional={
        "score": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "propensity": st.none() | st.floats(1e-6, 1),
        "outcome": st.sampled_from(["helpful", "not", "unused", None]),
    },
)
records = st.fixed_dictionaries(
    {
        "retrieved": st.lists(
            WORDS | memories,
            min_size=1,
            max_size=4,
            unique_by=lambda item: str(item["id"] if isinstance(item, dict) else item),
        ),
        "outcome": st.sampled_from([0, 1, True, False, None, 1.0]),
    },
    optional={
        "time": st.integers(0, 4),
        "context": st.sampled_from(["home", "away", "late"]),
        "game": st.integers(0, 3),
        "more": st.text(st.characters(codec="utf-8")),
    },
)
games = st.lists(records, min_size=1, max_size=8) | st.lists(
    records.map(lambda one: {**one, "time": one.get("time", 2)}), min_size=1, max_size=8
)


@settings
@hypothesis.given(games, st.sampled_from([(None, None), ("game", "context"), ("time", "context")]), st.booleans())
def test_a_journal_equals_a_plain_loop(tmp_path_factory, found, named, ascii_only):
    fields = {name: value for name, value in zip(("unit", "opponent"), named, strict=True) if value}
    text = "\n".join(json.dumps(one, ensure_ascii=ascii_only) for one in found)
    path = tmp_path_factory.getbasetemp() / "round.jsonl"
    path.write_bytes(text.encode())
    loaded = logs.load(Source(path, format="jsonl", fields=fields))
    assert loaded.tally.num_bad == 0
    assert plain(loaded.journal) == twin(text, *named)


def test_blocks_of_any_size_give_the_same(tmp_path, monkeypatch):
    dice = random.Random(4)
    rows = [json.dumps(dice.choice(CANONICAL)) for _ in range(200)]
    rows[17], rows[18], rows[90] = "", "{", "é" * 50
    path = tmp_path / "log.jsonl"
    path.write_bytes("\n".join(rows).encode())
    whole = logs.load(Source(path))
    for size in (1, 7, 64, 1000):
        monkeypatch.setattr(lines, "BLOCK_BYTES", size)
        found = logs.load(Source(path))
        assert found.tally == whole.tally
        for one, other in zip(found.journal, whole.journal, strict=True):
            np.testing.assert_equal(one, other)


def test_progress_is_told_to_the_end(tmp_path):
    for shape, (name, content) in SEEDS.items():
        if shape in ("jsonl", "csv", "ace"):
            seen = []
            path = tmp_path / name
            path.write_bytes(content)
            logs.load(Source(path, format=shape), progress=lambda done, total, seen=seen: seen.append((done, total)))
            assert seen[-1] == (len(content), len(content))
