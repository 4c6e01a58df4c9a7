"""From an experiment to its Dataset and summary: the same numbers in memory, on disk and in any chunks."""

from __future__ import annotations

import json
import platform
import re
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jax
import numpy as np
import pytest
import xarray
from scipy import stats

import mwjax
from mwjax import engine, experiment, metrics, registry, results, store, sweep
from mwjax.config import METRICS
from mwjax.experiment import Experiment
from mwjax.sweep import TroubleError
from mwjax.types import UTILITY_ONE, InputError

SETTINGS: dict[str, Any] = {
    "num_memories": 12,
    "num_retrieved": 3,
    "num_episodes": 60,
    "checkpoints": [20, 60],
    "observers": ["memory_worth", "beta", "never_updated"],
    "theta_low": 0.45,
    "theta_high": 0.55,
    "min_evidence": 5,
    "root_seed": 4,
}
SEEDS = 10


def load(**fields: Any) -> Experiment:
    return experiment.load("ranking", **{**SETTINGS, "seeds": SEEDS, **fields})


@pytest.fixture(scope="module")
def found() -> xarray.Dataset:
    engine.compile_chunk.cache_clear()
    return sweep.run(load())


def bare(dataset: xarray.Dataset) -> xarray.Dataset:
    return dataset.load().drop_attrs(deep=False)


def must_not_run(*args: Any, **fields: Any) -> Iterator[engine.Batch]:
    pytest.fail("nothing may be simulated here")


def test_dimensions_and_types(found):
    every = {name: (one.dims[1:], one.dtype) for name, one in found.data_vars.items()}
    assert every == {
        "spearman": (("checkpoint", "estimator"), np.float32),
        "rmse": (("checkpoint", "estimator"), np.float32),
        "label_count": (("checkpoint", "truth_scale", "true_label", "label", "estimator"), np.int8),
        "evidence_quantile": (("checkpoint", "quantile"), np.int32),
        "mean_success": (("checkpoint",), np.float32),
        "utility": (("memory",), np.float32),
        "p_plus": (("memory",), np.float32),
        "shown": (("memory",), np.int32),
        "evidence": (("memory",), np.int32),
        "successes": (("memory",), np.int32),
        "worth": (("estimator", "memory"), np.float32),
        "non_finite_worth": ((), np.int32),
    }
    assert {one.dims[0] for one in found.data_vars.values()} == {"seed"}
    assert all({"long_name", "units"} <= set(one.attrs) for one in found.data_vars.values())


def test_coordinates(found):
    assert found.seed.values.tolist() == list(range(SEEDS))
    assert found.checkpoint.values.tolist() == SETTINGS["checkpoints"]
    assert found.estimator.values.tolist() == SETTINGS["observers"]
    assert found.memory.values.tolist() == list(range(12))
    assert found["quantile"].values.tolist() == list(metrics.QUANTILES)
    assert found.truth_scale.values.tolist() == ["p_plus", "utility"]
    assert found.true_label.values.tolist() == ["low", "mixed", "high"]
    assert found.label.values.tolist() == ["low", "mixed", "high", "uncertain"]


def test_every_value_is_the_engines(found):
    asked = load()
    (batch,) = engine.run_lives(asked.config, asked.params, np.arange(SEEDS), root_seed=4)
    for name, values in {**batch.trace.metrics, **batch.trace.counts._asdict()}.items():
        if name in found or not name.startswith(("context", "episode")):
            np.testing.assert_array_equal(found[name], values, err_msg=name)
    np.testing.assert_array_equal(found.worth, batch.trace.worth)
    np.testing.assert_array_equal(found.p_plus, batch.trace.p_plus)
    np.testing.assert_array_equal(np.float64(found.utility) * UTILITY_ONE, batch.trace.utility)
    assert 0 <= found.utility.min() < found.utility.max() <= 1


def test_values_agree_with_each_other(found):
    np.testing.assert_array_equal(found.evidence.sum("memory"), 3 * 60)
    np.testing.assert_allclose(found.mean_success[:, -1] * 60 * 3, found.successes.sum("memory"), rtol=1e-6)
    np.testing.assert_array_equal(found.label_count.sum(("true_label", "label")), 12)
    np.testing.assert_array_equal(
        found.evidence_quantile.isel(checkpoint=-1).sel(quantile=1), found.evidence.max("memory")
    )
    rho = stats.spearmanr(found.worth[3, 0], found.utility[3]).statistic
    np.testing.assert_allclose(found.spearman[3, -1, 0], rho, atol=1e-6)


