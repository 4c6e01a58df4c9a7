"""Governance rules: the table of a rule is the decision that SciPy makes, at every counter."""

import functools
import itertools
import math

import numpy as np
import pytest
from scipy import integrate, optimize, special, stats

from mwjax import rules
from mwjax.rules import RULES, Knobs
from mwjax.types import InputError

KNOBS = (
    Knobs(),
    Knobs(theta=0.4, delta=0.01, alpha=0.01, prior_a=0.5, prior_b=2.0, min_evidence=0),
    Knobs(theta=0.05, delta=1e-6, alpha=1e-6, prior_a=0.01, prior_b=0.01, min_evidence=5),
    Knobs(theta=0.9, delta=0.5, alpha=0.5, prior_a=50.0, prior_b=5.0),
    Knobs(theta=1 / 3, prior_a=1e6, prior_b=1e6),
)
ENDS = (Knobs(theta=0.0, min_evidence=0), Knobs(theta=1.0, min_evidence=0), Knobs(theta=1.0, prior_b=1e6))


def scipy_decision(rule: str, knobs: Knobs, s: np.ndarray, n: np.ndarray) -> np.ndarray:
    """The definition, written down again; 0 < theta < 1, n > 0."""
    f, theta = n - s, knobs.theta
    low, high = wilson_by_formula(s, n)
    enough = n >= knobs.min_evidence
    if rule == "beta":
        return special.betainc(knobs.prior_a + s, knobs.prior_b + f, theta) > 1 - knobs.delta
    if rule == "threshold":
        return enough & (s / n < theta)
    if rule == "wilson":
        return enough & (low < theta)
    if rule == "wilson_upper":
        return high < theta
    log_one = special.betaln(1 + s, 1 + f) - s * math.log(theta) - f * math.log1p(-theta)
    if rule == "e_process_two_sided":
        return (log_one >= -math.log(knobs.alpha)) & (s / n < theta)
    with np.errstate(divide="ignore"):
        return np.log(special.betainc(1 + s, 1 + f, theta)) + log_one - math.log(theta) >= -math.log(knobs.alpha)


def wilson_by_formula(s, n, z=rules.Z_95):
    p = s / n
    spread = z * np.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (p + z * z / (2 * n) - spread) / (1 + z * z / n), (p + z * z / (2 * n) + spread) / (1 + z * z / n)


@functools.lru_cache
def every_counter(most: int) -> tuple[np.ndarray, np.ndarray]:
    n, s = np.meshgrid(np.arange(most + 1), np.arange(most + 1), indexing="ij")
    return s[s <= n], n[s <= n]


@pytest.mark.parametrize("knobs", KNOBS)
@pytest.mark.parametrize("rule", RULES)
def test_a_table_is_the_decision_at_every_counter(rule, knobs):
    s, n = every_counter(300)
    seen = n > 0
    table = rules.most_successes(rule, knobs, 300)
    assert table.dtype == np.int64
    assert table.shape == (301,)
    assert table[0] == -1
    expected = np.zeros(len(n), bool)
    expected[seen] = scipy_decision(rule, knobs, s[seen], n[seen])
    np.testing.assert_array_equal(s <= table[n], expected)
    np.testing.assert_array_equal(rules.acts(rule, knobs, s, n), expected)


@pytest.mark.parametrize("knobs", KNOBS[:3])
@pytest.mark.parametrize("rule", RULES)
def test_a_table_is_the_decision_at_its_boundary(rule, knobs):
    n = np.arange(1, 10_001)
    most = rules.most_successes(rule, knobs, 10_000)[1:]
    some, room = most >= 0, most < n
    assert scipy_decision(rule, knobs, most[some], n[some]).all()
    assert not scipy_decision(rule, knobs, (most + 1)[room], n[room]).any()
    assert some.any()


@pytest.mark.parametrize("knobs", ENDS)
@pytest.mark.parametrize("rule", RULES)
def test_thresholds_0_and_1(rule, knobs):
    """Nothing succeeds less often than never; at 1 one failure may be enough, and a prior may be."""
    s, n = every_counter(60)
    table = rules.most_successes(rule, knobs, 60)
    np.testing.assert_array_equal(rules.acts(rule, knobs, s, n), s <= table[n])
    least = max(RULES[rule].least(knobs), 1)
    at_1 = np.arange(60 + 1) - (rule != "beta")
    if rule == "wilson":  # its lower bound is below 1 whatever was seen
        at_1 = np.arange(60 + 1)
    expected = np.where(np.arange(60 + 1) < least, -1, at_1)
    np.testing.assert_array_equal(table, expected if knobs.theta else np.full(61, -1))


