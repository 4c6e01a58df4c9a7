"""When to forget: rules that look at a memory's counters, what a decision does, and a record of all decisions.

Every rule is a table made on the host (see rules.py): evidence -> most successes at which it acts. Fractional counters,
a threshold that moves with the store and a fitted prior are looked up between its entries, in integers:
the rule with prior (a, b) acts on (s, n) where the one with prior (1, 1) acts on (s + a - 1, n + a + b - 2).
"""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from mwjax import lanes, metrics, roster, streams
from mwjax.config import Config, Params
from mwjax.config.governed import MOST_STRENGTH, THETA_LEVELS, TRUTH
from mwjax.estimators.base import UNIT_BITS, Evidence, of_counts, ratio
from mwjax.types import Counts, Roster

DECISIONS = ("first_episode", "first_shown", "after_episode", "after_shown")
"""Of a rule and a memory: the episode of the first decision against it and its retrievals until then, and the same of
the first one from switch_at on (only where utilities drift); -1 where there is none."""
LEAST_PRIOR = 0.5


class Prior(NamedTuple):
    """Beta prior of an empirical-Bayes rule, float32 [life]."""

    a: Array
    b: Array


class Docket(NamedTuple):
    """What has been decided so far."""

    decided: Array  # int32 [life x memory, decision x rule], see DECISIONS
    held_back: Array  # int32 [life]
    prior: Prior | None


def num_rules(config: Config) -> int:
    """Rules whose decisions are recorded, the acting one first."""
    return len(config.watched) + (config.governance != "none")


def num_decisions(config: Config) -> int:
    """How many of DECISIONS are recorded."""
    return len(DECISIONS) if config.drifts else 2


def new(config: Config, lives: int) -> Docket | None:
    """Nothing is decided yet; None where there are no rules."""
    if not num_rules(config):
        return None
    shape = (lives * config.num_memories, num_decisions(config) * num_rules(config))
    one = jnp.ones(lives, jnp.float32)
    prior = Prior(one, one) if config.refits else None
    return Docket(jnp.full(shape, -1, jnp.int32), jnp.zeros(lives, jnp.int32), prior)


def of_truth(utility: Array) -> Evidence:
    """A true utility (uint32, 24-bit) as the counters that an oracle decides by."""
    successes = (utility >> jnp.uint32(24 - UNIT_BITS - TRUTH.bit_length() + 1)).astype(jnp.int32)
    return Evidence(successes, jnp.full(utility.shape, TRUTH, jnp.int32))


def by_context(counts: Counts) -> Evidence:
    """The counters of every context apart, [context, ..., life]."""
    return of_counts(counts.context_successes, counts.context_evidence)


class Threshold(NamedTuple):
    """Where a moving theta lies between the levels of a table: int32 level and uint32 share of the way, [life]."""

    level: Array
    share: Array


def threshold(value: Array) -> Threshold:
    """float32 in [0, 1] -> its place between the multiples of 1 / THETA_LEVELS."""
    scaled = jnp.clip(value, 0, 1) * jnp.float32(THETA_LEVELS)
    level = jnp.minimum(scaled.astype(jnp.int32), jnp.int32(THETA_LEVELS - 1))
    rest = (scaled - level.astype(jnp.float32)) * jnp.float32(1 << 24)
    return Threshold(level, jnp.minimum(rest.astype(jnp.uint32), jnp.uint32((1 << 24) - 1)) << jnp.uint32(8))


def mix(low: Array, high: Array, share: Array) -> Array:
    """low + share / 2**32 (high - low), int32, for high >= low."""
    return low + streams.below(share, jnp.maximum(high - low, 0).astype(jnp.uint32)).astype(jnp.int32)


def bound(table: Array, known: Evidence, at: Threshold | None) -> Array:
    """The bound of a table int32 [theta, evidence + 1, life or 1] for counters [..., life]."""
    size = table.shape[1]
    flat = table.reshape(-1, table.shape[-1])

    def row(level: Array | int) -> Array:
        index = known.whole + jnp.asarray(level, jnp.int32) * jnp.int32(size)
        here = lanes.lookup(flat, index)
        if known.fraction is None:
            return here
        end = jnp.minimum(known.whole + 1, jnp.int32(size - 1)) - known.whole
        return mix(here, lanes.lookup(flat, index + end), known.fraction)

    if at is None:
        return row(0)
    return mix(row(at.level), row(at.level + jnp.int32(1)), at.share) - jnp.int32(1)  # not even at theta itself


