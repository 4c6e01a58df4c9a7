"""Worth estimators of one life."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mwjax.config import Config, Params
from mwjax.reference.changes import Report
from mwjax.reference.worlds import ONE


class Known(NamedTuple):
    """Counters for a rule: successes in units of 2**-12, evidence as a whole number and a fraction in 2**-32ths."""

    successes: int
    whole: int
    fraction: int = 0


class Tally:
    """The integer counters of a life: failures and successes of every memory, and of the episodes, by context."""

    def __init__(self, config: Config) -> None:
        """Empty counters."""
        self.memories = np.zeros((config.num_contexts, 2, config.num_memories), np.int64)
        self.episodes = np.zeros((config.num_contexts, 2), np.int64)
        self.shown = np.zeros(config.num_memories, np.int64)

    def add(self, report: Report | None) -> None:
        """Count an episode as far as it is reported."""
        if report is not None:
            self.memories[report.context, int(report.success), report.told] += 1
            self.episodes[report.context, int(report.success)] += report.heard

    @property
    def successes(self) -> np.ndarray:
        """Of each memory."""
        return self.memories[:, 1].sum(0)

    @property
    def evidence(self) -> np.ndarray:
        """Of each memory."""
        return self.memories.sum((0, 1))


class Setting(NamedTuple):
    """How an estimator counts and reads."""

    weight: str = "uniform"
    prior: bool = False
    read: str = "ratio"


SETTINGS = {
    "memory_worth": Setting(),
    "beta": Setting(prior=True),
    "never_updated": Setting("none"),
    "memory_worth_score": Setting("score"),
    "memory_worth_score_normalised": Setting("score_normalised"),
    "memory_worth_oracle": Setting("oracle"),
    "memory_worth_oracle_raw": Setting("oracle_raw"),
    "contextual": Setting(read="contextual"),
    "backdoor": Setting(read="backdoor"),
    "backdoor_half": Setting(read="backdoor_half"),
    "residual": Setting(read="residual"),
}


class Observer:
    """The counter law, for one life: weights on the way in, a way to read on the way out."""

    def __init__(self, name: str, config: Config, params: Params) -> None:
        """Empty counters."""
        self.config, self.setting = config, SETTINGS[name]
        self.weight = self.setting.weight
        self.a, self.b = (float(params.prior_a), float(params.prior_b)) if self.setting.prior else (0.0, 0.0)
        self.hits, self.misses = np.zeros(config.num_memories), np.zeros(config.num_memories)

    def update(self, report: Report | None, t: int) -> None:
        """Add an episode's weights, to the memories that it is evidence for."""
        if report is None or self.weight in ("uniform", "none"):
            return
        weight = report.score if self.weight.startswith("score") else report.utility / ONE
        if self.weight in ("score_normalised", "oracle"):
            weight = weight / weight.sum() if weight.sum() > 0 else np.full(len(weight), 1 / len(weight))
        (self.hits if report.success else self.misses)[report.told] += weight[report.seen]

    def worth(self, tally: Tally) -> np.ndarray:
        """float64 [memory], 0.5 where there is nothing to go by."""
        if self.setting.read != "ratio":
            return getattr(self, self.setting.read)(tally)
        hits, misses = (
            (tally.successes, tally.memories[:, 0].sum(0)) if self.weight == "uniform" else (self.hits, self.misses)
        )
        return ratio(hits + self.a, hits + misses + self.a + self.b)

    def known(self, tally: Tally, memory: int) -> Known:
        """The integer counters, which a rule decides by."""
        return Known(int(tally.successes[memory]) << 12, int(tally.evidence[memory]))

    def contextual(self, tally: Tally) -> np.ndarray:
        """Worth within the context asked for."""
        failures, successes = tally.memories[self.config.context_read]
        return ratio(successes, failures + successes)

    def backdoor(self, tally: Tally, fill: float | None = None) -> np.ndarray:
        """Worth by context, weighed by how frequent the context is."""
        found = np.zeros(self.config.num_memories)
        for (failures, successes), (bad, good) in zip(tally.memories, tally.episodes, strict=True):
            known = ratio(successes, failures + successes)
            absent = float(ratio(good, good + bad)) if fill is None else fill
            found += np.where(failures + successes > 0, known, absent) * (good + bad)
        return np.where(tally.evidence > 0, ratio(found, np.full(len(found), tally.episodes.sum())), 0.5)

    def backdoor_half(self, tally: Tally) -> np.ndarray:
        """The same with 0.5 where a memory was never shown."""
        return self.backdoor(tally, 0.5)

    def residual(self, tally: Tally) -> np.ndarray:
        """(1 + mean of y - base rate) / 2."""
        rate = ratio(tally.episodes[:, 1], tally.episodes.sum(1))
        surplus = tally.successes - rate @ tally.memories.sum(1)
        return ratio(tally.evidence + surplus, 2 * tally.evidence)


def ratio(success: np.ndarray, total: np.ndarray) -> np.ndarray:
    """success / total, 0.5 where total is 0."""
    success, total = np.asarray(success, float), np.asarray(total, float)
    return np.divide(success, total, out=np.full(total.shape, 0.5), where=total > 0)


def ratio32(success: np.ndarray, total: np.ndarray) -> np.ndarray:
    """The same in float32."""
    return np.divide(success, total, out=np.full(total.shape, 0.5, np.float32), where=total > 0)
