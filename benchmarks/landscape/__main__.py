"""``python -m benchmarks.landscape``: sigwire's optimizers on the landscape, in a table beside DSPy's stored figures.

python -m benchmarks.landscape                                          everything
python -m benchmarks.landscape --optimizers GEPA --tasks tools --seeds 0 1
python -m benchmarks.landscape --dspy dspy-venv/bin/python              measure DSPy instead, and store its figures

Other options are those of ``benchmarks.landscape.run_sigwire`` and ``run_dspy``.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from typing import Any

from benchmarks.landscape.report import lines, read
from benchmarks.landscape.server import ROOT

FIGURES = ROOT / "benchmarks" / "landscape" / "dspy-3.4.1.json"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.landscape", description="Optimizers on a landscape.")
    parser.add_argument("--dspy", metavar="PYTHON", help="an interpreter that has DSPy")
    arguments, others = parser.parse_known_args()
    if arguments.dspy:
        runs = measured(arguments.dspy, "run_dspy", others)
        store(runs, others)
    else:
        runs = measured(sys.executable, "run_sigwire", others)
        asked = {(run["task"], run["optimizer"]) for run in runs}
        stored = read([str(FIGURES)]) if FIGURES.exists() else []
        runs += [run for run in stored if (run["task"], run["optimizer"]) in asked]
    print("\n".join(lines(runs)))


def measured(python: str, side: str, options: list[str]) -> list[dict[str, Any]]:
    """Run a side in a process of its own and return its runs."""
    command = [python, "-m", f"benchmarks.landscape.{side}", *options]
    output = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout
    return [json.loads(line) for line in output.splitlines()]


def store(runs: list[dict[str, Any]], options: list[str]) -> None:
    """Write DSPy's figures, with the command that made them; a part of the runs is not stored."""
    if not options:
        command = "python -m benchmarks.landscape --dspy dspy-venv/bin/python"
        lines_of_runs = ",\n".join(f"  {json.dumps(run)}" for run in runs)
        FIGURES.write_text(f'{{"command": {json.dumps(command)}, "runs": [\n{lines_of_runs}\n]}}\n')


if __name__ == "__main__":
    main()
