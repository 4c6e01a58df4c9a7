"""The value of a rule from a log alone, held against the truth of worlds whose truth is known."""

import io
import itertools
import json

import numpy as np
import pytest
from rich.console import Console
from test_reliability import world

from mwjax import rules
from mwjax.logs.journal import Journal, journal
from mwjax.replay.rule import METHODS, RuleValue, decisions, value_of_rule
from mwjax.report.backtest import print_rule, rule_json, rule_sentence
from mwjax.types import InputError

EPISODES = 1_200
CAUTIOUS = rules.Knobs(theta=0.45, delta=0.02)


def mask(value: RuleValue, utility: np.ndarray, episodes: int) -> float:
    """Mean success under the mean law, refilled by uniform live memories, less that of all, over later episodes."""
    live, gained = np.ones(len(utility), bool), 0.0
    cuts = [drop.episode + 1 for drop in value.dropped] + [episodes]
    for drop, begin, end in zip(value.dropped, cuts, cuts[1:], strict=False):
        live[int(drop.id[1:])] = False
        gained += (end - begin) * (utility[live].mean() - utility.mean())
    return gained / (episodes - cuts[0])


@pytest.mark.parametrize("method", METHODS)
def test_the_interval_covers_the_truth(method):
    covers, errors, drops = [], [], []
    for seed in range(470):
        utility, about = world(seed, EPISODES, 40, 4)
        value = value_of_rule(about, "beta", CAUTIOUS, method=method)
        if value.change is None or value.interval is None or not value.dropped:
            continue
        truth = mask(value, utility, EPISODES)
        covers.append(value.interval[0] <= truth <= value.interval[1])
        errors.append(value.change - truth)
        drops.append(len(value.dropped))
    assert len(covers) >= 400
    assert np.mean(drops) > 3
    assert 0.93 <= np.mean(covers) <= 0.97
    assert abs(np.mean(errors)) < 5 * np.std(errors) / np.sqrt(len(errors))


def test_a_rerun_with_the_mask_succeeds_as_often_as_told():
    """The truth of `mask`, by simulation of one log again and again without what was dropped."""
    utility, about = world(11, 2_000)
    value = value_of_rule(about, "beta", CAUTIOUS)
    rng, first, total = np.random.default_rng(0), value.dropped[0].episode + 1, []
    gone = np.array([int(drop.id[1:]) for drop in value.dropped])
    since = np.array([drop.episode + 1 for drop in value.dropped])
    for _ in range(40):
        lot = rng.random((2_000, 100))
        lot[:, gone] += np.arange(2_000)[:, None] >= since
        sets = np.argpartition(lot, 8, axis=1)[first:, :8]
        total.append((rng.random(2_000 - first) < utility[sets].mean(axis=1)).mean() - utility.mean())
    assert abs(np.mean(total) - mask(value, utility, 2_000)) < 5 * np.std(total) / np.sqrt(40)


def test_direct_needs_no_law_of_outcomes():
    """Success is the product of utilities: no sum of slots, and yet the interval covers."""
    covers = []
    for seed in range(250):
        rng = np.random.default_rng(seed)
        utility = np.append(np.full(8, 0.95), np.full(4, 0.3))
        sets = np.argpartition(rng.random((1_500, 12)), 3, axis=1)[:, :3]
        about = journal(sets, (rng.random(1_500) < utility[sets].prod(axis=1)).astype(np.int8), 12)
        value = value_of_rule(about, "beta", rules.Knobs(theta=0.35, delta=0.05))
        if value.interval is None or not value.dropped:
            continue
        live, gained = list(range(12)), 0.0
        cuts = [drop.episode + 1 for drop in value.dropped] + [1_500]
        every = np.mean([utility[list(one)].prod() for one in itertools.combinations(live, 3)])
        for drop, begin, end in zip(value.dropped, cuts, cuts[1:], strict=False):
            live.remove(int(drop.id[1:]))
            now = np.mean([utility[list(one)].prod() for one in itertools.combinations(live, 3)])
            gained += (end - begin) * (now - every)
        truth = gained / (1_500 - cuts[0])
        covers.append(value.interval[0] <= truth <= value.interval[1])
    assert len(covers) >= 200
    assert 0.92 <= np.mean(covers) <= 0.98


def test_bad_luck_before_the_drop_is_no_evidence():
    """Outcomes are coins: what was dropped was unlucky, and its absence changes nothing."""
    changes = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        sets = np.argpartition(rng.random((800, 20)), 4, axis=1)[:, :4]
        about = journal(sets, rng.integers(0, 2, 800), 20)
        value = value_of_rule(about, "beta", rules.Knobs(theta=0.5, delta=0.05), method="additive")
        if value.change is not None and value.dropped:
            changes.append(value.change)
    assert len(changes) > 100
    assert abs(np.mean(changes)) < 5 * np.std(changes) / np.sqrt(len(changes))


def test_decisions_are_those_of_a_plain_loop():
    _, about = world(5, 600, 20, 3)
    own = np.random.default_rng(0).integers(-1, 2, len(about.memory)).astype(np.int8)
    about = about._replace(success=np.where(about.memory < 4, own, about.success).astype(np.int8))
    for rule in ("beta", "threshold", "wilson_upper", "e_process"):
        knobs = rules.Knobs(theta=0.5, delta=0.2, alpha=0.4)
        hits, n, expected = np.zeros(20, int), np.zeros(20, int), {}
        for entry, (memory, success) in enumerate(zip(about.memory.tolist(), about.success.tolist(), strict=True)):
            if success >= 0:
                hits[memory] += success
                n[memory] += 1
                if memory not in expected and rules.acts(rule, knobs, hits[memory], n[memory]):
                    expected[memory] = (int(about.episode[entry]), int(n[memory]), int(hits[memory]))
        found = decisions(about, rule, knobs)
        told = zip(*(one.tolist() for one in found[1:]), strict=True)
        assert dict(zip(found.memory.tolist(), told, strict=True)) == expected
        assert (np.diff(found.episode) >= 0).all()


