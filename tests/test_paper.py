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
            found[row.metric, row.checkpoint] = row.published + noise - noise.mean() + (shift if row.spread else 0)
    return {"ranking": found}


def test_every_experiment_and_cell_is_there():
    assert paper.EXPERIMENTS == ("ranking", "difficulty", "feedback", "hitchhiker", "text")
    assert len([row for row in paper.ROWS if row.experiment == "ranking"]) == 12
    assert {row.status for row in paper.ROWS} <= {"predicted", "fitted", "open"}
    assert all(row.source for row in paper.ROWS)


def test_closed_forms_are_computed():
    for row in UNIFORM:
        assert row.closed_form == theory.spearman(100, 8, row.checkpoint)


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
