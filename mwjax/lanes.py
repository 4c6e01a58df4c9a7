"""Tables: per-memory arrays that an episode touches at random places.

A table is flat, one row of entries after another for every life, so that what a life touches lies together in the
cache. Everything else is [..., life] with the lives last: elementwise code on it vectorises over lives.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

SEPARATE_SLOTS = 16
"""Up to so many slots are added one after the other: XLA's CPU compiler makes better loops of them than of one."""


def table(values: Array) -> Array:
    """[entry, life] -> the same as a table, [life x entry]."""
    return values.T.reshape(-1)


def rows(table: Array, lives: int) -> Array:
    """A table [life x entry] -> [entry, life]."""
    return table.reshape(lives, -1).T


def _position(table: Array, index: Array) -> Array:
    lives = index.shape[-1]
    return index + jnp.arange(lives, dtype=jnp.int32) * jnp.int32(table.shape[0] // lives)


def take(table: Array, index: Array) -> Array:
    """The entries `index` (int32 [slot, life], in range) of each life -> [slot, life]."""
    return table.at[_position(table, index)].get(mode="promise_in_bounds", wrap_negative_indices=False)


def add(table: Array, index: Array, amount: Array) -> Array:
    """Add `amount` (broadcasts to [slot, life]) to the entries `index` of each life, which must differ."""
    position, amount = _position(table, index), jnp.broadcast_to(amount.astype(table.dtype), index.shape)
    separate = index.shape[0] <= SEPARATE_SLOTS
    for slot in range(index.shape[0]) if separate else (slice(None),):
        table = table.at[position[slot]].add(
            amount[slot], mode="promise_in_bounds", unique_indices=True, wrap_negative_indices=False
        )
    return table
