"""Governance within an episode: what rules know, what they decide, and carrying it out one memory after another."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from mwjax import estimators, governance, roster, worlds
from mwjax.config import Config
from mwjax.episode.records import Life, Parts, State, evidence_of, new_worth
from mwjax.types import Counts, Step


def bear(config: Config, parts: Parts, life: Life, t: Array, s: State) -> State:
    """The memory that is born in this episode joins the store."""
    memory, due = worlds.born(life.params, t)
    shape = (1, life.seed.shape[0])
    due = jnp.broadcast_to(due & (memory < jnp.int32(config.num_memories)), shape)
    index = jnp.broadcast_to(jnp.minimum(memory, jnp.int32(config.num_memories - 1)), shape)
    return settle(config, parts, life, t, s, due, index, jnp.full(shape, roster.ACTIVE, jnp.int32))


def decide(config: Config, parts: Parts, life: Life, t: Array, s: State, due: Step) -> State:
    """All rules look at the memories whose counters have changed, or at every scan at all of them."""
    assert s.docket is not None
    counts = estimators.counts(config, s.tally, due.retrieved)
    if config.watched:
        known = [evidence_of(config, parts, life, t, s, counter, counts, due.retrieved) for counter in config.watched]
        fires = governance.watch(config, life.params, known, counts.evidence, due.seen)
        acting = jnp.zeros((*fires.shape[:-1], governance.num_rules(config) - fires.shape[-1]), jnp.bool_)
        decided = _record(
            config, life, s.docket.decided, t, due.retrieved, jnp.concatenate([acting, fires], -1), counts
        )
        s = s._replace(docket=s.docket._replace(decided=decided))
    if config.governance == "none":
        return s
    if not config.scans:
        seen = jnp.bool_(True) if due.seen is None else due.seen
        pending, to = _look(config, parts, life, t, s, counts, due.retrieved)
        return settle(config, parts, life, t, s, pending & seen, due.retrieved, to, tells=False)
    return _scan(config, parts, life, t, s)


def _record(config: Config, life: Life, decided: Array, t: Array, index: Array, fires: Array, counts: Counts) -> Array:
    rows = governance.get_rows(config, decided, index)
    rows = governance.record(config, life.params, rows, fires, t, counts.shown)
    return governance.put_rows(config, decided, index, rows)


def _look(
    config: Config, parts: Parts, life: Life, t: Array, s: State, counts: Counts, index: Array | None
) -> tuple[Array, Array]:
    """(memories whose status is to change, bool, the status they take), of those in `index` or of all."""
    assert s.docket is not None
    assert s.roster is not None
    known, evidence = evidence_of(config, parts, life, t, s, config.counter, counts, index), counts.evidence
    if config.scope == "every_context":
        known, evidence = governance.by_context(counts), counts.context_evidence
    if config.counter == "truth":
        evidence = jnp.full_like(evidence, jnp.iinfo(jnp.int32).max)
    born = life.params.num_initial
    if config.births:
        born = jnp.minimum(born + t // life.params.birth_every, jnp.int32(config.num_memories))
    theta = governance.moving(config, life.params, known, counts, born)
    acts, restored = governance.against(config, life.params, s.docket, known, evidence, theta)
    if index is None:
        status = roster.every_status(s.roster)
    elif config.governance == "deprecate" and not config.delay:
        status = jnp.full(index.shape, roster.ACTIVE, jnp.int32)  # or it would not have been retrieved
    else:
        status = roster.status(s.roster, index)
    return governance.candidates(config, status, acts, restored)


def _scan(config: Config, parts: Parts, life: Life, t: Array, s: State) -> State:
    """Every decide_every episodes, look at all memories."""
    assert s.docket is not None
    due = (t + jnp.int32(1)) % life.params.rules.decide_every == 0
    shape = (config.num_memories, life.seed.shape[0])
    prior = s.docket.prior

    def look() -> tuple[Array, Array, governance.Prior | None]:
        counts = estimators.counts(config, s.tally)
        fitted = governance.fit(counts) if config.refits else None
        assert s.docket is not None
        kept = jax.tree.map(lambda new, old: jnp.where(due, new, old), fitted, prior)
        now = s._replace(docket=s.docket._replace(prior=kept))
        return *_look(config, parts, life, t, now, counts, None), kept

    pass_by = lambda: (jnp.zeros(shape, jnp.bool_), jnp.zeros(shape, jnp.int32), prior)
    pending, to, prior = lax.cond(due.any(), look, pass_by)
    s = s._replace(docket=s.docket._replace(prior=prior))
    every = jnp.broadcast_to(jnp.arange(shape[0], dtype=jnp.int32)[:, None], shape)
    return settle(config, parts, life, t, s, pending & due, every, to)


def settle(
    config: Config,
    parts: Parts,
    life: Life,
    t: Array,
    s: State,
    pending: Array,
    index: Array,
    to: Array,
    *,
    tells: bool = True,
) -> State:
    """Carry out what is pending (bool [row, life]): memory `index` takes the status `to`, one a life at a time.

    Retrieval is told of each at once, unless the episode tells it of all these memories in any case (`tells`). What
    would leave fewer active memories than a retrieved set needs is held back, and counted.
    """
    row_of = jnp.arange(pending.shape[0], dtype=jnp.int32)[:, None]

    def one(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        pending, *changing = carry
        found = s._replace(roster=changing[0], docket=changing[1], retrieval=changing[2])
        assert found.roster is not None
        first = jnp.argmax(pending, axis=0).astype(jnp.int32)
        doing = pending.any(axis=0)
        memory = jnp.take_along_axis(index, first[None], 0)
        goal = jnp.take_along_axis(to, first[None], 0)[0]
        held = doing & governance.too_few(config, found.roster, roster.status(found.roster, memory)[0], goal)
        found = _carry_out(config, parts, life, t, found, memory, goal, doing & ~held, tells)
        docket = found.docket
        if docket is not None:
            docket = docket._replace(held_back=docket.held_back + held.astype(jnp.int32))
        return pending & (row_of != first), found.roster, docket, found.retrieval

    start = (pending, s.roster, s.docket, s.retrieval)
    _, members, docket, retrieval = lax.while_loop(lambda carry: carry[0].any(), one, start)
    return s._replace(roster=members, docket=docket, retrieval=retrieval)


def _carry_out(
    config: Config, parts: Parts, life: Life, t: Array, s: State, memory: Array, goal: Array, doing: Array, tells: bool
) -> State:
    """One memory a life (int32 [1, life]) takes the status `goal` where `doing`; whether that `tells` retrieval."""
    assert s.roster is not None
    ways = {"suppresses": config.governance == "suppress", "rises": config.births or config.restores}
    s = s._replace(roster=roster.move(s.roster, memory[0], goal, doing, **ways))
    if s.docket is not None and config.governance != "none":
        counts = estimators.counts(config, s.tally, memory)
        fires = jnp.zeros((1, doing.shape[0], governance.num_rules(config)), jnp.bool_)
        fires = fires.at[..., 0].set(doing & (goal != roster.ACTIVE))
        decided = _record(config, life, s.docket.decided, t, memory, fires, counts)
        s = s._replace(docket=s.docket._replace(decided=decided))
    if parts.retrieval.revise is not None and s.roster is not None and tells:
        active = roster.status(s.roster, memory) == roster.ACTIVE
        worth = new_worth(config, parts, life.params, s, memory)
        step = Step(t, retrieved=memory, new_worth=worth, active=active, roster=s.roster)
        s = s._replace(retrieval=parts.retrieval.revise(life.params, s.retrieval, step, doing))
    return s
