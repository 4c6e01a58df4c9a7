"""Whole lives: an outer `lax.scan` over checkpoints holds an inner loop over the episodes between two of them.

Checkpoints are therefore data, and one program serves every length.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from mwjax import estimators, governance, lanes, metrics, roster, streams, worlds
from mwjax.config import Config, Params
from mwjax.episode.advance import advance
from mwjax.episode.records import FORECAST_LEVELS, Life, Parts, State, num_pairs
from mwjax.types import Health, Trace


def begin(config: Config, parts: Parts, life: Life) -> State:
    """The state before episode 0."""
    lives, tally = life.seed.shape[0], estimators.new_tally(config, life.seed.shape[0])
    observers, actor = tuple(observer.init(lives) for observer in parts.observers), parts.actor or 0
    worth = parts.observers[actor].worth(life.params, observers[actor], estimators.counts(config, tally))
    compensated = "compensator" in config.metrics
    if config.births:
        unborn = jnp.arange(config.num_memories, dtype=jnp.int32)[:, None] >= life.params.num_initial
        worth = jnp.where(unborn, jnp.float32(-1), worth)
    return State(
        tally=tally,
        observers=observers,
        retrieval=parts.retrieval.init(life.params, worth),
        expected=jnp.zeros(lives * 2 * config.num_memories, jnp.int32) if compensated else None,
        pairs=streams.episode_pairs(life.root, life.seed, streams.EPISODE, jnp.int32(0), num_pairs(config, parts)),
        roster=roster.new(config.num_memories, life.params.num_initial, lives) if config.changes else None,
        docket=governance.new(config, lives),
        waiting=worlds.ring(config, lives) if config.delay else None,
        good=jnp.zeros(lives, jnp.int32) if config.lossy else None,
        forecasts=forecasts(config, lives) if "calibration" in config.metrics else None,
    )


def forecasts(config: Config, lives: int) -> Array:
    """Empty histograms of what every observer, and the base rate, foretold."""
    return jnp.zeros(lives * (len(config.observers) + 1) * FORECAST_LEVELS * 2, jnp.int32)


def p_plus(config: Config, parts: Parts, params: Params, utility: Array, live: Array | None) -> Array:
    """Pr[success given that m is shown] under this retrieval, or beside uniform companions where worth decides.

    Companions are of those `live`, bool [memory, life], None for all. float32 [memory, life]; NaN where it has no
    closed form, 0.5 where a memory is never shown.
    """
    if parts.outcome.expected is None or config.num_queries:
        return jnp.full(utility.shape, jnp.nan, jnp.float32)
    if parts.retrieval.companions is None:
        if config.num_contexts == 1:
            return parts.outcome.expected(params, worlds.uniform_companions(config, utility, live)[None])[0]
        every = jnp.arange(config.num_memories, dtype=jnp.int32)[:, None]
        turned = [worlds.turn(config, jnp.int32(c), every, utility) for c in range(config.num_contexts)]
        mean_utility = jnp.stack([worlds.uniform_companions(config, one, live) for one in turned])
        shown = jnp.ones_like(mean_utility)
    else:
        shown, mean_utility = parts.retrieval.companions(params, utility)
    weight = params.context_share[:, None] * shown
    chance = jnp.where(weight > 0, parts.outcome.expected(params, mean_utility), 0)
    total = lanes.total(jnp.moveaxis(weight, 0, -2))
    return estimators.ratio(lanes.total(jnp.moveaxis(weight * chance, 0, -2)), total)


def members(state: State) -> Array | None:
    """Who is in the store, bool [memory, life]; None where all are at all times."""
    return None if state.roster is None else roster.every_status(state.roster) != roster.GONE


def store(state: State, utility: Array, live: Array | None) -> dict[str, Array]:
    """store_size and active_size: int32 [life]; kept_utility, of the live, and prior_strength: float32 [life]."""
    everywhere = jnp.ones(utility.shape, jnp.bool_) if live is None else live
    size = everywhere.sum(0, dtype=jnp.int32)
    found = {"store_size": size, "active_size": size if state.roster is None else state.roster.active}
    found["kept_utility"] = metrics.kept(utility, everywhere)
    if state.docket is not None and state.docket.prior is not None:
        found["prior_strength"] = state.docket.prior.a + state.docket.prior.b
    return found


def _expected_hits(state: State, lives: int) -> Array | None:
    """float32 [memory, life]."""
    if state.expected is None:
        return None
    whole, fraction = jnp.split(lanes.rows(state.expected, lives), 2)
    return whole.astype(jnp.float32) + fraction.astype(jnp.float32) * jnp.float32(2**-24)


def _decisions(config: Config, state: State, lives: int) -> Array | None:
    """int32 [rule, decision, memory, life]."""
    if state.docket is None:
        return None
    shape = lives, config.num_memories, governance.num_decisions(config), governance.num_rules(config)
    return state.docket.decided.reshape(shape).transpose(3, 2, 1, 0)


def _histogram(config: Config, forecasts: Array, lives: int) -> Array:
    """int32 [forecaster, outcome, level, life]."""
    shape = len(config.observers) + 1, FORECAST_LEVELS, 2, lives
    return lanes.rows(forecasts, lives).reshape(shape).transpose(0, 2, 1, 3)


def live(config: Config, parts: Parts, params: Params, root: Array, seed: Array) -> Trace:
    """Whole lives of root (uint32 [1] or [life]) and seed (uint32 [life]) to a Trace with the life axis last.

    Leaves of `params` end in a life axis of size 1 or lives, except `checkpoints`.
    """
    utility = worlds.utilities(config, params, root, seed)
    life = Life(params, root, seed, lanes.table(utility))
    every = jnp.broadcast_to(jnp.arange(config.num_memories, dtype=jnp.int32)[:, None], utility.shape)
    now = lambda t: worlds.current(config, params, t, None, every, utility) if config.drifts else utility
    truth = lambda value, live: metrics.truth(params, value, p_plus(config, parts, params, value, live), live)
    still = None if config.drifts or config.changes else truth(utility, None)

    def worths(state: State) -> Array:
        counted = estimators.counts(config, state.tally)
        return jnp.stack([o.worth(params, s, counted) for o, s in zip(parts.observers, state.observers, strict=True)])

    def segment(state: State, bounds: tuple[Array, Array]) -> tuple[State, tuple[Any, ...]]:
        first, last = bounds
        state = lax.fori_loop(first, last, lambda t, s: advance(config, parts, life, t, s), state)
        worth, counted = worths(state), estimators.counts(config, state.tally)
        good = state.tally.successes.sum(0, dtype=jnp.int32) if state.good is None else state.good
        live = members(state)
        value = now(last - jnp.int32(1))
        known = truth(value, live) if still is None else still
        mean_success = good.astype(jnp.float32) / last.astype(jnp.float32)
        measured = metrics.measure(config, params, worth, counted, known, mean_success, live)
        if "store" in config.metrics:
            measured |= store(state, value, live)
        broken = (~jnp.isfinite(worth)).sum((0, 1), dtype=jnp.int32)
        whole = worth if config.keep_worth == "all" else None
        return state, (measured, broken, whole, counted.shown if config.drifts else None)

    starts = jnp.concatenate([jnp.zeros(1, jnp.int32), params.checkpoints[:-1]])
    state, (measured, broken, kept, shown) = lax.scan(segment, begin(config, parts, life), (starts, params.checkpoints))
    return Trace(
        checkpoint=jnp.broadcast_to(params.checkpoints[:, None], (*params.checkpoints.shape, seed.shape[0])),
        metrics=measured,
        utility=utility,
        p_plus=p_plus(config, parts, params, now(params.checkpoints[-1] - jnp.int32(1)), members(state))
        if still is None
        else still.p_plus,
        counts=estimators.counts(config, state.tally),
        shown_at=shown,
        expected_hits=_expected_hits(state, seed.shape[0]),
        worth=worths(state) if kept is None else kept,
        decisions=_decisions(config, state, seed.shape[0]),
        calibration=None if state.forecasts is None else _histogram(config, state.forecasts, seed.shape[0]),
        health=Health(
            non_finite_worth=broken.sum(0, dtype=jnp.int32),
            held_back=jnp.zeros(seed.shape, jnp.int32) if state.docket is None else state.docket.held_back,
        ),
    )
