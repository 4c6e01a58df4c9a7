"""Is what a log says of its memories a forecast? Predict, then update, over the episodes in their order.

Episodes of one unit that follow each other share their circumstances: they are forecast together, from earlier ones.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from mwjax.analysis import calibration
from mwjax.checks import check_integer, check_name, check_number
from mwjax.logs.journal import Journal
from mwjax.rules import Z_95
from mwjax.types import InputError

CLOCKS = ("observation", "step", "time", "last_outcome")
"""What halves counters: outcomes of the memory, episodes, time, or, when they are read, episodes without an outcome."""
FORECASTERS = ("mean_worth", "calibrated")
MOST_PERMUTED = 10_000


class Counters(NamedTuple):
    """Of every entry's memory before the entry's unit, float64 [entry]."""

    successes: np.ndarray
    evidence: np.ndarray


class Bin(NamedTuple):
    """One bar of a reliability diagram."""

    forecast: float  # mean
    observed: float  # share of successes
    low: float  # Wilson's 95 % interval of the share, as if outcomes were independent
    high: float
    n: int


@dataclass(frozen=True)
class Prequential:
    """Scores of forecasts made before the outcome, over the episodes whose outcome is known."""

    forecaster: str
    prior: tuple[float, float]
    episodes: int
    units: int
    brier: float
    log_loss: float  # nats
    base_brier: float  # of the running base rate
    base_log_loss: float
    skill: float  # 1 - brier / base_brier
    skill_interval: tuple[float, float]  # 95 %, see `mean_and_error`
    ece: float
    bins: tuple[Bin, ...]  # those that hold forecasts
    permuted: int  # times that the outcomes were permuted over units
    permuted_skill: float  # mean
    permuted_sd: float
    p_value: float  # share of the permuted logs, this one among them, whose skill is at least as great


def reliability(
    about: Journal,
    *,
    forecaster: str = "mean_worth",
    prior: tuple[float, float] = (1.0, 1.0),
    bins: int = 10,
    permuted: int = 20,
    seed: int = 0,
) -> Prequential:
    """Score the forecasts of a log.

    mean_worth: mean over the retrieved set of (successes + a) / (evidence + a + b), before the unit.
    calibrated: see `calibrated`; the prior is centred on the running base rate, with strength a + b.
    InputError where fewer than two episodes have a known outcome and a set.
    """
    check_name("forecaster", forecaster, FORECASTERS)
    check_integer("permuted", permuted, 0, MOST_PERMUTED)
    check_prior(prior)
    scored = scored_episodes(about)
    q, base, y = forecasts(about, forecaster, prior)[scored], base_rate(about)[scored], about.outcome[scored]
    brier, base_brier = (q - y) ** 2, (base - y) ** 2
    gain, error, _ = mean_and_error(base_brier - brier, about.unit[scored])
    rng = np.random.default_rng(seed)
    skills = [_skill(permute(about, rng), forecaster, prior) for _ in range(permuted)]
    skill = float(gain / base_brier.mean())
    reach = Z_95 * error / base_brier.mean()
    histogram = histogram_of(q, y)
    return Prequential(
        forecaster=forecaster,
        prior=prior,
        episodes=len(y),
        units=len(np.unique(about.unit[scored])),
        brier=float(brier.mean()),
        log_loss=float(log_loss(q, y).mean()),
        base_brier=float(base_brier.mean()),
        base_log_loss=float(log_loss(base, y).mean()),
        skill=skill,
        skill_interval=(float(skill - reach), float(skill + reach)),
        ece=float(calibration.ece(*histogram, bins=bins)),
        bins=_bins(calibration.reliability(*histogram, bins=bins)),
        permuted=permuted,
        permuted_skill=float(np.mean(skills)) if skills else math.nan,
        permuted_sd=float(np.std(skills, ddof=1)) if len(skills) > 1 else math.nan,
        p_value=(1 + sum(one >= skill for one in skills)) / (1 + len(skills)) if skills else math.nan,
    )


def check_prior(prior: tuple[float, float]) -> None:
    """InputError unless a and b are in (0, 1e6]."""
    for name, value in zip(("prior a", "prior b"), prior, strict=True):
        check_number(name, value, 1e-6, 1e6)


def scored_episodes(about: Journal) -> np.ndarray:
    """Episodes that can be scored, int64: with a known outcome and at least one memory."""
    scored = np.flatnonzero((about.outcome >= 0) & (np.diff(about.start) > 0))
    if len(scored) < 2:
        raise InputError(f"episodes with a known outcome: {len(scored)}; a forecast needs at least 2 to be scored")
    return scored


def forecasts(about: Journal, forecaster: str, prior: tuple[float, float]) -> np.ndarray:
    """Pr[success] of every episode as forecast before it, float64 [episode]; the base rate where nothing was shown."""
    base, known = base_rate(about), counters(about)
    if forecaster == "calibrated":
        own = base[about.episode]
        return calibrated(about, base, (known.successes - known.evidence * own) / (known.evidence + sum(prior)))
    posterior = (known.successes + prior[0]) / (known.evidence + sum(prior))
    return np.where(np.diff(about.start) > 0, mean_over_set(about, posterior), base)


def log_loss(forecast: np.ndarray, outcome: np.ndarray) -> np.ndarray:
    """-ln Pr[outcome] in nats, elementwise; forecasts in (0, 1)."""
    return -np.log(np.where(outcome == 1, forecast, 1 - forecast))


def counters(about: Journal, half_life: float = math.inf, clock: str = "observation") -> Counters:
    """Counters that halve in `half_life` units of the clock, as every entry's memory had them before the unit.

    observation: S <- 2^(-1/h) S + y at every outcome of the memory (Garivier and Moulines, arXiv 0805.3415).
    step, time: the same with the episodes, or the time, that passed in between, up to the end of the last episode.
    last_outcome: lifetime counters x 2^(-age / h), age in episodes since the memory's last outcome.
    """
    order = np.argsort(about.memory, kind="stable")
    memory, episode, success = about.memory[order], about.episode[order], about.success[order]
    again = np.concatenate([[False], memory[1:] == memory[:-1]])[: len(memory)]
    heard = (success >= 0).astype(np.float64)
    before = _before([(success == 1).astype(np.float64), heard], again)
    log_g = -math.log(2) / half_life
    if clock == "observation":
        keep, read = np.exp(log_g * before[1]), 1.0
        added = before
    else:
        moment = _times(about)[episode] if clock == "time" else episode.astype(np.float64)
        gap = np.maximum(np.diff(moment, prepend=moment[:1]), 0)
        keep = np.ones_like(gap) if clock == "last_outcome" else np.exp(log_g * np.where(again, gap, 0))
        read = math.exp(-log_g) if clock == "step" else 1.0
        added = before * keep
    found = _scan(np.where(again, keep, 0.0), added) * read
    if clock == "last_outcome":
        found = found * np.exp(log_g * _since_outcome(episode, heard, again))
    runs = unit_start(about.unit)[episode]
    same = again & (np.diff(runs, prepend=runs[:1]) == 0)  # the memory again, in the same unit
    found = found[:, np.maximum.accumulate(np.where(same, 0, np.arange(len(same))))]
    back = np.empty_like(found)
    back[:, order] = found
    return Counters(*back)


def _times(about: Journal) -> np.ndarray:
    if about.time is None or not np.isfinite(about.time).all():
        raise InputError("clock = 'time': the log does not give the time of every episode")
    return about.time


def _before(values: list[np.ndarray], again: np.ndarray) -> np.ndarray:
    """The values of the same memory's last entry, 0 at its first; [value, entry]."""
    return np.stack([np.where(again, np.concatenate([[0.0], one[:-1]])[: len(one)], 0.0) for one in values])


