"""Records of ``logging``: one for each call (DEBUG), for milestones (INFO) and for what needs a person (WARNING).

    sigwire.lm         DEBUG: a call of a model: model, path, tokens, milliseconds, attempts
    sigwire.tool       DEBUG: a run of a tool; WARNING: a tool raised an exception, and the run continued
    sigwire.retry      INFO: an exchange is retried after a wait
    sigwire.cache      DEBUG: an answer is from the cache; WARNING: the cache cannot use its folder
    sigwire.evaluate   DEBUG: an example; INFO: start and end of an evaluation; WARNING: runs without a score
    sigwire.optimize   INFO: start, new best candidates and end of a compilation

The facts of a record are its attributes (``extra``). Content (messages, arguments, results, texts of exceptions) is written
only if the environment has ``SIGWIRE_LOG_CONTENT=1``. Handlers and levels are the user's; the logger ``sigwire`` has a
``NullHandler``. ``LISTENER`` is called for calls that logging shows.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import traceback
from collections.abc import Mapping
from contextvars import ContextVar
from time import perf_counter
from typing import Any, TextIO

from sigwire.core.response import Response
from sigwire.core.tools.calls import ToolResult
from sigwire.errors import ConfigurationError
from sigwire.observe.place import running
from sigwire.observe.tracing.attributes import CallFacts
from sigwire.observe.tracing.content import Content, plain
from sigwire.observe.tracing.paths import name_in, paths_of
from sigwire.show.cleaning import visible
from sigwire.show.numbers import count, seconds_text

__all__ = [
    "LISTENER",
    "LOGGERS",
    "LogListener",
    "log_hit",
    "log_milestone",
    "log_retry",
    "log_to_stderr",
    "log_tool_error",
    "log_warning",
]

LOGGERS = frozenset(f"sigwire.{name}" for name in ("batch", "cache", "evaluate", "lm", "optimize", "retry", "tool"))
"""The names of the loggers."""
_ROOT = logging.getLogger("sigwire")
_ROOT.addHandler(logging.NullHandler())
_MOST_CONTENT = 20_000


class _StderrHandler(logging.StreamHandler[TextIO]):
    """Writes to the ``sys.stderr`` of the moment: notebooks and tests replace it."""

    @property
    def stream(self) -> TextIO:
        return sys.stderr

    @stream.setter
    def stream(self, value: TextIO) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Ignore the stream of the constructor."""


def log_to_stderr(level: int | str | None = "INFO") -> None:
    """Write the records of sigwire from a level on to stderr, one line each. ``None`` stops it.

    A shortcut for scripts and notebooks; applications configure ``logging``, whose settings are not changed.

    >>> log_to_stderr("DEBUG")
    >>> log_to_stderr(None)
    """
    number = logging.getLevelNamesMapping().get(level.upper()) if isinstance(level, str) else level
    if level is not None and (not isinstance(number, int) or isinstance(level, bool)):
        raise ConfigurationError(
            f'A level is "DEBUG", "INFO", "WARNING" or a number, not {level!r:.80} (log_to_stderr).'
        )
    for handler in [each for each in _ROOT.handlers if isinstance(each, _StderrHandler)]:
        _ROOT.removeHandler(handler)
    _ROOT.setLevel(logging.NOTSET if number is None else number)
    if number is not None:
        handler = _StderrHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s"))
        _ROOT.addHandler(handler)


# --- records that no listener writes: something rare has happened, so the cost of asking for the level does not matter


def log_warning(name: str, text: str, **facts: object) -> None:
    """Write a record of what needs a change by a person."""
    logging.getLogger(f"sigwire.{name}").warning("%s", visible(text), extra=facts)


def log_milestone(name: str, text: str, **facts: object) -> None:
    """Write a record of a step of a long run."""
    logging.getLogger(f"sigwire.{name}").info("%s", visible(text), extra=facts)


def log_retry(model: str, number: int, seconds: float, error: Any) -> None:
    """Write the record of a retry that waits ``seconds``."""
    facts = {
        "model": model,
        "retry": number,
        "seconds": seconds,
        "error_type": type(error).__name__,
        "status": error.status,
    }
    status = f" {error.status}" if error.status else ""
    log_milestone(
        "retry", f"{model}: retry {number} in {seconds_text(seconds)} after {type(error).__name__}{status}", **facts
    )


