"""Results as text: tables of a run, a sweep, a replay and of `reproduce`, readable at 80 columns and in a pipe."""

from mwjax.report.governance import print_compare
from mwjax.report.replay import print_replay
from mwjax.report.sweeps import print_sensitivity, print_sweep, sweep_json
from mwjax.report.tables import closed_spearman, print_reproduce, print_run

__all__ = [
    "closed_spearman",
    "print_compare",
    "print_replay",
    "print_reproduce",
    "print_run",
    "print_sensitivity",
    "print_sweep",
    "sweep_json",
]
