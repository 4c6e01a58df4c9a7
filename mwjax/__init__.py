"""mwjax: thousands of agent lives at once, to learn which memories to trust, suppress or forget."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mwjax.config import Config, Params, make_params
    from mwjax.engine import simulate
    from mwjax.sweep import run
    from mwjax.types import InputError, Trace

__version__ = "0.1.0"
__all__ = ["Config", "InputError", "Params", "Trace", "make_params", "run", "simulate"]

_HOMES = {"Config": "config", "Params": "config", "make_params": "config", "simulate": "engine", "run": "sweep"}
_HOMES |= {"InputError": "types", "Trace": "types"}


def __getattr__(name: str) -> Any:
    """Load what is used when it is used: the command line must answer before jax is there."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"mwjax.{_HOMES[name]}"), name)
    raise AttributeError(f"module 'mwjax' has no attribute {name!r}")


def __dir__() -> list[str]:
    """The public names, loaded or not."""
    return sorted([*globals(), *__all__])
