"""Request: the input of a language model, independent of providers.

Tools are the OpenAI-like dicts of ``Tool.spec``: a request is data and contains nothing to execute. ``options`` are
sampling options and limits by their common names (temperature, top_p, max_tokens, stop, seed, n, logprobs, reasoning, ...);
``options["extra_body"]`` has options of a provider without a common name.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from sigwire.core.json import JsonObject, JsonValue, Value
from sigwire.core.messages import Message
from sigwire.core.tools.choice import ToolChoice
from sigwire.errors import ConfigurationError, InputError
from sigwire.keywords import ChecksKeywords
from sigwire.show.card import HasCard

__all__ = ["MemoTuple", "Request", "ResponseFormat", "check_prompt_cache", "memoized"]

R = TypeVar("R")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ResponseFormat(Value, ChecksKeywords):
    """Structured output: a JSON Schema with a name, or any JSON object if ``schema`` is ``None``.

    ``required``: the request is refused if the provider cannot enforce it; else an instruction replaces it, with a warning.
    """

    schema: JsonObject | None = None
    name: str = "response"
    required: bool = False


@dataclass(frozen=True, slots=True, repr=False)
class Request(Value, HasCard):
    """The input of one model call. If ``tool_choice`` or ``parallel_tool_calls`` is ``None``, the provider decides.

    ``tools`` are read from any public form of a tool (``core.tools.specs``); others raise ``ToolDefinitionError``. They may
    be a ``MemoTuple``, if its specs never change: codecs then encode the specs once. ``repeated``: how many of the first
    messages other requests repeat, ascending: instructions and demos; all messages of a conversation. Prompt caches are
    marked there, if the provider has marks. ``repeated_part``: a message, and how many of its first parts many requests repeat
    (``InputField(repeats=True)``).

    >>> request = Request((Message.user("Hi"),), options={"temperature": 0.0})
    >>> Request.from_json(request.to_json()) == request
    True
    """

    _shown_by = "sigwire.core.cards.messages:request"
    messages: tuple[Message, ...] = ()
    tools: tuple[JsonObject, ...] = ()
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    response_format: ResponseFormat | None = None
    options: JsonObject = field(default_factory=dict[str, JsonValue])
    repeated: tuple[int, ...] = ()
    repeated_part: tuple[int, int] | None = None

    def __post_init__(self) -> None:
        choice: Any = self.tool_choice
        if choice is not None and not isinstance(choice, ToolChoice):
            raise InputError(
                f"tool_choice of a Request is a ToolChoice, not {choice!r:.80}. Write ToolChoice.named(...) or .REQUIRED."
            )
        if not self.tools:
            return
        from sigwire.core.tools.specs import are_specs, read_tools  # lazy: a program without tools must not load it

        if not memoized(self.tools, are_specs):
            object.__setattr__(self, "tools", read_tools(self.tools))

    def with_options(self, options: JsonObject) -> Request:
        """Return a copy with other options. (Called by every call; ``replace`` is slow.)"""
        return Request(
            self.messages,
            self.tools,
            self.tool_choice,
            self.parallel_tool_calls,
            self.response_format,
            options,
            self.repeated,
            self.repeated_part,
        )


_CACHE_FORMS = """prompt_cache="auto", False or {"ttl": "5m" or "1h", "key": "..."}"""


def check_prompt_cache(options: Mapping[str, object]) -> None:
    """Raise ``ConfigurationError`` for an option of the provider's prompt cache that is not known.

    >>> check_prompt_cache({"prompt_cache": {"ttl": "2h"}})
    Traceback (most recent call last):
    sigwire.errors.ConfigurationError: prompt_cache={'ttl': '2h'} is not known. Write prompt_cache="auto", False or ...
    """
    marks, given = options.get("cache"), options.get("prompt_cache")
    if isinstance(marks, str | Mapping) and marks != "on":
        raise ConfigurationError(f"cache={marks!r:.80} does not mark a provider's prompt cache. Write {_CACHE_FORMS}.")
    if given is None or given is False or given == "auto":
        return
    settings = cast("Mapping[str, object]", given) if isinstance(given, Mapping) else {"": given}
    for name, value in settings.items():
        is_known = value in ("5m", "1h") if name == "ttl" else name == "key" and isinstance(value, str)
        if not is_known:
            raise ConfigurationError(f"prompt_cache={given!r:.80} is not known. Write {_CACHE_FORMS}.")


class MemoTuple(tuple[T, ...]):
    """A tuple that keeps the results of ``memoized``. Its items must not change. Copies and pickles are plain tuples."""

    def __init__(self, items: Iterable[T] = (), /) -> None:
        self.results: dict[tuple[Hashable, ...], Any] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return tuple, (tuple(self),)


def memoized(items: Sequence[Any], compute: Callable[..., R], *args: Hashable) -> R:
    """Return ``compute(items, *args)``. A ``MemoTuple`` keeps the result, which must not change either.

    >>> numbers = MemoTuple([2, 3])
    >>> memoized(numbers, sorted) is memoized(numbers, sorted)
    True
    """
    if not isinstance(items, MemoTuple):
        return compute(items, *args)
    key, results = (compute, *args), items.results
    try:
        return cast(R, results[key])
    except KeyError:  # a look beforehand could find what another thread then clears
        result = compute(items, *args)
    if len(results) >= _MOST_RESULTS:
        results.clear()
    results[key] = result
    return result


_MOST_RESULTS = 32
