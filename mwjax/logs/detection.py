"""Which format a log has, by its suffix and how it begins."""

from __future__ import annotations

import re
from pathlib import Path

from mwjax.logs import lines
from mwjax.logs.source import Source

START_BYTES = 1 << 16
SUFFIXES = {".csv": "csv", ".tsv": "csv", ".parquet": "parquet", ".pq": "parquet"}
SIGNS = {
    "ace": rb'"bullet_ids_used"\s*:',
    "randomised": rb'"candidate_ids"\s*:',
    "remnic_trajectories": rb'"trajectories"\s*:',
    "memex": rb'"success_co_count"\s*:',
    "openinference": rb'openinference\.span\.kind|"openinference"\s*:',
    "ace_playbook": rb"(?m)^\s*(?:[-*]\s+)?\[[^\]\n]+\]\s+helpful=\d",
    "remnic": rb"\A---\s",
    "jsonl": rb'"retrieved"\s*:',
}
"""Format -> what only its files hold near their start; the first that fits."""


def detect(source: Source) -> str:
    """The format of a source whose format is "auto"."""
    path = Path(source.path)
    if path.is_dir():
        return "remnic" if any(path.rglob("*.md")) else "jsonl"
    with lines.open_bytes(path) as file:
        start = file.read(START_BYTES)
    if start.startswith(b"PAR1"):
        return "parquet"
    if path.suffix.lower() in SUFFIXES:
        header = start.partition(b"\n")[0]
        return "memex" if b"success_co_count" in header else SUFFIXES[path.suffix.lower()]
    if "id" in source.fields and not source.fields["id"].isidentifier():
        return "json"
    found = next((name for name, sign in SIGNS.items() if re.search(sign, start)), None)
    return found or ("json" if "id" in source.fields else "jsonl")
