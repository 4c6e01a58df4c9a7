"""What a rule would have dropped from a log, and the change of success had those memories been absent afterwards.

The rule reads the counters of the log after every outcome; a decision is final. Only outcomes of units after a decision
say what it is worth: a memory that was dropped for bad luck does better later, and earlier outcomes would hide that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import stats

from mwjax import rules
from mwjax.checks import check_name
from mwjax.logs.journal import Journal
from mwjax.replay.reliability import base_rate, mean_and_error, scored_episodes, unit_start

METHODS = ("direct", "additive")
LEAST = 30
"""Later episodes with dropped memories, and without, that a claim needs, by Kish's effective number."""
STREAKS = 4.0
"""Standard errors of the correlation between consecutive units beyond which retrieval is said to run in streaks."""


class Drop(NamedTuple):
    """One decision of the rule, and what the log says of the memory afterwards."""

    id: str
    episode: int  # after whose outcome, from 0
    time: float | None
    evidence: int  # at the decision
    successes: int
    later_shown: int  # later episodes with a known outcome that contained it
    later_successes: int  # those that succeeded


@dataclass(frozen=True)
class RuleValue:
    """`change` is a difference of success probabilities a later episode; None where there is a refusal."""

    rule: str
    knobs: rules.Knobs
    method: str
    episodes: int  # with a known outcome
    dropped: tuple[Drop, ...]  # in the order of time
    later: int  # episodes with a known outcome, of units after the first decision
    with_dropped: int  # later episodes that contained a memory dropped before
    without: int
    success: float  # share of the later episodes that succeeded
    change: float | None
    standard_error: float | None
    interval: tuple[float, float] | None  # 95 %
    refusal: str | None
    warnings: tuple[str, ...]

    @property
    def support(self) -> float:
        """Share of the later episodes that contained a dropped memory."""
        return self.with_dropped / self.later if self.later else 0.0


class Decisions(NamedTuple):
    """Of each memory decided against, in the order of time, [drop]."""

    memory: np.ndarray
    episode: np.ndarray
    evidence: np.ndarray
    successes: np.ndarray


class _Later(NamedTuple):
    """The episodes after the first decision."""

    episode: np.ndarray  # int64 [later]
    stage: np.ndarray  # int64 [later]: how many memories are dropped by then
    first: np.ndarray  # int64 [later]: rank of the first-dropped memory in the set; the number of drops for none
    stratum: np.ndarray  # int64 [later]: its context
    scored: np.ndarray  # bool [later]


def value_of_rule(
    about: Journal, rule: str = "beta", knobs: rules.Knobs | None = None, *, method: str = "direct"
) -> RuleValue:
    """What `rule` would have dropped, and E[success without the dropped] - E[success as it was], a later episode.

    With D_t the memories dropped before the unit of episode t, and m_t the running base rate before it:

        direct     mean of (1{no D_t in the set} / Pr[no D_t in the set] - 1) (y_t - m_t)
        additive   mean of -E[j_t] (j_t - E[j_t]) / Var[j_t] (y_t - m_t),   j_t members of D_t in the set

    (less a constant that makes the errors least). Probabilities and moments are those of the later sets of the same
    context. Direct: a set that avoids D_t by chance is a set of the store without D_t. Additive: success is linear in
    the slots that D_t takes, as under the mean law: the change is E[j] times the difference between a slot of the
    others and one of D_t, for one memory the removal identity (k / L) (rate without - p+); it needs fewer episodes
    where many are dropped. Each term has the right mean given the past, whatever chose D_t. Errors: see
    reliability.mean_and_error. Measured: 95.2 % and 95.1 % of 1,300 logs covered (N = 40, k = 4, 1,200 episodes).
    InputError where fewer than two outcomes are known.
    """
    knobs = rules.Knobs() if knobs is None else knobs
    check_name("method", method, METHODS)
    known, found = scored_episodes(about), decisions(about, rule, knobs)
    memory = found.memory
    starts = np.append(np.unique(unit_start(about.unit)), len(about.outcome))
    since = starts[np.searchsorted(starts, found.episode, side="right")]  # first episode of the next unit
    later, entries = _later(about, memory, since)
    y, held = about.outcome[later.episode][later.scored], (later.first < later.stage)[later.scored]
    weight, blocked = _direct(later) if method == "direct" else _additive(later, entries, len(memory))
    weight = weight[later.scored]
    change = error = interval = None
    refusal = _refusal(about, memory, since, later, weight, blocked)
    if not len(memory):
        change, error, interval = 0.0, 0.0, (0.0, 0.0)
    elif refusal is None:
        surprise = y - base_rate(about)[later.episode][later.scored]
        surprise = surprise - np.average(surprise, weights=weight**2)
        change, error, freedom = mean_and_error(weight * surprise, about.unit[later.episode][later.scored], drifts=True)
        reach = float(stats.t.ppf(0.975, freedom)) * error
        interval = (change - reach, change + reach)
    return RuleValue(
        rule=rule,
        knobs=knobs,
        method=method,
        episodes=len(known),
        dropped=_drops(about, found, since),
        later=len(y),
        with_dropped=int(held.sum()),
        without=int((~held).sum()),
        success=float(np.mean(y)) if len(y) else math.nan,
        change=change,
        standard_error=error,
        interval=interval,
        refusal=refusal,
        warnings=_warnings(about, later) if change is not None and len(memory) else (),
    )


