"""Formats of logs, and the options that say what is where in them: names and meanings only, loads nothing."""

from __future__ import annotations

from collections.abc import Mapping

FIELDS = {
    "id": "of the memories an episode retrieved",
    "outcome": "of the episode: 1, 0, true, false or null (not known), or what --success says",
    "episode": "its id; rows of a table with the same one are one episode; what two files are joined on",
    "score": "relevance of a retrieved memory, a number",
    "propensity": "probability that it was retrieved, above 0, up to 1",
    "verdict": "of one memory: helpful, not, unused; null: the outcome of the episode",
    "context": "text or an integer",
    "time": "seconds since 1970 or ISO 8601",
    "unit": "the independent unit an episode belongs to: a session, a task",
    "opponent": "what tells the two sides of a unit apart",
    "success": "not a field: what counts as success, values between commas or a comparison such as >=0.5",
    "failure": "not a field: the values that count as failure, of others none may be there",
    "records": "JMESPath from a JSON document to the list of its episodes",
    "join_episode": "the episode's id in the joined file",
    "retrieved": "JSON Lines only: the list of memories",
}
"""Option -> meaning. Its value names a field of the record (jsonl), a column (csv, parquet) or is a JMESPath (json)."""

FORMATS = {
    "auto": "by the suffix and the first record",
    "jsonl": "canonical JSON Lines",
    "json": "any JSON or JSON Lines, by JMESPath",
    "csv": "one row a retrieved memory",
    "parquet": "one row a retrieved memory",
    "ace": "ACE usage log, JSON Lines",
    "ace_playbook": "ACE playbook, text: counters only",
    "remnic": "Remnic memory files, one .md or a folder of them: counters only",
    "remnic_trajectories": "Remnic trajectories, JSON",
    "memex": "memex rows, JSON, JSON Lines, CSV or Parquet: counters only",
    "openinference": "OpenInference spans, JSON or JSON Lines, with the outcomes joined on the trace",
    "randomised": "log with randomised inclusion, JSON Lines",
}
COUNTERS_ONLY = ("ace_playbook", "remnic", "memex")

PRESETS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "ace": ("jsonl", {"episode": "sample_id", "retrieved": "bullet_ids_used", "outcome": "is_correct"}),
    "remnic_trajectories": (
        "json",
        {
            "records": "trajectories",
            "episode": "taskId",
            "id": "factIds",
            "outcome": "outcome",
            "success": "success",
            "failure": "fail,failure",
        },
    ),
}
"""Format -> (the format it is an instance of, its fields). What the user names goes before."""
