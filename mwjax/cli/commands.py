"""One function a command: call the library, hand back an Answer. What a command needs is imported when it runs."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from mwjax.cli.options import number
from mwjax.cli.terminal import note, progress, reading, start_devices, write

if TYPE_CHECKING:
    import numpy as np
    import xarray
    from rich.console import Console

    from mwjax.experiment import Experiment
    from mwjax.logs import Source

FULL_SEEDS, QUICK_SEEDS = 1_000, 200


class Answer(NamedTuple):
    """What a command found: the object that `--json` prints, how people see it, and the exit status."""

    data: Callable[[], Mapping[str, Any]]
    show: Callable[[Console], None]
    status: int = 0


def reproduce(args: argparse.Namespace) -> Answer:
    """Run every experiment that has published numbers, and hold the numbers against each other."""
    from mwjax import experiment, paper, plots, report, results, sweep

    start_devices(args.device)
    seeds = QUICK_SEEDS if args.quick else FULL_SEEDS
    if args.sensitivity:
        return _sensitivity(args, seeds)
    measured: dict[str, dict[paper.Key, np.ndarray]] = {}
    out = Path(args.out)
    for name, changes in paper.runs(experiment.experiments()):
        asked = experiment.vary(experiment.load(name, seeds=seeds), **dict(changes))
        label = "-".join([name, *(f"{field}-{value}" for field, value in changes)])
        with progress(args, label, asked.num_episodes) as tick:
            found = sweep.run(asked, out=out / label, fresh=True, progress=tick)
        plots.save(plots.figure(found), out / label / "figure")
        marks = [*enumerate(found.checkpoint.values.tolist()), (-1, None)]
        of_it = {(metric, at, changes): x[:, i] for metric, x in results.per_life(found) for i, at in marks}
        measured.setdefault(name, {}).update(of_it)
    table = paper.table(measured)
    off = paper.predicted_rows_off(table)
    missing = [name for name in paper.EXPERIMENTS if name not in measured]
    data = {"rows": table, "off": len(off), "missing": missing, "quick": args.quick, "out": str(out)}

    def show(to: Console) -> None:
        report.print_reproduce(table, to)
        write(to, f"Results and figures are in {out}")

    return Answer(lambda: data, show, status=1 if off else 0)


def _sensitivity(args: argparse.Namespace, seeds: int) -> Answer:
    """What the fitted numbers become when the settings that the paper leaves open vary."""
    from mwjax import report, sensitivity

    with progress(args, "sensitivity", 10_000) as tick:
        found = sensitivity.survey(seeds=min(seeds, QUICK_SEEDS), progress=tick)
    return Answer(lambda: {"rows": found}, lambda to: report.print_sensitivity(found, to))


def asked_for(args: argparse.Namespace, components: Sequence[str] = ()) -> Experiment:
    """The experiment that the command line names and changes."""
    from mwjax import experiment

    sys.path.append(os.getcwd())
    given = {"seeds": args.seeds, "num_episodes": args.episodes}
    given = {name: value for name, value in given.items() if value is not None}
    return experiment.load(args.experiment, overrides=args.set, components=components, **given)


def sweep(args: argparse.Namespace) -> Answer:
    """Simulate every combination of the axes of an experiment, or its map, store and draw it."""
    from mwjax import plots, separation, store, sweep

    start_devices(args.device)
    asked = asked_for(args)
    plan = sweep.plan(asked)
    if args.dry_run:
        return Answer(lambda: plan, lambda to: write(to, *sweep.plan_lines(plan)))
    out = Path(args.out or sweep.sweep_folder(asked))
    if not args.fresh and store.state(out) == "finished":
        found = sweep.reopen_sweep(asked, out)
        note(args, f"{out} holds this result already; --fresh simulates it again")
    else:
        store.refuse(out, args.fresh)
        with progress(args, asked.name, asked.num_episodes) as tick:
            made = (separation.survey if asked.aim else sweep.sweep)(asked, progress=tick)
        found = store.save(made, out, fresh=args.fresh)
        plots.save(plots.figure(found), out / "figure")
    return answer_of(found, out)


def compare(args: argparse.Namespace) -> Answer:
    """Governance rules on the same lives."""
    from mwjax import compare, plots, store, sweep

    start_devices(args.device)
    asked = asked_for(args)
    out = Path(args.out or sweep.sweep_folder(asked, "compare"))
    if not args.fresh and store.state(out) == "finished":
        found = sweep.reopen_sweep(asked, out)
        note(args, f"{out} holds this result already; --fresh simulates it again")
    else:
        compare.settings(asked)
        store.refuse(out, args.fresh)
        with progress(args, asked.name, asked.num_episodes) as tick:
            found = store.save(compare.compare(asked, progress=tick), out, fresh=args.fresh)
        plots.save(plots.figure(found), out / "figure")
    return answer_of(found, out)


def run(args: argparse.Namespace) -> Answer:
    """Simulate one experiment, store it and draw its figure."""
    from mwjax import plots, sweep

    start_devices(args.device)
    asked = asked_for(args, components=args.components)
    out = Path(args.out or sweep.default_folder(asked))
    with progress(args, asked.name, asked.num_episodes) as tick:
        found = sweep.run(asked, out=out, fresh=args.fresh, progress=tick)
    if found.attrs["reused"]:
        note(args, f"{out} holds this result already; --fresh simulates it again")
    else:
        plots.save(plots.figure(found), out / "figure")
    return answer_of(found, out)


def show(args: argparse.Namespace) -> Answer:
    """Print the tables of a stored result."""
    from mwjax import store

    return answer_of(store.open_store(args.store), args.store)


def answer_of(found: xarray.Dataset, place: str | Path) -> Answer:
    """The tables of a run, a sweep, a map or a comparison."""
    from mwjax import compare, report, results

    ways = {None: (results.summary, report.print_run), "compare": (compare.as_json, report.print_compare)}
    tell, show = ways.get(found.attrs.get("kind"), (report.sweep_json, report.print_sweep))
    return Answer(lambda: {**tell(found), "store": str(place)}, lambda to: show(found, to))


def figure(args: argparse.Namespace) -> Answer:
    """Draw a stored result."""
    from mwjax import plots, store

    drawn = plots.figure(store.open_store(args.store))
    files = [str(file) for file in plots.save(drawn, args.out or Path(args.store) / "figure")]
    return Answer(lambda: {"files": files}, lambda to: write(to, *files))


def list_names(args: argparse.Namespace) -> Answer:
    """Everything that has a name."""
    from mwjax import experiment, formats, registry, rules
    from mwjax.config import governed

    about: dict[str, dict[str, str]] = {
        "experiments": {name: experiment.load(name).title for name in experiment.experiments()},
        **{kind: {name: registry.ABOUT.get(name, "") for name in table} for kind, table in registry.KINDS.items()},
        "governance": {**{name: rule.about for name, rule in rules.RULES.items()}, **governed.ABOUT},
        "formats": dict(formats.FORMATS),
        "fields": {name: str(info.description) for name, info in experiment.Fields.model_fields.items()},
    }
    chosen = {args.kind: about[args.kind]} if args.kind else about

    def lines() -> Iterator[str]:
        for kind, names in chosen.items():
            yield from () if args.kind else (f"{kind}:",)
            yield from (f"{'' if args.kind else '  '}{name:{max(map(len, names))}}  {names[name]}" for name in names)

    return Answer(lambda: chosen, lambda to: write(to, *lines()))


def rule(args: argparse.Namespace) -> Answer:
    """A governance rule as a table."""
    from mwjax.report.rule import print_rule, rule_json
    from mwjax.rules import Knobs

    found = rule_json(args.name, Knobs(*(getattr(args, name) for name in Knobs._fields)), args.max_evidence)
    return Answer(lambda: found, lambda to: print_rule(found, to))


def replay(args: argparse.Namespace) -> Answer:
    """What a log says of its memories."""
    from mwjax import replay, report
    from mwjax.cli.folders import written_folder
    from mwjax.rules import Knobs

    start_devices(args.device)
    names = ("estimator", "theta_low", "theta_high", "min_evidence", "permutations", "rule", "counters_only", "strict")
    given = {name: getattr(args, name) for name in names} | {
        "ridge": _ridge(args.ridge),
        "additive": args.assume_additive,
    }
    knobs = Knobs(*(getattr(args, name) for name in Knobs._fields))
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(written_folder(Path(args.out), "replay")) if args.out else None
        with reading(args) as tick:
            found, journal = replay.read(_source(args), replay.Options(**given, knobs=knobs), tick)
        if folder is not None:
            (folder / "replay.json").write_text(json.dumps(replay.report_json(found), indent=1) + "\n", "utf-8")
            replay.report_csv(found, folder / "memories.csv")
            if journal is not None:
                from mwjax.plots import replay as plots
                from mwjax.plots.style import save

                save(plots.figure(found, journal), folder / "figure")
    return Answer(lambda: replay.report_json(found), lambda to: report.print_replay(found, to))


def backtest(args: argparse.Namespace) -> Answer:
    """Which half-life a log supports."""
    from mwjax import replay
    from mwjax.cli.folders import written_folder
    from mwjax.replay import backtest
    from mwjax.report import backtest as report

    half_lives = _numbers("--half-life", args.half_life)
    priors = [backtest.parse_prior(one) for one in args.prior or ["closed"]]
    with contextlib.ExitStack() as stack:
        folder = stack.enter_context(written_folder(Path(args.out), "backtest")) if args.out else None
        with reading(args) as tick:
            journal = replay.episodes(_source(args), tick)
        found = backtest.backtest(
            journal, half_lives=half_lives, priors=priors, estimators=args.estimator or ["memory_worth"]
        )
        if folder is not None:
            from mwjax.plots.backtest import backtest_figure
            from mwjax.plots.style import save

            (folder / "backtest.json").write_text(json.dumps(report.backtest_json(found), indent=1) + "\n", "utf-8")
            save(backtest_figure(found), folder / "figure")
    return Answer(lambda: report.backtest_json(found), lambda to: report.print_backtest(found, to))


def _source(args: argparse.Namespace) -> Source:
    """The log that the options name."""
    from mwjax.logs import FIELDS, Source

    fields = {name: getattr(args, name) for name in FIELDS if getattr(args, name) is not None}
    return Source(args.log, format=args.format, fields=fields, join=args.join, strict=args.strict)


def _numbers(option: str, text: str) -> list[float]:
    from mwjax.types import InputError

    try:
        return [number(one) for one in text.split(",")]
    except argparse.ArgumentTypeError as error:
        raise InputError(f"{option}: {error}") from None


def _ridge(text: str) -> float | str:
    from mwjax.types import InputError

    try:
        return text if text == "cv" else number(text)
    except argparse.ArgumentTypeError:
        raise InputError(f"--ridge: must be cv or a number, not {text!r}") from None


def bench(args: argparse.Namespace) -> Answer:
    """Time the simulation beside its peers."""
    from mwjax import bench

    start_devices(args.device)
    found = bench.bench()
    return Answer(lambda: found, lambda to: bench.print_bench(found, to))
