import json
import math
from dataclasses import replace

import numpy as np
import pytest

from mwjax import paper, theory

UNIFORM = [row for row in paper.ROWS if row.metric == "memory_worth.spearman" and row.experiment == "ranking"]
EXACT = next(row for row in paper.ROWS if row.metric == "never_updated.spearman")


def results(shift=0.0, seeds=50):
    rng = np.random.default_rng(0)
    found = {}
    for row in paper.ROWS:
        if row.experiment == "ranking":
            noise = rng.normal(0, row.spread or 0, seeds)
            found[row.metric, row.checkpoint, row.at] = (
                row.published + noise - noise.mean() + (shift if row.spread else 0)
            )
    return {"ranking": found}


def test_every_experiment_and_cell_is_there():
    assert paper.EXPERIMENTS == ("ranking", "difficulty", "feedback", "hitchhiker", "text")
    assert len([row for row in paper.ROWS if row.experiment == "ranking"]) == 12
    assert {row.status for row in paper.ROWS} <= {"predicted", "fitted", "open"}
    assert all(row.source for row in paper.ROWS)


def test_what_the_paper_published():
    found = {(row.metric, row.checkpoint): (row.published, row.spread) for row in paper.ROWS[:12]}
    table_1 = {
        "never_updated": [(0.0, None)] * 3,
        "memory_worth": [(0.66, 0.06), (0.81, 0.03), (0.89, 0.02)],
        "memory_worth_score": [(0.66, 0.06), (0.81, 0.04), (0.89, 0.02)],
        "memory_worth_oracle": [(0.67, 0.06), (0.82, 0.04), (0.90, 0.02)],
    }
    marks = (2_000, 5_000, 10_000)
    assert found == {(f"{name}.spearman", marks[i]): cells[i] for name, cells in table_1.items() for i in range(3)}
    others = {name: [row.published for row in paper.ROWS if row.experiment == name] for name in paper.EXPERIMENTS[1:]}
    assert others == {
        "difficulty": [-0.33, 0.14],
        "feedback": [0.895, 0.899],
        "hitchhiker": [0.49, 0.49, 0.0, 1.0],
        "text": [0.97, 0.17, 300, 0.73, 0.77],
    }


def test_closed_forms_are_computed():
    for row in UNIFORM:
        assert row.closed_form == theory.spearman(100, 8, row.checkpoint)
        score = next(
            one for one in paper.ROWS if (one.metric, one.checkpoint) == ("memory_worth_score.spearman", row.checkpoint)
        )
        assert row.closed_form - 0.01 < score.closed_form < row.closed_form
    assert EXACT.closed_form is None


@pytest.mark.parametrize(("off_by", "error", "verdict"), [(0, 0, "ok"), (0.021, 0, "off"), (-0.021, 0.004, "ok")])
def test_judging_against_what_was_published(off_by, error, verdict):
    row = replace(UNIFORM[0], closed_form=None)
    assert paper.judge(row, row.published + off_by, error) == verdict


def test_judging_against_the_closed_form():
    row = replace(UNIFORM[0], tolerance=1.0)
    assert paper.judge(row, row.closed_form + 0.004, 0) == "ok"
    assert paper.judge(row, row.closed_form + 0.006, 0) == "off"
    assert paper.judge(row, row.closed_form + 0.006, 0.001) == "ok"


def test_exact_rows_allow_nothing():
    assert paper.judge(EXACT, 0.0, 0.0) == "ok"
    assert paper.judge(EXACT, 1e-9, 0.0) == "off"
    assert paper.judge(EXACT, 0.0, 0.01) == "off"


def test_a_mean_that_is_no_number_is_off():
    assert paper.judge(UNIFORM[0], math.nan, 0.01) == "off"
    assert paper.judge(replace(UNIFORM[0], closed_form=None), math.nan, 0.01) == "off"


def test_the_table_of_good_results():
    lines = paper.table(results())
    ranking = [line for line in lines if line["experiment"] == "ranking"]
    assert {line["verdict"] for line in ranking} == {"ok"}
    assert {line["verdict"] for line in lines if line not in ranking} == {"missing"}
    assert paper.predicted_rows_off(lines) == []
    line = next(line for line in ranking if line["spread"])
    half = 2.0095752371 * line["sd"] / math.sqrt(50)  # t quantile, 49 degrees of freedom
    assert line["ci95"] == pytest.approx([line["here"] - half, line["here"] + half])


def test_predicted_rows_that_are_off_are_found():
    off = paper.predicted_rows_off(paper.table(results(shift=0.1)))
    assert len(off) == 9
    assert all(line["status"] == "predicted" for line in off)


def test_one_seed_has_no_interval():
    line = paper.table(results(seeds=1))[3]
    assert line["ci95"] is None
    assert line["sd"] is None
    assert line["seeds"] == 1


def test_one_seed_is_judged_by_the_published_spread():
    row = UNIFORM[0]
    verdict = lambda value: paper.table({"ranking": {(row.metric, row.checkpoint, row.at): np.array([value])}}, (row,))[
        0
    ]
    assert verdict(row.published + 5 * row.spread)["verdict"] == "ok"
    assert verdict(row.published - 6 * row.spread)["verdict"] == "off"


def test_a_checkpoint_that_was_not_run_is_missing():
    line = paper.table({"ranking": {}}, (UNIFORM[0],))[0]
    assert line["verdict"] == "missing"
    assert line["here"] is None
    assert paper.predicted_rows_off([line]) == []


def test_a_fitted_row_may_be_off_without_counting():
    row = replace(UNIFORM[0], status="fitted")
    lines = paper.table({"ranking": {(row.metric, row.checkpoint, row.at): np.zeros(4)}}, (row,))
    assert lines[0]["verdict"] == "off"
    assert paper.predicted_rows_off(lines) == []


def test_the_table_is_plain_data():
    lines = paper.table(results())
    assert json.loads(json.dumps(lines)) == lines
    keys = "experiment quantity checkpoint published spread here sd ci95 seeds closed_form status verdict source"
    assert {frozenset(line) for line in lines} == {frozenset(keys.split())}


def test_seeds_that_agree_have_an_interval_of_no_width():
    row = UNIFORM[0]
    line = paper.table({"ranking": {(row.metric, row.checkpoint, row.at): np.full(5, np.float32(0.625))}}, (row,))[0]
    assert line["ci95"] == [0.625, 0.625]
    assert line["sd"] == 0
