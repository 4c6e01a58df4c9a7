"""Pure reductions over the memories of a life, taken at checkpoints: arrays are [..., memory, life] -> [..., life]."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from mwjax import lanes
from mwjax.config import Config, Params
from mwjax.types import LABELS, TRUTHS, UTILITY_ONE, Counts

QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
PAIRWISE_MEMORIES = 512
"""Up to so many memories, ranks by counting all pairs are faster than sorting, and exact in integers."""


class Order(NamedTuple):
    """How many of the memories lie strictly below and strictly above each one, int32 [..., memory, life]."""

    below: Array
    above: Array

    def ranks(self) -> Array:
        """Average ranks, doubled and centred: 2 rank - (N + 1), int32."""
        return self.below - self.above


def order(values: Array) -> Order:
    """Rank [..., memory, life] along memory; ties share."""
    if values.shape[-2] <= PAIRWISE_MEMORIES:
        return _count_pairs(values)
    rows = jnp.moveaxis(values, -2, -1)
    flat = rows.reshape(-1, rows.shape[-1])
    search = lambda side: jax.vmap(lambda x: jnp.searchsorted(jnp.sort(x), x, side=side))(flat)
    back = lambda x: jnp.moveaxis(x.astype(jnp.int32).reshape(rows.shape), -1, -2)
    return Order(back(search("left")), back(jnp.int32(rows.shape[-1]) - search("right").astype(jnp.int32)))


def _count_pairs(values: Array) -> Order:
    """One memory against all at a time: elementwise on [memory, life], which vectorises; one big reduction does not."""

    def compare(i: Array, found: Order) -> Order:
        other = lax.dynamic_index_in_dim(values, i, axis=-2)
        return Order(found.below + (values > other).astype(jnp.int32), found.above + (values < other).astype(jnp.int32))

    none = jnp.zeros(values.shape, jnp.int32)
    return lax.fori_loop(0, values.shape[-2], compare, Order(none, none), unroll=4)


def spearman(ranks: Array, truth_ranks: Array) -> Array:
    """Spearman's rank correlation of two centred rankings, float32 [..., life]; 0 where one is constant."""
    dtype = jnp.int32 if ranks.shape[-2] <= 1024 else jnp.float32
    a, b = ranks.astype(dtype), truth_ranks.astype(dtype)
    dot = lambda x, y: (x * y).sum(-2, dtype=dtype).astype(jnp.float32)
    scale = jnp.sqrt(dot(a, a)) * jnp.sqrt(dot(b, b))
    return jnp.where(scale > 0, dot(a, b) / jnp.where(scale > 0, scale, jnp.float32(1)), jnp.float32(0))


def rmse(worth: Array, p_plus: Array) -> Array:
    """Root mean square of worth - p+ over the memories."""
    return jnp.sqrt(lanes.total(jnp.square(worth - p_plus)) * jnp.float32(1 / worth.shape[-2]))


def quantiles(values: Array, ordered: Order) -> Array:
    """Lower empirical quantiles (the floor(q (N - 1))-th smallest), [..., memory, life] -> [quantile, ..., life]."""
    size = values.shape[-2]
    position = jnp.asarray([int(q * (size - 1)) for q in QUANTILES], jnp.int32).reshape(-1, *[1] * values.ndim)
    here = (ordered.below <= position) & (jnp.int32(size) - ordered.above > position)
    return jnp.where(here, values, jnp.iinfo(values.dtype).min).max(-2)


def classify(params: Params, value: Array) -> Array:
    """0 low (value <= theta_low), 1 mixed, 2 high (value >= theta_high): indices into TRUTHS."""
    return jnp.where(value <= params.theta_low, 0, jnp.where(value >= params.theta_high, 2, 1)).astype(jnp.int32)


def label(params: Params, worth: Array, evidence: Array) -> Array:
    """Indices into LABELS: as `classify`, or 3 (uncertain) while evidence < min_evidence."""
    uncertain = jnp.int32(LABELS.index("uncertain"))
    return jnp.where(evidence >= params.min_evidence, classify(params, worth), uncertain)


