"""The same model as a plain NumPy loop: the oracle of the tests and the peer of the benchmark. No jax.

It is written from the definitions, not from the simulation, and consumes the same words: integers must agree exactly,
floats to rounding.
"""

from mwjax.reference.loop import Life, simulate
from mwjax.reference.retrieval import subset
from mwjax.reference.words import EPISODE, SCORE, threefry2x32, words

__all__ = ["EPISODE", "SCORE", "Life", "simulate", "subset", "threefry2x32", "words"]
