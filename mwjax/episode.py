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
from mwjax.estimators import Estimator, Tally
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

    tally: Tally
    observers: tuple[Pytree, ...]
    retrieval: Pytree
    expected: Array | None  # int32, a table of two counters a memory: expected hits, whole ones and 2**-24ths
    pairs: Array  # complex64 [pair, life], the coming episode's words: carried, so that no consumer recomputes them


class Life(NamedTuple):
    """What stays the same for the whole life."""

    params: Params
    root: Array  # uint32 [life or 1]
    seed: Array  # uint32 [life]
    utility: Array  # uint32, a table of one entry a memory


def num_pairs(config: Config, parts: Parts) -> int:
    """Counter values an episode takes: for retrieval, the outcome, and the context where there are several."""
    return (parts.retrieval.num_words + 1 + (config.num_contexts > 1) + 1) // 2


def advance(config: Config, parts: Parts, life: Life, t: Array, s: State) -> State:
    """One episode: context -> retrieve -> outcome -> count -> estimate -> tell retrieval what has changed."""
    params, words, split = life.params, streams.unpack(s.pairs), parts.retrieval.num_words
    step = _before(config, parts, life, t, s, words[split + 1])

    retrieved, retrieval = parts.retrieval.retrieve(params, s.retrieval, step, words[:split])
    step = step._replace(retrieved=retrieved, utility=lanes.take(life.utility, retrieved))
    if any(observer.uses_score for observer in parts.observers):
        step = step._replace(score=worlds.scores(config, params, life.root, life.seed, step, retrieved))

    step = step._replace(chance=parts.outcome.chance(params, step))
    step = step._replace(success=words[split] >> jnp.uint32(8) < step.chance)

    tally = estimators.tally(config, s.tally, step)
    observers = tuple(o.update(params, state, step) for o, state in zip(parts.observers, s.observers, strict=True))
    if parts.retrieval.observe is not None:
        step = step._replace(new_worth=_new_worth(config, parts, params, tally, observers, retrieved))
        retrieval = parts.retrieval.observe(params, retrieval, step)

    return State(
        tally=tally,
        observers=observers,
        retrieval=retrieval,
        expected=None if s.expected is None else compensate(s.expected, step, config.num_memories),
        pairs=streams.episode_pairs(life.root, life.seed, streams.EPISODE, t + 1, num_pairs(config, parts)),
    )


def _before(config: Config, parts: Parts, life: Life, t: Array, s: State, word: Array) -> Step:
    """What is known when retrieval acts."""
    params, policy, lives = life.params, parts.retrieval, life.seed.shape[0]
    several = config.num_contexts > 1
    step = Step(t, context=worlds.context(config, params, word) if several else jnp.zeros(lives, jnp.int32))
    if policy.uses_worth:
        actor, counted = parts.actor or 0, estimators.counts(config, s.tally)
        worth = parts.observers[actor].worth(params, s.observers[actor], counted)
        step = step._replace(counts=counted, worth=worth)
    every = jnp.broadcast_to(jnp.arange(config.num_memories, dtype=jnp.int32)[:, None], (config.num_memories, lives))
    if policy.uses_score:
        step = step._replace(score=worlds.scores(config, params, life.root, life.seed, step, every))
    if policy.uses_lot:
        lot = streams.memory_words(life.root, life.seed, streams.LOT, t, every, config.num_memories)
        step = step._replace(lot=lot)
    return step


def _new_worth(
    config: Config, parts: Parts, params: Params, tally: Tally, observers: tuple[Pytree, ...], index: Array
) -> Array:
    """The actor's worth of the memories in `index`, float32 [retrieved, life]."""
    actor, state = parts.observers[parts.actor or 0], observers[parts.actor or 0]
    if actor.at is not None:
        return actor.at(params, state, estimators.counts(config, tally, index), index)
    return jnp.take_along_axis(actor.worth(params, state, estimators.counts(config, tally)), index, axis=0)


def compensate(expected: Array, step: Step, num_memories: int) -> Array:
    """Add Pr[success] to the expected hits of the retrieved memories, exactly."""
    fraction = step.retrieved + jnp.int32(num_memories)
    chance = step.chance.astype(jnp.int32)
    carry = (lanes.take(expected, fraction) + chance) >> jnp.int32(24)
    return lanes.add(lanes.add(expected, step.retrieved, carry), fraction, chance - (carry << jnp.int32(24)))


