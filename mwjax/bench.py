"""`mwjax bench`: the engine beside its peers in one run.

Every contestant is a process of its own, bound to its cores, that compiles once and then runs whenever it is asked
to. The parent asks them in turn, again and again, and keeps each one's minimum: a slow moment hits all alike.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import metadata, resources
from pathlib import Path
from typing import Any, NamedTuple

NUM_MEMORIES, NUM_RETRIEVED = 100, 8
SIX = ("memory_worth", "memory_worth_score", "memory_worth_oracle", "memory_worth_oracle_raw", "beta", "never_updated")
REFERENCE_EPISODES = 2_000
CFLAGS = ("-O3", "-march=native", "-ffast-math", f"-DK={NUM_RETRIEVED}")
SIZES = (100, 1_000, 10_000)
"""Stores of the closed loop."""
CLOSED_SHARE = {100: 0.2, 1_000: 0.1, 10_000: 0.05}
"""Of the episodes, for the closed loop: it takes ten times longer and more."""
SOURCES = {"c": "open_loop.c", "c tree": "closed_loop.c"}


class Case(NamedTuple):
    """A contestant."""

    name: str
    what: str  # see WORK and SOURCES
    cores: int
    note: str
    memories: int = NUM_MEMORIES
    peer: str = "C loop"  # the row that the ratio is taken to


def cases() -> list[Case]:
    """The rows of the table, top to bottom."""
    cores = len(os.sched_getaffinity(0))
    rows = [Case("C loop", "c", 1, "hand-written, one thread"), Case("mwjax, open loop", "open", 1, "one observer")]
    if cores > 1:
        rows.append(Case(f"mwjax, open loop, {cores} cores", "open", cores, "lives sharded over the cores"))
    return [
        *rows,
        Case("jit(vmap(simulate))", "vmap", 1, "the user's own vmap, one observer"),
        Case("mwjax, run ranking", "ordinary", 1, f"{len(SIX)} observers, all metrics"),
        Case("NumPy reference", "reference", 1, f"extrapolated from one life of {REFERENCE_EPISODES:,} episodes"),
        *(case for size in SIZES for case in _closed(size)),
    ]


def _closed(size: int) -> tuple[Case, Case]:
    peer = f"C sum tree, N = {size:,}"
    note = "softmax of worth, temperature 0.1"
    return (
        Case(peer, "c tree", 1, "hand-written, 16 children a node", size, peer),
        Case(f"mwjax, closed loop, N = {size:,}", "closed", 1, note, size, peer),
    )


def bench(*, lives: int = 384, episodes: int = 10_000, repeats: int = 7) -> dict[str, Any]:
    """Time every case; {"rows": [{name, ns_per_episode, ratio_to_c, compile_s, note}], "conditions": {...}}."""
    with ExitStack() as stack:
        running = []
        for case in cases():
            measure = stack.enter_context(
                _c_peer(case, lives, episodes) if case.what in SOURCES else _child(case, lives, episodes)
            )
            running.append((case, *measure))
        times: list[list[float]] = [[] for _ in running]
        for _ in range(repeats):
            for found, (_, run, _) in zip(times, running, strict=True):
                if run is not None:
                    found.append(run())
    best = [min(found) if found else None for found in times]
    of = {case.name: ns for (case, _, _), ns in zip(running, best, strict=True)}
    rows = [
        {
            "name": case.name,
            "ns_per_episode": ns,
            "ratio_to_c": ns / peer if ns and (peer := of[case.peer]) else None,
            "compile_s": compile_s,
            "note": case.note if run is not None else "no working C compiler",
        }
        for (case, run, compile_s), ns in zip(running, best, strict=True)
    ]
    return {"rows": rows, "conditions": conditions(lives, episodes, repeats)}


Measure = tuple[Callable[[], float] | None, float | None]
"""A function that runs once and returns ns per life-episode, and the seconds it took to compile."""


@contextmanager
def _c_peer(case: Case, lives: int, episodes: int) -> Iterator[Measure]:
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        yield None, None
        return
    with tempfile.TemporaryDirectory() as folder:
        binary = Path(folder) / "peer"
        source = resources.files("mwjax") / "peers" / SOURCES[case.what]
        began = time.perf_counter()
        with resources.as_file(source) as path:
            build = [compiler, *CFLAGS, f"-DN={case.memories}", "-o", str(binary), str(path), "-lm"]
            failed = subprocess.run(build, capture_output=True).returncode
        compile_s = time.perf_counter() - began
        if failed:
            yield None, None
            return
        bind = f"import os, sys; os.sched_setaffinity(0, {{{min(os.sched_getaffinity(0))}}}); "
        bind += "os.execv(sys.argv[1], sys.argv[1:])"
        if case.what == "c tree":
            lives, episodes = max(1, lives // 32), max(1, int(episodes * CLOSED_SHARE[case.memories]))
        command = [sys.executable, "-c", bind, str(binary), str(lives), str(episodes)]

        def run() -> float:
            out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            return float(out.split()[0])

        yield run, compile_s


@contextmanager
def _child(case: Case, lives: int, episodes: int) -> Iterator[Measure]:
    numbers = map(str, (case.cores, lives, episodes, case.memories))
    command = [sys.executable, "-m", "mwjax.bench", case.what, *numbers]
    pipe = subprocess.PIPE
    # A session of its own: Ctrl-C at the terminal reaches the parent alone, which then ends the children.
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, start_new_session=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        ask, answer = process.stdin, process.stdout

        def line() -> float:
            text = answer.readline()
            if not text:
                raise RuntimeError(f"bench: the process of {case.name!r} ended early")
            return float(text)

        def run() -> float:
            ask.write("\n")
            ask.flush()
            return line()

        try:
            compile_s = line()
            yield run, compile_s or None
        finally:
            process.kill()


def _serve(what: str, cores: int, lives: int, episodes: int, memories: int) -> None:
    """The child: bind to cores, prepare, then time one run for every line read."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    work, count, compile_s = WORK[what](what, cores, lives, episodes, memories)
    print(compile_s, flush=True)
    for _ in sys.stdin:
        began = time.perf_counter()
        work()
        print((time.perf_counter() - began) * 1e9 / count, flush=True)