def test_three_of_ten_is_not_below_three_tenths():
    """Nor 7 of 100 below .07, though in binary .07 x 100 exceeds 7."""
    for theta, n in ((0.3, 10), (0.1, 30), (0.07, 100), (0.55, 100), (0.29, 100), (0.57, 100)):
        most = rules.most_successes("threshold", Knobs(theta=theta), n)[n]
        assert most == round(theta * n) - 1, (theta, n)


def test_the_decisions_by_hand():
    """Beta(1, 1): I_theta(1, 1 + n) = 1 - (1 - theta)^(n+1). One-sided E at s = 0: (1/q^(n+1) - 1) q/((n+1) theta)."""
    never = [n for n in range(100) if 0.7 ** (n + 1) >= 0.05]
    assert rules.most_successes("beta", Knobs(), 20).tolist()[: len(never) + 1] == [-1] * len(never) + [0]
    e = [(0.7 ** -(n + 1) - 1) * 0.7 / (0.3 * (n + 1)) for n in range(30)]
    first = next(n for n, value in enumerate(e) if value >= 20)
    table = rules.most_successes("e_process", Knobs(), 30)
    assert (table[first - 1], table[first]) == (-1, 0)


def test_wilson_interval():
    assert rules.wilson(1, 1)[0] == pytest.approx(0.2065, abs=5e-5)
    assert rules.wilson(90, 100)[0] == pytest.approx(0.8256, abs=5e-5)
    s, n = np.array([0, 3, 7, 50]), np.array([4, 9, 7, 120])
    for one, low, high in zip(zip(s.tolist(), n.tolist(), strict=True), *rules.wilson(s, n), strict=True):
        known = stats.binomtest(*one).proportion_ci(method="wilson")
        assert (low, high) == pytest.approx((known.low, known.high), abs=1e-12)
    assert rules.wilson(0, 0) == (0.0, 1.0)
    assert rules.wilson(5, 5)[1] == 1.0
    assert rules.wilson(0, 7)[0] == 0.0
    assert np.shape(rules.wilson(2.5, np.array([3.0, 4.5]), z=1.0)[0]) == (2,)


def test_the_e_processes_are_their_mixtures():
    """By quadrature of the likelihood ratio: over q < theta, uniform, and over all q."""
    knobs = Knobs(theta=0.35, alpha=0.2)
    for s, n in ((0, 1), (2, 11), (9, 15), (3, 30)):

        def ratio(q, s=s, n=n):
            return (q / 0.35) ** s * ((1 - q) / 0.65) ** (n - s)

        below, every = integrate.quad(ratio, 0, 0.35)[0] / 0.35, integrate.quad(ratio, 0, 1)[0]
        one = RULES["e_process"].margin(knobs, 0.35, s, n) - math.log(0.2)
        two = RULES["e_process_two_sided"].margin(knobs, 0.35, s, n)
        assert one == pytest.approx(math.log(below), abs=1e-9)
        assert two == pytest.approx(min(math.log(every) + math.log(0.2), 0.35 * n - s), abs=1e-9)


def test_the_e_processes_neither_under_nor_overflow():
    for rule in ("e_process", "e_process_two_sided"):
        s = np.linspace(0, 1e5, 4_001)
        margin = RULES[rule].margin(Knobs(), 0.3, s, 1e5)
        assert np.isfinite(margin).all()
        assert margin[0] > 1e4
        assert (margin[s > 0.3e5] < 0).all()


@pytest.mark.parametrize("rule", RULES)
def test_margins_fall_with_successes(rule):
    """Strictly around the boundary, real-valued counters included."""
    for n in (7.5, 40.0, 2_000.25):
        root = rules.roots(rule, Knobs(), [0.3], 2_001)[0][round(n)]
        s = np.linspace(max(root - 2, 0), min(root + 2, n), 101)
        assert (np.diff(RULES[rule].margin(Knobs(), 0.3, s, n)) < 0).all()


@pytest.mark.parametrize("rule", RULES)
def test_tables_grow_with_evidence_and_theta(rule):
    found = rules.bounds(rule, Knobs(), tuple((np.arange(9) / 8).tolist()), 400)
    assert (np.diff(found, axis=0) >= 0).all()
    assert (np.diff(found, axis=1) >= 0).all()
    assert (found <= rules.UNIT * np.arange(401)).all()


