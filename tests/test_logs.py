"""The canonical log: what is read, what is refused and in which words, and that nothing is lost on the way."""

import json
import math
import re
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from mwjax import logs
from mwjax.logs import Journal, Source, Tally, lines
from mwjax.types import InputError

IDS = "must be text or an integer, or an object with an id"
RETRIEVED = "must be a list of 1 to 255 ids, or objects with an id"
OUTCOME = "must be 1, 0, true, false or null (not known)"
VERDICT = "must be helpful, not, unused or null (then the episode's)"
NAME = "must be text or an integer"
TIME = "must be a number of seconds or ISO 8601 text"
PROPENSITY = "must be a number above 0, up to 1"

BAD_LINES = {
    b"[]": "record: a list of 0; must be an object",
    b"[{}, {}]": "record: a list of 2; must be an object",
    b"null": "record: null; must be an object",
    b'"text"': 'record: "text"; must be an object',
    b"{}": f"retrieved: missing; {RETRIEVED}",
    b'{"outcome": 1}': f"retrieved: missing; {RETRIEVED}",
    b'{"retrieved": [], "outcome": 1}': f"retrieved: a list of 0; {RETRIEVED}",
    b'{"retrieved": "a", "outcome": 1}': f'retrieved: "a"; {RETRIEVED}',
    b'{"retrieved": null, "outcome": 1}': f"retrieved: null; {RETRIEVED}",
    b'{"retrieved": {"id": "a"}, "outcome": 1}': f"retrieved: an object; {RETRIEVED}",
    b'{"retrieved": ["a", ""], "outcome": 1}': f'retrieved[1]: ""; {IDS}',
    b'{"retrieved": ["a", null], "outcome": 1}': f"retrieved[1]: null; {IDS}",
    b'{"retrieved": ["a", true], "outcome": 1}': f"retrieved[1]: true; {IDS}",
    b'{"retrieved": ["a", 1.5], "outcome": 1}': f"retrieved[1]: 1.5; {IDS}",
    b'{"retrieved": ["a", 7.0], "outcome": 1}': f"retrieved[1]: 7.0; {IDS}",
    b'{"retrieved": ["a", ["b"]], "outcome": 1}': f"retrieved[1]: a list of 1; {IDS}",
    b'{"retrieved": [{"score": 1}], "outcome": 1}': f"retrieved[0].id: missing; {NAME}",
    b'{"retrieved": [{"id": null}], "outcome": 1}': f"retrieved[0].id: null; {NAME}",
    b'{"retrieved": [{"id": false}], "outcome": 1}': f"retrieved[0].id: false; {NAME}",
    b'{"retrieved": [{"id": ""}], "outcome": 1}': f'retrieved[0].id: ""; {NAME}',
    b'{"retrieved": [{"id": "a", "score": "high"}], "outcome": 1}': 'retrieved[0].score: "high"; must be a number',
    b'{"retrieved": [{"id": "a", "score": true}], "outcome": 1}': "retrieved[0].score: true; must be a number",
    b'{"retrieved": [{"id": "a", "propensity": 0}], "outcome": 1}': f"retrieved[0].propensity: 0; {PROPENSITY}",
    b'{"retrieved": [{"id": "a", "propensity": 1.5}], "outcome": 1}': f"retrieved[0].propensity: 1.5; {PROPENSITY}",
    b'{"retrieved": ["b", {"id": "a", "outcome": 1}], "outcome": 1}': f"retrieved[1].outcome: 1; {VERDICT}",
    b'{"retrieved": [{"id": "a", "outcome": "good"}], "outcome": 1}': f'retrieved[0].outcome: "good"; {VERDICT}',
    b'{"retrieved": ["a", {"id": "a", "outcome": "not"}], "outcome": 1}': (
        'retrieved[1]: "a" again, with another outcome; must be the same in both'
    ),
    b'{"retrieved": ["a"]}': f"outcome: missing; {OUTCOME}",
    b'{"retrieved": ["a"], "outcome": 2}': f"outcome: 2; {OUTCOME}",
    b'{"retrieved": ["a"], "outcome": -1}': f"outcome: -1; {OUTCOME}",
    b'{"retrieved": ["a"], "outcome": 0.5}': f"outcome: 0.5; {OUTCOME}",
    b'{"retrieved": ["a"], "outcome": "yes"}': f'outcome: "yes"; {OUTCOME}',
    b'{"retrieved": ["a"], "outcome": "1"}': f'outcome: "1"; {OUTCOME}',
    b'{"retrieved": ["a"], "outcome": [1]}': f"outcome: a list of 1; {OUTCOME}",
    b'{"retrieved": ["a"], "outcome": 1, "time": "yesterday"}': f'time: "yesterday"; {TIME}',
    b'{"retrieved": ["a"], "outcome": 1, "time": true}': f"time: true; {TIME}",
    b'{"retrieved": ["a"], "outcome": 1, "time": 1' + b"0" * 400 + b"}": f"time: an enormous integer; {TIME}",
    b'{"retrieved": ["a"], "outcome": 1, "context": ["hard"]}': f"context: a list of 1; {NAME}",
    b'{"retrieved": ["a"], "outcome": 1, "context": 1.5}': f"context: 1.5; {NAME}",
    b'{"retrieved": ["a"], "outcome": 1, "episode": {}}': f"episode: an object; {NAME}",
}

