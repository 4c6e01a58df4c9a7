"""Empirical-Bayes Beta priors: the spread of success chances over memories, as their counters show it.

p ~ Beta(a, b) over memories and s | n, p ~ Binomial(n, p) make every counter beta-binomial; a and b are those under
which all counters together are likeliest (Robbins 1956). Both are at least LEAST, so that no prior is sure, and a + b
is at most `most_strength`, which it reaches where the counters vary no more than binomial noise does.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array, lax
from jax.scipy.special import gammaln
from numpy.typing import ArrayLike
from scipy import special

from mwjax import theory
from mwjax.types import InputError

LEAST = 0.5
"""Least a and b (Jeffreys' prior): less puts a pole at 0 or 1, and makes a prior that one outcome overturns."""
MOST_STEPS, SEARCH_STEPS = 40, 4  # a batch runs to its slowest store
SMALLEST_SLOPE, ROUNDING = 1e-8, 1e-10  # nats a memory
STRONGEST, NEARLY = 100_000, 0.999  # beyond it ln Gamma(a) has no digits left to compare likelihoods by
LEAST_SHAPE = 64, 128  # stores and memories that are compiled for; more of them in powers of two


class Prior(NamedTuple):
    """Beta(a, b) of a store, float64 [...], and whether its counters show no over-dispersion, bool [...]."""

    a: np.ndarray
    b: np.ndarray
    capped: np.ndarray  # a + b is most_strength, not an estimate

    @property
    def strength(self) -> np.ndarray:
        """Evidence a + b that the prior is worth."""
        return self.a + self.b


def closed_strength(
    num_memories: int, num_retrieved: int, *, utility_variance: float = 1 / 12, mean: float = 0.5
) -> float:
    """a + b of the mean outcome law under uniform retrieval (Simsek 2026, Theorem 4.1): mean (1 - mean) / Var(p+) - 1.

    Var(p+) = Var(U) ((N - k) / (k (N - 1)))^2 by theory.dilution. 221 for N = 100 and k = 8; inf where k >= N.
    """
    variance = utility_variance * max(theory.dilution(num_memories, num_retrieved), 0.0) ** 2
    return mean * (1 - mean) / variance - 1 if variance > 0 else math.inf


def moments(successes: ArrayLike, evidence: ArrayLike, *, most_strength: float = 10_000.0) -> Prior:
    """Beta prior by the moments of [..., memory] counters of unequal evidence.

    Over the M memories with n > 0, N = sum n and w = s / n:

        p        = sum s / N                                       (0.5 where N = 0)
        excess   = sum n (w - p)^2 - p (1 - p) (M - 1)             (sum of squares less its binomial part)
        spread   = p (1 - p) sum max(n - 1, 0) (1 - n / N)         (what a unit of rho adds to excess)
        capped   = spread <= 0 or excess (most_strength + 1) <= spread
        strength = max(spread / excess - 1, 1), or most_strength where capped
        a        = min(max(p strength, 0.5), strength - 0.5),    b = strength - a

    The sum of squares has mean p (1 - p) (M - 1 + rho sum (n - 1) (1 - n / N)), with rho = 1 / (a + b + 1) = Var(p) /
    (p (1 - p)), if p is the true mean (Kleinman 1973, J. Am. Stat. Assoc. 68, 46, for weights n).
    """
    hits, n = _checked(successes, evidence, most_strength)
    total = n.sum(-1, keepdims=True)
    p = np.divide(hits.sum(-1, keepdims=True), total, out=np.full(total.shape, 0.5), where=total > 0)
    noise, shown = p * (1 - p), np.maximum(n, np.finfo(np.float64).tiny)
    excess = (n * (hits / shown - p) ** 2 - noise * (n > 0)).sum(-1) + noise[..., 0]
    spread = (noise * np.maximum(n - 1, 0) * (1 - n / np.maximum(total, 1))).sum(-1)
    capped = (spread <= 0) | (excess * (most_strength + 1) <= spread)
    ratio = np.divide(spread, excess, out=np.zeros_like(spread), where=~capped)
    return _prior(p[..., 0], np.where(capped, most_strength, np.maximum(ratio - 1, 2 * LEAST)), capped)


def fit(successes: ArrayLike, evidence: ArrayLike, *, most_strength: float = 10_000.0) -> Prior:
    """Beta prior of the greatest marginal likelihood of [..., memory] counters, each leading index for itself.

    Maximises sum_i [ln B(a + s_i, b + n_i - s_i) - ln B(a, b)] over a, b >= 0.5 and a + b <= most_strength. Memories
    without evidence count for nothing; counters need not be whole. Where nothing speaks against equal chances, as where
    no memory was shown twice, the prior is `capped`: then its mean says something, its strength does not.
    """
    hits, n = _checked(successes, evidence, most_strength)
    start, room = moments(hits, n, most_strength=most_strength), most_strength - 2 * LEAST
    mean = np.clip(start.a / start.strength, 0.01, 0.99)
    share = np.clip((start.strength - 2 * LEAST) / room, 0.5 / most_strength, 0.5)
    point = np.stack([special.logit(mean), special.logit(share)], axis=-1)
    rows, memories = mean.size, n.shape[-1]
    short, narrow = ((0, _missing(*sizes)) for sizes in zip((rows, memories), LEAST_SHAPE, strict=True))
    counters = [np.pad(x.reshape(rows, memories), (short, narrow)) for x in (hits, n)]
    with jax.enable_x64(True), jax.numpy_dtype_promotion("standard"):  # optax mixes widths of its integers
        arguments = np.pad(point.reshape(rows, 2), (short, (0, 0))), *counters, np.float64(room)
        a, b, capped = (np.asarray(x)[:rows].reshape(mean.shape) for x in _maximise(*arguments))
    return Prior(a, b, capped)


def _missing(size: int, least: int) -> int:
    """How many to add: few shapes, as each takes seconds to compile."""
    return max(1 << max(size - 1, 0).bit_length(), least) - size


def _checked(successes: ArrayLike, evidence: ArrayLike, most_strength: float) -> tuple[np.ndarray, np.ndarray]:
    hits, n = np.asarray(successes, np.float64), np.asarray(evidence, np.float64)
    if n.ndim == 0 or hits.shape != n.shape:
        raise InputError(f"successes {hits.shape} are not of the shape [..., memory] of evidence {n.shape}")
    wrong = ~((hits >= 0) & (hits <= n) & np.isfinite(n))
    if wrong.any():
        raise InputError(f"successes {hits[wrong][0]} of evidence {n[wrong][0]} are not in 0 .. evidence < inf")
    if not 2 * LEAST < most_strength <= STRONGEST:
        raise InputError(f"most_strength is {most_strength}, not in ({2 * LEAST:g}, {STRONGEST}]")
    return hits, n


def _law(point: Array, room: Array) -> tuple[Array, Array]:
    """(logit mean, logit share of the room) -> (a, b); far below the cap the second is ln(a + b - 1) and a constant."""
    strength = room * jax.nn.sigmoid(point[1])
    return LEAST + strength * jax.nn.sigmoid(point[0]), LEAST + strength * jax.nn.sigmoid(-point[0])


def _loss(a: Array, b: Array, hits: Array, n: Array) -> Array:
    """Negative logarithm of the marginal likelihood, in nats a memory shown; 0 for a memory that was not."""
    counters = jnp.pad(jnp.stack([hits, n - hits, n]), ((0, 0), (1, 0)))  # the first column is the prior itself
    log_gamma = gammaln(jnp.stack([a, b, a + b])[:, None] + counters)  # one call: it is most of the program
    gained = log_gamma[:, 1:] - log_gamma[:, :1]
    return (gained[2] - gained[0] - gained[1]).sum() / jnp.maximum((n > 0).sum(dtype=n.dtype), 1)


def _descend(point: Array, hits: Array, n: Array, room: Array) -> tuple[Array, Array, Array]:
    """Minimise the loss of one store; a, b, capped."""
    search = optax.scale_by_zoom_linesearch(SEARCH_STEPS, initial_guess_strategy="one")
    method, loss = optax.lbfgs(linesearch=search), lambda point: _loss(*_law(point, room), hits, n)

    def unfinished(carry: tuple) -> Array:
        _, _, slope, step = carry
        return (jnp.abs(slope).max() > SMALLEST_SLOPE) & (step < MOST_STEPS)

    def body(carry: tuple) -> tuple:
        point, state, _, step = carry
        value, slope = jax.value_and_grad(loss)(point)
        update, state = method.update(slope, state, point, value=value, grad=slope, value_fn=loss)
        return optax.apply_updates(point, update), state, slope, step + 1

    first = point, method.init(point), jnp.full_like(point, jnp.inf), jnp.zeros((), jnp.int32)
    a, b = _law(lax.while_loop(unfinished, body, first)[0], room)
    most = room + 2 * LEAST
    a_cap = jnp.clip(a / (a + b) * most, LEAST, most - LEAST)
    law, law_cap = jnp.stack([a, b]), jnp.stack([a_cap, most - a_cap])
    free, tied = lax.map(lambda law: _loss(law[0], law[1], hits, n), jnp.stack([law, law_cap]))
    capped = (tied <= free + ROUNDING) | (a + b >= NEARLY * most)
    return *jnp.where(capped, law_cap, law), capped


@jax.jit
def _maximise(points: Array, hits: Array, n: Array, room: Array) -> tuple[Array, Array, Array]:
    """a, b, capped of every store, [store] each, from points [store, 2] and counters [store, memory]."""
    return jax.vmap(_descend, in_axes=(0, 0, 0, None))(points, hits, n, room)


def _prior(mean: np.ndarray, strength: np.ndarray, capped: np.ndarray) -> Prior:
    """The Beta law of a mean and a strength, both parameters kept off 0."""
    a = np.minimum(np.maximum(mean * strength, LEAST), strength - LEAST)
    return Prior(a, strength - a, capped)
