"""The hitchhiker's closed forms against every set of small worlds and against simulated lives of its own writing."""

import itertools
import math

import numpy as np
import pytest

from mwjax.theory import hitchhiker

MODES = ("split", "anchor_only")
SEPARATIONS = (0.02, 0.1, 0.3, 1.0)


def floyd(rng, rows, size, number):
    """`number` of range(size) without repetition, uniformly, in every row."""
    chosen = np.full((rows, number), -1)
    for place, top in enumerate(range(size - number, size)):
        new = rng.integers(0, top + 1, rows)
        chosen[:, place] = np.where((chosen[:, :place] == new[:, None]).any(axis=1), top, new)
    return chosen


def simulate(num_memories, num_retrieved, num_episodes, *, lives, seed):
    """Worth of anchor and hitchhiker, {(mode, separation): [2, life]}, fillers U(0, 1); one set of draws for all."""
    rng = np.random.default_rng(seed)
    utility = rng.random((lives, num_memories - 2))
    drawn = rng.binomial(num_episodes, num_retrieved / (num_memories - 1), lives)
    life, rows = np.repeat(np.arange(lives), drawn), np.arange(drawn.sum())
    fillers = utility[life[:, None], floyd(rng, len(rows), num_memories - 2, num_retrieved - 1)]
    kept = fillers.sum(axis=1) - fillers[rows, rng.integers(0, num_retrieved - 1, len(rows))]
    coin, heads, noise = rng.random(len(rows)), rng.random(len(rows)) < 0.5, rng.random(len(rows))
    count = lambda chosen: np.bincount(life, chosen, minlength=lives)
    found = {}
    for mode, separation in itertools.product(MODES, SEPARATIONS):
        whole, only_anchor = coin >= separation, heads | (mode == "anchor_only")
        shows = whole | only_anchor, whole | ~only_anchor
        total = np.where(whole, kept, fillers.sum(axis=1)) + 0.9 * shows[0] + 0.05 * shows[1]
        success = noise < total / num_retrieved
        evidence, hits = (np.stack([count(x), count(y)]) for x, y in (shows, [s & success for s in shows]))
        found[mode, separation] = np.where(evidence > 0, hits / np.maximum(evidence, 1), 0.5)
    return found


WORLDS = {"large": (100, 8, 10_000), "small": (50, 5, 2_000), "tiny": (20, 3, 60)}


@pytest.fixture(scope="module", params=WORLDS)
def world(request):
    lives = {"large": 4_000, "small": 4_000, "tiny": 60_000}[request.param]
    n, k, episodes = WORLDS[request.param]
    return n, k, episodes, simulate(n, k, episodes, lives=lives, seed=1)


def assert_mean(values, expected):
    """Within five standard errors over lives."""
    error = values.std(ddof=1) / math.sqrt(len(values))
    assert abs(values.mean() - expected) < 5 * error, (values.mean(), expected, error)


def test_anchor_above_against_simulated_lives(world):
    n, k, episodes, found = world
    for (mode, separation), (anchor, below) in found.items():
        expected = hitchhiker.anchor_above(n, k, separation, num_episodes=episodes, mode=mode)
        assert_mean((anchor > below) + 0.5 * (anchor == below), expected)


@pytest.mark.parametrize("world", ["large", "small"], indirect=True)
def test_gap_against_simulated_lives(world):
    """Not in the tiny world, where worth of a half that may never be shown is pulled towards 0.5."""
    n, k, _, found = world
    for (mode, separation), (anchor, below) in found.items():
        assert_mean(anchor - below, hitchhiker.gap(n, k, separation, mode=mode))
        assert_mean(anchor, hitchhiker.pair_p_plus(n, k, separation, mode=mode)[0])


