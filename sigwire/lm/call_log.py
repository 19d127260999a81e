"""The log of a language model: its last calls, requests and responses, and how they are printed.

A ``CallRecord`` holds request and response; the dict with DSPy's keys (messages, outputs, usage, ...) is made on first
access. A ``CallLog`` is bounded, so a long run does not grow.
"""

from __future__ import annotations

import datetime
import time
import uuid
from collections import deque
from collections.abc import Sequence
from typing import Any, TextIO, TypeAlias, cast, overload

from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.lm.openai_dicts import encode_call, encode_outputs
from sigwire.lm.secrets import storable_options

__all__ = ["CallLog", "CallRecord", "Entry", "print_entries"]

Entry: TypeAlias = dict[str, Any]
"""A call as a dict with DSPy's keys."""


class CallRecord:
    """One call. ``entry()`` returns its dict, the same one each time.

    >>> CallRecord("m", "chat", Request(), Response()).entry()["model"]
    'm'
    """

    __slots__ = ("_entry", "model", "model_type", "prompt", "request", "response", "time")

    def __init__(
        self, model: str, model_type: str, request: Request, response: Response, prompt: str | None = None
    ) -> None:
        self.model, self.model_type = model, model_type
        self.request, self.response, self.prompt = request, response, prompt
        self.time = time.time()
        self._entry: Entry | None = None

    def entry(self) -> Entry:
        """Return the call as a dict with DSPy's keys. ``kwargs`` are the options without secrets."""
        if self._entry is None:
            messages, kwargs = encode_call(self.request)
            usage = self.response.usage
            self._entry = {
                "prompt": self.prompt,
                "messages": messages,
                "kwargs": storable_options(kwargs),
                "response": self.response,
                "outputs": encode_outputs(self.response),
                "usage": usage.counts(),
                "cost": usage.cost,
                "timestamp": datetime.datetime.fromtimestamp(self.time, datetime.UTC).isoformat(),
                "uuid": str(uuid.uuid4()),
                "model": self.model,
                "response_model": self.response.model,
                "model_type": self.model_type,
            }
        return self._entry


class CallLog(Sequence[Entry]):
    """The last ``size`` calls as a sequence of entry dicts, oldest first. ``size`` 0 keeps no call.

    >>> log = CallLog(2)
    >>> for name in "abc":
    ...     log.add(CallRecord(name, "chat", Request(), Response()))
    >>> [entry["model"] for entry in log]
    ['b', 'c']
    """

    __slots__ = ("_records",)

    def __init__(self, size: int) -> None:
        self._records: deque[CallRecord] = deque(maxlen=size)

    @property
    def size(self) -> int:
        """The greatest number of calls that are kept."""
        return self._records.maxlen or 0

    def add(self, record: CallRecord) -> None:
        """Add a call; a full log drops its oldest one."""
        self._records.append(record)

    def clear(self) -> None:
        """Drop every call."""
        self._records.clear()

    def __len__(self) -> int:
        return len(self._records)

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        if isinstance(index, slice):
            return [record.entry() for record in list(self._records)[index]]
        return self._records[index].entry()

    def __repr__(self) -> str:
        return f"CallLog({len(self)} of at most {self.size} calls)"


def print_entries(entries: Sequence[Entry], file: TextIO | None = None) -> None:
    """Print calls: each message under its role, then each answer."""
    for entry in entries:
        print(f"\n--- {entry['model']} at {entry['timestamp']} ---", file=file)
        for message in entry["messages"]:
            _print_turn(str(message["role"]), message.get("content"), message.get("tool_calls"), file)
        for number, output in enumerate(entry["outputs"], 1):
            role = "answer" if len(entry["outputs"]) == 1 else f"answer {number}"
            text, calls = (output, None) if isinstance(output, str) else (output["text"], output.get("tool_calls"))
            _print_turn(role, text, calls, file)


def _print_turn(role: str, content: object, calls: Any, file: TextIO | None) -> None:
    print(f"\n{role}:", file=file)
    if isinstance(content, str) and content:
        print(content, file=file)
    parts = cast("list[Entry]", content) if isinstance(content, list) else []
    for part in parts:
        print(part["text"] if part.get("type") == "text" else f"[{part.get('type')}]", file=file)
    for call in calls or ():
        print(f"-> {call['function']['name']}({call['function']['arguments']})", file=file)