def fit(counts: Counts) -> Prior:
    """priors.moments with most_strength = MOST_STRENGTH, in float32: the formula is stated there."""
    n, s, one = counts.evidence.astype(jnp.float32), counts.successes.astype(jnp.float32), jnp.float32(1)
    total = jnp.maximum(lanes.total(n), one)
    p = jnp.where(lanes.total(n) > 0, lanes.total(s) / total, jnp.float32(0.5))
    noise, seen = p * (one - p), (counts.evidence > 0).sum(0, dtype=jnp.int32).astype(jnp.float32)
    excess = lanes.total(jnp.where(n > 0, n * jnp.square(ratio(s, n) - p), 0)) - noise * (seen - one)
    spread = noise * lanes.total(jnp.maximum(n - one, 0) * (one - n / total))
    capped = (spread <= 0) | (excess * jnp.float32(MOST_STRENGTH + 1) <= spread)
    strength = jnp.maximum(spread / jnp.where(capped, one, excess) - one, 2 * LEAST_PRIOR)
    strength = jnp.where(capped, jnp.float32(MOST_STRENGTH), strength)
    a = jnp.minimum(jnp.maximum(p * strength, LEAST_PRIOR), strength - LEAST_PRIOR)
    return Prior(a, strength - a)


def with_prior(known: Evidence, prior: Prior) -> Evidence:
    """Counters (s, n) as the rule with prior (1, 1) must see them: (s + a - 1, n + a + b - 2)."""
    unit = jnp.float32(1 << UNIT_BITS)
    a, b = (jnp.rint((x - 1) * unit).astype(jnp.int32) for x in prior)
    rest = jnp.uint32(0) if known.fraction is None else known.fraction >> jnp.uint32(32 - UNIT_BITS)
    whole = jnp.maximum((known.whole << jnp.int32(UNIT_BITS)) + rest.astype(jnp.int32) + a + b, 0)
    fraction = (whole & jnp.int32((1 << UNIT_BITS) - 1)).astype(jnp.uint32) << jnp.uint32(32 - UNIT_BITS)
    return Evidence(known.successes + a, whole >> jnp.int32(UNIT_BITS), fraction)


def moving(config: Config, params: Params, known: Evidence, counts: Counts, born: Array) -> Array | None:
    """The threshold now, float32 [life], where it moves: theta x the base rate so far, or the theta-quantile of worth.

    The quantile is over all memories born so far (int32 [life or 1]), those that are gone with the worth they had.
    """
    if config.theta_mode == "relative":
        good, all_of = (
            x.sum(0, dtype=jnp.int32).astype(jnp.float32) for x in (counts.episode_successes, counts.episodes)
        )
        return params.rules.theta * ratio(good, all_of)
    if config.theta_mode == "quantile":
        whole = known.whole.astype(jnp.float32)
        if known.fraction is not None:
            whole = whole + known.fraction.astype(jnp.float32) * jnp.float32(2.0**-32)
        worth = ratio(known.successes.astype(jnp.float32) * jnp.float32(2.0**-UNIT_BITS), whole)
        unborn = jnp.arange(config.num_memories, dtype=jnp.int32)[:, None] >= born
        worth = jnp.where(unborn, jnp.float32(2), worth)
        place = jnp.minimum((params.rules.theta * born.astype(jnp.float32)).astype(jnp.int32), born - 1)
        found = metrics.order(worth)
        here = (found.below <= place) & (jnp.int32(config.num_memories) - found.above > place)
        return jnp.where(here, worth, jnp.float32(-1)).max(0)
    return None


def against(
    config: Config, params: Params, docket: Docket, known: Evidence, evidence: Array, theta: Array | None
) -> tuple[Array, Array]:
    """(the acting rule decides against the memory, it would restore it), bool [..., life].

    `evidence` is the plain count that rules with a least evidence heed.
    """
    at, later = None, None
    if theta is not None:
        at, later = threshold(theta), threshold(theta + params.rules.hysteresis)
    enough, heard = (evidence >= params.rules.least) & (evidence > 0), known.whole > 0
    if docket.prior is not None:
        known = with_prior(known, docket.prior)
    acts = enough & (known.successes <= bound(params.rules.acts, known, at))
    restored = jnp.zeros_like(acts)
    if config.restores:
        restored |= known.successes > bound(params.rules.keeps, known, later)
    if config.scope == "every_context":  # leading axis context: every context that has seen the memory must agree
        acts = (acts | ~heard).all(0) & (enough & heard).any(0)
        restored = (restored & heard).any(0)
    return acts, restored


