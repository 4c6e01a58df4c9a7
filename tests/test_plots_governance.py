"""Figures of governance: drawn from small real results, they carry the Dataset's numbers and say what is missing."""

from __future__ import annotations

import itertools
import json
from typing import Any

import numpy as np
import pytest
import xarray
from drawing import line, rendered
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text

from mwjax import compare, experiment, plots, sweep, theory
from mwjax.analysis import calibration, survival, verdicts
from mwjax.plots import governance, price, rules
from mwjax.results import per_life, statistics
from mwjax.types import InputError

SMALL: dict[str, Any] = {
    "num_memories": 12,
    "num_retrieved": 2,
    "num_episodes": 400,
    "seeds": 4,
    "metrics": ["mean_success"],
}
POOLS = {"pool_sizes": [8, 4], "utility_low": [0.8, 0.0], "utility_high": [1.0, 0.3]}


def small(name: str, **fields: Any) -> experiment.Experiment:
    """That experiment in little."""
    return experiment.load(name, **{**SMALL, **fields})


@pytest.fixture(scope="module")
def compared() -> xarray.Dataset:
    asked = small("frequentist_vs_beta", **POOLS, outcome="mean", switch_at=200, theta=0.6, checkpoints=[400])
    asked.rules.clear()
    asked.rules.update({"threshold.min_evidence": [3, 10, 30], "beta.delta": [0.4, 0.2, 0.05]})
    return compare.compare(asked)


@pytest.fixture(scope="module")
def governed() -> xarray.Dataset:
    metrics = ["mean_success", "calibration"]
    return sweep.run(small("governance", **POOLS, metrics=metrics, watchers=["threshold", "beta"], theta=0.5, seeds=6))


@pytest.fixture(scope="module")
def drifted() -> xarray.Dataset:
    watchers = ["threshold", "beta:counter=discounted", "beta:counter=discounted,delta=.01"]
    fields = {"num_episodes": 600, "switch_at": 300, "checkpoints": [100, 200, 300, 350, 450, 600], "discount": 0.9}
    return sweep.run(small("drift", **fields, watchers=watchers, observers=["memory_worth", "discounted"], seeds=6))


@pytest.fixture(scope="module")
def aged() -> xarray.Dataset:
    asked = small("delay_by_age", num_memories=8, num_retrieved=1, num_episodes=4_000, checkpoints=[4_000])
    asked.axes.update(switch_at=[400, 800, 1_600])
    return sweep.sweep(asked)


@pytest.fixture(scope="module")
def thresholds() -> xarray.Dataset:
    asked = small("threshold_sensitivity", **POOLS, checkpoints=[400], watchers=[])
    asked.axes.update(outcome=["mean"], theta=[0.2, 0.7], min_evidence=[1, 10, 30])
    return sweep.sweep(asked)


@pytest.fixture(scope="module")
def priced() -> xarray.Dataset:
    asked = small("suppression_price", **POOLS, checkpoints=[400], metrics=["mean_success", "starved"], theta=0.5)
    asked.axes.update(governance=["none", "suppress"], exploration_floor=[0.0, 0.2], floor_mode=["slot"])
    return sweep.sweep(asked)


def legend(drawn: Figure) -> list[str]:
    return [text.get_text() for one in drawn.legends for text in one.get_texts()]


def sides(axes: Axes) -> tuple[str, str]:
    return axes.get_xlabel(), axes.get_ylabel()


def points(axes: Axes) -> dict[str, tuple[float, float]]:
    """Of error bars: label -> the point."""
    found = [one for one in axes.containers if one.get_label()[:1] != "_"]
    return {str(one.get_label()): (float(one[0].get_xdata()[0]), float(one[0].get_ydata()[0])) for one in found}


def test_comparison_shows_gain_against_error(compared):
    left = rendered(compared).axes[0]
    assert sides(left) == ("good memories deprecated (%)", "success points gained")
    gain, error = 100 * compare.gained(compared).mean(0), 100 * np.nanmean(compared.false_deprecation.values, 0)
    places = {
        (round(x, 6), round(y, 6))
        for one in left.get_lines()
        if one.get_marker() in ("o", "s")
        for x, y in zip(one.get_xdata(), one.get_ydata(), strict=True)
    }
    assert places == {(round(error[i], 6), round(gain[i], 6)) for i in range(2, 8)}
    assert {text.get_text() for text in left.texts} >= {"3", "10", "30", "0.4", "0.2", "0.05"}
    assert line(left, "doing nothing").get_ydata()[0] == 0


