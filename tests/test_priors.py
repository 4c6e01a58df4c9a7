"""Beta priors from counters: known laws, SciPy's likelihood, and the world of experiment 1."""

import math

import jax
import numpy as np
import pytest
from scipy import optimize, stats

from mwjax import priors
from mwjax.sweep import run
from mwjax.types import InputError

SHAPE = (60, 100)


def drawn(seed, a, b, most, *, shape=SHAPE):
    """Counters (successes, evidence) of p ~ Beta(a, b)."""
    rng = np.random.default_rng(seed)
    evidence = rng.integers(most + 1, size=shape)
    return rng.binomial(evidence, rng.beta(a, b, shape)), evidence


def log_likelihood(prior, successes, evidence):
    return stats.betabinom.logpmf(successes, evidence, prior.a[..., None], prior.b[..., None]).sum(-1)


def scipy_twin(successes, evidence, start, most_strength):
    """Maximum of scipy.stats.betabinom, by another method in other coordinates."""

    def loss(point):
        return -stats.betabinom.logpmf(successes, evidence, *np.exp(point)).sum()

    start = np.log(np.maximum([start.a, start.b], 0.6))
    bounds = [(math.log(0.5), math.log(most_strength))] * 2
    return optimize.minimize(loss, start, bounds=bounds, method="L-BFGS-B", options={"ftol": 1e-15, "gtol": 1e-7})


def assert_mean(values, expected):
    """Within five standard errors over stores."""
    error = values.std(ddof=1) / math.sqrt(len(values))
    assert abs(values.mean() - expected) < 5 * error, (values.mean(), expected, error)


@pytest.mark.parametrize(("a", "b"), [(3.0, 7.0), (1.0, 1.0), (20.0, 5.0), (0.8, 12.0)])
def test_a_known_law_is_recovered(a, b):
    """Bias falls as 1 / memories, the standard error over stores as its root: large stores."""
    successes, evidence = drawn(1, a, b, 80, shape=(32, 4_096))
    for found in (priors.fit(successes, evidence), priors.moments(successes, evidence)):
        assert_mean(found.a / found.strength, a / (a + b))
        assert_mean(found.a, a)
        assert_mean(found.b, b)
        assert not found.capped.any()


@pytest.mark.parametrize(
    ("a", "b", "most"), [(3.0, 7.0, 30), (110.0, 110.0, 900), (0.3, 9.0, 200), (2.0, 0.3, 40), (0.2, 0.2, 9)]
)
def test_fit_equals_a_scipy_twin(a, b, most):
    successes, evidence = drawn(2, a, b, most)
    found = priors.fit(successes, evidence)
    reached = log_likelihood(found, successes, evidence)
    assert min(found.a.min(), found.b.min()) >= 0.5
    for i in range(3):
        one = priors.Prior(found.a[i], found.b[i], found.capped[i])
        twin = scipy_twin(successes[i], evidence[i], one, 10_000)
        assert reached[i] >= -twin.fun - 1e-6
        far = scipy_twin(successes[i], evidence[i], priors.moments(successes[i], evidence[i]), 10_000)
        assert [one.a, one.b] == pytest.approx(np.exp(far.x), rel=1e-3)
    assert (reached >= log_likelihood(priors.moments(successes, evidence), successes, evidence) - 1e-6).all()


def test_equal_chances_are_capped():
    """Half the stores of equal memories vary less than binomial noise: the cap is where the likelihood still rises."""
    rng = np.random.default_rng(3)
    evidence = rng.integers(10, 500, SHAPE)
    successes = rng.binomial(evidence, 0.3)
    for most in (10_000.0, 100_000.0):
        found, rough = (estimate(successes, evidence, most_strength=most) for estimate in (priors.fit, priors.moments))
        mean = found.a / found.strength
        at_cap, below = (
            log_likelihood(priors.Prior(mean * strength, (1 - mean) * strength, found.capped), successes, evidence)
            for strength in (most, 0.97 * most)
        )
        assert found.capped.tolist() == (at_cap > below).tolist()
        for one in (found, rough):
            assert one.strength[one.capped] == pytest.approx(most, rel=1e-12)
            assert (one.strength[~one.capped] < most).all()
            assert_mean(one.a / one.strength, 0.3)
            assert abs(one.capped.mean() - 0.5) < 5 * math.sqrt(0.25 / 60)
    assert priors.fit(successes, evidence, most_strength=50.0).capped.all()  # all are more alike than that


def test_priors_of_little_or_one_sided_evidence_stay_proper():
    nothing = np.zeros(5, int)
    for estimate in (priors.fit, priors.moments):
        found = estimate(nothing, nothing)
        assert (found.a, found.b, bool(found.capped)) == (5_000, 5_000, True)
        once = estimate([1, 0, 1, 1], [1, 1, 1, 1])  # shown once each: nothing says how far apart they are
        assert once.capped
        assert once.a == pytest.approx(7_500, rel=1e-5)
        for successes, low in ((nothing, "a"), (nothing + 9, "b")):
            sure = estimate(successes, nothing + 9)
            assert getattr(sure, low) == pytest.approx(0.5, abs=1e-5)
        apart = estimate([0, 9, 0, 9], [9, 9, 9, 9])
        assert (apart.a, apart.b) == pytest.approx((0.5, 0.5), abs=1e-5)
        assert not apart.capped


