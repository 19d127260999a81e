"""Run the tests of a checkout of DSPy against the door, and count.

    python -m tests.dspy.suite CHECKOUT [--peer PYTHON]... [TESTS ...]

DSPy's tests are not in this project: CHECKOUT is a clone of https://github.com/stanfordnlp/dspy at the tag of the peer.
``--peer`` is an interpreter with DSPy, pytest and pytest-asyncio (give it again for a second release of DSPy): its tests
run there first, and only those that pass on each peer count. Tests that need another machine or LiteLLM, or test
private names, are left out (``left_out.py`` has the rule). Tests that compare exact wording (their node ids are in
``exact_wording.txt``, found by reading) are counted apart.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import TypedDict

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]


class Outcomes(TypedDict):
    """The outcome, the reason to leave out, and the error of tests by node id."""

    outcomes: dict[str, str]
    left_out: dict[str, str]
    errors: dict[str, str]


def run_tests(python: str, checkout: Path, library: str, tests: list[str]) -> Outcomes:
    """Run the tests with the interpreter; ``library`` is ``door`` or ``dspy``. Raises ``SystemExit`` if pytest did not run."""
    paths = [str(HERE), *([str(ROOT)] if library == "door" else [])]
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder, "result.json")
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*paths, *filter(None, [os.environ.get("PYTHONPATH")])]),
            "SUITE_LIBRARY": library,
            "SUITE_RESULT": str(result),
            "SIGWIRE_CACHE": "off",
            "DSPY_CACHEDIR": folder,
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        }
        command = [python, "-m", "pytest", "-p", "suite_plugin", "-p", "no:cacheprovider", "-p", "no:langsmith_plugin"]
        options = ["-q", "--tb=short", "-o", "asyncio_mode=auto", "-o", "addopts=", "--continue-on-collection-errors"]
        done = subprocess.run(
            [*command, *options, "--rootdir", str(checkout), *tests],
            cwd=checkout, env=environment, capture_output=True, text=True, check=False,
        )  # fmt: skip
        if not result.is_file():
            raise SystemExit(
                f"pytest did not run (the tests of {checkout}):\n{done.stdout[-2000:]}{done.stderr[-2000:]}"
            )
        outcomes: Outcomes = json.loads(result.read_text(encoding="utf-8"))
        return outcomes


def join_peers(peers: list[Outcomes]) -> Outcomes | None:
    """Return the outcomes on all peers: of each test of the first peer the first that is not ``passed``."""
    if not peers:
        return None
    joined = dict(peers[0]["outcomes"])
    for peer in peers[1:]:
        joined = {n: peer["outcomes"].get(n, "failed") if held == "passed" else held for n, held in joined.items()}
    return {**peers[0], "outcomes": joined}


def report(found: Outcomes, peer: Outcomes | None, words: set[str]) -> list[str]:
    """Return the lines of the report: totals, reasons for what is left out, and each failure with its error."""
    reasons = Counter({**found["left_out"], **(peer["left_out"] if peer else {})}.values())
    counted = peer["outcomes"] if peer else found["outcomes"]
    reasons.update(outcome for outcome in counted.values() if outcome in ("network", "skipped"))
    lines = [f"left out: {sum(reasons.values())} ({', '.join(f'{k} {n}' for k, n in sorted(reasons.items()))})"]
    tests = [name for name, outcome in counted.items() if outcome in (("passed",) if peer else ("passed", "failed"))]
    if peer:
        held = Counter(counted.values())
        lines.append(f"DSPy: {held['passed']} of {held['passed'] + held['failed']} hold on the peer")
    exact = [name for name in tests if name in words]
    public = [name for name in tests if name not in words]
    passed = [name for name in public if found["outcomes"].get(name) == "passed"]
    lines.append(f"door: {len(passed)} of {len(public)} hold")
    if exact:
        held_words = sum(found["outcomes"].get(name) == "passed" for name in exact)
        lines.append(f"exact wording, not counted: {held_words} of {len(exact)} hold")
    for name in sorted(set(public) - set(passed)):
        file = name.partition("::")[0]
        error = found["errors"].get(name) or found["errors"].get(file) or found["outcomes"].get(name, "not collected")
        lines.append(f"  {name}: {' '.join(error.split())[:200]}")
    return lines


def main() -> None:
    """Parse the arguments, run the tests once or twice and print the report."""
    parser = argparse.ArgumentParser(prog="python -m tests.dspy.suite", description="Run DSPy's tests on the door.")
    parser.add_argument("checkout", type=Path, help="a clone of DSPy's repository")
    parser.add_argument(
        "--peer", metavar="PYTHON", action="append", default=[],
        help="an interpreter with DSPy and pytest, repeatable: only what holds on each counts",
    )  # fmt: skip
    parser.add_argument("tests", nargs="*", default=["tests"], help="files or folders of the checkout")
    given = parser.parse_intermixed_args()
    checkout = given.checkout.resolve()
    words = set((HERE / "exact_wording.txt").read_text(encoding="utf-8").splitlines())
    peer = join_peers([run_tests(python, checkout, "dspy", given.tests) for python in given.peer])
    print("\n".join(report(run_tests(sys.executable, checkout, "door", given.tests), peer, words)))


if __name__ == "__main__":
    main()
