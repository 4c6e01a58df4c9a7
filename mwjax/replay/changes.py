"""When the success of a memory changed: the Bernoulli generalised likelihood ratio over its outcomes in order.

With n outcomes, mean mu, and mu_1 of the first s, mu_2 of the others,

    G_n = max over s of s kl(mu_1, mu) + (n - s) kl(mu_2, mu),    a change where G_n >= ln(3 n^1.5 / delta),

kl(p, q) = p ln(p/q) + (1 - p) ln((1 - p)/(1 - q)) (Besson & Kaufmann, arXiv 1902.01575, section 3.2). That threshold
bounds the false alarms of a detector that looks after every outcome; here the whole log is looked at, and each side of
a change again (binary segmentation), so that a memory without a change is reported with probability below delta.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from mwjax.checks import check_number
from mwjax.logs.journal import Journal


class Changes(NamedTuple):
    """Change points, by memory and then in time; arrays [change]."""

    memory: np.ndarray  # int64, index
    episode: np.ndarray  # int64, index of the first episode after the change that shows it
    time: np.ndarray  # float64 of that episode, NaN where it is not known
    rate_before: np.ndarray  # float64, success since the change before this one
    rate_after: np.ndarray  # float64, success until the next change
    evidence_before: np.ndarray  # int64
    evidence_after: np.ndarray
    statistic: np.ndarray  # float64, the likelihood ratio in nats when it was found
    threshold: np.ndarray  # float64, what it had to reach


def changes(journal: Journal, *, delta: float = 0.05) -> Changes:
    """Change points of every memory. Each without a change is reported with probability below `delta`."""
    check_number("delta", delta, 1e-12, 1)
    seen = np.flatnonzero(journal.success >= 0)
    entry = seen[np.argsort(journal.memory[seen], kind="stable")]
    memory, hits = journal.memory[entry], np.concatenate([[0], np.cumsum(journal.success[entry], dtype=np.int64)])
    edge = np.flatnonzero(np.diff(memory, prepend=-1))
    begin, end = edge, np.append(edge, len(memory))[1:]
    found = [np.zeros((0, 3))]
    while len(begin):
        at, statistic = _best(hits, begin, end)
        limit = np.log(3 * (end - begin) ** 1.5 / delta)
        split = statistic >= limit
        begin, at, end = begin[split], at[split], end[split]
        found.append(np.stack([at, statistic[split], limit[split]], axis=1))
        begin, end = np.concatenate([begin, at]), np.concatenate([at, end])
    at, statistic, limit = np.concatenate(found)[np.argsort(np.concatenate(found)[:, 0])].T
    at = at.astype(np.int64)
    cut = np.union1d(np.append(edge, len(memory)), at)
    place = np.searchsorted(cut, at)
    before, here, after = cut[place - 1], cut[place], cut[np.minimum(place + 1, len(cut) - 1)]
    episode = journal.episode[entry[at]].astype(np.int64)
    time = np.full(len(at), np.nan) if journal.time is None else journal.time[episode]
    n_before, n_after = here - before, after - here
    rates = (hits[here] - hits[before]) / np.maximum(n_before, 1), (hits[after] - hits[here]) / np.maximum(n_after, 1)
    return Changes(memory[at].astype(np.int64), episode, time, *rates, n_before, n_after, statistic, limit)


def _best(hits: np.ndarray, begin: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each stretch begin:end of outcomes splits best, and its likelihood ratio; hits [1 + outcome] cumulated."""
    size = end - begin
    first = np.cumsum(size) - size
    stretch = np.repeat(np.arange(len(size)), size)
    s = np.arange(size.sum()) - first[stretch]  # outcomes before the split, 0 .. n - 1
    n, total = size[stretch], (hits[end] - hits[begin])[stretch]
    k = hits[begin[stretch] + s] - hits[begin[stretch]]
    value = _fit(k, s) + _fit(total - k, n - s) - _fit(total, n)
    most = np.maximum.reduceat(value, first)
    ties = np.flatnonzero(value == most[stretch])
    best = ties[np.searchsorted(ties, first)]
    return begin + s[best], most


def _fit(k: np.ndarray, n: np.ndarray) -> np.ndarray:
    """Log likelihood of k successes in n at the rate k/n."""
    return special.xlogy(k, k) + special.xlogy(n - k, n - k) - special.xlogy(n, n)
