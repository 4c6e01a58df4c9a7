"""Every kind of Dataset has its figure: the labels say what is drawn, the curves carry the Dataset's numbers."""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from drawing import line, rendered
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from mwjax import experiment, plots, results, store, theory
from mwjax.plots import difficulty, feedback, hitchhiker
from mwjax.types import InputError

MARKS = [100, 300, 1000]


def made_run(name: str, **fields: Any) -> xarray.Dataset:
    """A finished Dataset of that experiment, filled without a simulation."""
    asked = experiment.load(name, seeds=3, num_episodes=MARKS[-1], checkpoints=MARKS, **fields)
    template, random = results.template(asked), np.random.default_rng(0)
    arrays: dict[str, Any] = {}
    for key, one in template.data_vars.items():
        values = random.random(one.shape) if one.dtype.kind == "f" else random.integers(20, 40, one.shape)
        arrays[str(key)] = values.astype(one.dtype)
    arrays["evidence"] = arrays["successes"] + 10
    arrays["non_finite_worth"][:] = 0
    if "pair_count" in arrays:
        arrays["pair_count"][:, :, 0] = arrays["pair_count"][:, :, 1] + 5
    if "expected_hits" in arrays:
        arrays["expected_hits"] = (arrays["evidence"] * random.random(arrays["evidence"].shape)).astype(np.float32)
    memory = store.Memory(template)
    memory.write(arrays)
    return memory.finish({"config": json.dumps(asked.fields), "experiment": asked.name})


def made_sweep(name: str, metrics: list[str], **axes: list[Any]) -> xarray.Dataset:
    asked = experiment.load(name, seeds=3)
    axes = axes or asked.axes
    places = {key: (key, np.asarray(one, object if isinstance(one[0], str) else None)) for key, one in axes.items()}
    made = xarray.Dataset(coords={"seed": range(3), "checkpoint": MARKS, **places})
    random, shape = np.random.default_rng(0), (3, *(len(one) for one in axes.values()), len(MARKS))
    for metric in metrics:
        made[metric] = (("seed", *axes, "checkpoint"), random.random(shape).astype(np.float32))
    attrs = {"kind": "sweep", "axes": json.dumps(list(axes)), "config": json.dumps(asked.fields)}
    return made.assign_attrs(attrs)


def made_map() -> xarray.Dataset:
    """A survey whose thresholds follow 1000/T, the criterion `disjoint` never met, one slice value never reached."""
    asked = experiment.load("separation_map")
    assert asked.aim is not None
    names, grid, marks = (
        ["anchor_above", "gap_above", "posterior", "disjoint", "removal"],
        [0.1, 0.3, 1.0],
        [2000, 5000],
    )
    made = xarray.Dataset(coords={"criterion": names, "separation": grid, "checkpoint": marks})
    shares = 0.5 + 0.49 * np.sqrt(np.outer(grid, marks) / 5000)
    made["score"] = (("criterion", "separation", "checkpoint"), np.stack([shares] * 5))
    base = np.array([[1000 / mark * near for mark in marks] for near in (1, 1.07, 1.14, np.inf, 0)])
    base[-1] = grid[0]
    for end, near in (("threshold", 1.0), ("low", 0.8), ("high", 1.3)):
        made[end] = (("criterion", "checkpoint"), base * near)
    made["closed_form"] = ("checkpoint", [1050 / mark for mark in marks])
    for field, values in asked.slices.items():
        found = np.linspace(0.1, 0.6, len(values))
        for end, near in (("threshold", 1.0), ("low", 0.8), ("high", 1.3), ("closed_form", 1.02)):
            made[f"{field}_{end}"] = (field, found * near)
        made = made.assign_coords({field: values})
    made.hitchhiker_utility_threshold[-1] = made.hitchhiker_utility_high[-1] = np.inf
    attrs = {"kind": "separation", "aim": json.dumps(asked.aim.__dict__), "config": json.dumps(asked.fields)}
    return made.assign_attrs(attrs)


def words(drawn: Figure) -> str:
    """All text of a figure."""
    own = [text.get_text() for axes in drawn.axes for text in axes.texts]
    named = [text.get_text() for legend in drawn.legends for text in legend.get_texts()]
    sides = [f"{axes.get_title(loc='left')}\n{axes.get_xlabel()}\n{axes.get_ylabel()}" for axes in drawn.axes]
    return "\n".join([*own, *named, *sides, drawn.get_suptitle()])


@pytest.fixture(scope="module")
def survey() -> xarray.Dataset:
    return made_map()


@pytest.fixture(scope="module")
def mapped(survey) -> Figure:
    return rendered(survey)


