"""The line of a question to a model: the answer or the error, and where a stream cut it.

``cuts`` has a pair for each delta: milliseconds since the event before, and characters. They are enough for a complete answer
whose deltas come in the order of its parts; any other stream is stored as ``events``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias, cast

from sigwire.core.events import (
    ReasoningDelta,
    StreamEvent,
    TextDelta,
    ToolCallDelta,
    collect,
    event_from_json,
    events_of,
)
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.request import Request
from sigwire.core.response import Attempt, Response
from sigwire.effects.cancellation import StreamCancelled
from sigwire.effects.emitting import Emit
from sigwire.effects.relaying import relayed
from sigwire.effects.steps import Steps
from sigwire.errors import LMError
from sigwire.lm.base import LanguageModel
from sigwire.lm.policy.retry import Sleep
from sigwire.lm.secrets import storable_options
from sigwire.modules.ask import Ask
from sigwire.settings import sample_in_context

__all__ = ["AskExchange"]

Write: TypeAlias = Callable[[JsonObject], None]
_Timed: TypeAlias = tuple[int, StreamEvent]
_Delta: TypeAlias = TextDelta | ReasoningDelta | ToolCallDelta


class AskExchange:
    """Records and replays a question. ``speed``: how fast streams are replayed; 1.0 keeps the recorded times."""

    head = "lm"

    def __init__(self, ask: Ask, speed: float | None) -> None:
        self._ask, self._speed = ask, speed

    def question(self) -> JsonObject:
        """Return model and request, with the options of the model, and the sample that is asked for (``rollout_id``)."""
        request = self._ask.fingerprint()
        given = cast("JsonObject", request["options"])
        options = {**storable_options(getattr(self._ask.lm, "kwargs", {})), **given}
        request["options"] = {name: options[name] for name in sorted(options) if options[name] is not None}
        found: JsonObject = {"model": request.pop("model"), "request": request}
        sample = sample_in_context(None)
        return found if sample is None else {**found, "sample": sample}

    def record(self, write: Write) -> Steps[Response]:
        """Ask the model, and write its outcome. A stream that the consumer closed is written as far as it was read."""
        lm, seen = self._ask.lm, list[_Timed]()
        if hasattr(lm, "steps"):
            lm = cast("LanguageModel", _WatchedModel(lm, seen))
        try:
            response: Response = yield Ask(lm, self._ask.request, self._ask.reader_factory)
        except LMError as error:
            write({"error": _dump_error(error), **_partial(error.partial, seen)})
            raise
        except StreamCancelled:
            write({"closed": True, **_partial(None, seen)})
            raise
        write({"response": response.to_json(), **_stream(response, seen)})
        return response

    def replay(self, data: Mapping[str, Any], miss: Callable[[], Exception]) -> Ask:
        """Return the effect that gives the recorded outcome. Raises ``ValueError`` or ``LookupError`` for other data.

        ``miss`` makes the error for a consumer that reads on where the recorded one stopped.
        """
        partial = Response.from_json(data["partial"]) if "partial" in data else None
        outcome: Response | LMError | Callable[[], Exception]
        if "error" in data:
            outcome = _load_error(data["error"])
            outcome.partial = partial
        else:
            outcome = miss if data.get("closed") else Response.from_json(data["response"])
        lm = _ReplayedModel(self._ask.lm, outcome, tuple(_events(data, outcome)), self._speed)
        return Ask(cast("LanguageModel", lm), self._ask.request, self._ask.reader_factory)


class _WatchedModel:
    """Answers as a model does, and appends the events of its stream to ``seen``, with their times."""

    def __init__(self, lm: Any, seen: list[_Timed]) -> None:
        self.model, self.capabilities, self.respond, self.arespond = lm.model, lm.capabilities, lm.respond, lm.arespond
        self._lm, self._seen, self._last = lm, seen, time.monotonic()

    def steps(self, request: Request, *, streamed: bool = False) -> Steps[Response]:
        return relayed(self._lm.steps(request, streamed=streamed), self._watch)

    def _watch(self, emit: Emit) -> Emit:
        for event in emit.events:
            now = time.monotonic()
            self._seen.append((round((now - self._last) * 1000), event))
            self._last = now
        return emit


@dataclass(slots=True)
class _ReplayedModel:
    """Gives a recorded outcome, and in a stream the recorded events before."""

    lm: LanguageModel
    outcome: Response | LMError | Callable[[], Exception]
    events: tuple[_Timed, ...]
    speed: float | None
    model: str = field(init=False)

    def __post_init__(self) -> None:
        self.model = self.lm.model

    def respond(self, request: Request) -> Response:
        if isinstance(self.outcome, Response):
            return self.outcome
        raise self.outcome if isinstance(self.outcome, LMError) else self.outcome()

    async def arespond(self, request: Request) -> Response:
        return self.respond(request)

    def steps(self, request: Request, *, streamed: bool = False) -> Steps[Response]:
        for milliseconds, event in self.events if streamed else ():
            if self.speed and milliseconds:
                yield Sleep(milliseconds / 1000 / self.speed)
            yield Emit(event)
        return self.respond(request)


# --- streams ----------------------------------------------------------------------------------------------


def _stream(response: Response, seen: list[_Timed]) -> JsonObject:
    """Return the cuts of a response, or its events if the cuts do not give them."""
    if not seen:
        return {}
    deltas = _deltas(seen)
    cuts = [(at, len(_text(event))) for at, event in deltas]
    replayed = [event for _, event in _deltas(_cut(response, cuts))]
    if replayed != [event for _, event in deltas]:
        return _dump_events(seen)
    return {"cuts": [list(cut) for cut in cuts]} if cuts else {}


def _deltas(events: Iterable[_Timed]) -> list[tuple[int, _Delta]]:
    return [(at, event) for at, event in events if isinstance(event, _Delta)]


def _dump_events(seen: list[_Timed]) -> JsonObject:
    return {"events": [[at, event.to_json()] for at, event in seen]}


def _partial(partial: object, seen: list[_Timed]) -> JsonObject:
    if not seen:
        return {}
    known = partial if isinstance(partial, Response) else collect(event for _, event in seen)
    return {"partial": known.to_json(), **_dump_events(seen)}


def _events(data: Mapping[str, Any], outcome: object) -> Iterator[_Timed]:
    if "events" in data:
        return ((int(at), cast("StreamEvent", event_from_json(event))) for at, event in data["events"])
    return _cut(outcome, data.get("cuts", ())) if isinstance(outcome, Response) else iter(())


def _cut(response: Response, cuts: Iterable[Iterable[int]]) -> Iterator[_Timed]:
    """Yield the events of a response, its texts cut. Texts after the last cut are one delta each."""
    pairs = [(int(at), int(length)) for at, length in cuts]
    lengths, times = iter([length for _, length in pairs]), iter([at for at, _ in pairs])

    def cut(text: str) -> Iterator[str]:
        while text:
            length = next(lengths, 0) or len(text)
            yield text[:length]
            text = text[length:]

    for event in events_of(response, cut):
        yield next(times, 0) if isinstance(event, _Delta) else 0, event


def _text(delta: _Delta) -> str:
    return delta.arguments if isinstance(delta, ToolCallDelta) else delta.text


# --- errors -----------------------------------------------------------------------------------------------

_FACTS = ("message", "model", "provider", "provider_code", "status", "request_id", "retry_after")


def _dump_error(error: LMError) -> JsonObject:
    facts: JsonObject = {name: value for name in _FACTS if (value := getattr(error, name)) is not None}
    attempts: list[JsonValue] = [each.to_json() for each in error.attempts]
    return {"type": error.code, **facts, "retryable": error.retryable, "attempts": attempts}


def _load_error(data: Mapping[str, Any]) -> LMError:
    facts = {name: data[name] for name in _FACTS if name in data}
    error = next((kind for kind in _kinds(LMError) if kind.code == data["type"]), LMError)(**facts)
    error.retryable = bool(data["retryable"])
    error.attempts = tuple(map(Attempt.from_json, data["attempts"]))
    return error


def _kinds(kind: type[LMError]) -> Iterator[type[LMError]]:
    """Yield the classes of errors. Of one code the class of sigwire is first: a user's subclass may take other arguments."""
    yield kind
    for each in kind.__subclasses__():
        yield from _kinds(each)
