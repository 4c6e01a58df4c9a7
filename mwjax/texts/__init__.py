"""Texts as a world: memories, queries and keyword answers out of a TOML, and the vectors that retrieval goes by."""

from mwjax.texts.corpus import KINDS, Corpus, built_in, digest, find, holds, read
from mwjax.texts.tables import READERS, Known, alone, known, own_rate, p_plus, ranked, success, tables

__all__ = [
    "KINDS",
    "READERS",
    "Corpus",
    "Known",
    "alone",
    "built_in",
    "digest",
    "find",
    "holds",
    "known",
    "own_rate",
    "p_plus",
    "ranked",
    "read",
    "success",
    "tables",
]
