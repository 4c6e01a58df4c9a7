"""TOML, `--set` and `--with` -> Config and Params; every wrong value is one line with field, value, range and place."""

import importlib
import json
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from mwjax import experiment, registry, testing
from mwjax.experiment import load
from mwjax.types import UTILITY_ONE, InputError, Step

RANKING = experiment.SWEEPS / "ranking.toml"


def message(*args, **fields):
    with pytest.raises(InputError) as caught:
        load(*args, **fields)
    return str(caught.value)


def test_ranking_is_the_papers_first_experiment():
    found = load("ranking")
    assert (found.config.num_memories, found.config.num_retrieved) == (100, 8)
    assert (found.num_episodes, found.seeds, found.root_seed, found.source) == (10_000, 20, 0, RANKING)
    assert {2_000, 5_000, 10_000} <= set(found.params.checkpoints.tolist())
    names = ["memory_worth", "memory_worth_score", "memory_worth_oracle", "memory_worth_oracle_raw"]
    assert list(found.config.observers) == [*names, "beta", "never_updated"]
    assert (found.params.theta_low, found.params.theta_high) == (np.float32(0.4), np.float32(0.6))


def test_equal_settings_give_an_equal_config(tmp_path):
    copy = tmp_path / "mine.toml"
    copy.write_text(RANKING.read_text())
    mine, builtin = load(str(copy)), load("ranking")
    assert (mine.config, mine.fields, mine.name) == (builtin.config, builtin.fields, "mine")


UNSET = {"title", "texts", "actor", "utilities", "hard_share", "context_share", "target_context", "num_initial"}
UNSET |= set(experiment.UNHEEDED)


def test_the_fields_are_plain_and_complete():
    found = load("ranking")
    assert json.loads(json.dumps(found.fields)) == found.fields
    missing = set(experiment.Fields.model_fields) - set(found.fields)
    assert missing == UNSET  # the title fixes no number, the others are not set
    assert found.fields["checkpoints"] == found.params.checkpoints.tolist()


def test_one_and_one_point_nought_are_the_same_settings():
    assert load("ranking", prior_a=1).fields == load("ranking", prior_a=1.0).fields
    assert isinstance(load("ranking", overrides=["prior_a=2"]).fields["prior_a"], float)


def test_later_values_win(tmp_path):
    file = tmp_path / "a.toml"
    file.write_text("num_memories = 30\nseeds = 3\nroot_seed = 7\n")
    found = load(str(file), seeds=4, root_seed=8, overrides=["root_seed=9"])
    assert (found.config.num_memories, found.seeds, found.root_seed) == (30, 4, 9)


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("num_memories=500", "num_memories", 500),
        ("num_episodes=12_000", "num_episodes", 12_000),
        (" score_low = 0.25", "score_low", 0.25),
        ("theta_low=.3", "theta_low", ".3"),  # TOML wants 0.3: bare text is refused, not guessed
        ('observers=["beta"]', "observers", ["beta"]),
        ("keep_worth=all", "keep_worth", "all"),
        ('keep_worth="all"', "keep_worth", "all"),
        ("checkpoints=[10, 20]", "checkpoints", [10, 20, 10_000]),
        ("metrics=[]", "metrics", []),
    ],
)
def test_set_takes_toml_values_and_bare_text(text, name, value):
    if value == ".3":
        assert message("ranking", overrides=[text]).startswith("theta_low = '.3': must be a number from 0 to 1")
    else:
        assert load("ranking", overrides=[text]).fields[name] == value


