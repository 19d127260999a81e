"""The input and output of a codec: values and protocols only. ``sigwire.lm.codecs`` describes how they fit together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, Protocol, TypeAlias

from typing_extensions import TypeVar

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.request import Request
from sigwire.core.response import LMWarning, Response
from sigwire.core.tools.names import NameMap, NameRules
from sigwire.errors import LMError
from sigwire.lm.codecs.shared.schema import AS_IS, SchemaRules
from sigwire.lm.histories.call_ids import CallIdRules
from sigwire.lm.histories.rules import HistoryRules

if TYPE_CHECKING:
    from sigwire.core.events import StreamEvent
    from sigwire.core.evidence import Question

__all__ = [
    "Codec",
    "Decoder",
    "EncodedRequest",
    "FrameDecoder",
    "Framing",
    "ModelFacts",
    "StreamingCodec",
    "Target",
    "WireProfile",
]


@dataclass(frozen=True, kw_only=True, eq=False)
class WireProfile:
    """The differences of one host from a wire. Each wire has a subclass; a compatible host is an instance with other values.

    Compared by identity, as is a subclass with ``eq=False``; such a profile may be part of the key of a cache.

    ``family``: the provider that makes, and alone understands, opaque items and signatures. ``path``: appended to the
    host's base URL, with ``{model}`` filled in. ``headers``: fixed headers, never a key. ``names``: the tool names that
    the host accepts. ``history_rules``: the form of history. ``tool_schema``, ``output_schema``: the JSON Schema that the
    host accepts in each place; ``strict_schema``: that of an output which the host enforces on demand (``strict``), ``None`` if
    it has no such demand. ``tool_fields``: what a function may have beside name, description and parameters. ``media``:
    the kinds of input that user turns may hold. ``later_system``: whether system turns inside the conversation have a place
    of their own. ``tool_search``: the kind and the settings of the provider's tool that finds deferred functions, ``None``
    without one. The rest holds for every model of the host, as in ``ModelFacts``: ``temperature``,
    ``temperature_or_top_p``, ``blank_stops``, ``trims_prefill``.
    """

    family: str
    path: str
    names: NameRules
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    history_rules: HistoryRules = HistoryRules()
    tool_schema: SchemaRules = AS_IS
    output_schema: SchemaRules = AS_IS
    strict_schema: SchemaRules | None = None
    tool_fields: frozenset[str] = frozenset()
    media: frozenset[str] = frozenset({"image", "audio", "file"})
    later_system: bool = False
    tool_search: tuple[str, JsonObject] | None = None
    temperature: float | None = None
    temperature_or_top_p: bool = False
    blank_stops: bool = True
    trims_prefill: bool = False

    def __post_init__(self) -> None:
        # A row with another family must not replay the items of the row that it replaces.
        object.__setattr__(self, "history_rules", replace(self.history_rules, family=self.family))


D = TypeVar("D", bound=WireProfile, covariant=True, default=WireProfile)
D_contra = TypeVar("D_contra", bound=WireProfile, contravariant=True, default=WireProfile)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """The limits of one model, beyond its capabilities. The defaults describe a model that refuses nothing.

    ``family``: whose limits of media the model has on hosts without their own ("claude"; ``lm.media.limits``).
    ``sampling``: whether temperature and similar options are accepted; "unless_reasoning": only with reasoning off.
    ``stop``: whether stop sequences are accepted. ``efforts``: the efforts of the model, weakest first, with "off" if
    reasoning can be switched off; ``None``: those of the profile. ``default_effort``: the effort without a request
    (``None``: no reasoning). ``thinking``: reasoning is requested by effort, by token budget, or never ("none").
    ``budgets``: least and greatest thinking budget in tokens. ``forced_choice``, ``forced_choice_with_reasoning``: whether
    tool_choice may force a call. ``tools_with_reasoning``: whether tools are accepted with reasoning on.
    ``builtin_with_functions``: whether tools that the provider runs are accepted beside functions. ``later_system``:
    whether system turns are accepted inside the conversation. ``signed_calls``: whether calls in history need the
    provider's signature. ``prefill``: whether the model continues an assistant turn at the end of the history.
    ``media_in_results``: whether tool results may hold images, on a wire that allows them. ``cache_breakpoints``:
    whether explicit cache marks are accepted. ``call_ids``: the call ids that the model's chat template accepts, on every
    host. ``default_max_tokens``: sent if the wire requires a limit and the caller gave none. ``max_output``: the most output
    tokens of one answer. ``temperature``: the greatest temperature. ``temperature_or_top_p``: whether one excludes the other.
    ``blank_stops``: whether a stop sequence may be white space. ``trims_prefill``: whether white space at the end of an
    answer to continue is refused. ``thinks_first``: whether thinking is refused inside a loop of calls that started without.
    ``tool_search``: whether the model uses the tool search of its provider (``WireProfile.tool_search``).
    """

    family: str = ""
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
    call_ids: CallIdRules | None = None
    default_max_tokens: int = 4096
    max_output: int | None = None
    temperature: float | None = None
    temperature_or_top_p: bool = False
    blank_stops: bool = True
    trims_prefill: bool = False
    thinks_first: bool = False
    tool_search: bool = False

    def known_efforts(self, usual: tuple[str, ...]) -> tuple[str, ...]:
        """Return the efforts of the model, or the usual ones of its host; ``()`` for a model that reasons by no request."""
        return () if self.thinking == "none" else usual if self.efforts is None else self.efforts


@dataclass(frozen=True, slots=True)
class Target(Generic[D]):
    """The destination of a request: all that an encoder may decide by."""

    provider: str
    model: str
    profile: D
    capabilities: Capabilities = Capabilities()
    facts: ModelFacts = ModelFacts()

    @property
    def label(self) -> str:
        """The target in errors and warnings: ``openai/gpt-5-mini``."""
        return f"{self.provider}/{self.model}"

    @property
    def history_rules(self) -> HistoryRules:
        """The profile's rules with the model's ids, its thinking, its places for system turns and for media of results."""
        rules, facts = self.profile.history_rules, self.facts
        rules = replace(rules, model_family=facts.family) if facts.family else rules
        rules = replace(rules, system="between") if facts.later_system and self.profile.later_system else rules
        # A model that does not think takes no thinking: its host may refuse the field.
        rules = replace(rules, thinking="items") if facts.thinking == "none" and rules.thinking == "any" else rules
        rules = rules if facts.call_ids is None else replace(rules, ids=facts.call_ids)
        return rules if facts.media_in_results else replace(rules, result_media="user")

    @property
    def max_output(self) -> int | None:
        """The most output tokens of one answer: the user's capabilities, else the model's; ``None`` if unknown."""
        return (
            self.facts.max_output
            if self.capabilities.max_output_tokens is None
            else self.capabilities.max_output_tokens
        )

    @property
    def temperature(self) -> float | None:
        """The greatest temperature that both the model and its host accept; ``None`` if unknown."""
        return min(
            (most for most in (self.facts.temperature, self.profile.temperature) if most is not None), default=None
        )


class EncodedRequest(NamedTuple):
    """A request as a provider's JSON, ready for the transport.

    ``headers`` hold no key. decode() copies ``warnings`` to the response. ``names`` maps tool names both ways.
    ``call_ids`` are the ids in the conversation: a synthetic id must not repeat them. ``repeat``: how often the client
    sends the request, on a wire that returns one choice at a time. ``stop``: stop sequences at which decode() cuts the
    text, on a wire without them. ``questions``: the outputs that a decision endpoint is asked, with their typed values.
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
    questions: tuple[Question, ...] | None = None


