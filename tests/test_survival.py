"""Censored delays: Kaplan-Meier by hand."""

import numpy as np
import pytest

from mwjax.analysis import survival
from mwjax.types import InputError


def test_kaplan_meier_by_hand():
    """Six cases; at 3 one of 6, at 5 one of 5 (the case censored at 5 is still at risk), at 8 one of 2."""
    times, share = survival.survival([3, 5, 5, 6, 8, 9], [False, False, True, True, False, True])
    assert times.tolist() == [3, 5, 6, 8, 9]
    assert share == pytest.approx([5 / 6, 5 / 6 * 4 / 5, 2 / 3, 1 / 3, 1 / 3])
    assert survival.median_delay([3, 5, 5, 6, 8, 9], [False, False, True, True, False, True]) == 8
    assert survival.share_undetected([False, False, True, True, False, True]) == 0.5


def test_without_censoring_it_is_the_share_left():
    delays = np.array([4, 1, 1, 7, 2])
    times, share = survival.survival(delays, np.zeros(5, bool))
    assert times.tolist() == [1, 2, 4, 7]
    assert share == pytest.approx([(delays > t).mean() for t in times])
    assert survival.median_delay(delays, np.zeros(5, bool)) == 2
    assert survival.share_undetected(np.zeros(5, bool)) == 0


@pytest.mark.parametrize("cases", range(2, 60, 2))
def test_half_is_reached_despite_rounding(cases):
    """Of an even number of cases that are left after one was censored; 24 of them come to .5000000000000001."""
    delays = np.arange(cases + 1)
    assert survival.median_delay(delays, delays == 0) == cases // 2


def test_a_median_that_is_not_reached_is_nan():
    assert np.isnan(survival.median_delay([1, 2, 9, 9], [False, True, True, True]))
    times, share = survival.survival([4, 6], [True, True])
    assert (times.tolist(), share.tolist()) == ([4, 6], [1, 1])
    assert np.isnan(survival.median_delay([4, 6], [True, True]))
    assert survival.share_undetected([True, True]) == 1


def test_censoring_is_not_dropped():
    """Exponential delays followed to their mean: the curve stays true where leaving censored cases out would not."""
    rng = np.random.default_rng(0)
    delay, end = rng.exponential(1.0, 4_000), rng.uniform(0, 2, 4_000)
    found = survival.median_delay(np.minimum(delay, end), delay > end)
    # Greenwood: Var(S) / S^2 = int dt / (S(t) x Pr[followed to t]); S = 1/2 at ln 2, hazard 1.
    t = np.linspace(0, np.log(2), 1_001)
    error = np.sqrt(np.trapezoid(1 / (np.exp(-t) * (1 - t / 2)), t) / 4_000)
    assert abs(found - np.log(2)) < 5 * error
    assert abs(np.median(delay[delay <= end]) - np.log(2)) > 5 * error


def test_delays_are_checked():
    with pytest.raises(InputError, match=r"delays \(2,\) and censored \(1,\) are not both \[case\]"):
        survival.survival([1, 2], [True])
    with pytest.raises(InputError, match=r"not both \[case\] of one case or more"):
        survival.survival([], [])
    with pytest.raises(InputError, match=r"delays hold -1.0, not values in \[0, inf\)"):
        survival.median_delay([1, -1], [False, False])
    with pytest.raises(InputError, match="censored is empty"):
        survival.share_undetected([])
