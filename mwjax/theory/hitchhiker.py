"""Closed forms of the hitchhiker world: a useful anchor and a useless memory that is retrieved with it.

N memories are N - 1 units, one of them the pair; k units are drawn uniformly, so the pair comes with probability
q = k/(N - 1), n = q T times in T episodes. Whole (probability 1 - f) it takes two slots and one of the other k - 1
drawn units goes; separated (f) one half is shown and nothing goes: by a fair coin ("split") or always the anchor
("anchor_only"). Pr[success] = 0.5 + gain (mean U - 0.5). F is the mean utility of the N - 2 fillers. 2 <= k < N.
Given the store, episodes are independent: within each of the three kinds success is a Bernoulli trial of one chance.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from scipy import special

from mwjax.theory import pair_counts

ANCHOR_SHARE = {"split": 0.5, "anchor_only": 1.0}
"""Share of the separated episodes that show the anchor."""

UNIFORM_SD = 1 / math.sqrt(12)


class PairLaw(NamedTuple):
    """What happens once the pair is drawn, in the order whole, anchor alone, hitchhiker alone."""

    chance: np.ndarray  # [kind]
    success: np.ndarray  # [..., kind], leading axes those of the fillers' mean


def _law(num_retrieved: int, separation: float, *, anchor, hitchhiker, filler, gain: float, mode: str) -> PairLaw:
    share = ANCHOR_SHARE[mode]
    chance = np.array([1 - separation, separation * share, separation * (1 - share)])
    own = np.stack([np.add(anchor, hitchhiker), anchor, hitchhiker], axis=-1)
    fillers = num_retrieved - np.array([2, 1, 1])
    mean = (own + fillers * np.asarray(filler, np.float64)[..., None]) / num_retrieved
    return PairLaw(chance, np.clip(0.5 + gain * (mean - 0.5), 0, 1))


def pair_p_plus(
    num_memories: int,
    num_retrieved: int,
    separation: float,
    *,
    anchor: float = 0.9,
    hitchhiker: float = 0.05,
    filler: float = 0.5,
    gain: float = 1.0,
    mode: str = "split",
) -> tuple[float, float]:
    """Pr[success | shown] of anchor and hitchhiker: the kinds that show a half, weighted by their chances. Exact.

    It does not depend on N but through the fillers. A half that is never shown stays at 0.5 (anchor_only at f = 1).
    """
    law = _law(num_retrieved, separation, anchor=anchor, hitchhiker=hitchhiker, filler=filler, gain=gain, mode=mode)
    shows = law.chance * np.array([[1, 1, 0], [1, 0, 1]])
    total = shows.sum(axis=1)
    p = np.divide(shows @ law.success, total, out=np.full(2, 0.5), where=total > 0)
    return float(p[0]), float(p[1])


def gap(
    num_memories: int,
    num_retrieved: int,
    separation: float,
    *,
    anchor: float = 0.9,
    hitchhiker: float = 0.05,
    filler: float = 0.5,
    gain: float = 1.0,
    mode: str = "split",
) -> float:
    """p+ of the anchor minus p+ of the hitchhiker; exact, and 0 at f = 0.

    split: f/(2 - f) gain (U_A - U_H)/k. anchor_only: f gain (F - U_H)/k, and p+ of the anchor - 0.5 at f = 1.
    """
    above, below = pair_p_plus(
        num_memories,
        num_retrieved,
        separation,
        anchor=anchor,
        hitchhiker=hitchhiker,
        filler=filler,
        gain=gain,
        mode=mode,
    )
    return above - below


def inclusion(
    num_memories: int, num_retrieved: int, separation: float, *, mode: str = "split"
) -> tuple[float, float, float]:
    """P(shown in an episode) of anchor, hitchhiker and a filler, exact; the N of them add up to k."""
    drawn, share = num_retrieved / (num_memories - 1), ANCHOR_SHARE[mode]
    anchor, hitchhiker = drawn * (1 - separation * (1 - share)), drawn * (1 - separation * share)
    return anchor, hitchhiker, (num_retrieved - anchor - hitchhiker) / max(num_memories - 2, 1)


def removal_values(
    num_memories: int,
    num_retrieved: int,
    separation: float,
    *,
    anchor: float = 0.9,
    hitchhiker: float = 0.05,
    filler: float = 0.5,
    gain: float = 1.0,
    mode: str = "split",
) -> tuple[float, float]:
    """Mean success with all memories minus mean success with the anchor, or the hitchhiker, masked. Exact.

    With one half masked the pair always shows the other alone, and nothing goes. At f = 0 the values are
    q gain (U_A - F)/k and q gain (U_H - F)/k, of opposite sign though both halves have one and the same p+.
    """
    law = _law(num_retrieved, separation, anchor=anchor, hitchhiker=hitchhiker, filler=filler, gain=gain, mode=mode)
    drawn, whole_world = num_retrieved / (num_memories - 1), law.chance @ law.success
    return float(drawn * (whole_world - law.success[2])), float(drawn * (whole_world - law.success[1]))


def removal_of_each(
    utility: np.ndarray, num_retrieved: int, separation: float, *, gain: float = 1.0, mode: str = "split"
) -> np.ndarray:
    """Mean success less mean success with m masked, float64 [..., memory], of stores that begin with the pair. Exact.

    utility [..., memory]: the anchor's, the hitchhiker's, the fillers'. Without a filler one of the units is gone and
    q = k/(N - 2); NaN for fillers where that leaves fewer than k.
    """
    u = np.asarray(utility, np.float64)
    anchor, hitchhiker, fillers = u[..., :1], u[..., 1:2], u[..., 2:]
    total, number = fillers.sum(-1, keepdims=True), fillers.shape[-1]

    def world(filler: np.ndarray, units: int) -> tuple[PairLaw, np.ndarray]:
        """Its law, and its mean success, with fillers of that mean [..., case]."""
        pair = {"anchor": anchor + 0 * filler, "hitchhiker": hitchhiker + 0 * filler}
        law = _law(num_retrieved, separation, **pair, filler=filler, gain=gain, mode=mode)
        drawn, without = num_retrieved / units, np.clip(0.5 + gain * (filler - 0.5), 0, 1)
        return law, drawn * (law.success @ law.chance) + (1 - drawn) * without

    law, whole = world(total / max(number, 1), number + 1)
    pair = num_retrieved / (number + 1) * (law.success @ law.chance - law.success[..., 0, [2, 1]])
    if number < max(num_retrieved, 2):
        return np.concatenate([pair, np.full(fillers.shape, np.nan)], axis=-1)
    return np.concatenate([pair, whole - world((total - fillers) / (number - 1), number)[1]], axis=-1)


def gap_z(
    num_memories: int,
    num_retrieved: int,
    separation: float,
    *,
    num_episodes: int,
    anchor: float = 0.9,
    hitchhiker: float = 0.05,
    filler: float = 0.5,
    gain: float = 1.0,
    mode: str = "split",
) -> float:
    """Expected gap of worth in its standard deviations, every outcome with variance 1/4 and n = T k/(N - 1).

    split: sqrt(f n) gain (U_A - U_H)/k, f n the separated episodes. anchor_only: 2 sqrt(f (1 - f) n) gain (F - U_H)/k,
    whole against separated episodes; at f = 1 the hitchhiker stands at 0.5 and z = 2 sqrt(n) (p+ of the anchor - 0.5).
    """
    drawn = num_episodes * num_retrieved / (num_memories - 1)
    if mode == "split":
        return math.sqrt(separation * drawn) * gain * (anchor - hitchhiker) / num_retrieved
    if separation < 1:
        return 2 * math.sqrt(separation * (1 - separation) * drawn) * gain * (filler - hitchhiker) / num_retrieved
    alone = gap(num_memories, num_retrieved, separation, anchor=anchor, filler=filler, gain=gain, mode=mode)
    return 2 * math.sqrt(drawn) * alone


def anchor_above_normal(
    num_memories: int,
    num_retrieved: int,
    separation: float,
    *,
    num_episodes: int,
    anchor: float = 0.9,
    hitchhiker: float = 0.05,
    filler: float = 0.5,
    gain: float = 1.0,
    mode: str = "split",
) -> float:
    """P(worth of the anchor > worth of the hitchhiker), ties half, as Phi(gap_z): no closed counts, see anchor_above.

    Within .01 of anchor_above for "split" with f n >= 20 and p+ near 1/2; it knows no spread of the fillers' mean.
    """
    z = gap_z(
        num_memories,
        num_retrieved,
        separation,
        num_episodes=num_episodes,
        anchor=anchor,
        hitchhiker=hitchhiker,
        filler=filler,
        gain=gain,
        mode=mode,
    )
    return float(special.ndtr(z))


def threshold(
    num_memories: int,
    num_retrieved: int,
    num_episodes: int,
    *,
    level: float = 0.95,
    anchor: float = 0.9,
    hitchhiker: float = 0.05,
    gain: float = 1.0,
) -> float:
    """Least separation f* at which Phi(gap_z) reaches `level` in split mode: (z_level k/(gain (U_A - U_H)))^2 / n.

    n = T k/(N - 1). Above 1 it is never reached; inf where the anchor is not the better of the two.
    """
    step = gain * (anchor - hitchhiker) / num_retrieved
    drawn = num_episodes * num_retrieved / (num_memories - 1)
    if step <= 0 or drawn == 0:
        return math.inf
    return (max(float(special.ndtri(level)), 0.0) / step) ** 2 / drawn


def anchor_above(
    num_memories: int,
    num_retrieved: int,
    separation: float,
    *,
    num_episodes: int,
    anchor: float = 0.9,
    hitchhiker: float = 0.05,
    filler: float = 0.5,
    filler_sd: float = UNIFORM_SD,
    gain: float = 1.0,
    mode: str = "split",
) -> float:
    """P(worth of the anchor > worth of the hitchhiker), ties half; a half that is never shown stands at 0.5.

    The numbers of whole, anchor-only and hitchhiker-only episodes are multinomial and, given them, successes binomial:
    pair_counts enumerates both where episodes are few (up to seconds), else takes the gap by its Edgeworth series.
    `filler_sd` is the deviation of one filler's utility over stores (0 = a fixed mean F): their mean is normal with
    filler_sd / sqrt(N - 2). Within three standard errors (.001) of 100,000 simulated lives a case at N = 20.
    """
    if separation == 0:
        return 0.5
    deviation, weight = special.roots_hermitenorm((3 if mode == "split" else 9) if filler_sd else 1)
    fillers = filler + deviation * filler_sd / math.sqrt(max(num_memories - 2, 1))
    law = _law(num_retrieved, separation, anchor=anchor, hitchhiker=hitchhiker, filler=fillers, gain=gain, mode=mode)
    chance = law.chance * num_retrieved / (num_memories - 1)
    above = pair_counts.anchor_above(num_episodes, chance, law.success)
    return float(above @ weight / weight.sum())
