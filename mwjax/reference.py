"""The same model as a plain NumPy loop: the oracle of the tests and the peer of the benchmark. No jax.

One life at a time, one episode after the other. It is written from the definitions, not from the simulation, and
consumes the same words: integers must agree exactly, floats to rounding.
"""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import numpy as np
from scipy import stats

from mwjax.config import Config, Params
from mwjax.types import InputError

TAG, UTILITY, EPISODE, SCORE = 0x6D776A78, 1, 2, 3
ROTATIONS = (13, 15, 26, 6, 17, 29, 16, 24)
MASK = np.uint64(0xFFFFFFFF)
ONE = 1 << 24
QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
BLOCK = 512
"""Episodes whose words are made at once."""


class Life(NamedTuple):
    """A life, episode by episode."""

    utility: np.ndarray  # int64 [memory], 24-bit
    p_plus: np.ndarray  # float64 [memory]
    retrieved: np.ndarray  # int64 [episode, retrieved]
    success: np.ndarray  # bool [episode]
    evidence: np.ndarray  # int64 [memory]
    successes: np.ndarray  # int64 [memory]
    worth: np.ndarray  # float64 [estimator, memory]
    metrics: dict[str, np.ndarray]  # [checkpoint, ...], shaped as Trace.metrics


def threefry2x32(key: tuple[int, int], counter: tuple[int, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Threefry-2x32 with 20 rounds (Salmon et al. 2011) in 64-bit arithmetic; counter[1] is an array."""
    schedule = [np.uint64(word) for word in (*key, key[0] ^ key[1] ^ 0x1BD11BDA)]
    y = np.asarray(counter[1], np.uint64)
    x = (np.full_like(y, counter[0]) + schedule[0]) & MASK
    y = (y + schedule[1]) & MASK
    for i in range(20):
        rotation = np.uint64(ROTATIONS[i % 8])
        x = (x + y) & MASK
        y = (((y << rotation) | (y >> (np.uint64(32) - rotation))) & MASK) ^ x
        if i % 4 == 3:
            j = i // 4 + 1
            x, y = (x + schedule[j % 3]) & MASK, (y + schedule[(j + 1) % 3] + np.uint64(j)) & MASK
    return x, y


def words(root_seed: int, seed: int, purpose: int, first_episode: int, episodes: int, width: int) -> np.ndarray:
    """All words of consecutive episodes, uint64 [episode, 2 x width]: first outputs, then second ones."""
    index = np.arange(first_episode * width, (first_episode + episodes) * width, dtype=np.uint64)
    pair = threefry2x32((root_seed, TAG ^ purpose), (seed, index))
    return np.concatenate([half.reshape(episodes, width) for half in pair], axis=1)


def simulate(config: Config, params: Params, root_seed: int, seed: int) -> Life:
    """The life of (root_seed, seed) under built-in components (uniform retrieval, mean outcome law)."""
    if (config.retrieval, config.outcome) != ("uniform", "mean"):
        raise InputError(f"the NumPy reference knows retrieval 'uniform' and outcome 'mean', not {config}")
    k, marks = config.num_retrieved, [int(mark) for mark in params.checkpoints]
    utility = utilities(config, params, root_seed, seed)
    observers = [Observer(str(name), config, params) for name in config.observers]
    failures, successes = np.zeros(config.num_memories, np.int64), np.zeros(config.num_memories, np.int64)
    retrieved, success = np.zeros((marks[-1], k), np.int64), np.zeros(marks[-1], bool)
    scored = any(observer.weight.startswith("score") for observer in observers)
    worth, measured = np.zeros(0), []
    draws, relevance = np.zeros(0, np.uint64), None
    p = p_plus(utility, k)
    for t in range(marks[-1]):
        if t % BLOCK == 0:
            draws = words(root_seed, seed, EPISODE, t, BLOCK, (k + 2) // 2)
            relevance = scores(config, params, root_seed, seed, t) if scored else None
        word = draws[t % BLOCK]
        shown = floyd(word[:k], config.num_memories)
        outcome = bool(int(word[k] >> np.uint64(8)) * k < int(utility[shown].sum()))
        (successes if outcome else failures)[shown] += 1
        for observer in observers:
            score = None if relevance is None else relevance[t % BLOCK, shown]
            observer.update(shown, outcome, utility[shown], score)
        retrieved[t], success[t] = shown, outcome
        if t + 1 in marks:
            worth = np.stack([observer.worth(successes, failures) for observer in observers])
            measured.append(measure(params, worth, successes + failures, utility, p, success[: t + 1].mean()))
    metrics = {name: np.stack([one[name] for one in measured]) for name in measured[0] if name in config.metrics}
    return Life(utility, p, retrieved, success, successes + failures, successes, worth, metrics)


def utilities(config: Config, params: Params, root_seed: int, seed: int) -> np.ndarray:
    """True utilities as 24-bit integers, int64 [memory]."""
    if config.utility == "list":
        return np.asarray(params.utilities, np.int64)
    word = words(root_seed, seed, UTILITY, 0, 1, (config.num_memories + 1) // 2)[0, : config.num_memories]
    low, high = (round(float(x) * ONE) for x in (params.utility_low, params.utility_high))
    return low + (word * np.uint64(high - low) >> np.uint64(32)).astype(np.int64)


def scores(config: Config, params: Params, root_seed: int, seed: int, first_episode: int) -> np.ndarray:
    """Relevance of every memory in a block of episodes, float64 [episode, memory]."""
    word = words(root_seed, seed, SCORE, first_episode, BLOCK, (config.num_memories + 1) // 2)
    low = float(params.score_low)
    return low + (1 - low) * (word >> np.uint64(8)).astype(np.float64) / ONE


def floyd(word: np.ndarray, num_memories: int) -> np.ndarray:
    """k different memories from k words (Floyd's subset draw), in the order drawn."""
    drawn: list[int] = []
    for i in range(len(word)):
        last = num_memories - len(word) + i
        index = int(word[i]) * (last + 1) >> 32
        drawn.append(last if index in drawn else index)
    return np.array(drawn)


def p_plus(utility: np.ndarray, k: int) -> np.ndarray:
    """U_m / k + (k - 1)/k x mean utility of the others."""
    u = utility / ONE
    return u / k + (k - 1) / k * (u.sum() - u) / max(len(u) - 1, 1)


class Observer:
    """The counter law, for one life: weights on the way in, a prior on the way out."""

    SETTINGS: ClassVar = {
        "memory_worth": "uniform",
        "beta": "uniform",
        "never_updated": "none",
        "memory_worth_score": "score",
        "memory_worth_score_normalised": "score_normalised",
        "memory_worth_oracle": "oracle",
        "memory_worth_oracle_raw": "oracle_raw",
    }

    def __init__(self, name: str, config: Config, params: Params) -> None:
        """Empty counters."""
        self.weight = self.SETTINGS[name]
        self.a, self.b = (float(params.prior_a), float(params.prior_b)) if name == "beta" else (0.0, 0.0)
        self.hits, self.misses = np.zeros(config.num_memories), np.zeros(config.num_memories)

    def update(self, shown: np.ndarray, success: bool, utility: np.ndarray, score: np.ndarray | None) -> None:
        """Add this episode's weights."""
        if self.weight in ("uniform", "none"):
            return
        weight = utility / ONE if score is None or not self.weight.startswith("score") else score
        if self.weight in ("score_normalised", "oracle"):
            weight = weight / weight.sum() if weight.sum() > 0 else np.full(len(shown), 1 / len(shown))
        (self.hits if success else self.misses)[shown] += weight

    def worth(self, successes: np.ndarray, failures: np.ndarray) -> np.ndarray:
        """(hits + a) / (hits + a + misses + b), 0.5 where empty."""
        hits, misses = (successes, failures) if self.weight == "uniform" else (self.hits, self.misses)
        hits, total = hits + self.a, hits + misses + self.a + self.b
        return np.divide(hits, total, out=np.full(len(hits), 0.5), where=total > 0)


def measure(
    params: Params, worth: np.ndarray, evidence: np.ndarray, utility: np.ndarray, p: np.ndarray, mean_success: float
) -> dict[str, np.ndarray]:
    """All metrics at one checkpoint."""
    position = [int(q * (len(utility) - 1)) for q in QUANTILES]
    return {
        "spearman": np.array([spearman(one, utility) for one in worth]),
        "rmse": np.sqrt(np.square(worth - p).mean(axis=1)),
        "label_count": label_count(params, worth, evidence, (p, utility / ONE)),
        "evidence_quantile": np.sort(evidence)[position],
        "mean_success": np.array(mean_success),
    }


def spearman(worth: np.ndarray, utility: np.ndarray) -> float:
    """Rank correlation with average ranks; 0 for a constant."""
    worth = worth.astype(np.float32)  # ties are ties of the float32 worth
    if np.ptp(worth) == 0 or np.ptp(utility) == 0:
        return 0.0
    return float(stats.spearmanr(worth, utility)[0])  # pyright: ignore[reportArgumentType]


def label_count(params: Params, worth: np.ndarray, evidence: np.ndarray, scales: tuple[np.ndarray, ...]) -> np.ndarray:
    """Confusion counts, [scale, true, label, estimator]: low, mixed, high (and uncertain) in that order."""
    low, high = np.float32(params.theta_low), np.float32(params.theta_high)
    classify = lambda x: np.where(np.float32(x) <= low, 0, np.where(np.float32(x) >= high, 2, 1))
    labels = np.where(evidence >= int(params.min_evidence), classify(worth), 3)
    counts = np.zeros((len(scales), 3, 4, len(worth)), np.int64)
    for i, scale in enumerate(scales):
        for estimator, label in enumerate(labels):
            np.add.at(counts[i, :, :, estimator], (classify(scale), label), 1)
    return counts
