"""Config: what decides the compiled program."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mwjax.checks import check_integer, check_name
from mwjax.types import UTILITY_ONE, InputError

METRICS: tuple[str, ...] = (
    "spearman",
    "rmse",
    "label_count",
    "evidence_quantile",
    "mean_success",
    "starved",
    "compensator",
    "pair_count",
)
"""Those that a Config may name; the first five are taken unless it says otherwise."""
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
    metrics: tuple[str, ...] = METRICS[:5]
    keep_worth: str = "last"
    num_contexts: int = 1
    target_context: int | None = None  # the context that `contextual` worth is read in; None: the last one
    pool_sizes: tuple[int, ...] = ()  # memories of each pool, which follow one another
    pool_slots: tuple[tuple[int, ...], ...] = ()  # [context][pool]: memories of each pool in a set of that context
    num_pairs: int = 0  # memory i < num_pairs is an anchor, num_pairs + i its hitchhiker
    separation_mode: str = "split"
    floor_mode: str = "episode"
    can_mask: bool = False  # Params.masked may name a memory that is never retrieved

    def __post_init__(self) -> None:
        """Check every field at the door."""
        check_integer("num_memories", self.num_memories, 1, 1 << 20)
        check_integer("num_retrieved", self.num_retrieved, 1, min(self.num_memories, MAX_RETRIEVED))
        check_integer("num_checkpoints", self.num_checkpoints, 1, 1 << 16)
        check_name("keep_worth", self.keep_worth, ("last", "all"))
        check_name("utility", self.utility, ("uniform", "beta", "list"))
        check_name("separation_mode", self.separation_mode, ("split", "anchor_only"))
        check_name("floor_mode", self.floor_mode, ("episode", "slot", "none"))
        for metric in self.metrics:
            check_name("metrics", metric, METRICS)
        if not self.observers:
            raise InputError("observers = []: at least one estimator must watch; see `mwjax list estimators`")
        if len(set(self.observers)) < len(self.observers):
            raise InputError(f"observers = {list(self.observers)}: each estimator may be named once")
        if self.actor is not None and self.actor not in self.observers:
            raise InputError(f"actor = {self.actor!r}: the actor must be one of observers {list(self.observers)}")
        check_integer("num_contexts", self.num_contexts, 1, 64)
        if self.target_context is not None:
            check_integer("target_context", self.target_context, 0, self.num_contexts - 1)
        self._check_pools()
        self._check_pairs()

    def _check_pools(self) -> None:
        for size in self.pool_sizes:
            check_integer("pool_sizes", size, 1, self.num_memories)
        if self.pool_sizes and sum(self.pool_sizes) != self.num_memories:
            total = sum(self.pool_sizes)
            raise InputError(f"pool_sizes = {list(self.pool_sizes)}: add up to {total}, must be {self.num_memories}")
        rows = [list(row) for row in self.pool_slots]
        if rows and len(rows) != self.num_contexts:
            raise InputError(f"pool_slots = {rows}: {len(rows)} rows, must be num_contexts = {self.num_contexts}")
        for row in rows:
            if len(row) != len(self.pool_sizes) or sum(row) != self.num_retrieved:
                pools, k = len(self.pool_sizes), self.num_retrieved
                raise InputError(f"pool_slots: row {row} must hold {pools} numbers that add up to num_retrieved = {k}")
            for slots, size in zip(row, self.pool_sizes, strict=True):
                check_integer("pool_slots", slots, 0, size)

    def _check_pairs(self) -> None:
        check_integer("num_pairs", self.num_pairs, 0, self.num_memories // 2)
        if 2 * self.num_pairs > self.num_retrieved:
            halves, k = 2 * self.num_pairs, self.num_retrieved
            raise InputError(f"num_pairs = {self.num_pairs}: {halves} halves need as many slots, num_retrieved is {k}")
        if self.num_memories - self.num_pairs < self.num_retrieved:
            units, k = self.num_memories - self.num_pairs, self.num_retrieved
            raise InputError(
                f"num_pairs = {self.num_pairs}: leaves {units} units, must be at least num_retrieved = {k}"
            )

    @property
    def context_read(self) -> int:
        """The context that `contextual` worth is read in."""
        return self.num_contexts - 1 if self.target_context is None else self.target_context


def max_episodes(config: Config) -> int:
    """The most episodes that neither a float32 counter nor a 32-bit random address can overflow."""
    return min(MAX_EPISODES, (2**32 - 1) // max(config.num_memories, 2 * config.num_retrieved + 2))


def checkpoint_grid(num_episodes: int) -> list[int]:
    """The default checkpoints: the published ones and a log-spaced curve, up to and with `num_episodes`."""
    curve = np.geomspace(min(100, num_episodes), num_episodes, 9).round().astype(int).tolist()
    return sorted({mark for mark in (*PUBLISHED_CHECKPOINTS, *curve) if mark <= num_episodes} | {num_episodes})
