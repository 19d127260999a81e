"""``Interpreter`` and ``CodeSession``: the protocols of a place where code runs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

from sigwire.core.json import JsonValue
from sigwire.effects.steps import Steps
from sigwire.interpreters.code_limits import CodeLimits
from sigwire.interpreters.code_result import CodeResult
from sigwire.interpreters.host_calls import HostFunction

__all__ = ["CodeSession", "HostNames", "Interpreter"]

HostNames: TypeAlias = "Mapping[str, HostFunction | JsonValue]"
"""Names that code finds: host functions, and JSON values as variables. A name without an entry is a ``NameError``."""


class CodeSession(Protocol):
    """Runs of code that share their variables."""

    def steps(self, code: str, names: HostNames) -> Steps[CodeResult]:
        """Return the steps of one run of code. Each host call yields the effects of its function.

        Errors of the code are in the result. If a limit or a crash ended the process, the variables are lost: the
        result has ``is_lost``.
        """
        ...

    def close(self) -> None:
        """End the session. Never waits for running code."""
        ...


class Interpreter(Protocol):
    """A place where code runs. Sessions of one interpreter are independent and may run at once."""

    @property
    def capabilities(self) -> str:
        """The modules and rights of code, as a sentence for a model."""
        ...

    @property
    def limits(self) -> CodeLimits: ...

    def open(self) -> None:
        """Start what sessions need; the first session does it otherwise."""
        ...

    def close(self) -> None:
        """End all processes. The next session starts new ones."""
        ...

    def session(self, limits: CodeLimits | None = None) -> CodeSession:
        """Return a new session, with the interpreter's limits or with these."""
        ...