def test_what_follows_a_drop_is_counted():
    _, about = world(9)
    about = about._replace(time=1_000.0 + np.arange(3_000))
    value = value_of_rule(about, "beta", CAUTIOUS)
    assert value.with_dropped + value.without == value.later == 2_999 - value.dropped[0].episode
    for drop in value.dropped:
        mine = about.memory == int(drop.id[1:])
        assert drop.time == 1_000 + drop.episode
        assert drop.later_shown == (mine & (about.episode > drop.episode)).sum()
        assert drop.later_successes == (mine & (about.episode > drop.episode) & (about.success == 1)).sum()
        assert drop.evidence + drop.later_shown == mine.sum()


def refused(about: Journal, method: str = "direct", theta: float = 0.5) -> str:
    value = value_of_rule(about, "beta", rules.Knobs(theta=theta), method=method)
    assert value.change is None
    assert value.refusal is not None
    assert rule_sentence(value) == value.refusal
    assert "\n" not in value.refusal
    return value.refusal


def test_it_refuses_where_there_is_no_support():
    rng = np.random.default_rng(1)
    bad = (rng.random(400) < 0.2).astype(int)
    companions = rng.integers(1, 30, 400)
    always = journal([[0, one] for one in companions], bad, 30)
    assert "without" in refused(always, theta=0.3)
    fixed = journal([[0, 1, 2], [3, 4, 5], [6, 7, 8]] * 200, [0, 1, 1] * 200, 9)
    assert "deterministic" in refused(fixed)
    sets = [rng.permutation(30)[:2] for _ in range(400)]
    short = journal(sets, [0 if 0 in one else 1 for one in sets], 30)
    assert "it takes 30 of each" in refused(short)
    everything = journal(sets, [0] * 400, 30)
    assert "would drop 30 of 30" in refused(everything)
    sets = [rng.permutation(12)[:2] for _ in range(600)]
    about = journal(sets, [0 if 0 in one else 1 for one in sets], 12)
    certain = about._replace(propensity=np.where(about.memory == 0, 1.0, 0.2))
    assert "probability of retrieval of 1" in refused(certain)
    assert value_of_rule(about, "beta", rules.Knobs(theta=0.5)).change is not None


def test_a_context_that_never_lacks_a_dropped_memory_is_refused():
    rng = np.random.default_rng(2)
    hard = rng.random(1_000) < 0.5
    sets = [[0, one] if h else [one, one % 19 + 1] for h, one in zip(hard, rng.integers(1, 20, 1_000), strict=True)]
    about = journal(sets, (rng.random(1_000) < np.where(hard, 0.2, 0.8)).astype(int), 20)
    knobs = rules.Knobs(theta=0.4, delta=0.01)
    blind = value_of_rule(about, "beta", knobs)
    assert blind.interval is not None
    assert blind.interval[0] > 0.1  # it was the difficulty
    told = value_of_rule(about._replace(context=hard.astype(np.int32), contexts=("easy", "hard")), "beta", knobs)
    assert told.refusal is not None
    assert told.refusal.startswith("No claim: nothing like")


def test_streaks_are_warned_of():
    rng = np.random.default_rng(3)
    sets = [rng.permutation(10)[:2] + 10 * (episode // 200 % 2) for episode in range(2_000)]
    outcome = [int(rng.random() < (0.2 if 3 in one else 0.7)) for one in sets]
    value = value_of_rule(journal(sets, outcome, 20), "beta", rules.Knobs(theta=0.4))
    assert value.warnings
    assert "streaks" in value.warnings[0]
    assert not value_of_rule(world(0)[1], "beta", CAUTIOUS).warnings


def test_a_rule_that_drops_nothing_changes_nothing():
    value = value_of_rule(world(0)[1], "beta", rules.Knobs(theta=0.1))
    assert (value.dropped, value.change, value.support) == ((), 0.0, 0.0)
    assert "nothing" in rule_sentence(value)
    empty = journal([[], [], [0]], [1, 0, 1])._replace(outcome=np.array([1, 0, -1], np.int8))
    with pytest.raises(InputError, match="known outcome"):
        value_of_rule(empty)
    with pytest.raises(InputError, match="method"):
        value_of_rule(world(0, 50)[1], method="hopeful")


def test_the_report_of_a_rule():
    for knobs in (CAUTIOUS, rules.Knobs(theta=0.1), rules.Knobs(theta=0.9)):
        value = value_of_rule(world(4)[1], "beta", knobs)
        console = Console(file=io.StringIO(), width=80)
        print_rule(value, console, rows=3)
        text = console.file.getvalue()
        assert " ".join(rule_sentence(value).split()) in " ".join(text.split())
        assert max(map(len, text.splitlines())) <= 80
        told = json.loads(json.dumps(rule_json(value), allow_nan=False))
        assert told["knobs"]["theta"] == knobs.theta
        assert len(told["dropped"]) == len(value.dropped)
        assert told["interval"] == (None if value.interval is None else list(value.interval))