def _since_outcome(episode: np.ndarray, heard: np.ndarray, again: np.ndarray) -> np.ndarray:
    """Episodes completed since the memory's last outcome; 0 where it had none."""
    place, index = np.arange(len(again)), np.where(heard > 0, np.arange(len(again)), -1)
    first = np.maximum.accumulate(np.where(again, 0, place))
    last = np.concatenate([[-1], np.maximum.accumulate(index)[:-1]])[: len(index)]
    return np.where(last >= first, episode - 1 - episode[np.maximum(last, 0)], 0)


def _scan(keep: np.ndarray, added: np.ndarray) -> np.ndarray:
    """x_j = keep_j x_(j-1) + added_j along the last axis, in log2(longest run) steps (Hillis and Steele 1986)."""
    keep, found, step = keep.copy(), added.copy(), 1
    while step < len(keep) and keep.any():
        found[:, step:] = found[:, step:] + keep[step:] * found[:, :-step]
        keep[step:] = keep[step:] * keep[:-step]
        keep[:step] = 0
        step *= 2
    return found


def unit_start(unit: np.ndarray) -> np.ndarray:
    """First of the consecutive episodes of the same unit, int64 [episode]."""
    place = np.arange(len(unit))
    same = np.diff(unit, prepend=unit[:1] - 1) == 0
    return np.maximum.accumulate(np.where(same, 0, place))


def earlier(about: Journal, values: np.ndarray) -> np.ndarray:
    """Sum of the values [episode] over all episodes before the unit."""
    return np.concatenate([[0.0], np.cumsum(values, dtype=np.float64)])[unit_start(about.unit)]


