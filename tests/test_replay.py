"""Replay: a log through the estimators gives the counts of a plain loop, and the report says what they support."""

import csv
import io
import json
from collections import Counter
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from rich.console import Console
from scipy import stats

from mwjax import replay
from mwjax.estimators import Estimator
from mwjax.report import print_replay
from mwjax.types import InputError

LINEUPS = Path(__file__).parents[2] / "shared" / "data" / "wnba_2024_lineups.jsonl"


@pytest.fixture(scope="module")
def lineups() -> replay.Report:
    if not LINEUPS.exists():
        pytest.skip(f"{LINEUPS} is absent")
    return replay.replay(LINEUPS)


def write(folder: Path, records: list[dict]) -> Path:
    path = folder / "log.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in records))
    return path


def record(*retrieved, outcome: int | None = 1) -> dict:
    return {"retrieved": list(retrieved), "outcome": outcome}


def random_log(episodes: int, largest: int, seed: int = 0) -> list[dict]:
    rng = np.random.default_rng(seed)
    sets = [rng.choice(40, rng.integers(1, largest + 1), replace=False).tolist() for _ in range(episodes)]
    outcomes = rng.choice([0, 1, None], episodes, p=[0.5, 0.4, 0.1])
    return [record(*memories, outcome=outcome) for memories, outcome in zip(sets, outcomes, strict=True)]


def plain_counts(records: list[dict]) -> dict[str, tuple[int, int, int]]:
    shown, evidence, successes = Counter(), Counter(), Counter()
    for found in records:
        for memory in map(str, found["retrieved"]):
            shown[memory] += 1
            evidence[memory] += found["outcome"] is not None
            successes[memory] += found["outcome"] == 1
    return {memory: (shown[memory], evidence[memory], successes[memory]) for memory in shown}


def counts(report: replay.Report) -> dict[str, tuple[int, int, int]]:
    return {m.id: (m.shown, m.evidence, m.successes) for m in report.memories}


def printed(report: replay.Report) -> str:
    console = Console(file=io.StringIO(), width=80)
    print_replay(report, console)
    return console.file.getvalue()


def test_lineups_give_the_checked_values(lineups):
    overall = lineups.overall
    assert (lineups.episodes.read, lineups.episodes.used, lineups.episodes.skipped) == (10_148, 10_148, 0)
    assert (overall.memories, overall.hits, overall.evidence, overall.base_rate) == (157, 25_370, 50_740, 0.5)
    assert (overall.interval_above, overall.interval_below) == (21, 26)
    assert (round(overall.homogeneity.chi2, 2), overall.homogeneity.degrees_of_freedom) == (447.67, 156)
    often = sorted((m for m in lineups.memories if m.evidence >= 200), key=lambda m: -m.worth)
    record_of = lambda m: (m.id, m.successes, m.evidence - m.successes)
    assert [record_of(m) for m in often[:5]] == [
        ("p082", 144, 94), ("p024", 256, 183), ("p030", 286, 214), ("p057", 341, 257), ("p039", 278, 210)
    ]  # fmt: skip
    assert [record_of(m) for m in often[:-3:-1]] == [("p079", 92, 131), ("p075", 171, 239)]
    assert often[0].worth == 0.605042


def test_lineups_equal_a_plain_count(lineups):
    records = [json.loads(text) for text in LINEUPS.read_text().splitlines()]
    assert counts(lineups) == plain_counts(records)


@pytest.mark.parametrize("largest", [1, 6, 24])
def test_counts_equal_a_plain_count(tmp_path, monkeypatch, largest):
    monkeypatch.setattr(replay.counting, "BATCH_EPISODES", 128)
    records = random_log(400, largest)
    report = replay.replay(write(tmp_path, records))
    assert counts(report) == plain_counts(records)
    assert report.episodes.reasons == {"outcome unknown": sum(found["outcome"] is None for found in records)}
    for m in report.memories:
        assert m.worth == pytest.approx(m.successes / m.evidence if m.evidence else 0.5, rel=1e-6)


def test_counters_alone_are_those_of_the_whole_report(tmp_path):
    path = write(tmp_path, random_log(300, 6))
    whole, alone = replay.replay(path), replay.replay(path, counters_only=True)
    assert counts(alone) == counts(whole)
    assert [m.worth for m in alone.memories] == [m.worth for m in whole.memories]
    assert alone.overall.spread.a == whole.overall.spread.a
    assert not alone.pairs
    assert "counters only" in alone.notes[0]


def test_a_memory_with_its_own_outcome_counts_by_it(tmp_path):
    own = [{"id": "a", "outcome": "helpful"}, {"id": "b", "outcome": "not"}, {"id": "c", "outcome": "unused"}, "d"]
    report = replay.replay(write(tmp_path, [record(*own, outcome=outcome) for outcome in (1, 0, 0, None)]))
    assert counts(report) == {"a": (4, 4, 4), "b": (4, 4, 0), "c": (4, 0, 0), "d": (4, 3, 1)}
    assert report.episodes.used == 4


