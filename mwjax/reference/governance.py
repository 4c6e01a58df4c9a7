"""Decisions against memories in one life: what rules know, when they act, and what is done about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from mwjax.config import Config, Params
from mwjax.reference.changes import ACTIVE, GONE, SUPPRESSED, Report, Roster, born
from mwjax.reference.observers import Known, Tally, ratio32
from mwjax.reference.words import below

F = np.float32
UNIT = 1 << 12
LEVELS, MOST_STRENGTH, LEAST_PRIOR, TRUTH = 64, 1_000, F(0.5), 256
Place = tuple[int, int]
"""Of a threshold: the multiple of 1/64 below it, and the share of the way to the next in 2**-32ths."""


class Reader(Protocol):
    """An observer that rules may read."""

    def known(self, tally: Tally, memory: int) -> Known:
        """What a rule decides by."""
        ...


class Governor:
    """The acting rule and those that watch."""

    def __init__(
        self, config: Config, params: Params, tally: Tally, observers: dict[str, Reader], roster: Roster
    ) -> None:
        """Nothing is decided yet."""
        self.config, self.params, self.rules = config, params, params.rules
        self.tally, self.observers, self.roster = tally, observers, roster
        self.first_watching = int(config.governance != "none")
        shape = self.first_watching + len(config.watched), 4 if config.drifts else 2, config.num_memories
        self.decisions, self.held_back = np.full(shape, -1), 0
        self.prior = F(1), F(1)

    def decide(self, t: int, report: Report | None, utility: np.ndarray) -> list[int]:
        """All decisions after episode t; the memories whose status has changed. `utility` is the truth, [memory]."""
        told = report.told if report else []
        for rule, counter in enumerate(self.config.watched):
            for memory in told:
                (known,) = self.counters(counter, memory, utility, pooled=True)
                enough = self.tally.evidence[memory] >= self.rules.watch_least[rule]
                if enough and known.successes <= bound(self.rules.watch[:, rule][None], known):
                    self.record(self.first_watching + rule, memory, t)
        if self.config.governance == "none":
            return []
        if self.config.scans:
            if (t + 1) % int(self.rules.decide_every):
                return []
            told = range(self.config.num_memories)
        return self.act(t, told, utility)

    def act(self, t: int, memories: Sequence[int], utility: np.ndarray) -> list[int]:
        """Look at all of them, then change what is to change, one after another."""
        if self.config.refits:
            self.prior = fit(self.tally.successes, self.tally.evidence)
        theta, pending = self.threshold(t, utility), []
        for memory in memories:
            to = self.verdict(memory, utility, theta)
            if to is not None:
                pending.append((memory, to))
        changed = []
        for memory, to in pending:
            if self.roster.status(memory) == ACTIVE and self.roster.active <= self.config.num_retrieved:
                self.held_back += 1
                continue
            self.roster.move(memory, to)
            if to != ACTIVE:
                self.record(0, memory, t)
            changed.append(memory)
        return changed

    def record(self, rule: int, memory: int, t: int) -> None:
        """Keep the first decision of a life, and the first since the drift began."""
        row = self.decisions[rule, :, memory]
        for first in (0, 2)[: len(row) // 2]:
            if row[first] < 0 and (first == 0 or t >= int(self.params.switch_at)):
                row[first : first + 2] = t, self.tally.shown[memory]

    def counters(self, counter: str, memory: int, utility: np.ndarray, *, pooled: bool = False) -> list[Known]:
        """What a rule that reads `counter` knows of a memory: once, or context by context."""
        if counter == "truth":
            return [Known(int(utility[memory]) * TRUTH * UNIT >> 24, TRUTH)]
        if counter != "lifetime":
            return [self.observers[counter].known(self.tally, memory)]
        pairs = self.tally.memories[:, :, memory]
        pairs = pairs.sum(0, keepdims=True) if pooled or self.config.scope == "pooled" else pairs
        return [Known(int(good) * UNIT, int(bad + good)) for bad, good in pairs]

    def verdict(self, memory: int, utility: np.ndarray, theta: np.floating | None) -> int | None:
        """The status that the memory is to take, if it is to change.

        Over contexts: all that have seen the memory must agree, and one of them have evidence enough.
        """
        acts, enough, restored = True, False, False
        at = None if theta is None else place(theta)
        later = None if theta is None else place(theta + F(self.rules.hysteresis))
        for known in self.counters(self.config.counter, memory, utility):
            plain = known.whole if self.config.scope == "every_context" else int(self.tally.evidence[memory])
            if plain == 0 and self.config.counter != "truth":
                restored |= self.config.scope == "pooled"
                continue
            known = with_prior(known, *self.prior)
            here = self.config.counter == "truth" or plain >= int(self.rules.least)
            acts &= here and known.successes <= bound(self.rules.acts, known, at)
            enough |= here
            restored |= self.config.restores and known.successes > bound(self.rules.keeps, known, later)
        status, down = self.roster.status(memory), GONE if self.config.governance == "deprecate" else SUPPRESSED
        if acts and enough:
            return down if status < down else None
        return ACTIVE if restored and self.config.restores and status == SUPPRESSED else None

    def threshold(self, t: int, utility: np.ndarray) -> np.floating | None:
        """Where it moves: theta x the base rate so far, or the theta-quantile of worth over all memories born."""
        theta = F(self.rules.theta)
        if self.config.theta_mode == "relative":
            bad, good = self.tally.episodes.sum(0).astype(F)
            return theta * (good / (bad + good) if bad + good else F(0.5))
        if self.config.theta_mode == "quantile":
            memories = born(self.config, self.params, t)
            known = [self.counters(self.config.counter, m, utility, pooled=True)[0] for m in range(memories)]
            whole = np.array([F(one.whole) + F(one.fraction) * F(2**-32) for one in known])
            worth = np.sort(ratio32(np.array([one.successes for one in known], F) * F(1 / UNIT), whole))
            return worth[min(int(theta * F(memories)), memories - 1)]
        return None


def place(theta: np.floating) -> Place:
    """Where a threshold lies between the multiples of 1 / LEVELS that there are tables for."""
    scaled = min(F(1), theta) * F(LEVELS)
    level = min(int(scaled), LEVELS - 1)
    return level, min(int((scaled - F(level)) * F(1 << 24)), (1 << 24) - 1) << 8


def mix(low: int, high: int, share: int) -> int:
    """Between two bounds."""
    return low + below(share, max(high - low, 0))


def bound(table: np.ndarray, known: Known, at: Place | None = None) -> int:
    """Most successes at which a rule acts, int32 [theta, evidence + 1] by the place of theta and the evidence.

    Between thetas it is rounded, so one unit less: worth that equals theta is not below it.
    """

    def row(level: int) -> int:
        low, high = (int(table[level, min(known.whole + i, table.shape[1] - 1)]) for i in (0, 1))
        return mix(low, high, known.fraction)

    return row(0) if at is None else mix(row(at[0]), row(at[0] + 1), at[1]) - 1


def with_prior(known: Known, a: np.floating, b: np.floating) -> Known:
    """Counters as the rule with the prior (1, 1) must see them under (a, b)."""
    more_a, more_b = (int(np.rint((x - F(1)) * F(UNIT))) for x in (a, b))
    if not (more_a or more_b):
        return known
    total = max(known.whole * UNIT + (known.fraction >> 20) + more_a + more_b, 0)
    return Known(known.successes + more_a, total // UNIT, total % UNIT << 20)


def ordered_sum(values: np.ndarray) -> np.floating:
    """Sum in float32, first to last."""
    return np.cumsum(values, dtype=F)[-1]


def fit(successes: np.ndarray, evidence: np.ndarray) -> tuple[np.floating, np.floating]:
    """Beta prior by moments over the memories with evidence, float32; see mwjax.priors.moments for the formula."""
    s, n, one = successes.astype(F), evidence.astype(F), F(1)
    total = max(ordered_sum(n), one)
    p = ordered_sum(s) / total if evidence.any() else F(0.5)
    noise = p * (one - p)
    squares = np.where(n > 0, n * np.square(ratio32(s, n) - p), F(0))
    excess = ordered_sum(squares) - noise * (F((evidence > 0).sum()) - one)
    spread = noise * ordered_sum(np.maximum(n - one, F(0)) * (one - n / total))
    capped = spread <= 0 or excess * F(MOST_STRENGTH + 1) <= spread
    strength = F(MOST_STRENGTH) if capped else max(spread / excess - one, 2 * LEAST_PRIOR)
    a = min(max(p * strength, LEAST_PRIOR), strength - LEAST_PRIOR)
    return a, strength - a
