"""Which memories an episode shows."""

from mwjax.retrieval.base import Retrieval
from mwjax.retrieval.pairs import diverse, pairs
from mwjax.retrieval.ranked import blend, epsilon_greedy, thompson
from mwjax.retrieval.softmax import softmax
from mwjax.retrieval.uniform import pools, subset, uniform

__all__ = [
    "Retrieval",
    "blend",
    "diverse",
    "epsilon_greedy",
    "pairs",
    "pools",
    "softmax",
    "subset",
    "thompson",
    "uniform",
]
