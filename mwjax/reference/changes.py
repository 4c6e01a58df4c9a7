"""A world that changes, reports that are not outcomes, and the list of memories that may be retrieved; one life."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mwjax.config import Config, Params
from mwjax.reference.words import REPORT, Stream
from mwjax.reference.worlds import ONE, fixed_point

ACTIVE, SUPPRESSED, GONE = 0, 1, 2
PROGRESS = 256
"""Steps that a drift is made in."""
NEUTRAL = {"weakest_link": ONE, "noisy_or": 0, "any": 0}
"""Utility that changes nothing under an outcome law; one half under the others."""


class Report(NamedTuple):
    """What becomes known of an episode."""

    episode: int
    context: int
    shown: list[int]
    chance: int  # 2**24 Pr[success]
    success: bool  # as it is reported
    heard: bool  # is it reported at all?
    seen: list[bool]  # is it evidence for each of the shown memories?
    utility: np.ndarray  # int64 [shown], the true ones
    score: np.ndarray  # [shown], empty where nothing heeds it

    @property
    def told(self) -> list[int]:
        """The memories that this is evidence for."""
        return [memory for memory, seen in zip(self.shown, self.seen, strict=True) if seen]


def current(config: Config, params: Params, t: int, utility: np.ndarray, context: int = 0) -> np.ndarray:
    """Utilities in episode t, int64 [memory]."""
    if config.num_queries:
        return np.asarray(params.texts.own, np.int64).reshape(2, -1)[int(t >= int(params.switch_at))]
    utility = utility.copy()
    if config.drifts:
        since = min(max(t - int(params.switch_at) + 1, 0), int(params.drift_span))
        done, target = since * PROGRESS // int(params.drift_span), fixed_point(params.drift_utility)
        for memory in range(int(params.drifting)):
            distance = target - int(utility[memory])
            way = (abs(distance) >> 8) * done
            utility[memory] = target if done == PROGRESS else utility[memory] + (way if distance > 0 else -way)
    if config.num_contextual and context > 0:
        utility[-config.num_contextual :] = ONE - utility[-config.num_contextual :]
    return utility


def born(config: Config, params: Params, t: int) -> int:
    """Memories that have been born when episode t begins: one joins every birth_every episodes."""
    return min(int(params.num_initial) + t // int(params.birth_every), config.num_memories)


class Roster:
    """The active memories, then the suppressed, then those that are gone or not born yet."""

    def __init__(self, config: Config, params: Params) -> None:
        """Those that are there at first are active."""
        self.order, self.place = (list(range(config.num_memories)) for _ in range(2))
        self.active = self.live = int(params.num_initial)

    def status(self, memory: int) -> int:
        """ACTIVE, SUPPRESSED or GONE."""
        place = self.place[memory]
        return ACTIVE if place < self.active else SUPPRESSED if place < self.live else GONE

    def statuses(self) -> np.ndarray:
        """Of every memory, int64 [memory]."""
        return np.array([self.status(memory) for memory in range(len(self.order))])

    def swap(self, memory: int, place: int) -> None:
        """Exchange a memory with the one that stands at a place."""
        mine, other = self.place[memory], self.order[place]
        self.order[mine], self.order[place] = other, memory
        self.place[other], self.place[memory] = mine, place

    def move(self, memory: int, to: int) -> None:
        """One group further at a time: into the group's near end, and the border moves over it."""
        while (status := self.status(memory)) != to:
            down = status < to
            border = "active" if {status, status + (1 if down else -1)} == {ACTIVE, SUPPRESSED} else "live"
            size = getattr(self, border)
            self.swap(memory, size - 1 if down else size)
            setattr(self, border, size + (-1 if down else 1))


class Reports:
    """Noise on outcomes, and their delay."""

    def __init__(self, config: Config, params: Params, root_seed: int, seed: int) -> None:
        """Nothing is waiting yet."""
        self.config, self.params, self.waiting = config, params, list[Report]()
        self.pairs = 1 + (config.num_retrieved + 1) // 2
        self.words = Stream(root_seed, seed, REPORT, self.pairs)
        self.used = [True] * config.num_retrieved

    def effective(self, t: int, utility: np.ndarray) -> np.ndarray:
        """Utilities of the retrieved set as the outcome heeds them: a memory without a part counts as neutral."""
        if not self.config.noisy:
            return utility
        rest = np.delete(self.words.at(t), [0, self.pairs])[: len(utility)]
        self.used = [int(x) >> 8 >= fixed_point(self.params.unused_prob) for x in rest]
        return np.where(self.used, utility, NEUTRAL.get(str(self.config.outcome), ONE // 2))

    def report(self, true: Report) -> Report:
        """The outcome may be turned round, missing, or no evidence for some."""
        if not self.config.noisy:
            return true
        params, word = self.params, [int(x) >> 8 for x in self.words.at(true.episode)[[0, self.pairs]]]
        rate = np.float32(params.observe_prob[true.context])
        rate *= np.float32(params.observe_success if true.success else params.observe_failure)
        heard = word[1] < fixed_point(rate)
        parts = self.used if self.config.unused_as == "nothing" else [True] * len(self.used)
        flipped = word[0] < fixed_point(params.flip_prob)
        return true._replace(success=true.success != flipped, heard=heard, seen=[heard and part for part in parts])

    def due(self, report: Report) -> Report | None:
        """The report that arrives in this episode."""
        self.waiting.append(report)
        return self.waiting.pop(0) if len(self.waiting) > self.config.delay else None