def test_map_names_every_criterion(mapped):
    said = words(mapped)
    for one in (
        "f*: anchor above",
        "gap > .02",
        "posterior > .95",
        "removal value",
        "P(worth of anchor > worth of hit",
    ):
        assert one in said
    assert "never, for f up to 1:\n95 % intervals disjoint" in said
    assert "removal value\n(at most)" in said
    assert "f*: anchor above in 95 % of lives" in said


def test_map_is_separation_over_episodes_on_log_scales(mapped):
    axes = mapped.axes[0]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("episodes T (log scale)", "separation f (log scale)")


def test_map_carries_thresholds_band_and_closed_form(mapped, survey):
    axes = mapped.axes[0]
    found = line(axes, "f*: anchor above in 95 % of lives")
    np.testing.assert_array_equal(found.get_ydata(), survey.threshold.sel(criterion="anchor_above"))
    np.testing.assert_array_equal(line(axes, "closed form of f*").get_ydata(), survey.closed_form)
    drawn = [one.get_ydata().tolist() for one in axes.get_lines()]
    assert all(survey.threshold.sel(criterion=name).values.tolist() in drawn for name in ("gap_above", "posterior"))
    (band,) = [one for one in axes.collections if one.get_label() == "95 % band of f*"]
    heights = band.get_paths()[0].vertices[:, 1]
    assert heights.min() == survey.low.sel(criterion="anchor_above").min()
    assert heights.max() == survey.high.sel(criterion="anchor_above").max()


def test_slices_have_error_bars_closed_form_and_never(mapped, survey):
    for axes, field in zip(mapped.axes[1:], ("num_memories", "num_retrieved", "hitchhiker_utility"), strict=True):
        points = axes.containers[0][0]
        reached = np.isfinite(survey[f"{field}_threshold"].values)
        np.testing.assert_array_equal(points.get_xdata(), survey[field].values[reached])
        np.testing.assert_array_equal(points.get_ydata(), survey[f"{field}_threshold"].values[reached])
        np.testing.assert_array_equal(axes.get_lines()[0].get_ydata(), survey[f"{field}_closed_form"])
    assert [text.get_text() for text in mapped.axes[-1].texts] == ["never"]


def test_map_can_be_printed(mapped):
    assert mapped.get_figwidth() == 6.5
    texts = [text for axes in mapped.axes for text in [*axes.texts, *axes.get_xticklabels(), *axes.get_yticklabels()]]
    assert min(text.get_fontsize() for text in texts) >= 8


def test_labels_of_the_map_do_not_overlap(mapped):
    renderer = FigureCanvasAgg(mapped).get_renderer()
    mapped.draw(renderer)
    boxes = [Text.get_window_extent(text, renderer) for text in mapped.axes[0].texts if text.get_text()[0] != "."]
    assert len(boxes) >= 4
    assert not any(one.overlaps(two) for one, two in itertools.combinations(boxes, 2))


def test_map_without_slices_or_fit_is_drawn(survey):
    bare = survey.drop_vars([name for name in survey if str(name).startswith(("num_", "hitchhiker_"))])
    bare["threshold"] = bare.threshold * np.inf
    bare["high"], bare["closed_form"] = bare.high * np.inf, bare.closed_form * np.nan
    assert len(rendered(bare).axes) == 1


FLOOR_METRICS = [
    "memory_worth.spearman", "mean_success", "starved", "evidence_least", "memory_worth.coverage_p_plus",
    "memory_worth.coverage_expected",
]  # fmt: skip


def test_floor_sweep_has_four_panels():
    dataset = made_sweep("exploration_floor", FLOOR_METRICS)
    drawn = rendered(dataset)
    trade, least, starved, coverage = drawn.axes
    assert (trade.get_xlabel(), trade.get_ylabel()) == ("mean success", "Spearman's ρ with utility")
    here = dataset.isel(checkpoint=-1).sel(floor_mode="slot", temperature=0.05).mean("seed")
    curve = line(trade, "floor per slot, τ = 0.05")
    np.testing.assert_allclose(curve.get_xdata(), here.mean_success, rtol=1e-6)
    np.testing.assert_allclose(curve.get_ydata(), here["memory_worth.spearman"], rtol=1e-6)
    assert [text.get_text() for text in trade.texts] == ["ε = 0", "0.01", "0.02", "0.05", "0.1", "0.2", "0.4", "0.8"]
    np.testing.assert_allclose(line(least, "floor per slot, τ = 0.05").get_ydata(), here.evidence_least, rtol=1e-6)
    np.testing.assert_allclose(line(starved, "floor per slot, τ = 0.05").get_ydata(), here.starved, rtol=1e-6)
    overall = dataset["memory_worth.coverage_p_plus"].isel(checkpoint=-1).mean(("seed", "floor_mode", "temperature"))
    np.testing.assert_allclose(line(coverage, "of static p+").get_ydata(), overall, rtol=1e-6)
    assert all(axes.get_xlabel() == "exploration floor ε" for axes in (least, starved, coverage))


