"""All errors that sigwire defines, grouped by the side that can fix them: caller, provider, model.

    SigwireError
    ├── CallerError                   the program that calls sigwire
    │   ├── ConfigurationError          settings, model strings, missing extras
    │   │   ├── LMNotConfigured           no language model was given
    │   │   └── SessionBusy               a session answers another call
    │   ├── SignatureError              text, types or roles contradict each other
    │   │   └── FieldDefinitionError        an attribute of a signature class is not a usable field
    │   ├── InputError                  a call's inputs do not fit its signature
    │   │   └── DataError                 rows, texts or records are missing, or do not fit together
    │   ├── ToolDefinitionError         a tool cannot be offered as it is defined
    │   ├── EventLoopError              a wait for an event loop that cannot go on
    │   ├── OverrideError               a subclass overrides a method that calls would bypass
    │   ├── BudgetSpent                 a call does not fit into what is left of a budget
    │   ├── UnsupportedFeature          the model or provider lacks the feature
    │   │   └── UnsupportedOption         the wire has no such option
    │   └── StateError                  a saved program does not fit the program that loads it
    │       └── MissingState              parts of the program are missing in it
    ├── LMError                       the provider, or the connection to it
    │   ├── LMTransportError            no usable reply: connection refused, reset, truncated
    │   ├── LMTimeoutError              timed out
    │   ├── LMAuthenticationError       the key is missing, wrong or lacks permission
    │   ├── LMBillingError              quota or money is used up
    │   ├── LMRateLimitError            too many requests; retry later
    │   ├── LMInvalidRequestError       the provider refuses the request as it is
    │   │   ├── ContextWindowExceededError  the request is longer than the model reads
    │   │   ├── LMContentFilteredError      the provider's filter refuses the request
    │   │   └── LMUnsupportedModelError     the provider does not serve this model
    │   ├── LMServerError               the provider failed or is overloaded
    │   └── LMUnexpectedError           a reply of an unknown form
    ├── ModelError                    the model answered, and the answer cannot be used
    │   ├── AdapterParseError           the text lacks declared fields
    │   ├── OutputTruncated             truncated by the token limit
    │   ├── EmptyResponse               no text and no tool calls
    │   ├── ContentFiltered             stopped by the provider's filter
    │   ├── MalformedToolCall           a tool call that the provider could not parse
    │   ├── Refused                     the model declined
    │   ├── Unsure                      an output is decided with less confidence than its rule needs
    │   └── ValueReadError              a text or JSON value does not fit the declared type
    │       └── JsonReadError             a text is not JSON and cannot be repaired
    ├── AgentStopped                  a tool loop ended without its declared outputs
    └── ToolSignal                    raised *by* a tool, for the model to read
        ├── RetryTool                   wrong arguments or a transient error: call again
        └── ToolFailed                  the call cannot succeed: do something else

Warnings: DemoWarning, ToolWarning.
A message has three parts: what happened, where, what to do next; attributes have the same facts. No error has a key or header.
An error that leaves a program has the attribute ``where`` and a note with the same facts.
Frames of the library are not shown where an error ends a program, or in IPython (``sigwire.tracebacks``).
``whose`` of a class: whose problem an error inside a tool is. ``ends_run`` decides by it whether the agent's run ends.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

from sigwire.tracebacks import NOT_THE_USERS, install, render

__all__ = [
    "AdapterParseError", "AgentStopped", "BudgetSpent", "CallerError", "ConfigurationError", "ContentFiltered",
    "ContextWindowExceededError", "DataError", "DemoWarning", "EmptyResponse", "EventLoopError", "FieldDefinitionError",
    "InputError", "JsonReadError", "LMAuthenticationError", "LMBillingError", "LMContentFilteredError", "LMError",
    "LMInvalidRequestError", "LMNotConfigured", "LMRateLimitError", "LMServerError", "LMTimeoutError",
    "LMTransportError", "LMUnexpectedError", "LMUnsupportedModelError", "MalformedToolCall", "MissingState",
    "ModelError", "OutputTruncated", "OverrideError", "Refused", "RetryTool", "SessionBusy", "SignatureError",
    "SigwireError", "StateError", "ToolDefinitionError", "ToolFailed", "ToolSignal", "ToolWarning",
    "UnsupportedFeature", "UnsupportedOption", "Unsure", "ValueReadError", "Where", "Whose", "ends_run", "is_interrupt",
    "is_retryable_lm_error", "suggest", "warn_user",
]  # fmt: skip

Whose: TypeAlias = Literal["model", "inner model", "request", "provider", "program", "run", "author"]
"""Whose problem an error inside a tool is: the calling model's, the model's that the tool asks, that of what the tool sent, the
provider's, the program's, the run's, or the tool author's. A "provider", a "program" and a "run" end the agent's run."""