def test_comparison_curve_is_what_contests_interpolate(compared):
    left = rendered(compared).axes[0]
    x, y = 100 * np.nanmean(compared.false_deprecation.values, 0), 100 * compare.gained(compared).mean(0)
    curves = [one for one in left.get_lines() if len(one.get_xdata()) > 10]
    for one, own in zip(curves, (slice(2, 5), slice(5, 8)), strict=True):
        order = np.argsort(x[own])
        along = one.get_xdata()
        np.testing.assert_allclose(one.get_ydata(), np.interp(along, x[own][order], y[own][order]))


def test_comparison_shows_contests_with_intervals(compared):
    right = rendered(compared).axes[1]
    found = compare.contests(compared)
    assert found
    assert right.get_title(loc="left") == "threshold less beta"
    assert sides(right) == ("at equal share of good memories\ndeprecated (%)", "points")
    heights = [float(one[0].get_ydata()[0]) for one in right.containers]
    np.testing.assert_allclose(heights, [100 * one.difference for one in found])
    ends = [one[2][0].get_segments()[0][:, 1] for one in right.containers]
    np.testing.assert_allclose(ends, [[100 * one.low, 100 * one.high] for one in found])
    filled = [one[0].get_markerfacecolor() == "k" for one in right.containers]
    assert filled == [one.low > 0 or one.high < 0 for one in found]


def test_comparison_has_the_oracle_as_line_or_note(compared):
    near, far = compared.copy(deep=True), compared.copy(deep=True)
    best = compare.gained(compared).mean(0)[2:].max()
    nothing = compared.success.values[:, 0].mean()
    near.success[:, 1] = nothing + best
    far.success[:, 1] = nothing + 50 * abs(best)
    assert f"oracle ({100 * best:+.2f})" in legend(rendered(near))
    said = [text.get_text() for text in rendered(far).axes[0].texts]
    assert f"↑ oracle: {5000 * abs(best):+.2f}" in said


def test_knob_values_do_not_overlap(compared):
    drawn = plots.figure(compared)
    renderer = FigureCanvasAgg(drawn).get_renderer()
    drawn.draw(renderer)
    boxes = [Text.get_window_extent(text, renderer) for text in drawn.axes[0].texts if text.get_text()[0].isdigit()]
    assert len(boxes) == 6
    assert not any(one.overlaps(two) for one, two in itertools.combinations(boxes, 2))


def test_long_rule_names_of_a_comparison_stay_inside(compared):
    long = {"threshold": "empirical_bayes_shrunk", "beta": "e_process_two_sided"}
    names = [long.get(one, one) for one in compared["rule"].values.tolist()]
    drawn = plots.figure(compared.assign_coords(rule=("setting", np.array(names, object))))
    renderer = FigureCanvasAgg(drawn).get_renderer()
    drawn.draw(renderer)
    right = drawn.axes[1]
    assert right.get_title(loc="left") == "empirical bayes shrunk\nless e process two sided"
    assert right.get_tightbbox(renderer).x1 <= drawn.bbox.width


def test_comparison_without_success_is_refused(compared):
    with pytest.raises(InputError, match=r"^metrics: the figure needs success, which this result does not have$"):
        plots.figure(compared.drop_vars("success"))


def test_governed_run_labels_the_acting_rule(governed):
    drawn = rendered(governed)
    assert legend(drawn) == ["beta (acts)", "threshold", "beta"]
    assert [sides(axes) for axes in drawn.axes] == [
        ("episodes", "bad memories decided\nagainst (%)"),
        ("episodes", "good memories decided\nagainst (%)"),
        ("good memories decided against (%)", "bad memories missed (%)"),
        ("forecast of success", "share that succeeded"),
    ]


def test_governed_run_counts_decisions_by_the_truth(governed):
    bad, good = rendered(governed).axes[:2]
    known = verdicts.store_of(governed)
    start = verdicts.truth(known, np.arange(6), np.zeros(6, int)).p_plus
    first = governed.decisions.values[:, 1, 0]
    for axes, chosen in ((bad, start < 0.5), (good, start >= 0.5)):
        assert chosen.any()
        drawn = line(axes, "threshold")
        assert {int(one) + 1 for one in first[chosen & (first >= 0)]} <= set(drawn.get_xdata())
        for episode, share in zip(drawn.get_xdata(), drawn.get_ydata(), strict=True):
            expected = (chosen & (first >= 0) & (first < episode)).sum() / chosen.sum()
            assert share == pytest.approx(100 * expected)
        assert share == drawn.get_ydata().max()
    assert line(bad, "threshold").get_ydata()[-1] > 0


def test_governed_run_shows_both_errors(governed):
    found = points(rendered(governed).axes[2])
    measured = dict(per_life(governed))
    for name in ("threshold", "beta"):
        expected = [100 * np.nanmean(measured[f"{name}.{one}"][:, -1]) for one in ("false_deprecation", "missed")]
        np.testing.assert_allclose(found[name], expected)