NOT_JSON = {
    "cut": b'{"retrieved": ["a"], "outc',
    "two objects": b'{"retrieved": ["a"], "outcome": 1} {}',
    "Latin-1": b'{"retrieved": ["a\xe9"], "outcome": 1}',
    "gzip": b"\x1f\x8b\x08\x00",
    "deep list": b'{"retrieved": ["a"], "outcome": 1, "x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "deep object": b'{"x": ' * 100_000,
    "no number": b'{"retrieved": ["a"], "outcome": NaN}',
    "beyond numbers": b'{"retrieved": [{"id": "a", "score": 1e999}], "outcome": 1}',
    "NUL": b'{"retrieved": ["a\0"], "outcome": 1}',
    "half of a surrogate pair": b'{"retrieved": ["\\ud800"], "outcome": 1}',
}


def line(*retrieved, outcome=1, **fields) -> str:
    return json.dumps({"retrieved": list(retrieved), "outcome": outcome, **fields})


def write(folder: Path, *lines: str | bytes, end: bytes = b"\n") -> Path:
    path = folder / "log.jsonl"
    path.write_bytes(b"".join((text.encode() if isinstance(text, str) else text) + end for text in lines))
    return path


def read_all(path: Path, **options) -> tuple[Tally, Journal]:
    loaded = logs.load(Source(path, format="jsonl", **options))
    return loaded.tally, loaded.journal


def sets(journal: Journal, values: np.ndarray) -> list[list]:
    """Values of entries, a list an episode."""
    return [part.tolist() for part in np.split(values, journal.start[1:-1])]


@pytest.mark.parametrize("text", BAD_LINES, ids=[bad.split(";")[0][:60] for bad in BAD_LINES.values()])
def test_a_bad_line_gets_its_message(tmp_path, text):
    path = write(tmp_path, line("a"), text)
    log, _ = read_all(path)
    assert log.problems() == (f"{path}:2: {BAD_LINES[text]}",)
    assert (log.read, log.used, log.skipped.total()) == (2, 1, 1)
    with pytest.raises(InputError, match=r"log\.jsonl:2: ") as caught:
        read_all(path, strict=True)
    assert str(caught.value) == log.problems()[0]


@pytest.mark.parametrize("text", NOT_JSON.values(), ids=NOT_JSON)
def test_what_is_not_json_is_said_to_be(tmp_path, text):
    log, found = read_all(write(tmp_path, line("a"), text, line("b")))
    assert re.fullmatch(rf"{log.path}:2: [a-z0-9\[\].]+: [^\n]+", log.problems()[0])
    assert log.problems()[0].isprintable()
    assert (found.memories, log.skipped.total()) == (("a", "b"), 1)


def test_reasons_name_the_field_and_messages_stop_at_the_limit(tmp_path):
    bad = [line("a", {"id": "b", "score": "x"}), line({"id": "b", "score": "x"}), line("a", outcome=3)]
    log, _ = read_all(write(tmp_path, *bad * 10, line("a")))
    assert +log.skipped == {"bad retrieved.score": 20, "bad outcome": 10}
    assert len(log.problems()) == logs.MESSAGE_LIMIT + 1
    assert log.problems()[-1] == f"{log.path}: 10 more bad lines"


def test_a_bad_line_leaves_no_trace(tmp_path):
    _, found = read_all(
        write(tmp_path, line("ghost", outcome=2), line("a", context="hard"), line("b", None, context="x"))
    )
    assert (found.memories, found.contexts) == (("a",), ("hard",))


def test_blank_lines_are_counted_without_a_message(tmp_path):
    log, _ = read_all(write(tmp_path, "", line("a"), "   ", "\r"), strict=True)
    assert (log.read, log.used, +log.skipped, log.problems()) == (4, 1, {"blank line": 3}, ())


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\n \n"])
def test_a_file_without_episodes_is_empty(tmp_path, content):
    log, found = read_all(write(tmp_path, content, end=b""))
    assert (len(found.outcome), log.used) == (0, 0)


WHOLE_FILES = {
    "UTF-16": '{"retrieved": ["a"], "outcome": 1}'.encode("utf-16"),
    "gzip": b"\x1f\x8b\x08\x00",
    "Parquet": b"PAR1....",
}


@pytest.mark.parametrize("content", WHOLE_FILES.values(), ids=WHOLE_FILES)
def test_a_file_that_is_no_text_is_refused_in_one_line(tmp_path, content):
    with pytest.raises(InputError, match=r"log\.jsonl: .*; must be") as caught:
        read_all(write(tmp_path, content, end=b""))
    assert str(caught.value).isprintable()


def test_byte_order_mark_carriage_returns_and_a_missing_last_newline_are_fine(tmp_path):
    text = "\ufeff" + line("a") + "\r\n" + line("b")
    log, found = read_all(write(tmp_path, text, end=b""))
    assert (log.used, log.problems()) == (2, ())
    assert sets(found, found.memory) == [[0], [1]]


def test_a_truncated_last_line_is_reported(tmp_path):
    log, _ = read_all(write(tmp_path, line("a") + "\n" + line("b")[:12], end=b""))
    assert log.problems() == (f"{log.path}:2: record: not JSON: cut short",)
    assert log.used == 1


def test_a_line_over_the_limit_is_skipped_whole(tmp_path, monkeypatch):
    monkeypatch.setattr(lines, "MAX_LINE_BYTES", 100)
    log, found = read_all(write(tmp_path, line("a"), line("b" * 1000), line("c")))
    assert log.problems() == (f"{log.path}:2: record: longer than 100 bytes",)
    assert (log.read, found.memories) == (3, ("a", "c"))


def test_too_many_memories(tmp_path):
    log, found = read_all(write(tmp_path, line(*range(256)), line(*range(255), 0)))
    assert log.problems() == (f"{log.path}:1: retrieved: 256 memories; {RETRIEVED}",)
    assert np.diff(found.start).tolist() == [255]


@pytest.mark.parametrize("name", ["absent.jsonl", "."])
def test_a_file_that_cannot_be_read(tmp_path, name):
    with pytest.raises(InputError, match=r": cannot be read \((No such file|Is a directory)"):
        read_all(tmp_path / name)


def test_ids_are_text_and_count_once(tmp_path):
    _, found = read_all(write(tmp_path, line(7, "07", "7", "a", {"id": 7}, -7, "a"), line("日本", "a")))
    assert found.memories == ("7", "07", "a", "-7", "日本")
    assert sets(found, found.memory) == [[0, 1, 2, 3], [4, 2]]


def test_outcomes_of_memories_go_before_that_of_the_episode(tmp_path):
    own = [{"id": "a", "outcome": "helpful"}, {"id": "b", "outcome": "not"}, {"id": "c", "outcome": "unused"}, "d"]
    log, found = read_all(write(tmp_path, *(line(*own, outcome=outcome) for outcome in (1, 0, None)), line("d")))
    assert sets(found, found.success) == [[1, 0, -1, 1], [1, 0, -1, 0], [1, 0, -1, -1], [1]]
    assert found.outcome.tolist() == [1, 0, -1, 1]
    assert log.used == 4


def test_episodes_without_evidence_are_shown_and_skipped(tmp_path):
    unused = {"id": "b", "outcome": "unused"}
    log, found = read_all(write(tmp_path, line("a", outcome=None), line(unused), line(unused, outcome=None)))
    assert +log.skipped == {"outcome unknown": 2, "every memory unused": 1}
    assert log.used == 0
    assert sets(found, found.memory) == [[0], [1], [1]]


@pytest.mark.parametrize(("given", "outcome"), [(1, 1), (True, 1), (1.0, 1), (0, 0), (False, 0), (-0.0, 0), (None, -1)])
def test_outcomes(tmp_path, given, outcome):
    _, found = read_all(write(tmp_path, line("a", outcome=given)))
    assert found.outcome.tolist() == found.success.tolist() == [outcome]


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (1719930000.5, 1719930000.5),
        (-3, -3.0),
        (None, math.nan),
        ("2024-07-02", 1719878400.0),
        ("2024-07-02T10:00:00", 1719914400.0),
        ("2024-07-02T10:00:00Z", 1719914400.0),
        ("2024-07-02 12:00:00+02:00", 1719914400.0),
    ],
)
def test_times(tmp_path, monkeypatch, given, seconds):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    time.tzset()
    _, found = read_all(write(tmp_path, line("a", time=given)))
    np.testing.assert_array_equal([math.nan] if found.time is None else found.time, [seconds])
    monkeypatch.undo()
    time.tzset()


