"""Counters that forget, in fixed-point integers of 32 bits with 16 below one observation, so that devices agree.

discounted        S <- g S + y, n <- g n + 1 at every outcome of the memory (Garivier and Moulines, arXiv 0805.3415;
                  Raj and Kalyani, arXiv 1707.09727), or with g = 2**(-1 / half_life) at every episode
last_outcome      lifetime counters x 2**(-age / half_life), age since the memory's last outcome, at read time
windowed          the last `window` outcomes of the memory
cusum             max(0, C + ln f(y | bad) / f(y | good)), an alarm at cusum_limit (Page, Biometrika 1954)
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from mwjax import lanes, streams
from mwjax.checks import check_integer
from mwjax.config import MAX_FORGETTING, Config, Params
from mwjax.estimators.base import UNIT_BITS, Estimator, Evidence, of_counts, ratio
from mwjax.types import Counts, Pytree, Step

ONE_BITS = 16
CERTAIN = 256
"""Observations that a flag stands for."""


class Aged(NamedTuple):
    """Counters that forget with time."""

    counters: Array  # uint32, a table of (failures, successes) side by side
    last: Array  # int32, a table: episodes completed at the memory's last outcome
    now: Array  # int32 [], episodes completed


def bounded(config: Config) -> None:
    """Refuse lives that fixed-point counters, or the table of ages, would be too short for."""
    check_integer("max_evidence", config.max_evidence, 1, MAX_FORGETTING)


def fixed(successes: Array, evidence: Array) -> Evidence:
    """uint32 counters with 16 bits below one as Evidence."""
    whole = (evidence >> jnp.uint32(ONE_BITS)).astype(jnp.int32)
    return Evidence(
        (successes >> jnp.uint32(ONE_BITS - UNIT_BITS)).astype(jnp.int32), whole, evidence << jnp.uint32(16)
    )


def read(table: Array, lives: int, width: int, index: Array | None) -> tuple[Array, ...]:
    """The `width` entries of each memory in a table: of all memories, or of those in `index`."""
    if index is None:
        rows = lanes.rows(table, lives).reshape(-1, width, lives)
        return tuple(rows[:, i] for i in range(width))
    return tuple(lanes.take(table, index * jnp.int32(width) + jnp.int32(i)) for i in range(width))


def write(table: Array, index: Array, before: tuple[Array, ...], after: tuple[Array, ...]) -> Array:
    """Replace the entries of the memories in `index`."""
    for i, (old, new) in enumerate(zip(before, after, strict=True)):
        table = lanes.add(table, index * jnp.int32(len(before)) + jnp.int32(i), new - old)
    return table


def observed(step: Step, failures: Array, successes: Array) -> tuple[Array, Array]:
    """Counters after this outcome."""
    one = jnp.uint32(1 << ONE_BITS)
    return failures + jnp.where(step.success, jnp.uint32(0), one), successes + jnp.where(step.success, one, 0)


def keep(step: Step, before: tuple[Array, ...], after: tuple[Array, ...]) -> tuple[Array, ...]:
    """`after` where the outcome is evidence, else `before`."""
    if step.seen is None:
        return after
    return tuple(jnp.where(step.seen, new, old) for old, new in zip(before, after, strict=True))


def shrink(value: Array, loss: Array) -> Array:
    """value x (1 - loss / 2**32), uint32, rounded up."""
    return value - streams.below(value, loss)


def of_pair(params: Params, failures: Array, successes: Array, prior: bool) -> Array:
    """Worth of fixed-point counters."""
    f, s = (x.astype(jnp.float32) * jnp.float32(2.0**-ONE_BITS) for x in (failures, successes))
    if prior:
        return ratio(s + params.prior_a, s + f + (params.prior_a + params.prior_b))
    return ratio(s, s + f)


def discounted(config: Config, *, prior: bool = False) -> Estimator:
    """Worth from counters that shrink by `discount` at every outcome of the memory."""
    bounded(config)

    def update(params: Params, state: Pytree, step: Step) -> Pytree:
        before = read(state, step.success.shape[-1], 2, step.retrieved)
        after = observed(step, *(shrink(x, params.discount_loss) for x in before))
        return write(state, step.retrieved, before, keep(step, before, after))

    def pair(state: Pytree, counts: Counts, index: Array | None) -> tuple[Array, Array]:
        failures, successes = read(state, counts.evidence.shape[-1], 2, index)
        return failures, successes

    return Estimator(
        init=lambda lives: jnp.zeros(lives * 2 * config.num_memories, jnp.uint32),
        update=update,
        worth=lambda params, state, counts: of_pair(params, *pair(state, counts, None), prior),
        at=lambda params, state, counts, index: of_pair(params, *pair(state, counts, index), prior),
        evidence=lambda params, state, counts, index: _pair_evidence(*pair(state, counts, index)),
    )


def _pair_evidence(failures: Array, successes: Array) -> Evidence:
    return fixed(successes, failures + successes)


def aged(config: Config, *, lifetime: bool, prior: bool = False) -> Estimator:
    """Counters that shrink with every episode; with `lifetime`, whole counters that shrink when they are read only."""
    bounded(config)

    def update(params: Params, state: Aged, step: Step) -> Aged:
        before = read(state.counters, step.success.shape[-1], 2, step.retrieved)
        last = read(state.last, step.success.shape[-1], 1, step.retrieved)
        now = step.episode + jnp.int32(1)
        loss = jnp.uint32(0) if lifetime else lanes.lookup(params.aging, jnp.maximum(now - last[0], 0))
        after = observed(step, *(shrink(x, loss) for x in before))
        time = keep(step, last, (jnp.broadcast_to(now, last[0].shape),))
        counters = write(state.counters, step.retrieved, before, keep(step, before, after))
        return Aged(counters, write(state.last, step.retrieved, last, time), now)

    def pair(params: Params, state: Aged, counts: Counts, index: Array | None) -> tuple[Array, Array]:
        lives = counts.evidence.shape[-1]
        age = jnp.maximum(state.now - read(state.last, lives, 1, index)[0], 0)
        loss = lanes.lookup(params.aging, age)
        failures, successes = (shrink(x, loss) for x in read(state.counters, lives, 2, index))
        return failures, successes

    def init(lives: int) -> Aged:
        memories = lives * config.num_memories
        return Aged(jnp.zeros(2 * memories, jnp.uint32), jnp.zeros(memories, jnp.int32), jnp.int32(0))

    return Estimator(
        init=init,
        update=update,
        worth=lambda params, state, counts: of_pair(params, *pair(params, state, counts, None), prior),
        at=lambda params, state, counts, index: of_pair(params, *pair(params, state, counts, index), prior),
        evidence=lambda params, state, counts, index: _pair_evidence(*pair(params, state, counts, index)),
    )


class Window(NamedTuple):
    """The last outcomes of each memory."""

    ring: Array  # uint32, a table of `window` bits a memory
    counted: Array  # int32, a table of (successes, outcomes since the start) of each memory


def windowed(config: Config) -> Estimator:
    """Worth from the last `window` outcomes of a memory."""
    words = -(-config.window // 32)

    def update(params: Params, state: Window, step: Step) -> Window:
        del params
        before = read(state.counted, step.success.shape[-1], 2, step.retrieved)
        place = before[1] % jnp.int32(config.window)
        index = step.retrieved * jnp.int32(words) + (place >> jnp.int32(5))
        word, shift = lanes.take(state.ring, index), (place & jnp.int32(31)).astype(jnp.uint32)
        oldest = ((word >> shift) & jnp.uint32(1)).astype(jnp.int32)
        new = jnp.where(step.success, jnp.int32(1), jnp.int32(0))
        after = (before[0] - oldest + new, before[1] + jnp.int32(1))
        changed = word + ((new - oldest).astype(jnp.uint32) << shift)
        (changed,) = keep(step, (word,), (changed,))
        counted = write(state.counted, step.retrieved, before, keep(step, before, after))
        return Window(lanes.add(state.ring, index, changed - word), counted)

    def evidence(params: Params, state: Window, counts: Counts, index: Array | None) -> Evidence:
        del params
        successes, outcomes = read(state.counted, counts.evidence.shape[-1], 2, index)
        return of_counts(successes, jnp.minimum(outcomes, jnp.int32(config.window)))

    def worth(params: Params, state: Window, counts: Counts, index: Array | None = None) -> Array:
        del params
        successes, outcomes = read(state.counted, counts.evidence.shape[-1], 2, index)
        inside = jnp.minimum(outcomes, jnp.int32(config.window))
        return ratio(successes.astype(jnp.float32), inside.astype(jnp.float32))

    def init(lives: int) -> Window:
        memories = lives * config.num_memories
        return Window(jnp.zeros(memories * words, jnp.uint32), jnp.zeros(memories * 2, jnp.int32))

    return Estimator(init=init, update=update, worth=worth, at=worth, evidence=evidence)


def cusum(config: Config, *, flags: bool) -> Estimator:
    """Worth from the outcomes since the last alarm of a CUSUM detector; an alarm starts the memory's counters afresh.

    A rule that reads the counters of `cusum` (flags) acts on every memory with an alarm, that of `cusum_reset` decides
    by the outcomes since.
    """

    def update(params: Params, state: Array, step: Step) -> Array:
        before = read(state, step.success.shape[-1], 4, step.retrieved)
        level, failures, successes, alarms = before
        added = jnp.where(step.success, params.cusum[1], params.cusum[0])
        level = jnp.maximum(level + added, 0)
        alarm = level >= params.cusum[2]
        failures = failures + jnp.where(step.success, 0, 1).astype(jnp.int32)
        successes = successes + jnp.where(step.success, 1, 0).astype(jnp.int32)
        cleared = (jnp.where(alarm, jnp.int32(0), x) for x in (level, failures, successes))
        after = (*cleared, alarms + alarm.astype(jnp.int32))
        return write(state, step.retrieved, before, keep(step, before, after))

    def worth(params: Params, state: Array, counts: Counts, index: Array | None = None) -> Array:
        del params
        _, failures, successes, _ = read(state, counts.evidence.shape[-1], 4, index)
        return ratio(successes.astype(jnp.float32), (failures + successes).astype(jnp.float32))

    def evidence(params: Params, state: Array, counts: Counts, index: Array | None) -> Evidence:
        del params
        _, failures, successes, alarms = read(state, counts.evidence.shape[-1], 4, index)
        if flags:
            certain = jnp.full_like(alarms, CERTAIN)
            return of_counts(jnp.where(alarms > 0, 0, certain), certain)
        return of_counts(successes, failures + successes)

    return Estimator(
        init=lambda lives: jnp.zeros(lives * 4 * config.num_memories, jnp.int32),
        update=update,
        worth=worth,
        at=worth,
        evidence=evidence,
    )
