"""Every world against closed forms and published numbers (PAPER.md, experiments 2 and 4), at five standard errors."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from mwjax import engine, theory, worlds
from mwjax.analysis import pairs
from mwjax.config import Config, make_params, tables
from mwjax.types import UTILITY_ONE

LAWS = ("mean", "linear", "linear_best", "linear_worst", "logistic")
LOGISTIC = {"base_success": 0.35, "gain": 1.5}
WORTH_DRIVEN = ("epsilon_greedy", "blend", "thompson")
DIFFICULTY = {"base_success": [0.78, 0.28], "gain": 0.16}
POOLS, SLOTS = (70, 30), ((8, 0), (4, 4))
OBSERVERS = ("memory_worth", "contextual", "backdoor", "backdoor_half", "residual")
PAIR_LIVES, PAIR_EPISODES = 640, 10_000


def any_law(config):
    """All outcome laws in one program: Params.min_evidence, of no other use here, says which; p+ is the linear one."""
    linear = worlds.linear(config)
    base = np.full(config.num_contexts, LOGISTIC["base_success"])
    link = tables.logistic_thresholds(base, LOGISTIC["gain"])
    laws = (
        worlds.mean(config),
        linear,
        worlds.linear(config, statistic="best"),
        worlds.linear(config, statistic="worst"),
        worlds.logistic(config),
    )

    def chance(params, step):
        params = params._replace(link=jnp.asarray(link)[..., None])
        found = [law.chance(params, step) for law in laws]
        chosen = found[0]
        for index, one in enumerate(found):
            chosen = jnp.where(params.min_evidence == jnp.int32(index), one, chosen)
        return chosen

    return worlds.Outcome(chance, linear.expected)


SMALL = {"num_memories": 20, "num_retrieved": 4}
CONFIGS = {
    "uniform": Config(
        num_memories=50,
        num_retrieved=5,
        num_checkpoints=5,
        outcome=any_law,
        metrics=("rmse", "mean_success", "compensator"),
    ),
    "pools": Config(
        num_contexts=2,
        retrieval="pools",
        pool_sizes=POOLS,
        pool_slots=SLOTS,
        outcome=any_law,
        observers=OBSERVERS,
        metrics=("spearman", "mean_success", "compensator"),
    ),
    "split": Config(
        retrieval="pairs",
        num_pairs=1,
        num_checkpoints=3,
        can_mask=True,
        metrics=("pair_count", "mean_success", "compensator"),
    ),
    "anchor_only": Config(
        retrieval="pairs",
        num_pairs=1,
        num_checkpoints=1,
        separation_mode="anchor_only",
        metrics=("pair_count", "mean_success"),
    ),
    "diverse": Config(retrieval="diverse", num_pairs=1, metrics=("pair_count", "mean_success", "compensator")),
    "pairs": Config(
        num_memories=16,
        num_retrieved=6,
        num_pairs=3,
        retrieval="pairs",
        outcome=any_law,
        metrics=("pair_count", "mean_success", "compensator"),
    ),
    "softmax": Config(
        **SMALL,
        retrieval="softmax",
        actor="memory_worth",
        floor_mode="none",
        outcome=any_law,
        metrics=("mean_success", "compensator"),
    ),
} | {
    name: Config(
        **SMALL,
        retrieval=name,
        actor="memory_worth",
        utility="beta" if name == "blend" else "uniform",
        outcome=any_law,
        metrics=("mean_success", "compensator"),
    )
    for name in WORTH_DRIVEN
}
CHUNK = {"uniform": 200, "pools": 200, "split": 320, "anchor_only": 320, "diverse": 320}


def run(name, num_lives, *, law="mean", **settings):
    """A trace whose leaves have the lives in front; one program a name."""
    config = CONFIGS[name]
    params = make_params(config, min_evidence=LAWS.index(law), **settings)
    lives = engine.run_lives(config, params, np.arange(num_lives), root_seed=23, chunk=CHUNK.get(name, 128))
    traces = [batch.trace for batch in lives]
    return jax.tree.map(lambda *leaves: np.concatenate(leaves), *traces)


def error(values):
    return values.std(axis=0, ddof=1) / np.sqrt(len(values))


def centred(values, expected, slack=0.0):
    """The mean of independent rows lies within five standard errors of what is expected, entry by entry."""
    return (np.abs(values.mean(axis=0) - expected) <= 5 * error(values) + slack).all()


# --- Task difficulty -------------------------------------------------------------------------------------------------


@functools.cache
def difficulty():
    return run(
        "pools",
        200,
        law="linear",
        num_episodes=10_000,
        hard_share=0.5,
        utility_low=[0.0, 0.85],
        utility_high=[1.0, 0.85],
        **DIFFICULTY,
    )


@pytest.mark.parametrize(
    ("estimator", "published", "published_error"),
    [
        ("memory_worth", -0.314, 0.006),
        ("contextual", 0.129, 0.006),
        ("backdoor", 0.218, 0.006),
        ("backdoor_half", -0.310, 0.006),
        ("residual", 0.220, 0.005),
    ],
)
def test_difficulty_confounds_worth_as_published(estimator, published, published_error):
    found = difficulty().metrics["spearman"][:, 0, OBSERVERS.index(estimator)]
    assert abs(found.mean() - published) < 5 * np.hypot(error(found), published_error)
    if estimator == "residual":
        assert found.mean() >= 0.15


def test_p_plus_of_pools_is_the_closed_form():
    trace = difficulty()
    settings = {"gain": DIFFICULTY["gain"], "base_success": DIFFICULTY["base_success"], "shares": [0.5, 0.5]}
    for utility, found in zip(trace.utility[:20] / UTILITY_ONE, trace.p_plus, strict=False):
        expected = theory.difficulty.p_plus(utility, pool_sizes=POOLS, pool_slots=SLOTS, **settings)
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_pools_are_shown_as_often_as_their_slots_say():
    evidence = difficulty().counts.context_evidence
    episodes = difficulty().counts.episodes
    expected = theory.difficulty.inclusion(POOLS, SLOTS) * episodes[..., None]
    assert centred((evidence - expected).reshape(200, -1), 0)
    assert (evidence[:, 0, 70:] == 0).all()


# --- The hitchhiker --------------------------------------------------------------------------------------------------


@functools.cache
def hitchhiker(separation, masked=-1, lives=PAIR_LIVES):
    marks = [2_000, 5_000, PAIR_EPISODES]
    return run("split", lives, num_episodes=PAIR_EPISODES, checkpoints=marks, separation=separation, masked=masked)


@functools.cache
def anchor_only(separation):
    return run("anchor_only", PAIR_LIVES, num_episodes=PAIR_EPISODES, separation=separation)


@functools.cache
def diverse(diversity):
    return run("diverse", PAIR_LIVES, num_episodes=PAIR_EPISODES, diversity=diversity)


def statistics(trace):
    """analysis.pairs.measure, [seed, checkpoint] each."""
    count = trace.metrics["pair_count"]
    return {name.removeprefix("memory_worth."): x for name, x in pairs.measure(count[:, :, 0], count[:, :, 1])}


def test_without_separation_nothing_tells_the_two_apart():
    trace, found = hitchhiker(0.0), statistics(hitchhiker(0.0))
    count = trace.metrics["pair_count"]
    assert count.shape == (PAIR_LIVES, 3, 2, 2, 1)
    np.testing.assert_array_equal(count[:, :, :, 0], count[:, :, :, 1])
    assert (found["gap"] == 0).all()
    assert (found["anchor_above"] == 0.5).all()
    np.testing.assert_array_equal(trace.p_plus[:, 0], trace.p_plus[:, 1])
    assert centred(found["anchor_worth"], (0.95 + 6 * 0.5) / 8)


@pytest.mark.parametrize("mode", ["split", "anchor_only"])
@pytest.mark.parametrize("separation", [0.0, 0.1, 0.3, 1.0])
def test_p_plus_of_the_pair_is_the_closed_form(mode, separation):
    trace = hitchhiker(separation) if mode == "split" else anchor_only(separation)
    for utility, found in zip(trace.utility[:20] / UTILITY_ONE, trace.p_plus, strict=False):
        expected = theory.hitchhiker.pair_p_plus(100, 8, separation, filler=utility[2:].mean(), mode=mode)
        shown = 2 - (mode == "anchor_only" and separation == 1)
        np.testing.assert_allclose(found[:shown], expected[:shown], rtol=1e-5)


@pytest.mark.parametrize("mode", ["split", "anchor_only"])
@pytest.mark.parametrize("separation", [0.1, 0.3, 1.0])
def test_separated_pairs_differ_as_the_closed_form_says(mode, separation):
    trace = hitchhiker(separation) if mode == "split" else anchor_only(separation)
    found = {name: values[:, -1] for name, values in statistics(trace).items()}
    assert centred(found["gap"], theory.hitchhiker.gap(100, 8, separation, mode=mode))
    above = theory.hitchhiker.anchor_above(100, 8, separation, num_episodes=PAIR_EPISODES, mode=mode)
    reach = 5 * np.sqrt(above * (1 - above) / len(found["gap"]))
    assert abs(found["anchor_above"].mean() - above) < reach + 0.001


@pytest.mark.parametrize("mode", ["split", "anchor_only"])
@pytest.mark.parametrize("separation", [0.0, 0.1, 0.3, 1.0])
def test_memories_are_shown_as_often_as_the_closed_form_says(mode, separation):
    evidence = (hitchhiker(separation) if mode == "split" else anchor_only(separation)).counts.evidence
    anchor, other, filler = theory.hitchhiker.inclusion(100, 8, separation, mode=mode)
    assert centred(evidence, PAIR_EPISODES * np.array([anchor, other] + 98 * [filler]))
    assert centred(evidence[:, 2:].mean(axis=1), PAIR_EPISODES * filler)


@pytest.mark.parametrize("separation", [0.0, 0.3])
def test_removing_a_half_shows_its_worth(separation):
    lives = 320
    full = hitchhiker(separation).metrics["mean_success"][:lives, -1].astype(np.float64)
    expected = theory.hitchhiker.removal_values(100, 8, separation)
    for half, value in enumerate(expected):
        without = hitchhiker(separation, half, lives)
        assert (without.counts.evidence[:, half] == 0).all()
        lost = full - without.metrics["mean_success"][:, -1]
        assert centred(lost, value)
        assert lost.mean() * (1 - 2 * half) > 5 * error(lost)


@pytest.mark.parametrize("diversity", [0.1, 0.3])
def test_diverse_retrieval_separates_the_share_it_is_asked_for(diversity):
    shown = diverse(0.0).counts.evidence[:, 0]  # the same words, the pair always whole: how often it is drawn
    np.testing.assert_array_equal(diverse(0.0).counts.evidence[:, 1], shown)
    separated = 2 * shown - diverse(diversity).counts.evidence[:, :2].sum(axis=1)
    assert (np.abs(separated - np.ceil(diversity * shown)) <= 1).all()
    assert (separated / shown).mean() == pytest.approx(diversity, abs=0.001)


def test_diverse_retrieval_tells_apart_as_nature_would():
    assert (statistics(diverse(0.0))["anchor_above"] == 0.5).all()
    for diversity in (0.1, 0.3):
        found = statistics(diverse(diversity))
        above = theory.hitchhiker.anchor_above(100, 8, diversity, num_episodes=PAIR_EPISODES)
        reach = 5 * np.sqrt(above * (1 - above) / PAIR_LIVES)
        assert abs(found["anchor_above"][:, -1].mean() - above) < reach + 0.002
        assert centred(found["gap"][:, -1], theory.hitchhiker.gap(100, 8, diversity))


# --- Several pairs ---------------------------------------------------------------------------------------------------


@functools.cache
def several(separation):
    return run("pairs", 384, num_episodes=400, separation=separation).counts.evidence


def test_halves_of_several_pairs_are_symmetric_when_separated():
    evidence = several(1.0)
    assert centred(evidence[:, :3] - evidence[:, 3:6], 0)
    assert centred(evidence[:, :3] + evidence[:, 3:6], 400 * 6 / 13)
    assert centred(evidence[:, 6:], 400 * 6 / 13)


@pytest.mark.parametrize("separation", [0.0, 0.4])
def test_several_pairs_are_alike_and_so_are_fillers(separation):
    evidence = several(separation)
    halves, fillers = evidence[:, :6], evidence[:, 6:]
    assert centred(halves - halves.mean(axis=1, keepdims=True), 0)
    assert centred(fillers - fillers.mean(axis=1, keepdims=True), 0)
    assert (evidence.sum(axis=1) == 400 * 6).all()
    assert fillers.mean() < 400 * 6 / 13  # what whole pairs take from the other units


# --- Retrieval by worth ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["softmax", *WORTH_DRIVEN, "pairs", "diverse"])
def test_every_set_is_a_set(name):
    """The last episode of a life is what a life longer by one adds."""
    added = {"pairs": {"separation": 0.3}, "diverse": {"diversity": 0.5}}.get(name, {"temperature": 0.05})
    for last in (1, 60):
        counts = [run(name, 128, num_episodes=episodes, **added).counts.evidence for episodes in (last, last + 1)]
        drawn = counts[1] - counts[0]
        assert np.isin(drawn, (0, 1)).all()
        assert (drawn.sum(axis=1) == CONFIGS[name].num_retrieved).all()


@pytest.mark.parametrize("name", ["softmax", *WORTH_DRIVEN])
def test_retrieval_by_worth_succeeds_more_often_than_uniform(name):
    settings = {"temperature": 0.05} if name == "softmax" else {"exploration_floor": 0.1, "similarity_weight": 0.2}
    trace = run(name, 128, num_episodes=200, **settings)
    gain = trace.metrics["mean_success"][:, -1] - trace.utility.mean(axis=1) / UTILITY_ONE
    assert gain.mean() > 5 * error(gain)
    assert gain.mean() > 0.01
    exploring = {"temperature": 1e6} if name == "softmax" else {"exploration_floor": 1.0}
    trace = run(name, 128, num_episodes=200, **exploring)
    gain = trace.metrics["mean_success"][:, -1] - trace.utility.mean(axis=1) / UTILITY_ONE
    assert abs(gain.mean()) < 5 * error(gain)


# --- Outcomes and utilities ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "law"), [(name, law) for name, config in CONFIGS.items() if config.outcome is any_law for law in LAWS]
)
def test_success_comes_as_often_as_its_chance_says(name, law):
    settings = {"num_episodes": 60, "base_success": 0.4, "gain": 0.7}
    if name == "uniform":
        settings["checkpoints"] = [1, 2, 3, 4, 60]
    if CONFIGS[name].num_pairs:
        settings |= {"separation": 0.3}
    trace = run(name, CHUNK.get(name, 128), law=law, **settings)
    off = trace.counts.successes - trace.expected_hits.astype(np.float64)
    assert centred(off, 0)
    assert centred(off.mean(axis=1), 0)
    total = trace.expected_hits.sum(axis=1) / CONFIGS[name].num_retrieved / 60
    assert centred(trace.metrics["mean_success"][:, -1] - total, 0)


@pytest.mark.parametrize("name", ["pairs", "diverse"])
def test_the_compensator_of_long_lives_in_pairs(name):
    trace = hitchhiker(0.3) if name == "pairs" else diverse(0.3)
    off = trace.counts.successes - trace.expected_hits.astype(np.float64)
    assert centred(off, 0)


@pytest.mark.parametrize(
    ("law", "of"),
    [("mean", np.mean), ("linear", np.mean), ("linear_best", np.max), ("linear_worst", np.min), ("logistic", np.mean)],
)
def test_outcome_laws_have_the_chance_they_state(law, of):
    """After one episode the set is known, and expected_hits is its chance."""
    trace = run("softmax", 128, law=law, num_episodes=1, base_success=0.4, gain=0.7)
    shown = trace.counts.evidence == 1
    value = np.array([of(u[s]) for u, s in zip(trace.utility / UTILITY_ONE, shown, strict=True)])
    base, gain = LOGISTIC["base_success"], LOGISTIC["gain"]
    expected = {
        "mean": value,
        "logistic": 1 / (1 + (1 / base - 1) * np.exp(-4 * gain * (value - 0.5))),
    }.get(law, 0.4 + 0.7 * (value - 0.5))
    found = np.where(shown, trace.expected_hits, 0).max(axis=1)
    np.testing.assert_allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize(("a", "b"), [(2.0, 5.0), (0.5, 0.5), (8.0, 1.5)])
def test_utilities_follow_their_beta_law(a, b):
    values = run("blend", 512, num_episodes=1, utility_a=a, utility_b=b).utility.ravel() / UTILITY_ONE
    law = stats.beta(a, b)
    assert centred(values, law.mean())
    assert centred((values - law.mean()) ** 2, law.var())
    for share in (0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98):
        below = (values < law.ppf(share)).mean()
        assert abs(below - share) < 5 * np.sqrt(share * (1 - share) / len(values))


def test_error_falls_as_the_root_of_the_episodes():
    marks = [500, 1_000, 2_000, 4_000, 8_000]
    trace = run("uniform", 400, num_episodes=8_000, checkpoints=marks, base_success=0.5, gain=1.0)
    square = np.square(trace.metrics["rmse"][:, :, 0].astype(np.float64))
    slope = theory.adaptive.log_slope(marks, np.sqrt(square.mean(axis=0)))
    assert slope == pytest.approx(theory.adaptive.rmse_slope(50, 5, marks), abs=0.01)
    for found, episodes in zip(square.T, marks, strict=True):
        expected = theory.adaptive.rmse_by_evidence(50, 5, episodes) ** 2
        assert centred(found, expected, 0.005 * expected)
