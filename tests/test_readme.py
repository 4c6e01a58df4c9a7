"""The README says what happens."""

import contextlib
import io
import re
from pathlib import Path

import pytest

from mwjax.testing import check_component

README = Path(__file__).parents[1] / "README.md"
TEXT = README.read_text(encoding="utf-8")
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", TEXT, re.DOTALL)


def test_the_example_prints_what_it_says():
    code = next(text for kind, text in BLOCKS if kind == "python")
    printed = next(text for kind, text in BLOCKS if kind == "text")
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile(code, str(README), "exec"), {})
    assert out.getvalue() == printed


def test_the_component_keeps_the_contract():
    namespace: dict[str, object] = {}
    exec([text for kind, text in BLOCKS if kind == "python"][1], namespace)
    assert check_component(namespace["pessimist"]) == "estimator"


def test_it_stays_short():
    assert len(TEXT.splitlines()) <= 185


@pytest.mark.parametrize("path", re.findall(r"\]\(([\w/.]+)\)", TEXT))
def test_what_it_links_to_is_there(path):
    assert (README.parent / path).exists()