def label_count(labels: Array, truth: Array) -> Array:
    """Confusion counts: labels [estimator, memory, life], truth classes [scale, memory, life].

    int32 [scale, true, label, estimator, life].
    """
    is_true = truth[:, None] == jnp.arange(len(TRUTHS), dtype=jnp.int32)[:, None, None]
    is_label = labels == jnp.arange(len(LABELS), dtype=jnp.int32)[:, None, None, None]
    return (is_true[:, :, None, None] & is_label).sum(-2, dtype=jnp.int32)


class Truth(NamedTuple):
    """What worth is held against, computed once a life."""

    ranks: Array  # int32 [memory, life], of the utilities
    p_plus: Array  # float32 [memory, life]
    classes: Array  # int32 [scale, memory, life], by p+ and by utility


def truth(params: Params, utility: Array, p_plus: Array, live: Array | None = None) -> Truth:
    """Prepare the truth of a life from its utilities (uint32, 24-bit) and p+, and which memories are live."""
    value = utility.astype(jnp.float32) * jnp.float32(1 / UTILITY_ONE)
    classes = jnp.stack([classify(params, p_plus), classify(params, value)])
    return Truth(live_ranks(utility, live, jnp.uint32(2**32 - 1)), p_plus, classes)


def live_ranks(values: Array, live: Array | None, beyond: Array) -> Array:
    """Centred ranks among the live memories (bool [memory, life]; None: all), 0 for others; `beyond` tops values."""
    if live is None:
        return order(values).ranks()
    gone = (~live).sum(0, dtype=jnp.int32)
    return jnp.where(live, order(jnp.where(live, values, beyond)).ranks() + gone, 0)


def kept(utility: Array, live: Array) -> Array:
    """Mean true utility (uint32 [memory, life]) of the live memories, float32 [life]."""
    value = jnp.where(live, utility.astype(jnp.float32) * jnp.float32(1 / UTILITY_ONE), jnp.float32(0))
    return lanes.total(value) / jnp.maximum(live.sum(0, dtype=jnp.int32).astype(jnp.float32), 1)


def starved(params: Params, evidence: Array) -> Array:
    """Share of the memories whose evidence is below min_evidence, float32 [life]."""
    short = (evidence < params.min_evidence).sum(-2, dtype=jnp.int32)
    return short.astype(jnp.float32) * jnp.float32(1 / evidence.shape[-2])


def pair_count(num_pairs: int, counts: Counts) -> Array:
    """Evidence and successes of the anchors and of their hitchhikers, int32 [count, role, pair, life]."""
    both = jnp.stack([counts.evidence, counts.successes])[:, : 2 * num_pairs]
    return both.reshape(2, 2, num_pairs, both.shape[-1])


def measure(
    config: Config,
    params: Params,
    worth: Array,
    counts: Counts,
    known: Truth,
    mean_success: Array,
    live: Array | None = None,
) -> dict[str, Array]:
    """The metrics that the Config names at one checkpoint; worth is [estimator, memory, life].

    spearman, rmse: float32 [estimator, life]. label_count: int32 [scale, true, label, estimator, life].
    evidence_quantile: int32 [quantile, life]. mean_success (cumulative), starved: float32 [life].
    pair_count: int32 [count, role, pair, life]. compensator: see Trace.expected_hits.
    """
    names, evidence, found = config.metrics, counts.evidence, dict[str, Array]()
    if "spearman" in names:
        found["spearman"] = lax.map(
            lambda one: spearman(live_ranks(one, live, jnp.float32(jnp.inf)), known.ranks), worth
        )
    if "rmse" in names:
        found["rmse"] = rmse(worth, known.p_plus)
    if "label_count" in names:
        found["label_count"] = label_count(label(params, worth, evidence), known.classes)
    if "evidence_quantile" in names:
        found["evidence_quantile"] = quantiles(evidence, order(evidence))
    if "mean_success" in names:
        found["mean_success"] = mean_success
    if "starved" in names:
        found["starved"] = starved(params, evidence)
    if "pair_count" in names:
        found["pair_count"] = pair_count(config.num_pairs, counts)
    return found
