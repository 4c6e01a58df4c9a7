"""What an agent believes of its memories: one counter law, and estimators as named settings of it."""

from mwjax.estimators.base import Estimator, Tally, counts, new_tally, ratio, tally
from mwjax.estimators.contextual import backdoor, contextual, residual
from mwjax.estimators.counter import counter, normalised

__all__ = [
    "Estimator",
    "Tally",
    "backdoor",
    "contextual",
    "counter",
    "counts",
    "new_tally",
    "normalised",
    "ratio",
    "residual",
    "tally",
]