def test_stricter_knobs_act_less():
    for rule, knob, values in (
        *(("beta", "delta", (0.2, 0.05, 0.01)), ("beta", "prior_a", (1.0, 3.0, 9.0))),
        *(("e_process", "alpha", (0.2, 0.05, 0.01)), ("e_process_two_sided", "alpha", (0.2, 0.05, 0.01))),
        *(("threshold", "min_evidence", (0, 10, 20)), ("wilson", "min_evidence", (0, 10, 20))),
    ):
        tables = [rules.most_successes(rule, Knobs()._replace(**{knob: value}), 200) for value in values]
        assert all((b <= a).all() and (b < a).any() for a, b in itertools.pairwise(tables)), (rule, knob)


@pytest.mark.parametrize("rule", RULES)
def test_roots_are_where_the_margin_crosses(rule):
    rng, thetas = np.random.default_rng(0), (0.05, 0.3, 0.8)
    for theta, roots in zip(thetas, rules.roots(rule, Knobs(), thetas, 2_000), strict=True):
        whole = rules.most_successes(rule, Knobs(theta=theta, min_evidence=0), 2_000)
        np.testing.assert_array_equal(np.floor(roots), whole)
        for n in rng.integers(5, 2_000, 30).tolist():
            if 0 < roots[n] < n:
                exact = optimize.brentq(
                    lambda s, n=n, theta=theta: float(RULES[rule].margin(Knobs(), theta, s, n)), 0, n
                )
                assert roots[n] == pytest.approx(exact, abs=2 * rules.SETTLED)


@pytest.mark.parametrize("rule", RULES)
def test_bounds_keep_the_integers(rule):
    thetas = (0.0, 0.125, 0.3, 0.5, 1.0)
    found = rules.bounds(rule, Knobs(), thetas, 500)
    assert found.dtype == np.int32
    assert not found.flags.writeable
    assert rules.bounds(rule, Knobs(), thetas, 500) is found
    roots = rules.roots(rule, Knobs(), thetas, 500)
    np.testing.assert_array_equal(found >> 12, np.floor(roots))
    np.testing.assert_array_equal(found[roots < 0], -rules.UNIT)
    assert np.abs(found / rules.UNIT - roots).max() <= 1 / rules.UNIT
    for row, theta in zip(found, thetas, strict=True):
        np.testing.assert_array_equal(row >> 12, rules.most_successes(rule, Knobs(theta=theta, min_evidence=0), 500))


@pytest.mark.parametrize(
    ("rule", "knobs", "message"),
    [
        ("betta", {}, "rule = 'betta': must be one of threshold, beta, e_process, e_process_two_sided, wilson, "
         "wilson_upper; did you mean 'beta'?"),
        ("beta", {"theta": 1.5}, "theta = 1.5: must be from 0 to 1"),
        ("beta", {"theta": math.nan}, "theta = nan: must be from 0 to 1"),
        ("beta", {"delta": 0.6}, "delta = 0.6: must be from 1e-06 to 0.5"),
        ("e_process", {"alpha": 0.0}, "alpha = 0.0: must be from 1e-06 to 0.5"),
        ("beta", {"prior_a": 0.0}, "prior_a = 0.0: must be from 0.01 to 1e+06"),
        ("beta", {"prior_b": 2e6}, "prior_b = 2000000.0: must be from 0.01 to 1e+06"),
        ("threshold", {"min_evidence": -1}, "min_evidence = -1: must be from 0 to 2,147,483,647"),
    ],
)  # fmt: skip
def test_wrong_knobs(rule, knobs, message):
    for call in (
        lambda: rules.check(Knobs(**knobs), rule),
        lambda: rules.acts(rule, Knobs(**knobs), 1, 2),
        lambda: rules.most_successes(rule, Knobs(**knobs), 5),
    ):
        with pytest.raises(InputError) as error:
            call()
        assert str(error.value) == message


def test_wrong_tables():
    with pytest.raises(InputError, match=r"^max_evidence = -1: must be from 0 to 524,287$"):
        rules.most_successes("beta", Knobs(), -1)
    with pytest.raises(InputError, match=r"^theta = 2.0: must be from 0 to 1$"):
        rules.roots("beta", Knobs(), [0.5, 2.0], 5)
