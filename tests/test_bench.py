import shutil
import subprocess
import sys

import pytest
from rich.console import Console

from mwjax import bench

FEW = [case for case in bench.cases() if case.memories == bench.NUM_MEMORIES and "run ranking" not in case.name]
"""The others take long to compile."""


@pytest.fixture(scope="module")
def result():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(bench, "cases", lambda: FEW)
        return bench.bench(lives=2, episodes=20, repeats=2)


def test_every_contestant_is_timed(result):
    rows = {row["name"]: row for row in result["rows"]}
    assert len(rows) == len(FEW)
    for name, row in rows.items():
        assert set(row) == {"name", "ns_per_episode", "ratio_to_c", "compile_s", "note"}
        if not name.startswith("C "):
            assert row["ns_per_episode"] > 0
    assert "extrapolated" in rows["NumPy reference"]["note"]
    assert rows["NumPy reference"]["compile_s"] is None
    assert rows["mwjax, open loop"]["compile_s"] > 0
    assert result["conditions"]["num_memories"] == 100


@pytest.mark.skipif(not (shutil.which("cc") or shutil.which("gcc")), reason="no C compiler")
def test_ratios_are_to_the_c_loop(result):
    ns = {row["name"]: row["ns_per_episode"] for row in result["rows"]}
    for row, case in zip(result["rows"], FEW, strict=True):
        assert row["ratio_to_c"] == pytest.approx(row["ns_per_episode"] / ns[case.peer])
    assert {case.peer for case in bench.cases()} == {"C loop", *(f"C sum tree, N = {size:,}" for size in bench.SIZES)}


@pytest.mark.parametrize("compiler", [None, "false"])
def test_without_a_working_compiler_the_row_says_so(monkeypatch, compiler):
    monkeypatch.setattr(bench.shutil, "which", lambda name: compiler)
    monkeypatch.setattr(bench, "cases", lambda: [bench.Case("C loop", "c", 1, "")])
    row = bench.bench(lives=1, episodes=1, repeats=1)["rows"][0]
    assert row["note"] == "no working C compiler"
    assert row["ns_per_episode"] is None


def test_the_table_names_its_conditions(result):
    console = Console(width=200, record=True, file=open("/dev/null", "w"))  # noqa: SIM115
    bench.print_bench(result, console)
    text = console.export_text()
    console.file.close()
    for word in ("N = 100 unless said", "k = 8", "interleaved", "jaxlib", "x C"):
        assert word in text


INTERRUPTED = """
import os, signal, time
from mwjax import bench
with bench._child(bench.Case("", "reference", 1, ""), 1, 1) as (run, _):
    run()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.killpg(0, signal.SIGINT)
    time.sleep(1)
    run()
    print("alive")
"""


def test_ctrl_c_does_not_reach_the_children():
    """A terminal interrupts its whole foreground group; children in it would print a traceback each."""
    command = [sys.executable, "-c", INTERRUPTED]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, start_new_session=True)
    assert (done.stdout, done.stderr) == ("alive\n", "")
