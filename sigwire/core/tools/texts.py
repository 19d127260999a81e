"""ToolText: texts that a predictor shows for a tool in place of the tool's texts. Types and the function stay the tool's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from sigwire.core.json import JsonObject, Value
from sigwire.core.narrow import is_mapping
from sigwire.errors import ToolDefinitionError, suggest
from sigwire.keywords import ChecksKeywords

__all__ = ["ToolText"]


@dataclass(frozen=True, slots=True)
class ToolText(Value, ChecksKeywords):
    """The description of a tool, descriptions of its arguments, and its name for the model.

    ``None``, and an argument that ``args`` lacks, keep the text of the tool. ``alias`` is the name that the model reads and
    calls; results, histories and demos keep the true name. Raises ``ToolDefinitionError`` for values that are not texts.

    >>> ToolText.from_json({"desc": "Search.", "args": {"query": "Three words."}}).args["query"]
    'Three words.'
    """

    desc: str | None = None
    args: Mapping[str, str] = field(default_factory=dict[str, str])
    alias: str | None = None

    def __post_init__(self) -> None:
        args: object = self.args
        given = [text for text in (self.desc, self.alias) if text is not None]
        texts = [*given, *(args.values() if is_mapping(args) else (None,))]
        if not all(isinstance(text, str) for text in texts):
            raise ToolDefinitionError(
                f"A ToolText holds texts; got {self!r:.120}. Write ToolText(desc='...', args={{}})."
            )

    def state(self, spec: JsonObject, parameters: JsonObject) -> JsonObject:
        """Return the attributes of a view: name, description, parameters and spec of a tool, with these texts."""
        function = cast("dict[str, Any]", spec["function"])
        schemas = [
            self._described(schema, function["name"]) for schema in (parameters, function.get("parameters", parameters))
        ]
        name, desc = self.alias or function["name"], function.get("description", "") if self.desc is None else self.desc
        made = {**function, "name": name, "description": desc, "parameters": schemas[1]}
        return {"name": name, "description": desc, "_parameters": schemas[0], "_spec": {**spec, "function": made}}

    def _described(self, schema: JsonObject, tool: str) -> JsonObject:
        """Return the schema of arguments with the texts. Raises ``ToolDefinitionError`` for an unknown argument."""
        known = cast("dict[str, Any]", schema.get("properties", {}))
        if unknown := next((name for name in self.args if not isinstance(known.get(name), dict)), None):
            raise ToolDefinitionError(
                f"The tool {tool!r} has no argument {unknown!r} (describing it). {suggest(unknown, known)}It has "
                f"{', '.join(known) or 'none'}."
            )
        described = {name: {**known[name], "description": text} for name, text in self.args.items()}
        return {**schema, "properties": {**known, **described}} if described else schema

    def __hash__(self) -> int:
        return hash((self.desc, self.alias, frozenset(self.args.items())))
