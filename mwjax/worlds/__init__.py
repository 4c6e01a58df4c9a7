"""What the agent cannot change: true utilities, contexts, relevance scores and outcome laws."""

from mwjax.worlds import texts
from mwjax.worlds.changes import born, current, exchange, report, ring, turn, used
from mwjax.worlds.draws import by_context, context, fixed_point, scores, utilities
from mwjax.worlds.outcomes import Outcome, linear, logistic, mean, uniform_companions
from mwjax.worlds.products import best, first, noisy_or, top_ranked, weakest_link

__all__ = [
    "Outcome",
    "best",
    "born",
    "by_context",
    "context",
    "current",
    "exchange",
    "first",
    "fixed_point",
    "linear",
    "logistic",
    "mean",
    "noisy_or",
    "report",
    "ring",
    "scores",
    "texts",
    "top_ranked",
    "turn",
    "uniform_companions",
    "used",
    "utilities",
    "weakest_link",
]
