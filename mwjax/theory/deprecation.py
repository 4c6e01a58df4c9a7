"""How soon a governance rule deprecates a memory: exact, by dynamic programming over (evidence n, successes s).

A memory succeeds with probability p, independently at every retrieval; the rule is looked at after every one, and a
deprecated memory stays so. `most` is the table of rules.most_successes: evidence -> most successes at which it acts.
The law of s is kept 12 standard deviations + 50 around its mean: by Bernstein's inequality what lies outside has
probability below 2e-31 at each look, hence below 1e-25 over 10^5 of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from mwjax.checks import check_number
from mwjax.types import InputError

WIDTH_SD, WIDTH = 12, 50


def deprecation(most: Sequence[int] | np.ndarray, p: float, looks: int) -> np.ndarray:
    """P(deprecated within n retrievals), float64 [looks + 1], of a memory with success probability p."""
    check_number("p", p, 0, 1)
    return delay_after_switch(most, p, p, 0, looks)


def delay_after_switch(
    most: Sequence[int] | np.ndarray, p_before: float, p_after: float, age: int, looks: int
) -> np.ndarray:
    """P(deprecated within n retrievals after the switch), float64 [looks + 1].

    A memory of `age` retrievals at p_before, s ~ Binomial(age, p_before), succeeds with p_after from then on. No
    decision is made before the first retrieval after the switch.
    """
    most = np.asarray(most)
    check_number("p_before", p_before, 0, 1)
    check_number("p_after", p_after, 0, 1)
    if not 0 <= age < len(most):
        raise InputError(f"age = {age}: must be from 0 to {len(most) - 1}, where the table ends")
    if not 0 <= looks < len(most) - age:
        raise InputError(f"looks = {looks}: must be from 0 to {len(most) - 1 - age}, where the table ends")
    evidence = np.arange(age, age + looks + 1)
    later = evidence - age
    mean = age * p_before + later * p_after
    width = WIDTH_SD * np.sqrt(age * p_before * (1 - p_before) + later * p_after * (1 - p_after)) + WIDTH
    low = np.maximum(np.floor(mean - width), 0).astype(np.int64)
    high = np.minimum(np.ceil(mean + width), evidence).astype(np.int64)
    law = np.zeros(age + looks + 1)
    law[low[0] : high[0] + 1] = _binomial(low[0], high[0], age, p_before)
    return _absorb(law, p_after, most[age : age + looks + 1], low, high)


def _binomial(low: int, high: int, trials: int, p: float) -> np.ndarray:
    """Binomial probabilities of low..high successes."""
    from scipy import stats

    return stats.binom.pmf(np.arange(low, high + 1), trials, p)


def _absorb(law: np.ndarray, p: float, most: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Mass absorbed by each look (the first entry is where the law starts); `law` lives on [first, last]."""
    gone = np.zeros(len(most))
    first, last = int(low[0]), int(high[0])
    for look in range(1, len(most)):
        bound, least, greatest = int(most[look]), int(low[look]), int(high[look])
        part = law[first : last + 2]
        succeeded = p * part[:-1]
        part *= 1 - p
        part[1:] += succeeded
        last += 1
        if bound >= first:
            gone[look] = law[first : bound + 1].sum()
            first = bound + 1
        first = max(first, least)
        if greatest < last:
            law[greatest + 1 : last + 1] = 0
            last = greatest
        if first > last:
            break
    return np.cumsum(gone)


def median_delay(deprecated: np.ndarray) -> int | None:
    """Retrievals after which at least half are deprecated, from one of the laws above; None if its looks end before."""
    reached = np.flatnonzero(np.asarray(deprecated) >= 0.5)
    return int(reached[0]) if len(reached) else None


def discounted_delay(discount: float, p1: float, p2: float, theta: float) -> float:
    """Retrievals until discounted worth, p1 before the switch and p2 after it, has fallen to theta, in expectation.

    ln((p1 - p2)/(theta - p2)) / (-ln discount), whatever the age. Infinite if p2 >= theta, 0 if p1 <= theta.
    """
    if p1 <= theta or p2 >= theta:
        return 0.0 if p1 <= theta else math.inf
    return math.log((p1 - p2) / (theta - p2)) / -math.log(discount)


def lifetime_delay(evidence: float, p1: float, p2: float, theta: float) -> float:
    """The same for lifetime counters that hold `evidence` n1 at the switch: n1 (p1 - theta)/(theta - p2), so age.

    Infinite if p2 >= theta, 0 if p1 <= theta.
    """
    if p1 <= theta or p2 >= theta:
        return 0.0 if p1 <= theta else math.inf
    return evidence * (p1 - theta) / (theta - p2)
