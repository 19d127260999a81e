"""Count the behaviours of DSPy that hold on a library.

python -m tests.dspy.behaviours --library sigwire.dspy           of those that hold on DSPy, counts what holds on the door
PYTHON_WITH_DSPY -m tests.dspy.behaviours --library dspy --write stores which behaviours hold on DSPy in holds.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter

from tests.dspy.behaviours.results import FAILS_ON_DSPY, FOLDER, LISTED, load_behaviours
from tests.dspy.suite.door_as_dspy import door_as_dspy


def main() -> int:
    """Parse the arguments, run each behaviour and print the counts; exit 1 if the door differs from the tables."""
    parser = argparse.ArgumentParser(prog="python -m tests.dspy.behaviours")
    parser.add_argument("--library", choices=["dspy", "sigwire.dspy"], default="sigwire.dspy")
    parser.add_argument("--write", action="store_true", help="store which behaviours hold (with --library dspy)")
    given = parser.parse_args()
    if given.library == "dspy":
        return count(given.library, given.write)
    with door_as_dspy():
        return count(given.library, False)


def count(library: str, write: bool) -> int:
    """Run the behaviours on the imported ``dspy`` and print the counts. Returns the exit code."""
    names, failure_of = load_behaviours()
    if library != "dspy":
        names = [name for name in names if name not in FAILS_ON_DSPY]
    failures = {name: error for name in names if (error := failure_of(name))}
    print(f"{library}: {len(names) - len(failures)} of {len(names)} hold")
    if library == "dspy":
        return _report_dspy(failures, write)
    reasons = Counter(LISTED[name] for name in failures if name in LISTED)
    print("  " + ", ".join(f"{reason}: {number}" for reason, number in sorted(reasons.items())))
    wrong = {name: error for name, error in failures.items() if name not in LISTED}
    wrong |= {name: "holds, but is listed" for name in LISTED if name not in failures}
    for name, error in wrong.items():
        print(f"  {name}: {error}")
    return 1 if wrong else 0


def _report_dspy(failures: dict[str, str], write: bool) -> int:
    import dspy

    for name, error in failures.items():
        print(f"  {name}: {error}")
    if write:
        stored = {"version": dspy.__version__, "fails": sorted(failures)}
        (FOLDER / "holds.json").write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