@pytest.mark.parametrize("chunk", [1, 7])
def test_stored_arrays_do_not_depend_on_chunk(found, tmp_path, chunk):
    stored = sweep.run(load(), out=tmp_path / "r", chunk=chunk, devices=jax.local_devices()[:1])
    xarray.testing.assert_identical(bare(stored), bare(found))
    assert stored.attrs["chunk"] == chunk


def test_name_and_fields_are_an_experiment(found):
    again = sweep.run("ranking", seeds=SEEDS, **SETTINGS)
    xarray.testing.assert_identical(bare(again), bare(found))
    assert again.attrs["fingerprint"] == found.attrs["fingerprint"]


def test_public_name_is_this_function():
    assert mwjax.run is sweep.run


def test_provenance(found):
    attrs = found.attrs
    assert json.loads(attrs["config"]) == json.loads(json.dumps(load().fields))
    told = {name: attrs[name] for name in ("experiment", "root_seed", "episodes", "numbers_version", "reused")}
    assert told == {
        "experiment": "ranking",
        "root_seed": 4,
        "episodes": 60,
        "numbers_version": sweep.NUMBERS_VERSION,
        "reused": False,
    }
    versions = {name: attrs[name] for name in ("mwjax", "jax", "numpy", "python")}
    assert versions == {
        "mwjax": mwjax.__version__,
        "jax": jax.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }
    assert attrs["device_count"] == len(jax.local_devices())
    assert attrs["device_kind"] == jax.local_devices()[0].device_kind
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", attrs["created"])
    assert re.fullmatch(r"([0-9a-f]{40}(-dirty)?)?", attrs["commit"])


def test_commit_is_of_a_checkout_of_this_package_only(monkeypatch):
    inside_a_checkout_of_something_else = Path(__file__).parent / "mwjax" / "__init__.py"
    monkeypatch.setattr(mwjax, "__file__", str(inside_a_checkout_of_something_else))
    assert sweep._commit() == ""


def test_compile_time_counts_where_it_was_spent(found):
    first, again = found.attrs, sweep.run(load()).attrs
    assert 0 < first["compile_s"] < first["wall_s"]
    assert first["run_s"] == pytest.approx(first["wall_s"] - first["compile_s"])
    assert again["compile_s"] == 0
    assert again["run_s"] == again["wall_s"] > 0


def test_progress_tells_lives_done():
    calls = []
    told = lambda done, total: calls.append((done, total))
    sweep.run(load(), chunk=7, progress=told, devices=jax.local_devices()[:1])
    assert calls == [(7, 10), (10, 10)]


def test_finished_result_is_shown_again(found, tmp_path, monkeypatch):
    first = sweep.run(load(), out=tmp_path / "r")
    assert not first.attrs["reused"]
    monkeypatch.setattr(engine, "run_lives", must_not_run)
    again = sweep.run(load(title="another title"), out=tmp_path / "r")
    assert again.attrs["reused"]
    assert again.attrs["created"] == first.attrs["created"]
    xarray.testing.assert_identical(bare(again), bare(found))


def test_result_with_other_settings_is_refused(tmp_path, monkeypatch):
    sweep.run(load(), out=tmp_path / "r")
    monkeypatch.setattr(engine, "run_lives", must_not_run)
    with pytest.raises(InputError, match=r"other settings \(theta_low = 0.45\); .* --fresh"):
        sweep.run(load(theta_low=0.4), out=tmp_path / "r")
    with pytest.raises(InputError, match=r"other settings \(seeds = 10\)"):
        sweep.run(load(), seeds=5, out=tmp_path / "r")
    monkeypatch.setattr(sweep, "NUMBERS_VERSION", -1)
    with pytest.raises(InputError, match=r"other settings \(numbers of version 2\)"):
        sweep.run(load(), out=tmp_path / "r")


