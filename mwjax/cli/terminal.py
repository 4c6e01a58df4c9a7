"""The terminal and the devices: progress, notes, Ctrl-C, where lines go. Nothing heavy is loaded before it must."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

INTERRUPT = threading.Event()
"""Set by Ctrl-C."""

Tick = Callable[[int, int], None]


def start_devices(device: str | None) -> None:
    """Choose the device. On a CPU, every core that this process may use becomes one, unless that is set already."""
    import jax

    from mwjax.types import InputError

    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    flags = os.environ.get("XLA_FLAGS", "")
    chosen = getattr(jax.config, "jax_num_cpu_devices", -1) > 0 or "host_platform_device_count" in flags
    if device == "cpu":
        jax.config.update("jax_platforms", "cpu")
    if not chosen:
        with contextlib.suppress(RuntimeError):  # computing has begun: devices stay as they are
            jax.config.update("jax_num_cpu_devices", cores)
    if device == "gpu":
        try:
            jax.devices("gpu")
        except RuntimeError as error:
            raise InputError("--device gpu: there is none that jax can use (is mwjax[cuda] installed?)") from error


@contextlib.contextmanager
def progress(args: argparse.Namespace, name: str, episodes: int) -> Iterator[Tick]:
    """A bar on standard error, where somebody sees it: lives done, rate, time left. A tick also heeds Ctrl-C."""
    if args.quiet or not sys.stderr.isatty():
        yield lambda done, total: check_interrupt()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("lives  {task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    first: list[tuple[int, float]] = []
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(f"{name}: compiling", total=None, rate="")

        def tick(done: int, total: int) -> None:
            check_interrupt()
            first.append((done, time.perf_counter()))
            lives, seconds = done - first[0][0], first[-1][1] - first[0][1]
            rate = f"{lives * episodes / seconds / 1e6:,.1f} M episodes/s" if seconds else ""
            bar.update(task, completed=done, total=total, description=name, rate=rate)

        yield tick


@contextlib.contextmanager
def reading(args: argparse.Namespace) -> Iterator[Tick]:
    """A bar on standard error while a log is read, where somebody sees it. A tick also heeds Ctrl-C."""
    if args.quiet or not sys.stderr.isatty():
        yield lambda done, total: check_interrupt()
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("reading", total=None)

        def tick(done: int, total: int) -> None:
            check_interrupt()
            bar.update(task, completed=done, total=total)

        yield tick


def check_interrupt() -> None:
    """Raise KeyboardInterrupt if Ctrl-C was pressed and has been forgotten."""
    if INTERRUPT.is_set():
        raise KeyboardInterrupt


def note(args: argparse.Namespace, text: str) -> None:
    """Say something by the way, on standard error."""
    if not args.quiet:
        print(f"mwjax: {text}", file=sys.stderr)


def write(to: Console, *lines: str) -> None:
    """Print lines as they are."""
    for line in lines:
        to.print(line, markup=False, highlight=False, soft_wrap=True)


def console() -> Console:
    """Standard output; a reader that has gone is told to the caller."""
    from rich.console import Console

    class Output(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    return Output()
