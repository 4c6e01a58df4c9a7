"""Values of a world that changes, and of outcomes that are misreported, missing or not a memory's doing."""

from __future__ import annotations

from typing import Any

import numpy as np

from mwjax.checks import check_integer, check_number
from mwjax.config.static import Config
from mwjax.types import InputError

MAX_SPAN = 1 << 22
"""Progress of a drift is counted in 256ths of its span, in 31 bits."""


def traced(
    config: Config,
    *,
    num_episodes: int,
    drift_share: float,
    drift_utility: float,
    switch_at: int,
    drift_span: int,
    num_initial: int | None,
    birth_every: int,
    observe_prob: np.ndarray,
    **chances: float,
) -> dict[str, Any]:
    """The fields of Params, every value checked."""
    for name, value in {"drift_share": drift_share, "drift_utility": drift_utility, **chances}.items():
        check_number(name, value, 0, 1)
    check_integer("switch_at", switch_at, 0, 2**31 - 1)
    check_integer("drift_span", drift_span, 1, MAX_SPAN)
    check_integer("birth_every", birth_every, 1, 2**31 - 1)
    initial = config.num_memories if num_initial is None else num_initial
    check_integer("num_initial", initial, config.num_retrieved, config.num_memories)
    if initial < config.num_memories and not config.births:
        raise InputError(f"num_initial = {initial}: needs births = true, or must be num_memories")
    if drift_share and not config.drifts:
        raise InputError(f"drift_share = {drift_share}: needs drifts = true")
    usual = {"flip_prob": 0, "unused_prob": 0, "observe_success": 1, "observe_failure": 1}
    odd = [name for name, value in usual.items() if chances[name] != value]
    odd += ["observe_prob"] if (observe_prob != 1).any() else []
    if odd and not config.noisy:
        raise InputError(f"{odd[0]}: needs noisy = true")
    return {
        "drifting": np.int32(int(drift_share * config.num_memories)),
        "drift_utility": np.float32(drift_utility),
        "switch_at": np.int32(switch_at),
        "drift_span": np.int32(drift_span),
        "num_initial": np.int32(initial),
        "birth_every": np.int32(birth_every),
        "observe_prob": observe_prob.astype(np.float32),
        **{name: np.float32(value) for name, value in chances.items()},
    }
