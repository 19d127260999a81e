"""``Ask``: the effect of asking a model, and what every asking leaves behind (usage, module histories)."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.effects.emitting import Emit, in_stream
from sigwire.effects.steps import FunctionEffect, Steps, arun, run
from sigwire.errors import ConfigurationError, LMNotConfigured
from sigwire.modules.program_stream import EventPath, event_path_of
from sigwire.observe.usage import record_usage
from sigwire.settings import current

if TYPE_CHECKING:
    from sigwire.core.events import ProgramEvent, StreamEvent
    from sigwire.lm.base import LanguageModel
    from sigwire.lm.call_log import CallLog

__all__ = ["Ask", "EventReader", "EventReaderFactory", "recording_calls", "resolve_lm"]


class Ask:
    """An effect: ask a model. Its value is the ``Response``.

    >>> from sigwire.lm.fake import FakeLM
    >>> from sigwire.core.messages import Message
    >>> Ask(FakeLM(["Hello!"]), Request((Message.user("Hi"),))).run().choices[0].text
    'Hello!'
    """

    __slots__ = ("asker", "lm", "request")

    def __init__(self, lm: LanguageModel, request: Request, asker: EventReaderFactory | None = None) -> None:
        self.lm = lm
        self.request = request
        self.asker = asker

    def run(self) -> Response:
        """Ask and wait, blocking."""
        if in_stream():
            return run(self.streamed())
        return self._done(self.lm.respond(self.request))

    async def arun(self) -> Response:
        """Ask and await."""
        if in_stream():
            return await arun(self.streamed())
        return self._done(await self.lm.arespond(self.request))

    def streamed(self) -> Steps[Response]:
        """Ask, and tell the answer as it comes: as events of fields where the asker reads fields."""
        from sigwire.core.events import AskStart  # only streams need events

        place = event_path_of(self.asker.module if self.asker is not None else self.lm)
        reader: EventReader = _PathReader(place) if self.asker is None else self.asker.reader(*place)
        yield Emit(AskStart(self.lm.model, path=place.path, turn=place.turn))
        heard = _EventLog()
        try:
            response: Response = yield from _read_by(reader, _told(self.lm, self.request), heard.events)
        except BaseException as error:  # what was answered before it ended is paid for
            so_far = heard.answer_on(error)
            if so_far is not None:
                record_usage(self.lm.model, so_far.usage)
            raise
        if said := tuple(reader.close()):
            yield Emit(*said)
        return self._done(response)

    def _done(self, response: Response) -> Response:
        record_usage(self.lm.model, response.usage)
        if logs := _logs.get():
            from sigwire.lm.call_log import CallRecord

            exchange = CallRecord(self.lm.model, "chat", self.request, response)
            for log in logs:
                log.add(exchange)
        return response


class EventReader(Protocol):
    """Makes events for the user from those of a response."""

    def feed(self, event: StreamEvent) -> Iterable[ProgramEvent]: ...

    def close(self) -> Iterable[ProgramEvent]: ...


class EventReaderFactory(Protocol):
    """Who asks: the module, and how it reads an answer in pieces."""

    @property
    def module(self) -> object: ...

    def reader(self, path: str, turn: int | None) -> EventReader: ...


class _PathReader:
    """Events as they are, with the place they come from."""

    def __init__(self, place: EventPath) -> None:
        self._place = place

    def feed(self, event: StreamEvent) -> Iterable[ProgramEvent]:
        yield replace(event, path=self._place.path, turn=self._place.turn)

    def close(self) -> Iterable[ProgramEvent]:
        return ()


def _told(lm: LanguageModel, request: Request) -> Steps[Response]:
    """The answer of any model as a program that emits its events."""
    steps: Callable[..., Steps[Response]] | None = getattr(lm, "steps", None)
    if steps is not None:
        return (yield from steps(request, streamed=True))
    response: Response = yield FunctionEffect(partial(lm.respond, request), partial(lm.arespond, request))
    from sigwire.core.events import events_of

    yield Emit(*events_of(response))
    return response


class _EventLog:
    """The events of an answer so far. Imports are made at its beginning: a stream may be forgotten until Python ends."""

    def __init__(self) -> None:
        from sigwire.core.events import ResponseStart, collect

        self.events: list[StreamEvent] = []
        self._start, self._collect = ResponseStart, collect

    def answer_on(self, error: BaseException) -> Response | None:
        """The answer as far as it had come, put on the error by the model that was asked, or else here."""
        known = getattr(error, "partial", None)
        if known is None and any(type(event) is not self._start for event in self.events):
            known = error.partial = self._collect(self.events)  # type: ignore[attr-defined]  # an exception takes attributes
        return known if isinstance(known, Response) else None


def _read_by(reader: EventReader, program: Steps[Response], heard: list[StreamEvent]) -> Steps[Response]:
    """The program; what it emits is put into ``heard``, and becomes what the reader makes of it."""
    try:
        effect: Any = program.send(None)
        while True:
            try:
                if type(effect) is Emit:
                    heard += effect.events
                    said = [event for told in effect.events for event in reader.feed(told)]
                    value = (yield Emit(*said)) if said else None
                else:
                    value = yield effect
            except BaseException as error:
                effect = program.throw(error)
            else:
                effect = program.send(value)
    except StopIteration as stop:
        return cast(Response, stop.value)


# The histories of the modules whose calls are under way, outermost first; empty unless histories are switched on.
_logs: ContextVar[tuple[CallLog, ...]] = ContextVar("sigwire_module_logs", default=())


@contextmanager
def recording_calls(log: CallLog | None) -> Generator[None]:
    """What is asked inside is added to ``log``; ``None`` adds nothing."""
    before = _logs.get()
    if log is not None and all(log is not other for other in before):
        _logs.set((*before, log))
    try:
        yield
    finally:
        _logs.set(before)


def resolve_lm(lm: Any, where: object) -> LanguageModel:
    """The given model, else the one in the settings. Raises ``ConfigurationError`` for what is no model.

    >>> resolve_lm("openai/gpt-5-mini", "Predict")
    Traceback (most recent call last):
        ...
    sigwire.errors.ConfigurationError: Predict needs a language model, not the text 'openai/gpt-5-mini'. Write ...
    """
    if lm is None:
        lm = current().lm
        if lm is None:
            raise LMNotConfigured(str(where))
    if isinstance(lm, type):
        raise ConfigurationError(
            f"{where} needs a language model, not the class {lm.__name__}. Write {lm.__name__}(...)."
        )
    if hasattr(lm, "respond"):
        return lm  # type: ignore[no-any-return]  # the protocol is checked by its one decisive member
    if isinstance(lm, str):
        raise ConfigurationError(f"{where} needs a language model, not the text {lm!r}. Write sigwire.LM({lm!r}).")
    raise ConfigurationError(
        f"{where} needs a language model, not {type(lm).__name__}: it has no respond(request). "
        "Subclass sigwire.BaseLM, or give the class respond, arespond, model and capabilities."
    )
