"""Search for better instructions, demos or texts of tools, and save the state of the best program.

The plan is printed first. A search that may cost more than 1 dollar is confirmed at the terminal, or with --yes.
"""

from __future__ import annotations

import sys
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigwire.commands.confirmation import is_confirmed
from sigwire.commands.data import add_inputs, read_examples
from sigwire.commands.output import Status, UsageError, add_json, keep_input, print_error, print_json, report_error
from sigwire.commands.programs import add_program, load_object, load_program, model_of_settings
from sigwire.errors import ConfigurationError, suggest

if TYPE_CHECKING:
    from sigwire.optimizers.events import SearchEvent
    from sigwire.optimizers.optimizer import Optimizer

__all__ = ["add", "run"]

OPTIMIZERS: Mapping[str, str] = {
    "BootstrapFewShot": "bootstrap_few_shot",
    "BootstrapFewShotWithOptuna": "optuna_search",
    "BootstrapFewShotWithRandomSearch": "random_search",
    "COPRO": "copro",
    "Calibrate": "calibrate",
    "GEPA": "gepa",
    "InferRules": "infer_rules",
    "LabeledFewShot": "labeled_few_shot",
    "MIPROv2": "miprov2",
    "SIMBA": "simba",
}
"""Optimizers by name, with their files in ``sigwire.optimizers.rules``."""


def add(parser: ArgumentParser) -> None:
    """Add the arguments of ``sigwire optimize``."""
    add_program(parser)
    parser.add_argument("data", help="the training examples: .jsonl, .json, .csv, .tsv or .parquet")
    parser.add_argument(
        "--optimizer", required=True, metavar="NAME", help=f"{', '.join(OPTIMIZERS)}; or module:name of an optimizer"
    )
    parser.add_argument("--metric", help="module:name of a metric, such as app:exact")
    add_inputs(parser)
    parser.add_argument(
        "--valset", metavar="FILE", help="examples on which candidates are chosen (default: half of the data)"
    )
    parser.add_argument(
        "--testset", metavar="FILE", help="examples that the search does not see: they measure the result"
    )
    parser.add_argument("--budget", type=float, metavar="DOLLARS", help="stop when so much is spent")
    parser.add_argument("--prompt-lm", metavar="MODEL", help="the model that writes texts (default: --lm)")
    parser.add_argument("--threads", type=int, metavar="N", help="runs at once")
    parser.add_argument(
        "--risk",
        type=float,
        metavar="LOSS",
        help="a bound on the mean loss of answered rows, of Calibrate, such as 0.05",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="an option of the optimizer, such as auto=medium",
    )
    parser.add_argument("--journal", metavar="FILE", help="write finished runs to this file")
    parser.add_argument("--resume", action="store_true", help="go on from the journal of the same search")
    parser.add_argument(
        "--out", default="best.json", metavar="FILE", help="the state of the best program (default: %(default)s)"
    )
    parser.add_argument("--report", metavar="FILE", help="write the HTML report of the search")
    parser.add_argument("--yes", action="store_true", help="do not ask before a search above 1 dollar")
    add_json(parser)


def run(options: Namespace) -> int:
    """Print the plan, search, save the program, and return the exit status."""
    from sigwire.modules.module import Module
    from sigwire.optimizers.errors import OptimizationInterrupted

    _check_files(options)
    program = load_program(options)
    if not isinstance(program, Module):
        raise UsageError(
            f"{options.program} is a function, which has nothing to optimize. Pass a module or a signature."
        )
    rows = {
        name: None if path is None else read_examples(path, program, options)
        for name, path in (("trainset", options.data), ("valset", options.valset), ("testset", options.testset))
    }
    with model_of_settings(options.lm):
        optimizer, compile_options = _optimizer(options)
        plan = optimizer.plan(
            program, rows["trainset"] or [], rows["valset"], testset=rows["testset"], **compile_options
        )
        if not _is_confirmed(options, program, plan):
            print_error(options.verb, "nothing was run.")
            return Status.ABORTED
        try:
            best: Any = optimizer.compile(
                program,
                trainset=rows["trainset"] or [],
                valset=rows["valset"],
                testset=rows["testset"],
                **compile_options,
            )
        except (Exception, OptimizationInterrupted) as error:
            _keep(options, None if isinstance(error, ConfigurationError) else getattr(error, "program", None))
            return report_error(options, error)
    _save(options, best)
    _print(options, best)
    return Status.DONE