def test_reliability_is_pooled_over_lives(governed):
    axes = rendered(governed).axes[3]
    pooled = governed.calibration.values.sum(0)[1].astype(float)
    found = calibration.reliability(pooled.sum(0), pooled[1])
    enough = found.n >= governance.LEAST
    drawn = next(one for one in axes.containers if one.get_label() == "beta")
    np.testing.assert_allclose(drawn[0].get_xdata(), found.forecast[enough])
    np.testing.assert_allclose(drawn[0].get_ydata(), found.observed[enough])
    segments = np.array([one[:, 1] for one in drawn[2][0].get_segments()])
    np.testing.assert_allclose(segments, np.stack([found.low[enough], found.high[enough]], 1))


def test_governed_run_needs_no_calibration_but_decisions_and_utility(governed):
    assert [axes.get_visible() for axes in rendered(governed.drop_vars("calibration")).axes] == [True] * 3 + [False]
    with pytest.raises(InputError, match=r"^metrics: the figure needs utility, which this result does not have$"):
        plots.figure(governed.drop_vars("utility"))


def test_drift_shows_worth_of_the_drifting_memories(drifted):
    axes = rendered(drifted).axes[0]
    assert sides(axes) == ("episodes", "worth")
    for name, label in (("memory_worth", "memory worth"), ("discounted", "discounted")):
        mean = drifted.worth.sel(estimator=name).isel(memory=slice(2)).mean(("seed", "memory"))
        np.testing.assert_allclose(line(axes, label).get_ydata(), mean, rtol=1e-5)
    assert any(list(one.get_xdata()) == [300, 300] for one in axes.get_lines())
    p = line(axes, "p+ now")
    assert p.get_xdata().tolist() == [1, 300, 301, 600]
    known = verdicts.store_of(drifted)
    expected = [verdicts.truth(known, np.arange(6), np.full(6, t)).p_plus[:, :2].mean() for t in (0, 299, 300, 599)]
    np.testing.assert_allclose(p.get_ydata(), expected)
    assert p.get_ydata()[1] > p.get_ydata()[2]


def test_drift_shows_who_is_still_undetected(drifted):
    drawn = rendered(drifted)
    axes = drawn.axes[1]
    assert sides(axes) == ("retrievals since the switch", "share still undetected")
    assert legend(drawn) == ["threshold", "beta on discounted", "beta on discounted, delta .01"]
    for i, label in enumerate(legend(drawn)):
        retrievals, _, censored = verdicts.delays(drifted, i)
        times, share = survival.survival(retrievals, censored)
        assert line(axes, label).get_xdata().tolist() == [0, *times]
        np.testing.assert_allclose(line(axes, label).get_ydata(), [1, *share])


def test_drift_shows_delay_against_alarms(drifted):
    axes = rendered(drifted).axes[2]
    assert axes.get_xlabel() == "false alarms per 1,000 retrievals"
    assert axes.get_ylabel() == "mean delay (retrievals,\ncut at the end of the life)"
    measured, found = dict(per_life(drifted)), points(axes)
    for name in drifted["rule"].values:
        expected = [np.nanmean(measured[f"{name}.{one}"][:, -1]) for one in ("false_alarms", "delay")]
        np.testing.assert_allclose(found[rules.in_words(name)], expected)


def test_drift_without_worth_over_time_has_no_first_panel(drifted):
    last = drifted.assign(worth=drifted.worth.isel(checkpoint=-1))
    assert len(rendered(last).axes) == 2
    with pytest.raises(InputError, match=r"^metrics: the figure needs shown_at, which this result does not have$"):
        plots.figure(drifted.drop_vars("shown_at"))


def test_delay_by_age_has_means_laws_and_the_end_of_the_life(aged):
    (axes,) = rendered(aged).axes
    assert sides(axes) == ("age at the switch (expected retrievals, log scale)", "mean delay (retrievals, log scale)")
    for rule, label in (("threshold", "threshold"), ("threshold:counter=discounted", "threshold on discounted")):
        drawn = line(axes, label)
        np.testing.assert_allclose(drawn.get_xdata(), [50, 100, 200])
        np.testing.assert_allclose(drawn.get_ydata(), aged[f"{rule}.delay"].isel(checkpoint=-1).mean("seed"), rtol=1e-6)
    laws = [theory.deprecation.lifetime_delay(one, 0.95, 0.1, 0.4) for one in (50, 100, 200)]
    np.testing.assert_allclose(line(axes, "law of lifetime counters").get_ydata(), laws)
    law = theory.deprecation.discounted_delay(0.95, 0.95, 0.1, 0.4)
    np.testing.assert_allclose(line(axes, "law of discounted counters").get_ydata(), [law] * 3)
    np.testing.assert_allclose(line(axes, "end of the life").get_ydata(), [450, 400, 300])


