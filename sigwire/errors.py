"""Everything sigwire raises on purpose, split by who can fix it.

    SigwireError
    ├── CallerError                   the program that calls sigwire
    │   ├── ConfigurationError          settings, model strings, missing extras
    │   │   └── LMNotConfigured           no language model was given anywhere
    │   ├── SignatureError              a signature cannot mean what it says
    │   │   └── FieldDefinitionError        an attribute of a signature class is not a usable field
    │   ├── InputError                  a call's inputs do not fit its signature
    │   ├── ToolDefinitionError         a tool cannot be offered as it is defined
    │   ├── EventLoopError              an event loop would be waited for that cannot go on
    │   ├── UnsupportedFeature          the model or provider has no place for what was asked
    │   │   └── UnsupportedOption         a wire's table does not know an option
    │   └── StateError                  a saved program does not fit the program that loads it
    │       └── MissingState              it has nothing for some of the program's parts
    ├── LMError                       the provider, or the way to it
    │   ├── LMTransportError            no usable answer arrived: refused, reset, cut off
    │   ├── LMTimeoutError              nothing arrived in time
    │   ├── LMAuthenticationError       the key is missing, wrong or not allowed this
    │   ├── LMBillingError              quota or money is used up
    │   ├── LMRateLimitError            too many requests, worth trying later
    │   ├── LMInvalidRequestError       the provider refuses the request as it is
    │   │   ├── ContextWindowExceededError  the request is longer than the model reads
    │   │   ├── LMContentFilteredError      the provider's filter refuses the request
    │   │   └── LMUnsupportedModelError     the provider does not serve this model
    │   ├── LMServerError               the provider failed or is overloaded
    │   └── LMUnexpectedError           an answer that fits nothing known
    ├── ModelError                    the model answered, and the answer cannot be used
    │   ├── AdapterParseError           the text does not give the declared fields
    │   ├── OutputTruncated             cut off by the token limit
    │   ├── EmptyResponse               neither text nor tool calls
    │   ├── ContentFiltered             stopped by the provider's filter
    │   ├── MalformedToolCall           a tool call that not even the provider could read
    │   ├── Refused                     the model declined
    │   └── ValueReadError              a text or JSON value does not fit the declared type
    │       └── JsonReadError             a text is not JSON, and no repair makes it so
    ├── AgentStopped                  a tool loop ended without its declared outputs
    └── ToolSignal                    raised *by* a tool, for the model to read
        ├── RetryTool                   wrong arguments or a passing fault: try again
        └── ToolFailed                  this will not work: do something else

A message says what happened, where, and what to do next; the attributes carry the same facts for code.
Errors never hold a key or a header.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "AdapterParseError",
    "AgentStopped",
    "CallerError",
    "ConfigurationError",
    "ContentFiltered",
    "ContextWindowExceededError",
    "EmptyResponse",
    "EventLoopError",
    "FieldDefinitionError",
    "InputError",
    "JsonReadError",
    "LMAuthenticationError",
    "LMBillingError",
    "LMContentFilteredError",
    "LMError",
    "LMInvalidRequestError",
    "LMNotConfigured",
    "LMRateLimitError",
    "LMServerError",
    "LMTimeoutError",
    "LMTransportError",
    "LMUnexpectedError",
    "LMUnsupportedModelError",
    "MalformedToolCall",
    "MissingState",
    "ModelError",
    "OutputTruncated",
    "Refused",
    "RetryTool",
    "SignatureError",
    "SigwireError",
    "StateError",
    "ToolDefinitionError",
    "ToolFailed",
    "ToolSignal",
    "UnsupportedFeature",
    "UnsupportedOption",
    "ValueReadError",
    "is_retryable_lm_error",
]


class SigwireError(Exception):
    """Base of everything sigwire raises on purpose.

    >>> issubclass(SignatureError, SigwireError)
    True
    """


# --- the caller can fix it ---------------------------------------------------------------------


class CallerError(SigwireError):
    """The calling program asked for something that cannot be done as asked."""


class ConfigurationError(CallerError, ValueError):
    """Settings, a model string or the installation do not allow the call."""


class LMNotConfigured(ConfigurationError):
    """No language model was given to the call, the module or the settings."""

    def __init__(self, where: str = "this call") -> None:
        super().__init__(
            f"No language model for {where}. Pass lm=..., call module.set_lm(...), or set one for everything: "
            'sigwire.configure(lm=sigwire.LM("offline/lexical")).'
        )


class SignatureError(CallerError, ValueError):
    """A signature's text, types or roles contradict each other."""


