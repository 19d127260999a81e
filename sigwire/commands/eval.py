"""Run a program on each example of a file, and score its answers.

The exit status is 1 if the mean is below --fail-under, or if the program is shown to be worse than the baseline by
any metric.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from sigwire.commands.data import add_inputs, read_examples
from sigwire.commands.output import Status, UsageError, add_json, keep_input, print_error, print_json, report_error
from sigwire.commands.programs import add_program, load_object, load_program, model_of_settings
from sigwire.errors import CallerError

if TYPE_CHECKING:
    from sigwire.core.example import Example
    from sigwire.evaluate.comparison import Comparison, ProgramDifference
    from sigwire.evaluate.figures.scored_run import ScoredRun
    from sigwire.evaluate.metric_plan import Metrics
    from sigwire.evaluate.result import EvaluationResult
    from sigwire.evaluate.statistics import Interval

__all__ = ["add", "run"]


def add(parser: ArgumentParser) -> None:
    """Add the arguments of ``sigwire eval``."""
    add_program(parser)
    parser.add_argument("data", help="the examples: .jsonl, .json, .csv, .tsv or .parquet")
    parser.add_argument("--metric", required=True, help="module:name of a metric, such as app:exact")
    add_inputs(parser)
    parser.add_argument(
        "--evidence",
        choices=["auto", "measured", "logprob", "sampled", "stated"],
        metavar="SOURCE",
        help="where predictors get probabilities from: auto, measured, logprob, sampled or stated",
    )
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="runs of each example (default: 1)")
    parser.add_argument("--limit", type=int, metavar="N", help="only the first N examples")
    parser.add_argument("--threads", type=int, metavar="N", help="examples at once (default: adaptive)")
    parser.add_argument("--budget", type=float, metavar="DOLLARS", help="stop when so much is spent (exit status 3)")
    parser.add_argument("--log", metavar="FILE", help="write each finished example to this file of records")
    parser.add_argument("--resume", action="store_true", help="run only what the log lacks")
    parser.add_argument("--baseline", metavar="FILE", help="records of another evaluation on the same examples")
    parser.add_argument("--fail-under", type=float, metavar="MEAN", help="exit status 1 for a lower mean, such as 0.8")
    add_json(parser)


def run(options: Namespace) -> int:
    """Evaluate, print the result, and return the exit status."""
    from sigwire.evaluate.evaluation import Evaluate, load_records
    from sigwire.evaluate.running.run import EvaluationAborted, EvaluationInterrupted

    log = _checked_log(options)
    program, metric = load_program(options), load_object(options.metric)
    if options.evidence:
        program = _with_evidence(program, options)
    baseline = load_records(options.baseline) if options.baseline else None
    devset = read_examples(options.data, program, options, options.limit)
    if baseline is not None:
        _check_baseline(options, baseline.run, devset, metric)
    evaluate = Evaluate(
        devset=devset,
        metric=metric,
        repeat=options.repeat,
        num_threads=options.threads,
        budget=_budget(options.budget),
        log=log,
    )
    try:
        with model_of_settings(options.lm):
            result = evaluate(program)
    except (EvaluationAborted, EvaluationInterrupted) as error:
        return _early(options, error)
    comparison = None if baseline is None else _compared(baseline, result, is_part=options.limit is not None)
    _print(options, result, comparison)
    return _status(options, result, comparison)


def _with_evidence(program: Any, options: Namespace) -> Any:
    """Return a copy of the program whose predictors ask for evidence."""
    from sigwire.modules.module import Module
    from sigwire.modules.predict import Predict

    if not isinstance(program, Module):
        raise UsageError(
            f"{options.program} is a function, which has no predictors (reading --evidence). Pass a module or a signature."
        )
    program = program.deepcopy()
    for predictor in program.predictors():
        if isinstance(predictor, Predict):
            predictor.evidence = options.evidence
    return program


def _early(options: Namespace, error: Any) -> Status:
    """Print what is finished of an evaluation that ended early, and the line that goes on from there."""
    if isinstance(error.__cause__, CallerError):
        return report_error(options, error.__cause__)
    _print(options, error.result, None)
    done = len(error.result.records)
    hint = f"--log {options.log} --resume runs the rest" if options.log else "with --log FILE it can be resumed"
    is_interrupt = isinstance(error, KeyboardInterrupt)
    text = "interrupted" if is_interrupt else str(error).partition(f" {done} of ")[0].rstrip(".")
    print_error(options.verb, f"{text}; {done} runs are finished, {hint}.")
    return Status.INTERRUPTED if is_interrupt else Status.ABORTED


def _checked_log(options: Namespace) -> Any:
    from pathlib import Path

    keep_input(options.log, [options.data, options.baseline, options.load], "--log")
    if options.resume and not options.log:
        raise UsageError("--resume needs the file of records (reading the arguments). Add --log FILE.")
    if options.log and not options.resume and Path(options.log).exists():
        raise UsageError(
            f"{options.log} exists (reading --log). Add --resume to run only the examples that it lacks, or name another file."
        )
    return options.log


def _check_baseline(options: Namespace, baseline: ScoredRun, devset: Sequence[Example], metric: Metrics) -> None:
    """Raise ``UsageError`` before any call if the result could not be compared with the baseline."""
    import warnings

    from sigwire.evaluate.examples import example_ids
    from sigwire.evaluate.metric_plan import MetricPlan

    with warnings.catch_warnings():  # the evaluation warns of copies
        warnings.simplefilter("ignore")
        now, before = {*example_ids(devset)}, {record.id for record in baseline.records}
    name = MetricPlan(metric).name
    problems = {
        f"it ran {len(now & before)} of these {len(now)} examples and {len(before - now)} others": (
            not now & before if options.limit is not None else now != before
        ),
        f"its metric is {baseline.metric_name!r} and not {name!r}": baseline.metric_name != name,
        f"its --repeat is {baseline.repeat} and not {options.repeat}": baseline.repeat != options.repeat,
    }
    if found := [text for text, is_so in problems.items() if is_so]:
        raise UsageError(
            f"{options.baseline} cannot be the baseline: {'; '.join(found)} (reading --baseline). Evaluate it with the same "
            "examples, metric and repeats."
        )


def _budget(money: float | None) -> Any:
    from sigwire.lm.policy.money.budget import Budget

    return None if money is None else Budget(money=money)


def _compared(baseline: EvaluationResult, result: EvaluationResult, *, is_part: bool) -> Comparison:
    from sigwire.evaluate.comparison import compare

    return compare({"baseline": baseline, "this": result}, common=is_part)


def _status(options: Namespace, result: EvaluationResult, comparison: Comparison | None) -> Status:
    if result.status != "complete":
        print_error(options.verb, f"the evaluation ended early ({result.status}).")
        return Status.ABORTED
    if options.fail_under is not None and not result.mean >= options.fail_under:
        print_error(options.verb, f"{result.mean:.4g} is below --fail-under {options.fail_under:g}.")
        return Status.BELOW
    if comparison is not None and (worse := comparison.worse):
        for each in worse:
            print_error(options.verb, f"{each.metric}: {each.sentence}")
        return Status.BELOW
    return Status.DONE


def _print(options: Namespace, result: EvaluationResult, comparison: Comparison | None) -> None:
    if options.json:
        print_json(_plain(result, comparison))
        return
    from io import StringIO

    from sigwire.evaluate.figures.run_card import IN_PYTHON

    result.show(file=(text := StringIO()))
    print("\n".join(line.rstrip() for line in text.getvalue().replace(IN_PYTHON, "").splitlines()))
    if comparison is not None:
        comparison.show()


def _plain(result: EvaluationResult, comparison: Comparison | None) -> Mapping[str, object]:
    names = "status score mean metrics n scored unscored failures cost is_cost_partial seconds path".split()
    plain: dict[str, object] = {name: getattr(result, name) for name in names}
    plain["interval"] = _plain_interval(result.interval)
    plain["intervals"] = {name: _plain_interval(each) for name, each in result.intervals.items()}
    plain |= _plain_tools(result.run)
    if calibrations := result.run.calibrations:
        plain["calibration"] = {path: each.to_json() for path, each in calibrations.items()}
    plain |= {} if result.coverage == 1 else {"coverage": result.coverage, "answered_score": result.answered_score}
    plain["segments"] = [each.to_json() for each in result.segments]
    if comparison is not None:
        found = comparison["this"]
        plain["baseline"] = {
            **_plain_tools(comparison.runs["baseline"]),
            **_plain_difference(found),
            "metrics": {name: _plain_difference(each) for name, (each,) in comparison.others.items()},
        }
    return plain


def _plain_tools(run: ScoredRun) -> Mapping[str, object]:
    return {"tools": {name: found._asdict() for name, found in run.tools.items()}, "warnings": dict(run.warnings)}


def _plain_interval(found: Interval | None) -> Mapping[str, object] | None:
    if found is None:
        return None
    return {"low": found.low, "high": found.high, "method": found.method, "is_few": found.is_few}


def _plain_difference(found: ProgramDifference) -> Mapping[str, object]:
    difference = found.difference
    return {
        "verdict": found.verdict,
        "difference": difference.mean,
        "interval": _plain_interval(difference.interval),
        "is_few": difference.is_few,
        "p": found.p,
        "n": difference.n,
    }
