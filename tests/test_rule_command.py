"""`mwjax rule`: what it prints decides as the rule does, and errors are one line."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest

from mwjax import rules
from mwjax.cli import parser
from mwjax.report import rule as report
from mwjax.rules import Knobs
from mwjax.theory import deprecation


def table_of(text: str) -> list[tuple[int, int]]:
    """The runs that are printed."""
    found = re.findall(r"(\d+): (\d+|never)", text.partition("To decide anywhere")[0])
    return [(int(n), -1 if most == "never" else int(most)) for n, most in found]


@pytest.mark.parametrize("name", rules.RULES)
def test_json(call, name):
    status, out, err = call("rule", name, "--theta", "0.25", "--max-evidence", "40", "--json")
    found = json.loads(out)
    assert (status, err, out.count("\n")) == (0, "", 1)
    assert list(found) == [
        *("rule", "theta", "delta", "alpha", "prior_a", "prior_b", "min_evidence", "max_evidence", "most_successes"),
        *("looks", "false_deprecation", "median_retrievals"),
    ]
    assert (found["rule"], found["theta"], found["max_evidence"], found["looks"]) == (name, 0.25, 40, 1_000)
    assert found["most_successes"] == rules.most_successes(name, Knobs(theta=0.25), 40).tolist()
    most = rules.most_successes(name, Knobs(theta=0.25), 1_000)
    assert [one["p"] for one in found["false_deprecation"]] == [0.25, 0.35, 0.45, 0.55]
    assert [one["p"] for one in found["median_retrievals"]] == [0.05, 0.15]
    for one in found["false_deprecation"]:
        assert one["prob"] == pytest.approx(deprecation.deprecation(most, one["p"], 1_000)[-1])
    for one in found["median_retrievals"]:
        assert one["n"] == deprecation.median_delay(deprecation.deprecation(most, one["p"], 1_000))


def test_every_option_reaches_the_rule(call):
    words = "--theta .4 --delta .01 --alpha .02 --prior-a 2 --prior-b 3 --min-evidence 4 --max-evidence 60 --json"
    for name in rules.RULES:
        found = json.loads(call("rule", name, *words.split())[1])
        knobs = Knobs(*(found[field] for field in Knobs._fields))
        assert knobs == Knobs(0.4, 0.01, 0.02, 2.0, 3.0, 4)
        assert found["most_successes"] == rules.most_successes(name, knobs, 60).tolist()


def test_the_defaults_are_those_of_the_library():
    args = parser.parse(["rule", "beta"])
    assert Knobs(*(getattr(args, name) for name in Knobs._fields)) == Knobs()
    assert args.max_evidence == 100


@pytest.mark.parametrize("name", rules.RULES)
def test_the_printed_table_is_the_whole_table(call, name):
    status, out, err = call("rule", name)
    assert (status, err) == (0, "")
    assert max(map(len, out.splitlines())) <= 80
    starts, values = zip(*table_of(out), strict=True)
    most = rules.most_successes(name, Knobs(), 100)
    np.testing.assert_array_equal(np.array(values)[np.searchsorted(starts, np.arange(101), side="right") - 1], most)
    assert (np.diff(values) != 0).all()
    assert "and no change more up to evidence 100; --json has every entry\n" in out


def test_a_long_table_is_cut(call):
    out = call("rule", "threshold", "--max-evidence", "1000")[1]
    shown = table_of(out)
    changes = len(np.flatnonzero(np.diff(rules.most_successes("threshold", Knobs(), 1_000)))) + 1
    assert len(shown) == report.MOST_RUNS
    assert f"and {changes - report.MOST_RUNS} changes more up to evidence 1,000; --json has every entry\n" in out


def test_the_posterior_rule_says_what_repeated_looks_do_to_it(call):
    found = " ".join(call("rule", "beta")[1].split())
    assert "0.3608 at p = 0.3, 0.0320 at p = 0.4, 0.0053 at p = 0.5, 0.0007 at p = 0.6." in found
    assert "Median retrievals until a bad memory is forgotten: 13 at p = 0.1, 32 at p = 0.2." in found
    assert "Under repeated looks this is not a 0.05 rule: at p = theta it errs with probability 0.3608" in found
    assert "e_process keeps alpha = 0.05 for ever (0.0391 within as many)." in found
    within = " ".join(call("rule", "beta", "--delta", ".5", "--prior-a", "500", "--prior-b", "500")[1].split())
    assert "It acts on nothing up to evidence 100." in within
    assert "more than 1,000 at p = 0.2." in within
    assert "this stays within a 0.5 rule" in within
    assert "repeated looks" not in call("rule", "e_process")[1]


def test_probabilities_stay_between_0_and_1(call):
    """At the ends of theta there is nothing worse, or nothing better."""
    low, high = (json.loads(call("rule", "beta", "--theta", theta, "--json")[1]) for theta in ("0", "1"))
    assert ([one["p"] for one in low["false_deprecation"]], low["median_retrievals"]) == ([0.0, 0.1, 0.2, 0.3], [])
    assert [one["p"] for one in high["false_deprecation"]] == [1.0]
    assert [one["p"] for one in high["median_retrievals"]] == [0.8, 0.9]
    assert "Median" not in call("rule", "beta", "--theta", "0")[1]


@pytest.mark.parametrize("name", rules.RULES)
def test_the_program_decides_as_the_rule_does(call, tmp_path, name):
    """Taken from what is printed; run without this package, in another process."""
    out = call("rule", name, "--theta", "0.35", "--min-evidence", "7")[1]
    program = out.partition("this package:\n")[2].partition("\nForgotten")[0]
    assert len(program.rstrip().splitlines()) == 10
    program = "\n".join(line.removeprefix("  ") for line in program.splitlines())
    data = call("rule", name, "--theta", "0.35", "--min-evidence", "7", "--max-evidence", "50", "--json")[1]
    (tmp_path / "rule.json").write_text(data)
    test = "print([[deprecate(s, n - s) for s in range(n + 1)] for n in range(71)])"
    found = subprocess.run(
        [sys.executable, "-I", "-c", f"{program}\n{test}"], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    knobs = Knobs(theta=0.35, min_evidence=7)
    for n, decisions in enumerate(json.loads(found.stdout.lower())):
        right = rules.acts(name, knobs, np.arange(n + 1), n)
        assert (right[decisions]).all(), n
        if n <= 50:
            np.testing.assert_array_equal(decisions, right)


def test_list_governance(call):
    status, out, _ = call("list", "governance")
    assert status == 0
    for name, rule in rules.RULES.items():
        assert re.search(rf"^{name} +{re.escape(rule.about)}$", out, re.MULTILINE)
    names = list(json.loads(call("list", "governance", "--json")[1])["governance"])
    assert names == [*rules.RULES, "empirical_bayes", "none"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("", "the following arguments are required: NAME; see `mwjax rule --help`"),
        ("betta", "rule = 'betta': must be one of threshold, beta, e_process, e_process_two_sided, wilson, "
         "wilson_upper; did you mean 'beta'?"),
        ("beta --theta 2", "theta = 2.0: must be from 0 to 1"),
        ("beta --theta x", "--theta: must be a number, not 'x'; see `mwjax rule --help`"),
        ("beta --theta nan", "theta = nan: must be from 0 to 1"),
        ("beta --delta 0", "delta = 0.0: must be from 1e-06 to 0.5"),
        ("beta --alpha .7", "alpha = 0.7: must be from 1e-06 to 0.5"),
        ("beta --prior-a -1", "prior_a = -1.0: must be from 0.01 to 1e+06"),
        ("beta --min-evidence -1", "min_evidence = -1: must be from 0 to 2,147,483,647"),
        ("beta --min-evidence 1.5", "--min-evidence: must be an integer, not '1.5'; see `mwjax rule --help`"),
        ("beta --max-evidence -1", "max_evidence = -1: must be from 0 to 524,287"),
        ("beta --max-evidence 600000", "max_evidence = 600000: must be from 0 to 524,287"),
        ("beta --thetta 1", "--thetta: not understood; did you mean --theta?; see `mwjax rule --help`"),
    ],
)  # fmt: skip
def test_wrong_input_is_one_line(call, words, message):
    assert call("rule", *words.split()) == (2, "", f"mwjax: {message}\n")
