"""Results as text: the tables of a run, of a sweep and of `reproduce`, readable at 80 columns and through a pipe."""

from mwjax.report.sweeps import print_sensitivity, print_sweep, sweep_json
from mwjax.report.tables import closed_spearman, print_reproduce, print_run

__all__ = ["closed_spearman", "print_reproduce", "print_run", "print_sensitivity", "print_sweep", "sweep_json"]
