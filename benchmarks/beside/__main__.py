"""``python -m benchmarks.beside``: observe every installed library in every situation, and print the table.

python -m benchmarks.beside                   all situations, about a minute
python -m benchmarks.beside "a refusal"       these situations only
python -m benchmarks.beside --save            writes outcomes.json, from which README has its table
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.beside.libraries import LIBRARIES, installed
from benchmarks.beside.situations import SITUATIONS, observe
from benchmarks.beside.table import OUTCOMES, table

ROOT = Path(__file__).resolve().parent.parent.parent


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.beside", description="sigwire beside its peers.")
    parser.add_argument("situations", nargs="*", help="default: all")
    parser.add_argument("--save", action="store_true", help=f"write {OUTCOMES.name}")
    parser.add_argument("--library", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.library:
        os.environ["SIGWIRE_CACHE"] = "disk"  # the default; the package of benchmarks switches it off
        print(observe(arguments.situations[0], LIBRARIES[arguments.library]), flush=True)
        os._exit(0)  # clients of the libraries leave threads behind
    libraries = installed()
    rows = {
        situation: {name: observe_alone(situation, name) for name in libraries}
        for situation in arguments.situations or SITUATIONS
    }
    outcomes = {"versions": {name: version for name, (_, version) in libraries.items()}, "rows": rows}
    if arguments.save:
        OUTCOMES.write_text(json.dumps(outcomes, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    print(table(outcomes))


def observe_alone(situation: str, library: str) -> str:
    """Observe in a process of its own with an empty cache and no log on the terminal."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "HOME": folder, "XDG_CACHE_HOME": folder, "DSPY_CACHEDIR": folder}
        environment = {**environment, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
        command = [sys.executable, "-m", "benchmarks.beside", situation, "--library", library]
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    if done.returncode:
        raise RuntimeError(f"{library}, {situation}:\n{done.stderr[-2000:]}")
    outcome = done.stdout.strip().splitlines()[-1]
    print(f"{situation} · {library}: {outcome}", file=sys.stderr)
    return outcome


if __name__ == "__main__":
    main()