def test_score_weights_count_each_memory_by_its_score(tmp_path):
    score = lambda name, value, **own: {"id": name, "score": value, **own}
    records = [
        record(score("a", 0.5), score("b", 1.0), outcome=1),
        record(score("a", 0.25), outcome=0),
        record(score("a", 0.25), score("b", 0.25, outcome="helpful"), score("c", 0.5, outcome="unused"), outcome=0),
    ]
    path = write(tmp_path, records)
    worth = lambda name: {m.id: m.worth for m in replay.replay(path, estimator=name).memories}
    assert worth("memory_worth_score") == {"a": 0.5, "b": 1.0, "c": 0.5}
    third = (1 / 3) / (1 / 3 + 1 + 1 / 4)
    assert worth("memory_worth_score_normalised") == {"a": pytest.approx(third), "b": 1.0, "c": 0.5}


def test_a_log_without_scores_cannot_be_weighed_by_them(tmp_path):
    with pytest.raises(InputError, match=r'no episode .* 1 bad retrieved.score; .*:1: .*: missing for "a"; must be'):
        replay.replay(write(tmp_path, [record("a")]), estimator="memory_worth_score")


def test_the_beta_estimator_reads_the_same_counters(tmp_path):
    report = replay.replay(write(tmp_path, [record("a"), record("a", outcome=0), record("a")]), estimator="beta")
    assert report.memories[0].worth == 0.6
    assert report.overall.estimator == "beta"


@pytest.mark.parametrize(("evidence", "successes", "label"), [
    (10, 4, "low"), (10, 6, "high"), (10, 5, "mixed"), (9, 9, "uncertain"), (9, 0, "uncertain"),
])  # fmt: skip
def test_labels(tmp_path, evidence, successes, label):
    records = [record("a", outcome=int(t < successes)) for t in range(evidence)]
    assert replay.replay(write(tmp_path, records)).memories[0].label == label


def test_thresholds_move_the_labels(tmp_path):
    path = write(tmp_path, [record("a"), record("a", outcome=0)])
    label = lambda **options: replay.replay(path, min_evidence=2, **options).memories[0].label
    assert (label(), label(theta_low=0.5), label(theta_high=0.5)) == ("mixed", "low", "high")


def recency(config) -> Estimator:
    """A stranger's estimator: the episode in which each memory was last seen, over 8."""
    init = lambda lives: jnp.zeros((config.num_memories, lives), jnp.float32)
    update = lambda params, state, step: state.at[step.retrieved, 0].set(step.episode.astype(jnp.float32) / 8)
    return Estimator(init, update, lambda params, state, counts: state)


@pytest.mark.parametrize("batch", [2, 4096])
def test_a_strangers_estimator_sees_every_episode_in_order(tmp_path, monkeypatch, batch):
    monkeypatch.setattr(replay.counting, "BATCH_EPISODES", batch)
    records = [record("a"), record("b", outcome=0), record("a", outcome=None), record("c", "b"), record("c")]
    report = replay.replay(write(tmp_path, records), estimator=f"{__name__}:recency")
    assert {m.id: m.worth * 8 for m in report.memories} == {"a": 0, "b": 3, "c": 4}


def test_intervals_are_beta_quantiles():
    successes, evidence = np.array([0, 3, 144]), np.array([0, 3, 238])
    expected = stats.beta.ppf([[0.025, 0.975]] * 3, successes[:, None] + 1, (evidence - successes)[:, None] + 1)
    np.testing.assert_allclose(replay.intervals(successes, evidence), expected, rtol=1e-12)


def test_homogeneity_is_the_chi_square_of_the_table():
    successes, evidence = np.array([12, 30, 0, 5]), np.array([40, 50, 0, 20])
    seen = evidence > 0
    table = stats.chi2_contingency(np.stack([successes, evidence - successes])[:, seen], correction=False)
    found = replay.homogeneity(successes, evidence)
    assert (found.chi2, found.degrees_of_freedom) == (pytest.approx(table.statistic), table.dof)
    assert found.p_value == pytest.approx(table.pvalue)
    assert "too narrow" in found.caveat


@pytest.mark.parametrize("successes", [[0, 0], [4, 4]])
def test_homogeneity_of_equal_outcomes_is_certain(successes):
    assert replay.homogeneity(np.array(successes), np.array([4, 4])) == replay.Homogeneity(0.0, 1, 1.0)


@pytest.mark.parametrize(
    ("records", "message"),
    [
        ([], "no episode with evidence in 0 lines$"),
        ([record("a", outcome=None)], "no episode with evidence in 1 lines; 1 outcome unknown$"),
        ([record("a", outcome=2)] * 2, r"in 2 lines; 2 bad outcome; .*:1: outcome: 2; must be 1, 0, .*$"),
    ],
)
def test_a_log_without_evidence_is_refused(tmp_path, records, message):
    with pytest.raises(InputError, match=message):
        replay.replay(write(tmp_path, records))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimator": "memory_wroth"}, "estimator = 'memory_wroth': .* did you mean 'memory_worth'"),
        ({"estimator": "memory_worth_oracle"}, "estimator = 'memory_worth_oracle': must be one of"),
        ({"theta_low": 2.0}, "theta_low = 2.0: must be from 0 to 1"),
        ({"theta_low": 0.7}, "theta_high = 0.6: must be from 0.7 to 1"),
        ({"min_evidence": -1}, "min_evidence = -1: must be from 0"),
    ],
)
def test_options_are_checked_before_the_file_is_opened(options, message):
    with pytest.raises(InputError, match=message):
        replay.replay("absent.jsonl", **options)


