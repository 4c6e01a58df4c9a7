"""Texts -> what the simulation looks up, and what follows from it without simulating."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from mwjax.config import PHASES, TextTables
from mwjax.texts.corpus import Corpus, holds, vectors
from mwjax.types import UTILITY_ONE

READERS = ("top_ranked", "first", "any")
"""Outcome laws that read texts: the most similar of the set decides, the one ranked first, or any that helps."""


class Known(NamedTuple):
    """What memories and queries have to do with each other."""

    similarity: np.ndarray  # int64 [query, memory], 24-bit
    answers: np.ndarray  # bool [phase, query, memory], the text holds the answer
    frequency: np.ndarray  # float64 [phase, query], adds up to 1
    group: np.ndarray  # int64 [query]


def known(corpus: Corpus) -> Known:
    """Cosines of the vectors (0 where negative), whole-word matches, frequencies and task types."""
    table = vectors(corpus)
    memories, queries = (np.stack([table[text] for text in some]) for some in (corpus.memories, corpus.queries))
    similarity = np.rint(np.clip(queries @ memories.T, 0, 1) * UTILITY_ONE).astype(np.int64)
    answers, frequency, group = [], [], []
    for topic in corpus.topics:
        matches = [[holds(text, topic.answers[phase]) for text in corpus.memories] for phase in range(PHASES)]
        answers += [matches] * len(topic.queries)
        frequency += [[share / len(topic.queries) for share in topic.frequency]] * len(topic.queries)
        group += [corpus.groups.index(topic.group)] * len(topic.queries)
    shares = np.array(frequency).T
    return Known(
        similarity,
        np.array(answers, bool).swapaxes(0, 1),
        shares / shares.sum(1, keepdims=True),
        np.array(group, np.int64),
    )


def tables(known: Known, num_retrieved: int) -> TextTables:
    """What an episode of `num_retrieved` memories looks up."""
    limits = np.rint(np.cumsum(known.frequency, axis=1) * UTILITY_ONE).astype(np.uint32)
    limits[:, -1] = UTILITY_ONE
    return TextTables(
        limits=limits.reshape(-1),
        similarity=known.similarity.astype(np.uint32).reshape(-1),
        answers=(known.answers * UTILITY_ONE).astype(np.uint32).reshape(-1),
        own=np.rint(own_rate(known, num_retrieved) * UTILITY_ONE).astype(np.uint32).reshape(-1),
        group=known.group.astype(np.int32),
    )


def ranked(known: Known, num_retrieved: int) -> np.ndarray:
    """The most similar memories to every query, best first, of equal ones the earlier: int64 [query, retrieved]."""
    return np.argsort(-known.similarity, axis=1, kind="stable")[:, :num_retrieved]


def success(known: Known, num_retrieved: int, reader: str) -> np.ndarray:
    """Does a query succeed under retrieval by similarity alone? bool [phase, query]."""
    shown = ranked(known, num_retrieved)
    right = np.take_along_axis(known.answers, np.broadcast_to(shown, (PHASES, *shown.shape)), axis=2)
    return np.asarray(right.any(2) if reader == "any" else right[..., 0])


def own_rate(known: Known, num_retrieved: int) -> np.ndarray:
    """Its true utility: Pr[its own text holds the answer | it is retrieved, by similarity alone].

    float64 [phase, memory], 0.5 where it is never retrieved: then it has no worth of its own.
    """
    return _given_shown(known, num_retrieved, known.answers.astype(float))


def alone(known: Known) -> np.ndarray:
    """What a memory earns alone: the same where a set is one memory, the most similar; float64 [phase, memory]."""
    return own_rate(known, 1)


def p_plus(known: Known, num_retrieved: int, reader: str, *, floor: float = 0.0) -> np.ndarray:
    """Pr[success | the memory is retrieved], retrieval by similarity alone but for a share `floor` of uniform sets.

    float64 [phase, memory], 0.5 where it is never retrieved. In uniform sets companions are of all other memories.
    """
    good = success(known, num_retrieved, reader)[..., None] * np.ones(known.answers.shape)
    if not floor:
        return _given_shown(known, num_retrieved, good)
    shown = _shown(known, num_retrieved)
    share = num_retrieved / shown.shape[1]
    by_lot = np.einsum("pq,pqm->pm", known.frequency, _uniform_success(known, num_retrieved, reader))
    weight = (1 - floor) * np.einsum("pq,qm->pm", known.frequency, shown) + floor * share
    hits = (1 - floor) * np.einsum("pq,qm,pqm->pm", known.frequency, shown, good) + floor * share * by_lot
    return hits / weight


def _uniform_success(known: Known, k: int, reader: str) -> np.ndarray:
    """Pr[success | the memory is in a uniform set], [phase, query, memory]: exact, by counting sets."""
    memories = known.answers.shape[2]
    if reader == "first":
        rest = (known.answers.sum(2, keepdims=True) - known.answers) / max(memories - 1, 1)
        return known.answers / k + (k - 1) / k * rest
    every = special.comb(memories - 1, k - 1)
    if reader == "any":
        others = memories - known.answers.sum(2, keepdims=True) - ~known.answers
        return np.where(known.answers, 1.0, 1 - special.comb(others, k - 1) / every)
    order = np.argsort(-known.similarity, axis=1, kind="stable")
    place = np.argsort(order, axis=1, kind="stable")  # [query, memory]: 0 is the most similar
    mine = known.answers * (special.comb(memories - 1 - place, k - 1) / every)[None]
    top = known.answers * special.comb(memories - 2 - place, k - 2)[None] / every  # another one, m below it, leads
    above = place[:, None, :] < place[:, :, None]  # [query, memory, other]
    return mine + np.einsum("pqo,qmo->pqm", top, above)


def _shown(known: Known, num_retrieved: int) -> np.ndarray:
    """1 where a memory is among the most similar, float64 [query, memory]."""
    shown = np.zeros(known.similarity.shape)
    np.put_along_axis(shown, ranked(known, num_retrieved), 1.0, axis=1)
    return shown


def _given_shown(known: Known, num_retrieved: int, good: np.ndarray) -> np.ndarray:
    shown = _shown(known, num_retrieved)
    weight = np.einsum("pq,qm->pm", known.frequency, shown)
    hits = np.einsum("pq,qm,pqm->pm", known.frequency, shown, good)
    return np.divide(hits, weight, out=np.full(weight.shape, 0.5), where=weight > 0)
