"""Logs of other tools: each format gives the episodes, or the counters, of a plain reading."""

import datetime
import decimal
import json
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import parquet

from mwjax import logs
from mwjax.logs import Source
from mwjax.types import InputError


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text)
    return path


def episodes(loaded: logs.Loaded) -> list[tuple[dict[str, int], int]]:
    """({memory: success}, outcome) of every episode."""
    found = loaded.journal
    cut = lambda values: np.split(values, found.start[1:-1])
    return [
        ({found.memories[m]: int(s) for m, s in zip(memory, success, strict=True)}, int(outcome))
        for memory, success, outcome in zip(cut(found.memory), cut(found.success), found.outcome, strict=True)
    ]


CLICKS = "item,click,request,p\n07,1,a,0.5\n7,0,b,\nx,true,a,0.25\ny,,c,1\n"
FIELDS = {"id": "item", "outcome": "click", "episode": "request", "propensity": "p"}


def test_rows_of_a_table_gather_by_episode(tmp_path):
    loaded = logs.load(Source(write(tmp_path, "log.csv", CLICKS), fields=FIELDS))
    assert episodes(loaded) == [({"07": 1, "x": 1}, 1), ({"7": 0}, 0), ({"y": -1}, -1)]
    np.testing.assert_array_equal(loaded.journal.propensity, [0.5, 0.25, np.nan, 1])
    assert (loaded.tally.read, loaded.tally.used) == (4, 3)


BAD_ROWS = {
    ",1,a,0.5": "item: missing; must be text or a number",
    "z,2,d,0.5": 'click: "2"; must be 1, 0, true, false or null (not known)',
    "z,0,a,0.5": 'click: "0"; must be the same in all rows of an episode',
    "z,1,,0.5": "request: missing; must be text or a number",
    "z,1,d,0": 'p: "0"; must be a number above 0, up to 1',
    "z,1,d,half": 'p: "half"; must be a number above 0, up to 1',
    "z,1": "row: 2 cells; must be 4",
}


@pytest.mark.parametrize("row", BAD_ROWS)
def test_a_bad_row_is_told(tmp_path, row):
    path = write(tmp_path, "log.csv", f"{CLICKS}{row}\nlast,1,e,0.5\n")
    loaded = logs.load(Source(path, fields=FIELDS))
    assert loaded.tally.problems() == (f"{path}:6: {BAD_ROWS[row]}",)
    assert loaded.tally.read == loaded.tally.used + loaded.tally.skipped.total() == 6
    assert loaded.journal.memories[-1] == "last"
    with pytest.raises(InputError, match=":6: "):
        logs.load(Source(path, fields=FIELDS, strict=True))


TABLES = {
    "": "is empty; must have a header and rows",
    "a,b\n1,2\n": "id: 'id'; must be one of the columns of .*: a, b",
    "id,id,outcome\n1,2,1\n": "two columns are called 'id'",
    "id,outcome\n\udcff,1\n": "not UTF-8 at byte 11; must be UTF-8 text",
}


@pytest.mark.parametrize("text", TABLES)
def test_a_table_that_cannot_be_read(tmp_path, text):
    path = tmp_path / "log.csv"
    path.write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(InputError, match=TABLES[text]) as caught:
        logs.load(Source(path))
    assert str(caught.value).isprintable()


def table(rng: np.random.Generator, episodes: int) -> pyarrow.Table:
    size = rng.integers(1, 6, episodes)
    outcome = rng.integers(0, 2, episodes)
    id_ = np.concatenate([rng.choice(30, k, replace=False) for k in size])
    return pyarrow.table({"id": id_, "outcome": outcome.repeat(size), "episode": np.arange(episodes).repeat(size)})


def test_parquet_csv_and_json_lines_agree(tmp_path, monkeypatch):
    monkeypatch.setattr("mwjax.logs.rows.BATCH_ROWS", 64)
    rows = table(np.random.default_rng(1), 300)
    parquet.write_table(rows, tmp_path / "log.parquet")
    pyarrow.csv.write_csv(rows, tmp_path / "log.csv")
    sets: dict[int, dict] = {}
    for row in rows.to_pylist():
        one = sets.setdefault(row["episode"], {"retrieved": [], "outcome": row["outcome"]})
        one["retrieved"].append(row["id"])
    path = write(tmp_path, "log.jsonl", "".join(json.dumps(one) + "\n" for one in sets.values()))
    expected = logs.load(Source(path))
    for name in ("log.parquet", "log.csv"):
        found = logs.load(Source(tmp_path / name))
        assert episodes(found) == episodes(expected)
        names, _, evidence, successes, _ = logs.count(Source(tmp_path / name))
        assert (names, evidence.tolist()) == (expected.journal.memories, expected.journal.evidence.tolist())
        assert successes.tolist() == expected.journal.successes.tolist()


