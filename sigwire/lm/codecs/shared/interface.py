"""The shapes that go into a codec and come out of it; ``base`` says how they fit together. Values and protocols only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, Protocol, TypeAlias

from typing_extensions import TypeVar

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.request import Request
from sigwire.core.response import LMWarning, Response
from sigwire.core.tools.names import NameMap, NameRules
from sigwire.errors import LMError
from sigwire.lm.codecs.shared.history import HistoryRules
from sigwire.lm.codecs.shared.schema import AS_IS, SchemaRules

if TYPE_CHECKING:
    from sigwire.core.events import StreamEvent

__all__ = ["Codec", "Decoder", "EncodedRequest", "Framing", "ModelFacts", "StreamingCodec", "Target", "WireProfile"]


@dataclass(frozen=True, kw_only=True)
class WireProfile:
    """How one host speaks a wire. Subclass it per wire; a compatible host is an instance with other values.

    ``family``: who made, and alone understands, opaque items and signatures. ``path``: appended to the host's base URL,
    ``{model}`` is filled in. ``headers``: fixed ones, never a key. ``names``: the tool names the host takes.
    ``history_rules``: how history must look. ``tool_schema`` / ``output_schema``: which JSON Schema the host takes, by place.
    """

    family: str
    path: str
    names: NameRules
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    history_rules: HistoryRules = HistoryRules()
    tool_schema: SchemaRules = AS_IS
    output_schema: SchemaRules = AS_IS

    def __post_init__(self) -> None:
        # One truth: a row that changes its family must not go on replaying the items of its base.
        object.__setattr__(self, "history_rules", replace(self.history_rules, family=self.family))


D = TypeVar("D", bound=WireProfile, covariant=True, default=WireProfile)
D_contra = TypeVar("D_contra", bound=WireProfile, contravariant=True, default=WireProfile)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What one model takes, beside its capabilities. The defaults describe a model that refuses nothing.

    ``sampling``: whether temperature and the like are taken; "unless_reasoning" where only with thinking switched
    off. ``stop``: whether stop sequences are taken. ``efforts``: the reasoning words the model takes, weakest first,
    "off" among them when it can be switched off; ``None`` leaves it to the dialect. ``default_effort``: what it does
    unasked (``None``: no reasoning). ``thinking``: how reasoning is asked for: by effort, by token budget, or not at
    all ("none"). ``budgets``: least and greatest thinking budget. ``forced_choice``: whether tool_choice may force a
    call, ever / with reasoning on. ``tools_with_reasoning``: whether tools may be offered with reasoning on.
    ``builtin_with_functions``: whether tools that the provider runs may stand beside functions. ``later_system``:
    whether system turns may stand inside the conversation. ``signed_calls``: whether calls in history need the
    provider's signature. ``prefill``: whether the model goes on with an answer that history ends with.
    ``media_in_results``: whether tool results may hold images on a wire that has a place for
    them. ``cache_breakpoints``: whether explicit cache marks are taken. ``default_max_tokens``: sent
    where the wire requires a limit and the caller gave none.
    """

    sampling: Literal["always", "unless_reasoning", "never"] = "always"
    stop: bool = True
    efforts: tuple[str, ...] | None = None
    default_effort: str | None = None
    thinking: Literal["effort", "budget", "none"] = "effort"
    budgets: tuple[int, int] = (1024, 32768)
    forced_choice: bool = True
    forced_choice_with_reasoning: bool = True
    tools_with_reasoning: bool = True
    builtin_with_functions: bool = True
    later_system: bool = False
    signed_calls: bool = False
    prefill: bool = True
    media_in_results: bool = True
    cache_breakpoints: bool = False
    default_max_tokens: int = 4096


@dataclass(frozen=True, slots=True)
class Target(Generic[D]):
    """Where a request goes: everything an encoder may decide by."""

    provider: str
    model: str
    profile: D
    capabilities: Capabilities = Capabilities()
    facts: ModelFacts = ModelFacts()

    @property
    def label(self) -> str:
        """Who it is, for errors and warnings: ``openai/gpt-5-mini``."""
        return f"{self.provider}/{self.model}"

    @property
    def history_rules(self) -> HistoryRules:
        """How history must look: the dialect's rules, with media beside the results where the model wants them there."""
        rules = self.profile.history_rules
        return rules if self.facts.media_in_results else replace(rules, result_media="user")


class EncodedRequest(NamedTuple):
    """A request in a provider's words, ready for the transport.

    ``headers`` hold no key. ``warnings`` go onto the response (decode() puts them there). ``names`` maps tool names
    both ways. ``call_ids`` are the ids in the conversation: an invented one must not repeat them. ``repeat`` is how
    often the client has to send this for the choices that were asked for, where the wire gives one at a time. ``stop``
    are the stop sequences where the wire has none: decode() cuts the text there.
    """

    path: str
    body: JsonObject
    query: Mapping[str, str]
    headers: Mapping[str, str]
    warnings: tuple[LMWarning, ...]
    names: NameMap
    call_ids: frozenset[str] = frozenset()
    repeat: int = 1
    stop: tuple[str, ...] = ()


class Codec(Protocol[D_contra]):
    """One wire. A module with these functions is one.

    ``encode`` raises ``UnsupportedOption`` or ``UnsupportedFeature`` before anything is sent. ``decode`` takes the
    parsed body of a successful reply and raises an ``LMError`` for a failure inside it. ``decode_error`` gives the
    error for any other status.

    A codec may have more, where its wire has need of it: ``resume(body, sent)`` gives the request that goes on with a
    turn that the provider paused, ``recover(status, headers, body, sent, target)`` the answer that an error reply holds,
    ``otherwise(error, sent)`` a refused request in another form; each gives ``None`` for all others.
    """

    def encode(self, request: Request, target: Target[D_contra], *, stream: bool = False) -> EncodedRequest: ...

    def decode(self, body: JsonValue, sent: EncodedRequest, target: Target[D_contra]) -> Response: ...

    def decode_error(
        self, status: int, headers: Mapping[str, str], body: bytes | str, target: Target[D_contra]
    ) -> LMError: ...


Framing: TypeAlias = Literal["ndjson", "sse"]
"""How a streamed reply is cut into events: a line of JSON each, or server-sent events (``lm.sse`` reads both)."""


class Decoder(Protocol):
    """A streamed reply: events of the wire in, stream events out.

    ``feed`` takes one event's JSON and raises the ``LMError`` of a failure in the stream. ``close`` ends the reply: it
    gives the events that only the end can tell, and raises a retryable ``LMError`` where the answer was cut off.
    """

    def feed(self, event: JsonValue) -> list[StreamEvent]: ...

    def close(self) -> list[StreamEvent]: ...


class StreamingCodec(Codec[D_contra], Protocol[D_contra]):
    """A wire whose replies can be read as they come. ``encode(..., stream=True)`` asks for that."""

    FRAMING: Framing

    def decoder(self, sent: EncodedRequest, target: Target[D_contra]) -> Decoder: ...
