"""A gate on the compiled program of the bare open loop: speed lost shows as work added, whatever the machine.

`python tests/test_hlo.py` prints the counts of the installed jaxlib, to be stated below when they are meant to change.
"""

import re
from collections import Counter

import jax
import jaxlib
import pytest

from mwjax import engine
from mwjax.config import Config

LIVES = 384
EXPECTED = {  # jaxlib -> operations compiled into one episode
    "0.10": {"cipher shifts": 20, "gather": 1, "scatter": 2, "fusion": 14, "copied words": 2},
    "0.12": {"cipher shifts": 20, "gather": 1, "scatter": 2, "fusion": 14, "copied words": 2},
}


def computations(text: str) -> dict[str, str]:
    """Name -> body of every computation of an optimised HLO module."""
    found = re.finditer(r"^(?:ENTRY )?%?([\w.\-]+) \([^\n]*\{\n((?:.*\n)*?)\}", text, re.MULTILINE)
    return {match.group(1): match.group(2) for match in found}


def reachable(name: str, bodies: dict[str, str]) -> list[str]:
    """The lines of a computation and of all that it calls, once for every call."""
    lines = []
    for line in bodies[name].splitlines():
        lines.append(line)
        for callee in re.findall(r"(?:calls|body|to_apply)=%?([\w.\-]+)", line):
            lines += reachable(callee, bodies)
    return lines


def episode_counts() -> dict[str, int]:
    """Operations in the body of the episode loop: the innermost while body that holds the cipher."""
    program = engine.compile_chunk(Config(metrics=()), LIVES, tuple(jax.local_devices()[:1]))
    bodies = computations(program.call.as_text())
    loops = {body for text in bodies.values() for body in re.findall(r"body=%?([\w.\-]+)", text)}
    shifts = lambda lines: sum(" shift-left(" in line for line in lines)
    with_cipher = [lines for body in loops if shifts(lines := reachable(body, bodies))]
    lines = min(with_cipher, key=len)
    kinds = Counter(match.group(1) for line in lines if (match := re.search(r" ([a-z\-]+)\(", line)))
    return {
        "cipher shifts": shifts(lines),
        "gather": kinds["gather"],
        "scatter": kinds["scatter"],
        "fusion": kinds["fusion"],
        "copied words": sum(" copy(" in line and "c64" in line for line in lines),
    }


def test_an_episode_does_no_more_work_than_stated():
    version = ".".join(jaxlib.__version__.split(".")[:2])
    if version not in EXPECTED:
        pytest.skip(f"no counts are stated for jaxlib {version}")
    found = episode_counts()
    assert found["cipher shifts"] == 20, "the 20 rounds of the cipher must be compiled once an episode"
    assert found == EXPECTED[version]


if __name__ == "__main__":
    print(jaxlib.__version__, episode_counts())
