"""The one scan body and the lives it makes."""

from mwjax.episode.advance import advance
from mwjax.episode.lives import begin, live
from mwjax.episode.records import Life, Parts, State, num_pairs

__all__ = ["Life", "Parts", "State", "advance", "begin", "live", "num_pairs"]
