"""A world of texts, of one life."""

from __future__ import annotations

import numpy as np

from mwjax.config import Config, Params
from mwjax.reference.words import QUERY, Stream

ONE = 1 << 24


class Texts:
    """Which query is asked when, and what memories have to do with it."""

    def __init__(self, config: Config, params: Params, root_seed: int, seed: int) -> None:
        """One pair of words an episode."""
        self.switch, self.words = int(params.switch_at), Stream(root_seed, seed, QUERY, 1)
        shape = config.num_queries, config.num_memories
        self.limits = np.asarray(params.texts.limits, np.int64).reshape(2, -1)
        self.similarity = np.asarray(params.texts.similarity, np.int64).reshape(shape)
        self.answers = np.asarray(params.texts.answers, np.int64).reshape(2, *shape)
        self.group = np.asarray(params.texts.group, np.int64)

    def phase(self, t: int) -> int:
        """0 before the switch."""
        return int(t >= self.switch)

    def query(self, t: int) -> int:
        """The query of an episode; episodes come one after the other."""
        level = int(self.words.at(t)[0]) >> 8
        return min(int(np.searchsorted(self.limits[self.phase(t)], level, side="right")), len(self.group) - 1)

    def relevance(self, query: int) -> np.ndarray:
        """Similarity of every memory, [memory]."""
        return self.similarity[query] / ONE
