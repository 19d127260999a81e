"""What a language model was asked and what it answered: the last calls, kept cheaply, shown on demand.

An ``CallRecord`` holds the request and the response as they are; the dict that DSPy's users know (messages, outputs, usage,
...) is made when somebody looks. A ``CallLog`` is bounded, so a long run does not grow.
"""

from __future__ import annotations

import datetime
import uuid
from collections import deque
from collections.abc import Sequence
from typing import Any, TextIO, cast, overload

from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.lm.openai_dicts import encode_call, encode_outputs
from sigwire.lm.secrets import storable_options

__all__ = ["CallLog", "CallRecord", "print_entries"]


class CallRecord:
    """One call. ``entry()`` is its dict; every look gives the same dict.

    >>> CallRecord("m", "chat", Request(), Response()).entry()["model"]
    'm'
    """

    __slots__ = ("_entry", "model", "model_type", "prompt", "request", "response", "time")

    def __init__(
        self, model: str, model_type: str, request: Request, response: Response, prompt: str | None = None
    ) -> None:
        self.model, self.model_type = model, model_type
        self.request, self.response, self.prompt = request, response, prompt
        self.time = datetime.datetime.now(datetime.UTC)
        self._entry: dict[str, Any] | None = None

    def entry(self) -> dict[str, Any]:
        """``prompt, messages, kwargs, response, outputs, usage, cost, timestamp, uuid, model, response_model, model_type``.

        Options that are secret by name are not recorded.
        """
        if self._entry is None:
            messages, kwargs = encode_call(self.request)
            usage = self.response.usage
            self._entry = {
                "prompt": self.prompt,
                "messages": messages,
                "kwargs": storable_options(kwargs),
                "response": self.response,
                "outputs": encode_outputs(self.response),
                "usage": usage.to_json(),
                "cost": usage.cost,
                "timestamp": self.time.isoformat(),
                "uuid": str(uuid.uuid4()),
                "model": self.model,
                "response_model": self.response.model,
                "model_type": self.model_type,
            }
        return self._entry


class CallLog(Sequence[dict[str, Any]]):
    """The last ``size`` calls as a sequence of entry dicts, oldest first; ``size`` 0 keeps none.

    >>> log = CallLog(2)
    >>> for name in "abc":
    ...     log.add(CallRecord(name, "chat", Request(), Response()))
    >>> [entry["model"] for entry in log]
    ['b', 'c']
    """

    __slots__ = ("_exchanges",)

    def __init__(self, size: int) -> None:
        self._exchanges: deque[CallRecord] = deque(maxlen=size)

    @property
    def size(self) -> int:
        """How many calls are kept at most."""
        return self._exchanges.maxlen or 0

    def add(self, exchange: CallRecord) -> None:
        """Keep a call; the oldest one goes when the log is full."""
        self._exchanges.append(exchange)

    def clear(self) -> None:
        """Forget every call."""
        self._exchanges.clear()

    def __len__(self) -> int:
        return len(self._exchanges)

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...
    @overload
    def __getitem__(self, index: slice) -> list[dict[str, Any]]: ...
    def __getitem__(self, index: int | slice) -> dict[str, Any] | list[dict[str, Any]]:
        if isinstance(index, slice):
            return [exchange.entry() for exchange in list(self._exchanges)[index]]
        return self._exchanges[index].entry()

    def __repr__(self) -> str:
        return f"CallLog({len(self)} of at most {self.size} calls)"


def print_entries(entries: Sequence[dict[str, Any]], file: TextIO | None = None) -> None:
    """Print calls readably: each message under its role, then each answer."""
    for entry in entries:
        print(f"\n--- {entry['model']} at {entry['timestamp']} ---", file=file)
        for message in entry["messages"]:
            _print_turn(str(message["role"]), message.get("content"), message.get("tool_calls"), file)
        for number, output in enumerate(entry["outputs"], 1):
            role = "answer" if len(entry["outputs"]) == 1 else f"answer {number}"
            text, calls = (output, None) if isinstance(output, str) else (output["text"], output.get("tool_calls"))
            _print_turn(role, text, calls, file)


def _print_turn(role: str, content: Any, calls: Any, file: TextIO | None) -> None:
    print(f"\n{role}:", file=file)
    if isinstance(content, str) and content:
        print(content, file=file)
    parts = cast("list[dict[str, Any]]", content) if isinstance(content, list) else []
    for part in parts:
        print(part["text"] if part.get("type") == "text" else f"[{part.get('type')}]", file=file)
    for call in calls or ():
        print(f"-> {call['function']['name']}({call['function']['arguments']})", file=file)