@pytest.mark.parametrize(
    "texts", [["utility=[0, 0.5, 1]"], ["utility=list", "utilities=[0.0, 0.5, 1.0]"]], ids=["a list", "list + values"]
)
def test_utilities_may_be_listed(texts):
    found = load("ranking", overrides=["num_memories=3", "num_retrieved=2", *texts])
    assert found.config.utility == found.fields["utility"] == "list"
    assert found.params.utilities.tolist() == [0, UTILITY_ONE // 2, UTILITY_ONE]
    assert json.dumps(found.fields["utilities"]) == "[0.0, 0.5, 1.0]"


def test_checkpoints_beyond_the_end_are_dropped_and_the_end_is_one():
    found = load("ranking", num_episodes=50, checkpoints=[10, 50, 60])
    assert found.params.checkpoints.tolist() == [10, 50]
    assert load("ranking", num_episodes=50, checkpoints=[10]).params.checkpoints.tolist() == [10, 50]
    assert found.config.num_checkpoints == 2


def test_numpy_values_are_taken_for_what_they_are():
    found = load("ranking", seeds=np.int64(4), utility=np.array([0.25, 0.5]), num_memories=2, num_retrieved=1)
    assert json.loads(json.dumps(found.fields))["utilities"] == [0.25, 0.5]


def test_normalised_scores_keep_the_name_of_the_observer():
    found = load("ranking", score_mode="normalised", actor="memory_worth_score")
    names = [registry.name_of(one) for one in found.config.observers]
    assert names == list(load("ranking").config.observers)
    assert registry.parts(found.config).actor == 1
    assert found.config == load("ranking", score_mode="normalised", actor="memory_worth_score").config
    column = lambda values, dtype: jnp.asarray(values, dtype)[:, None]
    step = Step(
        episode=jnp.int32(0),
        retrieved=column([3, 5], jnp.int32),
        score=column([0.5, 1.0], jnp.float32),
        success=jnp.ones(1, jnp.bool_),
    )
    weights = {}
    for mode in ("raw", "normalised"):
        made = registry.parts(load("ranking", score_mode=mode).config).observers[1]
        weights[mode] = float(made.update(found.params, made.init(1), step).sum())
    assert weights == {"raw": 1.5, "normalised": pytest.approx(1.0)}


BAD_VALUES = {
    "num_memories=0": "num_memories = 0: must be from 1 to 1,048,576",
    "num_memories=ten": "num_memories = 'ten': must be an integer from 1 to 1,048,576",
    "num_memories=1.5": "num_memories = 1.5: must be an integer from 1 to 1,048,576",
    "num_memories=true": "num_memories = True: must be an integer from 1 to 1,048,576",
    "num_retrieved=101": "num_retrieved = 101: must be from 1 to 100",
    "num_episodes=0": "num_episodes = 0: must be from 1 to 16,777,215",
    "num_episodes=99999999": "num_episodes = 99999999: must be from 1 to 16,777,215",
    "seeds=0": "seeds = 0: must be from 1 to 4,294,967,296",
    "root_seed=-1": "root_seed = -1: must be from 0 to 4,294,967,295",
    "checkpoints=5": "checkpoints = 5: must be a list of episode counts at which metrics are taken",
    "checkpoints=[0]": "checkpoints = 0: must be from 1 to 16,777,215",
    "checkpoints=[5,3]": "checkpoints = [5, 3, 10000]: must increase and end at num_episodes = 10000",
    "utility=unifrom": "utility = 'unifrom': must be one of uniform, beta, list; did you mean 'uniform'?",
    "utility=[0.5]": "utilities: 1 values, must be num_memories = 100",
    "utility_low=2": "utility_low = 2.0: must be from 0 to 1",
    "theta_high=0.3": "theta_high = 0.3: must be from 0.4 to 1",
    "theta_low=nan": "theta_low = nan: must be from 0 to 1",
    "score_low=low": "score_low = 'low': must be a number from 0 to 1",
    "score_mode=row": "score_mode = 'row': must be one of raw, normalised; did you mean 'raw'?",
    "min_evidence=-1": "min_evidence = -1: must be from 0 to 2,147,483,647",
    "prior_a=inf": "prior_a = inf: must be from 0 to 1e+06",
    "observers=beta": "observers = 'beta': must be a list out of `mwjax list estimators`",
    "observers=[]": "observers = []: at least one estimator must watch; see `mwjax list estimators`",
    'observers=["beta","beta"]': "observers = ['beta', 'beta']: each estimator may be named once",
    "retrieval=unifrom": "retrieval = 'unifrom': must be one of uniform, pools, pairs, diverse, "
    "softmax, thompson, epsilon_greedy, blend "
    "or package.module:name; "
    "did you mean 'uniform'?",
    'metrics=["spearmen"]': "metrics = 'spearmen': must be one of spearman, rmse, label_count, evidence_quantile, "
    "mean_success, starved, compensator, pair_count, store, calibration; did you mean 'spearman'?",
    "num_memory=5": "num_memory: there is no such field; did you mean 'num_memories'?",
    "world.num_memories=5": "world.num_memories: there is no such field; did you mean 'num_memories'?",
    "xyz=1": "xyz: there is no such field; `mwjax list fields` shows all",
}  # fmt: skip


@pytest.mark.parametrize("text", BAD_VALUES)
def test_a_wrong_value_is_one_line(text):
    assert message("ranking", overrides=[text]) == f"{BAD_VALUES[text]} (--set {text})"


@pytest.mark.parametrize("text", ["num_memories", "=5", "a b=5"])
def test_set_wants_key_and_value(text):
    assert message("ranking", overrides=[text]) == f"--set {text}: must be key=value, such as num_memories=500"


BAD_FILES = {
    "title = 't'\n\nnum_memories = 4\nnum_retrieved=8\n": "num_retrieved = 8: must be from 1 to 4 (FILE, line 4)",
    "\nnum_memories = 4\n": "num_retrieved = 8: must be from 1 to 4 (num_memories: FILE, line 2)",
    "# seeds\n'seeds' = 'x'": "seeds = 'x': must be an integer from 1 to 4,294,967,296 (FILE, line 2)",
    "seedz = 3": "seedz: there is no such field; did you mean 'seeds'? (FILE, line 1)",
    "[labels]\n\ntheta_low = 0.3": "labels.theta_low: there is no such field; did you mean 'theta_low'? (FILE, line 3)",
    "seeds == 3": "FILE: is not TOML: Invalid value (at line 1, column 8)",
}


@pytest.mark.parametrize("text", BAD_FILES)
def test_a_wrong_file_is_one_line_with_its_line_number(text, tmp_path):
    file = tmp_path / "a.toml"
    file.write_text(text)
    assert message(str(file)) == BAD_FILES[text].replace("FILE", str(file))


def test_files_that_cannot_be_read(tmp_path):
    assert message(str(tmp_path / "a.toml")) == f"{tmp_path}/a.toml: cannot be read (No such file or directory)"
    assert message(str(tmp_path)) == f"{tmp_path}: cannot be read (Is a directory)"
    (tmp_path / "b.toml").write_bytes(b"title = '\xff'")
    assert message(str(tmp_path / "b.toml")).startswith(f"{tmp_path}/b.toml: is not TOML: 'utf-8' codec can't decode")
    known = ", ".join(experiment.experiments())
    near = f"experiment = 'rankin': must be one of {known}, or a TOML file; did you mean 'ranking'?"
    assert message("rankin") == near


def test_a_limit_set_elsewhere_is_named_too():
    line = [text.startswith("num_retrieved") for text in RANKING.read_text().splitlines()].index(True) + 1
    expected = f"num_retrieved = 8: must be from 1 to 4 ({RANKING}, line {line}; --set num_memories=4)"
    assert message("ranking", overrides=["num_memories=4"]) == expected


def test_keywords_have_no_place():
    assert message("ranking", seeds=0) == "seeds = 0: must be from 1 to 4,294,967,296"
    assert message("ranking", seedz=0) == "seedz: there is no such field; did you mean 'seeds'?"


MODULE = """
from mwjax import estimators, retrieval, worlds
def mine(config): return estimators.counter(config)
def choose(config): return retrieval.uniform(config)
def law(config): return worlds.mean(config)
number = 3
"""


@pytest.fixture
def strangers(tmp_path, monkeypatch):
    """A module of components from outside, called `strangers`; the contract test is left to its own tests."""
    (tmp_path / "strangers.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    importlib.invalidate_caches()
    kinds = {"mine": "estimator", "choose": "retrieval", "law": "outcome"}
    monkeypatch.setattr(testing, "check_component", lambda factory: kinds[factory.__name__])
    yield importlib.import_module("strangers")
    sys.modules.pop("strangers")


def test_components_take_the_place_of_their_kind(strangers):
    paths = [f"strangers:{name}" for name in ("mine", "choose", "law")]
    found = load("ranking", components=paths)
    assert found.config.observers == (*load("ranking").config.observers, paths[0])
    assert (found.config.retrieval, found.config.outcome) == tuple(paths[1:])
    assert found.fields["retrieval"] == paths[1]
    assert set(found.fields["code"]) == set(paths)


def test_factories_from_python_are_named_in_the_fields(strangers):
    found = load("ranking", observers=[strangers.mine, "beta"])
    assert found.config.observers == (strangers.mine, "beta")
    assert found.fields["observers"] == ["strangers:mine", "beta"]
    assert found.fields["code"] == load("ranking", observers=["strangers:mine", "beta"]).fields["code"]


def test_changed_code_is_another_experiment(strangers, tmp_path):
    before = load("ranking", components=["strangers:mine"]).fields
    (tmp_path / "strangers.py").write_text(MODULE + "# changed\n")
    after = load("ranking", components=["strangers:mine"]).fields
    assert before["code"] != after["code"]
    assert "code" not in load("ranking").fields


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("strangers:nope", "--with strangers:nope: module 'strangers' has no 'nope'"),
        ("strangers:number", "--with strangers:number: 'number' is not a factory (a function taking the Config)"),
        (
            "strangerz:mine",
            "--with strangerz:mine: cannot import 'strangerz' (No module named 'strangerz'); give package.module:name",
        ),
    ],
)
def test_components_that_cannot_be_made(strangers, path, expected):
    assert message("ranking", components=[path]) == expected


def test_a_component_that_breaks_the_contract_is_one_line(strangers, monkeypatch):
    def refuse(factory):
        raise testing.ComponentError("mine: worth leaves [0, 1]")

    monkeypatch.setattr(testing, "check_component", refuse)
    assert message("ranking", components=["strangers:mine"]) == "--with strangers:mine: mine: worth leaves [0, 1]"


def test_a_module_that_fails_is_one_line_with_its_place(tmp_path, monkeypatch):
    (tmp_path / "broken.py").write_text("x = 1\ny = x / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    expected = f"ZeroDivisionError: division by zero ({tmp_path}/broken.py, line 2)"
    assert message("ranking", components=["broken:mine"]) == f"--with broken:mine: {expected}"
    assert message("ranking", observers=["broken:mine"]) == f"component: {expected}"


@pytest.mark.parametrize("value", ["1" + "0" * 400, "nan", "inf"])
def test_numbers_beyond_float_are_out_of_range(value):
    with pytest.raises(InputError, match="prior_a"):
        load("ranking", overrides=[f"prior_a={value}"])