Work = tuple[Callable[[], object], int, float]
"""What to time, the life-episodes in it, and the seconds its compilation took."""


def _prepare(what: str, cores: int, episodes: int, memories: int) -> tuple[Any, Any]:
    import jax

    from mwjax.config import Config, checkpoint_grid, make_params

    jax.config.update("jax_platforms", "cpu")
    jax.config.update("jax_num_cpu_devices", cores)
    if what == "ordinary":
        config = Config(observers=SIX, num_checkpoints=len(checkpoint_grid(episodes)))
        return config, make_params(config, num_episodes=episodes, checkpoints=checkpoint_grid(episodes))
    if what == "closed":
        config = Config(num_memories=memories, metrics=(), retrieval="softmax", floor_mode="none")
        return config, make_params(config, num_episodes=episodes, temperature=0.1)
    config = Config(metrics=())
    return config, make_params(config, num_episodes=episodes)


def _engine(what: str, cores: int, lives: int, episodes: int, memories: int) -> Work:
    import jax
    import numpy as np

    from mwjax import engine

    if what == "closed":
        episodes = max(1, int(episodes * CLOSED_SHARE[memories]))
    config, params = _prepare(what, cores, episodes, memories)
    devices = tuple(jax.devices())
    seeds = np.arange(min(lives, engine.batch_size(config)) if what == "closed" else lives * cores)
    program = engine.compile_chunk(config, len(seeds), devices)
    run = lambda: jax.block_until_ready(program.call(params, np.uint32(0), seeds.astype(np.uint32)))
    run()
    return run, len(seeds) * episodes, program.compile_s


def _vmap(what: str, cores: int, lives: int, episodes: int, memories: int) -> Work:
    import jax
    import jax.numpy as jnp

    from mwjax import simulate

    config, params = _prepare(what, cores, episodes, memories)
    words = jnp.stack([jnp.zeros(lives, jnp.uint32), jnp.arange(lives, dtype=jnp.uint32)], axis=1)
    keys = jax.random.wrap_key_data(words)
    began = time.perf_counter()
    program = jax.jit(jax.vmap(lambda key: simulate(config, params, key))).lower(keys).compile()
    compile_s = time.perf_counter() - began
    run = lambda: jax.block_until_ready(program(keys))
    run()
    return run, lives * episodes, compile_s


def _reference(what: str, cores: int, lives: int, episodes: int, memories: int) -> Work:
    from mwjax import reference

    episodes = min(episodes, REFERENCE_EPISODES)
    config, params = _prepare(what, cores, episodes, memories)
    return (lambda: reference.simulate(config, params, 0, 0)), episodes, 0.0


WORK: dict[str, Callable[[str, int, int, int, int], Work]] = {
    "open": _engine,
    "closed": _engine,
    "ordinary": _engine,
    "vmap": _vmap,
    "reference": _reference,
}


def conditions(lives: int, episodes: int, repeats: int) -> dict[str, Any]:
    """What the figures hold for."""
    return {
        "num_memories": NUM_MEMORIES,
        "num_retrieved": NUM_RETRIEVED,
        "lives_per_core": lives,
        "episodes": episodes,
        "repeats": repeats,
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "jax": metadata.version("jax"),
        "jaxlib": metadata.version("jaxlib"),
        "python": platform.python_version(),
        "cflags": " ".join(CFLAGS),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), platform.machine())


def print_bench(result: dict[str, Any], console: Any) -> None:
    """The result as one table with its conditions below."""
    from rich.table import Table

    table = Table(title="Time of one episode of one life")
    for head, justify in (("", "left"), ("ns", "right"), ("x C", "right"), ("compile s", "right"), ("", "left")):
        table.add_column(head, justify=justify)  # pyright: ignore[reportArgumentType]
    show = lambda value, form: "" if value is None else format(value, form)
    for row in result["rows"]:
        figures = show(row["ns_per_episode"], ",.0f"), show(row["ratio_to_c"], ",.2f"), show(row["compile_s"], ".1f")
        table.add_row(row["name"], *figures, row["note"])
    console.print(table)
    c = result["conditions"]
    where = f"{c['processor']}, {c['cores']} cores; jax {c['jax']}, jaxlib {c['jaxlib']}, Python {c['python']}"
    console.print(
        f"N = {c['num_memories']} unless said, k = {c['num_retrieved']}, {c['lives_per_core']} lives a core x "
        f"{c['episodes']:,} episodes, minimum of {c['repeats']} interleaved runs; {where}; cc {c['cflags']}",
        style="dim",
    )


if __name__ == "__main__":
    _serve(sys.argv[1], *(int(argument) for argument in sys.argv[2:]))
