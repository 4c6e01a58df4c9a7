"""Governance rules: when the counters of a memory, s successes in n retrievals, say that it is bad; host side, float64.

A rule acts where its margin is positive. The margin falls in s, so that a rule is a table: evidence -> most successes
at which it acts. The table gives the same decision in jit, in NumPy and in ten lines of anybody's program. No rule acts
without evidence (n = 0).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mwjax.checks import check_integer, check_name, check_number

UNIT = 1 << 12
"""`bounds` are in units of 2^-12 successes."""
MOST_EVIDENCE = (1 << 19) - 1
"""Longest table: its bounds still fit int32."""
Z_95 = 1.959963984540054
SETTLED = 1e-7
"""Successes to which `roots` are solved; integers between them and the true root are then decided by the margin."""


class Knobs(NamedTuple):
    """What a rule may be told; each heeds some of it."""

    theta: float = 0.3  # a memory is bad if it succeeds less often
    delta: float = 0.05  # beta: acts at Pr(p < theta) > 1 - delta
    alpha: float = 0.05  # e_process, e_process_two_sided: acts at E >= 1 / alpha
    prior_a: float = 1.0  # beta: prior Beta(prior_a, prior_b)
    prior_b: float = 1.0
    min_evidence: int = 10  # threshold, wilson


class Rule(NamedTuple):
    """One decision rule."""

    margin: Callable[[Knobs, Any, Any, Any], np.ndarray]
    """(knobs, theta, successes, evidence > 0) -> float64, positive where the rule acts; real-valued counters too."""
    about: str
    least: Callable[[Knobs], int] = lambda knobs: 0
    """The evidence before which the rule does not act, whatever its margin."""


def check(knobs: Knobs, rule: str) -> None:
    """Raise InputError unless `rule` has that name and every knob is within its range."""
    check_name("rule", rule, tuple(RULES))
    check_number("theta", knobs.theta, 0, 1)
    for name in ("delta", "alpha"):
        check_number(name, getattr(knobs, name), 1e-6, 0.5)
    for name in ("prior_a", "prior_b"):
        check_number(name, getattr(knobs, name), 0.01, 1e6)
    check_integer("min_evidence", knobs.min_evidence, 0, 2**31 - 1)


def wilson(successes: Any, evidence: Any, z: float = Z_95) -> tuple[np.ndarray, np.ndarray]:
    """Wilson's score interval, (low, high); (0, 1) without evidence. Wilson (1927), JASA 22(158).

    (p + z^2/2n -+ z sqrt(p(1-p)/n + z^2/4n^2)) / (1 + z^2/n), p = s/n: the t at which |p - t| = z sqrt(t(1-t)/n).
    """
    s, n = np.broadcast_arrays(np.asarray(successes, np.float64), np.asarray(evidence, np.float64))
    n = np.where(n > 0, n, np.nan)
    p, half = s / n, z * z / (2 * n)
    spread = z * np.sqrt(p * (1 - p) / n + half / (2 * n))
    low, high = (p + half - spread) / (1 + 2 * half), (p + half + spread) / (1 + 2 * half)
    return np.where(s > 0, np.nan_to_num(low), 0.0), np.where(s < n, high, 1.0)


def _threshold(knobs: Knobs, theta: Any, s: Any, n: Any) -> np.ndarray:
    """Theta - s/n. The quotient is rounded once, so that 3 of 10 is not below a threshold of 0.3."""
    return np.asarray(theta - np.asarray(s, np.float64) / n)


def _beta(knobs: Knobs, theta: Any, s: Any, n: Any) -> np.ndarray:
    """I_theta(a + s, b + f) - (1 - delta), the regularised incomplete beta function, f = n - s."""
    from scipy import special

    s = np.asarray(s, np.float64)
    return special.betainc(knobs.prior_a + s, knobs.prior_b + (n - s), theta) - (1 - knobs.delta)


def _e_process(knobs: Knobs, theta: Any, s: Any, n: Any) -> np.ndarray:
    """Log E + log alpha, E = I_theta(1+s, 1+f) B(1+s, 1+f) / (theta theta^s (1-theta)^f): uniform mixture of q < theta.

    (q/theta)^y ((1-q)/(1-theta))^(1-y) has mean <= 1 wherever p >= theta, whatever chose the retrieval. Where the
    integral underflows, far above theta, E is bounded by (1-theta)/(1+s) / (1 - (n+2) theta/(s+2)) instead.
    """
    from scipy import special

    s = np.asarray(s, np.float64)
    f = n - s
    part = special.betainc(1 + s, 1 + f, theta)
    with np.errstate(divide="ignore", invalid="ignore"):
        log_e = np.log(part) + special.betaln(1 + s, 1 + f) - special.xlogy(1 + s, theta) - special.xlog1py(f, -theta)
        tail = np.log((1 - theta) / (1 + s) / (1 - (n + 2) * theta / (s + 2)))
    return np.where(part > 0, log_e, tail) + np.log(knobs.alpha)


def _e_process_two_sided(knobs: Knobs, theta: Any, s: Any, n: Any) -> np.ndarray:
    """Log E + log alpha, E = B(1+s, 1+f) / (theta^s (1-theta)^f), or theta n - s if that is less.

    E < 1/alpha bounds a confidence sequence; its upper end is below theta where theta is outside of it, above s/n.
    Robbins (1970), Ann. Math. Statist. 41(5); Howard et al. (2021), Ann. Statist. 49(2).
    """
    from scipy import special

    s = np.asarray(s, np.float64)
    log_e = special.betaln(1 + s, 1 + (n - s)) - special.xlogy(s, theta) - special.xlog1py(n - s, -theta)
    return np.minimum(log_e + np.log(knobs.alpha), theta * n - s)


RULES: dict[str, Rule] = {
    "threshold": Rule(
        _threshold,
        "s/n < theta (strict), with min_evidence",
        lambda knobs: knobs.min_evidence,
    ),
    "beta": Rule(_beta, "Pr(p < theta) > 1 - delta under the Beta(prior_a + s, prior_b + f) posterior"),
    "e_process": Rule(
        _e_process, "one-sided mixture E >= 1/alpha: errs with probability <= alpha however often it is looked at"
    ),
    "e_process_two_sided": Rule(
        _e_process_two_sided, "upper end of the Beta(1,1)-mixture confidence sequence < theta (alpha)"
    ),
    "wilson": Rule(
        lambda knobs, theta, s, n: theta - wilson(s, n)[0],
        "Wilson 95 % lower bound < theta, with min_evidence: as a shipped system does; acts on most memories",
        lambda knobs: knobs.min_evidence,
    ),
    "wilson_upper": Rule(
        lambda knobs, theta, s, n: theta - wilson(s, n)[1], "Wilson 95 % upper bound < theta: the cautious one"
    ),
}


def acts(rule: str, knobs: Knobs, successes: Any, evidence: Any) -> np.ndarray:
    """Whether the rule acts at s successes in n retrievals, bool; float64, so that rounding decides exact ties."""
    check(knobs, rule)
    s, n = np.broadcast_arrays(np.asarray(successes), np.asarray(evidence))
    enough = (n > 0) & (n >= RULES[rule].least(knobs))
    return enough & (RULES[rule].margin(knobs, knobs.theta, np.minimum(s, n), np.maximum(n, 1)) > 0)


def most_successes(rule: str, knobs: Knobs, max_evidence: int) -> np.ndarray:
    """Most successes at which the rule acts, by evidence: int64 [max_evidence + 1], -1 where it never does.

    It is what `acts` says: s successes in n retrievals are acted on if and only if s <= most_successes[n].
    """
    most = np.floor(roots(rule, knobs, [knobs.theta], max_evidence)[0]).astype(np.int64)
    most[: RULES[rule].least(knobs)] = -1
    return most


def roots(rule: str, knobs: Knobs, thetas: Sequence[float] | np.ndarray, max_evidence: int) -> np.ndarray:
    """The real-valued s at which the margin crosses 0, float64 [theta, max_evidence + 1]; n where it acts at every s.

    -1 where it never acts; least evidence is left out. floor(roots) is the most successes at integer counters. Linear
    interpolation between columns is off by less than .001 successes for fractional evidence (wilson below 10: .07),
    and next to a column of -1 it does not act.
    """
    check(knobs, rule)
    check_integer("max_evidence", max_evidence, 0, MOST_EVIDENCE)
    evidence = np.arange(1, max_evidence + 1, dtype=np.float64)
    found = np.full((len(thetas), max_evidence + 1), -1.0)
    for row, theta in zip(found, thetas, strict=True):
        check_number("theta", theta, 0, 1)
        margin = functools.partial(RULES[rule].margin, knobs, float(theta))
        row[1:] = _settle(margin, _solve(margin, evidence), evidence)
    return found


@functools.lru_cache(maxsize=32)
def bounds(rule: str, knobs: Knobs, thetas: tuple[float, ...], max_evidence: int) -> np.ndarray:
    """floor(UNIT roots), int32 [theta, max_evidence + 1]; bounds >> 12 is the most successes; -UNIT: never acts.

    Kept, and read-only.
    """
    found = np.floor(roots(rule, knobs, thetas, max_evidence) * UNIT).astype(np.int32)
    found.setflags(write=False)
    return found


Margin = Callable[[np.ndarray, np.ndarray], np.ndarray]


def _solve(margin: Margin, n: np.ndarray) -> np.ndarray:
    """Where the margin crosses 0 in [0, n], elementwise; -1 where it is negative throughout, n where positive.

    Chandrupatla (1997), Adv. Eng. Software 28(3): inverse quadratic interpolation where it is safe, else bisection.
    """
    at_zero, at_all = margin(np.zeros_like(n), n), margin(n, n)
    found = np.where(at_zero > 0, n, -1.0)
    open_ = np.flatnonzero((at_zero > 0) & (at_all <= 0))
    n, a, b = n[open_], n[open_], np.zeros(len(open_))
    fa, fb = at_all[open_], at_zero[open_]
    share = np.full(len(open_), 0.5)
    while len(open_):
        x = a + share * (b - a)
        fx = margin(x, n)
        same = np.sign(fx) == np.sign(fa)
        c, fc = np.where(same, a, b), np.where(same, fa, fb)
        b, fb = np.where(same, b, a), np.where(same, fb, fa)
        a, fa = x, fx
        done = (np.abs(b - a) < SETTLED) | (fa == 0)
        found[open_[done]] = a[done]
        left = ~done
        open_, n, a, b, c, fa, fb, fc = (one[left] for one in (open_, n, a, b, c, fa, fb, fc))
        share = _share(a, b, c, fa, fb, fc)
    return found


def _share(a: np.ndarray, b: np.ndarray, c: np.ndarray, fa: np.ndarray, fb: np.ndarray, fc: np.ndarray) -> np.ndarray:
    """How far from a to b the next try lies."""
    with np.errstate(divide="ignore", invalid="ignore"):
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        quadratic = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
    safe = (phi**2 < xi) & ((1 - phi) ** 2 < 1 - xi) & np.isfinite(quadratic)
    edge = np.minimum(SETTLED / 2 / np.abs(b - a), 0.5)
    return np.clip(np.where(safe, quadratic, 0.5), edge, 1 - edge)


def _settle(margin: Margin, root: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Roots on the side of the nearest integer that the margin at this integer demands."""
    near = np.rint(root)
    acts_there = margin(np.clip(near, 0, n), n) > 0
    moved = np.where(acts_there, np.maximum(root, near), np.minimum(root, np.nextafter(near, -1)))
    return np.where((root >= 0) & (np.abs(root - near) <= 10 * SETTLED), moved, root)
