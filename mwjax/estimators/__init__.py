"""What an agent believes of its memories: one counter law, and estimators as named settings of it."""

from mwjax.estimators.base import Estimator, Evidence, Tally, counts, new_tally, of_counts, ratio, show, tally
from mwjax.estimators.contextual import backdoor, contextual, residual
from mwjax.estimators.counter import counter, normalised
from mwjax.estimators.forgetting import aged, cusum, discounted, windowed

__all__ = [
    "Estimator",
    "Evidence",
    "Tally",
    "aged",
    "backdoor",
    "contextual",
    "counter",
    "counts",
    "cusum",
    "discounted",
    "new_tally",
    "normalised",
    "of_counts",
    "ratio",
    "residual",
    "show",
    "tally",
    "windowed",
]
