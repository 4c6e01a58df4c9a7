"""Config (static: decides shapes and the program) and Params (traced: any leaf may be swept by vmap), and ranges."""

from mwjax.checks import check_integer, check_name, check_number, nearest
from mwjax.config import governed
from mwjax.config.static import (
    MAX_EPISODES,
    MAX_EVIDENCE,
    MAX_FORGETTING,
    MAX_RETRIEVED,
    METRICS,
    PUBLISHED_CHECKPOINTS,
    Component,
    Config,
    checkpoint_grid,
    max_episodes,
)
from mwjax.config.tables import LEVELS, MIN_TEMPERATURE
from mwjax.config.texts import PHASES, TextTables
from mwjax.config.traced import Params, make_params

__all__ = [
    "LEVELS",
    "MAX_EPISODES",
    "MAX_EVIDENCE",
    "MAX_FORGETTING",
    "MAX_RETRIEVED",
    "METRICS",
    "MIN_TEMPERATURE",
    "PHASES",
    "PUBLISHED_CHECKPOINTS",
    "Component",
    "Config",
    "Params",
    "TextTables",
    "check_integer",
    "check_name",
    "check_number",
    "checkpoint_grid",
    "governed",
    "make_params",
    "max_episodes",
    "nearest",
]
