"""Values of counters that forget, as integers, so that NumPy, CPU and GPU forget alike."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from mwjax.checks import check_number
from mwjax.config.static import Config
from mwjax.types import InputError

WHOLE = 1 << 32
NATS = 1 << 16


def traced(config: Config, *, discount: float, half_life: float, cusum: tuple[float, float, float]) -> dict[str, Any]:
    """discount_loss, aging and cusum of Params."""
    check_number("discount", discount, 0, 1)
    check_number("half_life", half_life, 0.1, 1e9)
    good, bad, limit = cusum
    check_number("cusum_good", good, 0.01, 0.99)
    check_number("cusum_bad", bad, 0.01, 0.99)
    check_number("cusum_limit", limit, 0.1, 1_000)
    if bad >= good:
        raise InputError(f"cusum_bad = {bad}: must be below cusum_good = {good}")
    age: Any = np.arange(config.max_evidence + 1, dtype=np.float64)
    steps = (math.log((1 - bad) / (1 - good)), math.log(bad / good), limit)
    return {
        "discount_loss": np.uint32(min(round((1 - discount) * WHOLE), WHOLE - 1)),
        "aging": np.minimum(np.rint(-np.expm1(-age * math.log(2) / half_life) * WHOLE), WHOLE - 1).astype(np.uint32),
        "cusum": np.rint(np.array(steps) * NATS).astype(np.int32),
    }