class FieldDefinitionError(SignatureError, TypeError):
    """An attribute of a signature class is not a usable field."""


class InputError(CallerError, ValueError):
    """A call's inputs are missing, unknown or of the wrong type for the signature."""


class ToolDefinitionError(CallerError, ValueError):
    """A tool cannot be offered: its name, schema or function does not allow it."""


class EventLoopError(CallerError, RuntimeError):
    """Something would be waited for that cannot happen: its event loop is held by who waits, is closed, or stands still."""


class UnsupportedFeature(CallerError, ValueError):
    """The model or its provider has no place for what was asked."""


class UnsupportedOption(UnsupportedFeature):
    """The provider's wire has no place for an option.

    Attributes: ``provider``, ``option``, ``known`` (the options it has).
    """

    def __init__(self, *, provider: str, option: str, known: list[str]) -> None:
        self.provider, self.option, self.known = provider, option, known
        super().__init__(
            f"{provider} has no option {option!r} (encoding the request). "
            f"Use one of {', '.join(known)}, or pass it untouched in extra_body."
        )


class StateError(CallerError, ValueError):
    """A saved program does not fit the program that loads it; nothing was changed."""


class MissingState(StateError, KeyError):
    """A saved program has nothing for some parts of the program that loads it; nothing was changed."""

    __str__ = Exception.__str__  # KeyError would show the message as a quoted key


# --- the provider, or the way to it ------------------------------------------------------------


class LMError(SigwireError):
    """The provider could not answer. Class attribute ``retryable`` says whether trying again can help.

    Attributes: ``message``, ``code`` (sigwire's short word for the class), ``model``, ``provider``,
    ``provider_code``, ``status`` (HTTP), ``request_id``, ``retry_after`` (seconds); each ``None`` when unknown.
    ``attempts`` are the requests that were made for the call, all of them failed; ``partial`` is the answer as far as
    it had come (a ``Response``) where a stream failed.

    >>> error = LMRateLimitError("slow down", provider="openai", retry_after=2.0)
    >>> error.retryable, error.code, error.retry_after
    (True, 'rate_limit', 2.0)
    """

    code: str = "lm_error"
    retryable: bool = False

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
        facts = {
            "provider": self.provider,
            "model": self.model,
            "status": self.status,
            "provider code": self.provider_code,
            "request id": self.request_id,
            "retry after": self.retry_after,
        }
        known = ", ".join(f"{name} {value}" for name, value in facts.items() if value is not None)
        return f"{self.message} ({known})" if known else self.message


class LMTransportError(LMError):
    """No usable answer arrived: the connection was refused, reset or cut off."""

    code, retryable = "connection", True


class LMTimeoutError(LMError):
    """The provider did not answer in time."""

    code, retryable = "timeout", True


class LMAuthenticationError(LMError):
    """The provider does not accept the key, or the key may not do this."""

    code = "auth"


class LMBillingError(LMError):
    """The account's quota or money is used up."""

    code = "billing"


class LMRateLimitError(LMError):
    """Too many requests for this key; wait and try again."""

    code, retryable = "rate_limit", True


class LMInvalidRequestError(LMError):
    """The provider refuses the request as it is."""

    code = "bad_request"


class ContextWindowExceededError(LMInvalidRequestError):
    """The request is longer than the model can read; shorten it or use a model with a larger context."""

    code = "context_length"


class LMContentFilteredError(LMInvalidRequestError):
    """The provider's content filter refuses the request; change what is sent."""

    code = "content_filter"


