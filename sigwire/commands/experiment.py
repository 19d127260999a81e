"""Run a grid of programs, models, optimizers and seeds: what its folder lacks, and print the table of all.

The plan is printed first. A run that may cost more than 1 dollar is confirmed at the terminal, or with --yes.
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import TYPE_CHECKING

from sigwire.commands.confirmation import is_confirmed
from sigwire.commands.output import Status, UsageError, add_json, print_error, print_json
from sigwire.commands.programs import RUNS_CODE, load_object

if TYPE_CHECKING:
    from sigwire.experiments.experiment import Experiment
    from sigwire.experiments.planning import ExperimentPlan
    from sigwire.experiments.result import ExperimentResult

__all__ = ["add", "confirmed_plan", "declared", "experiment_folder", "run"]


def add(parser: ArgumentParser) -> None:
    """Add the arguments of ``sigwire experiment``."""
    parser.add_argument("experiment", help=f"module:name of an Experiment, such as app:experiment. {RUNS_CODE}")
    parser.add_argument("--out", metavar="DIR", help="the folder: what is finished in it is not run again")
    parser.add_argument("--plan", action="store_true", help="print the plan, and run nothing")
    parser.add_argument("--budget", type=float, metavar="DOLLARS", help="stop when so much is spent (exit status 3)")
    parser.add_argument("--threads", type=int, metavar="N", help="rows at once in a point (default: adaptive)")
    parser.add_argument("--parallel", type=int, default=1, metavar="N", help="points at once (default: %(default)s)")
    parser.add_argument("--yes", action="store_true", help="do not ask before a run above 1 dollar")
    add_json(parser)


def run(options: Namespace) -> int:
    """Print the plan, run what is missing, print the table, and return the exit status."""
    from sigwire.lm.policy.money.budget import Budget

    if not options.out and not options.plan:
        raise UsageError("An experiment is run into a folder (reading the arguments). Add --out DIR, or --plan.")
    experiment = declared(options.experiment)
    if options.plan:
        plan = experiment.plan(options.out)
        print_json(_plan_json(plan)) if options.json else print(plan)
        return Status.DONE
    budget = None if options.budget is None else Budget(money=options.budget)
    if confirmed_plan(options, experiment) is None:
        return Status.ABORTED
    result = experiment.run(options.out, budget=budget, num_threads=options.threads, parallel=options.parallel)
    _print(options, result)
    if not result.missing:
        return Status.DONE
    print_error(
        options.verb,
        f"the budget is spent, and {len(result.missing)} of {len(result.missing) + len(result.measured)} points are missing. "
        "The same command goes on.",
    )
    return Status.ABORTED


def declared(target: str) -> Experiment:
    """Import the experiment of ``module:name``, which becomes its ``source``. Raises ``UsageError`` for other objects."""
    from sigwire.experiments.experiment import Experiment

    found = load_object(target, kind=Experiment)
    if not isinstance(found, Experiment):
        raise UsageError(
            f"{target} is no Experiment but a {type(found).__name__} (importing it). Write "
            "experiment = sigwire.Experiment(...) at the top of the file, and name it."
        )
    object.__setattr__(found, "source", target)  # the declaration is frozen, and does not know its name
    return found


def experiment_folder(path: str) -> Path | None:
    """Return the folder of an experiment that a path names, by itself or by its record; ``None`` for another file."""
    found = Path(path)
    return found if found.is_dir() else found.parent if found.name == "experiment.json" else None


def confirmed_plan(options: Namespace, experiment: Experiment) -> ExperimentPlan | None:
    """Print the plan of a run into ``--out``; return it if the run may start, else ``None``."""
    plan = experiment.plan(options.out)
    print(plan, file=sys.stderr if options.json else sys.stdout, flush=True)
    unlimited = float("inf")
    most = unlimited if plan.most_money is None or (plan.is_least and plan.money) else plan.most_money
    budget = getattr(options, "budget", None)
    takes_budget = plan.most_money is not None and hasattr(options, "budget")
    if is_confirmed(options, min(most, unlimited if budget is None else budget), "run", takes_budget=takes_budget):
        return plan
    print_error(options.verb, "nothing was run.")
    return None


def _plan_json(plan: ExperimentPlan) -> dict[str, object]:
    """Return a plan for machines."""
    points = [
        {
            "arm": each.point.arm,
            "seed": each.point.seed,
            "runs": each.runs,
            "calls": _amount(each.calls),
            "money": each.money,
            "most_money": each.most_money,
        }
        for each in plan.points
    ]
    return {
        "calls": _amount(plan.calls),
        "money": plan.money,
        "most_money": plan.most_money,
        "is_least": plan.is_least,
        "unpriced": plan.unpriced,
        "warnings": plan.warnings,
        "finished": plan.finished,
        "points": points,
    }


def _amount(found: object) -> dict[str, object]:
    return {name: getattr(found, name) for name in ("min", "expected", "max")}


def _print(options: Namespace, result: ExperimentResult) -> None:
    if options.json:
        missing = [{"arm": each.arm, "seed": each.seed} for each in result.missing]
        print_json({"status": result.status, "best": result.best, "rows": result.rows(), "missing": missing})
        return
    result.show()
    print(f"folder  {options.out}  (sigwire view {options.out} writes its page)")
