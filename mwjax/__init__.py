"""mwjax: thousands of agent lives at once, to learn which memories to trust, suppress or forget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mwjax.config import Config, Params, make_params
from mwjax.engine import simulate
from mwjax.types import InputError, Trace

if TYPE_CHECKING:
    from mwjax.sweep import run

__version__ = "0.1.0"
__all__ = ["Config", "InputError", "Params", "Trace", "make_params", "run", "simulate"]


def __getattr__(name: str) -> Any:
    """`run` brings xarray with it, so it is loaded when first used."""
    if name == "run":
        from mwjax.sweep import run

        return run
    raise AttributeError(f"module 'mwjax' has no attribute {name!r}")
