"""The answers of a fake provider, and the script that returns them in order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias, cast, get_args

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.request import Request
from sigwire.core.response import Choice, FinishReason, Response
from sigwire.core.tools.calls import ToolCall, ToolCalls
from sigwire.errors import ConfigurationError, LMError, suggest
from sigwire.lm.base import LanguageModel
from sigwire.testing.chunking import Cut, Gate, Newline

__all__ = [
    "Answer", "Delivered", "Events", "Fault", "FaultKind", "Raw", "Reply", "Script", "ScriptedAnswer", "Streamed",
]  # fmt: skip

FaultKind: TypeAlias = Literal[
    "auth",
    "bad_request",
    "billing",
    "content_filter",
    "context_length",
    "not_found",
    "overloaded",
    "permission",
    "rate_limit",
    "server",
    "timeout",
    "too_large",
]


@dataclass(frozen=True, slots=True)
class Fault:
    """An error reply of the provider, by its ``kind``.

    ``status``, ``message`` and ``code`` replace those that the wire has for the kind. ``retry_after``: seconds, sent in the
    form of the wire. ``param``: the path of the wrong value in the request body. Raises ``ConfigurationError`` for an unknown
    kind.

    >>> Fault("rate_limit", retry_after=2).kind
    'rate_limit'
    """

    kind: FaultKind = "server"
    message: str | None = None
    status: int | None = None
    code: str | None = None
    retry_after: float | None = None
    param: str | None = None

    def __post_init__(self) -> None:
        _check_name("kind", self.kind, FaultKind)


@dataclass(frozen=True, slots=True)
class Raw:
    """A reply body: text, bytes, or a JSON value, which is encoded. ``cut=True`` closes the connection after half of the body.

    >>> Raw({"choices": None}).encoded
    b'{"choices":null}'
    """

    body: JsonValue | bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    cut: bool = False

    @property
    def encoded(self) -> bytes:
        """The body as bytes."""
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else dumps(self.body)).encode()


@dataclass(frozen=True, slots=True)
class Events:
    """The events of a stream, unchanged, for streams that no provider should send.

    A JSON object gets the framing of the wire; text and bytes are sent unchanged. No end marker is added. A request for a whole
    answer is refused.

    >>> Events([{"choices": []}, ": a comment\\n\\n", "data: [DONE]\\n\\n"]).items[0]
    {'choices': []}
    """

    items: Sequence[JsonObject | str | bytes] = ()


@dataclass(frozen=True, slots=True)
class Streamed:
    """An answer, and how it is streamed to a client that requests a stream. Other clients receive it whole.

    ``cut``, ``seed``: how text, reasoning and arguments are cut into deltas (``chunking.Cut``); default: after each word or
    sign. ``gate``: every event waits there until the test releases it. ``packets``: the byte positions at which the body is
    cut into packets, or a packet size; default: after each event. ``newline``: the line ends of server-sent events;
    default: the provider's. ``ping_every``: a keep-alive (a comment, a ``ping`` event, an empty line) before every n-th
    event; 0 for none. ``stop_after``: the number of events before the stream stops: with the ``fault`` as an error event,
    else by a broken connection, or if ``clean`` by a complete body without the wire's end marker. A fault without
    ``stop_after`` is the first event.

    Raises ``ConfigurationError`` for deltas and packets shorter than 1, negative counts, and ``cut`` together with ``seed``.

    >>> Streamed("Hello there", cut=4).answer
    'Hello there'
    """

    answer: Answer = ""
    _: KW_ONLY
    cut: Cut | None = None
    seed: int | None = None
    gate: Gate | None = None
    packets: int | Sequence[int] | None = None
    newline: Newline | None = None
    ping_every: int = 0
    stop_after: int | None = None
    fault: Fault | None = None
    clean: bool = False

    def __post_init__(self) -> None:
        least = {"cut": 1, "packets": 1, "ping_every": 0, "stop_after": 0}
        for name, bound in least.items():
            if isinstance(given := getattr(self, name), int) and given < bound:
                raise ConfigurationError(f"{name}={given} is too small (scripting a stream). Give {bound} or more.")
        if self.cut is not None and self.seed is not None:
            raise ConfigurationError("cut= and seed= exclude each other (scripting a stream). Remove one of them.")


@dataclass(frozen=True, slots=True)
class Delivered:
    """An answer, and how its bytes reach the client, whole or streamed.

    ``after``: seconds before the first byte of the reply; ``math.inf`` for silence, which lasts until the client leaves.
    ``every``: seconds between two bytes of the body. ``stop``: the connection breaks off before the first byte of the reply
    ("head"), or after half of the body, of a stream after half of its events ("body"). ``reset``: a broken connection is
    reset, not closed. ``close``: the connection is closed after the reply, without an announcement.

    Raises ``ConfigurationError`` for negative seconds and an unknown ``stop``.

    >>> Delivered("Hello", after=0.2).answer
    'Hello'
    """

    answer: Answer = ""
    _: KW_ONLY
    after: float = 0.0
    every: float = 0.0
    stop: Literal["head", "body"] | None = None
    reset: bool = False
    close: bool = False

    def __post_init__(self) -> None:
        for name in ("after", "every"):
            if not (given := getattr(self, name)) >= 0:
                raise ConfigurationError(f"{name}={given} is too small (scripting a delivery). Give 0 or more seconds.")
        if self.stop not in (None, "head", "body"):
            raise ConfigurationError(f"stop={self.stop!r} does not exist (scripting a delivery). Use head or body.")


Answer: TypeAlias = (
    str
    | ToolCall
    | Sequence[ToolCall]
    | Choice
    | Response
    | Fault
    | Raw
    | Events
    | Streamed
    | Delivered
    | LMError
    | Callable[[Request], "Answer"]
)
"""One scripted answer. A function of the request returns any of the other kinds."""

Reply: TypeAlias = Response | Fault | Raw | Events


class ScriptedAnswer(NamedTuple):
    """The reply to a request, and how to stream and to deliver it if the script defines that."""

    reply: Reply
    how: Streamed | None = None
    delivery: Delivered | None = None


class Script:
    """Answers in order; a function or a language model in their place answers every request.

    Raises ``ConfigurationError`` for an answer that no wire can send. If a function returns one, the reply is a server error.

    >>> script = Script(["Hello"])
    >>> script.next(Request()).reply.choices[0].text
    'Hello'
    >>> script.next(Request()).reply.kind
    'bad_request'
    """

    def __init__(self, answers: Iterable[Answer] | Callable[[Request], Answer] | LanguageModel | str) -> None:
        self._lock = threading.Lock()
        self._queue: deque[Answer] = deque()
        self._source: Callable[[Request], Answer] = self._pop
        if isinstance(answers, str):
            self._queue.append(answers)
        elif hasattr(answers, "respond"):
            self._source = _answering(cast(LanguageModel, answers))
        elif callable(answers):
            self._source = answers
        else:
            self.add(*cast(Any, answers))  # a list is not a language model: type checkers cannot see it

    @property
    def remaining(self) -> int:
        """The number of scripted answers that remain."""
        return len(self._queue)

    def add(self, *answers: Answer) -> None:
        """Append answers."""
        for answer in answers:
            _check(answer)
        with self._lock:
            self._queue.extend(answers)

    def next(self, request: Request) -> ScriptedAnswer:
        """Return the answer to a request: one item of the script for each requested choice."""
        wanted = cast(int, request.options.get("n") or 1)
        answer = self._next_answer(request)
        reply = answer.reply
        if not isinstance(reply, Response):
            return answer
        while len(reply.choices) < wanted:
            more = self._next_answer(request).reply
            if not isinstance(more, Response):
                return answer._replace(reply=more)
            reply = replace(reply, choices=reply.choices + more.choices)
        return answer._replace(reply=reply)

    def _next_answer(self, request: Request) -> ScriptedAnswer:
        try:
            answer: Any = self._source(request)
            how: Streamed | None = None
            delivery: Delivered | None = None
            while callable(answer) or isinstance(answer, Streamed | Delivered):
                if isinstance(answer, Streamed):
                    how, answer = answer, answer.answer
                elif isinstance(answer, Delivered):
                    delivery, answer = answer, answer.answer
                else:
                    answer = answer(request)
            return ScriptedAnswer(_reply(answer), how, delivery)
        except LMError as error:
            return ScriptedAnswer(_reply(error))
        except Exception as error:  # user code: a server answers and keeps running
            return ScriptedAnswer(Fault("server", f"The fake provider's script raised {type(error).__name__}: {error}"))

    def _pop(self, request: Request) -> Answer:
        with self._lock:
            if self._queue:
                return self._queue.popleft()
        # A status that no client retries: the program sent more requests than the test expected.
        return Fault(
            "bad_request",
            "The fake provider has no answer left. Add one to the script, or find the cause of the extra request.",
        )


def _answering(lm: LanguageModel) -> Callable[[Request], Response]:
    """Return a function that answers by a model. Its call ids are dropped: the provider assigns unique ones."""

    def answer(request: Request) -> Response:
        response = lm.respond(request)
        return replace(response, choices=tuple(map(_without_ids, response.choices)))

    return answer


def _without_ids(choice: Choice) -> Choice:
    parts = tuple(replace(part, id="") if isinstance(part, ToolCall) else part for part in choice.parts)
    return replace(choice, tool_calls=tuple(replace(call, id="") for call in choice.tool_calls), parts=parts)


def _check(answer: Answer) -> None:
    while isinstance(answer, Streamed | Delivered):
        answer = answer.answer
    if not callable(answer):
        _reply(answer)


def _check_name(field: str, name: str, names: Any) -> None:
    if name not in get_args(names):
        advice = " A refusal is Choice(refusal='...')." if name == "refusal" else ""
        raise ConfigurationError(
            f"{field}={name!r} does not exist (scripting a fake provider). "
            f"{suggest(str(name), get_args(names))}Use one of {', '.join(get_args(names))}.{advice}"
        )


def _reply(answer: Answer) -> Reply:
    if isinstance(answer, Response):
        for choice in answer.choices:
            _check_name("finish_reason", choice.finish_reason, FinishReason)
    if isinstance(answer, Response | Fault | Raw | Events):
        return answer
    if isinstance(answer, LMError):
        kind: FaultKind = cast(FaultKind, answer.code) if answer.code in get_args(FaultKind) else "server"
        return Fault(kind, answer.message, answer.status, retry_after=answer.retry_after)
    return _reply(Response((_choice(answer),)))


def _choice(answer: object) -> Choice:
    if isinstance(answer, Choice):
        return answer
    if isinstance(answer, str):
        return Choice(answer)
    kind = type(answer).__name__
    items = cast("Sequence[object]", answer) if isinstance(answer, Sequence) else (answer,)
    calls = tuple(item for item in items if isinstance(item, ToolCall))
    if not calls or len(calls) < len(items):
        raise ConfigurationError(
            f"A fake provider cannot answer with {kind} (reading its script). Use a text, ToolCalls, a "
            "Choice, a Response, a Fault, a Raw, Events, a Streamed, a Delivered or a function of the request."
        )
    text = answer.text if isinstance(answer, ToolCalls) else ""
    return Choice(text, calls, finish_reason="tool_calls")
