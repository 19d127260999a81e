"""``Evaluate``: run a program on each example of a devset, several at once, and score what it returns.

One generator, ``Evaluate.steps``, serves ``evaluate(program)``, ``await evaluate.acall(program)`` and the streams. The work is
``running``'s.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import fields, replace
from typing import Any, cast

from sigwire.core.events import Finished
from sigwire.core.example import Example
from sigwire.effects.emitting import Returned, astream, stream
from sigwire.effects.steps import Steps, arun, run
from sigwire.errors import ConfigurationError, suggest
from sigwire.evaluate.figures import exports
from sigwire.evaluate.figures.stored_run import load_run
from sigwire.evaluate.metric_plan import Metrics
from sigwire.evaluate.result import EvaluationResult
from sigwire.evaluate.running.options import EvaluationOptions, FilePath
from sigwire.evaluate.running.run import EvaluationRun, ExampleDone
from sigwire.observe.callbacks import watched_call

__all__ = ["Evaluate", "load_records"]


class Evaluate(EvaluationOptions):
    """Evaluate programs on a devset: ``Evaluate(devset=dev, metric=exact)(program)``. Each option may be overridden by a call.

    ``devset``: Examples with declared inputs. ``metric``: a function (example, prediction, trace=None), sync or async, a
    module, or a list of these, the first of which is the headline. ``num_threads``: how many examples run at once; 1 runs them
    in the calling thread. Default: the setting if it was changed, else what the limiter of the model suggests, 8 without one.
    ``repeat``: runs per example; each is another sample of the cache. ``reduce``: over the repeats of an example, "mean",
    "median", "max", "mode", "pass@k" or "all@k".

    ``failure_score``: the score of a failed program. ``errors``: "score" counts such failures, "skip" leaves them out of the
    mean, "raise" raises the first. ``max_errors``: more failures abort; default 10; "provider": only failures of the provider
    count, and those before its last answer do not. ``timeout``: seconds for one example.
    ``executor``: runs the examples on the processes of a PEP 3148 executor, ``num_threads`` at once in each, or of the one
    that a function makes; program and metric are importable (see ``Job``), and outputs of ``results`` are JSON data.
    ``budget``: a ``Budget`` for the evaluation. ``fresh``: read no stored answers. ``log``: a file of records (True: below
    ``runs/``); ``resume``: True runs what the file lacks, "append" adds another run to the file, False runs all. A file whose
    records depend on other things (code of the program or of a metric, its closures and state, adapter, model, address,
    options) is refused with the name of what changed; "force" keeps its records all the same, and writes that into the file. A
    devset may grow: rows are recognised by their content. ``requests``: rows whose records have the messages that the program
    sent and received, secrets masked and media by reference: True all, "failed" (the default) those that failed, False none.

    ``cluster``: a field of the examples whose equal values belong together. ``interval``: the level of intervals.
    ``progress``: "auto", "line", "log", False or a function; ``display_progress`` switches it. ``provide_traceback``: print
    the traceback of every error of the user's code; default: of the first. ``display_table``, ``save_as_csv``,
    ``save_as_json``: show and write the rows. ``callbacks``: listeners of this evaluation, which get ``callback_metadata``.

    Raises ``InputError`` or ``ConfigurationError`` before any call if devset, metric or log do not fit, ``EvaluationAborted``
    and ``EvaluationInterrupted`` (Ctrl-C); these have a ``result``. A spent budget ends with ``result.status == "budget"``.

    >>> from sigwire.lm.fake import FakeLM
    >>> from sigwire.modules.predict import Predict
    >>> devset = [Example(question="2+2?", answer="4").with_inputs("question")]
    >>> def exact(example, prediction):
    ...     return example.answer == prediction.answer
    >>> result = Evaluate(devset=devset, metric=exact)(Predict("question -> answer", lm=FakeLM([{"answer": "4"}])))
    >>> result.score, result.status
    (100.0, 'complete')
    """

    def __call__(
        self,
        program: object,
        metric: Metrics | None = None,
        devset: Sequence[Example] | None = None,
        num_threads: int | None = None,
        display_progress: bool | None = None,
        display_table: bool | int | None = None,
        callback_metadata: Mapping[str, object] | None = None,
        save_as_csv: FilePath | None = None,
        save_as_json: FilePath | None = None,
        **changes: Any,
    ) -> EvaluationResult:
        """Evaluate a program, blocking. ``None`` keeps the option of the constructor."""
        steps = self.steps(
            program,
            metric=metric,
            devset=devset,
            num_threads=num_threads,
            display_progress=display_progress,
            display_table=display_table,
            callback_metadata=callback_metadata,
            save_as_csv=save_as_csv,
            save_as_json=save_as_json,
            **changes,
        )
        return run(steps)

    async def acall(
        self,
        program: object,
        metric: Metrics | None = None,
        devset: Sequence[Example] | None = None,
        num_threads: int | None = None,
        **changes: Any,
    ) -> EvaluationResult:
        """Evaluate a program, awaited. Cancelling keeps what is finished: the ``CancelledError`` has a ``result``."""
        given = {"metric": metric, "devset": devset, "num_threads": num_threads}
        return await arun(self.steps(program, **given, **changes))

    def stream(self, program: object, **changes: Any) -> Generator[ExampleDone | Finished, None, EvaluationResult]:
        """Evaluate, blocking, and yield ``ExampleDone`` events in the order of completion; the last event is ``Finished``."""
        result = yield from stream(self.steps(program, **changes))
        yield Finished(result)
        return result

    async def astream(self, program: object, **changes: Any) -> AsyncGenerator[ExampleDone | Finished, None]:
        """``stream``, awaited."""
        async with aclosing(astream(self.steps(program, **changes))) as events:
            async for event in events:
                yield Finished(cast("Returned[object]", event).value) if type(event) is Returned else event

    def steps(self, program: object, **changes: Any) -> Steps[EvaluationResult]:
        """Return the steps of one evaluation, which emit ``ExampleDone`` events."""
        options = self._changed(
            {name: value for name, value in changes.items() if not (value is None and name in _SHOWN_OPTIONS)}
        )
        if options.plan is None:
            raise ConfigurationError("An evaluation needs a metric (starting it). Write Evaluate(..., metric=exact).")
        inputs = {"program": program, **{name: getattr(options, name) for name in _SHOWN_OPTIONS}}
        with watched_call("evaluate", options, inputs) as end:
            result = yield from EvaluationRun(program, options, options.plan).steps()
            end(result)
        try:
            _save(result, options)
        except OSError as error:
            vars(error)["result"] = result  # it is paid for
            raise
        return result

    def _changed(self, changes: Mapping[str, Any]) -> Evaluate:
        if not changes:
            return self
        known = [each.name for each in fields(self)]
        if unknown := next((name for name in changes if name not in known), None):
            raise ConfigurationError(
                f"Evaluate has no option {unknown!r} (calling it). {suggest(unknown, known)}Its options are {', '.join(known)}."
            )
        return replace(self, **changes)

    def __repr__(self) -> str:
        name = None if self.plan is None else self.plan.name
        size = len(self.devset)
        return f"Evaluate({size} example{'' if size == 1 else 's'}, metric={name})"


_SHOWN_OPTIONS = (
    "metric", "devset", "num_threads", "display_progress", "display_table", "callback_metadata", "save_as_csv",
    "save_as_json",
)  # fmt: skip


def load_records(path: FilePath, program: object = None) -> EvaluationResult:
    """Return the result of the last run in a file of records. No model is called.

    ``program``: a module, or the signature of one; the fields that it declares have their types again, in examples and
    predictions. Without a program all values are JSON data: a date is a text, a model a dict. Raises ``ConfigurationError``
    if the file has no run.
    """
    return EvaluationResult.of(load_run(path, program))


def _save(result: EvaluationResult, options: EvaluationOptions) -> None:
    if options.save_as_csv is not None:
        result.save_as_csv(options.save_as_csv)
    if options.save_as_json is not None:
        result.save_as_json(options.save_as_json)
    if options.display_table:
        rows = exports.flat_rows(result.run)
        shown = rows if options.display_table is True else rows[: options.display_table]
        sys.stdout.write(_table(shown, len(rows) - len(shown)))


_CELL_CHARACTERS = 40


def _table(rows: Sequence[Mapping[str, object]], omitted: int) -> str:
    """Return rows as a plain table; control characters of a value are visible."""
    columns = list(dict.fromkeys(name for row in rows for name in row))
    lines = [columns, *([_table_value(row.get(name)) for name in columns] for row in rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    text = [
        " | ".join(value.ljust(width) for value, width in zip(line, widths, strict=True)).rstrip() for line in lines
    ]
    note = [f"... {omitted} more rows"] if omitted else []
    return "\n".join([*text, *note, ""])


def _table_value(value: object) -> str:
    text = "".join(each if each.isprintable() else repr(each)[1:-1] for each in str(value))
    return text if len(text) <= _CELL_CHARACTERS else f"{text[: _CELL_CHARACTERS - 3]}..."
