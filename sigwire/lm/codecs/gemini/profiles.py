"""generateContent: the hosts that speak it, as data, and the JSON Schema they take."""

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


def _null_out_of_enum(node: JsonObject) -> JsonObject:
    """Enums hold strings and numbers here; a ``null`` among them becomes a type of its own."""
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
_REWRITES = (merge_all_of, const_to_enum, any_of_for_types, _null_out_of_enum)
# ``default`` is read past, but recorded traffic has it everywhere: it is worth more to keep it than to warn of it.
_OUTPUT = SchemaRules(keep=_KEYWORDS, rewrite=_REWRITES, ref_siblings=False, recursion="optional")


@dataclass(frozen=True, kw_only=True)
class GeminiProfile(WireProfile):
    """How one host speaks generateContent. The defaults are generativelanguage.googleapis.com.

    In ``path``, ``{version}`` is ``version``, or ``preview_version`` where a piece of the model's name is one of
    ``preview_names``; ``{model}`` has its collection before it ("models/..."), ``{method}`` is whole or streaming.
    ``options``: over the wire's table. ``efforts``: the thinking levels a model takes when its facts do not say.
    ``announce_builtin``: whether tools that the provider runs have to be announced when they stand beside functions.
    ``exclude_domains``: whether web search can leave out domains.
    """

    family: str = "gemini"
    path: str = "/{version}/{model}:{method}"
    version: str = "v1"
    preview_version: str = "v1beta"
    preview_names: frozenset[str] = frozenset({"preview", "latest", "exp"})
    names: NameRules = NameRules(allowed="A-Za-z0-9_.:-", first="A-Za-z_", max_length=128)
    # An empty text is what recorded requests without a user's word begin with; the models take it.
    history_rules: HistoryRules = HistoryRules(system="front", first_user="")
    tool_schema: SchemaRules = replace(_OUTPUT, root="object")
    output_schema: SchemaRules = _OUTPUT
    options: Mapping[str, Option] = field(default_factory=dict[str, Option])
    efforts: tuple[str, ...] = ("low", "medium", "high")
    announce_builtin: bool = True
    exclude_domains: bool = False


GEMINI = GeminiProfile()
VERTEX = GeminiProfile(
    family="vertex",  # signatures of one route are refused on the other
    path="/publishers/google/{model}:{method}",  # the base URL ends with version, project and location
    options={"metadata": Place("labels")},
    announce_builtin=False,
    exclude_domains=True,
)
