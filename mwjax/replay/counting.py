"""Counters of a log by the estimators of the simulation.

A log is one life (axis `life` of size 1). An episode becomes one step for each outcome its memories had: one step,
unless they carry outcomes of their own. Slots that are empty or have no part in a step point at spare rows behind the
last memory, one a slot, which are dropped at the end.
"""

from __future__ import annotations

import functools
import pickle
from dataclasses import replace
from typing import IO

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from mwjax import estimators, registry
from mwjax.config import Config, Params, check_name
from mwjax.logs import BATCH_EPISODES, Batch, Log
from mwjax.types import Pytree, Step


def uses_score(estimator: str) -> bool:
    """Check the name of an estimator; True if it weighs by relevance scores."""
    if ":" not in estimator:
        made = {name: factory(Config(max_evidence=1)) for name, factory in registry.ESTIMATORS.items()}
        allowed = [name for name, one in made.items() if not (one.uses_utility or one.uses_context)]
        check_name("estimator", estimator, allowed)
    return registry.resolve("observers", estimator)(Config(max_evidence=1)).uses_score


def run(config: Config, estimator: str, params: Params, log: Log, spool: IO[bytes]) -> tuple[np.ndarray, np.ndarray]:
    """Counts, int32 [3, memory]: shown, evidence, successes; and worth, float32 [memory], after the spooled batches."""
    num_memories, num_slots = len(log.memories), log.num_slots
    config = replace(config, num_memories=num_memories + num_slots, num_retrieved=num_slots)
    observer = registry.resolve("observers", estimator)(config)
    params = jax.tree.map(lambda leaf: leaf[..., None], params)
    state = (estimators.new_tally(config, 1), observer.init(1))
    shown, start = np.zeros(config.num_memories, np.int64), 0
    for batch in iter(lambda: pickle.load(spool), None):
        shown += np.bincount(batch.memory[batch.memory >= 0], minlength=config.num_memories)
        steps, size = _steps(batch, start, num_memories, num_slots, observer.uses_score)
        state = _advance(config, estimator, params, state, steps, size)
        start += len(batch.memory)
    counts = estimators.counts(config, state[0])._replace(shown=jnp.asarray(shown[:, None], jnp.int32))
    worth = observer.worth(params, state[1], counts)
    return np.asarray(jnp.stack(counts[:3]))[:, :num_memories, 0], np.asarray(worth)[:num_memories, 0]


def _steps(batch: Batch, start: int, num_memories: int, num_slots: int, uses_score: bool) -> tuple[Step, Array]:
    """The steps of a batch whose first episode is `start`, stacked to one shape for all batches, and their number."""

    def grow(values: np.ndarray, empty: float) -> np.ndarray:
        missing = (BATCH_EPISODES - len(values), num_slots - values.shape[1])
        return np.pad(values, [(0, size) for size in missing], constant_values=empty).repeat(2, axis=0)

    success, wanted = grow(batch.success, -1), np.tile([True, False], BATCH_EPISODES)
    part = success == wanted[:, None]
    is_step = part.any(axis=1)
    steps_first = np.argsort(~is_step, kind="stable")
    retrieved = np.where(part, grow(batch.memory, -1), num_memories + np.arange(num_slots, dtype=np.int32))
    step = Step(
        episode=jnp.asarray(np.arange(start, start + BATCH_EPISODES, dtype=np.int32).repeat(2)[steps_first]),
        retrieved=jnp.asarray(retrieved[steps_first, :, None]),
        success=jnp.asarray(wanted[steps_first, None]),
    )
    if uses_score:
        score = np.nan_to_num(grow(batch.score, 0)).astype(np.float32)
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
