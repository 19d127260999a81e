"""Types that type checkers infer for tools. Checked by mypy and pyright (strict), never run."""

from __future__ import annotations

from typing import assert_type

from sigwire.core.tools.tool import Tool

SCHEMA = {  # no annotation: checkers see a dict of texts, dicts and lists, and must take it as it stands
    "type": "object",
    "properties": {"from": {"type": "string"}},
    "required": ["from"],
    "additionalProperties": False,
}

assert_type(Tool.from_schema("find", "Find.", SCHEMA), Tool)
assert_type(Tool(name="find", description="Find.", parameters=SCHEMA), Tool)
Tool.from_schema("find", "Find.", [1])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
