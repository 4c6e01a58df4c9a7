"""Which memories may be retrieved: a permutation whose segments are the active, the suppressed and the gone."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from mwjax import lanes
from mwjax.types import Roster

ACTIVE, SUPPRESSED, GONE = 0, 1, 2
"""Status of a memory; gone is deprecated, or not born yet."""


def new(num_memories: int, born: Array, lives: int) -> Roster:
    """The first `born` memories (int32 [life or 1]) are active, the others not born yet."""
    every = jnp.broadcast_to(jnp.arange(num_memories, dtype=jnp.int32)[:, None], (num_memories, lives))
    count = jnp.broadcast_to(born, (lives,)).astype(jnp.int32)
    return Roster(lanes.table(every), lanes.table(every), count, count)


def status(roster: Roster, memory: Array) -> Array:
    """Status of memories, int32 [..., life]."""
    place = lanes.take(roster.place, memory)
    return (place >= roster.active).astype(jnp.int32) + (place >= roster.live).astype(jnp.int32)


def every_status(roster: Roster) -> Array:
    """Status of all memories, int32 [memory, life]."""
    place = lanes.rows(roster.place, roster.live.shape[0])
    return (place >= roster.active).astype(jnp.int32) + (place >= roster.live).astype(jnp.int32)


def move(roster: Roster, memory: Array, to: Array, doing: Array, *, suppresses: bool, rises: bool) -> Roster:
    """Where `doing` (bool [life]), `memory` (int32 [life]) takes the status `to` (int32 [life]).

    Without `suppresses` no memory is ever suppressed, and both boundaries move as one; without `rises` none comes back.
    """
    before = status(roster, memory[None])[0]
    steps = [(("active",), SUPPRESSED), (("live",), GONE)] if suppresses else [(("active", "live"), GONE)]
    for boundary, level in steps:
        roster = _cross(roster, boundary, memory, doing & (before < level) & (to >= level), down=True)
    for boundary, level in reversed(steps) if rises else ():
        roster = _cross(roster, boundary, memory, doing & (before >= level) & (to < level), down=False)
    return roster


def _cross(roster: Roster, boundary: tuple[str, ...], memory: Array, doing: Array, *, down: bool) -> Roster:
    """Exchange a memory with the one at a boundary, and move the boundary over it."""
    size = getattr(roster, boundary[0])
    at = lanes.take(roster.place, memory[None])[0]
    target = jnp.where(doing, size - 1 if down else size, at)
    other = lanes.take(roster.order, target[None])[0]
    # In this order the first write waits for every read, and XLA need not copy a table.
    pair = jnp.stack([at, target]), jnp.stack([other, memory])
    order = lanes.put(roster.order, pair[0], pair[1])
    place = lanes.put(roster.place, pair[1], pair[0])
    step = doing.astype(jnp.int32)
    moved = size - step if down else size + step
    return roster._replace(order=order, place=place, **dict.fromkeys(boundary, moved))
