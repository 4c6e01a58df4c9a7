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
    "store",
    "calibration",
)
"""Those that a Config may name; the first five are taken unless it says otherwise."""
PUBLISHED_CHECKPOINTS = (2_000, 5_000, 10_000)
MAX_RETRIEVED = 255
MAX_EPISODES = UTILITY_ONE - 1
"""Weighted counters are float32 and count exactly to 2**24."""

MAX_EVIDENCE = (1 << 19) - 1
"""Of governance: its tables hold successes in units of 2**-12."""
MAX_FORGETTING = (1 << 16) - 1
"""Counters that forget are fixed-point numbers of 32 bits, 16 of them below one observation."""

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
    num_contextual: int = 0  # the last so many memories have utility 1 - U in every context but the first
    drifts: bool = False  # utilities change with time
    num_queries: int = 0  # of a world of texts (Params.texts), 0 for none
    births: bool = False  # memories join the store with time
    noisy: bool = False  # outcomes may be misreported or missing, memories unused
    unused_as: str = "nothing"  # what an unused memory's retrieval counts as
    delay: int = 0  # episodes until an outcome is known
    window: int = 32  # outcomes that `windowed` worth remembers
    governance: str = "none"  # what a decision does
    restores: bool = False  # suppressed memories come back when the rule no longer acts at theta + hysteresis
    counter: str = "lifetime"  # whose counters the acting rule reads: those of every life, an observer's, or the truth
    theta_mode: str = "absolute"
    scope: str = "pooled"  # the rule reads counters over all contexts, or must act in every context with evidence
    scans: bool = False  # decisions look at all memories, every Params.decide_every episodes
    refits: bool = False  # an empirical-Bayes prior is fitted at every scan
    watched: tuple[str, ...] = ()  # counters that each watching rule reads; they decide, but nothing is done
    max_evidence: int = 0  # of the tables of rules, and of counters that forget

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
        self._check_reports()
        self._check_governance()

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

    def _check_reports(self) -> None:
        check_integer("num_queries", self.num_queries, 0, 1 << 16)
        if self.num_queries and (self.num_pairs or self.num_contextual or not self.drifts):
            raise InputError("texts: need drifts = true, without num_pairs and num_contextual")
        check_integer("num_contextual", self.num_contextual, 0, self.num_memories if self.num_contexts > 1 else 0)
        check_name("unused_as", self.unused_as, ("nothing", "outcome"))
        check_integer("delay", self.delay, 0, 1 << 12)
        check_integer("window", self.window, 1, 1 << 12)

    def _check_governance(self) -> None:
        check_name("governance", self.governance, ("none", "deprecate", "suppress"))
        check_name("theta_mode", self.theta_mode, ("absolute", "relative", "quantile"))
        check_name("scope", self.scope, ("pooled", "every_context"))
        check_integer("max_evidence", self.max_evidence, 0, MAX_EVIDENCE)
        changing = self.births or self.governance != "none"
        if changing and self.retrieval in ("pools", "pairs", "diverse"):
            raise InputError(
                f"retrieval = {self.retrieval!r}: its store cannot change; births and governance need others"
            )
        if changing and self.can_mask:
            raise InputError("masked: removal values need governance = 'none' and no births")
        if (self.governance != "none" or self.watched) and not self.max_evidence:
            raise InputError("max_evidence = 0: rules need num_episodes or more")
        if (self.theta_mode != "absolute" or self.refits) and not self.scans:
            raise InputError("scans = False: a threshold or a prior that moves with the store needs scans")
        if self.scope == "every_context" and self.theta_mode == "quantile":
            raise InputError("theta_mode = 'quantile': needs scope = 'pooled'")

    @property
    def changes(self) -> bool:
        """Memories join or leave the store."""
        return self.births or self.governance != "none"

    @property
    def lossy(self) -> bool:
        """Not every retrieval is evidence at once."""
        return self.noisy or self.delay > 0

    @property
    def context_read(self) -> int:
        """The context that `contextual` worth is read in."""
        return self.num_contexts - 1 if self.target_context is None else self.target_context


def max_episodes(config: Config) -> int:
    """The most episodes that neither a float32 counter nor a 32-bit random address can overflow."""
    most = config.max_evidence or MAX_EPISODES
    return min(most, (2**32 - 1) // max(config.num_memories, 2 * config.num_retrieved + 2))


def checkpoint_grid(num_episodes: int) -> list[int]:
    """The default checkpoints: the published ones and a log-spaced curve, up to and with `num_episodes`."""
    curve = np.geomspace(min(100, num_episodes), num_episodes, 9).round().astype(int).tolist()
    return sorted({mark for mark in (*PUBLISHED_CHECKPOINTS, *curve) if mark <= num_episodes} | {num_episodes})
