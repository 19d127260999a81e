"""Reading files that DSPy saved: states without field names, and loops of its ReAct.

Both functions return a state of the core's form and leave the given state as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sigwire.core.json import JsonObject
from sigwire.core.narrow import is_mapping, is_sequence
from sigwire.errors import StateError, warn_user

__all__ = ["name_fields", "without_text_loop"]


def name_fields(signature: Any, state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a signature's state whose fields have names; fields without names are matched by position.

    Raises ``StateError`` if their number differs.

    >>> from sigwire.signatures.signature import Signature
    >>> name_fields(Signature("a -> b"), {"fields": [{"prefix": "A:"}, {"prefix": "B:"}]})["fields"]
    [{'prefix': 'A:', 'name': 'a'}, {'prefix': 'B:', 'name': 'b'}]
    """
    saved, spec = state.get("fields"), signature.spec
    fields = [field for field in saved if is_mapping(field)] if is_sequence(saved) else []
    if not is_sequence(saved) or len(fields) < len(saved) or all("name" in field for field in fields):
        return state  # the core reads it, or refuses it
    if len(fields) != len(spec.fields):
        raise StateError(
            f"The saved signature has {len(fields)} fields without names, and {spec.name} has {len(spec.fields)} "
            f"({', '.join(field.name for field in spec.fields)}). Load it into the program that saved it."
        )
    named = [{**texts, "name": field.name} for field, texts in zip(spec.fields, fields, strict=True)]
    return {**state, "fields": named}


def without_text_loop(state: Mapping[str, Any], loop: JsonObject) -> Mapping[str, Any]:
    """Return an agent's state; a loop that asks for a tool by name, as DSPy's does, is replaced by ``loop`` and warns."""
    if not _is_text_loop(state.get("react")):
        return state
    warn_user(
        "The saved loop asks for next_tool_name and next_tool_args, which this ReAct does not; its instructions and "
        "demos were left out, the extraction was loaded. Save the program again to silence this."
    )
    return {**state, "react": loop}


def _is_text_loop(state: Any) -> bool:
    try:
        texts = [field["description"] for field in state["signature"]["fields"]]
    except (KeyError, TypeError):
        return False
    return "${next_tool_name}" in texts