DAY, NOON = datetime.date(2024, 7, 2), datetime.datetime(2024, 7, 2, 12, tzinfo=datetime.UTC)
COLUMNS = {
    "dates": ({"time": pyarrow.array([DAY, DAY])}, "time", [1719878400.0, 1719878400.0]),
    "times": ({"time": pyarrow.array([None, NOON], pyarrow.timestamp("ns", "UTC"))}, "time", [np.nan, 1719921600.0]),
    "coded": ({"time": pyarrow.array(["3", "2024-07-02"]).dictionary_encode()}, "time", [3.0, 1719878400.0]),
    "decimal": ({"outcome": pyarrow.array([decimal.Decimal(1), None])}, "outcome", [1, -1]),
    "truth": ({"outcome": pyarrow.array([True, False])}, "outcome", [1, 0]),
    "nan": ({"outcome": pyarrow.array([1.0, np.nan])}, "outcome", [1, -1]),
    "null": ({"outcome": pyarrow.nulls(2)}, "outcome", [-1, -1]),
    "view": ({"id": pyarrow.array(["a", "b"], pyarrow.string_view())}, "memory", [0, 1]),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_of_parquet_keep_their_meaning(tmp_path, kind):
    columns, name, expected = COLUMNS[kind]
    parquet.write_table(pyarrow.table({"id": ["a", "b"], "outcome": [1, 0]} | columns), tmp_path / "log.parquet")
    loaded = logs.load(Source(tmp_path / "log.parquet"))
    assert loaded.tally.problems() == ()
    np.testing.assert_array_equal(getattr(loaded.journal, name), expected)


@pytest.mark.parametrize("column", ["id", "outcome", "episode", "score", "time", "unit"])
@pytest.mark.parametrize("cells", [[[1], [0]], [{"x": 1}, {"x": 0}], [b"a", b"b"]], ids=["lists", "objects", "bytes"])
def test_columns_that_hold_no_single_values_are_refused(tmp_path, column, cells):
    parquet.write_table(
        pyarrow.table({"id": ["a", "b"], "outcome": [1, 0]} | {column: cells}), tmp_path / "log.parquet"
    )
    for read in (logs.load, logs.count):
        with pytest.raises(InputError, match=rf"log\.parquet: column '{column}': .*; must hold text, numbers"):
            read(Source(tmp_path / "log.parquet"))


def test_a_time_that_is_none_is_told(tmp_path):
    rows = pyarrow.table({"id": ["a", "b", "c"], "outcome": [1, 0, 1], "time": [1.0, np.inf, np.nan]})
    parquet.write_table(rows, tmp_path / "log.parquet")
    loaded = logs.load(Source(tmp_path / "log.parquet"))
    assert loaded.tally.problems() == (
        f"{tmp_path / 'log.parquet'}:2: time: inf; must be a number of seconds or ISO 8601 text",
    )
    np.testing.assert_array_equal(loaded.journal.time, [1, np.nan])


def test_rows_that_stand_apart_are_one_episode(tmp_path):
    rows = table(np.random.default_rng(2), 200)
    parquet.write_table(rows.take(np.random.default_rng(3).permutation(rows.num_rows)), tmp_path / "log.parquet")
    parquet.write_table(rows, tmp_path / "whole.parquet")
    key = lambda one: sorted((sorted(given.items()), outcome) for given, outcome in one)
    apart, whole = (logs.load(Source(tmp_path / f"{name}.parquet")) for name in ("log", "whole"))
    assert key(episodes(apart)) == key(episodes(whole))


def test_json_by_paths(tmp_path):
    document = {
        "runs": [{"hits": [{"k": 7, "s": 0.5}, {"k": "b", "s": 1}], "grade": "good"}, {"hits": [], "grade": "bad"}]
    }
    path = write(tmp_path, "log.json", json.dumps(document))
    fields = {"records": "runs", "id": "hits[].k", "score": "hits[].s", "outcome": "grade", "success": "good"}
    loaded = logs.load(Source(path, format="json", fields=fields))
    assert episodes(loaded) == [({"7": 1, "b": 1}, 1)]
    assert loaded.journal.score.tolist() == [0.5, 1]
    assert +loaded.tally.skipped == {"no memory retrieved": 1}


def test_outcomes_from_a_second_file(tmp_path):
    path = write(tmp_path, "log.jsonl", '{"episode": 1, "retrieved": ["a"]}\n{"episode": 2, "retrieved": ["b"]}\n')
    other = write(tmp_path, "outcomes.csv", "task,ok\n2,1\n1,0\n")
    fields = {"join_episode": "task", "outcome": "ok"}
    assert episodes(logs.load(Source(path, join=other, fields=fields))) == [({"a": 0}, 0), ({"b": 1}, 1)]


ACE = [
    {"sample_id": "s1", "bullet_ids_used": ["ctx-1", "ctx-2"], "is_correct": True},
    {"sample_id": "s2", "bullet_ids_used": [], "is_correct": False},
    {"sample_id": "s3", "bullet_ids_used": ["ctx-2"], "is_correct": None},
]
REMNIC = {
    "trajectories": [
        {"taskId": "t1", "factIds": ["f1", "f2"], "outcome": "success"},
        {"taskId": "t2", "factIds": ["f1"], "outcome": "failure"},
    ]
}
RANDOMISED = {
    "task_id": 1, "task_type": "hard", "candidate_ids": ["a", "b"], "propensities": {"a": 0.9, "b": 0.2},
    "included": {"a": 1, "b": 0}, "success": True,
}  # fmt: skip
SPAN = {
    "context": {"trace_id": "t1"},
    "attributes": {
        "openinference.span.kind": "RETRIEVER",
        "retrieval.documents.0.document.id": "d1", "retrieval.documents.0.document.score": 0.9,
        "retrieval.documents.1.document.id": "d2",
    },
}  # fmt: skip


def test_logs_of_tools_are_found_by_their_look(tmp_path):
    ace = write(tmp_path, "ace.jsonl", "".join(json.dumps(one) + "\n" for one in ACE))
    loaded = logs.load(Source(ace))
    assert (loaded.format, episodes(loaded)) == ("ace", [({"ctx-1": 1, "ctx-2": 1}, 1), ({"ctx-2": -1}, -1)])
    remnic = logs.load(Source(write(tmp_path, "remnic.json", json.dumps(REMNIC))))
    assert episodes(remnic) == [({"f1": 1, "f2": 1}, 1), ({"f1": 0}, 0)]
    assert remnic.format == "remnic_trajectories"
    randomised = logs.load(Source(write(tmp_path, "random.jsonl", json.dumps(RANDOMISED) + "\n")))
    assert episodes(randomised) == [({"a": 1}, 1)]
    assert randomised.journal.candidates.propensity.tolist() == [0.9, 0.2]
    assert randomised.journal.candidates.included.tolist() == [True, False]


def test_retriever_spans_join_their_outcomes(tmp_path):
    lines = json.dumps(SPAN) + "\n" + json.dumps({"attributes": {"openinference.span.kind": "LLM"}}) + "\n"
    spans = write(tmp_path, "spans.jsonl", lines)
    scores = write(tmp_path, "scores.jsonl", '{"trace_id": "t1", "correct": true}\n')
    loaded = logs.load(Source(spans, join=scores, fields={"outcome": "correct"}))
    assert episodes(loaded) == [({"d1": 1, "d2": 1}, 1)]
    assert +loaded.tally.skipped == {"not a retriever span": 1}
    with pytest.raises(InputError, match="join: missing; must be a second file with the outcomes"):
        logs.load(Source(spans))


def test_counters_only(tmp_path):
    playbook = "## STRATEGIES\n[ctx-1] helpful=3 harmful=1 :: check units\n[ctx-2] helpful=0 harmful=0 :: x\n"
    found = logs.load(Source(write(tmp_path, "playbook.txt", playbook))).counters
    assert (found.names, found.evidence.tolist(), found.successes.tolist()) == (("ctx-1", "ctx-2"), [4, 0], [3, 0])
    folder = tmp_path / "memories"
    folder.mkdir()
    write(folder, "m1.md", "---\nmw_success: 5\nmw_fail: 2\n---\ntext\n")
    write(folder, "m2.md", "---\ntitle: x\n---\n")
    found = logs.load(Source(folder)).counters
    assert (found.names, found.evidence.tolist(), found.successes.tolist()) == (("m1", "m2"), [7, 0], [5, 0])
    row = {"id": 3, "success_co_count": 2, "failure_co_count": 1, "unused_co_count": 4, "last_outcome_at": None}
    found = logs.load(Source(write(tmp_path, "memex.jsonl", json.dumps(row) + "\n"))).counters
    assert (found.names, found.shown.tolist(), found.evidence.tolist()) == (("3",), [7], [3])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"format": "xml"}, "format: 'xml'; must be one of auto, jsonl"),
        ({"fields": {"colour": "x"}}, "field: 'colour'; must be one of id"),
        ({"fields": {"failure": "no"}}, "failure: 'no'; must come with success"),
        ({"fields": {"id": "a[", "outcome": "b"}, "format": "json"}, r"id: 'a\['; must be a JMESPath"),
        ({"fields": {"success": ">=x"}}, "success: '>=x'; must be values between commas or a comparison"),
    ],
)
def test_options_that_cannot_be(tmp_path, options, message):
    path = write(tmp_path, "log.jsonl", '{"retrieved": ["a"], "outcome": 1}\n')
    with pytest.raises(InputError, match=message):
        logs.load(Source(path, **options))


def test_no_path_or_expression_in_a_log_is_followed(tmp_path):
    secret = write(tmp_path, "secret", "SECRET")
    ids = [str(secret), f"file://{secret}", "__import__('os').system('touch hacked')", "{{7*7}}", "$(touch hacked)"]
    loaded = logs.load(Source(write(tmp_path, "log.jsonl", json.dumps({"retrieved": ids, "outcome": 1}) + "\n")))
    assert list(loaded.journal.memories) == ids
    assert not (tmp_path / "hacked").exists()
    assert not Path("hacked").exists()