@dataclass(frozen=True, slots=True)
class Where:
    """The place in a program that an error came from. Facts that are unknown are ``None``.

    ``path`` of the innermost module in the called program (``self`` is the program), class and signature of that ``module``,
    ``turn`` of the agent (from 0), ``tool``, ``model``, ``request_id`` of the provider, ``example``: position in the batch.

    >>> str(Where("second", "Predict 'n -> m'", model="openai/gpt-4.1", example=7))
    "at second (Predict 'n -> m') · model openai/gpt-4.1 · example 7"
    """

    path: str = "self"
    module: str = ""
    turn: int | None = None
    tool: str | None = None
    model: str | None = None
    request_id: str | None = None
    example: int | str | None = None

    def __str__(self) -> str:
        facts = {"turn": self.turn, "tool": self.tool, "model": self.model, "example": self.example}
        place = self.module if self.path == "self" else f"{self.path} ({self.module})"
        known = [f"{name} {value}" for name, value in facts.items() if value is not None]
        return f"at {' · '.join([place, *known] if place else known)}"


class SigwireError(Exception):
    """Base of all errors that sigwire defines. ``where``: the place in the program, if the error came out of one.

    ``whose`` (of the class): whose problem an error of the class is that a tool raises.

    >>> issubclass(SignatureError, SigwireError)
    True
    """

    where: Where | None = None
    whose: ClassVar[Whose] = "author"

    def _render_traceback_(self) -> list[str]:
        """Return the lines that IPython shows: the user's frames, without those of the library."""
        return render(self)


install(SigwireError)


def ends_run(error: BaseException) -> bool:
    """Return True if no answer of a model can solve this error of a tool, so that the run of the agent ends with it.

    The class of the error decides, not its cause: a tool that solves the problem raises ``ToolFailed`` from it.

    >>> ends_run(LMServerError("overloaded")), ends_run(Refused("no")), ends_run(KeyError("order"))
    (True, False, False)
    """
    if isinstance(error, SigwireError):
        return error.whose in _ENDS_RUN
    return is_interrupt(error)


def is_interrupt(error: BaseException) -> bool:
    """Return True for an interrupt or a cancellation, also of another thread's task.

    >>> is_interrupt(KeyboardInterrupt()), is_interrupt(TimeoutError())
    (True, False)
    """
    from concurrent.futures import CancelledError  # needed for errors only; unlike that of asyncio, an Exception

    return isinstance(error, CancelledError) or not isinstance(error, Exception)


_ENDS_RUN: frozenset[Whose] = frozenset({"provider", "program", "run"})


class CallerError(SigwireError):
    """The calling program made an invalid request."""

    whose: ClassVar[Whose] = "program"


class ConfigurationError(CallerError, ValueError):
    """Settings, a model string or the installation do not allow the call."""


def suggest(name: str, known: Iterable[str]) -> str:
    """Return a sentence for an error text that names the most similar known name, or one that it begins; "" if none is.

    >>> suggest("temprature", ["temperature", "top_p"]), suggest("desc", ["name", "description"]), suggest("nonsense", ["x"])
    ('Did you mean temperature? ', 'Did you mean description? ', '')
    """
    similar = similar_name(name, known)
    return "" if similar is None else f"Did you mean {similar}? "


def similar_name(name: str, known: Iterable[str]) -> str | None:
    """Return the most similar known name, or the shortest one that begins with the name; ``None`` if there is none."""
    from difflib import get_close_matches  # needed for errors only

    names = sorted(known)
    similar = get_close_matches(name, names, 1, 0.75)
    if not similar and len(name) > 2:  # beginnings are short, and not similar for difflib
        similar = sorted((each for each in names if each.lower().startswith(name.lower())), key=len)
    return similar[0] if similar else None