def log_hit(model: str) -> None:
    """Write the record of an answer from the cache."""
    logging.getLogger("sigwire.cache").debug("%s: answer from the cache", visible(model), extra={"model": model})


def log_tool_error(name: str, error: BaseException, file: str, line: int) -> None:
    """Write the record of an exception of a tool, after which the run continues; with its stack, and its text if asked for."""
    logger = logging.getLogger("sigwire.tool")
    if not logger.isEnabledFor(logging.WARNING):
        return
    text = f"{name} raised {type(error).__name__} at {os.path.basename(file)}:{line}; the run continued"
    facts = {"tool": name, "error_type": type(error).__name__, "file": file, "line": line}
    stack = "".join(traceback.format_tb(error.__traceback__)).rstrip()
    written = f"\n{type(error).__name__}: {error}"[:_MOST_CONTENT] if _is_content_wanted() else ""
    logger.warning("%s", visible(f"{text}\n{stack}{written}"), extra=facts)


# --- the listener


class _LoggedModule:
    """A module that is called, the paths of its program, and the place around it."""

    __slots__ = ("around", "name", "paths")
    paths: Mapping[int, str]

    def __init__(self, module: object, around: _LoggedModule | None) -> None:
        self.around = around
        self.paths = around.paths if around is not None and id(module) in around.paths else paths_of(module)
        self.name = name_in(self.paths, module)


_place: ContextVar[_LoggedModule | None] = ContextVar("sigwire_logged_place", default=None)


class LogListener:
    """A listener that writes a record at the end of each call. Threads share it."""

    def __init__(self) -> None:
        self._places: dict[str, _LoggedModule] = {}
        self._started: dict[str, tuple[float, Any, Mapping[str, Any]]] = {}

    # --- modules: only their paths

    def on_module_start(self, call_id: str, instance: object, inputs: CallFacts) -> None:
        self._places[call_id] = place = _LoggedModule(instance, _place.get())
        _place.set(place)

    def on_module_end(self, call_id: str, outputs: object, exception: BaseException | None = None) -> None:
        place = self._places.pop(call_id, None)
        if place is not None and _place.get() is place:  # a stream may be closed in another context
            _place.set(place.around)

    # --- models and tools

    def on_lm_start(self, call_id: str, instance: Any, inputs: CallFacts) -> None:
        self._start(call_id, instance, inputs)

    def on_lm_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        seconds, lm, inputs = self._end(call_id)
        response = outputs if exception is None else getattr(exception, "partial", None)
        facts: dict[str, object] = {"model": str(getattr(lm, "model", "")), "milliseconds": round(seconds * 1000, 1)}
        if (place := _place.get()) is not None:
            facts["path"] = place.name
        known = {"turn": running.get().turn, "example": running.get().example}
        facts |= {name: value for name, value in known.items() if value is not None}
        attempts = getattr(exception, "attempts", ())
        if isinstance(response, Response):
            usage, attempts = response.usage, attempts or response.attempts
            facts |= {"input_tokens": usage.input_tokens, "output_tokens": usage.output_tokens, "cache": response.cache}
        facts["attempts"] = len([one for one in attempts if one.purpose not in ("skip", "joined")]) or 1
        shown = Content(True)
        content = {**shown.of_request(inputs.get("request"))} if _is_content_wanted() else {}
        if content and isinstance(response, Response):
            content |= shown.of_response(response)
        _write("sigwire.lm", _call_text(facts), facts, exception, content)

    def on_tool_start(self, call_id: str, instance: Any, inputs: CallFacts) -> None:
        self._start(call_id, instance, inputs)

    def on_tool_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        seconds, tool, inputs = self._end(call_id)
        facts: dict[str, object] = {"tool": str(getattr(tool, "name", "")), "milliseconds": round(seconds * 1000, 1)}
        value = outputs.content if isinstance(outputs, ToolResult) else outputs
        content = {"arguments": _json(inputs), "result": _json(value)} if _is_content_wanted() else {}
        _write("sigwire.tool", f"{facts['tool']}: {facts['milliseconds']} ms", facts, exception, content)

    # --- evaluations and compilations

    def on_evaluate_start(self, call_id: str, instance: Any, inputs: CallFacts) -> None:
        self._start(call_id, instance, inputs)
        program, examples = _name_of(inputs.get("program")), len(inputs.get("devset") or ())
        text = f"evaluating {program} on {count(examples, 'example')}"
        log_milestone("evaluate", text, program=program, examples=examples)

    def on_evaluate_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        seconds, _, inputs = self._end(call_id)
        program = _name_of(inputs.get("program"))
        facts: dict[str, object] = {"program": program, "seconds": round(seconds, 3)}
        if not hasattr(outputs, "scored"):
            end = type(exception).__name__ if exception is not None else "finished"
            log_milestone("evaluate", f"{program}: {end} after {seconds_text(seconds)}", **facts)
            return
        facts |= {
            "score": outputs.score,
            "status": outputs.status,
            "scored": outputs.scored,
            "failures": dict(outputs.failures),
        }
        score = f"score {outputs.score:.1f}" if outputs.scored else "no score"
        text = f"{program}: {score}, {outputs.scored} scored, {outputs.status}, {seconds_text(seconds)}"
        log_milestone("evaluate", text, **facts)
        if outputs.unscored:
            kinds = ", ".join(f"{number} {kind}" for kind, number in outputs.failures.items())
            unscored = f"{program}: {count(outputs.unscored, 'run')} without a score (failures: {kinds})"
            log_warning("evaluate", unscored, **facts)

    def on_example_start(self, call_id: str, instance: Any, inputs: CallFacts) -> None:
        self._start(call_id, instance, inputs)

    def on_example_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        seconds, _, inputs = self._end(call_id)
        facts: dict[str, object] = {name: inputs[name] for name in ("id", "index", "repeat")}
        facts |= {"example": facts.pop("id"), "score": getattr(outputs, "score", None)}
        text = f"example {facts['example']}: score {facts['score']}, {seconds_text(seconds)}"
        _write("sigwire.evaluate", text, facts, exception, {})

    def on_compile_start(self, call_id: str, instance: Any, inputs: CallFacts) -> None:
        self._start(call_id, instance, inputs)
        program = _name_of(inputs.get("student"))
        log_milestone(
            "optimize", f"{_name_of(instance)} compiles {program}", program=program, optimizer=_name_of(instance)
        )

    def on_compile_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        seconds, optimizer, inputs = self._end(call_id)
        end = "finished" if exception is None else type(exception).__name__
        facts = {
            "program": _name_of(inputs.get("student")),
            "optimizer": _name_of(optimizer),
            "seconds": round(seconds, 3),
        }
        log_milestone("optimize", f"{facts['optimizer']}: {end} after {seconds_text(seconds)}", **facts)

    def _start(self, call_id: str, instance: object, inputs: CallFacts) -> None:
        self._started[call_id] = (perf_counter(), instance, inputs)

    def _end(self, call_id: str) -> tuple[float, Any, Mapping[str, Any]]:
        started, instance, inputs = self._started.pop(call_id)
        return perf_counter() - started, instance, inputs


