"""``Failure``: why a run of a program has no output or no score, and of which kind the reason is.

The class of the error decides the kind; the table has the rows, and the nearest class of an error counts:

    program    the answer of the model, the tools or the program's code failed: scored with ``failure_score``
    provider   the provider did not answer: not scored, and run again by a resumed evaluation
    metric     the metric raised, or returned no score, or a judge that the program asks gave no verdict: not scored
    caller     nothing else can succeed: authentication, billing, configuration
    worker     the process of the run ended: not scored
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal, TypeAlias

from sigwire.core.example import Example
from sigwire.core.json import JsonObject, decode_fields
from sigwire.errors import (
    BudgetSpent,
    ConfigurationError,
    EventLoopError,
    LMAuthenticationError,
    LMBillingError,
    LMError,
    LMInvalidRequestError,
    LMUnsupportedModelError,
    OverrideError,
    SignatureError,
    SigwireError,
    StateError,
    ToolDefinitionError,
    UnsupportedOption,
    Where,
    suggest,
)
from sigwire.evaluate.scores import MetricError
from sigwire.modules.agents.tool_results import SECRET_TEXT
from sigwire.modules.call_limit import CallTimeout
from sigwire.show.card import BoundedRepr

__all__ = ["ExampleTimeout", "Failure", "FailureKind", "failure_of", "missing_label", "unscored"]

FailureKind: TypeAlias = Literal["program", "provider", "metric", "caller", "worker"]

_KINDS: dict[type[BaseException], FailureKind] = {
    BudgetSpent: "caller",
    ConfigurationError: "caller",
    EventLoopError: "caller",
    LMAuthenticationError: "caller",
    LMBillingError: "caller",
    LMUnsupportedModelError: "caller",
    MetricError: "metric",  # also of a judge that the program asks
    OverrideError: "caller",
    SignatureError: "caller",
    StateError: "caller",
    ToolDefinitionError: "caller",
    UnsupportedOption: "caller",
    LMError: "provider",  # rate limit, server, timeout, transport, unexpected reply
    LMInvalidRequestError: "program",  # context window, content filter
    BaseException: "program",  # model errors, stopped agents, tools, the program's own exceptions
}
_MOST_CHARACTERS = 4_000


class ExampleTimeout(CallTimeout):
    """A program ran longer on one example than ``timeout`` allows."""


@dataclass(frozen=True, slots=True)
class Failure(BoundedRepr):
    """A failed run. ``kind``, class name and message of the error; ``path`` and ``turn``: its place in the program.

    ``is_bug``: the class is not one of sigwire's, so code of the user raised it; then ``traceback`` is its text.

    >>> Failure("provider", "LMServerError", "overloaded").to_json()
    {'kind': 'provider', 'type': 'LMServerError', 'message': 'overloaded'}
    """

    kind: FailureKind
    type: str
    message: str
    path: str = ""
    turn: int | None = None
    traceback: str = ""
    is_bug: bool = False

    def to_json(self) -> JsonObject:
        """Return the failure as JSON, without the facts that are unknown."""
        return {name: value for name, value in asdict(self).items() if value not in ("", None, False)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Failure:
        """Decode the result of ``to_json``. Further members are ignored."""
        return cls(**decode_fields(cls, data, ignores_unknown=True))


def failure_of(error: Exception, *, in_metric: bool = False) -> Failure:
    """Return the failure of an error. An error of a metric is of the kind "metric", if it is not of the kind "caller".

    >>> failure_of(LMBillingError("no money left")).kind, failure_of(KeyError("answer")).is_bug
    ('caller', True)
    >>> failure_of(KeyError("answer"), in_metric=True).kind
    'metric'
    """
    kind: FailureKind = next(_KINDS[cls] for cls in type(error).__mro__ if cls in _KINDS)
    if in_metric and kind != "caller":
        kind = "metric"
    is_bug = not isinstance(error, SigwireError)
    where = _where(error)
    return Failure(
        kind=kind,
        type=type(error).__name__,
        message=_shortened(_message(error)),
        path="" if where is None or where.path == "self" else where.path,
        turn=None if where is None else where.turn,
        traceback=_shortened(_traceback(error)) if is_bug else "",
        is_bug=is_bug,
    )


def unscored(error: Exception) -> Failure:
    """Return the failure of outputs whose scoring an error ended: a resumed run scores them, whatever the error was.

    >>> unscored(BudgetSpent("spent")).kind
    'metric'
    """
    return replace(failure_of(error, in_metric=True), kind="metric")


def missing_label(error: Exception, example: Example) -> ConfigurationError | None:
    """Return the caller's error if a metric read a field that the example does not have, else ``None``."""
    name = getattr(error, "name", None) if isinstance(error, AttributeError) and error.obj is example else None
    if isinstance(error, KeyError) and error.args and _last_self(error) is example:
        name = error.args[0]
    if name is None:
        return None
    known = list(Example.keys(example))
    return ConfigurationError(
        f"The metric reads the field {name!r}, which the example does not have (scoring an example). "
        f"{suggest(str(name), known)}The fields of the example are {', '.join(known)}."
    )


def _last_self(error: Exception) -> object:
    """Return the object whose method raised an error."""
    last, frames = None, error.__traceback__
    while frames is not None:
        last, frames = frames.tb_frame.f_locals.get("self"), frames.tb_next
    return last


def _message(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # ``__str__`` of a user's class may raise anything
        return f"<{type(error).__name__} without a text>"


def _where(error: Exception) -> Where | None:
    """Return the place of an error: its attribute, or that of its note for classes that are not sigwire's."""
    if isinstance(error, SigwireError):
        return error.where
    notes = (getattr(note, "where", None) for note in getattr(error, "__notes__", ()))
    return next((where for where in notes if isinstance(where, Where)), None)


def _traceback(error: Exception) -> str:
    """Return the traceback from the first frame outside of sigwire on."""
    frames = error.__traceback__
    while frames is not None and str(frames.tb_frame.f_globals.get("__name__")).startswith("sigwire."):
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames or error.__traceback__))


def _shortened(text: str) -> str:
    """Return the end of a long text: a traceback ends with the error."""
    text = SECRET_TEXT.sub(lambda found: f"{found[1] or ''}***", text)
    return text if len(text) <= _MOST_CHARACTERS else f"[...]{text[-_MOST_CHARACTERS:]}"