class LMNotConfigured(ConfigurationError):
    """No language model was given to the call, the module or the settings."""

    def __init__(self, where: str = "this call", hint: str = "") -> None:
        super().__init__(
            f"No language model for {where}. {hint}Pass lm=..., call module.set_lm(...), or set one for everything: "
            'sigwire.configure(lm=sigwire.LM("offline/lexical")).'
        )


class SessionBusy(ConfigurationError, RuntimeError):
    """A session answers another call. Nothing was sent: wait for that call, or make another session."""


class SignatureError(CallerError, ValueError):
    """A signature's text, types or roles contradict each other."""


class FieldDefinitionError(SignatureError, TypeError):
    """An attribute of a signature class is not a valid field."""


class InputError(CallerError, ValueError):
    """A call's inputs are missing, unknown or cannot be sent, such as a text in place of an image."""


class DataError(InputError, ConfigurationError):
    """The given rows, texts, vectors or records are empty, or do not fit together: results of different examples."""


class ToolDefinitionError(CallerError, ValueError):
    """A tool cannot be offered because of its name, schema or function."""


class EventLoopError(CallerError, RuntimeError):
    """A wait would never end: the event loop is blocked by the waiting code, closed, or stopped."""

    whose: ClassVar[Whose] = "run"


class OverrideError(CallerError, TypeError):
    """A subclass overrides a method of sigwire that some calls would bypass; the message names what to override."""


class BudgetSpent(CallerError):
    """A call does not fit into what is left of a budget; nothing was sent. Never retried.

    Attributes: ``part`` ("calls", "tokens", "money"); ``spent``, ``limit`` and ``needed`` of it, the upper bound of the call;
    ``attempts``, the exchanges of the call before.
    """

    whose: ClassVar[Whose] = "run"

    def __init__(self, message: str, *, part: str = "", spent: float = 0, limit: float = 0, needed: float = 0) -> None:
        self.part, self.spent, self.limit, self.needed = part, spent, limit, needed
        self.attempts: tuple[Any, ...] = ()
        super().__init__(message)


class UnsupportedFeature(CallerError, ValueError):
    """The model or its provider does not support a feature of the request."""


class UnsupportedOption(UnsupportedFeature):
    """The provider's wire does not support an option.

    Attributes: ``provider``, ``option``, ``known`` (the supported options).
    """

    def __init__(
        self, *, provider: str, option: str, known: list[str], stage: str = "encoding the request", hint: str = ""
    ) -> None:
        self.provider, self.option, self.known = provider, option, known
        hint = hint or suggest(option, known) or f"Use one of {', '.join(known)}. "
        super().__init__(
            f"{provider} has no option {option!r} ({stage}). {hint}An option that only the provider knows goes into "
            "extra_body, untouched."
        )


class StateError(CallerError, ValueError):
    """A saved program does not fit the program that loads it; nothing was changed."""


class MissingState(StateError, KeyError):
    """A saved program lacks some parts of the program that loads it; nothing was changed."""

    __str__ = Exception.__str__  # KeyError would show the message as a quoted key


