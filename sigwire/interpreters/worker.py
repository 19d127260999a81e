"""``CodeWorker``: what an interpreter has to provide, one process that runs code up to its next host call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sigwire.core.json import JsonValue
from sigwire.interpreters.host_calls import HostCall, HostReply

__all__ = ["CodeEnd", "CodeWorker", "PrintedText", "WorkerStart"]


@dataclass(frozen=True, slots=True)
class CodeEnd:
    """The end of a run. ``is_lost``: the worker cannot run more code, and its variables are lost."""

    value: object = None
    error: str = ""
    is_lost: bool = False


class PrintedText:
    """The printed text of a run, up to a number of characters.

    >>> output = PrintedText(5)
    >>> output.write("hello"), output.write(" world")
    (None, None)
    >>> output.text
    'hello\\n... (the output ends after 5 characters)'
    """

    def __init__(self, most: int) -> None:
        self._most, self._remaining, self._kept, self._is_cut = most, most, [""], False

    def write(self, text: str) -> None:
        self._is_cut = self._is_cut or len(text) > self._remaining
        if self._remaining:
            self._kept.append(text[: self._remaining])
            self._remaining -= len(self._kept[-1])

    @property
    def text(self) -> str:
        # No count of the rest: code that is stopped by the clock prints another number in each repetition.
        end = f"\n... (the output ends after {self._most} characters)" if self._is_cut else ""
        return "".join(self._kept) + end


class CodeWorker(Protocol):
    """One process with the variables of a session. The methods block; a worker is used by one thread at a time."""

    def start(
        self, code: str, functions: Sequence[str], variables: Mapping[str, JsonValue], output: PrintedText
    ) -> HostCall | CodeEnd:
        """Run code up to its first host call or its end."""
        ...

    def resume(self, reply: HostReply) -> HostCall | CodeEnd:
        """Reply to the host call, and run up to the next one or the end."""
        ...

    def close(self) -> None:
        """Free the process."""
        ...


class WorkerStart(Protocol):
    """Starts a worker. Its clock and its random numbers begin at ``now``, so that a repeated run makes the same calls."""

    def __call__(self, now: datetime, /) -> CodeWorker: ...