def test_symmetries():
    """Failures for successes exchange a and b; order, memories never shown and the batch change nothing."""
    successes, evidence = drawn(5, 4.0, 2.0, 30, shape=(6, 50))
    order = np.random.default_rng(0).permutation(60)
    for estimate, rel in ((priors.moments, 1e-9), (priors.fit, 1e-4)):
        found = estimate(successes, evidence)
        turned = estimate(evidence - successes, evidence)
        assert found.a == pytest.approx(turned.b, rel=rel)
        wider = [np.pad(x, ((0, 0), (0, 10)))[:, order] for x in (successes, evidence)]
        assert found.a == pytest.approx(estimate(*wider).a, rel=rel)
        folded = estimate(successes.reshape(2, 3, 50), evidence.reshape(2, 3, 50))
        assert folded.a.shape == folded.capped.shape == (2, 3)
        assert found.b == pytest.approx(folded.b.ravel(), rel=rel)
        one = estimate(successes[4], evidence[4])
        assert one.strength.shape == ()
        assert found.strength[4] == pytest.approx(one.strength, rel=rel)


def test_moments_follow_the_stated_formula():
    s, n = [3, 0, 7, 2], [4, 0, 12, 9]
    p = 12 / 25
    excess = 4 * (3 / 4 - p) ** 2 + 12 * (7 / 12 - p) ** 2 + 9 * (2 / 9 - p) ** 2 - p * (1 - p) * 2
    spread = p * (1 - p) * (3 * 21 / 25 + 11 * 13 / 25 + 8 * 16 / 25)
    strength = spread / excess - 1
    found = priors.moments(s, n)
    assert (found.a, found.b, bool(found.capped)) == (pytest.approx(p * strength), pytest.approx((1 - p) * strength), 0)


def test_one_program_serves_similar_shapes():
    sizes = [(5, 70), (8, 128), (6, 65), (7, 99)]
    priors.fit(*drawn(6, 3.0, 3.0, 20, shape=sizes[0]))
    before = priors._maximise._cache_size()
    for shape in sizes:
        priors.fit(*drawn(6, 3.0, 3.0, 20, shape=shape), most_strength=float(sum(shape)))
    assert priors._maximise._cache_size() == before
    assert not jax.config.jax_enable_x64


def test_closed_strength():
    assert priors.closed_strength(100, 8) == pytest.approx(0.25 * 12 * (8 * 99 / 92) ** 2 - 1)
    assert round(priors.closed_strength(100, 8)) == 221
    assert priors.closed_strength(50, 1) == pytest.approx(2)  # utilities uniform on [0, 1]: Beta(1, 1)
    assert priors.closed_strength(8, 8) == math.inf
    assert priors.closed_strength(100, 8, utility_variance=0.0) == math.inf


def test_the_prior_of_experiment_1():
    """Fitted strengths of 60 stores against the closed form, 221.

    Noise that the k memories of a set share cancels out of differences: (k - 1) / (N - 1) of the binomial part is
    subtracted and was never there, which takes the mean of 1 / (a + b + 1) down by 2 %. The strength itself is its
    inverse: skewed, and 1 + CV^2 above. Over 600 stores 225.7 by moments and 229 by likelihood (p+ is uniform, not
    Beta) for the inverse of the mean inverse, 231 and 234 for the mean, standard deviation 36.
    """
    dataset = run("ranking", seeds=60, metrics=())
    evidence, closed = dataset.evidence.values, priors.closed_strength(100, 8)
    found, rough = (estimate(dataset.successes.values, evidence) for estimate in (priors.fit, priors.moments))
    variance = 0.25 / (closed + 1)
    shared = (0.25 - variance) * (1 / evidence).mean() * 7 / 99
    assert_mean(1 / (rough.strength + 1), (variance - shared) / 0.25)
    for one in (found, rough):
        assert not one.capped.any()
        assert_mean(one.strength, closed)
        assert_mean(one.a / one.strength, 0.5)
    assert stats.skew(found.strength) > 0


def test_values_are_checked():
    with pytest.raises(InputError, match=r"successes \(2,\) are not of the shape \[..., memory\] of evidence \(3,\)"):
        priors.fit([1, 2], [1, 2, 3])
    with pytest.raises(InputError, match=r"successes 3.0 of evidence 2.0 are not in 0 .. evidence"):
        priors.moments([0, 3], [1, 2])
    with pytest.raises(InputError, match=r"most_strength is 1.0, not in \(1, 100000\]"):
        priors.fit([1], [2], most_strength=1.0)


def test_the_prior_inside_the_simulation_is_the_one_by_moments():
    dataset = run(
        "ranking", seeds=40, num_episodes=2_000, governance="deprecate", rule="empirical_bayes", theta=0.3,
        decide_every=500, checkpoints=[2_000], observers=["memory_worth"], metrics=["mean_success", "store"],
    )  # fmt: skip
    found = priors.moments(dataset.successes.values, dataset.evidence.values, most_strength=1_000)
    np.testing.assert_allclose(dataset.prior_strength.values[:, -1], found.strength, rtol=2e-3)