def decisions(about: Journal, rule: str, knobs: rules.Knobs) -> Decisions:
    """The first decision of the rule against each memory that it decides against."""
    heard = np.flatnonzero(about.success >= 0)
    order = heard[np.argsort(about.memory[heard], kind="stable")]
    memory, success = about.memory[order], about.success[order].astype(np.int64)
    total = np.cumsum(success)
    start = np.flatnonzero(np.diff(memory, prepend=-1))
    group = np.cumsum(np.diff(memory, prepend=-1) != 0) - 1
    evidence = np.arange(len(memory)) - start[group] + 1 if len(memory) else total
    hits = total - (total - success)[start][group] if len(memory) else total
    most = rules.most_successes(rule, knobs, min(int(evidence.max(initial=0)), rules.MOST_EVIDENCE))
    fires = np.flatnonzero(hits <= most[np.minimum(evidence, len(most) - 1)])
    _, place = np.unique(memory[fires], return_index=True)
    first = fires[place]
    first = first[np.argsort(order[first], kind="stable")]
    return Decisions(memory[first], about.episode[order[first]], evidence[first], hits[first])


def _later(about: Journal, memory: np.ndarray, since: np.ndarray) -> tuple[_Later, tuple[np.ndarray, np.ndarray]]:
    """The later episodes, and (position in them, rank of the drop) of every entry of a dropped memory."""
    number, begin = len(memory), int(since.min(initial=len(about.outcome)))
    rank = np.full(len(about.memories), number)
    rank[memory] = np.arange(number)
    size = np.diff(about.start)
    episode = begin + np.flatnonzero(size[begin:] > 0)
    position = np.full(len(size), -1)
    position[episode] = np.arange(len(episode))
    at, ranks = position[about.episode], rank[about.memory]
    mine = (at >= 0) & (ranks < number)
    first = np.full(len(episode), number)
    np.minimum.at(first, at[mine], ranks[mine])
    stage = np.searchsorted(np.maximum.accumulate(since), episode, side="right") if number else np.zeros_like(episode)
    context = np.zeros(len(size), np.int32) if about.context is None else about.context
    stratum = np.unique(context[episode], return_inverse=True)[1]
    return _Later(episode, stage, first, stratum, about.outcome[episode] >= 0), (at[mine], ranks[mine])


def _avoided(later: _Later) -> np.ndarray:
    """Share of the later sets of its context that hold none of the memories dropped by now, [later]."""
    number, strata = int(later.first.max(initial=0)) + 2, int(later.stratum.max(initial=0)) + 1
    count = np.zeros((strata, max(number, int(later.stage.max(initial=0)) + 1)))
    np.add.at(count, (later.stratum, later.first), 1.0)
    at_least = count[:, ::-1].cumsum(axis=1)[:, ::-1]
    return at_least[later.stratum, later.stage] / at_least[later.stratum, 0]


def _direct(later: _Later) -> tuple[np.ndarray, np.ndarray]:
    """(weight of the outcome, no set of the context avoids the dropped memories), [later] each."""
    chance, free = _avoided(later), later.first >= later.stage
    return np.where(free, 1 / np.where(free, chance, 1), 0) - 1, chance <= 0


def _additive(later: _Later, entries: tuple[np.ndarray, np.ndarray], number: int) -> tuple[np.ndarray, np.ndarray]:
    """(weight of the outcome, all sets of the context hold as many dropped memories), [later] each."""
    strata, place = int(later.stratum.max(initial=0)) + 1, np.argsort(later.stage, kind="stable")
    stages = np.split(place, np.searchsorted(later.stage[place], np.arange(1, number + 1)))
    order = np.argsort(entries[1], kind="stable")
    shown = np.split(entries[0][order], np.searchsorted(entries[1][order], np.arange(1, number + 1)))
    size = np.maximum(np.bincount(later.stratum, minlength=strata), 1)
    members, weight, blocked = np.zeros(len(place)), np.zeros(len(place)), np.zeros(len(place), bool)
    total, squares = np.zeros(strata), np.zeros(strata)
    for mine, added in zip(stages, shown, strict=True):
        mean, context = total / size, later.stratum[mine]
        variance = np.maximum(squares / size - mean**2, 0)
        scale = np.divide(mean, variance, out=np.zeros(strata), where=variance > 1e-12)
        weight[mine] = -scale[context] * (members[mine] - mean[context])
        blocked[mine] = ((mean > 0) & (variance <= 1e-12))[context]
        total += np.bincount(later.stratum[added], minlength=strata)
        squares += np.bincount(later.stratum[added], weights=2 * members[added] + 1, minlength=strata)
        members[added] += 1
    return weight, blocked


