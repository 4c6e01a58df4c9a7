"""Adjusted worth: what a memory adds to an outcome, the memories it is shown with held fixed.

Logistic ridge regression of the outcome on inclusion: minimise, over a free intercept and b,

    sum over rows of log(1 + exp(-y eta)) + lambda/2 |b|^2,    eta = intercept + x b,  y = -1 or 1.

A row is an episode and x is 1 for the memories shown. Where units have two sides a row is a unit: memories of side +1
enter as +1, of side -1 as -1, and the outcome is that of side +1. Memories whose verdict is "unused" do not enter.

Where all rows have the same sum (sets of one size, two equal sides) only differences of b are identified. Then
`relative` is b less its mean over all showings: what happens if an average shown memory gives its place to this one.
Else it is b itself, in against out. The map to a probability, on which thresholds and labels work, is

    adjusted worth = expit(logit(base rate) + relative),    interval: relative -+ 1.96 standard errors, mapped alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg, sparse, special
from scipy.sparse import linalg as sparse_linalg

from mwjax.checks import check_integer, check_number
from mwjax.logs.journal import Journal
from mwjax.types import InputError

Z_95 = 1.959963984540054
GRID = tuple((10.0 ** np.arange(0, 4.5, 0.5)).tolist())
"""Penalties tried: normal priors of b with standard deviations from 1 to 0.01."""
DENSE = 2_000
"""Up to so many memories the memory x memory matrix is factored; beyond, systems are solved by conjugate gradients."""
MOST_STEPS, SMALLEST_SLOPE, LONGEST_STEP = 200, 1e-8, 1.5

Sparse = Any  # sparse.csr_array, whose stubs have no shape
Inverse = Callable[[np.ndarray], np.ndarray]


class Design(NamedTuple):
    """What is regressed on what. Rows are episodes, or units with two sides."""

    matrix: Sparse  # float64 [row, memory]: 1, or -1 for the other side
    success: np.ndarray  # float64 [row], 1 or 0
    unit: np.ndarray  # int64 [row], from 0
    share: np.ndarray  # float64 [memory], share of all showings where only differences of b are identified, else 0
    base_rate: float  # successes / evidence
    left_out: int  # episodes without a row: outcome unknown, or a unit that has not one episode of each side


class Fit(NamedTuple):
    """The minimum."""

    penalty: float
    intercept: float
    coefficient: np.ndarray  # float64 [memory], b


class Validation(NamedTuple):
    """Log loss of held-out rows, in nats a row, by penalty; compared on the same rows."""

    penalty: np.ndarray  # float64 [candidate], increasing
    loss: np.ndarray  # float64 [candidate]
    excess: np.ndarray  # float64 [candidate], loss less the least one
    standard_error: np.ndarray  # float64 [candidate], of the excess, over units
    chosen: float  # of least loss


@dataclass(frozen=True)
class Adjusted:
    """Adjusted worth of every memory; NaN where a standard error was not asked for."""

    penalty: float
    intercept: float
    coefficient: np.ndarray  # float64 [memory], logit b
    reference: float  # the mean of b over all showings, or 0
    base_rate: float
    standard_error: np.ndarray  # float64 [memory], of `relative`
    variance_inflation: np.ndarray  # float64 [memory]
    rows: int
    left_out: int
    validation: Validation | None  # None where the penalty was given

    @property
    def relative(self) -> np.ndarray:
        """Logit above the base rate, float64 [memory]."""
        return self.coefficient - self.reference

    @property
    def worth(self) -> np.ndarray:
        """A success probability, float64 [memory]."""
        return self.to_worth(self.relative)

    @property
    def interval(self) -> np.ndarray:
        """95 % interval of the adjusted worth, float64 [memory, (low, high)]."""
        return self.to_worth(self.relative[:, None] + np.array([-Z_95, Z_95]) * self.standard_error[:, None])

    def to_worth(self, relative: np.ndarray) -> np.ndarray:
        """expit(logit(base rate) + relative)."""
        return special.expit(special.logit(self.base_rate) + relative)


def adjust(
    log: Journal | Design, *, penalty: float | str = "cv", memories: Sequence[int] | None = None, folds: int = 5
) -> Adjusted:
    """Adjusted worth by the given penalty lambda, or by that of least held-out log loss ("cv").

    Standard errors and variance inflation are those of `memories`: None is all up to DENSE memories, none beyond.
    """
    about = log if isinstance(log, Design) else design(log)
    validation = cross_validate(about, folds=folds) if penalty == "cv" else None
    found = fit(about, validation.chosen if validation else penalty)
    number = about.matrix.shape[1]
    chosen = np.arange(number if number <= DENSE else 0) if memories is None else np.asarray(memories, np.int64)
    error, inflation = np.full(number, np.nan), np.full(number, np.nan)
    if len(chosen):
        error[chosen], inflation[chosen] = errors(about, found, chosen)
    reference, rows = float(about.share @ found.coefficient), len(about.success)
    return Adjusted(*found, reference, about.base_rate, error, inflation, rows, about.left_out, validation)


def design(journal: Journal) -> Design:
    """The rows of a log. InputError where there is nothing to explain."""
    episode, known = journal.episode, journal.outcome >= 0
    evidence, hits = (journal.success >= 0).sum(), (journal.success == 1).sum()
    if not 0 < hits < evidence:
        raise InputError(f"outcome: {hits:,} successes of {evidence:,}; adjusted worth needs both kinds")
    value, row = np.ones(len(episode)), np.cumsum(known) - 1
    first = np.flatnonzero(known)
    if journal.side is not None and journal.side.any():
        side = np.where(known, journal.side, 0)
        home, away = (np.bincount(journal.unit[side == s], minlength=journal.unit.max() + 1) for s in (1, -1))
        known = known & (side != 0) & ((home == 1) & (away == 1))[journal.unit]
        first = np.flatnonzero(known & (side == 1))
        row = np.full(len(home), -1)
        row[journal.unit[first]] = np.arange(len(first))
        row, value = row[journal.unit], side[episode].astype(np.float64)
    shown = known[episode] & (journal.success >= 0)
    at = row[episode[shown]], journal.memory[shown]
    matrix = sparse.csr_array((value[shown], at), shape=(len(first), len(journal.memories)))
    share = np.bincount(journal.memory[shown], minlength=len(journal.memories)) / max(shown.sum(), 1)
    unit = np.unique(journal.unit[first], return_inverse=True)[1]
    success = (journal.outcome[first] == 1).astype(np.float64)
    if not 0 < success.sum() < len(success):
        raise InputError(f"outcome: {success.sum():,.0f} successes in {len(success):,} rows; adjusted worth needs both")
    share *= np.ptp(matrix.sum(axis=1)) == 0
    return Design(matrix, success, unit, share, float(hits / evidence), len(known) - int(known.sum()))


def fit(about: Design, penalty: Any, start: Fit | None = None, information: np.ndarray | None = None) -> Fit:
    """The minimum by Newton steps, each solved by conjugate gradients with the intercept eliminated.

    A step that moves no row by more than 1.79 lowers the loss (Bach 2010, Electron. J. Stat. 4, 384, Prop. 1), so that
    longer ones are cut and none is tried twice. `information`: that of flat_information, where it is at hand.
    """
    check_number("penalty (lambda of the ridge)", penalty, 1e-6, 1e12)
    x, y, rows = about.matrix, about.success, len(about.success)
    intercept = start.intercept if start else float(special.logit(y.mean()))
    b = start.coefficient if start else np.zeros(x.shape[1])
    precondition = _inverse(flat_information(about) if information is None else information, penalty)
    eta = intercept + x @ b
    for _ in range(MOST_STEPS):
        p = special.expit(eta)
        weight, slope0, slope = p * (1 - p), (p - y).sum(), x.T @ (p - y) + penalty * b
        size = max(abs(slope0), np.abs(slope).max(initial=0)) / np.sqrt(rows)
        if size <= SMALLEST_SLOPE:
            break
        step0, step = _solve(x, weight, penalty, precondition, (-slope0, -slope), tolerance=min(0.01, size))
        along = step0 + x @ step
        length = min(1.0, LONGEST_STEP / max(float(np.abs(along).max()), 1e-300))
        eta, b, intercept = eta + length * along, b + length * step, intercept + length * step0
    return Fit(float(penalty), float(intercept), b)


def _solve(
    x: Sparse, weight: np.ndarray, penalty: float, precondition: Inverse, right: tuple, tolerance: float
) -> tuple[float, np.ndarray]:
    """(v0, v) with H (v0, v) = right, H the Hessian of the loss at these weights p (1 - p)."""
    total, column = weight.sum(), x.T @ weight

    def product(v: np.ndarray) -> np.ndarray:
        return x.T @ (weight * (x @ v)) - column * (column @ v / total) + penalty * v

    operator: Any = sparse_linalg.LinearOperator
    wrap = lambda apply: operator((x.shape[1],) * 2, matvec=apply, dtype=np.float64)
    r = right[1] - column * (right[0] / total)
    v, _ = sparse_linalg.cg(wrap(product), r, rtol=tolerance, maxiter=1_000, M=wrap(precondition))
    return float((right[0] - column @ v) / total), v


def flat_information(about: Design) -> np.ndarray:
    """Information if all rows had one chance."""
    rate = about.success.mean()
    return _information(about.matrix, np.full(len(about.success), rate * (1 - rate)))


def _information(x: Sparse, weight: np.ndarray) -> np.ndarray:
    """X' W X less its part along the intercept, float64 [memory, memory]; its diagonal beyond DENSE memories."""
    if x.shape[1] > DENSE:
        return _own_information(x, weight)
    column = x.T @ weight
    return (x.T @ (sparse.diags_array(weight) @ x)).toarray() - np.outer(column, column / weight.sum())