def record(config: Config, params: Params, rows: Array, fires: Array, t: Array, shown: Array) -> Array:
    """Rows int32 [..., decision, rule] after episode t, in which `fires` (bool [..., rule]) decided."""
    first = jnp.broadcast_to(t, shown.shape), shown
    late = fires & (t >= params.switch_at)[..., None] if config.drifts else fires
    parts = []
    for number in range(num_decisions(config)):
        old, deciding = rows[..., number, :], fires if number < 2 else late
        parts.append(jnp.where((rows[..., number - number % 2, :] < 0) & deciding, first[number % 2][..., None], old))
    return jnp.stack(parts, axis=-2)


def places(config: Config, index: Array) -> Array:
    """Rows of Docket.decided that belong to memories `index` (int32 [..., life])."""
    return index + jnp.arange(index.shape[-1], dtype=jnp.int32) * jnp.int32(config.num_memories)


def get_rows(config: Config, decided: Array, index: Array) -> Array:
    """int32 [..., life, decision, rule]."""
    found = decided.at[places(config, index)].get(mode="promise_in_bounds", wrap_negative_indices=False)
    return found.reshape(*index.shape, num_decisions(config), num_rules(config))


def put_rows(config: Config, decided: Array, index: Array, rows: Array) -> Array:
    """Write the rows [slot, life, decision, rule] of memories [slot, life]."""
    at, flat = places(config, index), rows.reshape(*index.shape, -1)

    def one(slot: Array, decided: Array) -> Array:
        entries = decided.at[at[slot]]
        return entries.set(flat[slot], mode="promise_in_bounds", unique_indices=True, wrap_negative_indices=False)

    return lax.fori_loop(0, index.shape[0], one, decided)


def watch(config: Config, params: Params, known: list[Evidence], evidence: Array, seen: Array | None) -> Array:
    """Which of the watching rules decide against memories: `known` by rule, [slot, life] each -> bool [..., rule].

    Rules that read the same counters look their bounds up in one row.
    """
    groups: dict[str, list[int]] = {}
    for rule, counter in enumerate(config.watched):
        groups.setdefault(counter, []).append(rule)
    columns: list[Array] = [jnp.zeros(0)] * len(config.watched)
    for mine in groups.values():
        it = known[mine[0]]
        table = params.rules.watch if len(groups) == 1 else params.rules.watch[:, jnp.asarray(mine)]
        bounds = _row(table, it)
        for column, rule in enumerate(mine):
            enough = evidence >= params.rules.watch_least[rule]
            fires = enough & (it.successes <= bounds[..., column])
            columns[rule] = fires if seen is None else fires & seen
    return jnp.stack(columns, axis=-1)


def _row(table: Array, known: Evidence) -> Array:
    """Bounds int32 [evidence + 1, rule, life or 1] for counters [slot, life] -> [slot, life, rule]."""

    def at(index: Array) -> Array:
        if table.shape[-1] == 1:
            return table[..., 0].at[index].get(mode="promise_in_bounds", wrap_negative_indices=False)
        found = table.at[index, :, jnp.arange(index.shape[-1], dtype=jnp.int32)].get(mode="promise_in_bounds")
        return found

    here = at(known.whole)
    if known.fraction is None:
        return here
    above = at(jnp.minimum(known.whole + 1, jnp.int32(table.shape[0] - 1)))
    return mix(here, above, known.fraction[..., None])


def candidates(config: Config, status: Array, acts: Array, restored: Array) -> tuple[Array, Array]:
    """(memories whose status changes, bool, the status they take), [..., life]."""
    to = jnp.int32(roster.GONE if config.governance == "deprecate" else roster.SUPPRESSED)
    down, up = acts & (status < to), restored & ~acts & (status == roster.SUPPRESSED)
    return down | up, jnp.where(up, jnp.int32(roster.ACTIVE), to)


def too_few(config: Config, found: Roster, status: Array, to: Array) -> Array:
    """Would this leave fewer active memories than a retrieved set needs? bool [life]."""
    return (status == roster.ACTIVE) & (to != roster.ACTIVE) & (found.active <= jnp.int32(config.num_retrieved))
