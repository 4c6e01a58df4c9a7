"""What happens in an episode, in the order it happens. Written for many lives at once, with the life axis last."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from mwjax import estimators, lanes, roster, streams, worlds
from mwjax.config import Config, Params
from mwjax.episode import ruling
from mwjax.episode.records import (
    FORECAST_LEVELS,
    Life,
    Parts,
    State,
    new_worth,
    num_pairs,
    utility_of,
    worth_at,
)
from mwjax.types import Step


def advance(config: Config, parts: Parts, life: Life, t: Array, s: State) -> State:
    """One episode: birth, context, retrieval, outcome, report, counters, estimators, decisions, news for retrieval."""
    params, words, split = life.params, streams.unpack(s.pairs), parts.retrieval.num_words
    if config.births:
        s = ruling.bear(config, parts, life, t, s)
    step = _before(config, parts, life, t, s, words[split + 1])

    retrieved, retrieval = parts.retrieval.retrieve(params, s.retrieval, step, words[:split])
    step = step._replace(retrieved=retrieved, utility=utility_of(config, life, t, step.context, retrieved))
    step = _add_score(config, parts, life, step)
    report = worlds.used(config, params, life.root, life.seed, t) if config.noisy else None
    true = step.utility
    if report is not None:
        step = step._replace(utility=jnp.where(report[1], true, jnp.uint32(parts.outcome.neutral)))
    step = step._replace(chance=parts.outcome.chance(params, step), utility=true)
    step = step._replace(success=words[split] >> jnp.uint32(8) < step.chance)
    good = None if s.good is None else s.good + step.success.astype(jnp.int32)
    if report is not None:
        step = _reported(config, params, *report, step)

    due, waiting = _due(config, parts, life, step, s.waiting)
    if s.forecasts is not None:
        s = s._replace(forecasts=_foretell(config, parts, params, s, due))
    told = estimators.tally(config, estimators.show(s.tally, retrieved), due)
    observers = tuple(o.update(params, state, due) for o, state in zip(parts.observers, s.observers, strict=True))
    s = s._replace(tally=told, observers=observers, retrieval=retrieval, waiting=waiting, good=good)
    if s.docket is not None:
        s = ruling.decide(config, parts, life, t, s, due)
    if parts.retrieval.observe is not None:
        s = _follow(config, parts, params, s, step)
        s = _follow(config, parts, params, s, due) if config.delay else s
    pairs = streams.episode_pairs(life.root, life.seed, streams.EPISODE, t + 1, num_pairs(config, parts))
    expected = None if s.expected is None else compensate(s.expected, due, config.num_memories)
    return s._replace(expected=expected, pairs=pairs)


def _add_score(config: Config, parts: Parts, life: Life, step: Step) -> Step:
    """Relevance of the retrieved set, where somebody asks for it."""
    if parts.outcome.uses_score or any(observer.uses_score for observer in parts.observers):
        scores = worlds.scores(config, life.params, life.root, life.seed, step, step.retrieved)
        return step._replace(score=scores)
    return step


def _reported(config: Config, params: Params, words: Array, part: Array, step: Step) -> Step:
    """The outcome as it is reported, and which of the retrieved memories it is evidence for."""
    success, heard = worlds.report(params, words, step)
    seen = jnp.broadcast_to(heard, step.retrieved.shape)
    if config.unused_as == "nothing":
        seen &= part
    return step._replace(success=success, heard=heard, seen=seen)


def _due(config: Config, parts: Parts, life: Life, step: Step, waiting: Array | None) -> tuple[Step, Array | None]:
    """The episode whose report arrives now: this one, or that of `delay` episodes ago."""
    if waiting is None:
        return step, None
    before, k = step.episode - jnp.int32(config.delay), config.num_retrieved
    heard = jnp.ones_like(step.success) if step.heard is None else step.heard
    seen = jnp.ones(step.retrieved.shape, jnp.bool_) if step.seen is None else step.seen
    flags = step.success.astype(jnp.int32) | heard.astype(jnp.int32) << 1 | step.context << jnp.int32(2)
    chance = step.chance.astype(jnp.int32)
    row = jnp.concatenate([step.retrieved * 2 + seen.astype(jnp.int32), jnp.stack([flags, chance])])
    row, waiting = worlds.exchange(config, waiting, step.episode, row)
    told = jnp.broadcast_to(before >= 0, step.success.shape)
    index = jnp.where(told, row[:k] >> jnp.int32(1), jnp.arange(k, dtype=jnp.int32)[:, None])
    due = step._replace(
        episode=before,
        retrieved=index,
        success=(row[k] & 1) > 0,
        heard=told & ((row[k] & 2) > 0),
        seen=told & ((row[:k] & 1) > 0),
        context=row[k] >> jnp.int32(2),
        chance=row[k + 1].astype(jnp.uint32),
    )
    due = due._replace(utility=utility_of(config, life, before, due.context, index))
    return _add_score(config, parts, life, due), waiting


def _foretell(config: Config, parts: Parts, params: Params, s: State, due: Step) -> Array:
    """Count this outcome at the level of what every observer, and the base rate, foretold of it."""
    assert s.forecasts is not None
    rate = estimators.ratio(
        *(x.sum(0, dtype=jnp.int32).astype(jnp.float32) for x in (s.tally.successes, s.tally.episodes))
    )
    told = [worth_at(config, parts, params, s, due.retrieved, observer) for observer in range(len(parts.observers))]
    told.append(jnp.broadcast_to(rate, due.retrieved.shape))
    found, amount = s.forecasts, jnp.int32(1) if due.seen is None else due.seen.astype(jnp.int32)
    for forecaster, worth in enumerate(told):
        level = jnp.clip((worth * jnp.float32(FORECAST_LEVELS)).astype(jnp.int32), 0, FORECAST_LEVELS - 1)
        index = (level + jnp.int32(forecaster * FORECAST_LEVELS)) * jnp.int32(2) + due.success.astype(jnp.int32)
        found = lanes.add(found, index, amount)
    return found


def _follow(config: Config, parts: Parts, params: Params, s: State, step: Step) -> State:
    """Tell retrieval what the memories that were shown are worth now, and which of them it may draw again."""
    assert parts.retrieval.observe is not None
    active = None
    if s.roster is not None:
        active = roster.status(s.roster, step.retrieved) == roster.ACTIVE
    worth = new_worth(config, parts, params, s, step.retrieved)
    step = step._replace(new_worth=worth, active=active, roster=s.roster)
    return s._replace(retrieval=parts.retrieval.observe(params, s.retrieval, step))


def _before(config: Config, parts: Parts, life: Life, t: Array, s: State, word: Array) -> Step:
    """What is known when retrieval acts."""
    params, policy, lives = life.params, parts.retrieval, life.seed.shape[0]
    several = config.num_contexts > 1
    step = Step(t, roster=s.roster, context=jnp.zeros(lives, jnp.int32))
    if several and config.num_queries:
        asked = worlds.texts.query(config, params, life.root, life.seed, t)
        step = step._replace(context=worlds.texts.group(params, asked))
    elif several:
        step = step._replace(context=worlds.context(config, params, word))
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


def compensate(expected: Array, step: Step, num_memories: int) -> Array:
    """Add Pr[success] to the expected hits of the memories that this is evidence for, exactly."""
    fraction = step.retrieved + jnp.int32(num_memories)
    chance = step.chance.astype(jnp.int32)
    chance = chance if step.seen is None else jnp.where(step.seen, chance, 0)
    carry = (lanes.take(expected, fraction) + chance) >> jnp.int32(24)
    return lanes.add(lanes.add(expected, step.retrieved, carry), fraction, chance - (carry << jnp.int32(24)))