class Codec(Protocol[D_contra]):
    """One wire: a module with these functions.

    ``encode`` raises ``UnsupportedOption`` or ``UnsupportedFeature`` before anything is sent. ``decode`` takes the
    parsed body of a successful reply and raises an ``LMError`` for a failure inside it. ``decode_error`` returns the
    error for any other status.

    A codec may have three more functions, which return ``None`` if they do not apply: ``continuation(body, sent)`` returns
    the request that continues a paused turn, ``alternative(error, sent)`` a refused request in another form,
    ``recover(status, headers, body, sent, target)`` the response inside an error reply; ``length_request`` and ``read_length``
    are those of ``lm.context_length``. ``ENCODING_VERSION``, an integer, is raised by each change of what ``encode`` returns;
    answers of a codec without one are not stored. ``OPEN_PATH``: the member of a body for options that the codec has no row
    for, if it is not the body itself.
    """

    def encode(self, request: Request, target: Target[D_contra], *, stream: bool = False) -> EncodedRequest: ...

    def decode(self, body: JsonValue, sent: EncodedRequest, target: Target[D_contra]) -> Response: ...

    def decode_error(
        self, status: int, headers: Mapping[str, str], body: bytes | str, target: Target[D_contra]
    ) -> LMError: ...


class FrameDecoder(Protocol):
    """Chunks of a reply in, JSON of complete events out. ``close`` yields the event that the end of the reply completes.

    Read the iterator before the next call. It raises ``LMTransportError`` at an event that is not JSON,
    ``LMUnexpectedError`` at one that is too long: after the events before it, wherever the bytes were cut.
    ``has_end_mark``: whether ``[DONE]`` was read.
    """

    @property
    def has_end_mark(self) -> bool: ...

    def feed(self, data: bytes) -> Iterator[JsonValue]: ...

    def close(self) -> Iterator[JsonValue]: ...


Framing: TypeAlias = Literal["ndjson", "sse"] | Callable[[int], FrameDecoder]
"""The framing of a streamed reply: one line of JSON an event, or server-sent events (``framing`` decodes both), or the wire's
own decoder, made with the limit of bytes of one event."""


class Decoder(Protocol):
    """A decoder of one streamed reply: JSON events of the wire in, stream events out.

    ``feed`` takes the JSON of one event and raises the ``LMError`` of a failure in the stream. ``close`` ends the reply:
    it returns the last events, and raises a retryable ``LMError`` if the reply was truncated. ``end_mark``: whether the
    framing read ``[DONE]``; such a reply is complete, also without a finish reason.
    """

    def feed(self, event: JsonValue) -> list[StreamEvent]: ...

    def close(self, *, end_mark: bool = False) -> list[StreamEvent]: ...


class StreamingCodec(Codec[D_contra], Protocol[D_contra]):
    """A wire with streamed replies, which ``encode(..., stream=True)`` requests."""

    FRAMING: Framing

    def decoder(self, sent: EncodedRequest, target: Target[D_contra]) -> Decoder: ...
