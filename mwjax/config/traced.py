"""Params: the traced values of a Config, and their ranges."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from mwjax.checks import check_integer, check_number
from mwjax.config import forgetting, governed, reports, tables
from mwjax.config import texts as texts_
from mwjax.config.static import Config, checkpoint_grid, max_episodes
from mwjax.rules import Knobs
from mwjax.types import UTILITY_ONE, InputError

Numbers = float | Sequence[float]


class Params(NamedTuple):
    """Traced values; every leaf is a scalar unless a shape is given. Make one with `make_params`."""

    checkpoints: Any  # int32 [checkpoint], increasing
    utility_low: Any  # float32 in [0, 1], uniform utilities; [pool] where the Config has pools
    utility_high: Any
    utilities: Any  # uint32 [memory] (24-bit) for utility = "list", quantiles for "beta", else None
    anchor_utility: Any  # float32 in [0, 1], of every pair's anchor and hitchhiker
    hitchhiker_utility: Any
    base_success: Any  # float32 [context], Pr[success] at mean utility 0.5
    gain: Any  # float32 in [0, 8], change of Pr[success] with mean utility
    link: Any  # uint32 [level, context], 2**24 Pr[success] at floor(4096 mean utility) under outcome = "logistic"
    context_share: Any  # float32 [context], Pr[context]
    weights: Any  # float32 [level], softmax weight at floor(4096 worth)
    exploration_floor: Any  # float32 in [0, 1]
    similarity_weight: Any  # float32 in [0, 1], of similarity against worth
    separation: Any  # float32 in [0, 1], share of a pair's episodes that show one of the two without the other
    diversity: Any  # float32 in [0, 1], the share that `diverse` retrieval sees to
    masked: Any  # int32, a memory that is never retrieved, or -1
    score_low: Any  # float32 in [0, 1], relevance scores are uniform on [score_low, 1]
    prior_a: Any  # float32 >= 0, successes that Beta read-outs and rules start from
    prior_b: Any
    theta_low: Any  # float32 in [0, 1], labels
    theta_high: Any
    min_evidence: Any  # int32 >= 0
    drifting: Any  # int32, memories 0, 1, ... whose utility changes
    drift_utility: Any  # float32 in [0, 1], what it becomes
    switch_at: Any  # int32, the first episode of the change
    drift_span: Any  # int32 >= 1, episodes that the change takes
    num_initial: Any  # int32, memories that are there at first
    birth_every: Any  # int32 >= 1, episodes between two births
    flip_prob: Any  # float32 in [0, 1], an outcome is reported as its opposite
    observe_prob: Any  # float32 [context] in [0, 1], an outcome is reported at all
    observe_success: Any  # float32 in [0, 1], factor of that for successes and for failures
    observe_failure: Any
    unused_prob: Any  # float32 in [0, 1], a retrieved memory has no part in the outcome
    discount_loss: Any  # uint32, 2**32 (1 - discount), of each observation
    aging: Any  # uint32 [episode + 1], 2**32 (1 - 2**(-age / half_life)), of the counters that forget with time
    cusum: Any  # int32 [3], in 2**-16 nats: added at a failure, at a success, and the limit
    rules: Any  # governed.RuleTables
    texts: Any = None  # TextTables of a world of texts, else None


def make_params(
    config: Config,
    *,
    num_episodes: int = 10_000,
    checkpoints: Sequence[int] | None = None,
    utility_low: Numbers = 0.0,
    utility_high: Numbers = 1.0,
    utility_a: float = 1.0,
    utility_b: float = 1.0,
    utilities: Sequence[float] | None = None,
    anchor_utility: float = 0.9,
    hitchhiker_utility: float = 0.05,
    base_success: Numbers = 0.5,
    gain: float = 1.0,
    context_share: Sequence[float] | None = None,
    hard_share: float | None = None,
    temperature: float = 1.0,
    exploration_floor: float = 0.0,
    similarity_weight: float = 0.5,
    separation: float = 0.0,
    diversity: float = 0.0,
    masked: int = -1,
    score_low: float = 0.5,
    prior_a: float = 1.0,
    prior_b: float = 1.0,
    theta_low: float = 0.4,
    theta_high: float = 0.6,
    min_evidence: int = 10,
    drift_share: float = 0.0,
    drift_utility: float = 0.1,
    switch_at: int = 0,
    drift_span: int = 1,
    num_initial: int | None = None,
    birth_every: int = 1,
    flip_prob: float = 0.0,
    observe_prob: Numbers = 1.0,
    observe_success: float = 1.0,
    observe_failure: float = 1.0,
    unused_prob: float = 0.0,
    discount: float = 0.98,
    half_life: float = 1_000.0,
    cusum_good: float = 0.6,
    cusum_bad: float = 0.3,
    cusum_limit: float = 4.0,
    rule: str = "none",
    theta: float = 0.3,
    delta: float = 0.05,
    alpha: float = 0.05,
    hysteresis: float = 0.0,
    decide_every: int = 1,
    watchers: Sequence[str] = (),
    texts: texts_.TextTables | None = None,
) -> Params:
    """Check every value once and return the traced record. `checkpoints` must have config.num_checkpoints entries.

    One number stands for a list of equal ones: utility_low and utility_high (a pool), base_success (a context).
    """
    check_number("temperature", temperature, tables.MIN_TEMPERATURE, 1e6)
    unit = {"exploration_floor": exploration_floor, "similarity_weight": similarity_weight, "separation": separation}
    unit |= {"diversity": diversity, "score_low": score_low, "anchor_utility": anchor_utility}
    unit |= {"hitchhiker_utility": hitchhiker_utility, "theta_low": theta_low}
    for name, value in unit.items():
        check_number(name, value, 0, 1)
    check_number("theta_high", theta_high, theta_low, 1)
    check_number("gain", gain, 0, 8)
    if config.floor_mode == "none" and exploration_floor != 0:
        raise InputError(f"exploration_floor = {exploration_floor}: must be 0 where floor_mode is 'none'")
    for name, value in {"prior_a": prior_a, "prior_b": prior_b}.items():
        check_number(name, value, 0, 1e6)
    check_integer("min_evidence", min_evidence, 0, 2**31 - 1)
    check_integer("masked", masked, -1, config.num_memories - 1 if config.can_mask else -1)
    changes = reports.traced(
        config, num_episodes=num_episodes, drift_share=drift_share, drift_utility=drift_utility, switch_at=switch_at,
        drift_span=drift_span, num_initial=num_initial, birth_every=birth_every, flip_prob=flip_prob,
        observe_prob=_numbers("observe_prob", observe_prob, config.num_contexts, "num_contexts"),
        observe_success=observe_success, observe_failure=observe_failure, unused_prob=unused_prob,
    )  # fmt: skip
    forgets = forgetting.traced(
        config, discount=discount, half_life=half_life, cusum=(cusum_good, cusum_bad, cusum_limit)
    )
    knobs = Knobs(theta, delta, alpha, prior_a, prior_b, min_evidence)
    base = _numbers("base_success", base_success, config.num_contexts, "num_contexts")
    low, high = _utility_bounds(config, utility_low, utility_high)
    return Params(
        checkpoints=_marks(config, num_episodes, checkpoints),
        utility_low=low,
        utility_high=high,
        utilities=_utility_table(config, utilities, utility_a, utility_b),
        base_success=base.astype(np.float32),
        gain=np.float32(gain),
        link=tables.logistic_thresholds(base, gain),
        context_share=_context_share(config, context_share, hard_share),
        weights=tables.softmax_weights(temperature),
        masked=np.int32(masked),
        prior_a=np.float32(prior_a),
        prior_b=np.float32(prior_b),
        theta_high=np.float32(theta_high),
        min_evidence=np.int32(min_evidence),
        rules=governed.tables(config, rule, knobs, hysteresis, decide_every, tuple(watchers)),
        texts=texts_.traced(config, texts),
        **changes,
        **forgets,
        **{name: np.float32(value) for name, value in unit.items()},
    )


def _marks(config: Config, num_episodes: int, checkpoints: Sequence[int] | None) -> np.ndarray:
    check_integer("num_episodes", num_episodes, 1, max_episodes(config))
    marks = checkpoint_grid(num_episodes) if checkpoints is None else list(checkpoints)
    if checkpoints is None and config.num_checkpoints == 1:
        marks = [num_episodes]
    if len(marks) != config.num_checkpoints:
        raise InputError(f"checkpoints = {marks}: the Config has num_checkpoints = {config.num_checkpoints}")
    for mark in marks:
        check_integer("checkpoints", mark, 1, num_episodes)
    if marks[-1] != num_episodes or any(a >= b for a, b in itertools.pairwise(marks)):
        raise InputError(f"checkpoints = {marks}: must increase and end at num_episodes = {num_episodes}")
    return np.asarray(marks, np.int32)


def _numbers(name: str, value: Numbers, size: int, of: str, low: float = 0, high: float = 1) -> np.ndarray:
    """One number or `size` of them, float64 [size]."""
    values = list(value) if isinstance(value, list | tuple | np.ndarray) else [value] * size
    if len(values) != size:
        raise InputError(f"{name} = {values}: {len(values)} values, must be one or {of} = {size}")
    for one in values:
        check_number(name, one, low, high)
    return np.asarray(values, np.float64)


def _utility_bounds(config: Config, low: Numbers, high: Numbers) -> tuple[np.ndarray, np.ndarray]:
    """float32, [pool] where the Config has pools, else []."""
    pools = len(config.pool_sizes) or 1
    lows, highs = (
        _numbers(f"utility_{end}", x, pools, "the number of pools") for end, x in (("low", low), ("high", high))
    )
    for least, most in zip(lows.tolist(), highs.tolist(), strict=True):
        check_number("utility_high", most, least, 1)
    shape = (pools,) if config.pool_sizes else ()
    return lows.astype(np.float32).reshape(shape), highs.astype(np.float32).reshape(shape)


def _utility_table(config: Config, utilities: Sequence[float] | None, a: float, b: float) -> np.ndarray | None:
    """An explicit list of utilities as 24-bit integers, the quantiles of a Beta law, or None where none is needed."""
    check_number("utility_a", a, 0.01, 1e6)
    check_number("utility_b", b, 0.01, 1e6)
    if config.utility != "list":
        if utilities is not None:
            raise InputError(f"utilities: given, but utility = {config.utility!r} draws them; set utility = 'list'")
        return tables.beta_quantiles(a, b) if config.utility == "beta" else None
    values = [] if utilities is None else list(utilities)
    if len(values) != config.num_memories:
        raise InputError(f"utilities: {len(values)} values, must be num_memories = {config.num_memories}")
    for value in values:
        check_number("utilities", value, 0, 1)
    return np.rint(np.asarray(values, np.float64) * UTILITY_ONE).astype(np.uint32)


def _context_share(config: Config, shares: Sequence[float] | None, hard_share: float | None) -> np.ndarray:
    """Pr[context], float32 [context]; equal unless given, `hard_share` being that of the last of two contexts."""
    contexts = config.num_contexts
    if hard_share is not None:
        check_number("hard_share", hard_share, 0, 1)
        if shares is not None or contexts != 2:
            raise InputError(
                f"hard_share = {hard_share}: is for two contexts and without context_share; here {contexts}"
            )
        shares = [1 - hard_share, hard_share]
    values = _numbers(
        "context_share", [1 / contexts] * contexts if shares is None else shares, contexts, "num_contexts"
    )
    if abs(values.sum() - 1) > 1e-6:
        raise InputError(f"context_share = {values.tolist()}: adds up to {values.sum():g}, must be 1")
    return values.astype(np.float32)
