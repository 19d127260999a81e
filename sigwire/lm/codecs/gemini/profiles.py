"""generateContent: the profiles of its hosts, and the JSON Schema that they accept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.tools.names import NameRules
from sigwire.lm.codecs.shared.history import HistoryRules
from sigwire.lm.codecs.shared.interface import WireProfile
from sigwire.lm.codecs.shared.options import Option, Place
from sigwire.lm.codecs.shared.schema import SchemaRules, any_of_for_types, const_to_enum, merge_all_of

__all__ = ["GEMINI", "VERTEX", "GeminiProfile"]


def _split_null_enum(node: JsonObject) -> JsonObject:
    """Write an enum with ``null`` as a union with the type null: enums of this wire hold strings and numbers only."""
    values = node.get("enum")
    if not isinstance(values, list) or None not in values or "anyOf" in node:
        return node
    rest: list[JsonValue] = [value for value in values if value is not None]
    bare: JsonObject = {name: value for name, value in node.items() if name not in ("enum", "type")}
    if not rest:
        return {**bare, "type": "null"}
    members: list[JsonValue] = [{"enum": rest}, {"type": "null"}]
    return {**bare, "anyOf": members}


_KEYWORDS = frozenset(
    "$id $defs definitions $ref $anchor type format title description enum items prefixItems minItems maxItems minimum "
    "maximum anyOf oneOf properties additionalProperties required propertyOrdering default".split()
)
_REWRITES = (merge_all_of, const_to_enum, any_of_for_types, _split_null_enum)
# The hosts ignore ``default``. It is kept: requests have it everywhere, and a warning for each would be noise.
_OUTPUT = SchemaRules(keep=_KEYWORDS, rewrite=_REWRITES, ref_siblings=False, recursion="optional")


@dataclass(frozen=True, kw_only=True)
class GeminiProfile(WireProfile):
    """One host of the generateContent wire. The defaults are generativelanguage.googleapis.com.

    In ``path``, ``{version}`` is ``version``, or ``preview_version`` if a word of the model's name is in
    ``preview_names``; ``{model}`` starts with its collection ("models/..."), ``{method}`` is whole or streaming.
    ``endpoint_path``: the path for a model that the user tuned ("endpoints/..."), ``None`` if the host has none.
    ``options``: rows over the wire's table. ``efforts``: the thinking levels of models whose facts have none.
    ``announce_builtin``: whether tools that the provider runs must be announced beside functions. ``exclude_domains``:
    whether web search accepts domains to exclude.
    """

    family: str = "gemini"
    path: str = "/{version}/{model}:{method}"
    endpoint_path: str | None = None
    version: str = "v1"
    preview_version: str = "v1beta"
    preview_names: frozenset[str] = frozenset({"preview", "latest", "exp"})
    names: NameRules = NameRules(allowed="A-Za-z0-9_.:-", first="A-Za-z_", max_length=128)
    # Untagged thinking as plain text would be an answer.
    # Recorded requests without a user turn start with an empty text; the models accept it.
    history_rules: HistoryRules = HistoryRules(
        system="front",
        first_user="",
        untagged_thinking=False,
        media_roles=frozenset({"user", "assistant"}),
        detail=False,
        filenames="none",
    )
    tool_schema: SchemaRules = replace(_OUTPUT, root="object")
    output_schema: SchemaRules = _OUTPUT
    tool_fields: frozenset[str] = frozenset({"behavior", "response", "responseJsonSchema"})
    temperature: float | None = 2.0
    options: Mapping[str, Option] = field(default_factory=dict[str, Option])
    efforts: tuple[str, ...] = ("low", "medium", "high")
    announce_builtin: bool = True
    exclude_domains: bool = False


GEMINI = GeminiProfile()
VERTEX = GeminiProfile(
    family="vertex",  # signatures of one route are refused on the other
    path="/publishers/google/{model}:{method}",  # the base URL ends with version, project and location
    endpoint_path="/{model}:{method}",
    options={"metadata": Place("labels")},
    announce_builtin=False,
    exclude_domains=True,
)
