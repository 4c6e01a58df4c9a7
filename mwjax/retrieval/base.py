"""The record of a retrieval policy."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from jax import Array

from mwjax.config import Params
from mwjax.types import Pytree, Step


class Retrieval(NamedTuple):
    """A retrieval policy."""

    num_words: int
    """Random words an episode takes."""
    init: Callable[[Params, Array], Pytree]
    """(params, the actor's worth before any episode, float32 [memory, life]) -> state; () for none."""
    retrieve: Callable[[Params, Pytree, Step, Array], tuple[Array, Pytree]]
    """(params, state, step, words uint32 [num_words, life]) -> (int32 [retrieved, life] without repetition, state).

    Known at this point are step.episode, step.context, step.roster and what the three flags ask for."""
    uses_worth: bool = False
    """It needs step.worth, the actor's, and step.counts, of all memories."""
    uses_score: bool = False
    """It needs step.score, here of all memories: float32 [memory, life]."""
    uses_lot: bool = False
    """It needs step.lot, a word a memory."""
    observe: Callable[[Params, Pytree, Step], Pytree] | None = None
    """(params, state, step with every field) -> state after the episode: to follow the worth that has changed."""
    revise: Callable[[Params, Pytree, Step, Array], Pytree] | None = None
    """(params, state, step, doing bool [life]) -> state after the one memory in step.retrieved (int32 [1, life]) has
    changed its status, where `doing`; step.active and step.new_worth are its own."""
    companions: Callable[[Params, Array], tuple[Array, Array]] | None = None
    """(params, utility uint32 [memory, life]) -> (Pr[shown], mean utility of the set given that the memory is shown),
    float32 [context, memory, life]. None where worth decides: the static p+ then takes uniform companions."""
