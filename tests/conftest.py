"""Two CPU devices, strict dtypes; programs shared between tests."""

import json
import sys
from pathlib import Path

import jax
import numpy as np
import pytest

jax.config.update("jax_platforms", "cpu")
jax.config.update("jax_num_cpu_devices", 2)
jax.config.update("jax_numpy_dtype_promotion", "strict")


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    """Run the command line in an empty folder: (exit status, standard output, standard error)."""
    from mwjax.cli import main

    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        status = main(arguments)
        return status, *capsys.readouterr()

    return run


@pytest.fixture(scope="session")
def stints():
    """The log of line-ups as a Journal, its stints as units with two sides."""
    from mwjax.logs import journal

    path = Path(__file__).parents[2] / "shared" / "data" / "wnba_2024_lineups.jsonl"
    if not path.exists():
        pytest.skip(f"{path} is absent")
    records = [json.loads(line) for line in path.read_text().splitlines()]
    names = {}
    sets = [[names.setdefault(one, len(names)) for one in record["retrieved"]] for record in records]
    log = journal(sets, [record["outcome"] for record in records], len(names))
    unit = np.unique([record["time"] for record in records], return_inverse=True)[1].astype(np.int32)
    side = np.array([1 if record["context"] == "home" else -1 for record in records], np.int8)
    return log._replace(memories=tuple(names), unit=unit, side=side)