def test_scores_propensities_and_contexts_keep_their_places(tmp_path):
    first = line({"id": "a", "score": -2, "propensity": 0.25}, "b", {"id": "c", "score": None}, context="hard")
    _, found = read_all(write(tmp_path, first, line("b"), line({"id": "d", "score": 0.5}, context=3)))
    nan = math.nan
    np.testing.assert_array_equal(found.score, [-2, nan, nan, nan, 0.5])
    np.testing.assert_array_equal(found.propensity, [0.25, nan, nan, nan, nan])
    assert found.context.tolist() == [0, -1, 1]


@pytest.mark.parametrize("score", [None, -0.1, 1.1])
def test_a_score_that_cannot_be_a_weight(tmp_path, score):
    path = write(tmp_path, line({"id": "a", "score": 1}, {"id": "b", "score": score}))
    assert read_all(path)[0].used == 1
    log, _ = read_all(path, weigh_by_score=True)
    shown = "missing" if score is None else score
    assert log.problems() == (
        f'{path}:1: retrieved[].score: {shown} for "b"; must be from 0 to 1, as it is the weight',
    )


def test_episodes_come_in_the_order_of_time_if_all_have_one(tmp_path):
    late, early = line("a", time="2024-07-02"), line("b", time=5)
    assert read_all(write(tmp_path, late, early))[1].memory.tolist() == [1, 0]
    assert read_all(write(tmp_path, late, early, line("c")))[1].memory.tolist() == [0, 1, 2]


