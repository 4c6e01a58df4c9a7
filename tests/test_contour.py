"""The separation map on synthetic lives, whose P(f, T) = Phi(sqrt(f n) d / k) is exact and whose threshold is known."""

import jax
import numpy as np
import pytest
from scipy import optimize, stats

from mwjax import contour
from mwjax.types import InputError

SEPARATION = np.array([0.04, 0.07, 0.12, 0.2, 0.3, 0.45, 0.7, 1.0])
SHOWN = np.array([2_000, 6_000, 12_000, 24_000, 40_000]) * 8 / 99  # episodes that show the pair: T k / (N - 1)
DRIFT, LEVEL = 0.85 / 8, 0.95
TRUTH = (stats.norm.ppf(LEVEL) / DRIFT) ** 2 / SHOWN
INSIDE = TRUTH < 1  # the first mark never reaches the level
PROBIT = DRIFT * np.sqrt(np.outer(SEPARATION, SHOWN))
COUNTS = np.array([400, 800, 1_600, 1_600, 800, 800, 400, 400])
RESAMPLES = 100


def lives(seed, num_seeds, separation=SEPARATION):
    """Scores [seed, separation, mark]: signs of a Brownian sheet over (f, n) with drift, so cells share their noise."""
    area = np.outer(np.diff(separation, prepend=0), np.diff(SHOWN, prepend=0))
    noise = np.random.default_rng(seed).standard_normal((num_seeds, *area.shape), np.float32)
    return (noise * np.sqrt(area) + area * DRIFT).cumsum(1).cumsum(2) > 0


def prefixes(scores, counts=COUNTS):
    return [scores[:count, i] for i, count in enumerate(counts)]


def band(sample, **options):
    return contour.band(SEPARATION, prefixes(lives(sample, 1_600)), LEVEL, resamples=RESAMPLES, **options)


def test_threshold_is_recovered_without_bias():
    replications = RESAMPLES + 1  # the shape that band compiles
    mean = np.stack([lives(seed, 2_500).mean(axis=0) for seed in range(replications)])
    found = contour.threshold(SEPARATION, contour.fit(SEPARATION, mean, np.full(mean.shape, 2_500)), LEVEL)
    assert np.isinf(found[:, ~INSIDE]).all()
    error = found[:, INSIDE] / TRUTH[INSIDE] - 1
    standard_error = error.std(axis=0, ddof=1) / np.sqrt(replications)
    assert (np.abs(error.mean(axis=0)) < np.minimum(5 * standard_error, 0.01)).all()
    # A single cell at the level gives 2 sd(z) / z; the surface must do better with all its cells.
    z = stats.norm.ppf(LEVEL)
    assert (error.std(axis=0) < 2 * np.sqrt(LEVEL * (1 - LEVEL) / 2_500) / stats.norm.pdf(z) / z).all()


def test_band_covers_the_truth_as_often_as_it_says():
    found = [band(seed, seed=seed) for seed in range(40)]
    middle, low, high = (np.stack(x)[:, INSIDE] for x in zip(*found, strict=True))
    assert ((low <= middle) & (middle <= high)).all()
    hits = ((low <= TRUTH[INSIDE]) & (TRUTH[INSIDE] <= high)).sum(axis=0)
    assert (hits >= stats.binom.ppf(1e-3, 40, 0.95)).all()
    middle_error = (middle / TRUTH[INSIDE] - 1)[:, 1:]
    assert (np.abs(middle_error.mean(axis=0)) < 5 * middle_error.std(axis=0, ddof=1) / np.sqrt(40)).all()
    # Nor is it wider than it should be: 5 standard errors of a standard deviation over 40 replications.
    ratio = ((high - low)[:, 1:] / 2).mean(axis=0) / (1.96 * middle.std(axis=0, ddof=1)[1:])
    assert (np.abs(ratio - 1) < 5 / np.sqrt(2 * 39)).all()


@pytest.mark.parametrize("num_seeds", [1, 5, 20, 80])
def test_fit_is_monotone_in_separation_and_mark(num_seeds):
    mean = lives(33, num_seeds).mean(axis=0)
    assert (np.diff(mean) < 0).any()
    assert (np.diff(mean, axis=0) < 0).any()
    fitted = contour.fit(SEPARATION, mean, np.full(PROBIT.shape, num_seeds))
    assert fitted.dtype == np.float64
    assert ((fitted > 0) & (fitted <= 1)).all()
    assert (np.diff(fitted, axis=0) >= 0).all()
    assert (np.diff(fitted, axis=1) >= 0).all()
    found = contour.threshold(SEPARATION, fitted, 0.8)
    assert (found[1:] <= found[:-1]).all()


