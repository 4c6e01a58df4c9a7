"""The two memory accesses of the hot loop, on arrays whose last axis is the life."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

SEPARATE_ROWS = 16
"""Up to so many rows are added one after the other: XLA's CPU compiler vectorises that better than one scatter."""


def _flat(index: Array) -> Array:
    lives = index.shape[-1]
    return index * jnp.int32(lives) + jnp.arange(lives, dtype=jnp.int32)


def take(values: Array, index: Array) -> Array:
    """values[index, life] for each life: values [row, life], index int32 [slot, life] in range -> [slot, life]."""
    return values.reshape(-1).at[_flat(index)].get(mode="promise_in_bounds")


def add(values: Array, index: Array, amount: Array) -> Array:
    """Add `amount` (broadcasts to [slot, life]) to values[index, life]; the indices of one life must differ."""
    flat, flat_index = values.reshape(-1), _flat(index)
    amount = jnp.broadcast_to(amount.astype(values.dtype), index.shape)
    if index.shape[0] <= SEPARATE_ROWS:
        for row in range(index.shape[0]):
            flat = flat.at[flat_index[row]].add(amount[row], mode="promise_in_bounds", unique_indices=True)
    else:
        flat = flat.at[flat_index].add(amount, mode="promise_in_bounds", unique_indices=True)
    return flat.reshape(values.shape)
