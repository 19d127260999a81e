"""``ReAnchor``: DSPy's optimizer of thresholds, cuts and weights, over ``Calibrate``."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from copy import deepcopy
from os import PathLike
from pathlib import Path
from statistics import fmean
from typing import Any, TypeVar, Unpack, cast

from sigwire.core.evidence import DecisionRule
from sigwire.core.example import Example
from sigwire.dspy.called_models import as_model
from sigwire.dspy.decisions.asking import declared_outputs
from sigwire.dspy.decisions.fields import check_fields, field_of, outputs_of
from sigwire.dspy.modules import Predict
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError, InputError
from sigwire.evaluate.evaluation import Evaluate
from sigwire.evaluate.scores import read_score
from sigwire.files.whole import write_whole
from sigwire.modules.ask import resolve_lm
from sigwire.modules.module import Module
from sigwire.optimizers.operators.deciding import folds_of, held_up
from sigwire.optimizers.options import SearchOptions
from sigwire.optimizers.rules.calibrate import Calibrate

__all__ = ["ReAnchor"]

M = TypeVar("M", bound=Module)
_FOLDS = 5


class ReAnchor(Calibrate):
    """Fit the numbers of ``Predict.fields`` to a metric: thresholds, cuts and weights of all decisions of a program.

    Each decision is asked for probabilities. A number changes only if its gain holds on five folds of ``trainset``, and the
    fitted program is kept only if its gain over the student does; else the configurations stay as they were. The rows of
    ``valset`` are scored before and after, and fit nothing. ``report`` has "train_score_before", "train_score", with a valset
    "val_score_before" and "val_score", and "fitted": a row for each output with its number, or why it was skipped.

    ``log_dir``: a folder for ``report.json``. ``require_cache``: refuse models without a cache, whose answers are paid for in
    three passes over ``trainset`` and two over ``valset``. Other options are those of ``Calibrate``.

    >>> ReAnchor(lambda example, prediction: 1.0, num_threads=2)
    ReAnchor(metric=<lambda>)
    """

    def __init__(
        self,
        metric: Any = None,
        *,
        num_threads: int | None = None,
        log_dir: str | PathLike[str] | None = None,
        require_cache: bool = True,
        **search: Unpack[SearchOptions],
    ) -> None:
        super().__init__(metric, num_threads=num_threads, folds=_FOLDS, **search)
        self.log_dir = None if log_dir is None else Path(log_dir)
        self.require_cache = require_cache
        self.report: dict[str, Any] = {}

    def compile_steps(
        self,
        student: M,
        trainset: Iterable[Example],
        teacher: Module | None = None,
        valset: Iterable[Example] | None = None,
        testset: Iterable[Example] | None = None,
        options: Mapping[str, Any] | None = None,
    ) -> Steps[M]:
        """Return the steps of ``compile``."""
        train, val = list(trainset), list(valset or ())
        if not train:
            raise InputError("ReAnchor needs training examples: trainset is empty (compiling).")
        prepared = self._prepared(student)
        before = yield from self._scores(student, train)
        val_before = yield from self._scores(student, val)
        fitted = yield from super().compile_steps(prepared, train, teacher, None, testset, options)
        after = yield from self._scores(fitted, train)
        rows = folds_of(range(len(train)), _FOLDS, random.Random(self.search.get("seed", 0)).shuffle)
        is_better = held_up([dict(enumerate(before)), dict(enumerate(after))], [0.0, 0.0], rows) == 1
        found = [
            {**row, "train_score_at_start": _mean(before), "train_score": _mean(after if is_better else before)}
            for row in _settled(student, fitted, is_better)
        ]
        self.report = {
            "train_score_before": _mean(before),
            "train_score": _mean(after if is_better else before),
            "fitted": found,
        }
        if val:
            val_after = (yield from self._scores(fitted, val)) if is_better else val_before
            self.report |= {"val_score_before": _mean(val_before), "val_score": _mean(val_after)}
        if self.log_dir is not None:
            self.log_dir.mkdir(parents=True, exist_ok=True)
            write_whole(self.log_dir / "report.json", json.dumps(self.report, indent=2, default=str))
        cast("Any", fitted)._compiled = True
        return fitted

    def _prepared(self, student: M) -> M:
        """Return a copy in which each decision has a rule, so that it is asked for probabilities."""
        decisions = dict(_decisions(student))
        if not decisions:
            raise ConfigurationError("The student has no Predict with a decision output (compiling with ReAnchor).")
        uncached = [name for name, predict in decisions.items() if not _caches(predict)] if self.require_cache else []
        if uncached:
            raise ConfigurationError(
                f"The models of {', '.join(uncached)} do not cache (compiling with ReAnchor): each pass is paid. Switch the "
                "cache on, or pass require_cache=False."
            )
        made = student.deepcopy()
        for _, predict in _decisions(made):
            rules = check_fields(predict.signature, predict.fields)
            predict.decisions = {
                **{path: rules.get(path, DecisionRule()) for path in outputs_of(predict.signature)},
                **predict.decisions,
            }
        return made

    def _scores(self, program: Module, rows: Sequence[Example]) -> Steps[list[float]]:
        if not rows:
            return []
        evaluate = Evaluate(
            devset=rows, metric=self.metric, num_threads=self.num_threads, errors="raise", progress=False
        )
        result = yield from evaluate.steps(program)
        return [read_score(score).value for _, _, score in result.results]


def _decisions(program: Module) -> list[tuple[str, Predict[..., Any]]]:
    found = program.named_predictors()
    return [(name, each) for name, each in found if isinstance(each, Predict) and outputs_of(each.signature)]


def _caches(predict: Predict[..., Any]) -> bool:
    return bool(predict.config.get("cache", getattr(_model_of(predict), "cache", False)))


def _model_of(predict: Predict[..., Any]) -> Any:
    return resolve_lm(as_model(predict.lm), "ReAnchor")


def _settled(student: Module, fitted: Module, is_better: bool) -> list[dict[str, Any]]:
    """Move the fitted rules into ``fields``; a rule that changed nothing goes. Returns the rows of the report."""
    rows: list[dict[str, Any]] = []
    before = dict(_decisions(student))
    for name, predict in _decisions(fitted):
        own, rules, made = before[name], predict.decisions, deepcopy(before[name].fields)
        starts = {**check_fields(own.signature, own.fields), **own.decisions}
        asks = {*declared_outputs(own.signature), *own.fields, *own.decisions}
        for path, output in outputs_of(predict.signature).items():
            row = {"predictor": name, "field": path}
            is_asked = path in asks or _decides(own)
            if not is_better or (is_asked and rules[path] == starts.get(path, DecisionRule())):
                rows.append({**row, "skipped": "the fitted behavior did not beat the original"})
                continue
            numbers = field_of(rules[path], output)
            if path not in own.decisions:  # what is there comes before ``fields``
                made[path] = {**made.get(path, {}), **numbers}
            rows.append({**row, "parameter": next(iter(numbers)), "value": next(iter(numbers.values()))})
        predict.fields = made
        predict.decisions = {path: rules[path] if is_better else rule for path, rule in own.decisions.items()}
    return rows


def _decides(predict: Predict[..., Any]) -> bool:
    return bool(_model_of(predict).capabilities.decides != "no")


def _mean(scores: Sequence[float]) -> float:
    return round(fmean(scores), 4)