def test_scores_that_fall_along_the_marks_are_sorted():
    rising = contour.fit(SEPARATION, stats.norm.cdf(PROBIT), 1_000)
    falling = contour.fit(SEPARATION, stats.norm.cdf(PROBIT)[:, ::-1], 1_000)
    assert (np.diff(falling, axis=0) >= 0).all()
    assert (np.diff(falling, axis=1) >= 0).all()
    # Sorting mends all of it: the same minimum, up to where float32 stops.
    np.testing.assert_allclose(falling, rising, atol=1e-4)


def test_exact_chances_give_the_exact_threshold():
    chance = stats.norm.cdf(PROBIT)
    fitted = contour.fit(SEPARATION, chance, np.full(chance.shape, 1e6))
    # What the penalty still moves is less than what the seeds leave open.
    standard_error = np.sqrt(chance * (1 - chance) / 1e6)
    assert (np.abs(fitted - chance) < np.maximum(standard_error, 1e-6)).all()
    # Probit P is straight in sqrt f, so interpolation adds nothing: rounding alone.
    np.testing.assert_allclose(contour.threshold(SEPARATION, chance, LEVEL)[INSIDE], TRUTH[INSIDE], rtol=1e-9)


def test_a_criterion_that_is_not_straight_in_root_f():
    """Disjoint intervals: their width does not shrink with f, so probit P holds a term in 1 / sqrt f."""
    chance, seeds = stats.norm.cdf(1.4 * PROBIT - 0.7 / np.sqrt(SEPARATION)[:, None]), 1e5
    expected = contour.threshold(SEPARATION, chance, LEVEL)
    found = contour.threshold(SEPARATION, contour.fit(SEPARATION, chance, seeds), LEVEL)
    assert np.isinf([found[0], expected[0]]).all()
    # A twentieth of what a single cell at the level would leave open.
    single = 2 * np.sqrt(LEVEL * (1 - LEVEL) / seeds) / stats.norm.pdf(stats.norm.ppf(LEVEL)) / stats.norm.ppf(LEVEL)
    assert (np.abs(found[1:] / expected[1:] - 1) < single / 20).all()


@pytest.mark.parametrize("offset", [0.0, -2.8])
def test_fit_is_the_minimum_that_scipy_finds(offset):
    """Also for criteria that start below one half, such as disjoint intervals."""
    rng, step = np.random.default_rng(7), np.diff(np.sqrt(SEPARATION), prepend=0)
    weight = np.broadcast_to(COUNTS[:, None], PROBIT.shape)
    mean = rng.binomial(weight, stats.norm.cdf(PROBIT + offset)) / weight

    def surface(point):
        return point[0] + np.cumsum(step[:, None] * np.exp(point[1:].reshape(mean.shape)), axis=0)

    def loss(point):
        z, b = surface(point), point[1:].reshape(mean.shape)
        likelihood = mean * stats.norm.logcdf(z) + (1 - mean) * stats.norm.logsf(z)
        rough = np.square(np.diff(b, axis=0) / 0.15).sum() + np.square(np.diff(b, n=2, axis=1) / 0.4).sum()
        return rough / 2 - (weight * likelihood).sum()

    start = np.append(offset, np.broadcast_to(np.log(DRIFT * np.sqrt(SHOWN)), mean.shape))
    best = optimize.minimize(loss, start, method="BFGS", options={"gtol": 0.05})
    expected = stats.norm.cdf(np.sort(surface(best.x), axis=1))
    # The loss is half a deviance: a gradient of 0.05 leaves the fit well within a fiftieth of a standard error.
    standard_error = np.sqrt(expected * (1 - expected) / weight)
    found = contour.fit(SEPARATION, mean, weight)
    assert (np.abs(found - expected) < 0.02 * standard_error + 1e-6).all()


