"""The records that travel through an episode, and the glossary of axis names.

Axes: `memory` (one stored item), `retrieved` (a slot of the retrieved set), `life` (one configuration and one seed),
`checkpoint`, `estimator`. Inside the simulation the `life` axis is always the last one: elementwise code and reductions
over the leading axis then serve one life and thousands alike, and vectorise.

Truth (`utility`, p+) is stored exactly: a utility U* in [0, 1] is the integer U* x 2**24.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from jax import Array

UTILITY_ONE = 1 << 24
"""The integer that stands for a utility of 1."""

TRUTHS = ("low", "mixed", "high")
LABELS = ("low", "mixed", "high", "uncertain")
TRUTH_SCALES = ("p_plus", "utility")
"""What a label is judged by: the success probability p+ it estimates, or the true utility U*."""


class InputError(ValueError):
    """A value from outside is wrong; the message is one line that names field, value, allowed range and place."""


NOT_YET: Any = None


class Counts(NamedTuple):
    """Integer counters, int32: of memories [memory, life], of memories by context and of the episodes by context."""

    shown: Array  # [memory, life], retrievals
    evidence: Array  # [memory, life], retrievals whose outcome has been applied
    successes: Array  # [memory, life], evidence that ended in success
    context_evidence: Array  # [context, memory, life]
    context_successes: Array  # [context, memory, life]
    episodes: Array  # [context, life], episodes so far
    episode_successes: Array  # [context, life], those that succeeded


class Roster(NamedTuple):
    """Which memories may be retrieved. `order` lists the active ones, then the suppressed, then those that are gone."""

    order: Array  # int32, a table of one entry a memory: memories by place
    place: Array  # int32, a table: where each memory stands in `order`
    active: Array  # int32 [life], how many are active
    live: Array  # int32 [life], active or suppressed


class Step(NamedTuple):
    """What is known of the current episode. A field is None until its stage has run, so no component can look ahead."""

    episode: Array  # int32 [], 0-based
    context: Array = NOT_YET  # int32 [life], index of the task type
    roster: Roster | None = None  # before the episode; None: all memories are active for the whole life
    counts: Counts = NOT_YET  # before the episode
    worth: Array = NOT_YET  # float32 [memory, life], the actor's worth before the episode
    lot: Array = NOT_YET  # uint32 [memory, life], a random word of each memory
    retrieved: Array = NOT_YET  # int32 [retrieved, life], without repetition
    utility: Array = NOT_YET  # uint32 [retrieved, life], true utilities (24-bit): for oracles and outcome laws only
    score: Array = NOT_YET  # float32 [retrieved, life], relevance of each retrieved memory
    chance: Array = NOT_YET  # uint32 [life], 2**24 Pr[success]: for the compensator only
    success: Array = NOT_YET  # bool [life], as it is reported
    heard: Array | None = None  # bool [life], there is a report; None: in every life
    seen: Array | None = None  # bool [retrieved, life], this outcome is evidence for the memory; None: for all of them
    active: Array | None = None  # bool [retrieved, life], neither suppressed nor gone; None: all are active
    new_worth: Array = NOT_YET  # float32 [retrieved, life], the actor's worth of the retrieved ones after the episode


class Health(NamedTuple):
    """Trouble met inside the compiled program, counted there and raised by the host."""

    non_finite_worth: Array  # int32 [life], worth values that were NaN or infinite at a checkpoint
    held_back: Array  # int32 [life], decisions not carried out, since fewer than num_retrieved would be left


class Trace(NamedTuple):
    """What one life leaves behind (leading axes as written; a batch of lives puts its own axes in front)."""

    checkpoint: Array  # int32 [checkpoint], episodes completed
    metrics: dict[str, Array]  # see metrics.measure
    utility: Array  # uint32 [memory], true utilities (24-bit)
    p_plus: Array  # float32 [memory], NaN where it has no closed form
    counts: Counts  # after the last episode
    shown_at: Array | None  # int32 [checkpoint, memory], retrievals, where utilities drift
    expected_hits: Array | None  # float32 [memory], sum of Pr[success] over the retrievals, if metrics say compensator
    worth: Array  # float32 [estimator, memory] at the last checkpoint, or [checkpoint, estimator, memory] if kept
    decisions: Array | None  # int32 [rule, decision, memory], see governance.DECISIONS; the acting rule comes first
    calibration: Array | None  # int32 [forecaster, outcome, level], outcomes by forecast; the base rate comes last
    health: Health


Pytree = Any
