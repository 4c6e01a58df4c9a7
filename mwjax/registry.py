"""Names -> factories. A factory takes the Config and makes a component; a stranger's is named `package.module:name`."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

from mwjax import estimators, retrieval, worlds
from mwjax.config import Component, Config, nearest
from mwjax.episode import Parts
from mwjax.types import InputError

Factory = Callable[[Config], Any]

ESTIMATORS: dict[str, Factory] = {
    "memory_worth": partial(estimators.counter, weight="uniform"),
    "memory_worth_score": partial(estimators.counter, weight="score"),
    "memory_worth_score_normalised": partial(estimators.counter, weight="score_normalised"),
    "memory_worth_oracle": partial(estimators.counter, weight="oracle"),
    "memory_worth_oracle_raw": partial(estimators.counter, weight="oracle_raw"),
    "beta": partial(estimators.counter, weight="uniform", prior=True),
    "contextual": estimators.contextual,
    "backdoor": estimators.backdoor,
    "backdoor_half": partial(estimators.backdoor, fill="half"),
    "residual": estimators.residual,
    "discounted": estimators.discounted,
    "discounted_beta": partial(estimators.discounted, prior=True),
    "discounted_step": partial(estimators.aged, lifetime=False),
    "last_outcome": partial(estimators.aged, lifetime=True, prior=True),
    "windowed": estimators.windowed,
    "cusum": partial(estimators.cusum, flags=True),
    "cusum_reset": partial(estimators.cusum, flags=False),
    "never_updated": partial(estimators.counter, weight="none"),
}
RETRIEVAL: dict[str, Factory] = {
    "uniform": retrieval.uniform,
    "pools": retrieval.pools,
    "pairs": retrieval.pairs,
    "diverse": retrieval.diverse,
    "softmax": retrieval.softmax,
    "thompson": retrieval.thompson,
    "epsilon_greedy": retrieval.epsilon_greedy,
    "blend": retrieval.blend,
}
WORLDS: dict[str, Factory] = {
    "mean": worlds.mean,
    "linear": worlds.linear,
    "linear_best": partial(worlds.linear, statistic="best"),
    "linear_worst": partial(worlds.linear, statistic="worst"),
    "logistic": worlds.logistic,
    "weakest_link": worlds.weakest_link,
    "noisy_or": worlds.noisy_or,
    "top_ranked": worlds.top_ranked,
    "first": worlds.first,
    "any": worlds.best,
}
KINDS = {"estimators": ESTIMATORS, "retrieval": RETRIEVAL, "worlds": WORLDS}
FIELDS = {"observers": ESTIMATORS, "actor": ESTIMATORS, "retrieval": RETRIEVAL, "outcome": WORLDS}

ABOUT = {
    "memory_worth": "hits+ / (hits+ + hits-), every retrieval weighs the same",
    "memory_worth_score": "weights are relevance scores, uniform on [score_low, 1]",
    "memory_worth_score_normalised": "scores divided by their sum over the retrieved set",
    "memory_worth_oracle": "weights are true utilities divided by their sum over the set (needs the truth)",
    "memory_worth_oracle_raw": "weights are true utilities (equals memory_worth up to rounding)",
    "beta": "mean of the Beta(prior_a, prior_b) posterior on the same counters",
    "contextual": "worth within one context (target_context, by default the last)",
    "backdoor": "worth within each context, weighed by how frequent the context is; base rate where never shown",
    "backdoor_half": "the same, but 0.5 where never shown",
    "residual": "(1 + mean of y - base rate of the context) / 2 over the episodes that show the memory",
    "discounted": "counters x discount at every outcome of the memory, then + 1",
    "discounted_beta": "the same, read with the prior",
    "discounted_step": "counters halve every half_life episodes",
    "last_outcome": "lifetime counters x 2^(-age / half_life) when read with the prior, age since the last outcome",
    "windowed": "the last `window` outcomes of the memory",
    "cusum": "outcomes since the last alarm of a CUSUM detector; a rule that reads it acts at an alarm",
    "cusum_reset": "the same; a rule that reads it decides by the outcomes since the alarm",
    "never_updated": "stays at 0.5: the baseline",
    "uniform": "every subset of num_retrieved memories equally likely",
    "pools": "so many memories of each pool as the context asks for (pool_sizes, pool_slots)",
    "pairs": "pairs of memories retrieved together, save for a share `separation`",
    "diverse": "pairs, separated on purpose until a share `diversity` of their episodes is",
    "softmax": "successive draws by exp(worth / temperature), with a floor (exploration_floor, floor_mode)",
    "thompson": "greatest draws from the Beta posteriors, uniform in a share exploration_floor",
    "epsilon_greedy": "greatest worth, uniform in a share exploration_floor",
    "blend": "greatest similarity_weight x similarity + rest x worth, uniform in a share exploration_floor",
    "mean": "Pr[success] = mean utility of the retrieved set",
    "linear": "base_success of the context + gain x (mean utility - 0.5)",
    "linear_best": "the same with the greatest utility of the set",
    "linear_worst": "the same with the least utility of the set",
    "logistic": "logit Pr[success] = logit(base_success) + 4 gain (mean utility - 0.5)",
    "weakest_link": "base_success of the context x product of the utilities: a memory does harm 1 - utility",
    "noisy_or": "1 - (1 - base_success) x product of (1 - utility): each memory alone may bring success",
    "top_ranked": "utility of the retrieved memory of greatest relevance score",
    "first": "utility of the memory that retrieval ranks first",
    "any": "the greatest utility of the set: one memory that helps is enough",
}


def resolve(field: str, component: Component) -> Factory:
    """The factory behind a name, a `package.module:name` or a factory itself."""
    if not isinstance(component, str):
        return component
    if ":" in component:
        return load(component)
    table = FIELDS[field]
    if component not in table:
        raise InputError(
            f"{field} = {component!r}: must be one of {', '.join(table)} or package.module:name"
            f"{nearest(component, table)}"
        )
    return table[component]


def load(path: str) -> Factory:
    """Import `package.module:name`, a factory that takes the Config."""
    module, _, name = path.partition(":")
    try:
        factory = getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise InputError(f"--with {path}: cannot import {module!r} ({error}); give package.module:name") from error
    except AttributeError as error:
        raise InputError(f"--with {path}: module {module!r} has no {name!r}") from error
    if not callable(factory):
        raise InputError(f"--with {path}: {name!r} is not a factory (a function taking the Config)")
    return factory


def name_of(component: Component) -> str:
    """How a component is called in results: its registry name, or the name of its factory."""
    if isinstance(component, str):
        return component.partition(":")[2] or component
    return getattr(component, "__name__", repr(component))


def parts(config: Config) -> Parts:
    """Make every component the Config names."""
    made = Parts(
        retrieval=resolve("retrieval", config.retrieval)(config),
        outcome=resolve("outcome", config.outcome)(config),
        observers=tuple(resolve("observers", observer)(config) for observer in config.observers),
        actor=None if config.actor is None else config.observers.index(config.actor),
    )
    for field, counter in (("counter", config.counter), *(("watchers", one) for one in config.watched)):
        _check_counter(config, made, field, counter)
    return made


def _check_counter(config: Config, made: Parts, field: str, counter: str) -> None:
    """A rule reads the counters of every life, the truth, or those of an observer that has some."""
    able = [name for name, one in zip(config.observers, made.observers, strict=True) if one.evidence is not None]
    names = ["lifetime", "truth", *(name_of(one) for one in able)]
    if counter not in names:
        raise InputError(f"{field}: the counter {counter!r} must be one of {', '.join(names)} (see observers)")
    if config.scope == "every_context" and counter != "lifetime":
        raise InputError(f"scope = 'every_context': needs counter = 'lifetime', not {counter!r}")
