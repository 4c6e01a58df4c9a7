"""The one scan body: what happens in an episode, in the order it happens.

Written for many lives at once with the life axis last. An outer `lax.scan` over checkpoints holds an inner loop over
the episodes between two of them, so that checkpoints are data and one program serves every length.
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from mwjax import estimators, lanes, metrics, streams, worlds
from mwjax.config import Config, Params
from mwjax.estimators import Estimator
from mwjax.retrieval import Retrieval
from mwjax.types import Health, Pytree, Step, Trace
from mwjax.worlds import Outcome


class Parts(NamedTuple):
    """The components of a Config, made."""

    retrieval: Retrieval
    outcome: Outcome
    observers: tuple[Estimator, ...]
    actor: int | None  # index into observers


class State(NamedTuple):
    """What the next episode needs."""

    tally: Array  # int32, a table of two counters a memory
    observers: tuple[Pytree, ...]
    retrieval: Pytree
    successes: Array  # int32 [life]
    pairs: Array  # complex64 [pair, life], the coming episode's words: carried, so that no consumer recomputes them


def num_pairs(parts: Parts) -> int:
    """Counter values an episode takes."""
    return (parts.retrieval.num_words + parts.outcome.num_words + 1) // 2


def advance(
    config: Config, parts: Parts, params: Params, utility_table: Array, root: Array, seed: Array, t: Array, s: State
) -> State:
    """One episode: retrieve -> outcome -> count -> estimate."""
    words, split, lives = streams.unpack(s.pairs), parts.retrieval.num_words, seed.shape[0]
    step = Step(episode=t)
    if parts.retrieval.uses_worth:
        actor, counted = parts.actor or 0, estimators.counts(s.tally, lives)
        step = step._replace(worth=parts.observers[actor].worth(params, s.observers[actor], counted))

    retrieved, retrieval = parts.retrieval.retrieve(params, s.retrieval, step, words[:split])
    step = step._replace(retrieved=retrieved, utility=lanes.take(utility_table, retrieved))
    if any(observer.uses_score for observer in parts.observers):
        step = step._replace(score=worlds.scores(config, params, root, seed, step))

    success = parts.outcome.success(params, step, words[split : split + parts.outcome.num_words])
    step = step._replace(success=success)

    return State(
        tally=estimators.tally(s.tally, step, jnp.int32(1)),
        observers=tuple(o.update(params, state, step) for o, state in zip(parts.observers, s.observers, strict=True)),
        retrieval=retrieval,
        successes=s.successes + step.success.astype(jnp.int32),
        pairs=streams.episode_pairs(root, seed, streams.EPISODE, t + 1, num_pairs(parts)),
    )


def begin(config: Config, parts: Parts, root: Array, seed: Array) -> State:
    """The state before episode 0."""
    lives = seed.shape[0]
    return State(
        tally=estimators.new_tally(config.num_memories, lives),
        observers=tuple(observer.init(lives) for observer in parts.observers),
        retrieval=parts.retrieval.init(lives),
        successes=jnp.zeros(lives, jnp.int32),
        pairs=streams.episode_pairs(root, seed, streams.EPISODE, jnp.int32(0), num_pairs(parts)),
    )


def live(config: Config, parts: Parts, params: Params, root: Array, seed: Array) -> Trace:
    """Whole lives of root (uint32 [1] or [life]) and seed (uint32 [life]) to a Trace with the life axis last.

    Leaves of `params` end in a life axis of size 1 or lives, except `checkpoints`.
    """
    lives, utility = seed.shape[0], worlds.utilities(config, params, root, seed)
    table = lanes.table(utility)
    p_plus = parts.outcome.p_plus
    p_plus = p_plus(params, utility) if p_plus else jnp.full(utility.shape, jnp.nan, jnp.float32)
    known = metrics.truth(params, utility, p_plus)

    def worths(state: State) -> Array:
        counted = estimators.counts(state.tally, lives)
        return jnp.stack([o.worth(params, s, counted) for o, s in zip(parts.observers, state.observers, strict=True)])

    def segment(state: State, bounds: tuple[Array, Array]) -> tuple[State, tuple[dict[str, Array], Array, Array]]:
        first, last = bounds
        episode = lambda t, s: advance(config, parts, params, table, root, seed, t, s)
        state = lax.fori_loop(first, last, episode, state)
        worth, evidence = worths(state), estimators.counts(state.tally, lives).evidence
        mean_success = state.successes.astype(jnp.float32) / last.astype(jnp.float32)
        measured = metrics.measure(config.metrics, params, worth, evidence, known, mean_success)
        broken = (~jnp.isfinite(worth)).sum((0, 1), dtype=jnp.int32)
        return state, (measured, broken, worth if config.keep_worth == "all" else jnp.zeros(0, jnp.float32))

    starts = jnp.concatenate([jnp.zeros(1, jnp.int32), params.checkpoints[:-1]])
    state, (measured, broken, kept) = lax.scan(segment, begin(config, parts, root, seed), (starts, params.checkpoints))
    return Trace(
        checkpoint=jnp.broadcast_to(params.checkpoints[:, None], (*params.checkpoints.shape, seed.shape[0])),
        metrics=measured,
        utility=utility,
        p_plus=p_plus,
        counts=estimators.counts(state.tally, lives),
        worth=kept if config.keep_worth == "all" else worths(state),
        health=Health(non_finite_worth=broken.sum(0, dtype=jnp.int32)),
    )