def episodes_of(num_memories, num_retrieved, separation, mode, *, masked=None):
    """Every episode with its chance, as (chance, shown); memory 0 is the anchor, 1 the hitchhiker."""
    units = list(itertools.combinations(["pair", *range(2, num_memories)], num_retrieved))
    halves = [x for x in (0, 1) if x != masked]
    for drawn in units:
        others, chance = [u for u in drawn if u != "pair"], 1 / len(units)
        if "pair" not in drawn:
            yield chance, others
        elif len(halves) == 1:
            yield chance, halves + others
        else:
            for left_out in others:
                yield chance * (1 - separation) / len(others), [0, 1, *(u for u in others if u != left_out)]
            for half in (0, 1) if mode == "split" else (0,):
                yield chance * separation / (2 if mode == "split" else 1), [half, *others]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("separation", [0.0, 0.3, 1.0])
def test_means_against_every_set(mode, separation):
    n, k, gain, utility = 6, 3, 0.75, np.array([0.9, 0.05, 0.3, 0.8, 0.6, 0.1])
    success = lambda shown: 0.5 + gain * (utility[shown].mean() - 0.5)
    cases = list(episodes_of(n, k, separation, mode))
    shown = np.array([sum(p for p, s in cases if m in s) for m in range(n)])
    hits = np.array([sum(p * success(s) for p, s in cases if m in s) for m in range(n)])
    expected = np.where(shown > 0, hits / np.maximum(shown, 1e-9), 0.5)
    settings = {"filler": utility[2:].mean(), "gain": gain, "mode": mode}
    assert hitchhiker.pair_p_plus(n, k, separation, **settings) == pytest.approx(expected[:2])
    assert hitchhiker.gap(n, k, separation, **settings) == pytest.approx(expected[0] - expected[1], abs=1e-12)
    assert hitchhiker.inclusion(n, k, separation, mode=mode) == pytest.approx(shown[:3])
    mean = lambda masked: sum(p * success(s) for p, s in episodes_of(n, k, separation, mode, masked=masked))
    values = mean(None) - mean(0), mean(None) - mean(1)
    assert hitchhiker.removal_values(n, k, separation, **settings) == pytest.approx(values)
    each = hitchhiker.removal_of_each(utility, k, separation, gain=gain, mode=mode)
    assert each[:2] == pytest.approx(values)
    for filler in range(2, n):
        left = np.delete(utility, filler)
        rest = sum(
            p * (0.5 + gain * (left[shown].mean() - 0.5)) for p, shown in episodes_of(n - 1, k, separation, mode)
        )
        assert each[filler] == pytest.approx(mean(None) - rest)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("separation", [0.4, 1.0])
def test_anchor_above_against_every_history(mode, separation):
    """Seven cells an episode, pair not drawn or one of three kinds with success or failure; 7^4 histories."""
    n, k, episodes, total = 5, 2, 4, 0.0
    share = 0.5 if mode == "split" else 1.0
    kinds = {"ah": (1 - separation, 0.95 / 2), "a": (separation * share, 0.7), "h": (separation * (1 - share), 0.275)}
    cells = [(1 - k / (n - 1), "", 0)]
    cells += [(k / (n - 1) * p * x, kind, y) for kind, (p, q) in kinds.items() for y, x in ((1, q), (0, 1 - q))]
    for history in itertools.product(cells, repeat=episodes):
        worth = [np.mean([y for _, kind, y in history if m in kind] or [0.5]) for m in "ah"]
        total += math.prod(p for p, _, _ in history) * ((worth[0] > worth[1]) + 0.5 * (worth[0] == worth[1]))
    found = hitchhiker.anchor_above(n, k, separation, num_episodes=episodes, filler_sd=0, mode=mode)
    assert found == pytest.approx(total, abs=1e-6)