def test_curves_of_a_floor_sweep_can_be_told_apart_without_colour():
    styles = [
        style for _, style in feedback.curves(made_sweep("exploration_floor", FLOOR_METRICS), "exploration_floor")
    ]
    assert len({(one["marker"], str(one["ls"])) for one in styles}) == len(styles) == 6


def test_temperature_alone_and_few_metrics_are_enough():
    drawn = rendered(made_sweep("feedback", FLOOR_METRICS[:2], temperature=[1.0, 0.1, 0.02]))
    assert [axes.get_visible() for axes in drawn.axes] == [True, False]
    drawn = rendered(made_sweep("feedback", ["starved"], temperature=[1.0, 0.1]))
    assert drawn.axes[0].get_xlabel() == "temperature τ"


NAMES = ["memory_worth", "contextual", "backdoor", "backdoor_half", "residual"]


def test_difficulty_sweep_shows_both_axes_through_the_base():
    dataset = made_sweep("difficulty", [f"{name}.spearman" for name in NAMES])
    drawn = rendered(dataset)
    left, right = drawn.axes
    assert (left.get_xlabel(), right.get_xlabel()) == ("gain (effect of utility)", "share of hard tasks")
    assert (left.get_title(loc="left"), right.get_title(loc="left")) == ("at hard share = 0.5", "at gain = 0.16")
    here = dataset["residual.spearman"].isel(checkpoint=-1).mean("seed")
    np.testing.assert_allclose(line(left, "residual").get_ydata(), here.sel(hard_share=0.5), rtol=1e-6)
    np.testing.assert_allclose(line(right, "residual").get_ydata(), here.sel(gain=0.16), rtol=1e-6)
    looks = {(one.get_marker(), one.get_color()) for one in left.get_lines() if one.get_marker() != "None"}
    assert len(looks) == len(NAMES)


def test_structure_of_the_difficulty_world_is_theory():
    drawn = rendered(made_sweep("difficulty", ["memory_worth.spearman"]))
    (band,) = drawn.axes[0].patches
    low, high = (theory.difficulty.structural_spearman(70, 30, rho, level=0.85) for rho in (0, 1))
    assert (band.get_y(), band.get_y() + band.get_height()) == pytest.approx((low, high))
    assert "specialists all below generalists\n(ρ among generalists 0 to 1)" in words(drawn)
    expected = line(drawn.axes[0], "closed form of memory worth").get_ydata()
    assert low < expected[0] < expected[-1] < high


def test_hitchhiker_sweep_has_closed_forms():
    dataset = made_sweep("hitchhiker", list(hitchhiker.PANELS))
    drawn = rendered(dataset)
    assert [axes.get_title(loc="left") for axes in drawn.axes] == list(hitchhiker.PANELS.values())
    for axes, name in zip(drawn.axes, hitchhiker.PANELS, strict=True):
        mean = dataset[name].isel(checkpoint=-1).mean("seed")
        np.testing.assert_allclose(line(axes, "simulated, 95 % interval").get_ydata(), mean, rtol=1e-6)
    assert line(drawn.axes[1], "closed form").get_ydata()[-1] == pytest.approx(theory.hitchhiker.gap(100, 8, 1.0))
    whole = line(drawn.axes[2], "closed form").get_ydata()[0]
    rate = 8 / 99 * ((0.9 + 0.05 + 6 * 0.5) / 8 - 0.5)
    assert whole == pytest.approx(0.5 + rate)


def test_no_closed_form_for_diverse_retrieval():
    drawn = rendered(made_sweep("diversity", list(hitchhiker.PANELS)))
    assert "closed form" not in words(drawn)
    assert "diversity" in drawn.axes[0].get_xlabel()


def test_other_sweeps_are_small_multiples():
    dataset = made_sweep("weighting", ["memory_worth.rmse", "memory_worth.spearman", "memory_worth_score.spearman"])
    drawn = rendered(dataset)
    assert [axes.get_title(loc="left") for axes in drawn.axes] == ["k = 2", "k = 4", "k = 8", "k = 16"]
    assert drawn.axes[0].get_ylabel() == "Spearman's ρ with utility"
    here = dataset["memory_worth_score.spearman"].isel(checkpoint=-1).sel(num_retrieved=4).mean("seed")
    np.testing.assert_allclose(line(drawn.axes[1], "score").get_ydata(), here, rtol=1e-6)


