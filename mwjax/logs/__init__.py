"""Real logs: formats of agents' own records, read into a Journal or into counters."""

from mwjax.formats import COUNTERS_ONLY, FIELDS, FORMATS
from mwjax.logs.counters import Counters
from mwjax.logs.journal import Candidates, Journal, journal
from mwjax.logs.loading import Loaded, count, load
from mwjax.logs.source import Source
from mwjax.logs.tally import MESSAGE_LIMIT, Tally

__all__ = [
    "COUNTERS_ONLY", "FIELDS", "FORMATS", "MESSAGE_LIMIT", "Candidates", "Counters", "Journal", "Loaded", "Source",
    "Tally", "count", "journal", "load",
]  # fmt: skip
