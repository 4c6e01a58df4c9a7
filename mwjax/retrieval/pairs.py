"""Pairs of memories that are retrieved together: an anchor and its hitchhiker are one unit of the draw.

Memory i < num_pairs is the anchor of pair i, num_pairs + i its hitchhiker, the others are fillers. A set is
num_retrieved units out of num_memories - num_pairs. A pair is shown whole, taking two slots, or separated, taking one.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from mwjax import lanes, streams
from mwjax.config import Config, Params
from mwjax.retrieval.base import Retrieval
from mwjax.retrieval.uniform import masked, subset
from mwjax.types import InputError, Pytree, Step
from mwjax.worlds import fixed_point


def pairs(config: Config) -> Retrieval:
    """Pairs are separated in a share `separation` of their episodes."""
    if config.num_pairs == 0:
        raise InputError("num_pairs = 0: retrieval 'pairs' needs at least one pair")

    def retrieve(params: Params, state: Pytree, step: Step, words: Array) -> tuple[Array, Pytree]:
        del step
        return _fill(config, params, words, by_chance(config, params, words))[0], state

    closed = (lambda params, utility: _companions(config, params, utility)) if config.num_pairs == 1 else None
    return Retrieval(num_words(config), lambda params, worth: (), retrieve, companions=closed or _unknown)


def diverse(config: Config) -> Retrieval:
    """As `pairs`, but a pair is also separated whenever fewer than a share `diversity` of its episodes were.

    The remedy for hitchhikers: a cap on showing two memories together, driven by what their episodes so far were.
    """
    if config.num_pairs == 0:
        raise InputError("num_pairs = 0: retrieval 'diverse' needs at least one pair")

    def init(params: Params, worth: Array) -> tuple[Array, Array]:
        none = jnp.zeros((config.num_pairs, worth.shape[-1]), jnp.int32)
        return none, none

    def retrieve(params: Params, state: Pytree, step: Step, words: Array) -> tuple[Array, Pytree]:
        del step
        shown, apart = state
        due = apart.astype(jnp.float32) < params.diversity * (shown + jnp.int32(1)).astype(jnp.float32)
        retrieved, whole, alone = _fill(config, params, words, by_chance(config, params, words) | due)
        return retrieved, (shown + (whole | alone).astype(jnp.int32), apart + alone.astype(jnp.int32))

    return Retrieval(num_words(config), init, retrieve, companions=_unknown)


def _unknown(params: Params, utility: Array) -> tuple[Array, Array]:
    """No closed form: NaN."""
    del params
    nan = jnp.full((1, *utility.shape), jnp.nan, jnp.float32)
    return jnp.ones_like(nan), nan


def num_words(config: Config) -> int:
    """The units, one word to separate and one to choose a half for each pair, and one for what gives way."""
    return config.num_retrieved + 2 * config.num_pairs + 1


def by_chance(config: Config, params: Params, words: Array) -> Array:
    """Which pairs are separated by nature in this episode, bool [pair, life]."""
    words = words[config.num_retrieved : config.num_retrieved + config.num_pairs]
    return words >> jnp.uint32(8) < fixed_point(params.separation)


def _fill(config: Config, params: Params, words: Array, separated: Array) -> tuple[Array, Array, Array]:
    """The retrieved set [retrieved, life], the pairs it shows whole and those by one half, bool [pair, life] each.

    Units take slots in turn, beginning at one chosen by a word, until all are filled; with a single pair that word
    chooses the unit that gives way to it instead. A whole pair that finds one slot left shows a half.
    """
    k, num_pairs, mask = config.num_retrieved, config.num_pairs, masked(config, params)
    unit_mask = None if mask is None else jnp.where(mask >= 2 * num_pairs, mask - jnp.int32(num_pairs), jnp.int32(-1))
    units = subset(words[:k], config.num_memories - num_pairs, unit_mask)
    choice = words[k + num_pairs : k + 2 * num_pairs] >> jnp.uint32(31) == 1  # True: the hitchhiker
    half = choice if config.separation_mode == "split" else jnp.zeros_like(choice)
    if mask is not None:
        pair = jnp.arange(num_pairs, dtype=jnp.int32)[:, None]
        no_anchor, no_hitchhiker = mask == pair, mask == pair + jnp.int32(num_pairs)
        half, choice = (jnp.where(no_anchor, True, jnp.where(no_hitchhiker, False, x)) for x in (half, choice))
        separated = separated | no_anchor | no_hitchhiker
    place = _one_gives_way if num_pairs == 1 else _in_turn
    return place(config, units, words[k + 2 * num_pairs], separated, half, choice)


def _one_gives_way(
    config: Config, units: Array, word: Array, separated: Array, half: Array, choice: Array
) -> tuple[Array, Array, Array]:
    """One pair: whole, it takes its own slot and that of another unit, each alike."""
    del choice
    k = config.num_retrieved
    slot = jnp.arange(k, dtype=jnp.int32)[:, None]
    mine = units == 0
    drawn, place = mine.any(0), jnp.where(mine, slot, 0).sum(0, dtype=jnp.int32)
    whole = drawn & ~separated[0]
    other = streams.below(word, k - 1).astype(jnp.int32)
    other = other + (other >= place).astype(jnp.int32)
    retrieved = jnp.where(mine, (~whole & half[0]).astype(jnp.int32), units + jnp.int32(1))
    retrieved = jnp.where(whole & (slot == other), jnp.int32(1), retrieved)
    return retrieved, whole[None], (drawn & ~whole)[None]


def _in_turn(
    config: Config, units: Array, word: Array, separated: Array, half: Array, choice: Array
) -> tuple[Array, Array, Array]:
    """Several pairs: units fill the slots in the order drawn, beginning at one chosen by the word."""
    k, num_pairs = jnp.int32(config.num_retrieved), jnp.int32(config.num_pairs)
    slot, pair = (jnp.arange(n, dtype=jnp.int32)[:, None] for n in (config.num_retrieved, config.num_pairs))
    begin = streams.below(word, config.num_retrieved).astype(jnp.int32)

    def turn(i: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
        retrieved, filled, shown_whole, shown_alone = state
        unit = jnp.where(slot == (begin + i) % k, units, 0).sum(0, dtype=jnp.int32)
        mine = (pair == unit) & (filled < k)
        whole = mine & ~separated & (filled + jnp.int32(1) < k)
        side = (mine & jnp.where(separated, half, choice)).any(0)
        second, both = unit + num_pairs, whole.any(0)
        first = jnp.where(unit < num_pairs, jnp.where(side & ~both, second, unit), second)
        retrieved = jnp.where(slot == filled, first, retrieved)
        retrieved = jnp.where((slot == filled + jnp.int32(1)) & both, second, retrieved)
        filled = jnp.minimum(filled + jnp.int32(1) + both.astype(jnp.int32), k)
        return retrieved, filled, shown_whole | whole, shown_alone | (mine & ~whole)

    none = jnp.zeros_like(separated)
    start = (jnp.zeros_like(units), jnp.zeros_like(begin), none, none)
    retrieved, _, whole, alone = lax.fori_loop(0, config.num_retrieved, turn, start)
    return retrieved, whole, alone


def _companions(config: Config, params: Params, utility: Array) -> tuple[Array, Array]:
    """One pair: Pr[shown] and the expected mean utility of the set given m, [1, memory, life] each."""
    k, units = config.num_retrieved, config.num_memories - 1
    u = utility.astype(jnp.float32) * jnp.float32(2**-24)
    anchor, hitchhiker, fillers = u[:1], u[1:2], u[2:]
    total = lanes.total(fillers)[None]
    apart = jnp.broadcast_to(params.separation, anchor.shape)
    lone_anchor = apart * (0.5 if config.separation_mode == "split" else 1.0)
    average, rest = total / max(units - 1, 1), (total - fillers) / max(units - 2, 1)
    both = (1 - apart) * (anchor + hitchhiker + (k - 2) * average)
    shown, mean = [], []
    for own, lone in ((anchor, lone_anchor), (hitchhiker, apart - lone_anchor)):
        chance = 1 - apart + lone
        mean.append((both + lone * (own + (k - 1) * average)) / jnp.where(chance > 0, chance, 1))
        shown.append(k / units * chance)
    beside = (k - 1) / max(units - 1, 1)  # Pr[the pair is drawn | the filler is]
    cases = (
        (1 - beside, fillers + (k - 1) * rest),
        (beside * (k - 2) / (k - 1) * (1 - apart), fillers + anchor + hitchhiker + max(k - 3, 0) * rest),
        (beside * lone_anchor, fillers + anchor + (k - 2) * rest),
        (beside * (apart - lone_anchor), fillers + hitchhiker + (k - 2) * rest),
    )
    chance = sum(weight for weight, _ in cases)
    mean.append(sum(weight * value for weight, value in cases) / chance)
    shown.append(jnp.broadcast_to(k / units * chance, fillers.shape))
    mean = jnp.concatenate(mean) / k
    shown = jnp.concatenate(shown)
    return shown[None], jnp.where(shown > 0, mean, jnp.nan)[None]