def _own_information(x: Sparse, weight: np.ndarray) -> np.ndarray:
    return abs(x).T @ weight - (x.T @ weight) ** 2 / weight.sum()


def _inverse(information: np.ndarray, penalty: float) -> Inverse:
    """What divides by information + penalty."""
    if information.ndim == 1:
        return lambda v: v / (information + penalty)
    factor = linalg.cho_factor(information + penalty * np.eye(len(information)))
    return lambda v: linalg.cho_solve(factor, v)


def cross_validate(about: Design, *, folds: int = 5, grid: Sequence[float] = GRID, seed: int = 0) -> Validation:
    """Held-out log loss of every penalty; all rows of a unit are held out together, folds at random by `seed`."""
    units = int(about.unit.max()) + 1
    check_integer("folds", folds, 2, max(units, 2))
    penalties = np.sort(np.asarray(grid, np.float64))
    fold = np.random.default_rng(seed).permutation(np.arange(units) % folds)[about.unit]
    loss = np.empty((len(penalties), len(about.success)))
    for out in range(folds):
        train, test = np.flatnonzero(fold != out), np.flatnonzero(fold == out)
        if not 0 < about.success[train].sum() < len(train):
            raise InputError(f"outcome: of one kind only without one of {folds} folds; give a penalty instead")
        part, found = about._replace(matrix=about.matrix[train], success=about.success[train]), None
        information = flat_information(part)
        for i in reversed(range(len(penalties))):
            found = fit(part, float(penalties[i]), found, information)
            eta = found.intercept + about.matrix[test] @ found.coefficient
            loss[i, test] = np.maximum(eta, 0) + np.log1p(np.exp(-np.abs(eta))) - about.success[test] * eta
    mean = loss.mean(axis=1)
    best = int(mean.argmin())
    by_unit = np.stack([np.bincount(about.unit, row) for row in loss - loss[best]])
    error = by_unit.std(axis=1, ddof=1) * np.sqrt(units) / len(fold)
    return Validation(penalties, mean, mean - mean[best], error, float(penalties[best]))


