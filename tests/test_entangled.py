"""Entangled pairs equal a plain count; a planted hitchhiker is named, beside its anchor, and never called high."""

import itertools

import numpy as np
import pytest

from mwjax.logs.journal import Journal, journal
from mwjax.replay import adjusted, entangled
from mwjax.theory import hitchhiker

NUM_MEMORIES, NUM_RETRIEVED = 100, 8


def random_log(rng, episodes=300, memories=15) -> Journal:
    sets = [rng.choice(memories, rng.integers(1, 6), replace=False) for _ in range(episodes)]
    sets = [np.union1d(one, [1]) if 0 in one and rng.random() < 0.8 else one for one in sets]
    return journal(sets, rng.integers(-1, 2, episodes), memories)


def hitchhiker_log(seed: int, num_episodes: int, separation: float, *, base: float, gain: float) -> Journal:
    """The hitchhiker world (split): memory 0 is the anchor, 1 its hitchhiker; Pr = base + gain (mean U - 0.5).

    Fillers are U(0, 0.5): what the anchor does stands out.
    """
    rng, k = np.random.default_rng(seed), NUM_RETRIEVED
    utility = np.concatenate([[0.9, 0.05], rng.uniform(0, 0.5, NUM_MEMORIES - 2)])
    retrieved = np.argpartition(rng.random((num_episodes, NUM_MEMORIES - 1), np.float32), k, axis=1)[:, :k]
    drawn = np.flatnonzero((retrieved == 0).any(axis=1))
    retrieved[drawn] = np.take_along_axis(retrieved[drawn], np.argsort(retrieved[drawn] != 0, kind="stable"), axis=1)
    retrieved += 1
    separated, half = rng.random(len(drawn)) < separation, rng.integers(0, 2, len(drawn))
    retrieved[drawn, 0] = np.where(separated, half, 0)
    retrieved[drawn[~separated], 1] = 1
    chance = np.clip(base + gain * (utility[retrieved].mean(axis=1) - 0.5), 0, 1)
    return journal(retrieved, (rng.random(num_episodes) < chance).astype(int), NUM_MEMORIES)


@pytest.mark.parametrize("block", [4, 2_048])
def test_pairs_equal_a_plain_count(block, monkeypatch):
    monkeypatch.setattr(entangled, "BLOCK", block)
    log = random_log(np.random.default_rng(1))
    known = log.outcome >= 0
    shown = np.zeros((len(known), 15), int)
    shown[log.episode, log.memory] = 1
    shown, y = shown[known], log.outcome[known]
    phi = np.corrcoef(shown.T)
    ranked = sorted(itertools.combinations(range(15), 2), key=lambda pair: -phi[pair])
    ranked = [pair for pair in ranked if (shown[:, pair[0]] & shown[:, pair[1]]).sum() >= 10][:5]
    found = entangled.entangled(log, 5)
    assert list(zip(found.first.tolist(), found.second.tolist(), strict=True)) == ranked
    assert ranked[0] == (0, 1)
    for i, (a, b) in enumerate(ranked):
        assert found.phi[i] == pytest.approx(phi[a, b])
        kinds = shown[:, a] & shown[:, b], shown[:, a] & ~shown[:, b] & 1, shown[:, b] & ~shown[:, a] & 1
        counts = [count for kind in kinds for count in (kind.sum(), (kind * y).sum())]
        assert [column[i] for column in found[3:]] == counts
        assert found.share_of_first[i] == pytest.approx(kinds[0].sum() / shown[:, a].sum())
        assert found.share_of_second[i] == pytest.approx(kinds[0].sum() / shown[:, b].sum())


def test_a_pair_that_is_seldom_seen_or_always_shown_is_no_pair():
    log = journal([[0, 1, 2]] * 9 + [[2]] * 9, [1, 0] * 9)
    assert len(entangled.entangled(log).first) == 0
    assert entangled.entangled(log, least_together=9).phi.tolist() == [1.0]
    assert len(entangled.entangled(journal([], [], 3)).first) == 0


def test_a_hitchhiker_at_four_thresholds_is_named_and_never_high():
    """At 4 f* = .30 the fillers' success is 1/4, the whole pair's .36, the hitchhiker's alone .20."""
    num_episodes, base, gain, seeds = 10_000, 0.75, 2.0, 40
    separation = 4 * hitchhiker.threshold(NUM_MEMORIES, NUM_RETRIEVED, num_episodes, gain=gain)
    named = 0
    for seed in range(seeds):
        log = hitchhiker_log(seed, num_episodes, separation, base=base, gain=gain)
        about = adjusted.design(log)
        result = adjusted.adjust(log, penalty="cv" if seed < 3 else 30)
        assert 10 <= result.penalty <= 100
        found = {one.memory: one for one in entangled.suspects(log, result, about=about)}
        named += 1 in found and found[1].companion == 0
        assert adjusted.labels(result, theta_low=0, theta_high=result.base_rate)[1] != "high"
        assert 0 not in found
        assert all(one.interval[0] > result.base_rate >= one.adjusted_interval[0] for one in found.values())
    assert named / seeds >= 0.95


def test_a_suspect_says_what_it_borrows():
    log = hitchhiker_log(3, 20_000, 0.3, base=0.75, gain=2.0)
    about, result = adjusted.design(log), adjusted.adjust(log, penalty=30)
    one = next(one for one in entangled.suspects(log, result, about=about) if one.memory == 1)
    shown = np.zeros((20_000, NUM_MEMORIES))
    shown[log.episode, log.memory] = 1
    with_it = shown[:, 1] == 1
    lent = (shown[with_it].mean(axis=0) - shown[~with_it].mean(axis=0)) * result.relative
    lent[1] = -1
    assert one.companion == lent.argmax() == 0
    assert one.borrowed == pytest.approx(lent[0])
    assert one.together == pytest.approx(shown[with_it, 0].mean())
    assert one.contrast == pytest.approx(result.coefficient[0] - result.coefficient[1])
    assert one.clear
    pairs = entangled.entangled(log, 1)
    difference, error = entangled.contrasts(pairs, result, about)
    assert (pairs.first[0], pairs.second[0]) == (0, 1)
    assert (difference[0], error[0]) == pytest.approx((one.contrast, one.contrast_error))


def test_missing_standard_errors_are_made(monkeypatch):
    log = hitchhiker_log(3, 10_000, 0.3, base=0.75, gain=2.0)
    whole = entangled.suspects(log, adjusted.adjust(log, penalty=30))
    few = entangled.suspects(log, adjusted.adjust(log, penalty=30, memories=[]))
    assert [one.memory for one in whole] == [one.memory for one in few]
    assert few[0].adjusted_interval == pytest.approx(whole[0].adjusted_interval)
    assert entangled.suspects(log, adjusted.adjust(log, penalty=30, memories=[]), most=0) == ()
