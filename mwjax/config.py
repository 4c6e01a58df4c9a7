"""Config (static: decides shapes and the program) and Params (traced: any leaf may be swept by vmap)."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mwjax.types import UTILITY_ONE, InputError

METRICS = ("spearman", "rmse", "label_count", "evidence_quantile", "mean_success")
PUBLISHED_CHECKPOINTS = (2_000, 5_000, 10_000)
MAX_RETRIEVED = 255
MAX_EPISODES = UTILITY_ONE - 1
"""Weighted counters are float32 and count exactly to 2**24."""

Component = str | Callable[..., Any]
"""A name from the registry, or a factory taking the Config."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """What decides the compiled program. Equal Configs share one compilation."""

    num_memories: int = 100
    num_retrieved: int = 8
    num_checkpoints: int = 1
    utility: str = "uniform"
    outcome: Component = "mean"
    retrieval: Component = "uniform"
    observers: tuple[Component, ...] = ("memory_worth",)
    actor: Component | None = None
    metrics: tuple[str, ...] = METRICS
    keep_worth: str = "last"

    def __post_init__(self) -> None:
        """Check every field at the door."""
        check_integer("num_memories", self.num_memories, 1, 1 << 20)
        check_integer("num_retrieved", self.num_retrieved, 1, min(self.num_memories, MAX_RETRIEVED))
        check_integer("num_checkpoints", self.num_checkpoints, 1, 1 << 16)
        check_name("keep_worth", self.keep_worth, ("last", "all"))
        check_name("utility", self.utility, ("uniform", "list"))
        for metric in self.metrics:
            check_name("metrics", metric, METRICS)
        if not self.observers:
            raise InputError("observers = []: at least one estimator must watch; see `mwjax list estimators`")
        if len(set(self.observers)) < len(self.observers):
            raise InputError(f"observers = {list(self.observers)}: each estimator may be named once")
        if self.actor is not None and self.actor not in self.observers:
            raise InputError(f"actor = {self.actor!r}: the actor must be one of observers {list(self.observers)}")


class Params(NamedTuple):
    """Traced values; every leaf is a scalar unless a shape is given. Make one with `make_params`."""

    checkpoints: Any  # int32 [checkpoint], increasing
    utility_low: Any  # float32 in [0, 1], uniform utilities
    utility_high: Any
    utilities: Any  # uint32 [memory] (24-bit) for utility = "list", else None
    score_low: Any  # float32 in [0, 1], relevance scores are uniform on [score_low, 1]
    prior_a: Any  # float32 >= 0, successes that the Beta read-out starts from
    prior_b: Any
    theta_low: Any  # float32 in [0, 1], labels
    theta_high: Any
    min_evidence: Any  # int32 >= 0


def make_params(
    config: Config,
    *,
    num_episodes: int = 10_000,
    checkpoints: Sequence[int] | None = None,
    utility_low: float = 0.0,
    utility_high: float = 1.0,
    utilities: Sequence[float] | None = None,
    score_low: float = 0.5,
    prior_a: float = 1.0,
    prior_b: float = 1.0,
    theta_low: float = 0.4,
    theta_high: float = 0.6,
    min_evidence: int = 10,
) -> Params:
    """Check every value once and return the traced record. `checkpoints` must have config.num_checkpoints entries."""
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
    for name, low, high in (("utility", utility_low, utility_high), ("theta", theta_low, theta_high)):
        check_number(f"{name}_low", low, 0, 1)
        check_number(f"{name}_high", high, low, 1)
    check_number("score_low", score_low, 0, 1)
    check_number("prior_a", prior_a, 0, 1e6)
    check_number("prior_b", prior_b, 0, 1e6)
    check_integer("min_evidence", min_evidence, 0, 2**31 - 1)
    return Params(
        checkpoints=np.asarray(marks, np.int32),
        utility_low=np.float32(utility_low),
        utility_high=np.float32(utility_high),
        utilities=utility_integers(config, utilities),
        score_low=np.float32(score_low),
        prior_a=np.float32(prior_a),
        prior_b=np.float32(prior_b),
        theta_low=np.float32(theta_low),
        theta_high=np.float32(theta_high),
        min_evidence=np.int32(min_evidence),
    )


def utility_integers(config: Config, utilities: Sequence[float] | None) -> np.ndarray | None:
    """An explicit list of utilities as 24-bit integers, or None when the world draws them."""
    if config.utility != "list":
        if utilities is not None:
            raise InputError(f"utilities: given, but utility = {config.utility!r} draws them; set utility = 'list'")
        return None
    values = [] if utilities is None else list(utilities)
    if len(values) != config.num_memories:
        raise InputError(f"utilities: {len(values)} values, must be num_memories = {config.num_memories}")
    for value in values:
        check_number("utilities", value, 0, 1)
    return np.rint(np.asarray(values, np.float64) * UTILITY_ONE).astype(np.uint32)


def max_episodes(config: Config) -> int:
    """The most episodes that neither a float32 counter nor a 32-bit random address can overflow."""
    return min(MAX_EPISODES, (2**32 - 1) // max(config.num_memories, 2 * config.num_retrieved + 2))


def checkpoint_grid(num_episodes: int) -> list[int]:
    """The default checkpoints: the published ones and a log-spaced curve, up to and with `num_episodes`."""
    curve = np.geomspace(min(100, num_episodes), num_episodes, 9).round().astype(int).tolist()
    return sorted({mark for mark in (*PUBLISHED_CHECKPOINTS, *curve) if mark <= num_episodes} | {num_episodes})


def check_integer(name: str, value: Any, low: int, high: int) -> None:
    """Raise InputError unless `value` is an integer in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise InputError(f"{name} = {value!r}: must be an integer from {low:,} to {high:,}")
    if not low <= value <= high:
        raise InputError(f"{name} = {value}: must be from {low:,} to {high:,}")


def check_number(name: str, value: Any, low: float, high: float) -> None:
    """Raise InputError unless `value` is a finite number in [low, high]."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise InputError(f"{name} = {value!r}: must be a number from {low:g} to {high:g}")
    if not low <= value <= high:  # NaN and infinities fail too
        raise InputError(f"{name} = {value}: must be from {low:g} to {high:g}")


def check_name(name: str, value: Any, allowed: Sequence[str]) -> None:
    """Raise InputError unless `value` is one of the allowed names; suggest the nearest one."""
    if value not in allowed:
        raise InputError(f"{name} = {value!r}: must be one of {', '.join(allowed)}{nearest(value, allowed)}")


def nearest(value: Any, allowed: Iterable[str]) -> str:
    """A suggestion for a misspelt name, or nothing."""
    import difflib

    found = difflib.get_close_matches(str(value), list(allowed), n=1)
    return f"; did you mean {found[0]!r}?" if found else ""