def test_strict_stops_at_the_first_bad_line(tmp_path):
    path = write(tmp_path, [record("a"), record("a", outcome=2)])
    assert replay.replay(path).episodes.messages == (
        f"{path}:2: outcome: 2; must be 1, 0, true, false or null (not known)",
    )
    with pytest.raises(InputError, match=r":2: outcome: 2; must be"):
        replay.replay(path, strict=True)


def test_json_has_the_promised_shape(tmp_path):
    found = replay.report_json(replay.replay(write(tmp_path, [record("a"), record("b", outcome=None), {}])))
    low, high = stats.beta.ppf([0.025, 0.975], 2, 1)
    assert set(found) == {"episodes", "memories", "overall", "pairs", "suspects", "notes"}
    assert "adjusted worth: outcome: 1 successes of 1" in found["notes"][0]
    assert {name: found["episodes"][name] for name in ("read", "used", "skipped", "reasons")} == {
        "read": 3, "used": 1, "skipped": 2, "reasons": {"bad retrieved": 1, "outcome unknown": 1}
    }  # fmt: skip
    assert found["memories"][0] == {
        "id": "a", "shown": 1, "evidence": 1, "successes": 1, "worth": 1.0, "label": "uncertain",
        "interval": [pytest.approx(low), pytest.approx(high)], "posterior": pytest.approx(1, abs=1e-3),
        "posterior_interval": [pytest.approx(1, abs=1e-2), pytest.approx(1, abs=1e-2)], "change_points": [],
    }  # fmt: skip
    assert found["overall"]["homogeneity"]["degrees_of_freedom"] == 0
    assert json.loads(json.dumps(found, allow_nan=False)) == found


def test_csv_holds_every_memory(tmp_path):
    report = replay.replay(write(tmp_path, [record('a,"b"\n', "é"), record("é", outcome=0)]))
    replay.report_csv(report, tmp_path / "out.csv")
    with open(tmp_path / "out.csv", newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [(row["id"], int(row["evidence"]), float(row["worth"])) for row in rows] == [
        ('a,"b"\n', 1, 1.0),
        ("é", 2, 0.5),
    ]
    assert [float(rows[0][name]) for name in ("interval_low", "interval_high")] == list(report.memories[0].interval)


def test_csv_is_written_whole_or_not_at_all(tmp_path, monkeypatch):
    report = replay.replay(write(tmp_path, [record("a")]))
    (tmp_path / "out.csv").write_text("before")
    monkeypatch.setattr(
        replay.records.os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device"))
    )
    with pytest.raises(InputError, match=r"out\.csv: cannot be written \(No space left on device\)"):
        replay.report_csv(report, tmp_path / "out.csv")
    assert {path.name for path in tmp_path.iterdir()} == {"log.jsonl", "out.csv"}
    assert (tmp_path / "out.csv").read_text() == "before"


@pytest.mark.parametrize("place", ["absent/out.csv", "log.jsonl/out.csv", "."])
def test_csv_says_where_it_cannot_be_written(tmp_path, place):
    report = replay.replay(write(tmp_path, [record("a")]))
    with pytest.raises(InputError, match="cannot be written"):
        replay.report_csv(report, tmp_path / place)


def test_tables_rank_by_worth_and_fit_80_columns(lineups):
    text = printed(lineups)
    top, bottom, undecided = (text.index(title) for title in ("Top (", "Bottom (", "Undecided ("))
    assert top < text.index("p082") < text.index("p024") < bottom < text.index("p119") < undecided
    assert "10 of 21" in text
    assert "chi2 447.67" in text
    assert max(map(len, text.splitlines())) <= 80


def test_only_the_name_of_a_memory_is_shortened(tmp_path):
    name = "[bold]\x1b[31mall of the text of a memory " + "x" * 200
    report = replay.replay(write(tmp_path, [record(name, outcome=t % 2) for t in range(12)] + [{}]))
    text = printed(report)
    assert "[bold]?[31mall" in text
    assert "xxx" not in text
    assert "evidence   hits   worth   95 % interval   label" in text
    assert f"{tmp_path / 'log.jsonl'}:13: retrieved: missing; must be" in text


def test_too_little_evidence_is_undecided(tmp_path):
    records = [record("sure", outcome=1)] * 30 + [record("rare", outcome=0)] * 9
    text = printed(replay.replay(write(tmp_path, records)))
    assert text.index("Top (interval above the base rate): 1 of 1") < text.index("sure")
    assert "Bottom (interval below the base rate): 0 of 0" in text
    assert text.index("Undecided (the rest, most seen first): 1 of 1") < text.index("rare")
