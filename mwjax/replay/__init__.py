"""Real logs: what they say of each memory, how sure that is, and what a rule would have done."""

from mwjax.replay.records import Homogeneity, Report, report_csv, report_json
from mwjax.replay.whole import homogeneity, intervals, replay

__all__ = ["Homogeneity", "Report", "homogeneity", "intervals", "replay", "report_csv", "report_json"]