def test_units_and_their_sides(tmp_path):
    rows = [("g1", "home"), ("g1", "away"), ("g2", "away"), ("g2", "home"), ("g3", "home"), (None, "home")]
    path = write(tmp_path, *(line("a", game=game, context=side) for game, side in rows))
    _, found = read_all(path, fields={"unit": "game", "opponent": "context"})
    assert found.unit.tolist() == [0, 0, 1, 1, 2, 3]
    assert found.side.tolist() == [1, -1, -1, 1, 0, 0]


def test_fields_may_be_called_otherwise(tmp_path):
    path = write(tmp_path, json.dumps({"used": [{"key": "a", "sim": 0.5}], "ok": "yes"}))
    fields = {"retrieved": "used", "id": "key", "score": "sim", "outcome": "ok", "success": "yes", "failure": "no"}
    log, found = read_all(path, fields=fields)
    assert (found.memories, found.score.tolist(), found.success.tolist(), log.used) == (("a",), [0.5], [1], 1)


def test_a_value_in_a_message_is_short_and_ascii(tmp_path):
    log, _ = read_all(write(tmp_path, line("a", outcome="é\x1b[31m" + "x" * 1000)))
    assert log.problems() == (f'{log.path}:1: outcome: "\\u00e9\\u001b[31m{"x" * 23}...; {OUTCOME}',)


