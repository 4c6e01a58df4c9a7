"""Two CPU devices, strict dtypes; programs shared between tests."""

import sys

import jax
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