def test_no_law_where_companions_dilute(aged):
    settings = json.loads(aged.attrs["config"]) | {"num_retrieved": 2}
    assert not any("law" in one for one in legend(rendered(aged.assign_attrs(config=json.dumps(settings)))))


def test_delay_by_age_needs_a_switch_after_the_start(aged):
    with pytest.raises(InputError, match=r"^axes.switch_at: the figure needs a switch after the first episode$"):
        plots.figure(aged.isel(switch_at=slice(1)).assign_coords(switch_at=[0]))


def test_thresholds_write_the_value_in_every_cell(thresholds):
    above, below = rendered(thresholds).axes
    assert (above.get_ylabel(), below.get_xlabel()) == ("minimum evidence", "θ")
    assert above.get_title(loc="left") == "outcome: mean\nsuccess (% of episodes)"
    assert below.get_title(loc="left") == "good memories deprecated (%)"
    for axes, name in ((above, "mean_success"), (below, "acting.false_deprecation")):
        values = thresholds[name].isel(checkpoint=-1, outcome=0).transpose("seed", "min_evidence", "theta").values
        mean = 100 * statistics(values.astype(np.float64))[0]
        np.testing.assert_allclose(axes.images[0].get_array(), mean)
        written = {(text.get_position()[1], text.get_position()[0]): text.get_text() for text in axes.texts}
        assert written == {place: f"{value:.1f}" for place, value in np.ndenumerate(mean)}
    (frame,) = above.patches
    success = above.images[0].get_array()
    assert success[round(frame.get_y() + 0.48), round(frame.get_x() + 0.48)] == success.max()


def test_thresholds_say_where_no_memory_is_good(thresholds):
    empty = thresholds.copy(deep=True)
    empty["acting.false_deprecation"][:, :, 1] = np.nan
    drawn = rendered(empty)
    assert [text.get_text() for text in drawn.axes[1].texts].count("none") == 3
    assert drawn.get_suptitle().endswith('"none": no memory was ever good')
    assert len(rendered(thresholds.drop_vars("acting.false_deprecation")).axes) == 1


def test_price_of_suppression_is_success_and_starving(priced):
    drawn = rendered(priced)
    shown = [axes for axes in drawn.axes if axes.get_visible()]
    assert [axes.get_xlabel() for axes in shown] == ["exploration floor ε (per episode or per slot)"] * 3
    assert shown[0].get_ylabel() == "success (% of episodes)"
    assert shown[1].get_ylabel() == "memories with under 10\nretrievals (%)"
    for action, label in (("none", "no action, per slot"), ("suppress", "suppress, per slot")):
        here = priced.isel(checkpoint=-1).sel(governance=action, floor_mode="slot").mean("seed")
        for axes, name in zip(shown, ("mean_success", "starved", "beta.missed"), strict=True):
            np.testing.assert_allclose(line(axes, label).get_ydata(), 100 * here[name], rtol=1e-5)


def test_price_of_suppression_tells_modes_and_actions_apart(priced):
    both = xarray.concat([priced, priced.assign_coords(floor_mode=["episode"])], "floor_mode")
    looks = {(one["color"], str(one["ls"])) for _, one in price.curves(both)}
    assert len(looks) == 4
    drawn = plots.figure(both)
    renderer = FigureCanvasAgg(drawn).get_renderer()
    drawn.draw(renderer)
    assert drawn.legends[0].get_window_extent(renderer).x1 <= drawn.bbox.width
    with pytest.raises(InputError, match=r"^metrics: the figure needs mean_success, which this result does not have$"):
        plots.figure(priced.drop_vars("mean_success"))


def test_long_rule_names_stay_inside_the_figure(drifted, governed):
    for dataset in (drifted, governed):
        names = [f"{one}:counter=discounted_step,delta=.001" for one in ("beta", "threshold", "wilson_upper")]
        drawn = plots.figure(dataset.assign_coords(rule=names))
        renderer = FigureCanvasAgg(drawn).get_renderer()
        drawn.draw(renderer)
        box = drawn.legends[0].get_window_extent(renderer)
        assert box.x0 >= 0
        assert box.x1 <= drawn.bbox.width


def test_rules_in_words():
    assert rules.in_words("beta:counter=discounted_step,delta=.01") == "beta on discounted step, delta .01"
    assert rules.in_words("e_process") == "e process"


def test_percent_axis_keeps_zero():
    axes = Figure().subplots()
    rules.percent_axis(axes, "x", 40, "share (%)")
    assert axes.get_xscale() == "symlog"
    assert [text.get_text() for text in axes.get_xticklabels()] == ["0", "0.1", "0.3", "1", "3", "10", "30"]
    rules.percent_axis(axes, "y", 2, "share (%)")
    assert axes.get_yscale() == "linear"