def _refusal(
    about: Journal, memory: np.ndarray, since: np.ndarray, later: _Later, weight: np.ndarray, blocked: np.ndarray
) -> str | None:
    """Why nothing can be claimed, in one sentence; None where something can."""
    if not len(memory):
        return None
    total, largest = len(about.memories), int(np.diff(about.start).max())
    if total - len(memory) < largest:
        return f"No claim: the rule would drop {len(memory):,} of {total:,} memories, too many for sets of {largest:,}."
    if certain := _certain(about, memory, since):
        return f"No claim: the log gives {certain} a probability of retrieval of 1, so nothing shows what lacks it."
    if _fixed_sets(about, memory, later):
        return "No claim: retrieval looks deterministic: sets return, and nothing ever stands in for a dropped memory."
    if blocked.any():
        share = f"{int(blocked.sum()):,} of {len(blocked):,} later episodes"
        return f"No claim: nothing like {share} is seen without the memories dropped by then."
    lacking, having = _kish(weight[weight > 0]), _kish(weight[weight < 0])
    if min(lacking, having) < LEAST:
        worth = f"later episodes without dropped memories are worth {lacking:,.0f}, those with them {having:,.0f}"
        return f"No claim: {worth}; it takes {LEAST} of each."
    return None


def _kish(weight: np.ndarray) -> float:
    """How many equal weights are worth these: (sum w)^2 / sum w^2."""
    return float(weight.sum() ** 2 / (weight**2).sum()) if len(weight) else 0.0


def _certain(about: Journal, memory: np.ndarray, since: np.ndarray) -> str | None:
    """A dropped memory whose logged propensity is 1 in later episodes."""
    if about.propensity is None:
        return None
    mine = (about.episode >= _begin(about, memory, since)[about.memory]) & (about.propensity >= 1 - 1e-9)
    return about.memories[int(about.memory[mine][0])] if mine.any() else None


def _fixed_sets(about: Journal, memory: np.ndarray, later: _Later) -> bool:
    """Sets repeat, and no companions of a dropped memory are ever seen with another one in its place."""
    if len(later.episode) < 2 * LEAST:
        return False
    code = np.random.default_rng(0).integers(0, 2**63, len(about.memories), dtype=np.uint64)
    inside = np.zeros(len(about.outcome), bool)
    inside[later.episode] = True
    entry = inside[about.episode]
    which, member = about.episode[entry], about.memory[entry]
    whole = np.zeros(len(about.outcome), np.uint64)
    np.add.at(whole, which, code[member])
    if len(np.unique(whole[later.episode])) > len(later.episode) / 2:
        return False
    rest = whole[which] - code[member]  # the companions
    pairs = np.unique(np.stack([rest, member.astype(np.uint64)]), axis=1)
    companions, number = np.unique(pairs[0], return_counts=True)
    mine = np.isin(pairs[1], memory.astype(np.uint64))
    return not (number[np.searchsorted(companions, pairs[0][mine])] > 1).any()


def _warnings(about: Journal, later: _Later) -> tuple[str, ...]:
    """What speaks against the assumption."""
    held = (later.first < later.first.max(initial=0)).astype(np.float64)
    unit = np.unique(about.unit[later.episode], return_inverse=True)[1]
    share = np.bincount(unit, weights=held) / np.bincount(unit)
    if len(share) < LEAST or share.std() == 0:
        return ()
    streak = float(np.corrcoef(share[1:], share[:-1])[0, 1])
    if abs(streak) * math.sqrt(len(share)) <= STREAKS:
        return ()
    return (
        f"Retrieval of the dropped memories runs in streaks (correlation {streak:.2f} between consecutive units): "
        "episodes with and without them may differ in more than the memory.",
    )


def _drops(about: Journal, found: Decisions, since: np.ndarray) -> tuple[Drop, ...]:
    mine = (about.episode >= _begin(about, found.memory, since)[about.memory]) & (about.outcome >= 0)[about.episode]
    good = mine & (about.outcome == 1)[about.episode]
    shown, successes = (np.bincount(about.memory[one], minlength=len(about.memories)) for one in (mine, good))
    clock = [math.nan] * len(since) if about.time is None else about.time[found.episode].tolist()
    times = [moment if math.isfinite(moment) else None for moment in clock]
    decided = (one.tolist() for one in (found.evidence, found.successes, shown[found.memory], successes[found.memory]))
    names = [about.memories[i] for i in found.memory.tolist()]
    return tuple(Drop(*row) for row in zip(names, found.episode.tolist(), times, *decided, strict=True))


def _begin(about: Journal, memory: np.ndarray, since: np.ndarray) -> np.ndarray:
    """From which episode on each memory would have been absent, [memory]; the number of episodes for never."""
    begin = np.full(len(about.memories), len(about.outcome))
    begin[memory] = since
    return begin
