"""The figure shows what the Dataset says, can be read without colour, and is the same bytes each time."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure

from mwjax import experiment, paper, plots, results, store, theory
from mwjax.types import InputError

MARKS = [200, 500, 1000, 2000, 5000, 10_000]
OKABE_ITO = {"#000000", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7", "#7f7f7f"}
NEAR = ["memory_worth", "memory_worth_score", "memory_worth_oracle", "beta"]


def made_up(seeds: int = 6, **fields: Any) -> xarray.Dataset:
    """A finished Dataset without a simulation: Spearman near the closed form, some labels right and some wrong."""
    settings = {"checkpoints": MARKS, "num_episodes": MARKS[-1], "observers": [*NEAR, "never_updated"], **fields}
    asked = experiment.load("ranking", seeds=seeds, **settings)
    template, random = results.template(asked), np.random.default_rng(0)
    arrays = {str(name): np.zeros(one.shape, one.dtype) for name, one in template.data_vars.items()}
    shape, memories = (seeds, template.sizes["memory"]), template.sizes["memory"]
    arrays["utility"] = np.tile(np.linspace(0, 1, memories, dtype=np.float32), (seeds, 1))
    arrays["p_plus"] = np.float32(0.44) + arrays["utility"] * np.float32(0.12)
    between = tuple(range(1, arrays["worth"].ndim - 1))
    arrays["worth"][:] = np.expand_dims(arrays["p_plus"] + random.normal(0, 0.02, shape), between)
    level = [theory.spearman(100, 8, int(mark)) for mark in template.checkpoint.values]
    paired = np.array(level)[:, None] + 0.004 * np.arange(template.sizes["estimator"])
    arrays["spearman"][:] = paired + random.normal(0, 0.03, (seeds, 1, 1))
    arrays["spearman"][:, :, template.estimator.values == "never_updated"] = 0
    if "mean_success" in arrays:
        arrays["mean_success"][:] = np.arange(seeds)[:, None] / 100
    if "label_count" in arrays:
        count = xarray.DataArray(arrays["label_count"], template.label_count.coords)
        count.loc[{"truth_scale": "utility", "true_label": "high", "label": "mixed"}] = 40
        count.loc[{"truth_scale": "p_plus", "true_label": "high", "label": "high"}] = 1
        count.loc[{"truth_scale": "p_plus", "true_label": "mixed", "label": "high"}] = 3
    memory = store.Memory(template)
    memory.write(arrays)
    return memory.finish({"config": json.dumps(asked.fields), "experiment": asked.name})


@pytest.fixture(scope="module")
def dataset() -> xarray.Dataset:
    return made_up()


@pytest.fixture(scope="module")
def drawn(dataset) -> Figure:
    return plots.figure(dataset)


def lines(axes: Axes) -> dict[str, Any]:
    return {str(line.get_label()): line for line in axes.get_lines()}


def texts(axes: Axes) -> str:
    return "\n".join(text.get_text() for text in axes.texts)


def published(axes: Axes) -> list[tuple[float, float]]:
    """(episodes, value) of every point with an error bar."""
    return [(float(bar[0].get_xdata()[0]), float(bar[0].get_ydata()[0])) for bar in axes.containers]


def test_axes_say_what_they_show(drawn):
    top, strip, right = drawn.axes
    assert top.get_xscale() == "log"
    assert top.get_ylabel() == "Spearman's ρ with utility"
    assert top.get_title(loc="left") == "6 lives, N = 100, k = 8"
    assert strip.get_xlabel() == "episodes (log scale)"
    assert strip.get_ylabel() == "difference"
    assert strip.get_title(loc="left") == "from uniform, same lives"
    assert right.get_xlabel() == "true utility U*"
    assert right.get_ylabel() == "worth after 10,000 episodes"


def test_legend_names_everything_once(drawn):
    (legend,) = drawn.legends
    assert [text.get_text() for text in legend.get_texts()] == [
        "± sd over lives", "uniform", "score", "oracle", "beta", "never updated", "closed form", "published ± sd",
    ]  # fmt: skip


def test_lines_are_means_over_lives(drawn, dataset):
    found = lines(drawn.axes[0])
    for name, label in {"memory_worth": "uniform", "beta": "beta", "never_updated": "never updated"}.items():
        np.testing.assert_array_equal(found[label].get_xdata(), MARKS)
        mean = dataset.spearman.sel(estimator=name).mean("seed", dtype=np.float64)
        np.testing.assert_allclose(found[label].get_ydata(), mean, rtol=1e-9)


def test_bands_are_the_interval_and_the_deviation(drawn, dataset):
    deviation, interval = drawn.axes[0].collections[:2]
    mean, sd, low, high = results.statistics(dataset.spearman.values[..., 0])
    for band, bottom, top in ((deviation, mean - sd, mean + sd), (interval, low, high)):
        heights = band.get_paths()[0].vertices[:, 1]
        assert heights.min() == pytest.approx(bottom.min())
        assert heights.max() == pytest.approx(top.max())


def test_estimators_can_be_told_apart_without_colour():
    assert len({marker for _, marker, _ in plots.LINES}) == len(plots.LINES)
    assert len({str(dashes) for _, _, dashes in plots.LINES}) == len(plots.LINES)
    assert len(plots.LINES) > len(plots.NAMES)
    shades = {to_hex(color) for color, _, _ in plots.LINES} | {
        plots.CLOSED.lower(),
        plots.HIGH.lower(),
        plots.LOW.lower(),
    }
    assert shades <= OKABE_ITO


def test_markers_of_coinciding_lines_do_not_cover_each_other(drawn):
    every = [lines(drawn.axes[0])[label].get_markevery() for label in ("uniform", "score", "oracle", "beta")]
    assert len({tuple(range(*slice(start, None, step).indices(len(MARKS)))) for start, step in every}) == 4


def test_an_estimator_looks_the_same_in_every_figure(drawn):
    other = plots.figure(made_up(observers=["beta", "memory_worth"]))
    for label in ("beta", "uniform"):
        one, two = lines(drawn.axes[0])[label], lines(other.axes[0])[label]
        assert (one.get_marker(), one.get_color()) == (two.get_marker(), two.get_color())


def test_strip_shows_paired_differences_of_the_close_ones(drawn, dataset):
    found = drawn.axes[1].get_lines()
    assert len(found) == len(NEAR)
    paired = (dataset.spearman - dataset.spearman.isel(estimator=0)).mean("seed")
    for i, line in enumerate(found):
        np.testing.assert_allclose(line.get_ydata(), paired[:, i], atol=1e-7)


def test_one_estimator_needs_no_strip():
    assert len(plots.figure(made_up(observers=["memory_worth"])).axes) == 2


def test_closed_form_is_theory_where_it_holds(drawn):
    line = lines(drawn.axes[0])["closed form"]
    assert line.get_xdata()[0] == pytest.approx(200)
    assert line.get_ydata()[-1] == pytest.approx(theory.spearman(100, 8, 10_000))
    narrow = plots.figure(made_up(utility_low=0.4))
    expected = theory.spearman(100, 8, 10_000, utility_low=0.4)
    assert lines(narrow.axes[0])["closed form"].get_ydata()[-1] == pytest.approx(expected)
    sparse = plots.figure(made_up(num_memories=1000))
    assert lines(sparse.axes[0])["closed form"].get_xdata()[0] == pytest.approx(1875)


@pytest.mark.parametrize(
    "fields", [{"num_retrieved": 2}, {"utility": [0.25, 0.75] * 50}, {"num_episodes": 100, "checkpoints": [100]}]
)
def test_no_closed_form_where_none_holds(fields):
    assert "closed form" not in lines(plots.figure(made_up(**fields)).axes[0])


def test_no_closed_form_for_another_world(dataset):
    config = json.dumps(json.loads(dataset.attrs["config"]) | {"outcome": "package.module:law"})
    top = plots.figure(dataset.assign_attrs(config=config)).axes[0]
    assert "closed form" not in lines(top)
    assert not top.containers


def test_published_points_lie_over_the_papers_settings(drawn):
    found = published(drawn.axes[0])
    rows = [row for row in paper.ROWS if row.experiment == "ranking" and row.spread]
    assert len(found) == len(rows) == 9
    for (place, value), row in zip(found, rows, strict=True):
        assert value == row.published
        assert place == pytest.approx(row.checkpoint, rel=0.13)


@pytest.mark.parametrize(
    ("fields", "count"),
    [
        ({"num_memories": 50}, 0),
        ({"num_retrieved": 5}, 0),
        ({"utility_high": 0.9}, 0),
        ({"num_episodes": 3000, "checkpoints": [1000, 3000]}, 3),
    ],
)
def test_published_points_are_for_the_papers_settings_only(fields, count):
    assert len(published(plots.figure(made_up(**fields)).axes[0])) == count


def test_right_panel_counts_labels(drawn):
    assert "40 memories have U* ≥ 0.6,\n4.0 labelled high (75% wrong)" in texts(drawn.axes[-1])
    assert "0 memories have U* ≤ 0.4,\n0.0 labelled low" in texts(drawn.axes[-1])
    assert "p+: slope 0.12,\nU* diluted by k" in texts(drawn.axes[-1])


def test_right_panel_shows_a_usual_life(drawn, dataset):
    right = drawn.axes[-1]
    assert right.get_title(loc="left") == "dots: seed 3; counts: all seeds"
    _, p_plus, dots = right.get_lines()
    np.testing.assert_array_equal(p_plus.get_ydata(), dataset.p_plus[3])
    np.testing.assert_array_equal(dots.get_ydata(), dataset.worth[3, 0])


@pytest.mark.parametrize(
    "fields",
    [
        {"seeds": 1},
        {"num_episodes": 100, "checkpoints": [100]},
        {"keep_worth": "all"},
        {"metrics": ["spearman"]},
        {"num_memories": 5000, "num_retrieved": 1},
    ],
)
def test_any_result_can_be_drawn(fields):
    drawn = plots.figure(made_up(**fields))
    drawn.savefig(io.BytesIO(), dpi=30)
    right = drawn.axes[-1]
    assert len(right.get_lines()[-1].get_xdata()) <= plots.MAX_POINTS


def test_one_life_has_no_band_in_the_legend():
    top = plots.figure(made_up(seeds=1)).axes[0]
    assert top.get_title(loc="left").startswith("1 life,")
    assert "± sd over lives" not in top.get_legend_handles_labels()[1]


def test_result_without_ranking_is_refused():
    with pytest.raises(InputError, match="needs spearman"):
        plots.figure(made_up().drop_vars("spearman"))


def test_files_are_the_same_bytes_when_redrawn(dataset, tmp_path):
    first = plots.save(plots.figure(dataset), tmp_path / "a.png")
    second = plots.save(plots.figure(dataset), tmp_path / "b.svg")
    assert [file.name for file in (*first, *second)] == ["a.png", "a.svg", "b.png", "b.svg"]
    for one, two in zip(first, second, strict=True):
        assert one.read_bytes() == two.read_bytes()
    assert b"<dc:date>" not in first[1].read_bytes()


def test_name_without_suffix_is_kept_whole(tmp_path):
    assert [file.name for file in plots.save(Figure(), tmp_path / "new" / "v1.5")] == ["v1.5.png", "v1.5.svg"]


def test_folder_that_cannot_be_written_is_one_line(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(InputError, match="cannot write the figure") as raised:
        plots.save(Figure(), tmp_path / "file" / "figure")
    assert "\n" not in str(raised.value)


def test_no_global_state_of_pyplot():
    assert "pyplot" not in Path(plots.__file__).read_text(encoding="utf-8")
