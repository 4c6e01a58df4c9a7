"""One life at a time, one episode after the other."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from mwjax.config import Config, Params
from mwjax.reference import metrics, worlds
from mwjax.reference.changes import ACTIVE, GONE, Report, Reports, Roster, born, current
from mwjax.reference.forgetting import FORGETFUL
from mwjax.reference.governance import Governor
from mwjax.reference.observers import SETTINGS, Observer, Tally, ratio
from mwjax.reference.retrieval import POLICIES
from mwjax.reference.texts import Texts
from mwjax.reference.words import EPISODE, LOT, SCORE, Stream
from mwjax.types import InputError

OUTCOMES = ("mean", "linear", "linear_best", "linear_worst", "logistic", "weakest_link", "noisy_or", "top_ranked")
OUTCOMES += ("first", "any")
FORECAST_LEVELS = 256


class Life(NamedTuple):
    """A life, episode by episode."""

    utility: np.ndarray  # int64 [memory], 24-bit
    context: np.ndarray  # int64 [episode]
    retrieved: np.ndarray  # int64 [episode, retrieved]
    chance: np.ndarray  # int64 [episode], 2**24 Pr[success]
    success: np.ndarray  # bool [episode], the true one
    evidence: np.ndarray  # int64 [memory]
    successes: np.ndarray  # int64 [memory]
    expected_hits: np.ndarray  # int64 [memory], in 2**-24ths
    worth: np.ndarray  # float64 [estimator, memory]
    metrics: dict[str, np.ndarray]  # [checkpoint, ...], shaped as Trace.metrics; without rmse and label_count
    shown: np.ndarray  # int64 [memory]
    shown_at: np.ndarray  # int64 [checkpoint, memory]
    episodes: np.ndarray  # int64 [context, outcome], as they are reported
    decisions: np.ndarray  # int64 [rule, decision, memory], as Trace.decisions
    held_back: int
    calibration: np.ndarray  # int64 [forecaster, outcome, level], as Trace.calibration
    status: np.ndarray  # int64 [memory]: 0 active, 1 suppressed, 2 gone


class Agent:
    """What a life is made of; the actor is the observer that retrieval follows."""

    def __init__(self, config: Config, params: Params) -> None:
        """Before episode 0."""
        self.config, self.params = config, params
        self.tally, self.roster = Tally(config), Roster(config, params)
        make = lambda name: FORGETFUL[name] if name in FORGETFUL else lambda *given: Observer(name, *given)
        self.observers: dict[str, Any] = {str(name): make(str(name))(config, params) for name in config.observers}
        self.actor = self.observers[str(config.observers[0] if config.actor is None else config.actor)]
        self.policy = POLICIES[str(config.retrieval)](config, params, self.actor.worth(self.tally), self.roster)
        self.governor = Governor(config, params, self.tally, self.observers, self.roster)
        self.expected = np.zeros(config.num_memories, np.int64)
        self.forecasts = np.zeros((len(self.observers) + 1, 2, FORECAST_LEVELS), np.int64)
        self.scored = config.retrieval == "blend" or config.outcome == "top_ranked"
        self.scored |= any(o.weight.startswith("score") for o in self.observers.values())

    def worth(self) -> np.ndarray:
        """Of all memories by every observer, float64 [estimator, memory]."""
        return np.stack([observer.worth(self.tally).astype(float) for observer in self.observers.values()])

    def bear(self, t: int) -> None:
        """The memories that are born in this episode become active."""
        if self.config.births:
            for memory in range(born(self.config, self.params, max(t - 1, 0)), born(self.config, self.params, t)):
                self.roster.move(memory, ACTIVE)
                self.follow([memory])

    def follow(self, memories: list[int]) -> None:
        """Tell retrieval what memories are worth now."""
        if self.policy.uses_worth and memories:
            self.policy.observe(memories, self.actor.worth(self.tally)[memories])

    def foretell(self, report: Report) -> None:
        """Count the outcome at the level of each forecast that was made of it."""
        rate = np.full(self.config.num_memories, ratio(self.tally.episodes[:, 1].sum(), self.tally.episodes.sum()))
        for forecasts, worth in zip(self.forecasts, [*self.worth(), rate], strict=True):
            level = (worth[report.told].astype(np.float32) * np.float32(FORECAST_LEVELS)).astype(int)
            np.add.at(forecasts[int(report.success)], np.minimum(level, FORECAST_LEVELS - 1), 1)

    def learn(self, t: int, shown: list[int], report: Report | None, utility: np.ndarray) -> None:
        """All that follows from an episode that showed some memories, and from the report that arrives in it."""
        if report is not None:
            if "calibration" in self.config.metrics:
                self.foretell(report)
            self.expected[report.told] += report.chance
        self.tally.shown[shown] += 1
        self.tally.add(report)
        for observer in self.observers.values():
            observer.update(report, t)
        changed = self.governor.decide(t, report, utility)
        self.follow([*{*shown, *(report.shown if report else ()), *changed}])

    def measure(self, utility: np.ndarray, p_plus: np.ndarray | None, mean_success: float) -> dict[str, np.ndarray]:
        """The metrics of a checkpoint."""
        live = self.roster.statuses() != GONE
        found = metrics.measure(self.config, self.params, self.worth(), self.tally, utility, p_plus, mean_success, live)
        if "store" in self.config.metrics:
            found |= metrics.store(utility, live, self.roster.active)
            found |= {"prior_strength": np.array(sum(self.governor.prior))} if self.config.refits else {}
        return {name: value for name, value in found.items() if name in (*self.config.metrics, *metrics.STORE)}

    def life(self, utility: np.ndarray, columns: list[np.ndarray], found: dict, shown_at: np.ndarray) -> Life:
        """What is left at the end; `columns` are those of the episodes."""
        tally, context, retrieved, chance, success = self.tally, *columns
        return Life(
            utility, context, retrieved, chance, success, tally.evidence, tally.successes, self.expected, self.worth(),
            found, tally.shown, shown_at, tally.episodes, self.governor.decisions, self.governor.held_back,
            self.forecasts, self.roster.statuses(),
        )  # fmt: skip


class Draws:
    """The random words of a life, and what they say before anything is retrieved."""

    def __init__(self, agent: Agent, root_seed: int, seed: int) -> None:
        """Words of an episode: those of the retrieval, of the outcome, and of the context where there are several."""
        self.config, self.params, self.scored = agent.config, agent.params, agent.scored
        self.split, half = agent.policy.num_words(), (agent.config.num_memories + 1) // 2
        self.several = agent.config.num_contexts > 1
        self.words = Stream(root_seed, seed, EPISODE, (self.split + 1 + self.several + 1) // 2)
        self.texts = Texts(agent.config, agent.params, root_seed, seed) if agent.config.num_queries else None
        self.query = 0
        self.scores, self.lots = (Stream(root_seed, seed, purpose, half) for purpose in (SCORE, LOT))

    def at(self, t: int) -> tuple[np.ndarray, int, int, np.ndarray, np.ndarray]:
        """(words of retrieval, the outcome's, context, relevance, lots of all memories), the last two if heeded."""
        word, n, none = self.words.at(t), self.config.num_memories, np.zeros(0)
        context = worlds.context(self.config, self.params, int(word[self.split + 1])) if self.several else 0
        score = worlds.relevance(self.params, self.scores.at(t)[:n]) if self.scored else none
        lot = self.lots.at(t)[:n] if self.config.retrieval == "epsilon_greedy" else none
        if self.texts is not None:
            self.query = self.texts.query(t)
            score = self.texts.relevance(self.query)
            context = int(self.texts.group[self.query]) if self.several else 0
        return word[: self.split], int(word[self.split]), context, score, lot

    def utility(self, t: int, original: np.ndarray, context: int) -> np.ndarray:
        """Of every memory in this episode, int64 [memory]."""
        if self.texts is not None:
            return self.texts.answers[self.texts.phase(t), self.query]
        return current(self.config, self.params, t, original, context)


def simulate(config: Config, params: Params, root_seed: int, seed: int, p_plus: np.ndarray | None = None) -> Life:
    """The life of (root_seed, seed) under built-in components; `p_plus` [memory] adds the metrics that need it."""
    check(config)
    marks = [int(mark) for mark in params.checkpoints]
    original, agent = worlds.utilities(config, params, root_seed, seed), Agent(config, params)
    reports, draws = Reports(config, params, root_seed, seed), Draws(agent, root_seed, seed)
    kept, measured, shown_at, good = [], [], [], 0
    for t in range(marks[-1]):
        agent.bear(t)
        word, last, context, score, lot = draws.at(t)
        believed = agent.actor.worth(agent.tally) if agent.policy.uses_worth else np.zeros(0)
        shown = agent.policy.retrieve(word, context, believed, score, lot)
        utility, own = draws.utility(t, original, context)[shown], score[shown] if agent.scored else score
        chance = worlds.chance(config, params, reports.effective(t, utility), context, own)
        success = last >> 8 < chance
        true = Report(t, context, shown, chance, success, True, [True] * len(shown), utility, own)
        agent.learn(t, shown, reports.due(reports.report(true)), current(config, params, t, original))
        kept.append((context, shown, chance, success))
        good += success
        if t + 1 in marks:
            measured.append(agent.measure(current(config, params, t, original), p_plus, good / (t + 1)))
            shown_at.append(agent.tally.shown.copy())
    found = {name: np.stack([one[name] for one in measured]) for name in measured[0]}
    columns = [np.array(column) for column in zip(*kept, strict=True)]
    return agent.life(original, columns, found, np.stack(shown_at))


def check(config: Config) -> None:
    """Refuse components that are not written here."""
    known = ("retrieval", config.retrieval, POLICIES), ("outcome", config.outcome, OUTCOMES)
    observers = [("observers", name, (*SETTINGS, *FORGETFUL)) for name in config.observers]
    for field, value, names in (*known, *observers):
        if value not in names:
            raise InputError(f"{field} = {value!r}: the NumPy reference knows {', '.join(names)}")
