"""Closed forms that the simulation is held against: ranking at this level, one module for every other world.

theory.difficulty, theory.hitchhiker, theory.adaptive, theory.deprecation and theory.stores keep their own names: p_plus
and inclusion exist in several.
"""

from mwjax.theory import adaptive, deprecation, difficulty, hitchhiker, stores
from mwjax.theory.ranking import (
    dilution,
    effective_evidence,
    label_shares,
    p_plus,
    p_plus_range,
    rmse,
    spearman,
    spearman_by_enumeration,
)

__all__ = [
    "adaptive",
    "deprecation",
    "difficulty",
    "dilution",
    "effective_evidence",
    "hitchhiker",
    "label_shares",
    "p_plus",
    "p_plus_range",
    "rmse",
    "spearman",
    "spearman_by_enumeration",
    "stores",
]