class LMError(SigwireError):
    """The provider could not answer. Class attribute ``retryable``: whether a retry can help.

    Attributes: ``message``, ``code`` (short name of the class), ``model``, ``provider``,
    ``provider_code``, ``status`` (HTTP), ``request_id``, ``retry_after`` (seconds); each ``None`` when unknown.
    ``attempts`` are the exchanges of the call; ``partial`` is the partial ``Response`` of a failed stream. ``overload``:
    whether the provider states that it is overloaded. ``empty``: whether a success has no answer and no error.

    >>> error = LMRateLimitError("slow down", provider="openai", retry_after=2.0)
    >>> error.retryable, error.code, error.retry_after
    (True, 'rate_limit', 2.0)
    """

    whose: ClassVar[Whose] = "provider"
    code: str = "lm_error"
    retryable: bool = False
    overload: bool = False
    empty: bool = False

    def __init__(
        self,
        message: str | None = None,
        *,
        model: str | None = None,
        provider: str | None = None,
        provider_code: str | None = None,
        status: int | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.message = message or (type(self).__doc__ or "").split("\n")[0]
        self.model = model
        self.provider = provider
        self.provider_code = provider_code
        self.status = status
        self.request_id = request_id
        self.retry_after = retry_after
        self.attempts: tuple[Any, ...] = ()
        self.partial: Any = None
        super().__init__(self.message)

    def __str__(self) -> str:
        facts = {name.replace("_", " "): getattr(self, name) for name in _LM_FACTS}
        known = ", ".join(f"{name} {value}" for name, value in facts.items() if value is not None)
        return f"{self.message} ({known})" if known else self.message


_LM_FACTS = ("provider", "model", "status", "provider_code", "request_id", "retry_after")


class LMTransportError(LMError):
    """No usable reply arrived: the connection was refused, reset or closed.

    ``stale``: whether the server closed a reused connection before the first byte of a reply.
    """

    code, retryable = "connection", True
    stale: bool = False


class LMTimeoutError(LMError):
    """The provider did not answer in time."""

    code, retryable = "timeout", True


class LMAuthenticationError(LMError):
    """The provider does not accept the key, or the key lacks permission.

    ``key_changed``: whether the function that returns the key now returns another one than the provider refused.
    """

    code = "auth"
    key_changed: bool = False


class LMBillingError(LMError):
    """The account's quota or money is used up."""

    code = "billing"


class LMRateLimitError(LMError):
    """Too many requests for this key; wait and retry."""

    code, retryable = "rate_limit", True


class LMInvalidRequestError(LMError):
    """The provider refuses the request as it is."""

    code = "bad_request"


class ContextWindowExceededError(LMInvalidRequestError):
    """The request is longer than the model can read; shorten it or use a model with a larger context."""

    code = "context_length"
    whose: ClassVar[Whose] = "request"


class LMContentFilteredError(LMInvalidRequestError):
    """The provider's content filter refuses the request; change what is sent."""

    code = "content_filter"
    whose: ClassVar[Whose] = "request"


class LMUnsupportedModelError(LMInvalidRequestError):
    """The provider does not serve this model to this key."""

    code = "not_found"


class LMServerError(LMError):
    """The provider failed or is overloaded."""

    code, retryable = "server", True


class LMUnexpectedError(LMError):
    """The provider's reply has an unknown form."""

    code = "unexpected"


def is_retryable_lm_error(error: BaseException) -> bool:
    """Return True if a retry of the request can help.

    >>> is_retryable_lm_error(LMServerError("overloaded")), is_retryable_lm_error(ValueError("no"))
    (True, False)
    """
    return isinstance(error, LMError) and error.retryable


class ModelError(SigwireError):
    """The answer of the model cannot be used. The error has the whole answer.

    Attributes: ``choice`` (the canonical choice with its raw data), ``text`` of the model, ``finish_reason``, ``attempts``
    (every exchange of the call, failed ones included), ``request_id`` of the last one, ``answers`` (the choices of all answers
    of the call in order, those before re-asks included; the last is ``choice``).
    """

    whose: ClassVar[Whose] = "inner model"

    def __init__(self, message: str, *, choice: Any = None, attempts: tuple[Any, ...] = ()) -> None:
        self.message = message
        self.choice = choice
        self.attempts = attempts
        self.answers: tuple[Any, ...] = () if choice is None else (choice,)
        super().__init__(message)

    @property
    def text(self) -> str:
        """The unchanged text of the model."""
        return self.choice.text if self.choice is not None else ""

    @property
    def request_id(self) -> str | None:
        """The id that the provider gave the last exchange; ``None`` if it gave none."""
        return next((each.request_id for each in reversed(self.attempts) if each.request_id), None)

    @property
    def finish_reason(self) -> str | None:
        """The canonical finish reason."""
        return self.choice.finish_reason if self.choice is not None else None


class AdapterParseError(ModelError, ValueError):
    """The text of the answer lacks declared output fields, or has invalid values for them.

    Further attributes: ``adapter_name``, ``signature``, ``lm_response`` (the text), ``parsed_result`` (the valid fields) and
    ``problems`` by field name.
    """

    def __init__(
        self,
        adapter_name: str,
        signature: Any,
        lm_response: str,
        message: str | None = None,
        parsed_result: dict[str, Any] | None = None,
        *,
        problems: dict[str, str] | None = None,
        choice: Any = None,
        attempts: tuple[Any, ...] = (),
    ) -> None:
        self.adapter_name = adapter_name
        self.signature = signature
        self.lm_response = lm_response
        self.parsed_result = parsed_result
        self.problems = dict(problems or {})
        super().__init__(message or self._describe(), choice=choice, attempts=attempts)

    def _describe(self) -> str:
        found = ", ".join(self.parsed_result or {}) or "none"
        problems = "; ".join(f"{name}: {problem}" for name, problem in self.problems.items()) or "unreadable answer"
        excerpt = self.lm_response if len(self.lm_response) <= 400 else self.lm_response[:400] + " [...]"
        return (
            f"{self.adapter_name} could not parse the model's answer. {problems}. Parsed fields: {found}. "
            f"The whole text is in error.lm_response; max_reasks=1 lets the model correct itself.\nAnswer: {excerpt}"
        )

    @property
    def text(self) -> str:
        """The unchanged text of the model."""
        return self.lm_response


class OutputTruncated(ModelError):
    """The answer was truncated by the token limit; raise ``max_tokens`` or request less."""


class EmptyResponse(ModelError):
    """The model returned no text and no tool calls."""


class ContentFiltered(ModelError):
    """The provider's content filter stopped the answer."""


class MalformedToolCall(ModelError):
    """The provider could not parse a tool call of the model and sent none of it."""


class Refused(ModelError):
    """The model declined to answer; ``choice.refusal`` is its text.

    ``partial``: a ``Prediction`` of the answered outputs, if the model declined single questions; else ``None``.
    """

    partial: Any = None


class Unsure(ModelError):
    """Outputs are decided with less confidence than their rules need, and do not allow ``None``.

    Attributes: ``fields`` (the paths of these outputs), ``evidence`` (of every output, by path) and ``partial`` (the prediction
    with all values as their rules decide them).
    """

    def __init__(
        self,
        message: str,
        *,
        fields: tuple[str, ...] = (),
        evidence: Any = None,
        partial: Any = None,
        choice: Any = None,
        attempts: tuple[Any, ...] = (),
    ) -> None:
        self.fields = fields
        self.evidence: dict[str, Any] = dict(evidence or {})
        self.partial = partial
        super().__init__(message, choice=choice, attempts=attempts)


class ValueReadError(ModelError, ValueError):
    """A text or JSON value does not fit the declared type. The message is for the model."""


class JsonReadError(ValueReadError):
    """A text is not JSON and cannot be repaired.

    Attributes: ``code`` (``"not_json"``, ``"malformed"``, ``"truncated"``, ``"too_deep"``, ``"number"`` or ``"ambiguous"``)
    and ``position`` (the character where parsing stopped).
    """

    def __init__(self, message: str, *, code: str, position: int = 0) -> None:
        self.code = code
        self.position = position
        super().__init__(message)


class AgentStopped(SigwireError):
    """A tool loop ended without its declared outputs.

    Attributes: ``reason`` (a termination reason), ``steps`` (the finished steps), ``history`` (to continue from).
    """

    whose: ClassVar[Whose] = "inner model"

    def __init__(self, message: str, *, reason: str, steps: tuple[Any, ...] = (), history: Any = None) -> None:
        self.reason = reason
        self.steps = steps
        self.history = history
        super().__init__(message)


class ToolSignal(SigwireError):
    """Raised inside a tool. The model sees the message only."""

    whose: ClassVar[Whose] = "model"


class RetryTool(ToolSignal):
    """The arguments were wrong or the error is transient: the model should call again.

    >>> def lookup(order: int) -> str:
    ...     raise RetryTool("order numbers have four digits")
    """


class ToolFailed(ToolSignal, RuntimeError):
    """The call cannot succeed: the model should do something else."""


class DemoWarning(UserWarning):
    """A demo has a field that its signature does not have, and lacks one that the signature has."""


class ToolWarning(UserWarning):
    """A tool raised an exception that is no ``ToolSignal``; the model got a line about it, and the run continued."""


def warn_user(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn at the line of the user's program that led to this call, however deep in the package the reason is found."""
    frame, level = sys._getframe(1), 2  # pyright: ignore[reportPrivateUsage]
    while frame.f_back is not None and str(frame.f_globals.get("__name__")).partition(".")[0] in NOT_THE_USERS:
        frame, level = frame.f_back, level + 1
    warnings.warn(text, category, stacklevel=level)
