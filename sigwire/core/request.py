"""Request: one question to a language model, in no provider's words.

Tools stand here as the OpenAI-like dicts that ``Tool.spec`` gives: a request is data, nothing in it can be executed.
``options`` are sampling and limits by their common names (temperature, top_p, max_tokens, stop, seed, n, logprobs,
reasoning, ...); what we do not model goes into ``options["extra_body"]``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar, Literal

from sigwire.core.json import JsonObject, JsonValue, Value
from sigwire.core.messages import Message

__all__ = ["Request", "ResponseFormat", "ToolChoice"]


@dataclass(frozen=True, slots=True)
class ToolChoice(Value):
    """Whether the model must, may or may not call tools, and which of the offered ones.

    >>> ToolChoice.named("search")
    ToolChoice(mode='required', allowed=('search',))
    """

    mode: Literal["auto", "required", "none"] = "auto"
    allowed: tuple[str, ...] = ()

    AUTO: ClassVar[ToolChoice]
    REQUIRED: ClassVar[ToolChoice]
    NONE: ClassVar[ToolChoice]

    @classmethod
    def named(cls, name: str) -> ToolChoice:
        """The model must call this tool."""
        return cls("required", (name,))


ToolChoice.AUTO = ToolChoice("auto")
ToolChoice.REQUIRED = ToolChoice("required")
ToolChoice.NONE = ToolChoice("none")


@dataclass(frozen=True, slots=True)
class ResponseFormat(Value):
    """Structured output: a JSON Schema with a name, or any JSON object where ``schema`` is ``None``."""

    schema: JsonObject | None = None
    name: str = "response"


@dataclass(frozen=True, slots=True)
class Request(Value):
    """What is asked of a model. ``tool_choice`` and ``parallel_tool_calls`` are left to the provider when ``None``.

    >>> request = Request((Message.user("Hi"),), options={"temperature": 0.0})
    >>> Request.from_json(request.to_json()) == request
    True
    """

    messages: tuple[Message, ...] = ()
    tools: tuple[JsonObject, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    options: JsonObject = field(default_factory=dict[str, JsonValue])