def test_fresh_replaces_the_result(tmp_path):
    sweep.run(load(), out=tmp_path / "r")
    again = sweep.run(load(theta_low=0.4), out=tmp_path / "r", fresh=True)
    assert not again.attrs["reused"]
    assert json.loads(again.attrs["config"])["theta_low"] == 0.4


def test_default_folder_names_the_settings(monkeypatch):
    folder = sweep.default_folder(load())
    assert re.fullmatch(r"ranking-[0-9a-f]{8}", folder.name)
    assert folder.parent == Path("results")
    assert sweep.default_folder(load(title="another title")) == folder
    assert sweep.default_folder(load(root_seed=5)) != folder
    assert sweep.default_folder(load(seeds=11)) != folder
    monkeypatch.setattr(sweep, "NUMBERS_VERSION", -1)
    assert sweep.default_folder(load()) != folder


def broken_lives(batch: engine.Batch) -> Iterator[engine.Batch]:
    """The life of seed 7 has three worth values that are not finite."""
    count = np.where(np.arange(SEEDS) == 7, 3, 0).astype(np.int32)
    yield batch._replace(trace=batch.trace._replace(health=batch.trace.health._replace(non_finite_worth=count)))


def test_trouble_names_configuration_and_seed(tmp_path, monkeypatch):
    asked = load()
    before = bare(sweep.run(asked, out=tmp_path / "r"))
    (batch,) = engine.run_lives(asked.config, asked.params, np.arange(SEEDS), root_seed=4)
    monkeypatch.setattr(engine, "run_lives", lambda *args, **fields: broken_lives(batch))
    with pytest.raises(
        TroubleError, match=r"ranking \(.*ranking.toml\), seed 7: 3 worth values are not finite"
    ) as raised:
        sweep.run(asked, out=tmp_path / "r", fresh=True)
    assert "\n" not in str(raised.value)
    assert list(tmp_path.iterdir()) == [tmp_path / "r"]
    xarray.testing.assert_identical(bare(store.open_store(tmp_path / "r")), before)


def test_lives_held_at_once_do_not_grow_with_their_number(tmp_path, monkeypatch):
    asked, alive, most = load(), set(), []
    (one,) = engine.run_lives(asked.config, asked.params, np.arange(SEEDS), root_seed=4)

    def lives(*args: Any, **fields: Any) -> Iterator[engine.Batch]:
        for start in range(0, 400, SEEDS):
            counts = one.trace.counts._replace(shown=one.trace.counts.shown.copy())
            alive.add(start)
            weakref.finalize(counts.shown, alive.discard, start)
            most.append(len(alive))
            yield one._replace(start=start, trace=one.trace._replace(counts=counts))

    monkeypatch.setattr(engine, "run_lives", lives)
    found = sweep.run(asked, seeds=400, out=tmp_path / "r")
    assert len(most) == 40
    assert max(most) <= 2
    np.testing.assert_array_equal(
        found.shown.values.reshape(40, SEEDS, -1), np.broadcast_to(one.trace.counts.shown, (40, 10, 12))
    )


def test_template_follows_the_settings():
    assert results.template(load(keep_worth="all")).worth.dims == ("seed", "checkpoint", "estimator", "memory")
    assert set(results.template(load(metrics=["spearman"]))) & set(METRICS) == {"spearman"}
    for size, dtype in ((127, np.int8), (128, np.int16), (32_767, np.int16), (32_768, np.int32)):
        assert results.template(load(num_memories=size)).label_count.dtype == dtype


def beta(config: mwjax.Config) -> Any:
    """A stranger's estimator that has the name of one of ours."""
    return registry.ESTIMATORS["beta"](config)


def test_estimators_with_one_name_are_refused():
    with pytest.raises(InputError, match=r"observers: .*two have the same name"):
        results.template(load(observers=["beta", beta]))


@pytest.mark.parametrize(
    ("asked", "fields", "message"),
    [
        ("rankin", {}, "did you mean 'ranking'"),
        ("ranking", {"num_memorys": 5}, "num_memories"),
        ("ranking", {"seeds": 0}, "seeds = 0"),
        (load(), {"seeds": 0}, "seeds = 0"),
        (load(), {"chunk": 0}, "chunk = 0"),
        (load(), {"num_memories": 5}, "num_memories: can be set on an experiment given by name"),
    ],
)
def test_bad_input_is_one_line(monkeypatch, asked, fields, message):
    monkeypatch.setattr(engine, "run_lives", must_not_run)
    with pytest.raises(InputError, match=message) as raised:
        sweep.run(asked, **fields)
    assert "\n" not in str(raised.value)


