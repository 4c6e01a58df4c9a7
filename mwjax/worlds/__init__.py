"""What the agent cannot change: true utilities, contexts, relevance scores and outcome laws."""

from mwjax.worlds.draws import by_context, context, fixed_point, scores, utilities
from mwjax.worlds.outcomes import Outcome, linear, logistic, mean, uniform_companions

__all__ = [
    "Outcome",
    "by_context",
    "context",
    "fixed_point",
    "linear",
    "logistic",
    "mean",
    "scores",
    "uniform_companions",
    "utilities",
]
