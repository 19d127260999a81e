"""The log of a language model: its last calls, requests and responses.

A ``CallRecord`` holds request and response; the dict (messages, outputs, usage, ...) is made on first
access. A ``CallLog`` is bounded, so a long run does not grow. Failed calls are ``records``, and no entries.

Inside ``recording_calls(log)`` each call of a model, by a module or direct, is added to the log of the caller as well.
"""

from __future__ import annotations

import datetime
import time
import uuid
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Protocol, TypeAlias, overload
from weakref import WeakSet

from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.effects.steps import Steps
from sigwire.lm.openai_dicts import encode_call, encode_outputs
from sigwire.lm.secrets import storable_options
from sigwire.observe.place import path_of, prefix_moved, running

__all__ = [
    "LOGS", "CallListener", "CallLog", "CallRecord", "Entry", "record_call", "record_failed_call", "recorded_steps",
    "recording_calls",
]  # fmt: skip

Entry: TypeAlias = dict[str, Any]
"""A call as a dict."""
_NO_RESPONSE = Response()


class CallRecord:
    """One call: request, response, and the error of a failed call. ``entry()`` returns its dict, the same one each time.

    >>> CallRecord("m", "chat", Request(), Response()).entry()["model"]
    'm'
    """

    __slots__ = (
        "_entry",
        "asker",
        "error",
        "model",
        "model_type",
        "moved",
        "prompt",
        "request",
        "response",
        "running",
        "time",
    )

    def __init__(
        self,
        model: str,
        model_type: str,
        request: Request,
        response: Response = _NO_RESPONSE,
        prompt: str | None = None,
        asker: object = None,
    ) -> None:
        self.model, self.model_type = model, model_type
        self.request, self.response, self.prompt = request, response, prompt
        self.error: Exception | None = None
        self.time, self.asker, self.running = time.time(), asker, running.get()
        self.moved = prefix_moved.get()
        self._entry: Entry | None = None

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        """Return the state for copies and pickles, with the path in place of the modules."""
        state = {name: getattr(self, name) for name in self.__slots__}
        return None, {**state, "asker": self.path, "running": self.running._replace(program=None)}

    @property
    def path(self) -> str | None:
        """The path of the asking module in its program; ``None`` for a direct call of the model."""
        asker = self.asker
        return asker if asker is None or isinstance(asker, str) else path_of(asker, self.running.program)

    def entry(self) -> Entry:
        """Return the call as a dict. ``kwargs`` are the options without secrets."""
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
    """The last ``size`` calls, failed ones among them, which ``records`` has. As a sequence: the entry dicts of the calls that
    were answered, oldest first. ``size`` 0 keeps no call.

    >>> log = CallLog(2)
    >>> for name in "abc":
    ...     log.add(CallRecord(name, "chat", Request(), Response()))
    >>> [entry["model"] for entry in log]
    ['b', 'c']
    """

    __slots__ = ("__weakref__", "_records")

    def __init__(self, size: int) -> None:
        self._records: deque[CallRecord] = deque(maxlen=size)
        if size:
            LOGS.add(self)

    def __reduce__(self) -> tuple[Callable[..., CallLog], tuple[object, ...]]:
        return _restored_log, (self.size, self.records)

    @property
    def size(self) -> int:
        """The greatest number of calls that are kept."""
        return self._records.maxlen or 0

    def keep(self, size: int) -> None:
        """Keep at most ``size`` calls from now on; fewer than before drop the oldest ones."""
        if size != self._records.maxlen:
            self._records = deque(self._records, maxlen=size)

    def add(self, record: CallRecord) -> None:
        """Add a call; a full log drops its oldest one."""
        self._records.append(record)

    def add_failure(self, record: CallRecord, error: Exception) -> None:
        """Add a failed call. The traceback would keep the frames of the program."""
        record.error = copy = type(error).__new__(type(error))
        copy.args, copy.__dict__ = error.args, dict(error.__dict__)
        self._records.append(record)

    @property
    def records(self) -> list[CallRecord]:
        """The calls, failed ones included, oldest first."""
        return list(self._records)

    def _answered(self) -> list[CallRecord]:
        return [record for record in self.records if record.error is None]

    def clear(self) -> None:
        """Drop every call."""
        self._records.clear()

    def __len__(self) -> int:
        return len(self._answered())

    @overload
    def __getitem__(self, index: int) -> Entry: ...
    @overload
    def __getitem__(self, index: slice) -> list[Entry]: ...
    def __getitem__(self, index: int | slice) -> Entry | list[Entry]:
        if isinstance(index, slice):
            return [record.entry() for record in self._answered()[index]]
        return self._answered()[index].entry()

    def __repr__(self) -> str:
        return f"CallLog({len(self)} of at most {self.size} calls)"


LOGS: WeakSet[CallLog] = WeakSet()
"""Every log of the process."""


class CallListener(Protocol):
    """Gets each call of a model inside ``recording_calls``: a ``CallLog``, or what an evaluation keeps of a row."""

    def add(self, record: CallRecord) -> None: ...
    def add_failure(self, record: CallRecord, error: Exception) -> None: ...


# Outermost first; empty unless histories of modules are on, or an evaluation keeps messages.
_listeners: ContextVar[tuple[CallListener, ...]] = ContextVar("sigwire_call_listeners", default=())


@contextmanager
def recording_calls(log: CallListener | None) -> Generator[None]:
    """Add the model calls inside the block to ``log``. ``None`` adds nothing."""
    before = _listeners.get()
    if log is not None and all(log is not other for other in before):
        _listeners.set((*before, log))
    try:
        yield
    finally:
        _listeners.set(before)


def record_call(
    model: str, request: Request, response: Response, asker: object = None, *, model_type: str = "chat"
) -> None:
    """Add an answered call to the logs of the context."""
    if listeners := _listeners.get():
        record = CallRecord(model, model_type, request, response, asker=asker)
        for each in listeners:
            each.add(record)


def record_failed_call(
    model: str, request: Request, error: BaseException, asker: object = None, *, model_type: str = "chat"
) -> None:
    """Add a failed call to the logs of the context. An interrupt or a cancellation is no failure."""
    if isinstance(error, Exception):
        for each in _listeners.get():
            each.add_failure(CallRecord(model, model_type, request, asker=asker), error)


def recorded_steps(model: str, model_type: str, request: Request, steps: Steps[Response]) -> Steps[Response]:
    """Run the steps of a direct call of a model, and add the call to the logs of the context."""
    try:
        response = yield from steps
    except Exception as error:
        record_failed_call(model, request, error, model_type=model_type)
        raise
    record_call(model, request, response, model_type=model_type)
    return response


def _restored_log(size: int, records: Sequence[CallRecord]) -> CallLog:
    """Return the copy of a log; it is one of ``LOGS`` too."""
    log = CallLog(size)
    for record in records:
        log.add(record)
    return log
