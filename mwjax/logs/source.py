"""Where a log lies and how it is to be read: the one record of options, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from mwjax.formats import COUNTERS_ONLY, FIELDS, FORMATS
from mwjax.types import InputError


@dataclass(frozen=True)
class Source:
    """A log. Raises InputError for a format or a field that is not known."""

    path: str | Path
    format: str = "auto"
    fields: Mapping[str, str] = field(
        default_factory=lambda: MappingProxyType({})
    )  # option -> name or path, see FIELDS
    join: str | Path | None = None  # a second file with the outcomes (JSON, JSON Lines, CSV, Parquet)
    strict: bool = False  # InputError at the first bad line
    weigh_by_score: bool = False  # every memory must have a score from 0 to 1

    def __post_init__(self) -> None:
        """Check the names."""
        if self.format not in FORMATS:
            raise InputError(f"format: {self.format!r}; must be one of {', '.join(FORMATS)}")
        for name, value in self.fields.items():
            if name not in FIELDS:
                raise InputError(f"field: {name!r}; must be one of {', '.join(FIELDS)}")
            if not isinstance(value, str) or not value:
                raise InputError(f"{name}: {value!r}; must be a name or path, as text")
        if "failure" in self.fields and "success" not in self.fields:
            raise InputError(f"failure: {self.fields['failure']!r}; must come with success")
        if self.join is not None and self.format in COUNTERS_ONLY:
            raise InputError(
                f"join: {str(self.join)!r}; must be absent with the format {self.format}, which has counters only"
            )
