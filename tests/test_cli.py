"""The command line that scripts rely on: its words, exit statuses, JSON keys, and one line for everything wrong."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from mwjax import cli, experiment, formats, paper, results, sweep
from mwjax.__main__ import main
from mwjax.cli import commands, parser, terminal

KNOWN = ", ".join(experiment.experiments())
COMMANDS = ("reproduce", "run", "sweep", "compare", "show", "figure", "list", "rule", "replay", "backtest", "bench")
SMALL = [
    *("--set", "num_memories=12", "--set", "num_retrieved=3", "--set", "checkpoints=[20]", "--episodes", "40"),
    *("--set", 'observers=["memory_worth", "beta"]', "--seeds", "4"),
]
LOG = """\
{"retrieved": ["a", "b"], "outcome": 1}
{"retrieved": ["a"], "outcome": 0}
{"retrieved": ["b", "c"], "outcome": 1}
"""


@pytest.fixture(scope="module")
def stored(tmp_path_factory) -> Path:
    """A small finished result, under the name that it gets by default."""
    with contextlib.chdir(tmp_path_factory.mktemp("small")):
        assert main(["run", "ranking", *SMALL, "--quiet"]) == 0
        return next(Path("results").iterdir()).absolute()


def python(*arguments: str, **options) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True, check=False, **options)


# Words


def test_the_commands_and_their_options_stay():
    _, found = parser.build()
    common = {"-h", "--help", "--json", "--quiet", "--debug", "--device"}
    options = {name: {o for a in one._actions for o in a.option_strings} - common for name, one in found.items()}
    fields = {f"--{name.replace('_', '-')}" for name in formats.FIELDS}
    log = {"--format", "--join", "--strict", "--estimator", "--out", *fields}
    knobs = {"--theta", "--delta", "--alpha", "--prior-a", "--prior-b", "--min-evidence"}
    labels = {
        "--theta-low",
        "--theta-high",
        "--ridge",
        "--permutations",
        "--counters-only",
        "--rule",
        "--assume-additive",
    }
    assert options == {
        "reproduce": {"--quick", "--sensitivity", "--out"},
        "run": {"--seeds", "--episodes", "--set", "--with", "--out", "--fresh"},
        "sweep": {"--seeds", "--episodes", "--set", "--out", "--fresh", "--dry-run"},
        "compare": {"--seeds", "--episodes", "--set", "--out", "--fresh"},
        "show": set(),
        "figure": {"--out"},
        "list": set(),
        "rule": knobs | {"--max-evidence"},
        "replay": log | knobs | labels,
        "backtest": log | {"--half-life", "--prior"},
        "bench": set(),
    }
    assert all(common <= {o for a in one._actions for o in a.option_strings} for one in found.values())


@pytest.mark.parametrize("name", COMMANDS)
def test_help_explains_every_option_with_its_default_and_gives_two_examples(call, name):
    status, out, _ = call(name, "--help")
    assert status == 0
    assert out.split("examples:\n")[1].count(f"  mwjax {name}") == 2
    for action in parser.build()[1][name]._actions:
        takes_value = action.option_strings and action.nargs != 0
        assert action.help
        assert not takes_value or "(default: " in action.help, action.option_strings


def test_help_names_every_command_and_the_exit_statuses(call):
    status, out, _ = call("--help")
    assert status == 0
    assert re.findall(r"^    (\w+) ", out, re.MULTILINE) == list(COMMANDS)
    assert "Exit status: 0 good, 1 a check or the program failed, 2 bad input, 130 interrupted." in out


def test_help_and_usage_errors_load_nothing_heavy():
    lines = ["--help", "run --help", "--version", "runn", "run --seedz 3"]
    run = f"from mwjax.__main__ import main; [main(line.split()) for line in {lines}]"
    found = python("-c", f"import sys; {run}; print(*sys.modules, file=sys.stderr)")
    assert found.stdout.count("usage: mwjax") == 2
    loaded = {name.partition(".")[0] for name in found.stderr.split()}
    assert "mwjax" in loaded
    assert not loaded & {"jax", "jaxlib", "numpy", "scipy", "pydantic", "xarray", "zarr", "rich", "matplotlib"}


def test_version_and_the_module(call):
    import mwjax

    assert call("--version") == (0, f"mwjax {mwjax.__version__}\n", "")
    found = python("-m", "mwjax", "--version")
    assert (found.returncode, found.stdout) == (0, f"mwjax {mwjax.__version__}\n")


BAD_USAGE = {
    "": f"give a command: {', '.join(COMMANDS)}; see `mwjax --help`",
    "runn ranking": "runn: there is no such command; did you mean run?; see `mwjax --help`",
    "xyz": "xyz: there is no such command; see `mwjax --help`",
    "run": "the following arguments are required: EXPERIMENT|FILE.toml; see `mwjax run --help`",
    "run ranking --seedz 3": "--seedz: not understood; did you mean --seeds?; see `mwjax run --help`",
    "run ranking --seedz=3": "--seedz=3: not understood; did you mean --seeds?; see `mwjax run --help`",
    "run ranking --seed 3": "--seed: not understood; did you mean --seeds?; see `mwjax run --help`",
    "run ranking seeds=3": "seeds=3: not understood; did you mean --set?; see `mwjax run --help`",
    "run ranking --seeds x": "--seeds: must be an integer, not 'x'; see `mwjax run --help`",
    "run ranking --seeds": "--seeds: expected one argument; see `mwjax run --help`",
    "run ranking --with mine": "--with: must be package.module:name, not 'mine'; see `mwjax run --help`",
    "run ranking --device gpus": "--device: must be one of cpu, gpu, not 'gpus'; did you mean gpu?; "
    "see `mwjax run --help`",
    "list estimator": "KIND: must be one of experiments, estimators, retrieval, worlds, governance, formats, fields, "
    "not 'estimator'; did you mean estimators?; see `mwjax list --help`",
    "replay log --permutations x": "--permutations: must be an integer, not 'x'; see `mwjax replay --help`",
    "replay log --theta-low x": "--theta-low: must be a number, not 'x'; see `mwjax replay --help`",
}  # fmt: skip


@pytest.mark.parametrize("words", BAD_USAGE)
def test_a_wrong_command_line_is_one_line(call, words):
    assert call(*words.split()) == (2, "", f"mwjax: {BAD_USAGE[words]}\n")


# Bad input


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("run rankin", f"experiment = 'rankin': must be one of {KNOWN}, or a TOML file; did you mean 'ranking'?"),
        ("run nope.toml", "nope.toml: cannot be read (No such file or directory)"),
        ("run ranking --seeds 0", "seeds = 0: must be from 1 to 4,294,967,296"),
        ("run ranking --episodes 0", "num_episodes = 0: must be from 1 to 16,777,215"),
        ("run ranking --set num_retrieved=101", "num_retrieved = 101: must be from 1 to 100 (--set num_retrieved=101)"),
        ("run ranking --with nope:x", "--with nope:x: cannot import 'nope' (No module named 'nope'); give "
         "package.module:name"),
        ("run ranking --out file", "file: is a file, not a folder of results; give another folder"),
        ("run ranking --out full", "full: exists and is not an mwjax store; give another folder"),
        ("show nope", "nope: there is no such folder"),
        ("show full", "full: exists and is not an mwjax store"),
        ("figure nope", "nope: there is no such folder"),
        ("replay log --format xml", "format: 'xml'; must be one of auto, jsonl, json, csv, parquet, ..."),
        ("replay log --ridge x", "--ridge: must be cv or a number, not 'x'"),
        ("replay log --rule bete", "rule = 'bete': must be one of threshold, beta, ..."),
        ("backtest log --half-life ten", "--half-life: must be a number, not 'ten'"),
        ("backtest log --prior flat", "prior = 'flat': must be closed, empirical_bayes, ..."),
        ("backtest log --estimator beta", "estimator = 'beta': must be one of memory_worth, discounted, ..."),
        ("replay nope", "nope: cannot be read (No such file or directory)"),
        ("replay log --theta-low 2", "theta_low = 2.0: must be from 0 to 1"),
        ("replay log --estimator bet", "estimator = 'bet': must be one of memory_worth, memory_worth_score, "
         "memory_worth_score_normalised, beta, discounted, "
         "discounted_beta, discounted_step, last_outcome, windowed, cusum, cusum_reset, never_updated; "
         "did you mean 'beta'?"),
        ("replay log --out full", "full: holds other files than those of a replay; give another folder"),
        ("replay log --out file", "file: cannot be written (Not a directory)"),
        ("replay bad --strict", "bad:1: ..."),
    ],
)  # fmt: skip
def test_bad_input_is_one_line_and_changes_nothing(call, tmp_path, words, expected):
    (tmp_path / "full").mkdir()
    for name, text in {"file": "x", "full/file": "y", "log": LOG, "bad": "x\n"}.items():
        (tmp_path / name).write_text(text)
    before = {path: path.read_text() for path in tmp_path.rglob("*") if path.is_file()}
    status, out, err = call(*words.split())
    if expected.endswith("..."):
        err, expected = err[: len(f"mwjax: {expected}") - 3] + "...\n", expected
    assert (status, out, err) == (2, "", f"mwjax: {expected}\n")
    assert {path: path.read_text() for path in tmp_path.rglob("*") if path.is_file()} == before
    assert sorted(os.listdir(tmp_path)) == ["bad", "file", "full", "log"]


def test_debug_adds_the_traceback(call):
    status, out, err = call("run", "rankin", "--debug")
    assert (status, out) == (2, "")
    assert err.startswith("Traceback (most recent call last):\n")
    assert err.splitlines()[-1].startswith("mwjax: experiment = 'rankin': must be")
    assert call("--debug", "run", "rankin")[2] == err


@pytest.mark.parametrize(
    ("error", "status", "line"),
    [
        (KeyboardInterrupt(), 130, "mwjax: interrupted\n"),
        (RuntimeError("one\ntwo"), 1, "mwjax: RuntimeError: one two (--debug shows where)\n"),
        (sweep.TroubleError("seed 3: not finite"), 1, "mwjax: seed 3: not finite\n"),
        (BrokenPipeError(), 0, ""),
    ],
)
def test_what_goes_wrong_inside(call, monkeypatch, error, status, line):
    def fail(args):
        raise error

    monkeypatch.setattr(commands, "list_names", fail)
    assert call("list") == (status, "", line)


@pytest.mark.parametrize("words", [["list"], ["list", "--json"], ["--help"]])
def test_a_reader_that_goes_away_is_no_error(words):
    buffered = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    reader, writer = os.pipe()
    os.close(reader)
    command = [sys.executable, "-m", "mwjax", *words]
    found = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, check=False, env=buffered)
    os.close(writer)
    assert (found.returncode, found.stderr) == (0, "")


def test_ctrl_c_ends_a_run_and_leaves_nothing(tmp_path):
    arguments = [sys.executable, "-m", "mwjax", "run", "ranking", *SMALL, "--seeds", "1000000", "--out", "out"]
    with subprocess.Popen(arguments, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        end = time.monotonic() + 120
        while not list(tmp_path.glob(".out.*")) and child.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=120)
    assert (child.returncode, out, err) == (130, "", "mwjax: interrupted\n")
    assert not list(tmp_path.iterdir())


# Answers


def test_run_prints_stores_and_draws(stored, call):
    assert re.fullmatch(r"ranking-[0-9a-f]{8}", stored.name)
    assert {"figure.png", "figure.svg", "zarr.json"} <= set(os.listdir(stored))
    status, out, err = call("run", "ranking", *SMALL, "--out", str(stored))
    assert (status, err) == (0, f"mwjax: {stored} holds this result already; --fresh simulates it again\n")
    assert "4 lives of 40 episodes; 12 memories, 3 retrieved in an episode" in out
    assert max(map(len, out.replace(str(stored), "").splitlines())) <= 80


def test_json_is_one_object_with_the_promised_keys(stored, call):
    status, out, err = call("run", "ranking", *SMALL, "--out", str(stored), "--json", "--quiet")
    found = json.loads(out)
    assert (status, err, out.count("\n")) == (0, "", 1)
    assert list(found) == [
        *("experiment", "config", "seeds", "episodes", "metrics", "health", "timing", "coords", "store")
    ]
    assert (found["experiment"], found["seeds"], found["episodes"]) == ("ranking", 4, 40)
    assert found["config"]["num_memories"] == 12
    assert found["coords"] == {"checkpoint": [20, 40]}
    assert set(found["timing"]) == {"compile_s", "run_s", "episodes_per_s"}
    assert {"memory_worth.spearman", "beta.spearman", "memory_worth.rmse", "mean_success"} <= set(found["metrics"])
    for one in found["metrics"].values():
        assert set(one) == {"mean", "sd", "ci95"}
        assert [len(one["mean"]), len(one["sd"]), *map(len, one["ci95"])] == [2, 2, 2, 2]


def test_what_a_component_prints_stays_out_of_the_json(call, monkeypatch):
    def chatty(args):
        print("hello")
        return commands.Answer(lambda: {"a": 1}, lambda to: None)

    monkeypatch.setattr(commands, "list_names", chatty)
    assert call("list", "--json") == (0, '{"a": 1}\n', "hello\n")


def test_a_result_of_other_settings_is_refused_and_fresh_replaces_it(stored, call, tmp_path):
    out = tmp_path / "copy"
    subprocess.run(["cp", "-r", stored, out], check=True)
    status, _, err = call("run", "ranking", *SMALL, "--set", "root_seed=1", "--out", str(out))
    assert status == 2
    assert err.startswith(f"mwjax: {out}: holds a result with other settings (root_seed = 0)")
    status, text, _ = call("run", "ranking", *SMALL, "--set", "root_seed=1", "--out", str(out), "--fresh", "--json")
    assert (status, json.loads(text)["config"]["root_seed"]) == (0, 1)


def test_with_finds_a_component_in_the_current_folder(call, tmp_path, monkeypatch):
    from mwjax import testing

    monkeypatch.setattr(testing, "check_component", lambda factory: "estimator")
    monkeypatch.setattr(sys, "path", [one for one in sys.path if one])
    (tmp_path / "from_here.py").write_text("from mwjax import estimators\nmine = lambda config: bad\n")
    status, _, err = call("run", "ranking", *SMALL, "--with", "from_here:mine")
    assert status == 2
    where = f"({tmp_path}/from_here.py, line 2)"
    assert err == f"mwjax: component: NameError: name 'bad' is not defined {where}\n"


def test_show_and_figure(stored, call, tmp_path):
    status, out, err = call("show", str(stored))
    assert (status, err) == (0, "")
    assert "memory_worth" in out
    assert json.loads(call("show", str(stored), "--json")[1])["store"] == str(stored)
    status, out, err = call("figure", str(stored), "--out", str(tmp_path / "a.svg"))
    assert (status, err) == (0, "")
    assert sorted(out.split()) == [str(tmp_path / "a.png"), str(tmp_path / "a.svg")]
    assert all(Path(file).stat().st_size for file in out.split())


def test_list(call):
    status, out, _ = call("list")
    assert status == 0
    assert [line for line in out.splitlines() if line.endswith(":")] == [f"{kind}:" for kind in parser.KINDS]
    assert "ranking                Ranking under uniform retrieval\n" in call("list", "experiments")[1]
    names = json.loads(call("list", "estimators", "--json")[1])["estimators"]
    assert {"memory_worth", "memory_worth_score", "memory_worth_oracle", "beta", "never_updated"} <= set(names)
    assert all(names.values())


def test_replay(call, tmp_path):
    (tmp_path / "log").write_text(LOG)
    status, out, err = call("replay", str(tmp_path / "log"), "--out", str(tmp_path / "out"), "--json")
    found = json.loads(out)
    assert (status, err) == (0, "")
    assert {"episodes", "memories", "overall", "pairs", "suspects", "reliability", "notes"} == set(found)
    assert {"read": 3, "used": 3, "skipped": 0}.items() <= found["episodes"].items()
    assert {"id", "evidence", "successes", "worth", "interval", "label"} <= set(found["memories"][0])
    assert [(m["id"], m["evidence"], m["successes"]) for m in found["memories"]] == [
        ("a", 2, 1),
        ("b", 2, 2),
        ("c", 1, 1),
    ]
    assert sorted(os.listdir(tmp_path / "out")) == ["figure.png", "figure.svg", "memories.csv", "replay.json"]
    assert json.loads((tmp_path / "out" / "replay.json").read_text()) == found
    again = call("replay", str(tmp_path / "log"), "--out", str(tmp_path / "out"), "--min-evidence", "2")
    assert again[0] == 0
    assert "3 lines read, 3 used, 0 skipped" in again[1]


def test_replay_of_counters_alone_and_of_a_table(call, tmp_path):
    path = tmp_path / "log"
    path.write_text(LOG)
    found = json.loads(call("replay", str(path), "--counters-only", "--json")[1])
    assert [m["successes"] for m in found["memories"]] == [1, 2, 1]
    table = tmp_path / "log.csv"
    table.write_text("item,click,request\na,1,1\nb,1,1\na,0,2\nb,1,3\nc,1,3\n")
    options = ("--id", "item", "--outcome", "click", "--episode", "request", "--counters-only", "--json")
    rows = json.loads(call("replay", str(table), *options)[1])
    assert rows["memories"] == found["memories"]


def test_replay_of_a_rule_and_backtest(call, tmp_path):
    path = tmp_path / "log"
    draw, lines = np.random.default_rng(0), []
    for _ in range(400):
        retrieved = draw.choice(8, 2, replace=False).tolist()
        lines.append({"retrieved": retrieved, "outcome": int(0 not in retrieved and draw.random() < 0.9)})
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    status, out, err = call("replay", str(path), "--rule", "beta", "--theta", "0.3", "--permutations", "19")
    assert (status, err) == (0, "")
    assert "beta, theta = 0.3: " in out
    assert "points, 95" in " ".join(out.split())
    assert max(map(len, out.splitlines())) <= 80
    options = ("--half-life", "10,inf", "--out", str(tmp_path / "out"), "--json")
    status, out, err = call("backtest", str(path), *options)
    assert (status, err) == (0, "")
    assert [one["half_life"] for one in json.loads(out)["settings"]] == [10, "inf"]
    assert sorted(os.listdir(tmp_path / "out")) == ["backtest.json", "figure.png", "figure.svg"]


@pytest.fixture
def simulated(monkeypatch):
    """Put results with Spearman as published (plus `off`) in place of the simulation behind `reproduce`."""

    def use(off: float) -> None:
        def run(asked, **options):
            found = results.template(asked).load().copy(deep=True)
            for row in (row for row in paper.ROWS if row.experiment == asked.name == "ranking"):
                place = {"checkpoint": row.checkpoint, "estimator": row.metric.removesuffix(".spearman")}
                found.spearman.loc[place] = (row.closed_form or row.published) + off
            options["out"].mkdir(parents=True)
            return found.assign_attrs(episodes=asked.num_episodes, config=json.dumps(asked.fields))

        monkeypatch.setattr(sweep, "run", run)
        monkeypatch.setattr("mwjax.plots.figure", lambda dataset: None)
        monkeypatch.setattr("mwjax.plots.save", lambda drawn, path: ())

    return use


def test_reproduce_succeeds_when_every_predicted_number_is_found(call, simulated, tmp_path):
    simulated(0.0)
    status, out, err = call("reproduce", "--quick", "--out", str(tmp_path / "out"), "--json")
    found = json.loads(out)
    assert (status, err) == (0, "")
    assert (found["off"], found["quick"]) == (0, True)
    assert found["missing"] == []
    assert len(found["rows"]) == len(paper.ROWS)
    keys = {"experiment", "quantity", "published", "here", "closed_form", "status", "source", "verdict"}
    assert all(keys <= set(row) for row in found["rows"])
    assert {row["seeds"] for row in found["rows"] if row["experiment"] == "ranking"} == {commands.QUICK_SEEDS}


def test_reproduce_fails_when_a_predicted_number_is_off(call, simulated, tmp_path):
    simulated(0.05)
    status, out, err = call("reproduce", "--out", str(tmp_path / "out"))
    assert (status, err) == (1, "")
    assert "12 predicted numbers are judged: 0 ok, 12 off" in out
    assert max(map(len, out.replace(str(tmp_path), "").splitlines())) <= 80


# Devices and progress


@pytest.mark.parametrize(("given", "expected"), [({"JAX_NUM_CPU_DEVICES": "3"}, 3), ({}, None)])
def test_every_core_becomes_a_device_unless_set_already(given, expected):
    code = "from mwjax.cli import terminal; terminal.start_devices('cpu'); import jax; print(jax.device_count())"
    clean = {key: value for key, value in os.environ.items() if key not in ("JAX_NUM_CPU_DEVICES", "XLA_FLAGS")}
    found = python("-c", code, env=clean | given)
    assert int(found.stdout) == (expected or len(os.sched_getaffinity(0)))


def test_progress_is_for_terminals(monkeypatch, capsys):
    args, quiet = parser.parse(["run", "ranking"]), parser.parse(["run", "ranking", "--quiet"])
    monkeypatch.setenv("TERM", "xterm")
    for seen, options in ((False, args), (True, quiet), (True, args)):
        monkeypatch.setattr(sys.stderr, "isatty", lambda answer=seen: answer, raising=False)
        assert capsys.readouterr() == ("", "")
        with terminal.progress(options, "ranking", 10) as tick:
            tick(3, 9)
            tick(9, 9)
    out, err = capsys.readouterr()
    assert out == ""
    assert "ranking" in err
    assert "9/9" in err
    assert "M episodes/s" in err


def test_an_interrupt_that_was_lost_is_heeded_at_the_next_tick():
    with terminal.progress(parser.parse(["run", "ranking"]), "ranking", 10) as tick:
        tick(1, 2)
        terminal.INTERRUPT.set()
        with pytest.raises(KeyboardInterrupt):
            tick(2, 2)
    terminal.INTERRUPT.clear()


def test_exit_statuses():
    assert (cli.GOOD, cli.FAILED, cli.BAD_INPUT, cli.INTERRUPTED) == (0, 1, 2, 130)


def test_numbers_that_json_lacks_are_not_printed(call, monkeypatch):
    answer = commands.Answer(lambda: {"a": float(np.nan)}, lambda to: None)
    monkeypatch.setattr(commands, "list_names", lambda args: answer)
    assert call("list", "--json")[:2] == (1, "")
