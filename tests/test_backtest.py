"""Which half-life a log supports: what is chosen in worlds that stand still and in worlds that turn around."""

import io
import json
import math

import numpy as np
import pytest
from rich.console import Console
from test_reliability import world

from mwjax.logs.journal import journal
from mwjax.plots.backtest import backtest_figure, reliability_figure
from mwjax.replay.backtest import HALF_LIVES, backtest, parse_prior, prior_name
from mwjax.replay.reliability import permute, reliability
from mwjax.report.backtest import backtest_json, print_backtest, print_reliability, reliability_json
from mwjax.types import InputError

SEEDS = 100


@pytest.fixture(scope="module")
def still():
    return [backtest(world(seed)[1]) for seed in range(SEEDS)]


@pytest.fixture(scope="module")
def turned():
    return [backtest(world(seed, reverse=True)[1]) for seed in range(SEEDS)]


def test_a_world_that_stands_still_needs_no_forgetting(still):
    assert np.mean([one.half_life == math.inf for one in still]) >= 0.8
    assert np.mean([one.verdict == "keep" for one in still]) >= 0.8
    assert np.mean([one.settings[one.chosen].skill > 0 for one in still]) >= 0.95


def test_a_world_that_turns_around_needs_it(turned):
    assert np.mean([math.isfinite(one.half_life) for one in turned]) >= 0.8
    assert np.mean([one.verdict == "forget" for one in turned]) >= 0.8


def test_a_permuted_log_has_no_skill_and_tells_nothing():
    rng = np.random.default_rng(0)
    found = [backtest(permute(world(seed)[1], rng)) for seed in range(60)]
    skill = np.array([[setting.skill for setting in one.settings] for one in found])
    assert (skill.mean(axis=0) < 0).all()
    assert np.mean([one.verdict == "undecided" for one in found]) >= 0.8


def test_the_score_of_a_setting_is_that_of_a_plain_loop():
    _, about = world(7, 300, 12, 3)
    found = backtest(about, half_lives=(5.0,), priors=((2.0, 3.0),))
    g, k = 0.5 ** (1 / 5), 3
    hits, n = np.zeros(12), np.zeros(12)
    cross = square = loss = 0.0
    total = 0
    for episode, y in enumerate(about.outcome.tolist()):
        mine = about.memory[about.start[episode] : about.start[episode + 1]]
        base = (total + 1) / (episode + 2)
        x = ((hits[mine] + 2) / (n[mine] + 5) - base).mean()
        noise = base * (1 - base)
        ridge = noise / (k / 2) ** 2
        slope = max((cross + ridge * k) / (square + ridge), 0)
        chance = 1 / (1 + math.exp(-(math.log(base / (1 - base)) + slope * x / noise)))
        loss -= math.log(chance if y else 1 - chance)
        cross, square, total = cross + x * (y - base), square + x * x, total + y
        hits[mine], n[mine] = g * hits[mine] + y, g * n[mine] + 1
    assert found.settings[0].log_loss == pytest.approx(loss / 300, rel=1e-9)
    assert found.verdict == "undecided"


def test_settings_are_every_combination():
    _, about = world(1, 400, 20, 3)
    about = about._replace(time=np.arange(400.0))
    names = ("discounted", "discounted_step", "discounted_time", "last_outcome")
    found = backtest(about, half_lives=(20, math.inf), priors=("closed", "empirical_bayes", 50.0), estimators=names)
    assert len(found.settings) == 4 * 2 * 3
    for prior in ("closed", "empirical_bayes", "strength:50"):
        forever = [one.log_loss for one in found.settings if one.half_life == math.inf and one.prior == prior]
        assert max(forever) == min(forever)  # what never forgets has no clock
    best = found.settings[found.best]
    assert best.difference == best.standard_error == 0
    assert min(one.log_loss for one in found.settings) == best.log_loss


def test_one_episode_at_a_time_equals_units_of_one():
    _, about = world(2, 500, 20, 3)
    other = about._replace(unit=about.unit[::-1].copy())  # names of units mean nothing
    mine, theirs = (backtest(one, half_lives=HALF_LIVES).settings for one in (about, other))
    assert [one.log_loss for one in mine] == [one.log_loss for one in theirs]


def test_priors_in_words():
    for text, name in (("closed", "closed"), ("200", "strength:200"), ("1,2.5", "beta:1,2.5")):
        assert prior_name(parse_prior(text)) == name
    for text in ("", "nearby", "1,2,3"):
        with pytest.raises(InputError, match="prior"):
            parse_prior(text)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"half_lives": (0.0,)}, "half_life"),
        ({"half_lives": ()}, "half_lives"),
        ({"half_lives": (math.nan,)}, "half_life"),
        ({"estimators": ("worht",)}, "estimator"),
        ({"priors": ("flat",)}, "prior"),
        ({"priors": ((0.0, 1.0),)}, "prior a"),
        ({"estimators": ("discounted_time",)}, "time"),
    ],
)
def test_what_cannot_be_asked(wrong, message):
    with pytest.raises(InputError, match=message):
        backtest(world(0, 50, 10, 2)[1], **wrong)


def test_small_and_odd_logs_have_an_answer():
    for about in (
        journal([[0], [0]], [1, 0]),
        journal([[0, 1, 2]] * 40, [1] * 40),  # k = N, and only successes
        journal([[], [0], [], [1], [0]], [1, 0, 1, 1, -1]),
    ):
        found = backtest(about)
        assert all(math.isfinite(one.log_loss) for one in found.settings)
        assert found.half_life == math.inf


def printed(show, *arguments) -> str:
    console = Console(file=io.StringIO(), width=80)
    show(*arguments, console)
    return console.file.getvalue()


def test_the_report_says_the_verdict(still, turned):
    for result, word in ((still[1], "no forgetting"), (turned[1], "half-life of 30 outcomes of the memory")):
        text = printed(print_backtest, result)
        assert word in " ".join(text.split())
        assert max(map(len, text.splitlines())) <= 80
        told = json.loads(json.dumps(backtest_json(result), allow_nan=False))
        assert told["sentence"] == result.sentence
        assert told["settings"][-1]["half_life"] == "inf"


def test_the_figures_carry_the_numbers(turned):
    result = turned[1]
    axes = backtest_figure(result).axes[0]
    assert "nats" in axes.get_ylabel()
    assert "outcomes of the memory" in axes.get_xlabel()
    line = axes.containers[0].lines[0]
    np.testing.assert_allclose(line.get_ydata(), [1_000 * one.difference for one in result.settings])
    found = reliability(world(3)[1], permuted=3)
    top, below = (made := reliability_figure(found)).axes
    np.testing.assert_allclose(top.containers[0].lines[0].get_ydata(), [one.observed for one in found.bins])
    assert sum(bar.get_height() for bar in below.patches) == found.episodes
    made.savefig(io.BytesIO(), dpi=40)
    text = printed(print_reliability, found)
    assert f"{found.skill:+.4f}" in text
    assert reliability_json(found)["bins"][0]["n"] == found.bins[0].n