LISTENER = LogListener()


def _call_text(facts: Mapping[str, object]) -> str:
    """Return the line of a call of a model."""
    place = f" at {facts['path']}" if "path" in facts else ""
    counts = ((facts.get("input_tokens"), "in"), (facts.get("output_tokens"), "out"))
    parts = [f"{count} {side}" for count, side in counts if count is not None]
    parts.append(f"{facts['milliseconds']} ms")
    if facts.get("cache") == "hit":
        parts.append("from the cache")
    if facts["attempts"] != 1:
        parts.append(f"{facts['attempts']} attempts")
    return f"{facts['model']}{place}: {', '.join(parts)}"


def _write(
    logger: str, text: str, facts: dict[str, object], error: BaseException | None, content: Mapping[str, str]
) -> None:
    """Write a record of a call. The texts of exceptions and of ``content`` follow the line, if content is wanted."""
    if error is not None:
        facts["error_type"] = type(error).__name__
        text = f"{text}, {type(error).__name__}"
        content = {**content, "error": str(error)} if _is_content_wanted() else content
    lines = [text, *(f"  {name}: {value[:_MOST_CONTENT]}" for name, value in content.items())]
    logging.getLogger(logger).debug("%s", visible("\n".join(lines)), extra=facts)


def _is_content_wanted() -> bool:
    return os.environ.get("SIGWIRE_LOG_CONTENT", "") == "1"


def _json(value: object) -> str:
    return json.dumps(plain(value), ensure_ascii=False)


def _name_of(value: object) -> str:
    return str(getattr(value, "__name__", type(value).__name__))
