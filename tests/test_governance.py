"""Governance against exact laws: who is deprecated, when, and what it is worth."""

import numpy as np
import pytest

from mwjax import rules, sweep, theory
from mwjax.analysis import calibration, survival, verdicts
from mwjax.rules import Knobs

RULES = ("threshold", "beta", "beta:delta=.01", "e_process", "e_process_two_sided")


def standard_error(values):
    return np.nanstd(values, ddof=1) / np.sqrt(np.isfinite(values).sum())


def table(rule, looks=1_000, theta=0.3):
    name, _, rest = rule.partition(":")
    knobs = Knobs(theta=theta, **{k: float(v) for k, v in (part.split("=") for part in rest.split(",") if part)})
    return rules.most_successes(name, knobs, looks)


def one_memory(p, seeds=10_000, episodes=1_000, **fields):
    """Lives of a single memory that succeeds with probability p: a look an episode."""
    fields = {"watchers": list(RULES), "metrics": ["mean_success"], "checkpoints": [episodes]} | fields
    return sweep.run(
        "ranking", seeds=seeds, num_episodes=episodes, num_memories=1, num_retrieved=1, outcome="linear",
        base_success=p, gain=0.0, observers=fields.pop("observers", ["memory_worth"]), **fields,
    )  # fmt: skip