def test_order_of_the_seeds_does_not_matter():
    scores = lives(11, 1_600)
    shuffled = scores.copy()
    shuffled[:400] = scores[np.random.default_rng(0).permutation(400)]  # seeds that every cell has
    one, other = (contour.band(SEPARATION, prefixes(x), LEVEL, resamples=RESAMPLES) for x in (scores, shuffled))
    assert (one.threshold == other.threshold).all()
    # The 2.5 % point of normal draws has the standard error sd sqrt(.025 x .975 / draws) / phi(1.96).
    one, other = (np.stack(x)[1:, 2:] for x in (one, other))
    standard_error = (one[1] - one[0]) / (2 * 1.96) * np.sqrt(0.025 * 0.975 / RESAMPLES) / stats.norm.pdf(1.96)
    assert (np.abs(one - other) < 5 * np.sqrt(2) * standard_error).all()
    assert (one != other).any()


def test_band_is_reproducible_and_its_seed_moves_the_ends_only():
    one, again, other = band(2), band(2), band(2, seed=1)
    assert all((a == b).all() for a, b in zip(one, again, strict=True))
    assert (one.threshold == other.threshold).all()
    assert (one.low != other.low).any()
    narrow = band(2, coverage=0.5)
    assert ((narrow.low >= one.low) & (narrow.high <= one.high)).all()
    assert ((narrow.high < one.high) & (narrow.low > one.low))[2:].all()


def test_band_equals_the_fit_of_the_prefixes():
    scores = prefixes(lives(2, 1_600))
    mean = np.stack([one.mean(axis=0) for one in scores])
    weight = np.broadcast_to(COUNTS[:, None], mean.shape)
    found = contour.threshold(SEPARATION, contour.fit(SEPARATION, mean, weight), LEVEL)
    # Alone and among a hundred samples sums are taken in another order.
    np.testing.assert_allclose(band(2).threshold, found, rtol=1e-4)


def test_resampling_takes_whole_seeds_of_the_prefix(monkeypatch):
    """With one score for all cells of a seed, all cells of a sample have one mean; a prefix draws its own part."""
    seen = []
    monkeypatch.setattr(contour, "fit", lambda separation, mean, weight: seen.append((mean, weight)) or mean)
    same = np.broadcast_to(np.random.default_rng(0).integers(0, 2, 300)[:, None], (300, 5))
    contour.band(SEPARATION, [same] * 7 + [same[:100]], 0.5, resamples=50)
    mean, weight = seen[0]
    assert (mean[:, :7] == mean[:, :1, :1]).all()
    assert (weight[:, :7] == 300).all()
    assert weight[0, 7] == 100
    assert mean[0, 7, 0] == pytest.approx(same[:100].mean())
    drawn = weight[1:, 7, 0]
    assert len(set(drawn)) > 10
    assert abs(drawn.mean() - 100) < 5 * np.sqrt(300 * (1 / 3) * (2 / 3) / 50)


def test_weights_count():
    chance = stats.norm.cdf(PROBIT)
    weight = np.full(chance.shape, 1_000.0)
    wrong = chance.copy()
    wrong[4, 2] = 0.5
    fits = {}
    for seeds in (0, 10, 1_000, 100_000):
        weight[4, 2] = seeds
        fits[seeds] = contour.fit(SEPARATION, wrong, weight)[4, 2]
    assert chance[4, 2] - 0.005 < fits[0]
    assert fits[100_000] < fits[1_000] < fits[10] < fits[0]
    wrong[4, 2], weight[4, 2] = np.nan, 0
    assert contour.fit(SEPARATION, wrong, weight)[4, 2] == fits[0]
    assert (contour.fit(SEPARATION, chance, np.full(chance.shape, 50)) == contour.fit(SEPARATION, chance, 50)).all()


def test_threshold_by_hand():
    fitted = stats.norm.cdf([[0.0, 2.0, -2.0, 1.0], [0.5, 3.0, -1.0, 1.0], [2.0, 4.0, 0.5, 2.0]])
    found = contour.threshold([0.04, 0.16, 0.36], fitted, stats.norm.cdf(1.0))
    # Mark 0 crosses a third of the way from sqrt f = .4 to .6; mark 1 is above everywhere, mark 2 below, 3 at it.
    np.testing.assert_allclose(found, [(0.4 + 0.2 / 3) ** 2, 0.04, np.inf, 0.04], rtol=1e-12)
    stacked = contour.threshold([0.04, 0.16, 0.36], np.stack([fitted, fitted[:, ::-1]]), stats.norm.cdf(1.0))
    assert (stacked == np.stack([found, found[::-1]])).all()
    assert np.isfinite(contour.threshold([0.1, 1.0], [[0.0], [1.0]], 0.95)).all()


