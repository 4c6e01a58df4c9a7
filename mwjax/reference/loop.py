"""One life at a time, one episode after the other."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from mwjax.config import Config, Params
from mwjax.reference import metrics, worlds
from mwjax.reference.observers import SETTINGS, Observer, Tally
from mwjax.reference.retrieval import POLICIES
from mwjax.reference.words import EPISODE, LOT, SCORE, Stream
from mwjax.types import InputError

OUTCOMES = ("mean", "linear", "linear_best", "linear_worst", "logistic", "weakest_link", "noisy_or", "top_ranked")


class Life(NamedTuple):
    """A life, episode by episode."""

    utility: np.ndarray  # int64 [memory], 24-bit
    context: np.ndarray  # int64 [episode]
    retrieved: np.ndarray  # int64 [episode, retrieved]
    chance: np.ndarray  # int64 [episode], 2**24 Pr[success]
    success: np.ndarray  # bool [episode]
    evidence: np.ndarray  # int64 [memory]
    successes: np.ndarray  # int64 [memory]
    expected_hits: np.ndarray  # int64 [memory], in 2**-24ths
    worth: np.ndarray  # float64 [estimator, memory]
    metrics: dict[str, np.ndarray]  # [checkpoint, ...], shaped as Trace.metrics; without rmse and label_count


def simulate(config: Config, params: Params, root_seed: int, seed: int, p_plus: np.ndarray | None = None) -> Life:
    """The life of (root_seed, seed) under built-in components; `p_plus` [memory] adds the metrics that need it."""
    known = ("retrieval", config.retrieval, POLICIES), ("outcome", config.outcome, OUTCOMES)
    for field, value, names in (*known, *(("observers", name, SETTINGS) for name in config.observers)):
        if value not in names:
            raise InputError(f"{field} = {value!r}: the NumPy reference knows {', '.join(names)}")
    marks = [int(mark) for mark in params.checkpoints]
    utility, tally = worlds.utilities(config, params, root_seed, seed), Tally(config)
    observers = [Observer(str(name), config, params) for name in config.observers]
    actor = observers[0 if config.actor is None else config.observers.index(config.actor)]
    policy = POLICIES[str(config.retrieval)](config, params, actor.worth(tally))
    split, half = policy.num_words(), (config.num_memories + 1) // 2
    words = Stream(root_seed, seed, EPISODE, (split + 1 + (config.num_contexts > 1) + 1) // 2)
    scores, lots = (Stream(root_seed, seed, purpose, half) for purpose in (SCORE, LOT))
    scored = config.retrieval == "blend" or config.outcome == "top_ranked"
    scored |= any(o.weight.startswith("score") for o in observers)
    kept, worth, measured = [], np.zeros(0), []
    expected, good = np.zeros(config.num_memories, np.int64), 0
    for t in range(marks[-1]):
        word = words.at(t)
        context = worlds.context(config, params, int(word[split + 1])) if config.num_contexts > 1 else 0
        score = worlds.relevance(params, scores.at(t)[: config.num_memories]) if scored else np.zeros(0)
        lot = lots.at(t)[: config.num_memories] if config.retrieval == "epsilon_greedy" else np.zeros(0)
        believed = actor.worth(tally) if policy.uses_worth else np.zeros(0)
        shown = policy.retrieve(word[:split], context, believed, score, lot)
        chance = worlds.chance(config, params, utility[shown], context, score[shown] if scored else None)
        success = int(word[split]) >> 8 < chance
        tally.add(context, shown, success)
        expected[shown] += chance
        for observer in observers:
            observer.update(shown, success, utility[shown], score[shown] if scored else None)
        if policy.uses_worth:
            policy.observe(shown, actor.worth(tally)[shown])
        kept.append((context, shown, chance, success))
        good += success
        if t + 1 in marks:
            worth = np.stack([observer.worth(tally) for observer in observers])
            measured.append(metrics.measure(config, params, worth, tally, utility, p_plus, good / (t + 1)))
    found = {name: np.stack([one[name] for one in measured]) for name in measured[0] if name in config.metrics}
    contexts, retrieved, chances, outcomes = (np.array(column) for column in zip(*kept, strict=True))
    return Life(
        utility, contexts, retrieved, chances, outcomes, tally.evidence, tally.successes, expected, worth, found
    )