def test_the_published_fractions():
    """600 seeds of the paper's world: probabilities .837, .955, .997 and gaps .0059, .0183, .104."""
    for separation, share in ((0.1, 0.837), (0.3, 0.955), (1.0, 0.997)):
        expected = hitchhiker.anchor_above(100, 8, separation, num_episodes=10_000)
        assert abs(share - expected) < 5 * math.sqrt(expected * (1 - expected) / 600)
    assert hitchhiker.pair_p_plus(100, 8, 0.0) == pytest.approx((0.49375, 0.49375))
    assert [hitchhiker.gap(100, 8, f) for f in (0, 0.1, 0.3, 1)] == pytest.approx([0, 0.0056, 0.0187, 0.1063], abs=6e-5)


def test_normal_form_is_close_where_many_are_separated():
    for separation, expected in ((0.1, 0.830), (0.3, 0.951), (1.0, 0.999)):
        normal = hitchhiker.anchor_above_normal(100, 8, separation, num_episodes=10_000)
        assert normal == pytest.approx(expected, abs=6e-4)
        assert abs(normal - hitchhiker.anchor_above(100, 8, separation, num_episodes=10_000)) < 0.002


@pytest.mark.parametrize("separation", [0.2, 1.0])
def test_normal_form_of_anchor_only_without_spread_of_the_fillers(separation):
    settings = {"num_episodes": 4_000, "gain": 0.5, "mode": "anchor_only"}
    exact = hitchhiker.anchor_above(100, 8, separation, filler_sd=0, **settings)
    assert hitchhiker.anchor_above_normal(100, 8, separation, **settings) == pytest.approx(exact, abs=0.002)


def test_the_threshold_is_where_the_normal_form_reaches_the_level():
    assert hitchhiker.threshold(100, 8, 10_000) == pytest.approx(0.2966, abs=5e-5)
    for level in (0.8, 0.95):
        separation = hitchhiker.threshold(50, 5, 4_000, level=level, gain=0.9, anchor=0.8)
        reached = hitchhiker.anchor_above_normal(50, 5, separation, num_episodes=4_000, gain=0.9, anchor=0.8)
        assert reached == pytest.approx(level)


def test_the_threshold_is_a_statement_of_power():
    found = [hitchhiker.threshold(n, 5, 10_000, gain=0.75) for n in (20, 50, 100, 200)]
    assert found == pytest.approx([0.0632, 0.1631, 0.3295, 0.6624], abs=5e-5)
    assert hitchhiker.threshold(500, 5, 10_000, gain=0.75) > 1
    assert hitchhiker.threshold(100, 8, 10_000, anchor=0.05, hitchhiker=0.9) == math.inf
    assert hitchhiker.threshold(100, 8, 0) == hitchhiker.threshold(100, 8, 10_000, gain=0.0) == math.inf
    assert hitchhiker.threshold(100, 8, 10_000, level=0.5) == 0


def test_removal_tells_the_two_apart_where_worth_cannot():
    anchor, below = hitchhiker.removal_values(100, 8, 0.0)
    assert anchor == pytest.approx(8 / 99 * 0.4 / 8)
    assert below == pytest.approx(-8 / 99 * 0.45 / 8)
    assert hitchhiker.gap(100, 8, 0.0) == 0
    assert hitchhiker.anchor_above(100, 8, 0.0, num_episodes=10_000) == 0.5


def test_the_enumeration_meets_the_series(monkeypatch):
    """Either side of FEW, the same world by both: .002 apart at most."""
    for mode, separation in (("split", 0.3), ("split", 1.0), ("anchor_only", 0.5)):
        values, episodes = [], 600 if separation < 1 else 200
        for few in (10, 50):
            monkeypatch.setattr("mwjax.theory.pair_counts.FEW", few)
            values.append(hitchhiker.anchor_above(20, 3, separation, num_episodes=episodes, mode=mode))
        assert values[0] != values[1]
        assert values[0] == pytest.approx(values[1], abs=0.002)


def test_alike_halves_are_even():
    for separation, episodes in itertools.product((0.2, 1.0), (100, 5_000)):
        found = hitchhiker.anchor_above(40, 5, separation, num_episodes=episodes, anchor=0.4, hitchhiker=0.4)
        assert found == pytest.approx(0.5, abs=1e-9)
