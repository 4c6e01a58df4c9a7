"""Real logs: what they say of each memory, how sure that is, and what a rule would have done."""

from mwjax.replay.entangled import intervals
from mwjax.replay.records import Homogeneity, Report, report_csv, report_json
from mwjax.replay.whole import Options, episodes, homogeneity, read, replay

__all__ = [
    "Homogeneity", "Options", "Report", "episodes", "homogeneity", "intervals", "read", "replay", "report_csv",
    "report_json",
]  # fmt: skip