def begin(config: Config, parts: Parts, life: Life) -> State:
    """The state before episode 0."""
    lives, tally = life.seed.shape[0], estimators.new_tally(config, life.seed.shape[0])
    observers, actor = tuple(observer.init(lives) for observer in parts.observers), parts.actor or 0
    worth = parts.observers[actor].worth(life.params, observers[actor], estimators.counts(config, tally))
    compensated = "compensator" in config.metrics
    return State(
        tally=tally,
        observers=observers,
        retrieval=parts.retrieval.init(life.params, worth),
        expected=jnp.zeros(lives * 2 * config.num_memories, jnp.int32) if compensated else None,
        pairs=streams.episode_pairs(life.root, life.seed, streams.EPISODE, jnp.int32(0), num_pairs(config, parts)),
    )


def p_plus(config: Config, parts: Parts, params: Params, utility: Array) -> Array:
    """Pr[success given that m is shown] under this retrieval, or beside uniform companions where worth decides.

    float32 [memory, life]; NaN where it has no closed form, 0.5 where a memory is never shown.
    """
    if parts.outcome.expected is None:
        return jnp.full(utility.shape, jnp.nan, jnp.float32)
    if parts.retrieval.companions is None:
        mean_utility = worlds.uniform_companions(config, utility)[None]
        if config.num_contexts == 1:
            return parts.outcome.expected(params, mean_utility)[0]
        mean_utility = jnp.broadcast_to(mean_utility, (config.num_contexts, *utility.shape))
        shown = jnp.ones_like(mean_utility)
    else:
        shown, mean_utility = parts.retrieval.companions(params, utility)
    weight = params.context_share[:, None] * shown
    chance = jnp.where(weight > 0, parts.outcome.expected(params, mean_utility), 0)
    total = lanes.total(jnp.moveaxis(weight, 0, -2))
    return estimators.ratio(lanes.total(jnp.moveaxis(weight * chance, 0, -2)), total)


def live(config: Config, parts: Parts, params: Params, root: Array, seed: Array) -> Trace:
    """Whole lives of root (uint32 [1] or [life]) and seed (uint32 [life]) to a Trace with the life axis last.

    Leaves of `params` end in a life axis of size 1 or lives, except `checkpoints`.
    """
    utility = worlds.utilities(config, params, root, seed)
    life = Life(params, root, seed, lanes.table(utility))
    truth = p_plus(config, parts, params, utility)
    known = metrics.truth(params, utility, truth)

    def worths(state: State) -> Array:
        counted = estimators.counts(config, state.tally)
        return jnp.stack([o.worth(params, s, counted) for o, s in zip(parts.observers, state.observers, strict=True)])

    def segment(state: State, bounds: tuple[Array, Array]) -> tuple[State, tuple[dict[str, Array], Array, Array]]:
        first, last = bounds
        state = lax.fori_loop(first, last, lambda t, s: advance(config, parts, life, t, s), state)
        worth, counted = worths(state), estimators.counts(config, state.tally)
        mean_success = state.tally.successes.sum(0, dtype=jnp.int32).astype(jnp.float32) / last.astype(jnp.float32)
        measured = metrics.measure(config, params, worth, counted, known, mean_success)
        broken = (~jnp.isfinite(worth)).sum((0, 1), dtype=jnp.int32)
        return state, (measured, broken, worth if config.keep_worth == "all" else jnp.zeros(0, jnp.float32))

    starts = jnp.concatenate([jnp.zeros(1, jnp.int32), params.checkpoints[:-1]])
    state, (measured, broken, kept) = lax.scan(segment, begin(config, parts, life), (starts, params.checkpoints))
    expected = None
    if state.expected is not None:
        whole, fraction = jnp.split(lanes.rows(state.expected, seed.shape[0]), 2)
        expected = whole.astype(jnp.float32) + fraction.astype(jnp.float32) * jnp.float32(2**-24)
    return Trace(
        checkpoint=jnp.broadcast_to(params.checkpoints[:, None], (*params.checkpoints.shape, seed.shape[0])),
        metrics=measured,
        utility=utility,
        p_plus=truth,
        counts=estimators.counts(config, state.tally),
        expected_hits=expected,
        worth=kept if config.keep_worth == "all" else worths(state),
        health=Health(non_finite_worth=broken.sum(0, dtype=jnp.int32)),
    )