def test_a_level_out_of_the_grid():
    none, every = np.zeros((50, 5)), np.ones((50, 5))
    never = contour.band(SEPARATION, [none] * 8, LEVEL, resamples=RESAMPLES)
    assert all(np.isinf(x).all() for x in never)
    always = contour.band(SEPARATION, [every] * 8, LEVEL, resamples=RESAMPLES)
    assert all((x == SEPARATION[0]).all() for x in always)


def test_next_seeds_by_hand():
    counts = np.array([100, 100, 100, 100, 100, 100, 100, 300])
    ask = lambda fstar, low, high, most=1_000: contour.next_seeds(
        SEPARATION, counts, np.array(fstar), np.array(low), np.array(high), target=0.03, most=most
    )
    assert (ask([0.2], [0.195], [0.205]) == counts).all()  # 2.5 %: sharp
    doubled = [100, 100, 100, 200, 200, 100, 100, 300]  # .2 and .3 are within a factor 1.5 of .2; .12 and .45 are not
    assert ask([0.2001], [0.19], [0.21]).tolist() == doubled
    assert ask([0.2001], [0.15], [np.inf]).tolist() == doubled
    assert ask([0.2001], [np.inf], [np.inf]).tolist() == doubled
    assert ask([0.2001, np.inf, 0.04], [0.19, 0.9, 0.04], [0.21, np.inf, 0.05]).tolist() == doubled
    assert ask([0.2001, 0.9], [0.19, 0.8], [0.21, 1.0]).tolist() == [100, 100, 100, 200, 200, 100, 200, 600]
    assert ask([0.2001], [0.19], [0.21], 150).tolist() == [100, 100, 100, 150, 150, 100, 100, 300]
    fine = contour.next_seeds([0.07, 0.08, 0.11, 0.12, 0.17, 0.18], [1] * 6, [0.115], [0.1], [0.2], most=100)
    assert fine.tolist() == [1, 2, 2, 2, 2, 1]  # from .115 / 1.5 = .077 to .115 x 1.5 = .173
    wide = contour.next_seeds([0.01, 1.0], [7, 9], [0.1], [0.05], [0.2], most=100)  # none near, two enclose
    assert wide.tolist() == [14, 18]
    assert contour.next_seeds(SEPARATION, counts, [np.inf, 0.04], [0.9, 0.04], [np.inf, 0.05], most=1_000).tolist() == (
        counts.tolist()
    )


def test_rounds_of_seeds_end():
    counts, rounds = np.full(8, 200), 0
    scores = lives(5, 3_200)
    while True:
        found = contour.band(SEPARATION, prefixes(scores, counts), LEVEL, resamples=RESAMPLES)
        wanted = contour.next_seeds(SEPARATION, counts, *found, target=0.15, most=3_200)
        if (wanted == counts).all():
            break
        counts, rounds = wanted, rounds + 1
    half = (found.high[1:] - found.low[1:]) / 2 / found.threshold[1:]
    assert 1 <= rounds <= 8 * 4  # every round doubles one count at least, each of the eight four times at most
    assert (half <= 0.15).all() or counts.max() == 3_200


def test_one_program_for_equal_shapes_and_the_same_numbers_under_x64():
    first = band(1)
    compiled = contour._minimise._cache_size()
    with jax.enable_x64(True):
        second = band(1)
    assert contour._minimise._cache_size() == compiled
    assert all((a == b).all() for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize("grid", [[0.1], [0.0, 0.5], [0.5, 0.1], [0.5, 1.1], [0.2, 0.2], [[0.1, 0.2]], [0.1, np.nan]])
def test_a_wrong_grid_is_named(grid):
    with pytest.raises(InputError, match="separation is"):
        contour.fit(grid, np.full((2, 3), 0.5), np.ones((2, 3)))


@pytest.mark.parametrize("mean", [np.full((2, 3), 1.1), np.full((3, 3), 0.5), np.full((2, 3), np.nan), np.ones(2)])
def test_wrong_scores_are_named(mean):
    with pytest.raises(InputError, match="scores"):
        contour.fit([0.1, 0.2], mean, np.ones(mean.shape))


def test_wrong_score_arrays_are_named():
    for scores in ([np.full((9, 3), 2.0)] * 2, [np.ones((9, 3))] * 3):
        with pytest.raises(InputError, match="scores"):
            contour.band([0.1, 0.2], scores, 0.9, resamples=3)
