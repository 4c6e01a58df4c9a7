"""What the commands take that read a log."""

from __future__ import annotations

import argparse
from collections.abc import Callable

from mwjax.cli.options import knobs, number, whole


def add(command: Callable[..., argparse.ArgumentParser]) -> None:
    """The commands that read a log."""
    it = command(
        "replay",
        "What a log says of its memories: worth and how sure it is, who rides along, what went stale.",
        "mwjax replay log.jsonl",
        "mwjax replay clicks.csv --id item --outcome click --episode request --rule beta --theta 0.1 --out results/log",
    )
    _log(it)
    it.add_argument(
        "--estimator",
        default="memory_worth",
        metavar="NAME",
        help="of the worth; from `mwjax list estimators` (default: %(default)s)",
    )
    for option, value, purpose in (
        ("--theta-low", 0.4, "worth up to X is labelled low"),
        ("--theta-high", 0.6, "worth from X is labelled high"),
    ):
        it.add_argument(option, type=number, default=value, metavar="X", help=f"{purpose} (default: %(default)s)")
    it.add_argument(
        "--min-evidence",
        type=whole,
        default=10,
        metavar="N",
        help="less is labelled uncertain; rules of thresholds wait for it (default: %(default)s)",
    )
    it.add_argument(
        "--ridge",
        default="cv",
        metavar="LAMBDA|cv",
        help="penalty of the adjusted worth; cv: by cross-validation (default: %(default)s)",
    )
    it.add_argument(
        "--permutations",
        type=whole,
        default=999,
        metavar="N",
        help="of outcomes over units, for the test of heterogeneity (default: %(default)s)",
    )
    it.add_argument(
        "--counters-only",
        action="store_true",
        help="worth, intervals and labels alone, in one pass, bounded memory; rows of an episode must stand together",
    )
    it.add_argument(
        "--rule",
        metavar="NAME",
        help="also: what this rule would have dropped, and its worth; from `mwjax list governance` (default: none)",
    )
    it.add_argument(
        "--assume-additive",
        action="store_true",
        help="for --rule: success is linear in the memories of a set; claims more from fewer episodes",
    )
    knobs(it)
    it.add_argument("--out", metavar="DIR", help="folder for replay.json, memories.csv and figures (default: none)")

    it = command(
        "backtest",
        "Does the world behind a log change? Predict every episode, then update, under each half-life; compare.",
        "mwjax backtest log.jsonl",
        "mwjax backtest log.jsonl --half-life 20,80,inf --prior closed --prior 1,1 --out results/backtest",
    )
    _log(it)
    it.add_argument(
        "--half-life",
        default="10,30,60,120,240,inf",
        metavar="H,H,...",
        help="outcomes of a memory after which one counts half; inf: never (default: %(default)s)",
    )
    it.add_argument(
        "--prior",
        action="append",
        default=[],
        metavar="P",
        help="closed (from the sizes of store and sets), empirical_bayes, a strength such as 200 around the base rate, "
        "or A,B; may be repeated (default: closed)",
    )
    it.add_argument(
        "--estimator",
        action="append",
        default=[],
        metavar="NAME",
        help="what a half-life is counted in: memory_worth or discounted (outcomes of the memory), discounted_step "
        "(episodes), discounted_time (time of the log), last_outcome; may be repeated (default: memory_worth)",
    )
    it.add_argument("--out", metavar="DIR", help="folder for backtest.json and the figure (default: none)")


def _log(it: argparse.ArgumentParser) -> None:
    """What names a log, and says how to read it."""
    from mwjax.formats import FIELDS

    it.add_argument("log", metavar="LOG", help="the log")
    it.add_argument("--format", default="auto", metavar="F", help="one of `mwjax list formats` (default: %(default)s)")
    named = it.add_argument_group(
        "what is where in the log",
        "names of fields or columns; JMESPath with --format json (defaults: the format's own)",
    )
    for option in (
        "id", "outcome", "success", "failure", "verdict", "episode", "score", "propensity", "context", "time", "unit",
        "opponent", "retrieved", "records",
    ):  # fmt: skip
        named.add_argument(f"--{option}", metavar="NAME", help=f"{FIELDS[option]} (default: the format's)")
    named.add_argument(
        "--join", metavar="FILE", help="a second file with the outcomes, joined on the episode (default: none)"
    )
    named.add_argument("--join-episode", metavar="NAME", help="the episode's id in that file (default: as --episode)")
    it.add_argument("--strict", action="store_true", help="stop at the first bad line (default: skip and count it)")
