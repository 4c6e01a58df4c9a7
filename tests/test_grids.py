"""Sweeps over axes, the map of the separation threshold, and the sensitivity of fitted numbers."""

import json

import numpy as np
import pytest

from mwjax import cli, experiment, paper, report, results, sensitivity, separation, store, sweep, theory
from mwjax.types import InputError

SMALL = ("num_episodes=200", "num_memories=20", "num_retrieved=4")
MAP = ("first_seeds=60", "most_seeds=60", "num_episodes=3000", "axes.separation=[0.2, 0.5, 1.0]")
CUT = ("slices.num_memories=[20]", "slices.num_retrieved=[4]", "slices.hitchhiker_utility=[0.9]")


@pytest.fixture(scope="module")
def swept():
    axes = ("axes.separation=[0.0, 0.5]", "axes.hitchhiker_utility=[0.1, 0.8]")
    return sweep.sweep(experiment.load("hitchhiker", seeds=8, overrides=[*SMALL, *axes]))


@pytest.fixture(scope="module")
def mapped():
    asked = experiment.load("separation_map", overrides=[*MAP, *CUT, "num_memories=20", "num_retrieved=4"])
    return separation.survey(asked)


def test_a_cell_of_a_sweep_is_the_run_of_its_settings(swept):
    assert swept["mean_success"].dims == ("seed", "separation", "hitchhiker_utility", "checkpoint")
    cell = {"separation": 0.5, "hitchhiker_utility": 0.8}
    alone = sweep.run(experiment.load("hitchhiker", seeds=8, overrides=SMALL, **cell))
    for name, values in results.per_life(alone):
        np.testing.assert_array_equal(swept[name].sel(cell), values.astype(np.float32), err_msg=name)


def test_a_sweep_is_stored_shown_and_told(swept, tmp_path, capsys):
    stored = store.save(swept, tmp_path / "s")
    assert stored.identical(swept.assign_attrs(stored.attrs))
    with pytest.raises(InputError, match="--fresh"):
        store.save(swept, tmp_path / "s")
    assert cli.main(["show", str(tmp_path / "s")]) == 0
    out = capsys.readouterr().out
    assert "8 lives a cell, after 200 episodes" in out
    assert out.count("\n0.0 ") + out.count("\n0.5 ") == 4
    told = json.loads(json.dumps(report.sweep_json(stored), allow_nan=False))
    assert np.shape(told["metrics"]["mean_success"]["mean"]) == (2, 2, swept.sizes["checkpoint"])
    assert told["coords"]["separation"] == [0.0, 0.5]


def test_the_sweep_command_says_its_plan_and_keeps_what_it_has(tmp_path, capsys):
    command = ["sweep", "hitchhiker", "--seeds", "3", "--out", str(tmp_path / "s")]
    command += [one for text in (*SMALL, "axes.separation=[0.5]") for one in ("--set", text)]
    assert cli.main([*command, "--dry-run"]) == 0
    assert "1 cells, 3 lives, 600 episodes" in capsys.readouterr().out
    assert not (tmp_path / "s").exists()
    assert cli.main(command) == 0
    assert {"figure.png", "figure.svg"} <= {path.name for path in (tmp_path / "s").iterdir()}
    assert cli.main(command) == 0
    assert "--fresh simulates it again" in capsys.readouterr().err
    assert cli.main([*command, "--set", "gain=0.5"]) == 2
    assert "other settings" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("ranking", "has no table [axes]"),
        (
            "hitchhiker --set axes.separation=[2]",
            "separation = 2.0: must be from 0 to 1 (axes: --set axes.separation=[2])",
        ),
        ("hitchhiker --set axes.separation=0.5", "axes.separation = 0.5: must be a list of values"),
        ("hitchhiker --set axes.separatio=[1]", "axes.separatio: there is no such field"),
        ("hitchhiker --set num_pairs=5", "num_pairs = 5: 10 halves need as many slots, num_retrieved is 8"),
        ("feedback --set temperature=0", "temperature = 0.0: must be from 0.005 to 1e+06"),
        ("hitchhiker --set axes.num_episodes=[20,30]", "checkpoints must be the same in all cells"),
    ],
)
def test_bad_sweeps_are_one_line(given, said, capsys):
    assert cli.main(["sweep", *given.split(), "--seeds", "2", "--out", "/nonexistent/x"]) == 2
    err = capsys.readouterr().err
    assert said in err
    assert err.count("\n") == 1


def test_the_map_holds_what_its_cells_say(mapped):
    assert mapped.score.dims == ("criterion", "separation", "checkpoint")
    cell = experiment.load("separation_map", seeds=60, overrides=[*MAP, "num_memories=20", "num_retrieved=4"])
    alone = dict(results.per_life(sweep.run(experiment.vary(cell, separation=0.5))))
    mine = mapped.score.sel(separation=0.5, criterion="anchor_above")
    np.testing.assert_allclose(mine, alone["memory_worth.anchor_above"].mean(axis=0))
    expected = theory.hitchhiker.threshold(20, 4, 3_000)
    assert float(mapped.closed_form[-1]) == pytest.approx(expected, rel=1e-6)
    low, high = (float(mapped[end].sel(criterion="anchor_above")[-1]) for end in ("low", "high"))
    assert low <= max(expected, 0.2) <= high or abs(low - expected) < 0.2
    assert (mapped.score.sel(criterion="removal") > 0.9).all()  # what a memory adds shows at any separation


def test_equal_utilities_are_never_told_apart(mapped):
    assert np.isinf(mapped.hitchhiker_utility_threshold).all()
    assert "never" in _printed(mapped)


def _printed(dataset):
    from rich.console import Console

    console = Console(width=100, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    report.print_sweep(dataset, console)
    console.file.close()
    return console.export_text()


def test_sensitivity_says_what_else_fits(monkeypatch):
    few = {"difficulty": [{}, {"outcome": "logistic"}, {"gain": 0.0}]}
    monkeypatch.setattr(sensitivity, "OPEN", few)
    short = {"num_episodes": 1_000}
    monkeypatch.setattr(sensitivity, "vary", lambda one, **changes: experiment.vary(one, **{**changes, **short}))
    found = sensitivity.survey(seeds=20)
    assert len(found) == 3 * len([row for row in paper.ROWS if row.experiment == "difficulty"])
    assert [row["setting"] for row in found[:3]] == ["as in the experiment", "outcome = logistic", "gain = 0.0"]
    for row in found:
        assert row["fits"] == (abs(row["here"] - row["published"]) <= row["tolerance"])
