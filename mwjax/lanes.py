"""Tables, which are per-memory arrays that an episode touches at random places, and sums in a stated order.

A table is flat, one row of entries after another for every life, so that what a life touches lies together in the
cache. Everything else is [..., life] with the lives last: elementwise code on it vectorises over lives.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.experimental.xla_metadata import set_xla_metadata


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
    """Add `amount` (broadcasts to [slot, life]) to the entries `index` of each life, which must differ.

    Slot after slot: XLA's CPU compiler makes a better loop of that than of one scatter over all slots.
    """
    position, amount = _position(table, index), jnp.broadcast_to(amount.astype(table.dtype), index.shape)

    def one(slot: Array, table: Array) -> Array:
        entries = table.at[position[slot]]
        return entries.add(amount[slot], mode="promise_in_bounds", unique_indices=True, wrap_negative_indices=False)

    return lax.fori_loop(0, index.shape[0], one, table, unroll=2)


def put(table: Array, index: Array, value: Array) -> Array:
    """Write `value` (int32 or float32 [slot, life]) to the entries `index` of each life, slot after slot."""
    for position, one in zip(_position(table, index), value, strict=True):
        entries = table.at[position]
        table = entries.set(one, mode="promise_in_bounds", unique_indices=True, wrap_negative_indices=False)
    return table


UNROLLED = 16


def total(values: Array) -> Array:
    """Sum of float32 [..., row, life] over its rows, first to last: the same bits for one life and for thousands."""
    rows = values.shape[-2]
    if rows <= UNROLLED:
        return functools.reduce(jnp.add, [values[..., row, :] for row in range(rows)])
    one = lambda row, found: found + lax.dynamic_index_in_dim(values, row, axis=-2, keepdims=False)
    return lax.fori_loop(0, rows, one, jnp.zeros_like(values[..., 0, :]))


def lookup(values: Array, index: Array) -> Array:
    """Entries of a parameter table [entry, 1] or [entry, life] at `index`, int32 [..., life] in range."""
    if values.shape[-1] == 1:
        return values[:, 0].at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)
    return values.at[index, jnp.arange(index.shape[-1], dtype=jnp.int32)].get(mode="promise_in_bounds")


def apart(function: Callable[..., Array], *arguments: Any) -> Array:
    """function(*arguments), which XLA must compile apart: it would compute it again wherever the result is read."""

    def inlined(*arguments: Any) -> Array:
        with set_xla_metadata(inlineable="true"):
            return function(*arguments)

    with set_xla_metadata(inlineable="false"):
        return jax.jit(inlined)(*arguments)
