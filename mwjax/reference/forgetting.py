"""Estimators that forget, of one life, in Python's integers: one observation is 2**16."""

from __future__ import annotations

import numpy as np

from mwjax.config import Config, Params
from mwjax.reference.changes import Report
from mwjax.reference.observers import Known, Tally, ratio32
from mwjax.reference.words import below

F = np.float32
BITS = 16


class Forgetful:
    """Two fixed-point counters a memory, (failures, successes), each 32 bits with 16 below one."""

    weight = "fixed"

    def __init__(self, config: Config, params: Params, *, prior: bool = False) -> None:
        """Nothing observed."""
        self.config, self.params, self.prior = config, params, prior
        self.counters = [[0, 0] for _ in range(config.num_memories)]

    def update(self, report: Report | None, t: int) -> None:
        """Learn from what is reported in episode t."""
        if report is not None:
            for memory in report.told:
                self.learn(memory, report.success, report.episode)

    def learn(self, memory: int, success: bool, episode: int) -> None:
        """All shrink by the discount at an observation, then it is added."""
        self.counters[memory] = [x - below(x, int(self.params.discount_loss)) for x in self.counters[memory]]
        self.counters[memory][success] += 1 << BITS

    def pair(self, memory: int) -> list[int]:
        """(failures, successes) as they read now."""
        return self.counters[memory]

    def worth(self, tally: Tally) -> np.ndarray:
        """float32 [memory]: the share of successes, with the prior if it is read with one."""
        pairs = np.array([self.pair(memory) for memory in range(self.config.num_memories)], F)
        failures, successes = pairs.T * F(2**-BITS)
        if not self.prior:
            return ratio32(successes, successes + failures)
        a, b = F(self.params.prior_a), F(self.params.prior_b)
        return ratio32(successes + a, successes + failures + (a + b))

    def known(self, tally: Tally, memory: int) -> Known:
        """What a rule decides by."""
        failures, successes = self.pair(memory)
        total = failures + successes
        return Known(successes >> (BITS - 12), total >> BITS, (total << 16) % 2**32)


class Aged(Forgetful):
    """Counters that shrink with every episode; with `lifetime`, only when they are read."""

    def __init__(self, config: Config, params: Params, *, lifetime: bool, prior: bool = False) -> None:
        """Time begins."""
        super().__init__(config, params, prior=prior)
        self.lifetime, self.last, self.now = lifetime, [0] * config.num_memories, 0

    def update(self, report: Report | None, t: int) -> None:
        """Time passes, whether there is an outcome or not; an outcome counts from the episode it belongs to."""
        super().update(report, t)
        self.now = max(t - self.config.delay + 1, 0)

    def aged(self, memory: int, now: int) -> list[int]:
        """Counters after the time since the memory's last outcome."""
        loss = int(self.params.aging[now - self.last[memory]])
        return [x - below(x, loss) for x in self.counters[memory]]

    def learn(self, memory: int, success: bool, episode: int) -> None:
        """Age, then count."""
        if not self.lifetime:
            self.counters[memory] = self.aged(memory, episode + 1)
        self.counters[memory][success] += 1 << BITS
        self.last[memory] = episode + 1

    def pair(self, memory: int) -> list[int]:
        """Aged to now."""
        return self.aged(memory, self.now)


class Windowed(Forgetful):
    """The last outcomes of each memory."""

    def __init__(self, config: Config, params: Params) -> None:
        """No outcomes."""
        super().__init__(config, params)
        self.outcomes = [list[bool]() for _ in range(config.num_memories)]

    def learn(self, memory: int, success: bool, episode: int) -> None:
        """The oldest goes."""
        self.outcomes[memory] = [*self.outcomes[memory], success][-self.config.window :]

    def pair(self, memory: int) -> list[int]:
        """Count those kept."""
        good = sum(self.outcomes[memory])
        return [len(self.outcomes[memory]) - good << BITS, good << BITS]


class Cusum(Forgetful):
    """Log-likelihood ratio of bad against good, cut off at 0; an alarm starts all afresh."""

    def __init__(self, config: Config, params: Params, *, flags: bool) -> None:
        """No evidence of anything."""
        super().__init__(config, params)
        self.flags, self.level, self.alarms = flags, [0] * config.num_memories, [0] * config.num_memories

    def learn(self, memory: int, success: bool, episode: int) -> None:
        """Step up at failures, down at successes."""
        steps = [int(x) for x in self.params.cusum]
        self.counters[memory][success] += 1 << BITS
        self.level[memory] = max(self.level[memory] + steps[success], 0)
        if self.level[memory] >= steps[2]:
            self.level[memory], self.counters[memory] = 0, [0, 0]
            self.alarms[memory] += 1

    def known(self, tally: Tally, memory: int) -> Known:
        """An alarm is certainty, where the rule reads alarms."""
        if self.flags:
            return Known(0 if self.alarms[memory] else 256 << 12, 256, 0)
        return super().known(tally, memory)


FORGETFUL = {
    "discounted": lambda config, params: Forgetful(config, params),
    "discounted_beta": lambda config, params: Forgetful(config, params, prior=True),
    "discounted_step": lambda config, params: Aged(config, params, lifetime=False),
    "last_outcome": lambda config, params: Aged(config, params, lifetime=True, prior=True),
    "windowed": Windowed,
    "cusum": lambda config, params: Cusum(config, params, flags=True),
    "cusum_reset": lambda config, params: Cusum(config, params, flags=False),
}
