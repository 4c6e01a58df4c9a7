"""The contract of a component, as a test: for the project's own ones and for strangers'.

    check_component(my_factory)

raises ComponentError, whose message is one line that names the component and what is wrong, or returns the kind.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from mwjax import engine, estimators, retrieval, worlds
from mwjax.config import Config, Params, make_params
from mwjax.types import NOT_YET, UTILITY_ONE, Counts, InputError, Pytree, Step, Trace

LIVES = 6
EPISODES = 40
KINDS = {"estimator": estimators.Estimator, "retrieval": retrieval.Retrieval, "outcome": worlds.Outcome}


class ComponentError(InputError, AssertionError):
    """A component breaks the contract; the message is one line."""


def check_component(factory: Callable[[Config], Any], config: Config | None = None) -> str:
    """Test a component's factory against the contract and return its kind: estimator, retrieval or outcome.

    Tested: it is made of pure functions (calling twice gives the same, jit changes nothing); it looks at nothing that
    is not known when it acts, the outcome above all; dtypes and shapes are as declared and a state keeps its own; worth
    is finite and in [0, 1]; a retrieved set has no repetition and stays in range; a life does not depend on the other
    lives of its batch; a memory never shown keeps its worth; relabelling the memories relabels an estimator's worth.
    """
    config = config or Config(num_memories=11, num_retrieved=3, max_evidence=EPISODES)
    name = getattr(factory, "__name__", None) or repr(factory)
    with _one_line(name, "making it"):
        hash(factory)
        component = factory(config)
    kind = next((kind for kind, record in KINDS.items() if isinstance(component, record)), None)
    if kind is None:
        made = type(component).__name__
        raise ComponentError(f"{name}: the factory made a {made}, must be an Estimator, a Retrieval or an Outcome")
    CHECKS[kind](name, component, config)
    _check_lives(name, kind, factory, config)
    return kind


@contextmanager
def _one_line(name: str, doing: str) -> Iterator[None]:
    """Turn whatever a component raises into one line."""
    try:
        yield
    except ComponentError:
        raise
    except Exception as error:
        reason = (str(error) or type(error).__name__).strip().splitlines()[0]
        if "NoneType" in reason:
            reason = f"it reads a Step field that is not known yet ({reason})"
        raise ComponentError(f"{name}: {doing}: {reason}") from error


def _params(config: Config) -> Params:
    """Parameters with a life axis, as the kernel hands them over."""
    params = make_params(config, num_episodes=EPISODES)
    wide = jax.tree.map(lambda x: jnp.asarray(x)[..., None], params)
    return wide._replace(checkpoints=params.checkpoints)


def _words(num_words: int, salt: int = 0) -> Array:
    rng = np.random.default_rng(salt)
    return jnp.asarray(rng.integers(0, 2**32, (num_words, LIVES), np.uint32))


def _full_step(config: Config, success: bool, salt: int = 0) -> Step:
    """A step with every field filled in; two of them differ in what comes after retrieval."""
    rng = np.random.default_rng(salt)
    sets = np.stack([rng.permutation(config.num_memories)[: config.num_retrieved] for _ in range(LIVES)], axis=1)
    none = jnp.zeros((config.num_memories, LIVES), jnp.int32)
    by_context, episodes = (jnp.zeros((config.num_contexts, *shape), jnp.int32) for shape in (none.shape, (LIVES,)))
    return Step(
        episode=jnp.int32(3),
        context=jnp.zeros(LIVES, jnp.int32),
        counts=Counts(none, none, none, by_context, by_context, episodes, episodes),
        lot=jnp.asarray(rng.integers(0, 2**32, none.shape, np.uint32)),
        worth=jnp.asarray(rng.random((config.num_memories, LIVES), np.float32)),
        retrieved=jnp.asarray(sets, jnp.int32),
        utility=jnp.asarray(rng.integers(0, 2**24, sets.shape, np.uint32)),
        score=jnp.asarray(rng.random(sets.shape, np.float32)),
        chance=jnp.full(LIVES, 1 << 23, jnp.uint32),
        success=jnp.full(LIVES, success),
        new_worth=jnp.asarray(rng.random(sets.shape, np.float32)),
    )


def _same(first: Pytree, second: Pytree) -> bool:
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return all(np.array_equal(np.asarray(a), np.asarray(b), equal_nan=True) for a, b in pairs)


def _kinds(tree: Pytree) -> Pytree:
    return jax.tree.map(lambda x: (jnp.shape(x), jnp.result_type(x).name), tree)


def _require(holds: bool, name: str, fault: str) -> None:
    if not holds:
        raise ComponentError(f"{name}: {fault}")


def _require_array(name: str, what: str, value: Any, dtype: str, shape: tuple[int, ...]) -> None:
    found = f"{jnp.result_type(value).name} {list(jnp.shape(value))}"
    _require(found == f"{dtype} {list(shape)}", name, f"{what} is {found}, must be {dtype} {list(shape)}")


def _check_retrieval(name: str, component: retrieval.Retrieval, config: Config) -> None:
    params, words, full = _params(config), _words(component.num_words), _full_step(config, True)
    known = Step(full.episode, context=full.context)
    if component.uses_worth:
        known = known._replace(worth=full.worth, counts=full.counts)
    every = jnp.asarray(np.random.default_rng(2).random(full.worth.shape, np.float32))
    asked = {"score": every if component.uses_score else NOT_YET, "lot": full.lot if component.uses_lot else NOT_YET}
    known = known._replace(**asked)
    act = lambda step: component.retrieve(params, state, step, words)
    with _one_line(name, "init"):
        state = component.init(params, full.worth)
    with _one_line(name, "retrieve"):
        retrieved, after = act(known)
        early = {"worth": known.worth, "counts": known.counts, **asked}
        peeked = [act(_full_step(config, success)._replace(**early)) for success in (False, True)]
        traced = jax.jit(act)(known)
    _require_array(name, "the retrieved set", retrieved, "int32", (config.num_retrieved, LIVES))
    _require(_same(*peeked) and _same(peeked[0], (retrieved, after)), name, "it looks at the outcome before it acts")
    _require(_same(act(known), (retrieved, after)), name, "retrieving twice from the same state gives two answers")
    _require(_same(traced, (retrieved, after)), name, "it gives other sets under jit")
    _require(_kinds(state) == _kinds(after), name, f"its state changes from {_kinds(state)} to {_kinds(after)}")
    if component.observe is not None:
        with _one_line(name, "observe"):
            seen = component.observe(params, after, full._replace(retrieved=retrieved))
        _require(
            _kinds(state) == _kinds(seen), name, f"observe changes its state from {_kinds(state)} to {_kinds(seen)}"
        )


def _check_outcome(name: str, component: worlds.Outcome, config: Config) -> None:
    params, full = _params(config), _full_step(config, True)
    known = Step(full.episode, context=full.context, retrieved=full.retrieved, utility=full.utility, score=full.score)
    act = lambda step: component.chance(params, step)
    with _one_line(name, "chance"):
        chance = act(known)
        peeked = [act(known._replace(success=jnp.full(LIVES, value))) for value in (False, True)]
        traced = jax.jit(act)(known)
    _require_array(name, "the chance", chance, "uint32", (LIVES,))
    _require(bool((chance <= UTILITY_ONE).all()), name, "the chance exceeds 2**24, which stands for 1")
    _require(_same(*peeked) and _same(peeked[0], chance), name, "it looks at the outcome before it acts")
    _require(_same(act(known), chance), name, "two calls for the same set give two chances")
    _require(_same(traced, chance), name, "it gives other chances under jit")
    if component.expected is not None:
        mean = jnp.full((config.num_contexts, config.num_memories, LIVES), 0.5, jnp.float32)
        with _one_line(name, "expected"):
            expected = component.expected(params, mean)
        _require_array(name, "expected", expected, "float32", mean.shape)


def _watch(component: estimators.Estimator, config: Config, relabel: np.ndarray | None = None) -> Pytree:
    """Let an estimator watch random episodes that never show the last memory; returns (state, counts, worth)."""
    params, state = _params(config), component.init(LIVES)
    update = jax.jit(lambda state, step: component.update(params, state, step))
    count = jax.jit(lambda tally, step: estimators.tally(config, tally, step))
    tally = estimators.new_tally(config, LIVES)
    shorter = replace(config, num_memories=config.num_memories - 1)
    for episode in range(EPISODES):
        step = _full_step(shorter, False, salt=episode)
        names = np.arange(config.num_memories) if relabel is None else relabel
        success = jnp.asarray(np.random.default_rng(episode).random(LIVES) < 0.5)
        retrieved = jnp.asarray(names[np.asarray(step.retrieved)], jnp.int32)
        step = step._replace(episode=jnp.int32(episode), worth=NOT_YET, success=success, retrieved=retrieved)
        state, tally = update(state, step), count(tally, step)
    counts = estimators.counts(config, tally)
    return state, counts, component.worth(params, state, counts)


def _check_estimator(name: str, component: estimators.Estimator, config: Config) -> None:
    params, start = _params(config), component.init(LIVES)
    none, index = estimators.counts(config, estimators.new_tally(config, LIVES)), _full_step(config, True).retrieved
    with _one_line(name, "update and worth"):
        before = component.worth(params, start, none)
        state, counts, worth = _watch(component, config)
        again = _watch(component, config)
        traced = jax.jit(lambda s, c: component.worth(params, s, c))(state, counts)
        relabel = np.random.default_rng(1).permutation(config.num_memories)
        relabelled = _watch(component, config, relabel)[2]
    shape = (config.num_memories, LIVES)
    for what, value in (("worth before any evidence", before), ("worth", worth)):
        _require_array(name, what, value, "float32", shape)
        _require(bool(jnp.isfinite(value).all()), name, f"{what} is not finite")
        _require(bool(((value >= 0) & (value <= 1)).all()), name, f"{what} leaves [0, 1]")
    _require(_kinds(start) == _kinds(state), name, f"its state changes from {_kinds(start)} to {_kinds(state)}")
    _require(_same(again[2], worth), name, "watching the same life twice gives two answers")
    _require(np.allclose(traced, worth, rtol=1e-5), name, "it gives another worth under jit")
    _require(_same(worth[-1], before[-1]), name, "a memory that was never shown changes its worth")
    _require(np.allclose(relabelled[relabel], worth, rtol=1e-5), name, "relabelling the memories changes their worth")
    if component.at is not None:
        few = jax.tree.map(
            lambda x: (
                jnp.take_along_axis(x, jnp.broadcast_to(index, (*x.shape[:-2], *index.shape)), -2)
                if x.shape[-2] == config.num_memories
                else x
            ),
            counts,
        )
        with _one_line(name, "at"):
            some = component.at(params, state, few, index)
        expected = jnp.take_along_axis(worth, index, 0)
        _require(np.allclose(some, expected, rtol=1e-6), name, "`at` tells another worth than `worth`")


CHECKS: dict[str, Callable[[str, Any, Config], None]] = {
    "retrieval": _check_retrieval,
    "outcome": _check_outcome,
    "estimator": _check_estimator,
}


def _check_lives(name: str, kind: str, factory: Callable[[Config], Any], config: Config) -> None:
    """Whole lives: sets are sets, and a life is the same alone, in a batch and under nested vmap."""
    observers = ("memory_worth", factory) if kind == "estimator" else ("memory_worth",)
    parts: dict[str, Any] = {kind: factory} if kind != "estimator" else {}
    config = replace(config, observers=observers, actor="memory_worth", metrics=(), num_checkpoints=1, **parts)
    params = make_params(config, num_episodes=EPISODES)
    keys = jax.vmap(lambda i: jax.random.wrap_key_data(jnp.stack([jnp.uint32(1), i])))(
        jnp.arange(LIVES, dtype=jnp.uint32)
    )
    live = lambda params, key: engine.simulate(config, params, key)
    with _one_line(name, "whole lives under jit and vmap"):
        alone = jax.jit(live)(params, keys[LIVES - 1])
        twice = params._replace(prior_a=np.repeat(params.prior_a, 2))
        axes = Params(**{field: 0 if field == "prior_a" else None for field in Params._fields})
        nested = jax.jit(jax.vmap(jax.vmap(live, (None, 0)), (axes, None)))(twice, keys)
    row: Callable[[Trace, int], Trace] = lambda trace, i: jax.tree.map(lambda x: x[i], trace)
    evidence = np.asarray(nested.counts.evidence)
    complete = (evidence <= EPISODES).all() and (evidence.sum(axis=-1) == EPISODES * config.num_retrieved).all()
    _require(bool(complete), name, "a retrieved set repeats a memory or leaves 0..num_memories-1")
    _require(_close(row(row(nested, 0), LIVES - 1), alone), name, "a life differs between alone and in a batch")
    _require(_close(row(nested, 1), row(nested, 0)), name, "a life differs under nested vmap")


def _close(first: Trace, second: Trace) -> bool:
    pairs = zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True)
    return all(np.allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6, equal_nan=True) for a, b in pairs)