def base_rate(about: Journal) -> np.ndarray:
    """(successes + 1) / (outcomes + 2) of the episodes before the unit, float64 [episode]."""
    return (earlier(about, about.outcome == 1) + 1) / (earlier(about, about.outcome >= 0) + 2)


def mean_over_set(about: Journal, values: np.ndarray) -> np.ndarray:
    """Mean of the values [entry] over the set of every episode; 0 where it is empty."""
    size = np.diff(about.start)
    return np.bincount(about.episode, weights=values, minlength=len(size)) / np.maximum(size, 1)


def calibrated(about: Journal, base: np.ndarray, deviation: np.ndarray) -> np.ndarray:
    """Forecasts [episode] from how far each memory's posterior mean lies from the base rate, [entry].

    logit p = logit(base) + slope x / (base (1 - base)),  x = mean of the deviations over the set

    An outcome that is shared by k memories dilutes what each of them does by about k (theory.dilution), and a mean over
    the set dilutes it again: under uniform retrieval and the mean law the slope is k (N - 1) / (N - k). It is learned
    from earlier units by least squares of outcome - base on x, with prior mean k (the mean size of the sets) and
    standard deviation k / 2, and is kept at 0 or above, so that a worth is never read upside down.
    """
    size, x = np.diff(about.start), mean_over_set(about, deviation)
    k, noise = max(float(size[size > 0].mean()), 1.0) if (size > 0).any() else 1.0, base * (1 - base)
    known = about.outcome >= 0
    ridge = noise / (k / 2) ** 2
    cross = earlier(about, np.where(known, x * (about.outcome - base), 0))
    slope = np.maximum((cross + ridge * k) / (earlier(about, np.where(known, x * x, 0)) + ridge), 0)
    z = np.log(base / (1 - base)) + slope * x / noise
    return 1 / (1 + np.exp(-np.clip(z, -30, 30)))


def mean_and_error(difference: np.ndarray, unit: np.ndarray, *, drifts: bool = False) -> tuple[float, float, float]:
    """Mean of paired differences [episode], its standard error, and the degrees of freedom of the error.

    Successive differences depend on each other, also beyond a unit: they are summed by unit, and the units, in order
    of appearance, by about sqrt(units) blocks of consecutive ones (batch means); the error is that of a ratio of sums.
    With `drifts` it is taken from the changes from block to block (von Neumann 1941), so that an expectation that
    moves slowly along the log is no error; these have 2/3 of the degrees of freedom.
    """
    _, first, place = np.unique(unit, return_index=True, return_inverse=True)
    units = len(first)
    blocks = min(max(math.isqrt(units), 2), units)
    block = np.argsort(np.argsort(first))[place] * blocks // units
    mean = float(difference.mean())
    if blocks < 2:
        return mean, math.nan, 0.0
    rest = np.bincount(block, weights=difference - mean)
    squares = (np.diff(rest) ** 2).sum() / 2 if drifts else (rest**2).sum()
    error = math.sqrt(blocks / (blocks - 1) * squares) / len(difference)
    return mean, error, (blocks - 1) * (2 / 3 if drifts else 1.0)


def histogram_of(forecast: np.ndarray, outcome: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Forecasts and successes by level, as analysis.calibration takes them."""
    level = calibration.level(forecast)
    count = np.bincount(level, minlength=calibration.LEVELS)
    return count, np.bincount(level[outcome == 1], minlength=calibration.LEVELS)


def permute(about: Journal, rng: np.random.Generator) -> Journal:
    """The same retrievals with outcomes permuted over units: known outcomes, unit by unit, in another order of units.

    Where units differ in size, outcomes of one may fall on two. A memory's own verdict gives way to the outcome.
    """
    known = np.flatnonzero(about.outcome >= 0)
    mine = known[np.argsort(about.unit[known], kind="stable")]
    shuffled = rng.permutation(int(about.unit.max(initial=-1)) + 1)
    theirs = known[np.argsort(shuffled[about.unit[known]], kind="stable")]
    outcome = about.outcome.copy()
    outcome[mine] = about.outcome[theirs]
    success = np.where(about.success >= 0, outcome[about.episode], np.int8(-1)).astype(np.int8)
    return about._replace(outcome=outcome, success=success)


def _skill(about: Journal, forecaster: str, prior: tuple[float, float]) -> float:
    scored = scored_episodes(about)
    q, base, y = forecasts(about, forecaster, prior)[scored], base_rate(about)[scored], about.outcome[scored]
    return 1 - float(((q - y) ** 2).mean() / ((base - y) ** 2).mean())


def _bins(found: calibration.Reliability) -> tuple[Bin, ...]:
    columns = zip(*(one.tolist() for one in found), strict=True)
    return tuple(Bin(*row) for row in columns if row[-1] > 0)