def _check_files(options: Namespace) -> None:
    read = [options.data, options.valset, options.testset, options.load]
    for option, path in (("--out", options.out), ("--report", options.report), ("--journal", options.journal)):
        keep_input(path, read, option)
    if options.resume and not options.journal:
        raise UsageError("--resume needs the journal of the search (reading the arguments). Add --journal FILE.")
    if options.journal and not options.resume and Path(options.journal).exists():
        raise UsageError(f"{options.journal} exists (reading --journal). Add --resume to go on, or name another file.")
    if not options.out.endswith(".json") or not Path(options.out).parent.is_dir():
        raise UsageError(f"{options.out} cannot be saved (reading --out). Name a .json file in a folder that exists.")


def _optimizer(options: Namespace) -> tuple[Optimizer, dict[str, Any]]:
    """Return the optimizer, and the options of its ``compile``."""
    if ":" in options.optimizer:
        return load_object(options.optimizer), {}
    if options.optimizer not in OPTIMIZERS:
        raise UsageError(
            f"There is no optimizer {options.optimizer!r} (reading --optimizer). {suggest(options.optimizer, OPTIMIZERS)}"
            f"They are {', '.join(OPTIMIZERS)}; app:optimizer is one of your own."
        )
    from sigwire.lm.client import LM
    from sigwire.lm.policy.money.budget import Budget

    cls = getattr(import_module(f"sigwire.optimizers.rules.{OPTIMIZERS[options.optimizer]}"), options.optimizer)
    given = dict(_setting(text) for text in options.set)
    compile_options = {name: given.pop(name) for name in getattr(cls, "_compile_options", {}) if name in given}
    if options.risk is not None:
        if options.optimizer != "Calibrate":
            raise UsageError(f"{options.optimizer} gives no bound (reading --risk). Use --optimizer Calibrate.")
        given["risk"] = options.risk
    if options.metric:
        given["metric"] = load_object(options.metric)
    if options.prompt_lm:
        given["prompt_model"] = LM(options.prompt_lm)
    if options.threads:
        given["num_threads"] = options.threads
    budget = None if options.budget is None else Budget(money=options.budget)
    return cls(**given, budget=budget, journal=options.journal, on_event=_TrialLines()), compile_options


def _setting(text: str) -> tuple[str, Any]:
    import json

    name, mark, value = text.partition("=")
    if not mark:
        raise UsageError(f"{text!r} is not NAME=VALUE (reading --set). Write --set auto=medium.")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _is_confirmed(options: Namespace, program: Any, plan: object) -> bool:
    """Print the plan; return True if the search may start."""
    from sigwire.show.numbers import money_text

    budget = "no limit of money" if options.budget is None else f"at most {money_text(options.budget)}"
    out = sys.stderr if options.json else sys.stdout
    print(f"{options.optimizer}: {plan}, {budget}.", file=out, flush=True)
    return is_confirmed(options, _costs_at_most(options, program), "search")


def _costs_at_most(options: Namespace, program: Any) -> float:
    from sigwire.lm.policy.money.catalogs import is_local

    models = [part.lm for part in program.predictors()]
    names = [options.lm, options.prompt_lm, *(getattr(lm, "model", None) for lm in models)]
    if ":" not in options.optimizer and any(names) and all(is_local(name) for name in names if name):
        return 0.0
    return float("inf") if options.budget is None else options.budget


class _TrialLines:
    """Prints a line on stderr for each candidate that was measured better than all before."""

    def __init__(self) -> None:
        self._best, self._count = float("-inf"), 0

    def __call__(self, event: SearchEvent) -> None:
        from sigwire.optimizers.events import Measured

        if isinstance(event, Measured):
            self._count += 1
            if event.mean > self._best:
                self._best = event.mean
                print(f"trial {self._count}  {event.mean:.3f}  ({event.rows} rows)", file=sys.stderr)


def _keep(options: Namespace, program: Any) -> None:
    if program is not None:
        _save(options, program)
        print_error(options.verb, f"the best program until then is in {options.out}.")


def _save(options: Namespace, program: Any) -> None:
    """Save the state of a program, with a line for each warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        program.save(options.out)
    for each in caught:
        print_error(options.verb, f"warning: {each.message}")


def _print(options: Namespace, program: Any) -> None:
    report = program.optimization
    if options.report:
        report.to_html(options.report)
    if options.json:
        print_json({"out": options.out, "headline": report.headline, "report": report.to_json()})
        return
    report.show()
    print(f"saved  {options.out}  (program.load({options.out!r}), or --load {options.out})")
