"""Worth of the memories of a log, by the estimators of the simulation.

A log is one life (axis `life` of size 1). An episode becomes one step for each outcome its memories had: one step,
unless they carry outcomes of their own. Slots that are empty or have no part in a step point at spare rows behind the
last memory, one a slot, which are dropped at the end.
"""

from __future__ import annotations

import functools
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from mwjax import estimators, registry
from mwjax.config import MAX_EPISODES, Config, Params, check_name
from mwjax.logs import Journal
from mwjax.types import Counts, InputError, Pytree, Step

BATCH_EPISODES = 4096


def uses_score(estimator: str) -> bool:
    """Check the name of an estimator; True if it weighs by relevance scores."""
    if ":" not in estimator:
        made = {name: factory(Config(max_evidence=1)) for name, factory in registry.ESTIMATORS.items()}
        allowed = [name for name, one in made.items() if not (one.uses_utility or one.uses_context)]
        check_name("estimator", estimator, allowed)
    return registry.resolve("observers", estimator)(Config(max_evidence=1)).uses_score


def of_counters(estimator: str, params: Params, shown: np.ndarray, evidence: np.ndarray, successes: np.ndarray):
    """Worth of counters [memory], float64 [memory]; None where the estimator needs the episodes themselves."""
    observer = registry.resolve("observers", estimator)(
        Config(num_memories=len(evidence), num_retrieved=1, max_evidence=1)
    )
    if jax.tree.leaves(jax.eval_shape(lambda: observer.init(1))):
        return None
    seen, n, s = (jnp.asarray(one[:, None], jnp.int32) for one in (shown, evidence, successes))
    none = jnp.zeros((1, 1), jnp.int32)
    worth = observer.worth(_one_life(params), (), Counts(seen, n, s, n[None], s[None], none, none))
    return np.asarray(worth[:, 0], np.float64)


def of_journal(config: Config, estimator: str, params: Params, journal: Journal) -> np.ndarray:
    """Worth after all episodes of a journal, float64 [memory]."""
    steps = np.count_nonzero(np.diff(journal.start))
    if uses_score(estimator) and steps > MAX_EPISODES:
        raise InputError(f"{steps:,} episodes: {estimator} counts at most {MAX_EPISODES:,} in float32")
    num_memories, num_slots = len(journal.memories), int(np.diff(journal.start).max(initial=1))
    config = replace(config, num_memories=num_memories + num_slots, num_retrieved=num_slots)
    observer, params = registry.resolve("observers", estimator)(config), _one_life(params)
    state = (estimators.new_tally(config, 1), observer.init(1))
    for first in range(0, len(journal.outcome), BATCH_EPISODES):
        steps, size = _steps(journal, first, num_slots, observer.uses_score)
        state = _advance(config, estimator, params, state, steps, size)
    worth = observer.worth(params, state[1], estimators.counts(config, state[0]))
    return np.asarray(worth, np.float64)[:num_memories, 0]


def _one_life(params: Params) -> Params:
    return jax.tree.map(lambda leaf: leaf[..., None], params)


def _steps(journal: Journal, first: int, num_slots: int, uses_score: bool) -> tuple[Step, Array]:
    """The steps of a batch whose first episode is `first`, stacked to one shape for all batches, and their number."""
    last = min(first + BATCH_EPISODES, len(journal.outcome))
    begin, end = journal.start[first], journal.start[last]
    filled = (
        np.arange(num_slots)
        < np.pad(np.diff(journal.start[first : last + 1]), (0, BATCH_EPISODES - last + first))[:, None]
    )

    def slots(values: np.ndarray, empty: float) -> np.ndarray:
        """[step, slot]: every episode twice, once for its successes and once for its failures."""
        padded = np.full(filled.shape, empty, values.dtype)
        padded[filled] = values[begin:end]
        return padded.repeat(2, axis=0)

    wanted = np.tile([True, False], BATCH_EPISODES)
    part = slots(journal.success, -1) == wanted[:, None]
    is_step = part.any(axis=1)
    steps_first = np.argsort(~is_step, kind="stable")
    spare = len(journal.memories) + np.arange(num_slots, dtype=np.int32)
    retrieved = np.where(part, slots(journal.memory, -1), spare)
    step = Step(
        episode=jnp.asarray(np.arange(first, first + BATCH_EPISODES, dtype=np.int32).repeat(2)[steps_first]),
        retrieved=jnp.asarray(retrieved[steps_first, :, None]),
        success=jnp.asarray(wanted[steps_first, None]),
    )
    if uses_score:
        assert journal.score is not None
        score = np.nan_to_num(slots(journal.score, 0)).astype(np.float32)
        step = step._replace(score=jnp.asarray(score[steps_first, :, None]))
    return step, jnp.int32(is_step.sum())


@functools.partial(jax.jit, static_argnames=("config", "estimator"))
def _advance(config: Config, estimator: str, params: Params, state: Pytree, steps: Step, size: Array) -> Pytree:
    """(tally, estimator state) after the first `size` steps."""
    observer = registry.resolve("observers", estimator)(config)

    def advance(row: Array, state: Pytree) -> Pytree:
        step = jax.tree.map(lambda values: values[row], steps)._replace(context=jnp.zeros(1, jnp.int32))
        return estimators.tally(config, state[0], step), observer.update(params, state[1], step)

    return lax.fori_loop(jnp.int32(0), size, advance, state)
