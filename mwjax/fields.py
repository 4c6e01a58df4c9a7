"""The fields of an experiment: types, defaults and what they mean. Config and make_params check the ranges."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from mwjax.config import METRICS, Component, Config, make_params

PARAMS: dict[str, Any] = dict(make_params.__kwdefaults__ or {})
Whole = int | Any
Number = Annotated[float | Any, Field(union_mode="left_to_right")]
Numbers = Annotated[float | list[Any] | Any, Field(union_mode="left_to_right")]
"""Converted if possible, else left as it is: Config and make_params then name the type and the range together."""


class Fields(BaseModel):
    """The fields of an experiment's TOML, which `--set` takes too."""

    model_config = ConfigDict(strict=True, extra="forbid", arbitrary_types_allowed=True)

    title: str = Field("", description="a text: what the experiment asks")
    num_memories: Whole = Field(Config.num_memories, description="memories of an agent, N")
    num_retrieved: Whole = Field(Config.num_retrieved, description="memories shown in an episode, k")
    num_episodes: Whole = Field(PARAMS["num_episodes"], description="episodes of a life, T")
    seeds: Whole = Field(20, description="number of lives: seeds 0, 1, ...")
    root_seed: Whole = Field(0, description="another root seed gives other lives")
    checkpoints: list[int] | None = Field(None, description="a list of episode counts at which metrics are taken")
    utility: str | list[Any] = Field(Config.utility, description="'uniform', 'beta', or a list of num_memories numbers")
    utility_low: Numbers = Field(PARAMS["utility_low"], description="least utility that 'uniform' draws, or one a pool")
    utility_high: Numbers = Field(PARAMS["utility_high"], description="greatest one, or one a pool")
    utility_a: Number = Field(PARAMS["utility_a"], description="utilities are Beta(utility_a, utility_b) with 'beta'")
    utility_b: Number = Field(PARAMS["utility_b"], description="see utility_a")
    utilities: list[Any] | None = Field(None, description="a list of num_memories numbers, with utility = 'list'")
    num_pairs: Whole = Field(Config.num_pairs, description="pairs of an anchor and a hitchhiker, P")
    anchor_utility: Number = Field(PARAMS["anchor_utility"], description="true utility of the anchors")
    hitchhiker_utility: Number = Field(PARAMS["hitchhiker_utility"], description="true utility of the hitchhikers")
    separation: Number = Field(PARAMS["separation"], description="share of a pair's episodes that separate it, f")
    separation_mode: str = Field(Config.separation_mode, description="'split': either half alone; or 'anchor_only'")
    diversity: Number = Field(PARAMS["diversity"], description="share that 'diverse' retrieval separates on purpose")
    num_contexts: Whole = Field(Config.num_contexts, description="task types")
    context_share: list[Any] | None = Field(None, description="a list of how frequent each task type is")
    hard_share: Number | None = Field(None, description="how frequent the second of two task types is")
    target_context: Whole | None = Field(None, description="task type that 'contextual' looks at (default: the last)")
    pool_sizes: list[int] = Field([], description="a list of the memories in each pool")
    pool_slots: list[list[int]] = Field([], description="a row a task type: how many of each pool a set holds")
    base_success: Numbers = Field(
        PARAMS["base_success"], description="Pr[success] at neutral utility, or one a context"
    )
    gain: Number = Field(PARAMS["gain"], description="how much Pr[success] changes with the utility of the set")
    outcome: Component = Field(Config.outcome, description="one of `mwjax list worlds`")
    retrieval: Component = Field(Config.retrieval, description="one of `mwjax list retrieval`")
    temperature: Number = Field(PARAMS["temperature"], description="of softmax retrieval, tau")
    exploration_floor: Number = Field(
        PARAMS["exploration_floor"], description="share that retrieval ignores worth in, eps"
    )
    floor_mode: str = Field(Config.floor_mode, description="'episode', 'slot' or 'none': what the floor is a share of")
    similarity_weight: Number = Field(PARAMS["similarity_weight"], description="of similarity against worth in 'blend'")
    masked: Whole = Field(PARAMS["masked"], description="a memory that is never retrieved; -1: none")
    removed: list[int] = Field([], description="a list of memories whose removal values are measured")
    observers: list[Component] = Field(list(Config.observers), description="a list out of `mwjax list estimators`")
    actor: Component | None = Field(None, description="the one of the observers whose worth feeds retrieval")
    score_low: Number = Field(PARAMS["score_low"], description="relevance scores are uniform on [score_low, 1]")
    score_mode: str = Field("raw", description="'raw', or 'normalised': scores divided by their sum over the set")
    prior_a: Number = Field(PARAMS["prior_a"], description="successes that beta starts from")
    prior_b: Number = Field(PARAMS["prior_b"], description="failures that beta starts from")
    theta_low: Number = Field(PARAMS["theta_low"], description="worth up to this is labelled low")
    theta_high: Number = Field(PARAMS["theta_high"], description="worth from this on is labelled high")
    min_evidence: Whole = Field(PARAMS["min_evidence"], description="less evidence is labelled uncertain")
    texts: str | None = Field(None, description="texts that are retrieved: built-in ones, or a TOML of your own")
    drift_share: Number = Field(PARAMS["drift_share"], description="share of the memories, the first ones, that drift")
    drift_utility: Number = Field(PARAMS["drift_utility"], description="what the utility of drifting memories becomes")
    switch_at: Whole = Field(PARAMS["switch_at"], description="first episode of the drift")
    drift_span: Whole = Field(PARAMS["drift_span"], description="episodes that the drift takes; 1: abrupt")
    num_initial: Whole | None = Field(None, description="memories that are there at first (default: all)")
    birth_every: Whole = Field(PARAMS["birth_every"], description="episodes between the births of the others")
    num_contextual: Whole = Field(
        Config.num_contextual, description="memories, the last ones, with utility 1 - U in all contexts but the first"
    )
    flip_prob: Number = Field(PARAMS["flip_prob"], description="share of the outcomes that is reported as its opposite")
    observe_prob: Numbers = Field(
        PARAMS["observe_prob"], description="share of the outcomes reported, or one a context"
    )
    observe_success: Number = Field(PARAMS["observe_success"], description="factor of observe_prob for successes")
    observe_failure: Number = Field(PARAMS["observe_failure"], description="factor of observe_prob for failures")
    unused_prob: Number = Field(PARAMS["unused_prob"], description="share of retrievals without a part in the outcome")
    unused_as: str = Field(Config.unused_as, description="what they count as: 'nothing' or the 'outcome'")
    delay: Whole = Field(Config.delay, description="episodes until an outcome is known")
    discount: Number = Field(PARAMS["discount"], description="of 'discounted' counters, at every outcome of the memory")
    half_life: Number = Field(PARAMS["half_life"], description="episodes, of 'discounted_step' and 'last_outcome'")
    window: Whole = Field(Config.window, description="outcomes that 'windowed' remembers")
    cusum_good: Number = Field(PARAMS["cusum_good"], description="Pr[success] of a memory before a change, for 'cusum'")
    cusum_bad: Number = Field(PARAMS["cusum_bad"], description="and after it")
    cusum_limit: Number = Field(PARAMS["cusum_limit"], description="log likelihood ratio at which 'cusum' gives alarm")
    governance: str = Field(Config.governance, description="what a decision does: 'none', 'suppress' or 'deprecate'")
    restores: bool = Field(Config.restores, description="true: suppressed memories come back at theta + hysteresis")
    rule: str = Field(
        PARAMS["rule"], description="one of `mwjax list governance`; min_evidence and the prior are its too"
    )
    theta: Number = Field(PARAMS["theta"], description="a memory is bad if it succeeds less often (see theta_mode)")
    theta_mode: str = Field(
        Config.theta_mode, description="'absolute', 'relative' (x the base rate) or 'quantile' (bottom share by worth)"
    )
    delta: Number = Field(PARAMS["delta"], description="of rule 'beta': acts at Pr(p < theta) > 1 - delta")
    alpha: Number = Field(PARAMS["alpha"], description="of rule 'e_process': acts at E >= 1 / alpha")
    hysteresis: Number = Field(PARAMS["hysteresis"], description="how much better a restored memory must be than theta")
    decide_every: Whole = Field(PARAMS["decide_every"], description="episodes between two looks at the store, g")
    counter: str = Field(
        Config.counter, description="what the rule reads: 'lifetime', 'truth' or an observer's counters"
    )
    scope: str = Field(
        Config.scope, description="'pooled': all contexts together; 'every_context': the rule must act in each"
    )
    watchers: list[str] = Field([], description="a list of rules that only watch, as 'beta:delta=.01,counter=windowed'")
    axes: dict[str, list[Any]] = Field({}, description="a table: for `mwjax sweep`, lists of values of fields")
    slices: dict[str, list[Any]] = Field({}, description="a table: for maps, lists of values of fields to cut along")
    rules: dict[str, list[Any]] = Field(
        {}, description="a table: for `mwjax compare`, rules.RULE.KNOB = list of values"
    )
    oracle_theta: Number = Field(0.5, description="true utility below which the oracle of `mwjax compare` deprecates")
    level: Number | None = Field(None, description="makes `mwjax sweep` a map of where Pr[separated] reaches this")
    precision: Number = Field(0.03, description="of the threshold that a map finds, relative half width of its band")
    first_seeds: Whole = Field(1_000, description="lives of every cell of a map in the first round")
    most_seeds: Whole = Field(16_000, description="lives of a cell of a map at most")
    metrics: list[str] = Field(list(Config.metrics), description=f"a list out of {', '.join(METRICS)}")
    keep_worth: str = Field(Config.keep_worth, description="'last', or 'all': worth is stored at every checkpoint")