@pytest.mark.parametrize(
    "axes",
    [
        {"floor_mode": ["episode", "slot"]},
        {"num_memories": [50, 100, 200, 400, 800], "num_retrieved": [2, 4, 6, 8, 10], "score_low": [0.0, 0.5, 1.0]},
    ],
)
def test_any_sweep_can_be_drawn(axes):
    drawn = rendered(made_sweep("weighting", ["mean_success"], **axes))
    assert drawn.axes[0].get_ylabel() == "mean success"


def test_sweep_without_metrics_is_refused():
    with pytest.raises(InputError, match="metrics"):
        plots.figure(made_sweep("weighting", []))


def test_run_with_pairs_shows_worths_gap_and_removal():
    dataset = made_run("hitchhiker", separation=0.3)
    drawn = rendered(dataset)
    worth, gap, removal = drawn.axes
    count = dataset.pair_count.astype(float)
    expected = (count.sel(count="successes") / count.sel(count="evidence")).isel(pair=0).mean("seed")
    for role in ("anchor", "hitchhiker"):
        np.testing.assert_allclose(line(worth, role).get_ydata(), expected.sel(role=role))
    both = expected.sel(role="anchor") - expected.sel(role="hitchhiker")
    np.testing.assert_allclose(line(gap, "gap").get_ydata(), both)
    heights = [bar.get_height() for bar in removal.patches]
    np.testing.assert_allclose(heights, dataset.removal_value.mean("seed"), rtol=1e-6)
    assert [text.get_text() for text in removal.get_xticklabels()] == ["anchor", "hitchhiker"]
    assert "spearman" not in dataset


def test_run_with_pairs_needs_no_removal():
    assert len(rendered(made_run("diversity", retrieval="diverse")).axes) == 2


def test_run_with_contexts_shows_pools():
    dataset = made_run("difficulty")
    drawn = rendered(dataset)
    left, right = drawn.axes
    for name in NAMES:
        mean = dataset.spearman.sel(estimator=name).mean("seed")
        np.testing.assert_allclose(line(left, name.replace("_", " ")).get_ydata(), mean, rtol=1e-6)
    seed = int(right.get_title(loc="left").partition("seed ")[2].rstrip(")"))
    life = dataset.isel(seed=seed, estimator=0)
    np.testing.assert_array_equal(line(right, "70 generalists").get_ydata(), life.worth[:70])
    np.testing.assert_array_equal(line(right, "30 specialists").get_xdata(), life.utility[70:])
    assert len(rendered(made_run("difficulty", metrics=["mean_success"])).axes) == 1


def test_run_with_compensator_holds_worth_against_both_truths():
    dataset = made_run("feedback")
    drawn = rendered(dataset)
    ranking, success, static, expected = drawn.axes
    np.testing.assert_allclose(ranking.get_lines()[0].get_ydata(), dataset.spearman[..., 0].mean("seed"), rtol=1e-6)
    np.testing.assert_allclose(success.get_lines()[0].get_ydata(), dataset.mean_success.mean("seed"), rtol=1e-6)
    assert (static.get_xlabel(), expected.get_xlabel()) == ("static p+", "expected hits / n")
    life = dataset.isel(seed=int(static.get_title(loc="left").partition("seed ")[2].rstrip(")")))
    share = (life.expected_hits / life.evidence).values
    dots = np.concatenate([one.get_xdata() for one in expected.get_lines()[:2]])
    np.testing.assert_allclose(np.sort(dots), np.sort(share), rtol=1e-6)


@pytest.mark.parametrize("metrics", [["compensator"], ["compensator", "mean_success"]])
def test_run_with_compensator_needs_no_ranking(metrics):
    rendered(made_run("feedback", metrics=metrics))


def test_one_seed_is_drawn():
    for name in ("hitchhiker", "difficulty", "feedback"):
        rendered(made_run(name).isel(seed=slice(1)))
    dataset = made_sweep("difficulty", ["memory_worth.spearman"])
    rendered(dataset.isel(seed=slice(1)))


def test_expected_line_follows_the_swept_value():
    dataset = made_sweep("difficulty", ["memory_worth.spearman"], gain=[0.04, 0.44])
    assert difficulty.is_sweep(dataset)
    (axes,) = rendered(dataset).axes
    first, last = line(axes, "closed form of memory worth").get_ydata()
    assert last > first


def test_no_module_uses_pyplot():
    for path in Path(plots.__file__).parent.glob("*.py"):
        assert "pyplot" not in path.read_text(encoding="utf-8")
