"""A governance rule as something to ship: its table, a program that reads it, and what it gets wrong."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import Any

from rich.console import Console

from mwjax import rules
from mwjax.checks import check_integer
from mwjax.theory import deprecation

LOOKS = 1_000
ABOVE, BELOW = (0.0, 0.1, 0.2, 0.3), (-0.2, -0.1)
"""Success probabilities beside theta: of good memories, and of bad ones."""
MOST_RUNS = 60
HEEDED = {
    "threshold": ("min_evidence",),
    "beta": ("delta", "prior_a", "prior_b"),
    "e_process": ("alpha",),
    "e_process_two_sided": ("alpha",),
    "wilson": ("min_evidence",),
    "wilson_upper": (),
}
"""Beside theta: the knobs that change a rule."""
POSTERIOR, ANYTIME = "beta", "e_process"

SNIPPET = '''\
import json

with open("rule.json") as file:  # mwjax rule NAME --json > rule.json
    most = json.load(file)["most_successes"]


def deprecate(successes, failures):
    """Whether to forget a memory; beyond the table its last entry decides."""
    evidence = min(successes + failures, len(most) - 1)
    return successes <= most[evidence]
'''
"""Ten lines without any library that decide as the rule does."""


def rule_json(name: str, knobs: rules.Knobs, max_evidence: int) -> dict[str, Any]:
    """The table of a rule, and its exact errors under a look after every retrieval."""
    rules.check(knobs, name)
    check_integer("max_evidence", max_evidence, 0, rules.MOST_EVIDENCE)
    most = rules.most_successes(name, knobs, max(max_evidence, LOOKS))
    good, bad = _beside(knobs.theta, ABOVE), _beside(knobs.theta, BELOW)
    found = {p: deprecation.deprecation(most, p, LOOKS) for p in (*good, *bad)}
    return {
        "rule": name,
        **knobs._asdict(),
        "max_evidence": max_evidence,
        "most_successes": most[: max_evidence + 1].tolist(),
        "looks": LOOKS,
        "false_deprecation": [{"p": p, "prob": float(found[p][-1])} for p in good],
        "median_retrievals": [{"p": p, "n": deprecation.median_delay(found[p])} for p in bad],
    }


def _beside(theta: float, steps: tuple[float, ...]) -> list[float]:
    """Probabilities theta + step that exist, without the dust of adding in binary."""
    return [p for step in steps if 0 <= (p := round(theta + step, 12) if step else theta) <= 1]


def print_rule(found: Mapping[str, Any], console: Console) -> None:
    """The table where it changes, the program, and what it gets wrong."""
    knobs = rules.Knobs(*(found[name] for name in rules.Knobs._fields))
    told = ", ".join(f"{name} = {found[name]:g}" for name in ("theta", *HEEDED[found["rule"]]))
    head = [*_wrapped(f"{found['rule']}: {rules.RULES[found['rule']].about}"), *_wrapped(told)]
    for line in (*head, "", *_table(found["most_successes"]), "", *_program(), "", *_errors(found, knobs)):
        console.print(line, markup=False, highlight=False, soft_wrap=True)


def runs(most: list[int]) -> list[tuple[int, int]]:
    """Where a table changes: (from evidence, most successes)."""
    return [(n, value) for n, value in enumerate(most) if n == 0 or value != most[n - 1]]


def _table(most: list[int]) -> list[str]:
    """The runs of a table, five in a line."""
    found, last = runs(most), len(most) - 1
    if len(found) == 1:
        return [f"It acts on nothing up to evidence {last:,}."]
    cells = [f"{n:>6}: {value if value >= 0 else 'never':<7}" for n, value in found[:MOST_RUNS]]
    lines = ["Forget where successes are at most this (from evidence n on: most successes):"]
    lines += ["".join(cells[i : i + 5]).rstrip() for i in range(0, len(cells), 5)]
    more = len(found) - MOST_RUNS
    rest = f"and {more:,} changes more" if more > 0 else "and no change more"
    return [*lines, f"{rest} up to evidence {last:,}; --json has every entry"]


def _program() -> list[str]:
    return ["To decide anywhere, without this package:", *textwrap.indent(SNIPPET, "  ").splitlines()]


def _errors(found: Mapping[str, Any], knobs: rules.Knobs) -> list[str]:
    """Exact errors, and for the posterior rule how far repeated looks carry it from delta."""
    looks = f"{found['looks']:,} retrievals, looked at after each"
    wrong = ", ".join(f"{one['prob']:.4f} at p = {one['p']:g}" for one in found["false_deprecation"])
    late = [
        f"{f'more than {LOOKS:,}' if one['n'] is None else one['n']} at p = {one['p']:g}"
        for one in found["median_retrievals"]
    ]
    lines = _wrapped(f"Forgotten though p >= theta, within {looks}: {wrong}.")
    if late:
        lines += _wrapped(f"Median retrievals until a bad memory is forgotten: {', '.join(late)}.")
    return lines + (_repeated(found, knobs) if found["rule"] == POSTERIOR else [])


def _repeated(found: Mapping[str, Any], knobs: rules.Knobs) -> list[str]:
    """Beside the rule that keeps its level."""
    at_theta, looks = found["false_deprecation"][0]["prob"], found["looks"]
    level = rules.most_successes(ANYTIME, knobs, looks)
    other = deprecation.deprecation(level, knobs.theta, looks)[-1]
    verdict = "is not" if at_theta > knobs.delta else "stays within"
    return _wrapped(
        f"Under repeated looks this {verdict} a {knobs.delta:g} rule: at p = theta it errs with probability "
        f"{at_theta:.4f} within {looks:,} of them, and the number grows with the looks; {ANYTIME} keeps "
        f"alpha = {knobs.alpha:g} for ever ({other:.4f} within as many)."
    )


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, 79)
