"""Utilities, contexts, relevance and outcome laws of one life."""

from __future__ import annotations

import numpy as np

from mwjax.config import LEVELS, Config, Params
from mwjax.reference.words import UTILITY, below, words

ONE = 1 << 24


def fixed_point(value: float | np.floating) -> int:
    """A number in [0, 1] as a 24-bit integer."""
    return int(np.rint(np.float32(value) * np.float32(ONE)))


def utilities(config: Config, params: Params, root_seed: int, seed: int) -> np.ndarray:
    """True utilities as 24-bit integers, int64 [memory]."""
    n, pairs = config.num_memories, config.num_pairs
    if config.num_queries:
        return np.asarray(params.texts.own, np.int64)[:n]
    if config.utility == "list":
        return np.asarray(params.utilities, np.int64)
    word = [int(x) for x in words(root_seed, seed, UTILITY, 0, 1, (n + 1) // 2)[0, :n]]
    if config.utility == "beta":
        quantile = np.asarray(params.utilities, np.int64)
        level = [below(x, LEVELS) for x in word]
        found = [
            quantile[i] + below(x * LEVELS % 2**32, quantile[i + 1] - quantile[i])
            for i, x in zip(level, word, strict=True)
        ]
    else:
        sizes = config.pool_sizes or (n,)
        low, high = (
            np.repeat(np.broadcast_to(x, len(sizes)), sizes) for x in (params.utility_low, params.utility_high)
        )
        bounds = zip(map(fixed_point, low), map(fixed_point, high), strict=True)
        found = [least + below(x, most - least) for x, (least, most) in zip(word, bounds, strict=True)]
    found[: 2 * pairs] = [fixed_point(params.anchor_utility)] * pairs + [fixed_point(params.hitchhiker_utility)] * pairs
    return np.array(found, np.int64)


def context(config: Config, params: Params, word: int) -> int:
    """The task type."""
    limits = np.cumsum([fixed_point(x) for x in params.context_share])[: config.num_contexts - 1]
    return int(np.searchsorted(limits, int(word) >> 8, side="right"))


def relevance(params: Params, word: np.ndarray) -> np.ndarray:
    """Scores in [score_low, 1] from words."""
    low = fixed_point(params.score_low)
    return (low + (word * np.uint64(ONE - low) >> np.uint64(32)).astype(np.float64)) / ONE


def product(start: int, factors: np.ndarray) -> int:
    """Rounded down to 24 bits after every factor, in the order of the slots."""
    for factor in factors:
        start = start * int(factor) >> 24
    return start


def chance(config: Config, params: Params, utility: np.ndarray, context: int, score: np.ndarray | None = None) -> int:
    """2**24 Pr[success] of a set."""
    law, k = config.outcome, len(utility)
    if law == "mean":
        return -(-int(utility.sum()) // k)
    if law in ("first", "any"):
        return int(utility[0] if law == "first" else utility.max())
    if law == "top_ranked":
        assert score is not None
        return int(utility[np.argmax(score)])
    base = fixed_point(params.base_success[context])
    if law == "weakest_link":
        return product(base, utility)
    if law == "noisy_or":
        return ONE - product(ONE - base, ONE - utility)
    value = {"linear_best": int(utility.max()), "linear_worst": int(utility.min())}.get(
        str(law), int(utility.sum()) // k
    )
    if law == "logistic":
        table, level = np.asarray(params.link, np.int64)[:, context], value >> 12
        low, high = int(table[level]), int(table[min(level + 1, LEVELS)])
        return low + below((value & 4095) << 20, high - low)
    distance = abs(value - ONE // 2) << 4
    shift = below(int(np.rint(np.float32(params.gain) * np.float32(2**28))), distance)
    return min(base + shift, ONE) if 2 * value >= ONE else max(base - shift, 0)