class LMUnsupportedModelError(LMInvalidRequestError):
    """The provider does not serve this model to this key."""

    code = "not_found"


class LMServerError(LMError):
    """The provider failed or is overloaded."""

    code, retryable = "server", True


class LMUnexpectedError(LMError):
    """The provider's answer fits nothing known."""

    code = "unexpected"


def is_retryable_lm_error(error: BaseException) -> bool:
    """Whether sending the same request again can help.

    >>> is_retryable_lm_error(LMServerError("overloaded")), is_retryable_lm_error(ValueError("no"))
    (True, False)
    """
    return isinstance(error, LMError) and error.retryable


# --- the model answered, and the answer cannot be used -------------------------------------------


class ModelError(SigwireError):
    """The model's answer cannot be used. Nothing of it is lost.

    Attributes: ``choice`` (the normalized choice, with its raw data), ``text`` (what the model wrote),
    ``finish_reason``, ``attempts`` (every request made for this call, failed ones included).
    """

    def __init__(self, message: str, *, choice: Any = None, attempts: tuple[Any, ...] = ()) -> None:
        self.message = message
        self.choice = choice
        self.attempts = attempts
        super().__init__(message)

    @property
    def text(self) -> str:
        """What the model wrote, as it came."""
        return self.choice.text if self.choice is not None else ""

    @property
    def finish_reason(self) -> str | None:
        """Why the model stopped, in sigwire's words."""
        return self.choice.finish_reason if self.choice is not None else None


class AdapterParseError(ModelError, ValueError):
    """The answer's text does not give the declared output fields.

    Beside ModelError's attributes: ``adapter_name``, ``signature``, ``lm_response`` (the text),
    ``parsed_result`` (fields that were read well) and ``problems`` (field name -> what is wrong with it).
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
            f"{self.adapter_name} could not read the model's answer. {problems}. Fields read: {found}. "
            f"The whole text is in error.lm_response; max_repairs=1 lets the model correct itself.\nAnswer: {excerpt}"
        )

    @property
    def text(self) -> str:
        """What the model wrote, as it came."""
        return self.lm_response


class OutputTruncated(ModelError):
    """The answer was cut off by the token limit; raise ``max_tokens`` or ask for less."""


class EmptyResponse(ModelError):
    """The model returned neither text nor tool calls."""


class ContentFiltered(ModelError):
    """The provider's content filter stopped the answer."""


class MalformedToolCall(ModelError):
    """The model tried to call a tool and the provider could not read the call; nothing of it arrived."""


class Refused(ModelError):
    """The model declined to answer; ``choice.refusal`` has its words."""


class ValueReadError(ModelError, ValueError):
    """A text or JSON value does not fit the declared type; the message is written for the model to read."""


class JsonReadError(ValueReadError):
    """A text is not JSON, and no repair makes it so.

    Attributes: ``code`` (``"not_json"``, ``"malformed"``, ``"truncated"``, ``"too_deep"``, ``"number"`` or ``"ambiguous"``)
    and ``position`` (the character where reading stopped).
    """

    def __init__(self, message: str, *, code: str, position: int = 0) -> None:
        self.code = code
        self.position = position
        super().__init__(message)


class AgentStopped(SigwireError):
    """A tool loop ended without its declared outputs.

    Attributes: ``reason`` (a termination reason), ``steps`` (what was done), ``history`` (to go on from).
    """

    def __init__(self, message: str, *, reason: str, steps: tuple[Any, ...] = (), history: Any = None) -> None:
        self.reason = reason
        self.steps = steps
        self.history = history
        super().__init__(message)


# --- raised by tools ---------------------------------------------------------------------------


class ToolSignal(SigwireError):
    """Raised inside a tool to tell the model something; the message is all the model sees."""


class RetryTool(ToolSignal):
    """The arguments were wrong or the fault will pass: the model should call again.

    >>> def lookup(order: int) -> str:
    ...     raise RetryTool("order numbers have four digits")
    """


class ToolFailed(ToolSignal):
    """This call cannot succeed: the model should do something else."""
