"""The command line: parse, call one function of the library, print one answer. Nothing heavy is loaded before it must.

Exit status: 0 good; 1 a check failed, or the program did; 2 bad input; 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

from mwjax.cli import commands, terminal
from mwjax.cli.parser import UsageError, parse

GOOD, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return the exit status. Errors are one line on standard error (and a traceback)."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with _interruptible():
            return _answer(parse(given))
    except SystemExit as end:  # --help and --version
        return _flushed(end.code if isinstance(end.code, int) else GOOD)
    except BrokenPipeError:
        return _flushed(GOOD)
    except KeyboardInterrupt:
        return _complain("interrupted", INTERRUPTED)
    except UsageError as error:
        return _complain(str(error), BAD_INPUT)
    except Exception as error:
        if "--debug" in given:
            traceback.print_exc()
        return _complain(*_explain(error))


def _answer(args: argparse.Namespace) -> int:
    command = getattr(commands, args.call)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    if args.json:
        with contextlib.redirect_stdout(sys.stderr):
            answer = command(args)
            terminal.check_interrupt()
            text = json.dumps(answer.data(), allow_nan=False)
        print(text)
    else:
        answer = command(args)
        terminal.check_interrupt()
        answer.show(terminal.console())
    return _flushed(answer.status)


@contextlib.contextmanager
def _interruptible() -> Iterator[None]:
    """Remember Ctrl-C as well as raise it: an exception that comes while a callback runs is lost."""
    terminal.INTERRUPT.clear()
    main_thread = threading.current_thread() is threading.main_thread()
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler or not main_thread:
        yield
        return
    hook = sys.unraisablehook

    def interrupt(number: int, frame: Any) -> None:
        terminal.INTERRUPT.set()
        signal.default_int_handler(number, frame)

    signal.signal(signal.SIGINT, interrupt)
    sys.unraisablehook = lambda lost: None if lost.exc_type is KeyboardInterrupt else hook(lost)
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _flushed(status: int) -> int:
    """Write out what is waiting; a reader that has gone is no error."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return status


def _explain(error: Exception) -> tuple[str, int]:
    """One line for an exception, and the exit status."""
    from mwjax.types import InputError

    if isinstance(error, InputError):
        return str(error), BAD_INPUT
    from mwjax.sweep import TroubleError

    if isinstance(error, TroubleError):
        return str(error), FAILED
    return f"{type(error).__name__}: {error} (--debug shows where)", FAILED


def _complain(message: str, status: int) -> int:
    print("mwjax:", " ".join(message.splitlines()), file=sys.stderr)
    return _flushed(status)
