"""Messages: the profiles of its hosts, and the JSON Schema that they accept."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from sigwire.core.json import JsonObject
from sigwire.core.tools.names import NameRules
from sigwire.lm.codecs.shared.history import HistoryRules
from sigwire.lm.codecs.shared.interface import WireProfile
from sigwire.lm.codecs.shared.schema import OUTPUT_SCHEMA, SchemaRules
from sigwire.lm.histories.call_ids import CallIdRules

__all__ = [
    "ANTHROPIC",
    "COMPATIBLE_MESSAGES",
    "NAMES",
    "NO_SAMPLING_SINCE",
    "OUTPUT_SCHEMA",
    "VERTEX_MESSAGES",
    "MessagesProfile",
]

NAMES = NameRules(max_length=128)
_OBJECT_ROOT = SchemaRules(root="object")
_HISTORY = HistoryRules(
    ids=CallIdRules(),
    system="front",
    thinking="signed",
    block_fields=True,
    first_user="Continue.",
    blank_text=False,
    detail=False,
)
_TOOL_FIELDS = frozenset(
    "allowed_callers cache_control defer_loading eager_input_streaming input_examples strict".split()
)
# https://platform.claude.com/docs/en/agents-and-tools/tool-use/tool-search-tool
_TOOL_SEARCH: tuple[str, JsonObject] = ("tool_search_tool_bm25_20251119", {"name": "tool_search_tool_bm25"})
NO_SAMPLING_SINCE = "2026-10-21"


@dataclass(frozen=True, kw_only=True)
class MessagesProfile(WireProfile):
    """One host of the Messages wire. The defaults are api.anthropic.com.

    ``version``: of the API, sent as a header; from 2026-10-21 no model accepts sampling options. ``media``: what a user
    turn may hold beside text. ``efforts``: the efforts of models that accept them, weakest first. ``cache_control``: the
    place of a cache mark of the whole request, ``None`` without marks. ``web_search``: the type of the host's search tool,
    if any. ``body_version``: the version that the body names, on a host that has the model and ``{method}`` in the path.
    """

    family: str = "anthropic"
    path: str = "/v1/messages"
    names: NameRules = NAMES
    tool_schema: SchemaRules = _OBJECT_ROOT
    output_schema: SchemaRules = OUTPUT_SCHEMA
    history_rules: HistoryRules = _HISTORY
    tool_fields: frozenset[str] = _TOOL_FIELDS
    version: str = "2023-06-01"
    media: frozenset[str] = frozenset({"image", "file"})
    efforts: tuple[str, ...] = ("off", "low", "medium", "high", "xhigh", "max")
    temperature_or_top_p: bool = True
    temperature: float | None = 1.0
    blank_stops: bool = False
    trims_prefill: bool = True
    later_system: bool = True
    tool_search: tuple[str, JsonObject] | None = _TOOL_SEARCH
    cache_control: Literal["request", "blocks"] | None = "request"
    web_search: str | None = "web_search_20250305"
    body_version: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        # A row with another version must not send the version of the row that it replaces.
        if not self.body_version:
            object.__setattr__(self, "headers", {**self.headers, "anthropic-version": self.version})


ANTHROPIC = MessagesProfile()
# Signatures of thinking hold on every cloud, so the family is that of the vendor.
VERTEX_MESSAGES = MessagesProfile(
    path="/publishers/anthropic/models/{model}:{method}",
    cache_control="blocks",
    tool_search=None,  # asks for a beta header
    body_version="vertex-2023-10-16",
)
COMPATIBLE_MESSAGES = MessagesProfile(
    family="anthropic-compatible",
    tool_fields=frozenset[str](),
    history_rules=replace(_HISTORY, thinking="any"),
    temperature_or_top_p=False,
    temperature=None,
    cache_control=None,
    tool_search=None,
    web_search=None,
)
