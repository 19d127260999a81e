"""``Ask``: the effect of asking a model. Each call is counted in the usage and recorded in the call logs of modules."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from sigwire.core.json import JsonObject
from sigwire.core.request import Request
from sigwire.core.response import Attempt, LMWarning, Response
from sigwire.effects.emitting import Emit, in_stream
from sigwire.effects.relaying import relayed
from sigwire.effects.steps import FunctionEffect, Steps, arun, run
from sigwire.errors import (
    ConfigurationError,
    ContextWindowExceededError,
    LMContentFilteredError,
    LMError,
    LMInvalidRequestError,
    LMNotConfigured,
)
from sigwire.keywords import check_keywords
from sigwire.lm.option_aliases import OPTION_NAMES
from sigwire.lm.preview.call_log import record_call, record_failed_call
from sigwire.lm.secrets import storable_options
from sigwire.modules.program_stream import EventPath, EventReader, event_path_of
from sigwire.observe.place import asked
from sigwire.observe.reports import failed_attempts
from sigwire.observe.usage import UsageTracker, record_failure, record_response, record_warnings
from sigwire.settings import Settings, current, unseen_model

if TYPE_CHECKING:
    from sigwire.core.events import ProgramEvent, StreamEvent
    from sigwire.lm.base import LanguageModel

__all__ = [
    "REQUEST_OPTIONS", "Ask", "EventReaderFactory", "check_config", "resolve_lm", "usage_totals",
]  # fmt: skip


class Ask:
    """An effect: ask a model. Its value is the ``Response``. ``reader_factory`` makes readers for streams.

    >>> from sigwire.lm.fake import FakeLM
    >>> from sigwire.core.messages import Message
    >>> Ask(FakeLM(["Hello!"]), Request((Message.user("Hi"),))).run().choices[0].text
    'Hello!'
    """

    __slots__ = ("asker", "lm", "reader_factory", "request")

    kind = "ask"

    def __init__(self, lm: LanguageModel, request: Request, reader_factory: EventReaderFactory | None = None) -> None:
        self.lm = lm
        self.request = request
        self.reader_factory = reader_factory
        self.asker: object = None if reader_factory is None else reader_factory.module

    def run(self) -> Response:
        """Ask and wait, blocking."""
        if in_stream():
            return run(self.streamed())
        asked.question = self
        try:
            return self._record_call(self.lm.respond(self.request))
        except Exception as error:
            self._record_failure(error)
            raise
        finally:
            asked.question = None

    async def arun(self) -> Response:
        """Ask and await."""
        if in_stream():
            return await arun(self.streamed())
        asked.question = self
        try:
            return self._record_call(await self.lm.arespond(self.request))
        except Exception as error:
            self._record_failure(error)
            raise
        finally:
            asked.question = None

    def streamed(self) -> Steps[Response]:
        """Ask, and emit the response as it arrives, in events of the reader."""
        from sigwire.core.events import AskStart  # only streams need events

        factory = self.reader_factory
        event_path = event_path_of(self.lm if factory is None else factory.module)
        reader: EventReader = (
            _PathReader(event_path) if factory is None else factory.reader(event_path.path, event_path.turn)
        )
        yield Emit(AskStart(self.lm.model, **event_path._asdict()))
        log = _EventLog()
        asked.question = self
        try:
            response: Response = yield from _convert_events(
                reader, _model_steps(self.lm, self.request), log.events, event_path
            )
        except BaseException as error:  # the provider charges for a partial response
            log.set_partial(error)
            self._record_failure(error)
            raise
        finally:
            asked.question = None
        if events := tuple(event_path.stamp(reader.close())):
            yield Emit(*events)
        return self._record_call(response)

    def fingerprint(self) -> JsonObject:
        """Return the model and the request as JSON, without secrets and cache marks."""
        request = self.request.to_json()
        for name in ("repeated", "repeated_part"):
            request.pop(name, None)
        return {"model": self.lm.model, **request, "options": storable_options(self.request.options)}

    def dump(self, value: Response) -> JsonObject:
        """Return a response as JSON."""
        return {"response": value.to_json()}

    def dump_error(self, error: Exception) -> JsonObject | None:
        """Return an error as JSON; ``None`` if a repetition of the request may succeed."""
        if not isinstance(error, LMError) or _FINAL_ERRORS.get(error.code) is not type(error):
            return None
        facts: JsonObject = {name: getattr(error, name) for name in _ERROR_FACTS}
        return {"error": error.code, "facts": facts, "attempts": [each.to_json() for each in error.attempts]}

    def load(self, data: Mapping[str, Any]) -> Ask:
        """Return an ``Ask`` that gives a dumped response, or raises a dumped error, without a call."""
        if "error" not in data:
            outcome: Response | LMError = Response.from_json(data["response"])
        else:
            outcome = _FINAL_ERRORS[data["error"]](**data["facts"])
            outcome.attempts = tuple(map(Attempt.from_json, data["attempts"]))
        return self.answered(outcome)

    def answered(self, outcome: Response | LMError) -> Ask:
        """Return an ``Ask`` that gives a known response or raises a known error, without a call."""
        return Ask(cast("LanguageModel", _RecordedModel(self.lm, outcome)), self.request, self.reader_factory)

    def _record_call(self, response: Response) -> Response:
        if getattr(self.lm, "is_recorded", False) and response.cache != "hit":  # nothing is paid now
            record_warnings(*response.warnings)
        else:
            record_response(self.lm.model, response)
        record_call(self.lm.model, self.request, response, self.asker)
        return response

    def _record_failure(self, error: BaseException) -> None:
        if not getattr(self.lm, "is_recorded", False):
            record_failure(self.lm.model, failed_attempts(error, self.lm.model))
        record_failed_call(self.lm.model, self.request, error, self.asker)


_FINAL_ERRORS: Mapping[str, type[LMError]] = {
    error.code: error for error in (LMInvalidRequestError, ContextWindowExceededError, LMContentFilteredError)
}
_ERROR_FACTS = ("message", "model", "provider", "provider_code", "status", "request_id")


class _RecordedModel:
    """A model that gives one recorded outcome."""

    is_recorded = True

    def __init__(self, lm: LanguageModel, outcome: Response | LMError) -> None:
        self.model, self.capabilities, self._outcome = lm.model, lm.capabilities, outcome

    def respond(self, request: Request) -> Response:
        if isinstance(self._outcome, LMError):
            raise self._outcome
        return self._outcome

    async def arespond(self, request: Request) -> Response:
        return self.respond(request)


class EventReaderFactory(Protocol):
    """The asking module, and the factory of its event readers."""

    @property
    def module(self) -> object: ...

    def reader(self, path: str, turn: int | None) -> EventReader: ...


class _PathReader:
    """Adds the module path to events and does not convert them."""

    def __init__(self, event_path: EventPath) -> None:
        self._event_path = event_path

    def feed(self, event: StreamEvent) -> Iterable[ProgramEvent]:
        yield replace(event, path=self._event_path.path, turn=self._event_path.turn)

    def close(self) -> Iterable[ProgramEvent]:
        return ()


def _model_steps(lm: LanguageModel, request: Request) -> Steps[Response]:
    """Return the steps of a streamed call of any model; they emit the events of the response."""
    steps: Callable[..., Steps[Response]] | None = getattr(lm, "steps", None)
    return _whole_steps(lm, request) if steps is None else steps(request, streamed=True)


def _whole_steps(lm: LanguageModel, request: Request) -> Steps[Response]:
    response: Response = yield FunctionEffect(partial(lm.respond, request), partial(lm.arespond, request))
    from sigwire.core.events import events_of

    yield Emit(*events_of(response))
    return response


class _EventLog:
    """The events of a partial response. Imports are made early: a forgotten stream may be closed while Python shuts down."""

    def __init__(self) -> None:
        from sigwire.core.events import ResponseStart, collect

        self.events: list[StreamEvent] = []
        self._start, self._collect = ResponseStart, collect

    def set_partial(self, error: BaseException) -> None:
        """Set the partial response of the events, unless the model set one on the error."""
        known = getattr(error, "partial", None)
        if known is None and any(type(event) is not self._start for event in self.events):
            error.partial = self._collect(self.events)  # type: ignore[attr-defined]  # exceptions accept attributes


def _convert_events(
    reader: EventReader, steps: Steps[Response], log: list[StreamEvent], event_path: EventPath
) -> Steps[Response]:
    """Run the steps; add emitted events to ``log`` and emit their conversion by the reader."""

    def convert(emit: Emit) -> Emit | None:
        log.extend(emit.events)
        events = [converted for event in emit.events for converted in event_path.stamp(reader.feed(event))]
        return Emit(*events) if events else None

    return relayed(steps, convert)


_counts_usage: ContextVar[bool] = ContextVar("sigwire_counts_usage", default=False)


@contextmanager
def usage_totals(values: Settings) -> Generator[UsageTracker | None]:
    """Track the usage of the outermost module, if the settings enable totals."""
    if not values.track_usage or _counts_usage.get():
        yield None
        return
    _counts_usage.set(True)
    try:
        with UsageTracker(keep_runs=False) as tracker:
            yield tracker
    finally:
        _counts_usage.set(False)


def resolve_lm(lm: object, where: object) -> LanguageModel:
    """Return the given model, or that of the settings. Raises ``ConfigurationError`` if it is not a language model.

    >>> resolve_lm("openai/gpt-5-mini", "Predict")
    Traceback (most recent call last):
        ...
    sigwire.errors.ConfigurationError: Predict needs a language model, not the text 'openai/gpt-5-mini'. Write ...
    """
    if lm is None:
        lm = current().lm
        if lm is None:
            unseen = unseen_model()
            raise LMNotConfigured(str(where), f"{_unseen_text(unseen)} Or: " if unseen is not None else "")
    if isinstance(lm, type):
        raise ConfigurationError(
            f"{where} needs a language model, not the class {lm.__name__}. Write {lm.__name__}(...)."
        )
    if hasattr(lm, "respond"):  # the decisive member of the protocol
        return cast("LanguageModel", lm)
    if isinstance(lm, str):
        raise ConfigurationError(f"{where} needs a language model, not the text {lm!r}. Write sigwire.LM({lm!r}).")
    raise ConfigurationError(
        f"{where} needs a language model, not {type(lm).__name__}: it has no respond(request). "
        "Subclass sigwire.BaseLM, or give the class respond, arespond, model and capabilities."
    )


def default_model_warning() -> LMWarning | None:
    """Return a warning if this thread asks the default model and does not see the ``context(lm=...)`` of another thread.

    Once in a process for each two models; the call that gets the warning has it on its result.
    """
    unseen = unseen_model()
    if unseen is None or (lm := current().lm) is None or (lm.model, unseen.model) in _warned_of:
        return None
    _warned_of.add((lm.model, unseen.model))
    return LMWarning("settings", f"The default model {lm.model} was asked. {_unseen_text(unseen)}")


_warned_of: set[tuple[str, str]] = set()
"""The default models that were asked, each with the model that the thread did not see."""


def _unseen_text(unseen: LanguageModel) -> str:
    return (
        f"A new thread does not see the context(lm={unseen.model}) that is open in another one: give the thread pool "
        "sigwire.settings.bind(function), or pass lm=."
    )


def check_config(owner: type, config: Iterable[str], lm: object) -> None:
    """Refuse wrong names among the options that the constructor of a module takes for its requests, as far as they are known.

    A name similar to a parameter of ``owner`` is always refused, one that no model has if the settings have a model of
    sigwire's, and one that ``lm`` does not have if the module is given one. The first call refuses the others.
    """
    names = [name for name in config if name not in REQUEST_OPTIONS]
    if names:
        if found := {"evidence", "decisions"}.intersection(names):
            raise ConfigurationError(
                f"{owner.__name__} takes no {min(found)} (making it): its outputs are arguments of calls or values of code, "
                "which have no distributions. Decide with a Predict of its outputs after the run: "
                'Predict("answer -> fits: bool", evidence="auto").'
            )
        if "demos" in names:
            raise ConfigurationError(
                f"demos are an attribute and no option (making {owner.__name__}). Write module.demos = [...] on the predictor."
            )
        unknown = [name for name in names if name not in OPTION_NAMES]
        check_keywords(owner.__name__, vars(owner)["__init__"], unknown, misspelt_only=True)
        check = getattr(current().lm if lm is None else lm, "check_options", None)
        if check is not None and not isinstance(check, type):
            check(unknown if lm is None else names, f"making {owner.__name__}")


REQUEST_OPTIONS = frozenset({"lm", "max_reasks", "parallel_tool_calls", "tool_choice"})  # no options of a model