def errors(about: Design, found: Fit, memories: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Standard error of `relative`, and variance inflation, of some memories.

    The covariance is H^-1, H the Hessian of the penalised loss: the posterior under a normal prior of variance
    1/lambda, so that what the log cannot tell apart stays as uncertain as the prior. Where units have several rows the
    standard error is no less than that of H^-1 (B + lambda) H^-1, B the sum over units of the squared sums of scores:
    the expected squared error of the penalised estimate when rows of a unit share their luck.
    Variance inflation is H_mm (H^-1)_mm, the intercept eliminated: 1 where m is shown independently of all others.
    """
    own = np.zeros((len(memories), about.matrix.shape[1]))
    own[np.arange(len(memories)), memories] = 1
    error = contrast_errors(about, found, own - about.share)
    bare = contrast_errors(about, found, own, clustered=False)
    p = special.expit(found.intercept + about.matrix @ found.coefficient)
    alone = _own_information(about.matrix, p * (1 - p))[memories] + found.penalty
    return error, alone * bare**2


def contrast_errors(about: Design, found: Fit, contrast: np.ndarray, *, clustered: bool = True) -> np.ndarray:
    """Standard errors of contrast @ b, contrast float64 [row, memory]; see `errors`."""
    x = about.matrix
    p = special.expit(found.intercept + x @ found.coefficient)
    weight = p * (1 - p)
    inverse = _inverse(_information(x, weight), found.penalty)
    solve = lambda row: _solve(x, weight, found.penalty, inverse, (0.0, row), tolerance=1e-6)[1]
    solved = inverse(contrast.T).T if x.shape[1] <= DENSE else np.array([solve(row) for row in contrast])
    variance = (contrast * solved).sum(axis=1)
    if clustered and int(about.unit.max()) + 1 < len(about.unit):
        mean = (x.T @ weight) / weight.sum()
        for i, v in enumerate(solved):
            score = np.bincount(about.unit, (about.success - p) * (x @ v - mean @ v))
            variance[i] = max(variance[i], score @ score + found.penalty * (v @ v))
    return np.sqrt(variance)


def labels(result: Adjusted, *, theta_low: float = 0.4, theta_high: float = 0.6) -> np.ndarray:
    """What the adjusted worth says, str [memory], by its whole interval.

    "high" where it lies at or above theta_high, "low" at or below theta_low, "mixed" between the two, else "uncertain".
    """
    low, high = result.interval.T
    cases = [low >= theta_high, high <= theta_low, (low > theta_low) & (high < theta_high)]
    return np.select(cases, ["high", "low", "mixed"], "uncertain")


def residual(journal: Journal) -> np.ndarray:
    """Mean of y less the base rate of its context over the evidence of every memory, float64 [memory]; NaN without.

    y is the memory's own verdict where it has one. Base rates are successes over evidence of all memories in a context;
    episodes without a context share one.
    """
    seen = journal.success >= 0
    context = np.zeros(seen.sum(), np.int64) if journal.context is None else journal.context[journal.episode[seen]] + 1
    y, memory, number = journal.success[seen].astype(np.float64), journal.memory[seen], len(journal.memories)
    rate = np.bincount(context, y) / np.maximum(np.bincount(context), 1)
    total, count = np.bincount(memory, y - rate[context], minlength=number), journal.evidence
    return np.divide(total, count, out=np.full(number, np.nan), where=count > 0)
