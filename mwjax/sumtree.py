"""Draws without repetition in proportion to weights, from a sum tree kept up to date where it changes.

Level 0 holds the weights, padded with zeros; each entry of level d + 1 is the float32 sum, first to last, of `fan`
neighbouring entries of level d, its children. Floats are only added and compared (the one product is read by
comparisons alone), so NumPy gives the same bits. What stands above a change is summed again from its children, nothing
is subtracted: an entry is zero exactly when all below it are.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from mwjax import lanes
from mwjax.config.tables import fans

Override = Callable[[Array, Array, Array], tuple[Array, Array]]
"""(slot, remaining total float32 [life], drawn int32 [k, life], -1 where not yet) -> (bool [life], int32 [life]).

Where the first is true, the slot takes the second, whatever it weighs, in place of the draw."""


class Tree(NamedTuple):
    """Sums of weights."""

    levels: tuple[Array, ...]  # float32, weights first: tables, but for the last, which is [entry, life]


def build(weights: Array) -> Tree:
    """The tree of weights float32 [memory, life], each 0 (never drawn) or in [2**-126, 1e32]."""
    num_memories, lives = weights.shape
    levels, top = [], jnp.pad(weights, ((0, -num_memories % math.prod(fans(num_memories))), (0, 0)))
    for fan in fans(num_memories):
        levels.append(lanes.table(top))
        top = lanes.total(top.reshape(-1, fan, lives))
    return Tree((*levels, top))


def draw(tree: Tree, words: Array, override: Override | None = None) -> tuple[Array, Tree]:
    """Successive draws in proportion to weight: words uint32 [k, life] -> (int32 [k, life], the tree without them).

    Slot i draws x = (words[i] >> 8) * 2**-24 * total and goes down from the last level: of a node's children it takes
    the last that weighs more than 0 and starts at or before x. At least k memories must weigh more than 0.
    """
    fans, lives = _fans(tree), words.shape[1]

    def slot(i: Array, state: tuple[Array, tuple[Array, ...]]) -> tuple[Array, tuple[Array, ...]]:
        drawn, (*tables, top) = state
        remaining = lanes.total(top)
        word = lax.dynamic_index_in_dim(words, i, keepdims=False, allow_negative_indices=False)
        x = ((word >> jnp.uint32(8)).astype(jnp.float32) * jnp.float32(2**-24)) * remaining
        given = None if override is None else override(i, remaining, drawn)

        value = jnp.zeros_like(x)
        pick = _descend if fans else _remove
        first, value = _unpack(lanes.apart(pick, top, value, x, _child(given, fans, len(fans))))
        node, path = _places(first, top.shape[0]), []
        for depth in reversed(range(len(fans))):
            children, pick = node * jnp.int32(fans[depth]), _descend if depth else _remove
            look = lambda table, children, *rest, fan=fans[depth], pick=pick: pick(_rows(table, children, fan), *rest)
            child, value = _unpack(lanes.apart(look, tables[depth], children, value, x, _child(given, fans, depth)))
            node = children + child
            path.append((depth, node, children))

        for depth, node, children in reversed(path):
            tables[depth] = _set(tables[depth], node, value if depth else jnp.zeros_like(x))
            if depth:
                value = _sums(tables[depth], children, fans[depth])
        memory = path[-1][1] - _places(jnp.zeros_like(first), tables[0].shape[0] // lives) if fans else first
        drawn = lax.dynamic_update_index_in_dim(drawn, memory, i, 0, allow_negative_indices=False)
        return drawn, (*tables, _replace(top, first, value if fans else jnp.zeros_like(x)))

    drawn = jnp.full(words.shape, -1, jnp.int32)
    retrieved, levels = lax.fori_loop(0, words.shape[0], slot, (drawn, tree.levels))
    return retrieved, Tree(levels)


def weights(tree: Tree, memory: Array) -> Array:
    """The weights of memories (int32 [slot, life]), float32 [slot, life]."""
    leaves = tree.levels[0]
    if len(tree.levels) == 1:
        return jnp.take_along_axis(leaves, memory, 0)
    return lanes.take(leaves, memory)


def update(tree: Tree, retrieved: Array, weight: Array) -> Tree:
    """The memories `retrieved` (int32 [k, life], all different) weigh `weight` (float32 [k, life]) from now on."""
    (*tables, top), entry, levels = tree.levels, retrieved, []
    row = lambda x, i: lax.dynamic_index_in_dim(x, i, keepdims=False, allow_negative_indices=False)
    for table, fan in zip(tables, _fans(tree), strict=True):
        size = table.shape[0] // entry.shape[1]
        places = _places(entry, size)
        put = lambda i, table, at=places, weight=weight: _set(table, row(at, i), row(weight, i))
        levels.append(lax.fori_loop(0, entry.shape[0], put, table))
        entry = lax.div(entry, jnp.int32(fan))
        weight = _sums(levels[-1], _places(entry * jnp.int32(fan), size), fan)
    top = lax.fori_loop(0, entry.shape[0], lambda i, top: _replace(top, row(entry, i), row(weight, i)), top)
    return Tree((*levels, top))


def _fans(tree: Tree) -> list[int]:
    *tables, top = tree.levels
    sizes = [*(table.shape[0] // top.shape[1] for table in tables), top.shape[0]]
    return [size // above for size, above in itertools.pairwise(sizes)]


def _places(entry: Array, size: int) -> Array:
    """Where the entries [..., life] of each life stand in a table of `size` entries a life."""
    return entry + jnp.arange(entry.shape[-1], dtype=jnp.int32) * jnp.int32(size)


def _child(given: tuple[Array, Array] | None, fans: list[int], depth: int) -> tuple[Array, Array] | None:
    """Which child of its node at a level the memory lies under that an override gives."""
    if given is None:
        return None
    use, memory = given
    for fan in fans[:depth]:
        memory = lax.div(memory, jnp.int32(fan))
    return use, memory if depth == len(fans) else lax.rem(memory, jnp.int32(fans[depth]))


def _rows(table: Array, children: Array, fan: int) -> Array:
    """`fan` entries of a table from position children [..., life] on -> [..., fan, life]."""
    along = lax.GatherDimensionNumbers((children.ndim,), collapsed_slice_dims=(), start_index_map=(0,))
    return lax.gather(table, children[..., None], along, (fan,), mode="promise_in_bounds").swapaxes(-1, -2)


def _sums(table: Array, children: Array, fan: int) -> Array:
    """The sums of `fan` entries of a table from position children [..., life] on."""
    return lanes.apart(lambda table, children: lanes.total(_rows(table, children, fan)), table, children)


def _set(table: Array, place: Array, value: Array) -> Array:
    """The table with value [life] at place [life]."""
    entries = table.at[place]
    return entries.set(value, mode="promise_in_bounds", unique_indices=True, wrap_negative_indices=False)


def _replace(rows: Array, child: Array, value: Array) -> Array:
    """rows [fan, life] with value [life] at child [life]."""
    return jnp.where(jnp.arange(rows.shape[0], dtype=jnp.int32)[:, None] == child, value, rows)


def _pick(rows: Array, start: Array, x: Array, given: tuple[Array, Array] | None) -> tuple[Array, Array]:
    """The last of rows [fan, life] that weighs more than 0 and starts at or before x, and where it starts."""
    found, begin, line = jnp.zeros(x.shape, jnp.int32), start, start
    for i in range(rows.shape[0]):
        reached = (rows[i] > 0) & (line <= x)
        found, begin = jnp.where(reached, jnp.int32(i), found), jnp.where(reached, line, begin)
        line = line + rows[i]
    return found if given is None else jnp.where(given[0], given[1], found), begin


def _descend(rows: Array, *start: Any) -> Array:
    """The picked child and where it starts."""
    return _pack(*_pick(rows, *start))


def _remove(rows: Array, *start: Any) -> Array:
    """The picked child and the sum of the others."""
    child, begin = _pick(rows, *start)
    return _pack(child, lanes.total(_replace(rows, child, jnp.zeros_like(begin))))


def _pack(index: Array, value: Array) -> Array:
    """An int32 and a float32 in one complex64, so that one loop computes both (see streams.episode_pairs)."""
    return lax.complex(lax.bitcast_convert_type(index, jnp.float32), value)


def _unpack(pair: Array) -> tuple[Array, Array]:
    return lax.bitcast_convert_type(lax.real(pair), jnp.int32), lax.imag(pair)
