"""Types of arguments: each takes the text of one and raises a one-line error."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterable


def nearest(word: str, known: Iterable[str]) -> str:
    """A suggestion for a misspelt word, or nothing."""
    import difflib

    found = difflib.get_close_matches(word, list(known), n=1)
    return f"; did you mean {found[0]}?" if found else ""


def one_of(*names: str) -> Callable[[str], str]:
    """An argument that must be one of the names."""

    def check(text: str) -> str:
        if text not in names:
            raise argparse.ArgumentTypeError(f"must be one of {', '.join(names)}, not {text!r}{nearest(text, names)}")
        return text

    return check


def component(text: str) -> str:
    """An argument that names something in a module."""
    if not re.fullmatch(r"\w+(\.\w+)*:\w+", text):
        raise argparse.ArgumentTypeError(f"must be package.module:name, not {text!r}")
    return text


def whole(text: str) -> int:
    """An argument that must be an integer."""
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be an integer, not {text!r}") from None


def number(text: str) -> float:
    """An argument that must be a number."""
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be a number, not {text!r}") from None


def knobs(it: argparse.ArgumentParser) -> None:
    """What a rule may be told, but for min_evidence."""
    for option, value, purpose in (
        ("--theta", 0.3, "a memory is bad if its success probability is below X"),
        ("--delta", 0.05, "beta: acts where Pr(p < theta) > 1 - X"),
        ("--alpha", 0.05, "e_process, e_process_two_sided: bound on false alarms at p >= theta"),
        ("--prior-a", 1.0, "beta: successes that the prior counts for"),
        ("--prior-b", 1.0, "beta: failures that the prior counts for"),
    ):
        it.add_argument(option, type=number, default=value, metavar="X", help=f"{purpose} (default: %(default)s)")
