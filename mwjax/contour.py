"""The separation map: how much a pair must be separated, and for how long, before a score tells the two apart.

A cell is one separation f and one mark (a number of episodes); its score in [0, 1] is averaged over seeds 0 .. n_f - 1,
the same seeds in every cell (common random numbers). A monotone surface P(f, mark) is fitted to the cells, the
threshold f* is where it crosses a level, and resampling whole seeds gives the band of f*.

Surface: from one free value at f = 0, probit P rises by step x exp(b) a separation, step in sqrt f. Brownian gaps have
probit P = sqrt(f n) d / k (Simsek 2026, Experiment 4; theory.hitchhiker): b is then the same at every f and moves
slowly with the mark. The penalty expects that, up to FREEDOM_SEPARATION and FREEDOM_MARK, and fades as seeds come
(increments penalised on their logarithms: Pya & Wood 2015, doi 10.1007/s11222-013-9448-7). Along the marks the fit is
sorted, which never takes it further from a monotone truth (Chernozhukov et al. 2009, Biometrika 96, 559).

Minimiser: L-BFGS where the Fisher information is the identity; a line search, which under vmap runs to its slowest
sample, takes a hundred times longer. The first rounds count the data as FIRST_SEEDS a cell: each starts near its end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax
from numpy.typing import ArrayLike
from scipy import special

from mwjax.types import InputError

FREEDOM_SEPARATION, FREEDOM_MARK = 0.15, 0.4
"""Prior standard deviations of the first difference of b along f and of its second difference along the marks."""
ROUNDS, STEPS, FIRST_SEEDS = 10, 8, 30.0
MAX_STEP, DAMPING = 10.0, 0.1  # in whitened coordinates; for directions that neither data nor penalty hold
NEAR = 1.5  # cells within this factor of a threshold move it


class Cells(NamedTuple):
    """What the seeds of one sample say, float32 [separation, mark] each (a batch has its axis in front)."""

    mean: Array  # of the scores
    weight: Array  # number of seeds
    best: Array  # log-likelihood of a seed at P = mean; without it the loss outgrows float32


class Band(NamedTuple):
    """A threshold and its band, float64 [mark] each; `inf` and the smallest separation as in `threshold`."""

    threshold: np.ndarray
    low: np.ndarray
    high: np.ndarray


def _log_cdf(z: Array) -> Array:
    """log Phi(z), to 1e-7 absolute: as good as float32 can sum it."""
    return jnp.log(lax.erfc(jnp.clip(z, -12, 12) * -math.sqrt(0.5)) / 2)


def _surface(point: Array, steps: Array) -> tuple[Array, Array]:
    """Parameters [1 + separation x mark] -> probit P [separation, mark], and what the penalty squares [difference]."""
    b = point[1:].reshape(len(steps), -1)
    along_mark = (b[:, 2:] - 2 * b[:, 1:-1] + b[:, :-2]) / FREEDOM_MARK
    rough = jnp.concatenate([(jnp.diff(b, axis=0) / FREEDOM_SEPARATION).ravel(), along_mark.ravel()])
    return point[0] + steps @ jnp.exp(b), rough


def _loss(point: Array, steps: Array, cells: Cells) -> Array:
    """Half the binomial deviance plus the penalty."""
    z, rough = _surface(point, steps)
    excess = cells.best - cells.mean * _log_cdf(z) - (1 - cells.mean) * _log_cdf(-z)
    return (cells.weight * excess).sum() + jnp.square(rough).sum() / 2


def _whitening(point: Array, steps: Array, weight: Array) -> Array:
    """Rows [coordinate, parameter] in which the Fisher information of data and penalty is the identity."""
    z = _surface(point, steps)[0]
    root = jnp.sqrt(weight * jnp.exp(-z * z - _log_cdf(z) - _log_cdf(-z)) / (2 * math.pi))
    by_z, by_rough = jax.jacfwd(_surface)(point, steps)
    rows = jnp.concatenate([(root[..., None] * by_z).reshape(-1, len(point)), by_rough])
    factor = jnp.linalg.cholesky(rows.T @ rows + DAMPING * jnp.eye(len(point), dtype=point.dtype))
    return lax.linalg.triangular_solve(factor, jnp.eye(len(point), dtype=point.dtype), left_side=True, lower=True)


def _descend(point: Array, white: Array, steps: Array, cells: Cells) -> Array:
    """A few steps of L-BFGS from `point` in whitened coordinates; the best point met."""
    quasi_newton = optax.lbfgs(1.0, memory_size=STEPS, scale_init_precond=False, linesearch=None)
    method = optax.chain(quasi_newton, optax.clip_by_global_norm(MAX_STEP))
    loss = jax.value_and_grad(lambda y: _loss(point + y @ white, steps, cells))

    def step(carry: tuple, _: None) -> tuple[tuple, None]:
        y, state, best = carry
        value, gradient = loss(y)
        best = jax.tree.map(lambda new, old: jnp.where(value < best[0], new, old), (value, y), best)
        update, state = method.update(gradient, state, y)
        return (optax.apply_updates(y, update), state, best), None

    y = jnp.zeros_like(point)
    (_, _, best), _ = lax.scan(step, (y, method.init(y), (jnp.full((), jnp.inf, y.dtype), y)), length=STEPS)
    return point + best[1] @ white


@jax.jit
def _minimise(point: Array, steps: Array, shares: Array, cells: Cells) -> Array:
    """Fit every sample from one point, the first giving the metric; [sample, 1 + separation x mark]. shares [round]."""

    def one_round(points: Array, share: Array) -> tuple[Array, None]:
        white = _whitening(points[0], steps, share * cells.weight[0])
        counted = cells._replace(weight=share * cells.weight)
        return jax.vmap(_descend, in_axes=(0, None, None, 0))(points, white, steps, counted), None

    return lax.scan(one_round, jnp.broadcast_to(point, (len(cells.mean), len(point))), shares)[0]


def _start(separation: np.ndarray, mean: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """A first point: one line through the empirical probits on sqrt f."""
    chance = (mean * weight + 0.5) / (weight + 1)
    z, root = special.ndtri(chance), np.broadcast_to(np.sqrt(separation)[:, None], mean.shape)
    precision = (weight + 0.1) * np.exp(-np.square(z)) / (chance * (1 - chance))
    slope, base = np.polyfit(root.ravel(), z.ravel(), 1, w=np.sqrt(precision).ravel())
    return np.append(base, np.full(mean.shape, np.log(np.maximum(slope, 0.3))))


def _checked(separation: ArrayLike) -> np.ndarray:
    grid = np.asarray(separation, np.float64)
    if grid.ndim != 1 or len(grid) < 2 or not (grid[0] > 0 and grid[-1] <= 1 and (np.diff(grid) > 0).all()):
        raise InputError(f"separation is {grid.tolist()}, not two or more increasing values in (0, 1]")
    return grid


def fit(separation: ArrayLike, score_mean: ArrayLike, weight: ArrayLike) -> np.ndarray:
    """Monotone P(f, mark), non-decreasing along both axes, float64 [separation, mark].

    score_mean [separation, mark] is the mean score in [0, 1] over weight [separation, mark] seeds; a cell of weight 0
    counts for nothing. Samples of the same cells are fitted together if both have an axis in front. Deterministic.
    """
    separation, mean = _checked(separation), np.asarray(score_mean, np.float64)
    weight = np.broadcast_to(np.asarray(weight, np.float64), mean.shape)
    mean = np.where(weight > 0, mean, 0.5)
    if mean.ndim < 2 or mean.shape[-2] != len(separation) or not ((mean >= 0) & (mean <= 1)).all():
        raise InputError(f"scores {mean.shape} are not [{len(separation)}, mark] of values in [0, 1]")
    best = -special.entr(mean) - special.entr(1 - mean)
    flat = [x.reshape(-1, *mean.shape[-2:]) for x in (mean, weight, best)]
    growth = np.clip(np.linspace(1, -2 / (ROUNDS - 3), ROUNDS), 0, 1)  # the last three rounds count all seeds
    shares = min(1.0, FIRST_SEEDS / max(weight.max(), 1.0)) ** growth
    point = _start(separation, flat[0][0], flat[1][0] * shares[0])
    step = np.tile(np.diff(np.sqrt(separation), prepend=0.0), (len(separation), 1))
    with jax.enable_x64(False), jax.default_matmul_precision("highest"):  # optax mixes its widths under x64
        point, steps, shares, *cells = (jnp.float32(x) for x in (point, np.tril(step), shares, *flat))
        points = np.asarray(_minimise(point, steps, shares, Cells(*cells)), np.float64)
    rise = step[-1][:, None] * np.exp(points[:, 1:].reshape(mean.shape))
    base = points[:, 0].reshape(*mean.shape[:-2], 1, 1)
    return special.ndtr(np.sort(base + rise.cumsum(axis=-2), axis=-1))


def threshold(separation: ArrayLike, fitted: ArrayLike, level: float) -> np.ndarray:
    """Smallest f at which fitted [..., separation, mark] reaches the level, float64 [..., mark].

    Between two separations probit P is a straight line in sqrt f, as in the fit. `inf` where the level is not reached
    within the grid; the smallest separation, to be read as "at most", where it is reached everywhere.
    """
    separation, wanted = _checked(separation), special.ndtri(level)
    z = np.clip(special.ndtri(np.asarray(fitted, np.float64)), -8, 8)
    reached = z >= wanted
    first = reached.argmax(axis=-2)
    upper, root = np.maximum(first, 1), np.sqrt(separation)
    below, above = (np.take_along_axis(z, i[..., None, :], axis=-2)[..., 0, :] for i in (upper - 1, upper))
    part = np.divide(wanted - below, above - below, out=np.zeros_like(below), where=above > below)
    crossing = np.square((1 - part) * root[upper - 1] + part * root[upper])
    return np.where(reached.any(axis=-2), np.where(first == 0, separation[0], crossing), np.inf)


def band(
    separation: ArrayLike,
    scores: Sequence[np.ndarray],
    level: float,
    *,
    resamples: int = 200,
    coverage: float = 0.95,
    seed: int = 0,
) -> Band:
    """Threshold of the scores, one [seed, mark] for every separation, and its percentile bootstrap band.

    Seeds are resampled whole: one draw of indices serves all cells, a cell with n_f seeds taking those below n_f, so
    what the cells share stays shared. The ends are order statistics, outwards of the percentiles.
    """
    most, rng = max(len(one) for one in scores), np.random.default_rng(seed)
    draws = [np.bincount(rng.integers(most, size=most), minlength=most) for _ in range(resamples)]
    times = np.array([np.ones(most), *draws], np.float32)
    weight = np.stack([times[:, : len(one)].sum(axis=1) for one in scores], axis=1)[:, :, None]
    total = np.stack([times[:, : len(one)] @ np.asarray(one, np.float32) for one in scores], axis=1)
    found = threshold(separation, fit(separation, total / np.maximum(weight, 1), weight), level)
    low = np.quantile(found[1:], (1 - coverage) / 2, axis=0, method="lower")
    high = np.quantile(found[1:], (1 + coverage) / 2, axis=0, method="higher")
    return Band(found[0], low, high)


def next_seeds(
    separation: ArrayLike,
    counts: ArrayLike,
    fstar: ArrayLike,
    low: ArrayLike,
    high: ArrayLike,
    *,
    target: float = 0.03,
    most: int,
) -> np.ndarray:
    """Seeds for the next round, int64 [separation]: twice as many, up to `most`, beside a threshold not yet sharp.

    A mark asks for them while half its band exceeds `target` of its threshold; it asks the cells within a factor NEAR
    of the threshold and the two that enclose it. Marks whose threshold lies outside the grid ask for none.
    """
    separation, counts = _checked(separation), np.asarray(counts, np.int64)
    fstar, low, high = (np.asarray(x, np.float64) for x in (fstar, low, high))
    sharp = np.isfinite(high) & (high <= low + 2 * target * fstar)
    centre = fstar[np.isfinite(fstar) & (fstar > separation[0]) & ~sharp]
    near, upper = np.abs(np.log(separation[:, None] / centre)) <= np.log(NEAR), np.searchsorted(separation, centre)
    asked = near.any(axis=1) | np.isin(np.arange(len(separation)), [upper - 1, upper])
    return np.where(asked, np.maximum(np.minimum(2 * counts, most), counts), counts)
