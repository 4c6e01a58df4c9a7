"""Lives in bulk: the only place that vmaps, jits, shards and cuts into chunks."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.custom_batching import custom_vmap
from jax.sharding import Mesh, PartitionSpec

from mwjax import episode, registry
from mwjax.config import Config, Params, make_params
from mwjax.config.texts import blank
from mwjax.types import InputError, Pytree, Trace

BATCH_BYTES = 300 << 10
"""Counters of one batch of lives that still sit in a core's cache; more lives make more batches, not bigger ones."""
TREE_LIVES, TREE_MEMORIES = 128, 2_560_000
"""Of retrieval from a sum tree: least lives of a batch, and most memories of all its lives."""

ONE_THREAD: dict[str, str | bool] = {"xla_cpu_multi_thread_eigen": False}
"""Cores are used by sharding lives; splitting the small loops of one episode between threads only costs time."""


def simulate(config: Config, params: Params, key: Array) -> Trace:
    """The life of one agent. Pure: jit it, vmap it over keys and over any leaf of params.

    `key` is a threefry key whose data is (root seed, seed): `jax.random.wrap_key_data([root, i])` is life i of `run`.
    """
    if not jnp.issubdtype(key.dtype, jax.dtypes.prng_key) or jax.random.key_impl(key) != "threefry2x32":
        raise InputError("key: must be a threefry2x32 key, jax.random.wrap_key_data(uint32 [root seed, seed])")
    root, seed = jax.random.key_data(key)
    return _life(config)(jax.tree.map(jnp.asarray, params), root, seed)


@functools.lru_cache(maxsize=256)
def _life(config: Config) -> Callable[[Params, Array, Array], Trace]:
    """One life as a function of (params, root, seed) whose batches run with the life axis last."""
    parts = registry.parts(config)

    def kernel(params: Params, root: Array, seed: Array) -> Trace:
        lanes = max(seed.shape[0], 2)  # a lone lane would be compiled as scalars, whose floats round otherwise
        trace = episode.live(config, parts, params, root, jnp.broadcast_to(seed, (lanes,)))
        return jax.tree.map(lambda x: jnp.moveaxis(x, -1, 0)[: seed.shape[0]], trace)

    @custom_vmap
    def life(params: Params, root: Array, seed: Array) -> Trace:
        one = jax.tree.map(lambda x: x[..., None], params)._replace(checkpoints=params.checkpoints)
        return jax.tree.map(lambda x: x[0], kernel(one, root[None], seed[None]))

    @life.def_vmap
    def batch(size: int, batched: Pytree, params: Params, root: Array, seed: Array) -> tuple[Trace, Pytree]:
        many, many_root, many_seed = batched
        if many.checkpoints:
            out = jax.lax.map(lambda x: life(*x), _spread(size, tuple(batched), (params, root, seed)))
        else:
            last = jax.tree.map(lambda x, b: jnp.moveaxis(x, 0, -1) if b else x[..., None], params, many)
            root = root if many_root else root[None]
            seed = seed if many_seed else jnp.broadcast_to(seed, (size,))
            out = kernel(last._replace(checkpoints=params.checkpoints), root, seed)
        return out, jax.tree.map(lambda _: True, out)

    return life


def _spread(size: int, batched: Pytree, tree: Pytree) -> Pytree:
    return jax.tree.map(lambda x, b: x if b else jnp.broadcast_to(x, (size, *x.shape)), tree, batched)


class Batch(NamedTuple):
    """Results of consecutive lives, NumPy arrays with the lives in front."""

    start: int
    trace: Trace
    compile_s: float


class Program(NamedTuple):
    """The compiled program of one chunk: (params, root, seeds) -> Trace with the lives in front."""

    call: Callable[[Params, np.uint32, np.ndarray], Trace]
    compile_s: float


def batch_size(config: Config, num_devices: int = 1) -> int:
    """Lives of one chunk: as many as keep the counters in cache, a multiple of 32, on every device.

    A sum tree makes many small operations an episode, so it wants at least TREE_LIVES, in cache or not.
    """
    if registry.parts(config).retrieval.observe is None:
        fit = BATCH_BYTES // (8 * config.num_memories) // 32 * 32
        return num_devices * max(32, min(1024, fit))
    return num_devices * max(TREE_LIVES, min(3 * TREE_LIVES, TREE_MEMORIES // config.num_memories // 32 * 32))


@functools.lru_cache(maxsize=64)
def compile_chunk(config: Config, lives: int, devices: tuple[Any, ...], varied: tuple[str, ...] = ()) -> Program:
    """Compile a chunk of lives, sharded over devices; the Params fields in `varied` have one value a life."""
    axes = Params(**{name: 0 if name in varied else None for name in Params._fields})
    one = lambda params, root, seed: simulate(config, params, jax.random.wrap_key_data(jnp.stack([root, seed])))
    chunk = jax.vmap(one, in_axes=(axes, None, 0))
    if len(devices) > 1:
        mesh, over = Mesh(np.asarray(devices), ("life",)), PartitionSpec("life")
        specs = Params(**{name: over if name in varied else PartitionSpec() for name in Params._fields})
        chunk = jax.shard_map(
            chunk, mesh=mesh, in_specs=(specs, PartitionSpec(), over), out_specs=over, check_vma=False
        )
    started = time.perf_counter()
    example = (_example(config, lives, varied), np.uint32(0), np.zeros(lives, np.uint32))
    options = ONE_THREAD if any(device.platform == "cpu" for device in devices) else None
    call = jax.jit(chunk).lower(*example).compile(compiler_options=options)
    return Program(call, time.perf_counter() - started)


def _example(config: Config, lives: int, varied: tuple[str, ...]) -> Params:
    """Params of the right shapes, which is all that the compiler looks at."""
    marks = range(1, config.num_checkpoints + 1)
    utilities = [0.0] * config.num_memories if config.utility == "list" else None
    params = make_params(config, num_episodes=marks[-1], checkpoints=marks, utilities=utilities, texts=blank(config))
    return params._replace(**{name: np.repeat(getattr(params, name)[None], lives, axis=0) for name in varied})


def run_lives(
    config: Config,
    params: Params,
    seeds: np.ndarray,
    *,
    root_seed: int = 0,
    varied: tuple[str, ...] = (),
    chunk: int | None = None,
    devices: Sequence[Any] | None = None,
) -> Iterator[Batch]:
    """Simulate len(seeds) lives in chunks of equal shape (the last one padded); the next runs while one is handed over.

    The fields of `params` named in `varied` carry a leading axis of len(seeds): one value a life.
    """
    devices = tuple(devices or jax.local_devices())
    total, seeds = len(seeds), np.asarray(seeds, np.uint32)
    chunk = min(chunk or batch_size(config, len(devices)), max(total, 1))
    chunk += -chunk % len(devices)
    program = compile_chunk(config, chunk, devices, varied)

    def launch(start: int) -> Trace:
        index = np.minimum(np.arange(start, start + chunk), total - 1)
        rows = {name: getattr(params, name)[index] for name in varied}
        return program.call(params._replace(**rows), np.uint32(root_seed), seeds[index])

    def fetch(start: int, trace: Trace) -> Batch:
        return Batch(start, jax.tree.map(lambda x: np.asarray(x)[: total - start], trace), program.compile_s)

    waiting: tuple[int, Trace] | None = None
    for start in range(0, total, chunk):
        following = (start, launch(start))
        if waiting is not None:
            yield fetch(*waiting)
        waiting = following
    if waiting is not None:
        yield fetch(*waiting)
