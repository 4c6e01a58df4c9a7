"""Softmax of worth: successive draws without repetition from a sum tree that follows the worth of what was shown."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

from mwjax import lanes, streams, sumtree
from mwjax.config import LEVELS, Config, Params
from mwjax.retrieval.base import Retrieval
from mwjax.retrieval.uniform import masked, whole
from mwjax.sumtree import Tree
from mwjax.types import Step
from mwjax.worlds import fixed_point


def softmax(config: Config) -> Retrieval:
    """Successive draws proportional to exp(worth / temperature) among the memories not drawn yet.

    With floor_mode "episode", a share `exploration_floor` of the episodes draws the whole set uniformly. With "slot",
    each draw is from (1 - eps) softmax + eps / L over the L live memories, formed once an episode (DEFINITIONS).
    """
    k = config.num_retrieved

    def init(params: Params, worth: Array) -> Tree:
        weight = weigh(params, worth)
        if config.births:
            weight = jnp.where(worth < 0, jnp.float32(0), weight)
        if config.can_mask:
            alive = jnp.arange(config.num_memories, dtype=jnp.int32)[:, None] != params.masked
            weight = jnp.where(alive, weight, jnp.float32(0))
        return sumtree.build(weight)

    def retrieve(params: Params, state: Tree, step: Step, words: Array) -> tuple[Array, Tree]:
        override = FLOORS[config.floor_mode](config, params, state, step, words)
        return sumtree.draw(state, words[:k], override)

    def observe(params: Params, state: Tree, step: Step) -> Tree:
        return sumtree.update(state, step.retrieved, _weight(params, step))

    def revise(params: Params, state: Tree, step: Step, doing: Array) -> Tree:
        weight = jnp.where(doing, _weight(params, step), sumtree.weights(state, step.retrieved))
        return sumtree.update(state, step.retrieved, weight)

    words = {"none": k, "episode": k + 1, "slot": 2 * k}[config.floor_mode]
    return Retrieval(words, init, retrieve, observe=observe, revise=revise)


def _weight(params: Params, step: Step) -> Array:
    """Weights of the memories in step.retrieved: none where they are not active."""
    weight = weigh(params, step.new_worth)
    return weight if step.active is None else jnp.where(step.active, weight, jnp.float32(0))


def weigh(params: Params, worth: Array) -> Array:
    """The weight of each worth, by the host-made table."""
    level = (jnp.clip(worth, 0, 1) * jnp.float32(LEVELS)).astype(jnp.int32)
    return lanes.lookup(params.weights, level)


def _floor_by_episode(config: Config, params: Params, tree: Tree, step: Step, words: Array) -> sumtree.Override:
    """In exploring lives every slot takes what a uniform draw from the same words would."""
    del tree
    k = config.num_retrieved
    explore = words[k] >> jnp.uint32(8) < fixed_point(params.exploration_floor)
    uniform = whole(config, params, step, words[:k])
    return lambda slot, remaining, drawn: (explore, uniform[slot])


def _floor_by_slot(config: Config, params: Params, tree: Tree, step: Step, words: Array) -> sumtree.Override:
    """The component is chosen by its remaining mass: softmax (1 - eps) R / S, uniform eps left / L.

    One comparison of v (1 + S left eps / (R (1 - eps) L)) with 1, written so that no product feeds a sum.
    """
    k, eps, one = config.num_retrieved, params.exploration_floor, jnp.float32(1)
    total, mask, roster = lanes.total(tree.levels[-1]), masked(config, params), step.roster
    live = (
        roster.live
        if roster is not None
        else jnp.int32(config.num_memories) - (0 if mask is None else (mask >= 0).astype(jnp.int32))
    )

    def override(slot: Array, remaining: Array, drawn: Array) -> tuple[Array, Array]:
        left = live - slot
        odds = total * left.astype(jnp.float32) * eps / (remaining * ((one - eps) * live.astype(jnp.float32)))
        coin = (words[slot + jnp.int32(k)] >> jnp.uint32(8)).astype(jnp.float32) * jnp.float32(2**-24)
        rank = streams.below(words[slot], left.astype(jnp.uint32))
        taken = drawn if roster is None else lanes.take(roster.place, jnp.maximum(drawn, 0))
        taken = jnp.where(drawn < 0, jnp.int32(config.num_memories), taken)
        if mask is not None:
            gone = jnp.where(mask < 0, jnp.int32(config.num_memories), mask)
            taken = jnp.concatenate([taken, jnp.broadcast_to(gone, taken[:1].shape)])
        found = undrawn(taken, rank)
        return coin * (one + odds) >= one, found if roster is None else lanes.take(roster.order, found[None])[0]

    return override


def undrawn(taken: Array, rank: Array) -> Array:
    """The rank-th (uint32 [life]) index that is not in `taken` (int32 [entry, life], beyond all where empty)."""
    rank = rank.astype(jnp.int32)
    smaller = (taken[None] < taken[:, None]).sum(1, dtype=jnp.int32)
    return rank + (taken - smaller <= rank).sum(0, dtype=jnp.int32)


FLOORS = {
    "none": lambda config, params, tree, step, words: None,
    "episode": _floor_by_episode,
    "slot": _floor_by_slot,
}