def test_any_line_is_an_episode_or_a_bad_line(tmp_path):
    hypothesis = pytest.importorskip("hypothesis")
    strategies = hypothesis.strategies
    values = strategies.recursive(
        strategies.none() | strategies.booleans() | strategies.integers() | strategies.floats() | strategies.text(),
        lambda inner: strategies.lists(inner) | strategies.dictionaries(strategies.text(), inner),
        max_leaves=5,
    )
    verdicts = strategies.sampled_from(["helpful", "not", "unused", None])
    item = strategies.fixed_dictionaries({"id": values}, optional={"outcome": verdicts | values, "score": values})
    times = strategies.datetimes(timezones=strategies.none() | strategies.timezones()).map(str)
    record = strategies.fixed_dictionaries(
        {"retrieved": strategies.lists(strategies.text() | strategies.integers() | item) | values},
        optional={"outcome": strategies.sampled_from([0, 1, None]) | values, "time": times | values, "context": values},
    )
    lines = record.map(lambda found: json.dumps(found).encode()) | values.map(lambda v: json.dumps(v).encode())

    @hypothesis.settings(max_examples=80, deadline=None, database=None)
    @hypothesis.given(lines | strategies.binary(), strategies.integers(0, 5))
    def check(text, cut):
        path = tmp_path / "log.jsonl"
        path.write_bytes(text[: len(text) - cut].replace(b"\n", b""))
        try:
            log, found = read_all(path)
        except InputError:  # the file as a whole is no text
            return
        assert all(message.isprintable() for message in log.problems())
        assert log.read == log.used + log.skipped.total()
        if not len(found.outcome):
            return
        written = json.loads(path.read_bytes())
        names = [str(item["id"] if isinstance(item, dict) else item) for item in written["retrieved"]]
        assert found.memories == tuple(dict.fromkeys(names))
        assert found.outcome.tolist() == [-1 if written["outcome"] is None else written["outcome"]]

    check()


def test_read_equals_a_plain_loop(tmp_path):
    hypothesis = pytest.importorskip("hypothesis")
    strategies = hypothesis.strategies
    entry = strategies.tuples(strategies.integers(0, 9), strategies.sampled_from(["helpful", "not", "unused", None]))
    episode = strategies.tuples(
        strategies.lists(entry, min_size=1, max_size=6, unique_by=lambda pair: pair[0]),
        strategies.sampled_from([1, 0, True, False, None]),
    )

    @hypothesis.settings(max_examples=60, deadline=None, database=None)
    @hypothesis.given(strategies.lists(episode, min_size=1, max_size=12))
    def check(episodes):
        path = write(
            tmp_path,
            *(line(*({"id": m, "outcome": v} for m, v in entries), outcome=outcome) for entries, outcome in episodes),
        )
        expected = Counter()
        for entries, outcome in episodes:
            for memory, verdict in entries:
                value = {"helpful": 1, "not": 0, "unused": -1, None: -1 if outcome is None else int(outcome)}[verdict]
                expected[str(memory), value] += 1
        _, found = read_all(path)
        names = [found.memories[m] for m in found.memory]
        assert Counter(zip(names, found.success.tolist(), strict=True)) == expected
        memories, shown, evidence, successes, _ = logs.count(Source(path))
        assert memories == found.memories
        assert shown.tolist() == np.bincount(found.memory).tolist()
        assert (evidence.tolist(), successes.tolist()) == (found.evidence.tolist(), found.successes.tolist())

    check()