@pytest.mark.parametrize("p", [0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
def test_the_deprecation_table_of_the_paper(p):
    dataset = one_memory(p)
    for i, rule in enumerate(RULES):
        exact = theory.deprecation.deprecation(table(rule), p, 1_000)
        shown = dataset.decisions.values[:, i, 1, 0]
        found = (shown >= 0).mean()
        assert abs(found - exact[-1]) < 5 * np.sqrt(max(exact[-1] * (1 - exact[-1]), 0) / len(shown)) + 1e-4, rule
        published = {0.1: (10, 13, 24, 26, 37), 0.2: (10, 32, 78, 120, 175)}.get(p)
        if published:
            by_then = ((shown >= 0) & (shown <= published[i])).mean()
            assert abs(by_then - exact[published[i]]) < max(0.01, 5 * standard_error(shown <= published[i])), rule


def test_the_e_process_keeps_its_word_over_many_looks_and_the_posterior_rule_does_not():
    looks = 100_000
    risk = {rule: theory.deprecation.deprecation(table(rule, looks), 0.3, looks)[-1] for rule in ("e_process", "beta")}
    assert risk["e_process"] <= 0.05
    assert risk["beta"] > 0.05


def drifting(age, counter, **fields):
    rule = f"threshold:min_evidence=0,theta=.4,counter={counter}"
    fields = {"watchers": [rule], "observers": ["memory_worth", "discounted", "last_outcome"]} | fields
    return sweep.run(
        "ranking", seeds=1_000, num_episodes=4_500, num_memories=1, num_retrieved=1, utility=[0.97], gain=1.0,
        outcome="mean", drift_share=1.0, drift_utility=0.05, switch_at=age, discount=0.95,
        metrics=["mean_success"], checkpoints=[4_500], **fields,
    )  # fmt: skip


@pytest.mark.parametrize("age", [400, 1_000, 2_000])
def test_a_discounted_counter_notices_a_change_whatever_its_age(age):
    retrievals, _, censored = verdicts.delays(drifting(age, "discounted"), 0)
    closed = theory.deprecation.discounted_delay(0.95, 0.97, 0.05, 0.4)
    assert not censored.any()
    assert abs(survival.median_delay(retrievals, censored) - closed) <= 1.5


def test_a_lifetime_counter_takes_longer_the_older_it_is():
    for age in (400, 1_000):
        retrievals, _, censored = verdicts.delays(drifting(age, "lifetime"), 0)
        closed = theory.deprecation.lifetime_delay(age, 0.97, 0.05, 0.4)
        assert abs(np.mean(retrievals) - closed) < 5 * standard_error(retrievals) + 3
        assert not censored.any()


def test_decay_since_the_last_outcome_leaves_an_active_stale_memory_in_place():
    found = {}
    for counter in ("last_outcome", "discounted"):
        dataset = drifting(1_000, counter, half_life=14.0)
        found[counter] = survival.median_delay(*(verdicts.delays(dataset, 0)[i] for i in (0, 2)))
    lifetime = theory.deprecation.lifetime_delay(1_000, 0.97, 0.05, 0.4)
    assert found["discounted"] < 25
    assert found["last_outcome"] > 0.9 * lifetime


def test_noise_and_missing_outcomes_move_worth_as_total_probability_says():
    p, flip, success, failure, rate = 0.7, 0.1, 0.9, 0.4, 0.5
    fields = {"watchers": [], "seeds": 2_000, "episodes": 400}
    noisy = one_memory(p, flip_prob=flip, **fields)
    missing = one_memory(p, observe_prob=rate, observe_success=success, observe_failure=failure, **fields)
    told = noisy.successes.values[:, 0] / noisy.evidence.values[:, 0]
    assert abs(told.mean() - (p * (1 - flip) + (1 - p) * flip)) < 5 * standard_error(told)
    seen = missing.evidence.values[:, 0] / 400
    heard = rate * (p * success + (1 - p) * failure)
    assert abs(seen.mean() - heard) < 5 * standard_error(seen)
    told = missing.successes.values[:, 0] / missing.evidence.values[:, 0]
    assert abs(told.mean() - rate * p * success / heard) < 5 * standard_error(told)
    truth = missing.mean_success.values[:, -1]
    assert abs(truth.mean() - p) < 5 * standard_error(truth)


@pytest.mark.parametrize(
    ("fields", "gain", "dropped"),
    [
        ({"rule": "threshold", "theta": 0.1, "theta_mode": "quantile", "min_evidence": 0}, (0.0366, 0.0002), None),
        ({"theta": 0.1, "theta_mode": "quantile", "counter": "truth", "rule": "threshold"}, (0.0497, 0.0002), None),
        ({"rule": "threshold", "theta": 0.4}, (0.012, 0.0005), (3.4, 0.26)),
    ],
)
def test_what_dropping_the_worst_of_the_first_experiment_is_worth(fields, gain, dropped):
    dataset = sweep.run(
        "ranking", seeds=600, num_episodes=3_000, decide_every=3_000, governance="deprecate", checkpoints=[3_000],
        observers=["memory_worth"], metrics=["mean_success", "store"], **fields,
    )  # fmt: skip
    found = dataset.kept_utility.values[:, -1] - dataset.utility.values.mean(1)
    assert abs(found.mean() - gain[0]) < 5 * np.hypot(standard_error(found), gain[1])
    gone = 100 - dataset.store_size.values[:, -1]
    if dropped:
        assert abs(gone.mean() - dropped[0]) < 5 * np.hypot(standard_error(gone), dropped[1])
    else:
        assert (gone <= 10).all()
        assert gone.mean() > 9.8


@pytest.mark.parametrize("retrieval", ["uniform", "softmax", "epsilon_greedy"])
def test_no_retrieved_set_holds_a_dead_memory_and_the_store_keeps_a_set(retrieval):
    dataset = sweep.run(
        "ranking", seeds=64, num_episodes=600, num_memories=20, num_retrieved=4, governance="deprecate", theta=0.9,
        rule="threshold", min_evidence=5, retrieval=retrieval, exploration_floor=0.2, observers=["memory_worth"],
        metrics=["mean_success", "store"], checkpoints=[600], temperature=0.1,
    )  # fmt: skip
    decided, shown = dataset.decisions.values[:, 0, 1], dataset.shown.values
    assert (decided >= 0).any()
    assert (shown[decided >= 0] == decided[decided >= 0]).all()
    assert (dataset.store_size.values >= 4).all()
    assert (dataset.store_size.values[:, -1] == 20 - (decided >= 0).sum(1)).all()
    assert (shown.sum(1) == 4 * 600).all()
    assert (dataset.held_back.values > 0).any()


def test_suppressed_memories_keep_their_share_of_the_floor_and_come_back():
    fields = {
        "seeds": 64, "num_episodes": 2_000, "num_memories": 20, "num_retrieved": 4, "governance": "suppress",
        "rule": "threshold", "theta": 0.5, "metrics": ["mean_success", "store", "starved"], "checkpoints": [2_000],
        "observers": ["memory_worth"],
    }  # fmt: skip
    for retrieval in ("uniform", "softmax"):
        floor = sweep.run("ranking", retrieval=retrieval, exploration_floor=0.2, temperature=0.1, **fields)
        decided, shown = floor.decisions.values[:, 0, 1], floor.shown.values
        assert (decided >= 0).any()
        assert (shown[decided >= 0] > decided[decided >= 0]).mean() > 0.9
        without = sweep.run("ranking", retrieval=retrieval, exploration_floor=0.0, temperature=0.1, **fields)
        decided, shown = without.decisions.values[:, 0, 1], without.shown.values
        assert (shown[decided >= 0] == decided[decided >= 0]).all()
        back = sweep.run(
            "ranking", retrieval=retrieval, exploration_floor=0.2, temperature=0.1, restores=True, **fields
        )
        assert back.active_size.values.mean() > floor.active_size.values.mean()


def test_forecasts_of_outcomes_that_no_memory_moves_have_no_skill():
    dataset = sweep.run(
        "ranking", seeds=100, num_episodes=2_000, outcome="linear", gain=0.0, base_success=0.6, checkpoints=[2_000],
        observers=["memory_worth", "beta", "discounted"], metrics=["mean_success", "calibration"],
    )  # fmt: skip
    found = calibration.measure(dataset)
    for name in ("memory_worth", "beta", "discounted"):
        skill = found[f"{name}.skill"]
        assert skill.mean() < 5 * standard_error(skill)
    told = dataset.calibration.values
    assert (told.sum((2, 3)) == 8 * 2_000).all()
    assert (told.sum(3)[:, 0, 1] == dataset.successes.values.sum(1)).all()


def test_a_hitchhiker_never_seen_apart_is_rightly_dropped_by_one_truth_and_its_anchor_wrongly_by_the_other():
    """One p+ for both, below theta: by p+ no rule errs on either. By removal value the anchor was worth keeping."""
    rule = "threshold:theta=.5,min_evidence=100"
    dataset = sweep.run("hitchhiker", seeds=100, removed=[0, 1], watchers=[rule])
    store, every = verdicts.store_of(dataset), np.arange(100)
    truth = verdicts.truth(store, every, np.full(100, 9_999))
    exact = theory.hitchhiker.removal_values(100, 8, 0.0)
    assert truth.removal[:, :2].mean(0) == pytest.approx(exact, abs=5e-4)
    for measured, expected in zip(dataset.removal_value.values.T, truth.removal[:, :2].T, strict=True):
        assert abs((measured - expected).mean()) < 5 * standard_error(measured - expected)
    decided = dataset.decisions.values[:, 0, 0, :2] >= 0
    assert (decided[:, 0] == decided[:, 1]).all()
    below = truth.p_plus[:, :2] < 0.5
    by_p_plus, by_removal = decided & ~below, decided & (truth.removal[:, :2] > 0)
    assert by_removal[:, 0].mean() > 0.5
    assert by_p_plus.mean() < 0.3
    assert not by_removal[:, 1].any()


@pytest.mark.parametrize("outcome", ["mean", "linear"])
def test_companions_are_of_those_in_the_store(outcome):
    fields = {"outcome": outcome, "num_contexts": 2, "context_share": [0.3, 0.7], "num_contextual": 8}
    if outcome == "mean":
        fields = {"num_initial": 12, "birth_every": 60}
    dataset = sweep.run(
        "ranking", seeds=3, num_episodes=500, num_memories=20, num_retrieved=4, governance="deprecate", gain=0.5,
        rule="threshold", theta=0.5, checkpoints=[500], metrics=["store"], observers=["memory_worth"], **fields,
    )  # fmt: skip
    assert dataset.store_size.values.max() < 20
    expected = verdicts.truth(verdicts.store_of(dataset), np.arange(3), np.full(3, 499)).p_plus
    np.testing.assert_allclose(dataset.p_plus.values, expected, atol=1e-6)
