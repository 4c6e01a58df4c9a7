"""Rules as tables: what governance, and every rule that watches, looks its decisions up in."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mwjax import rules
from mwjax.checks import check_integer, check_name, check_number, nearest
from mwjax.config.static import Config
from mwjax.rules import Knobs
from mwjax.types import InputError

THETA_LEVELS = 64
"""A threshold that moves with the store is looked up between multiples of 1/64, linearly."""
MOST_STRENGTH = 1_000
"""a + b of an empirical-Bayes prior inside the simulation."""
TRUTH = 256
"""Observations that an oracle's knowledge of the truth stands for."""
ACTING = {"none": "none", "empirical_bayes": "beta"}
"""Names that the acting rule may have beside those of rules.RULES -> whose table they read."""

ABOUT = {
    "empirical_bayes": "as beta, with a prior fitted to the store at every look; acts in a simulation only",
    "none": "never acts",
}


class RuleTables(NamedTuple):
    """Evidence -> most successes at which a rule acts, in units of 2**-12 (see rules.bounds)."""

    acts: Any  # int32 [theta, evidence + 1], of the acting rule
    keeps: Any  # the same at theta + hysteresis: above it, a suppressed memory is restored
    least: Any  # int32, evidence before which the rule does not act
    theta: Any  # float32 in [0, 1], where it moves with the store
    hysteresis: Any  # float32 in [0, 1], likewise
    decide_every: Any  # int32 >= 1
    watch: Any  # int32 [evidence + 1, rule], of the watching rules
    watch_least: Any  # int32 [rule]


def tables(
    config: Config, rule: str, knobs: Knobs, hysteresis: float, decide_every: int, watchers: tuple[str, ...]
) -> RuleTables:
    """Every rule's table; rules that a Config watches but `watchers` does not name never act."""
    check_name("rule", rule, (*ACTING, *rules.RULES))
    check_number("hysteresis", hysteresis, 0, 1)
    check_integer("decide_every", decide_every, 1, 2**31 - 1)
    if decide_every > 1 and not config.scans and rule != "none":
        raise InputError(f"decide_every = {decide_every}: needs scans = true")
    if watchers and len(watchers) != len(config.watched):
        raise InputError(f"watchers = {list(watchers)}: the Config watches {len(config.watched)}")
    name, most = ACTING.get(rule, rule), max(config.max_evidence, TRUTH)
    if config.refits:
        most, knobs = most + MOST_STRENGTH, knobs._replace(prior_a=1.0, prior_b=1.0)
    moving = config.theta_mode != "absolute"
    thetas = tuple((np.arange(THETA_LEVELS + 1) / THETA_LEVELS).tolist()) if moving else (knobs.theta,)
    if name != "none":
        rules.check(knobs, name)
    governed = config.governance != "none"
    acts = _bounds(name if governed else "none", knobs, thetas, most if governed else 0)
    later = thetas if moving else (min(knobs.theta + hysteresis, 1.0),)
    keeps = _bounds(name if config.restores else "none", knobs, later, most if config.restores else 0)
    watch, least = [], []
    for text in watchers or ("none",) * len(config.watched):
        watching, own, _ = parse(text, knobs)
        watch.append(_bounds(watching, own, (own.theta,), max(config.max_evidence, TRUTH))[0])
        least.append(0 if watching == "none" else rules.RULES[watching].least(own))
    return RuleTables(
        acts=acts,
        keeps=keeps,
        least=np.int32(0 if name == "none" else rules.RULES[name].least(knobs)),
        theta=np.float32(knobs.theta),
        hysteresis=np.float32(hysteresis),
        decide_every=np.int32(decide_every),
        watch=np.stack(watch, axis=1) if watch else np.zeros((1, 0), np.int32),
        watch_least=np.array(least, np.int32),
    )


def _bounds(rule: str, knobs: Knobs, thetas: tuple[float, ...], most: int) -> np.ndarray:
    if rule == "none":
        return np.full((len(thetas), most + 1), -rules.UNIT, np.int32)
    return rules.bounds(rule, knobs, thetas, most)


def parse(text: str, knobs: Knobs) -> tuple[str, Knobs, str]:
    """A watching rule, "rule" or "rule:knob=value,...": its name, its knobs, and the counters that it reads."""
    rule, _, rest = text.partition(":")
    names = ("none", *rules.RULES)
    if rule not in names:
        raise InputError(f"watchers = {text!r}: the rule must be one of {', '.join(names)}{nearest(rule, names)}")
    counter, known = "lifetime", {*Knobs._fields, "counter"}
    for part in filter(None, rest.split(",")):
        name, _, value = part.partition("=")
        if name not in known:
            raise InputError(f"watchers = {text!r}: {name!r} must be one of {', '.join(sorted(known))}")
        if name == "counter":
            counter = value
            continue
        try:
            knobs = knobs._replace(**{name: int(value) if name == "min_evidence" else float(value)})
        except ValueError:
            raise InputError(f"watchers = {text!r}: {name} must be a number") from None
    if rule != "none":
        rules.check(knobs, rule)
    return rule, knobs, counter
