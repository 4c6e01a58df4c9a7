"""What a text world looks up: similarities, answers and query frequencies as integer tables made on the host."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mwjax.config.static import Config
from mwjax.types import InputError

PHASES = 2
"""Before Params.switch_at, and from then on."""


class TextTables(NamedTuple):
    """Flat tables, the last index fastest; see texts.tables for how they are made."""

    limits: Any  # uint32 [phase x query], 2**24 Pr[a query up to and with this one]
    similarity: Any  # uint32 [query x memory], 24-bit: cosine of the vectors, 0 where that is negative
    answers: Any  # uint32 [phase x query x memory], 2**24 where the memory's text holds the answer, else 0
    own: Any  # uint32 [phase x memory], 24-bit: how often its own text does, in the queries that call for it
    group: Any  # int32 [query], the task type


def shapes(config: Config) -> TextTables:
    """The length of every table."""
    queries, memories = config.num_queries, config.num_memories
    return TextTables(PHASES * queries, queries * memories, PHASES * queries * memories, PHASES * memories, queries)


def blank(config: Config) -> TextTables | None:
    """Empty tables of the right shapes; None in other worlds."""
    if not config.num_queries:
        return None
    empty = TextTables(*(np.zeros(size, np.uint32) for size in shapes(config)))
    return empty._replace(group=empty.group.astype(np.int32))


def traced(config: Config, texts: TextTables | None) -> TextTables | None:
    """The tables, if they are those of the Config."""
    if texts is None and not config.num_queries:
        return None
    sizes = None if texts is None else TextTables(*(np.asarray(one).size for one in texts))
    if sizes != (shapes(config) if config.num_queries else None):
        raise InputError(f"texts: tables of sizes {sizes} do not fit num_queries = {config.num_queries}")
    return texts
