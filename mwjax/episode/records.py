"""What an episode works with: the components, the state that the next one needs, and how to read it."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from mwjax import estimators, lanes, worlds
from mwjax.config import Config, Params
from mwjax.estimators import Estimator, Evidence, Tally
from mwjax.governance import Docket, of_truth
from mwjax.retrieval import Retrieval
from mwjax.types import Counts, Pytree, Roster
from mwjax.worlds import Outcome

FORECAST_LEVELS = 256
"""Forecasts are counted at floor(256 x forecast)."""


class Parts(NamedTuple):
    """The components of a Config, made."""

    retrieval: Retrieval
    outcome: Outcome
    observers: tuple[Estimator, ...]
    actor: int | None  # index into observers


class State(NamedTuple):
    """What the next episode needs."""

    tally: Tally
    observers: tuple[Pytree, ...]
    retrieval: Pytree
    expected: Array | None  # int32, a table of two counters a memory: expected hits, whole ones and 2**-24ths
    pairs: Array  # complex64 [pair, life], the coming episode's words: carried, so that no consumer recomputes them
    roster: Roster | None = None
    docket: Docket | None = None
    waiting: Array | None = None  # int32, a table: reports that are not known yet
    good: Array | None = None  # int32 [life], successes, where the tally does not know them
    forecasts: Array | None = None  # int32, a table: outcomes by forecaster and level of the forecast made before


class Life(NamedTuple):
    """What stays the same for the whole life."""

    params: Params
    root: Array  # uint32 [life or 1]
    seed: Array  # uint32 [life]
    utility: Array  # uint32, a table of one entry a memory


def num_pairs(config: Config, parts: Parts) -> int:
    """Counter values an episode takes: for retrieval, the outcome, and the context where there are several."""
    return (parts.retrieval.num_words + 1 + (config.num_contexts > 1) + 1) // 2


def utility_of(config: Config, life: Life, t: Array, context: Array | None, memory: Array) -> Array:
    """True utilities of memories in episode t, uint32 [slot, life]: for its query, if texts and a context are given."""
    if config.num_queries and context is not None:
        asked = worlds.texts.query(config, life.params, life.root, life.seed, t)
        return worlds.texts.answers(config, life.params, t, asked, memory)
    return worlds.current(config, life.params, t, context, memory, lanes.take(life.utility, memory))


def new_worth(config: Config, parts: Parts, params: Params, s: State, index: Array) -> Array:
    """The actor's worth of the memories in `index`, float32 [retrieved, life]."""
    return worth_at(config, parts, params, s, index, parts.actor or 0)


def worth_at(config: Config, parts: Parts, params: Params, s: State, index: Array, observer: int) -> Array:
    """An observer's worth of the memories in `index`, float32 [retrieved, life]."""
    one, state = parts.observers[observer], s.observers[observer]
    if one.at is not None:
        return one.at(params, state, estimators.counts(config, s.tally, index), index)
    return jnp.take_along_axis(one.worth(params, state, estimators.counts(config, s.tally)), index, axis=0)


def evidence_of(
    config: Config, parts: Parts, life: Life, t: Array, s: State, counter: str, counts: Counts, index: Array | None
) -> Evidence:
    """What a rule that reads `counter` knows of the memories in `index` (None: all), of which `counts` are."""
    if counter == "lifetime":
        return estimators.of_counts(counts.successes, counts.evidence)
    if counter == "truth":
        lives = life.seed.shape[0]
        every = jnp.broadcast_to(
            jnp.arange(config.num_memories, dtype=jnp.int32)[:, None], (config.num_memories, lives)
        )
        memory = every if index is None else index
        return of_truth(utility_of(config, life, t, None, memory))
    observer = config.observers.index(counter)
    read = parts.observers[observer].evidence
    assert read is not None
    return read(life.params, s.observers[observer], counts, index)
