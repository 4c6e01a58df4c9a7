"""What the command line takes. Scripts rely on it: names stay, and nothing may be abbreviated."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from mwjax.cli import log_options
from mwjax.cli.options import component, knobs, nearest, one_of, whole

EXIT_STATUS = "Exit status: 0 good, 1 a check or the program failed, 2 bad input, 130 interrupted."
KINDS = ("experiments", "estimators", "retrieval", "worlds", "governance", "formats", "fields")


class UsageError(Exception):
    """The command line is wrong; the message is one line."""


class Parser(argparse.ArgumentParser):
    """Nothing may be abbreviated; errors are one line that names the nearest thing that exists."""

    def __init__(self, **options: Any) -> None:
        """As ArgumentParser."""
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Raise UsageError."""
        message = re.sub("^argument ", "", message)
        unknown = re.match(r"COMMAND: invalid choice: '(.*)' \(choose from (.*)\)", message)
        if unknown:
            names = re.findall(r"[\w-]+", unknown[2])
            message = f"{unknown[1]}: there is no such command{nearest(unknown[1], names)}"
        raise UsageError(f"{message}; see `{self.prog} --help`")


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The options of one command; `call` names the function of `commands` that carries it out."""
    parser, commands = build()
    args, rest = parser.parse_known_args(arguments)
    command = commands.get(args.command or "", parser)
    if rest:
        word = rest[0].partition("=")[0]
        known = [option for action in command._actions for option in action.option_strings]
        hint = nearest(word, known) if word.startswith("-") else "; did you mean --set?" if "=" in rest[0] else ""
        command.error(f"{rest[0]}: not understood{hint}")
    if args.command is None:
        parser.error(f"give a command: {', '.join(commands)}")
    return args


def common() -> Parser:
    """The options of every command; without defaults, so that one before the command is not undone after it."""
    parser = Parser(add_help=False, argument_default=argparse.SUPPRESS)
    group = parser.add_argument_group("options of every command")
    group.add_argument("--json", action="store_true", help="print one JSON object on standard output and nothing else")
    group.add_argument("--quiet", action="store_true", help="no progress and no notes on standard error")
    group.add_argument("--debug", action="store_true", help="show the traceback of an error")
    group.add_argument(
        "--device",
        type=one_of("cpu", "gpu"),
        metavar="cpu|gpu",
        help="where to compute (default: a GPU if there is one)",
    )
    return parser


def build() -> tuple[Parser, dict[str, Parser]]:
    """The whole parser, and that of each command by name."""
    import mwjax

    shared, commands = common(), {}
    root = Parser(
        prog="mwjax",
        description="Simulates thousands of agent memory lives at once: which memories to trust, suppress or forget.",
        epilog=f"`mwjax COMMAND --help` explains a command and gives examples.\n{EXIT_STATUS}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        parents=[shared],
    )
    root.add_argument("--version", action="version", version=f"mwjax {mwjax.__version__}")
    root.set_defaults(json=False, quiet=False, debug=False, device=None)
    listed = root.add_subparsers(dest="command", metavar="COMMAND", title="commands")

    def command(name: str, purpose: str, *examples: str) -> Parser:
        commands[name] = listed.add_parser(
            name,
            help=purpose,
            description=purpose,
            epilog="\n  ".join(["examples:", *examples]),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            parents=[shared],
        )
        return commands[name]

    _simulate(command)
    _sweep(command)
    _look(command)
    _decide(command)
    log_options.add(command)
    _measure(command)
    for name, parser in commands.items():
        parser.set_defaults(call={"list": "list_names"}.get(name, name))
    return root, commands


def _simulate(command: Callable[..., Parser]) -> None:
    it = command(
        "reproduce",
        "Hold the published numbers against a simulation; exit 1 if a predicted one is off.",
        "mwjax reproduce --quick",
        "mwjax reproduce --out results/paper --json > table.json",
    )
    it.add_argument("--quick", action="store_true", help="fewer seeds, within two minutes (default: 1,000 seeds)")
    it.add_argument(
        "--sensitivity",
        action="store_true",
        help="instead, let the open settings of each fitted number vary: what else would fit, what would not",
    )
    it.add_argument(
        "--out",
        metavar="DIR",
        default="results/reproduce",
        help="folder for results and figures (default: %(default)s)",
    )
    it = command(
        "run",
        "Simulate one experiment, print its tables, store everything and draw the figure.",
        "mwjax run ranking --seeds 1000",
        'mwjax run ranking --set num_memories=500 --set \'observers=["memory_worth", "beta"]\'',
    )
    _experiment(it)
    it.add_argument(
        "--with",
        action="append",
        default=[],
        dest="components",
        type=component,
        metavar="MODULE:NAME",
        help="use your own estimator, retrieval or outcome law, looked for from here; may be repeated (default: none)",
    )


def _sweep(command: Callable[..., Parser]) -> None:
    it = command(
        "sweep",
        "Simulate every combination of an experiment's [axes], or map its threshold; store the metrics and draw them.",
        "mwjax sweep separation_map",
        "mwjax sweep exploration_floor --seeds 20 --set 'axes.temperature=[0.1, 0.05]'",
    )
    _experiment(it)
    it.add_argument("--dry-run", action="store_true", help="say what would be simulated, and stop")

    it = command(
        "compare",
        "Let governance rules act on the same lives, each with every value of its knob ([rules]), and say which wins.",
        "mwjax compare frequentist_vs_beta",
        "mwjax compare frequentist_vs_beta --seeds 50 --set 'rules.beta.delta=[0.05, 0.01]' --json",
    )
    _experiment(it)


def _experiment(it: Parser) -> None:
    """What names an experiment, changes it, and says where its result goes."""
    it.add_argument(
        "experiment", metavar="EXPERIMENT|FILE.toml", help="a name from `mwjax list experiments`, or a file"
    )
    it.add_argument("--seeds", type=whole, metavar="N", help="number of lives (default: as the experiment says)")
    it.add_argument("--episodes", type=whole, metavar="T", help="episodes of a life (default: as the experiment says)")
    it.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a field, or an axis of a sweep (axes.FIELD=[...]); TOML or bare text; may be repeated "
        "(default: none; see `mwjax list fields`)",
    )
    it.add_argument("--out", metavar="DIR", help="folder for the result (default: results/NAME-HASH)")
    it.add_argument(
        "--fresh",
        action="store_true",
        help="simulate again and replace (default: show a finished result that is there)",
    )


def _look(command: Callable[..., Parser]) -> None:
    it = command(
        "show",
        "Print the tables of a stored result.",
        "mwjax show results/ranking-1a2b3c4d",
        "mwjax show results/ranking-1a2b3c4d --json",
    )
    it.add_argument("store", metavar="STORE", help="folder of a result")
    it = command(
        "figure",
        "Draw a stored result, as PNG and SVG.",
        "mwjax figure results/ranking-1a2b3c4d",
        "mwjax figure results/ranking-1a2b3c4d --out ranking.svg",
    )
    it.add_argument("store", metavar="STORE", help="folder of a result")
    it.add_argument(
        "--out", metavar="FILE", help="name of the pictures, with or without ending (default: STORE/figure)"
    )
    it = command(
        "list",
        "List what can be named on the command line and in TOML files.",
        "mwjax list",
        "mwjax list estimators",
    )
    it.add_argument(
        "kind", nargs="?", type=one_of(*KINDS), metavar="KIND", help=f"one of {', '.join(KINDS)} (default: all)"
    )


def _decide(command: Callable[..., Parser]) -> None:
    it = command(
        "rule",
        "A governance rule as a table to ship: when to forget a memory, and how often that is wrong or late.",
        "mwjax rule beta",
        "mwjax rule e_process --theta 0.4 --alpha 0.01 --max-evidence 1000 --json > rule.json",
    )
    it.add_argument("name", metavar="NAME", help="a name from `mwjax list governance`")
    default = "(default: %(default)s)"
    knobs(it)
    it.add_argument(
        "--min-evidence",
        type=whole,
        default=10,
        metavar="N",
        help=f"threshold, wilson: acts from N retrievals on {default}",
    )
    it.add_argument(
        "--max-evidence", type=whole, default=100, metavar="N", help=f"retrievals at which the table ends {default}"
    )


def _measure(command: Callable[..., Parser]) -> None:
    command(
        "bench",
        "Time the simulation beside NumPy and C, all in one run.",
        "mwjax bench",
        "mwjax bench --json",
    )
