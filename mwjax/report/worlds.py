"""What a result says in words about pairs, feedback, contexts, and the assumptions under which worth converges."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import xarray

from mwjax import theory
from mwjax.results import per_life, statistics

CLOSED_LOOP = ("softmax", "thompson", "epsilon_greedy", "blend")
STARVED = 0.01
"""From this share of starved memories on it is said."""


def lines(dataset: xarray.Dataset, config: Mapping[str, Any]) -> Iterator[str]:
    """Everything there is to say at the end of the lives."""
    found = {name: statistics(values) for name, values in per_life(dataset)}
    value = lambda name: _value(found, name)
    if "pair_count" in dataset:
        yield from _pairs(dataset, config, value)
    if "compensator" in found:
        yield from _feedback(config, found, value)
    if "starved" in found and found["starved"][0][-1] >= STARVED:
        share, least = found["starved"][0][-1], config["min_evidence"]
        yield (
            f"Starvation: {share:.0%} of the memories end below min_evidence = {least}; what retrieval "
            "neglects is never judged. Raise exploration_floor or temperature, or spread the floor over slots."
        )
    yield from assumptions(config)


def _value(found: Mapping[str, tuple[np.ndarray, ...]], name: str) -> str:
    mean, _, low, high = (one[-1] for one in found[name])
    return f"{mean:.4f}" + (f" ({low:.4f}..{high:.4f})" if np.isfinite(low) else "")


def _pairs(dataset: xarray.Dataset, config: Mapping[str, Any], value: Callable[[str], str]) -> Iterator[str]:
    yield f"Worth: anchor {value('memory_worth.anchor_worth')}, hitchhiker {value('memory_worth.hitchhiker_worth')}"
    closed = ""
    if config["retrieval"] == "pairs" and config["num_pairs"] == 1 and config["outcome"] in ("mean", "linear"):
        ends = {"anchor": config["anchor_utility"], "hitchhiker": config["hitchhiker_utility"]}
        ends |= {"gain": 1.0 if config["outcome"] == "mean" else config["gain"], "mode": config["separation_mode"]}
        size = config["num_memories"], config["num_retrieved"], config["separation"]
        gap = theory.hitchhiker.gap(*size, **ends)
        above = theory.hitchhiker.anchor_above_normal(*size, num_episodes=config["num_episodes"], **ends)
        closed = f"; closed forms {gap:.4f} and {above:.3f}"
    yield (
        f"Gap {value('memory_worth.gap')}; Pr[anchor above, ties half] {value('memory_worth.anchor_above')}"
        f"{closed}; intervals disjoint in {value('memory_worth.disjoint')}"
    )
    if "removal_value" in dataset:
        each = [f"memory {m} {value(f'removal_value.{m}')}" for m in dataset.removed.values]
        yield f"Removal value (mean success less that without it, same words): {', '.join(each)}"


def _feedback(config: Mapping[str, Any], found: Mapping[str, Any], value: Callable[[str], str]) -> Iterator[str]:
    yield f"hits - expected_hits, a martingale of mean 0: {value('compensator')} a memory"
    if "memory_worth.bias_p_plus" in found:
        yield (
            f"hits / n less the static p+: {value('memory_worth.bias_p_plus')}, in the least shown quarter "
            f"{value('memory_worth.bias_p_plus_rare')}; its 95 % intervals cover p+ in "
            f"{value('memory_worth.coverage_p_plus')}"
        )
    yield (
        f"hits / n less expected_hits / n: {value('memory_worth.bias_expected')}; covered in "
        f"{value('memory_worth.coverage_expected')}"
    )


def assumptions(config: Mapping[str, Any]) -> Iterator[str]:
    """Which assumption of Theorem 4.1 (worth converges to p+) the settings break, and what worth means then."""
    base = np.ravel(config["base_success"])
    if config["num_contexts"] > 1 and config["retrieval"] == "pools" and np.ptp(base) > 0:
        yield (
            "Breaks A3 (retrieval and outcome independent given the history): the task decides both. Worth converges "
            "to p+ over the tasks that call for a memory, not to what it adds; residual worth takes the task out."
        )
    if config.get("texts"):
        yield (
            "Breaks A3 (retrieval and outcome independent given the history): the query decides both. Worth converges "
            "to p+ over the queries that call for a memory and its companions, not to what its own text answers."
        )
    if config["retrieval"] in ("pairs", "diverse"):
        yield (
            "Breaks independence within the set: paired memories share their companions. Worth still converges to p+, "
            "but p+ is not what a memory adds: its removal value is."
        )
    if config["retrieval"] in CLOSED_LOOP:
        floor = config["exploration_floor"] > 0
        yield (
            f"{'Floor kept' if floor else 'No floor (every memory retrieved for ever)'}; retrieval follows worth, so "
            "companions improve with time: hits / n converges to expected_hits / n, not to the static p+."
        )
