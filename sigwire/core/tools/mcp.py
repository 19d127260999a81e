"""Tools of an MCP server (``mcp_definition``). No package of MCP is imported.

MCP's objects are read as the JSON of the protocol, so every version of its SDK works.
The one surprise: an MCP session belongs to one event loop and is called there from every thread and loop (``OwnerLoop``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias, cast, get_args

from sigwire.core.json import JsonObject, JsonValue, dumps, loads
from sigwire.core.narrow import is_mapping
from sigwire.core.tools.foreign_media import describe_kind, media_family, media_part, unwrap_single
from sigwire.core.tools.inspection import UserFunction
from sigwire.effects.loops import EventLoop, OwnerLoop, started_by_block_on
from sigwire.errors import EventLoopError, ToolDefinitionError, ToolFailed

__all__ = ["McpSession", "ResultMode", "ToolDefinition", "mcp_definition"]


class McpSession(Protocol):
    """A session of any MCP client."""

    async def call_tool(self, name: str, *, arguments: dict[str, Any]) -> object: ...


ResultMode: TypeAlias = Literal["auto", "structured", "text"]
ToolDefinition: TypeAlias = dict[str, Any]
"""Keyword arguments of ``Tool``."""


def mcp_definition(
    session: McpSession, tool: object, *, result_mode: ResultMode, loop: EventLoop | None = None
) -> ToolDefinition:
    """Return the keyword arguments of ``Tool`` for an MCP tool. See ``Tool.from_mcp_tool``."""
    if result_mode not in (known := get_args(ResultMode)):
        raise ToolDefinitionError(
            f"Unsupported MCP result mode: {result_mode!r} (Tool.from_mcp_tool). Use one of {', '.join(known)}."
        )
    call_tool = getattr(session, "call_tool", None)
    if not callable(call_tool):
        raise ToolDefinitionError(
            f"Tool.from_mcp_tool needs an MCP session first, an object with an async call_tool, not {describe_kind(session)}. "
            "Write Tool.from_mcp_tool(session, tool) inside 'async with' of the session."
        )
    definition = _definition(tool)
    name = cast(str, definition.pop("name"))
    description = definition.pop("description", None) or definition.get("title") or ""
    parameters = cast("JsonObject", definition.pop("inputSchema"))
    handler = _mcp_handler(session, name, OwnerLoop(loop), result_mode)
    hints = definition.get("annotations")
    may_rerun = is_mapping(hints) and any(hints.get(name) is True for name in ("readOnlyHint", "idempotentHint"))
    return {
        "name": name,
        "description": description,
        "metadata": definition,
        "parameters": parameters,
        "handler": handler,
        "on_crash": "rerun" if may_rerun else "ask",
        "approve": True if is_mapping(hints) and hints.get("destructiveHint") is True else None,
    }


def _definition(tool: object) -> JsonObject:
    """Return the JSON of an MCP tool. Raises ``ToolDefinitionError`` for other values."""
    definition = _json_of(tool)
    if definition is None or not isinstance(definition.get("name"), str) or "inputSchema" not in definition:
        hint = " Use one of its .tools." if definition is not None and "tools" in definition else ""
        raise ToolDefinitionError(
            f"Tool.from_mcp_tool needs an MCP tool second, with a name and an inputSchema, not {describe_kind(tool)}.{hint} "
            "Write [Tool.from_mcp_tool(session, tool) for tool in (await session.list_tools()).tools]."
        )
    return definition


def _json_of(value: object) -> JsonObject | None:
    """Return the protocol's JSON of an SDK object: versions of the SDK name attributes differently, but not the JSON."""
    if is_mapping(value):
        return dict(value)
    dump: Callable[..., JsonObject] | None = getattr(value, "model_dump", None)
    return None if dump is None or isinstance(value, type) else dump(mode="json", by_alias=True, exclude_none=True)


def _mcp_handler(session: McpSession, name: str, owner: OwnerLoop, mode: ResultMode) -> UserFunction:
    bound_to_loop = type(session).__module__.partition(".")[0] in _BOUND_TO_A_LOOP

    async def call(**arguments: object) -> object:
        if not owner and bound_to_loop and started_by_block_on():
            raise EventLoopError(
                f"The MCP tool {name!r} was called from blocking code, but the event loop of its session is unknown. "
                "Make the tool where the session was opened, or pass the loop: Tool.from_mcp_tool(session, tool, loop=loop)."
            )

        async def call_tool() -> object:
            return await session.call_tool(name, arguments=arguments)

        result = await owner.run(call_tool)
        answer = _json_of(result)
        if answer is None:
            raise ToolFailed(f"The MCP session returned {describe_kind(result)}, which is not the result of a tool.")
        return _mcp_value(answer, mode)

    return call


# Packages whose sessions can be used only on the loop on which they were opened.
_BOUND_TO_A_LOOP = frozenset({"fastmcp", "mcp"})


def _mcp_value(answer: JsonObject, mode: ResultMode) -> object:
    """Return the blocks and the structured content of a result, without duplicates."""
    blocks = cast("list[JsonObject]", answer.get("content") or [])
    structured = answer.get("structuredContent")
    if answer.get("isError"):
        raise ToolFailed(_error_text(blocks, structured))
    if structured is not None and mode == "structured":
        return structured
    values = [_mcp_block(block) for block in blocks]
    return unwrap_single(values if structured is None or mode == "text" else _deduplicate(structured, values))


def _deduplicate(structured: JsonValue, values: list[object]) -> list[object]:
    """Return the structured content, then blocks that do not repeat it. Servers repeat it for clients that read text."""
    texts = [value for value in values if isinstance(value, str)]
    inner = _unwrap_result(structured)
    items = inner if isinstance(inner, list) and len(inner) == len(texts) else [inner]
    if len(texts) != len(items) or not all(map(_is_json_of, texts, items)):
        return [structured, *values]
    # A text that was wrapped in an object only to be structured is unwrapped.
    return [inner if isinstance(inner, str) else structured, *(value for value in values if not isinstance(value, str))]


def _unwrap_result(structured: JsonValue) -> JsonValue:
    return structured["result"] if isinstance(structured, dict) and structured.keys() == {"result"} else structured


def _is_json_of(text: str, value: JsonValue) -> bool:
    if text == value:
        return True
    try:
        read: JsonValue = loads(text)
    except ValueError:
        return False
    return read == value


def _error_text(blocks: Sequence[JsonObject], structured: JsonValue) -> str:
    texts = [str(block["text"]) if block.get("type") == "text" else _summary(block) for block in blocks]
    if structured is not None and not any(_is_json_of(text, structured) for text in texts):
        texts.append(dumps(structured))
    return "\n".join(texts) or "The tool failed without an error message."


def _summary(block: JsonObject) -> str:
    return f"({block['type']})" if "data" in block else dumps(block)


def _mcp_block(block: JsonObject) -> object:
    read = _MCP_BLOCKS.get(str(block.get("type")))
    return block if read is None else read(block)


def _mcp_resource(block: JsonObject) -> dict[str, object]:
    resource = dict(cast("Mapping[str, Any]", block["resource"]))
    blob, mime = resource.pop("blob", None), resource.get("mimeType")
    return resource if blob is None else {**resource, "content": media_part(media_family(mime), data=blob, mime=mime)}


def _mcp_media(block: JsonObject) -> object:
    return media_part(str(block["type"]), data=block["data"], mime=block.get("mimeType"))


_MCP_BLOCKS: Mapping[str, Callable[[JsonObject], object]] = {
    "text": lambda block: block["text"],
    "image": _mcp_media,
    "audio": _mcp_media,
    "resource": _mcp_resource,
}
