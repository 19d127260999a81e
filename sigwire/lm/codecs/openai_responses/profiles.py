"""Hosts of the Responses wire: one ``ResponsesProfile`` each, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from sigwire.core.json import JsonObject
from sigwire.core.tools.names import NameRules
from sigwire.lm.codecs.shared.history import HistoryRules
from sigwire.lm.codecs.shared.interface import WireProfile
from sigwire.lm.codecs.shared.options import Option
from sigwire.lm.codecs.shared.reasoning import EFFORTS
from sigwire.lm.codecs.shared.schema import STRICT_SCHEMA, SchemaRules
from sigwire.lm.histories.call_ids import RESPONSES_IDS

__all__ = ["AZURE", "COMPATIBLE", "DEEPSEEK", "OPENAI", "PROFILES", "ResponsesProfile"]


_BUILTIN = frozenset(
    "apply_patch code_interpreter computer computer_use computer_use_preview custom file_search image_generation "
    "local_shell mcp namespace programmatic_tool_calling shell tool_search web_search web_search_2025_08_26 "
    "web_search_preview web_search_preview_2025_03_11".split()
)
_OBJECT_ROOT = SchemaRules(root="union")
_NAMES = NameRules()


@dataclass(frozen=True, kw_only=True)
class ResponsesProfile(WireProfile):
    """The differences of one host from Responses. The defaults are api.openai.com.

    ``options``: rows that replace those of the wire's table, None for an option that the host rejects. ``system_role``:
    of system turns that are items. ``store``: the value of ``store``, None to omit it. ``encrypted_reasoning``: whether
    models that reason are asked for reasoning that can be sent again. ``efforts``: their names, weakest first.
    ``builtin``: the tools that the host runs. ``forced_choice``: whether a call can be forced. ``allowed_tools``: whether
    the choice can name several tools; if not, only those are sent. ``structured``: the output formats of the host.
    ``media``: kinds of media in user turns. ``broken_arguments``: whether arguments of a call may be invalid JSON.
    ``interleaved``: whether a turn may continue after a call; if not, its calls are sent last. ``message_type``: whether the
    model's messages are sent with their type (llama-server refuses those without one).
    """

    family: str = "openai-responses"
    path: str = "/responses"
    names: NameRules = _NAMES
    output_schema: SchemaRules = _OBJECT_ROOT
    strict_schema: SchemaRules | None = STRICT_SCHEMA
    history_rules: HistoryRules = HistoryRules(
        untagged_thinking=False,
        thinking="items",
        last_reasoning=False,
        ids=RESPONSES_IDS,
        filenames="data",
        media_roles=frozenset({"user", "system"}),
    )
    tool_fields: frozenset[str] = frozenset({"allowed_callers", "async", "defer_loading", "output_schema", "strict"})
    tool_search: tuple[str, JsonObject] | None = ("tool_search", {})
    temperature: float | None = 2.0
    options: Mapping[str, Option | None] = field(default_factory=dict[str, "Option | None"])
    system_role: Literal["developer", "system"] = "developer"
    store: bool | None = False
    encrypted_reasoning: bool = True
    efforts: tuple[str, ...] = EFFORTS
    builtin: frozenset[str] = _BUILTIN
    forced_choice: bool = True
    allowed_tools: bool = True
    structured: tuple[Literal["json_schema", "json_object"], ...] = ("json_schema", "json_object")
    media: frozenset[str] = frozenset({"image", "file"})
    broken_arguments: bool = True
    interleaved: bool = True
    message_type: bool = False


OPENAI = ResponsesProfile()
AZURE = replace(OPENAI, family="azure-responses", tool_search=None)
COMPATIBLE = replace(
    OPENAI,
    family="compatible-responses",
    temperature=None,
    system_role="system",
    store=None,
    encrypted_reasoning=False,
    efforts=("off", "low", "medium", "high"),
    tool_fields=frozenset({"strict"}),
    builtin=frozenset[str](),
    tool_search=None,
    allowed_tools=False,
    broken_arguments=False,
    message_type=True,
)
DEEPSEEK = replace(
    COMPATIBLE, family="deepseek-responses", media=frozenset[str](), interleaved=False, message_type=False
)

PROFILES: Mapping[str, ResponsesProfile] = {
    "openai": OPENAI, "azure": AZURE, "compatible": COMPATIBLE, "deepseek": DEEPSEEK,
}  # fmt: skip
"""Every row by the name in the provider table."""