def test_target_is_refused_before_anything_runs(tmp_path, monkeypatch):
    (tmp_path / "thesis.txt").write_text("mine")
    monkeypatch.setattr(engine, "run_lives", must_not_run)
    with pytest.raises(InputError, match="is not an mwjax store"):
        sweep.run(load(), out=tmp_path, fresh=True)
    with pytest.raises(InputError, match="is a file"):
        sweep.run(load(), out=tmp_path / "thesis.txt")


def expected_line(values: np.ndarray) -> dict[str, Any]:
    values = values.astype(np.float64)
    low, high = stats.t.interval(0.95, len(values) - 1, values.mean(0), stats.sem(values, axis=0))
    return {"mean": values.mean(0), "sd": values.std(0, ddof=1), "ci95": [low, high]}


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("memory_worth.spearman", lambda d: d.spearman.sel(estimator="memory_worth")),
        ("beta.rmse", lambda d: d.rmse.sel(estimator="beta")),
        ("evidence_median", lambda d: d.evidence_quantile.sel(quantile=0.5)),
        ("mean_success", lambda d: d.mean_success),
    ],
)
def test_summary_is_what_scipy_says(found, name, read):
    line, expected = results.summary(found)["metrics"][name], expected_line(read(found).values)
    for key, value in expected.items():
        np.testing.assert_allclose(line[key], value, rtol=1e-9, err_msg=key)


def test_summary_counts_labels(found):
    worth, p_plus = found.worth.sel(estimator="beta").values, found.p_plus.values
    enough = found.evidence.values >= 5
    low, high = enough & (worth <= np.float32(0.45)), enough & (worth >= np.float32(0.55))
    wrong = (low & (p_plus > np.float32(0.45))) | (high & (p_plus < np.float32(0.55)))
    lines = results.summary(found)["metrics"]
    assert lines["beta.labels_given"]["mean"][-1] == pytest.approx((low | high).sum(1).mean())
    assert lines["beta.labels_wrong"]["mean"][-1] == pytest.approx(wrong.sum(1).mean())
    assert 0 < wrong.sum() < (low | high).sum()


def test_summary_is_the_json_object(found):
    told = json.loads(json.dumps(results.summary(found), allow_nan=False))
    assert list(told) == ["experiment", "config", "seeds", "episodes", "metrics", "health", "timing", "coords"]
    assert (told["experiment"], told["seeds"], told["episodes"]) == ("ranking", SEEDS, 60)
    assert told["config"]["num_memories"] == 12
    assert told["health"] == {"non_finite_worth": 0}
    assert set(told["timing"]) == {"compile_s", "run_s", "episodes_per_s"}
    assert told["timing"]["episodes_per_s"] == pytest.approx(SEEDS * 60 / told["timing"]["run_s"])
    assert told["coords"] == {"checkpoint": [20, 60]}
    assert told["metrics"]["never_updated.spearman"] == {"mean": [0, 0], "sd": [0, 0], "ci95": [[0, 0], [0, 0]]}
    names = {
        f"{one}.{kind}"
        for one in SETTINGS["observers"]
        for kind in ("spearman", "rmse", "labels_given", "labels_wrong")
    }
    assert set(told["metrics"]) == names | {"mean_success", "evidence_least", "evidence_median"}


def test_one_seed_has_no_interval(found):
    told = results.summary(found.isel(seed=[0]))
    json.dumps(told, allow_nan=False)
    line = told["metrics"]["memory_worth.spearman"]
    assert line["mean"] == pytest.approx(found.spearman[0, :, 0].values.tolist())
    assert line["sd"] is None
    assert line["ci95"] is None


def test_summary_is_the_same_from_disk(found, tmp_path):
    stored = sweep.run(load(), out=tmp_path / "r")
    assert results.summary(stored)["metrics"] == results.summary(found)["metrics"]
    assert not any(one._in_memory for one in stored.variables.values() if one.dims[0] == "seed" and one.ndim > 1)
