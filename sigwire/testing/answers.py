"""What a fake provider is told to answer, and the one who hands it out.

Answer     what a script may hold: texts, calls, choices, responses, faults, raw bodies, functions of the request
Fault      an error, by what went wrong; each wire has its own status, code and body for it
Raw        bytes as they are, for what no provider should send and some do
Events     the events of a stream as they are
Streamed   an answer, and how it comes to a client that asks for a stream
Script     gives the next answer, one at a time, from any thread
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypeAlias, cast

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response
from sigwire.core.tools.tool import ToolCall, ToolCalls
from sigwire.errors import ConfigurationError, LMError
from sigwire.lm.base import LanguageModel
from sigwire.testing.chunking import Cut, Gate, Newline

__all__ = ["Answer", "Events", "Fault", "FaultKind", "Raw", "Reply", "Script", "ScriptedAnswer", "Streamed"]

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
    """An error that the provider answers with, by its ``kind``.

    ``status`` replaces the one that the wire has for the kind, ``message`` its text, ``code`` its code; ``retry_after`` is
    sent in seconds, as the wire says it. ``param`` is the place of the body that is wrong.

    >>> Fault("rate_limit", retry_after=2).kind
    'rate_limit'
    """

    kind: FaultKind = "server"
    message: str | None = None
    status: int | None = None
    code: str | None = None
    retry_after: float | None = None
    param: str | None = None


@dataclass(frozen=True, slots=True)
class Raw:
    """An answer byte for byte: text, bytes, or any JSON value, which is encoded.

    ``cut=True`` closes the connection after half of the body.

    >>> Raw({"choices": None}).encoded
    b'{"choices":null}'
    """

    body: JsonValue | bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    cut: bool = False

    @property
    def encoded(self) -> bytes:
        """The body's bytes."""
        if isinstance(self.body, bytes):
            return self.body
        return (self.body if isinstance(self.body, str) else dumps(self.body)).encode()


@dataclass(frozen=True, slots=True)
class Events:
    """The events of a stream, for what no provider should send and some do.

    A JSON object is framed as the wire frames its events; text and bytes go out as they are. Nothing is added at the end. Only
    a request for a stream can be answered with them.

    >>> Events([{"choices": []}, ": a comment\\n\\n", "data: [DONE]\\n\\n"]).items[0]
    {'choices': []}
    """

    items: Sequence[JsonObject | str | bytes] = ()


@dataclass(frozen=True, slots=True)
class Streamed:
    """An answer, and how it comes to a client that asks for a stream; to any other it comes whole.

    ``cut``, ``seed``: how texts, thoughts and arguments fall to pieces (``pieces.Cut``); without, after each word or sign.
    ``gate``: every event waits there until the test lets it through.
    ``packets``: where the bytes of the body are cut, at every so many or after these; without it, after each event.
    ``newline``: the line ends of server-sent events; without it, the provider's.
    ``ping_every``: a keep-alive (a comment, a ``ping`` event, an empty line) before every n-th event; 0 for none.
    ``stop_after``: no more events than these. Then comes the ``fault``, as an error inside the stream; without one the
    connection breaks off, or with ``clean`` the body ends as if it were complete, but for the wire's end marker. A fault
    without ``stop_after`` comes first.

    Raises ``ConfigurationError`` for pieces and packets shorter than 1, counts below 0, and a ``cut`` beside a ``seed``.

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
            raise ConfigurationError("A stream is cut by cut=... or at random by seed=..., not by both. Leave one out.")


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
    | LMError
    | Callable[[Request], "Answer"]
)
"""One scripted answer. A function of the request gives any of the others."""

Reply: TypeAlias = Response | Fault | Raw | Events


class ScriptedAnswer(NamedTuple):
    """What to answer, and how to stream it where the script says."""

    reply: Reply
    how: Streamed | None = None


class Script:
    """Hands out answers in order; a function or a language model answers every request.

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
            self._source = _asking(cast(LanguageModel, answers))
        elif callable(answers):
            self._source = answers
        else:
            self._queue.extend(cast(Any, answers))  # a list is no language model, which checkers cannot tell

    @property
    def remaining(self) -> int:
        """How many scripted answers are left."""
        return len(self._queue)

    def add(self, *answers: Answer) -> None:
        """Put more answers at the end."""
        with self._lock:
            self._queue.extend(answers)

    def next(self, request: Request) -> ScriptedAnswer:
        """The answer to a request: one item of the script for each choice that it asks for."""
        wanted = cast(int, request.options.get("n") or 1)
        reply, how = self._one(request)
        if not isinstance(reply, Response):
            return ScriptedAnswer(reply, how)
        while len(reply.choices) < wanted:
            more = self._one(request).reply
            if not isinstance(more, Response):
                return ScriptedAnswer(more, how)
            reply = replace(reply, choices=reply.choices + more.choices)
        return ScriptedAnswer(reply, how)

    def _one(self, request: Request) -> ScriptedAnswer:
        try:
            answer: Any = self._source(request)
            how: Streamed | None = None
            while callable(answer) or isinstance(answer, Streamed):
                if isinstance(answer, Streamed):
                    how, answer = answer, answer.answer
                else:
                    answer = answer(request)
            return ScriptedAnswer(_reply(answer), how)
        except LMError as error:
            return ScriptedAnswer(_reply(error))
        except Exception as error:  # whatever a script's function raises: a server answers, it does not die
            return ScriptedAnswer(Fault("server", f"The fake provider's script raised {type(error).__name__}: {error}"))

    def _pop(self, request: Request) -> Answer:
        with self._lock:
            if self._queue:
                return self._queue.popleft()
        # No status that a client tries again: the program asked once more than the test expected.
        return Fault(
            "bad_request", "The fake provider has no answer left. Script one more, or find out why it is asked again."
        )


def _asking(lm: LanguageModel) -> Callable[[Request], Response]:
    """Answers by a model. Its ids are dropped, so that calls get the provider's, which never repeat."""

    def ask(request: Request) -> Response:
        response = lm.respond(request)
        return replace(response, choices=tuple(map(_without_ids, response.choices)))

    return ask


def _without_ids(choice: Choice) -> Choice:
    parts = tuple(replace(part, id="") if isinstance(part, ToolCall) else part for part in choice.parts)
    return replace(choice, tool_calls=tuple(replace(call, id="") for call in choice.tool_calls), parts=parts)


def _reply(answer: Answer) -> Reply:
    if isinstance(answer, Response | Fault | Raw | Events):
        return answer
    if isinstance(answer, LMError):
        return Fault(
            _FAULT_OF.get(answer.code, "server"), answer.message, answer.status, retry_after=answer.retry_after
        )
    return Response((_choice(answer),))


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
            "Choice, a Response, a Fault, a Raw, Events, a Streamed or a function of the request."
        )
    text = answer.text if isinstance(answer, ToolCalls) else ""
    return Choice(text, calls, finish_reason="tool_calls")


_FAULT_OF: Mapping[str, FaultKind] = {
    "auth": "auth",
    "bad_request": "bad_request",
    "billing": "billing",
    "content_filter": "content_filter",
    "context_length": "context_length",
    "not_found": "not_found",
    "rate_limit": "rate_limit",
    "server": "server",
    "timeout": "timeout",
}
