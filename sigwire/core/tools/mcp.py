"""Tools that others define, as ours: an MCP server's (``mcp_tool``) and LangChain's (``langchain_tool``).

Neither package is needed to import this file, nor imported for MCP at all: MCP's objects are read as the JSON that they are
on the wire, so every version of its SDK fits, and LangChain's package is there already when somebody has one of its tools.

Both keep the whole schema, check arguments against it before anything is called, and give back values of ours: text,
JSON, media parts. What the other side calls an error becomes ``ToolFailed``, so the model reads it as one.

Two surprises. An MCP session lives on one event loop and is called there, wherever the call comes from (``OwnerLoop``).
A LangChain tool may have arguments that the model must not see; they are taken out of the schema, refused when a model
gives them all the same, and filled in from ``injected``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, Literal, TypeAlias, TypeGuard, cast, get_args

from sigwire.core.json import JsonObject, JsonValue, dumps, loads
from sigwire.core.parts import AudioPart, FilePart, ImagePart, MediaPart
from sigwire.core.schema import inline_refs, untitled_generator, validator
from sigwire.core.tools.function import BoundArguments, describe_argument_errors
from sigwire.core.tools.tool import Tool
from sigwire.effects.loops import OwnerLoop, started_by_block_on, to_thread
from sigwire.errors import EventLoopError, InputError, RetryTool, ToolDefinitionError, ToolFailed

__all__ = ["ResultMode", "langchain_tool", "mcp_tool"]

ResultMode: TypeAlias = Literal["auto", "structured", "text"]


# --- MCP ----------------------------------------------------------------------------------------------


def mcp_tool(session: Any, tool: Any, *, result_mode: ResultMode, loop: Any = None, **options: Any) -> Tool:
    """See ``Tool.from_mcp_tool``."""
    if result_mode not in (known := get_args(ResultMode)):
        raise ToolDefinitionError(
            f"result_mode is one of {', '.join(known)}, not {result_mode!r} (Tool.from_mcp_tool)."
        )
    call_tool = getattr(session, "call_tool", None)
    if not callable(call_tool):
        raise ToolDefinitionError(
            f"Tool.from_mcp_tool takes an MCP session first, something with an async call_tool, not {_kind(session)}. "
            "Write Tool.from_mcp_tool(session, tool) inside 'async with' of the session."
        )
    definition = _definition(tool)
    name = cast(str, definition.pop("name"))
    description = definition.pop("description", None) or definition.get("title") or ""
    parameters = cast("JsonObject", definition.pop("inputSchema"))
    given: dict[str, Any] = {"name": name, "description": description, "metadata": definition, **options}
    handler = _mcp_handler(session, name, OwnerLoop(loop), result_mode)
    return Tool(None, given.pop("name"), given.pop("description"), parameters, handler, **given)


def _definition(tool: Any) -> JsonObject:
    """An MCP tool as it is on the wire. Raises ``ToolDefinitionError`` for what is none."""
    definition = _wire(tool)
    if definition is None or not isinstance(definition.get("name"), str) or "inputSchema" not in definition:
        hint = " Take one of its .tools." if definition is not None and "tools" in definition else ""
        raise ToolDefinitionError(
            f"Tool.from_mcp_tool takes an MCP tool second, with a name and an inputSchema, not {_kind(tool)}.{hint} "
            "Write [Tool.from_mcp_tool(session, tool) for tool in (await session.list_tools()).tools]."
        )
    return definition


def _wire(value: Any) -> JsonObject | None:
    """An object of MCP's SDK as the JSON it is on the wire; its versions differ in how they name attributes, not in that."""
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, Any]", value))
    if not hasattr(value, "model_dump") or isinstance(value, type):
        return None
    wire: JsonObject = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return wire


def _mcp_handler(session: Any, name: str, home: OwnerLoop, mode: ResultMode) -> Callable[..., Any]:
    bound_to_loop = type(session).__module__.partition(".")[0] in _BOUND_TO_A_LOOP

    async def call(**arguments: Any) -> Any:
        if not home and bound_to_loop and started_by_block_on():
            raise EventLoopError(
                f"The MCP tool {name!r} was called by blocking code, and nobody knows on which event loop its session lives. "
                "Make the tool where the session was opened, or pass the loop: Tool.from_mcp_tool(session, tool, loop=loop)."
            )

        async def ask() -> Any:
            return await session.call_tool(name, arguments=arguments)

        result = await home.run(ask)
        answer = _wire(result)
        if answer is None:
            raise ToolFailed(f"The MCP session answered with {_kind(result)}, which is no result of a tool.")
        return _mcp_value(answer, mode)

    return call


# Packages whose sessions can be used on the loop only on which they were opened.
_BOUND_TO_A_LOOP = frozenset({"fastmcp", "mcp"})


def _mcp_value(answer: JsonObject, mode: ResultMode) -> Any:
    """What a result says: its blocks, and its structured content, each thing once."""
    blocks = cast("list[JsonObject]", answer.get("content") or [])
    structured = answer.get("structuredContent")
    if answer.get("isError"):
        raise ToolFailed(_mcp_words(blocks, structured))
    if structured is None or mode == "text":
        return _alone([_mcp_block(block) for block in blocks])
    if mode == "structured":
        return structured
    return _alone(_each_once(structured, [_mcp_block(block) for block in blocks]))


def _each_once(structured: JsonValue, values: list[Any]) -> list[Any]:
    """The structured content, then the blocks that do not only repeat it, as servers send it to clients that read text."""
    texts = [value for value in values if isinstance(value, str)]
    inner = structured["result"] if isinstance(structured, dict) and structured.keys() == {"result"} else structured
    items = inner if isinstance(inner, list) and len(inner) == len(texts) else [inner]
    if len(texts) != len(items) or not all(map(_says, texts, items)):
        return [structured, *values]
    # A text that was wrapped only to have something structured reads best as it is.
    return [inner if isinstance(inner, str) else structured, *(value for value in values if not isinstance(value, str))]


def _says(text: str, value: JsonValue) -> bool:
    if text == value:
        return True
    try:
        read: JsonValue = loads(text)
    except ValueError:
        return False
    return read == value


def _mcp_words(blocks: Sequence[JsonObject], structured: JsonValue) -> str:
    """What an error says, as one text."""
    said = [str(block["text"]) if block.get("type") == "text" else _in_short(block) for block in blocks]
    if structured is not None and not any(_says(text, structured) for text in said):
        said.append(dumps(structured))
    return "\n".join(said) or "The tool failed and did not say why."


def _in_short(block: JsonObject) -> str:
    return f"({block['type']})" if "data" in block else dumps(block)


def _mcp_block(block: JsonObject) -> Any:
    read = _MCP_BLOCKS.get(str(block.get("type")))
    return block if read is None else read(block)


def _mcp_resource(block: JsonObject) -> dict[str, Any]:
    resource = dict(cast("Mapping[str, Any]", block["resource"]))
    blob = resource.pop("blob", None)
    if blob is None:
        return resource
    return {**resource, "content": _media(_family(resource.get("mimeType")), data=blob, mime=resource.get("mimeType"))}


_MCP_BLOCKS: Mapping[str, Callable[[JsonObject], Any]] = {
    "text": lambda block: block["text"],
    "image": lambda block: _media("image", data=block["data"], mime=block.get("mimeType")),
    "audio": lambda block: _media("audio", data=block["data"], mime=block.get("mimeType")),
    "resource": _mcp_resource,
}


# --- LangChain ------------------------------------------------------------------------------------------


def langchain_tool(tool: Any, *, injected: Mapping[str, Any] | None = None, **options: Any) -> Tool:
    """See ``Tool.from_langchain``."""
    if not is_langchain(tool):
        raise ToolDefinitionError(
            f"Tool.from_langchain takes a LangChain tool (a BaseTool, or a function under @tool), not {_kind(tool)}. "
            "A Python function is a tool without it: Tool(function)."
        )
    adopted = _LangChainCall(tool, dict(injected or {}))
    handler = adopted.acall if adopted.awaits else adopted.call
    given: dict[str, Any] = {
        "name": tool.name,
        "description": tool.description or "",
        "metadata": _langchain_metadata(tool),
        **options,
    }
    return Tool(None, given.pop("name"), given.pop("description"), adopted.arguments, handler, **given)


def is_langchain(thing: Any) -> bool:
    """Whether this is a tool object of LangChain's; found out without importing anything."""
    return any(cls.__module__.startswith("langchain_core.tools") for cls in type(thing).__mro__)


def _langchain_metadata(tool: Any) -> JsonObject:
    """What a LangChain tool says about itself beside the call, as far as it is JSON."""
    said: JsonObject = {}
    for name in ("tags", "metadata", "extras", "response_format"):
        value = getattr(tool, name, None)
        try:
            loads(dumps(value))
        except (TypeError, ValueError, RecursionError):
            continue
        if value and value != "content":
            said[name] = value
    return said


class _LangChainArguments:
    """How a LangChain tool takes arguments: its schema without what is injected, read by pydantic where it is a model."""

    def __init__(self, tool: Any) -> None:
        self._tool = tool
        self.hidden = _hidden(tool)

    # LangChain makes the model anew whenever it is asked for it, and a schema is compiled once for each object.

    @cached_property
    def _model(self) -> Any:
        """The pydantic model (version 2) of what the model gives; ``None`` where there is only a schema."""
        if _has_plain_schema(self._tool) or _takes_one_text(self._tool):
            return None
        model = self._tool.tool_call_schema
        return model if hasattr(model, "model_json_schema") else None

    def schema(self) -> JsonObject:
        """The JSON Schema of the arguments, an object."""
        return self._schema

    @cached_property
    def _schema(self) -> JsonObject:
        if _has_plain_schema(self._tool):
            return cast("JsonObject", self._tool.args_schema)
        if _takes_one_text(self._tool):
            return {"type": "object", "properties": dict(self._tool.args), "required": list(self._tool.args)}
        model = self._model
        made: JsonObject = (
            self._tool.tool_call_schema.schema()
            if model is None
            else model.model_json_schema(schema_generator=untitled_generator())
        )
        return inline_refs({name: value for name, value in made.items() if name not in ("title", "description")})

    def types(self) -> dict[str, Any]:
        """Python type by argument."""
        return {name: field.annotation for name, field in _fields_of(self._model).items()}

    def bind(self, arguments: Mapping[str, Any]) -> BoundArguments:
        """Check arguments; LangChain converts them itself. Raises ``InputError``."""
        given = dict(arguments)
        if taken := sorted(given.keys() & self.hidden):
            raise InputError("; ".join(f"{name}: there is no such argument" for name in taken))
        if faults := self._faults(given):
            raise InputError(faults)
        return BoundArguments((), given)

    def _faults(self, given: dict[str, Any]) -> str:
        model = self._model
        if model is None:
            return "; ".join(validator(self.schema())(given))
        try:
            model.model_validate(given)
        except ValueError as fault:  # pydantic's ValidationError is one
            return describe_argument_errors(fault)
        return ""


def _hidden(tool: Any) -> frozenset[str]:
    """The arguments that are injected."""
    by_signature: frozenset[str] = frozenset(getattr(tool, "_injected_args_keys", ()))
    if _has_plain_schema(tool) or _takes_one_text(tool):
        return by_signature
    hidden: set[str] = _fields_of(tool.get_input_schema()).keys() - _fields_of(tool.tool_call_schema).keys()
    return by_signature | hidden


def _fields_of(model: Any) -> dict[str, Any]:
    """A pydantic model's fields by name, of either of its versions; none for what is no model."""
    name = "model_fields" if hasattr(model, "model_fields") else "__fields__"
    return dict(getattr(model, name, {}))


def _has_plain_schema(tool: Any) -> bool:
    return isinstance(tool.args_schema, dict)


def _takes_one_text(tool: Any) -> bool:
    """Whether this is LangChain's oldest kind of tool: a function of one text, whatever it is named."""
    return isinstance(tool, _langchain().Tool) and tool.args_schema is None


class _LangChainCall:
    """A LangChain tool and what it takes to call it."""

    def __init__(self, tool: Any, injected: dict[str, Any]) -> None:
        self.arguments = _LangChainArguments(tool)
        self._tool, self._injected = tool, injected
        self._ids = itertools.count()
        needs_id = bool(self._check_injected())
        # Asked with a whole call, LangChain answers with a message, which says whether it is an error that was handled.
        self._as_call = needs_id or bool(tool.handle_tool_error or tool.handle_validation_error)
        self._blocks, self.awaits = _ways(tool)

    def _check_injected(self) -> frozenset[str]:
        """The arguments that get the call's id. Raises ``ToolDefinitionError`` for what nobody would fill in."""
        fields = _fields_of(self._tool.get_input_schema())
        ids = frozenset(name for name in self.arguments.hidden if _is_call_id(name, fields.get(name)))
        for name in sorted(self.arguments.hidden - ids - self._injected.keys()):
            if name not in fields or fields[name].is_required():
                raise ToolDefinitionError(
                    f"The LangChain tool {self._tool.name!r} has the injected argument {name!r}, which no model gives. "
                    f"Pass its value: Tool.from_langchain(tool, injected={{{name!r}: ...}})."
                )
        for name in sorted(self._injected.keys() - self.arguments.hidden):
            raise ToolDefinitionError(
                f"The LangChain tool {self._tool.name!r} has no injected argument {name!r}. "
                f"Its injected arguments are: {', '.join(sorted(self.arguments.hidden)) or 'none'}."
            )
        return ids

    def call(self, /, **arguments: Any) -> Any:
        """Blocking."""
        try:
            answer = self._tool.invoke(self._asked(arguments))
        except Exception as error:
            raise self._translated(error) from error
        return _langchain_value(answer)

    async def acall(self, /, **arguments: Any) -> Any:
        """Awaited; where somebody blocks anyway, a tool that has a blocking form as well is called in that."""
        if self._blocks and started_by_block_on():
            return await to_thread(self.call, **arguments)
        try:
            answer = await self._tool.ainvoke(self._asked(arguments))
        except Exception as error:
            raise self._translated(error) from error
        return _langchain_value(answer)

    def _asked(self, arguments: dict[str, Any]) -> dict[str, Any]:
        given = {**arguments, **self._injected}
        # Arguments that look like a call would be read as one.
        if not self._as_call and given.get("type") != "tool_call":
            return given
        return {"type": "tool_call", "id": f"call_{next(self._ids)}", "name": self._tool.name, "args": given}

    def _translated(self, error: Exception) -> Exception:
        if isinstance(error, _langchain().ToolException):
            return ToolFailed(str(error) or "The tool failed and did not say why.")
        schema = self._tool.args_schema
        is_about_arguments = isinstance(schema, type) and getattr(error, "title", None) == schema.__name__
        return (
            RetryTool(describe_argument_errors(error))
            if is_about_arguments and isinstance(error, ValueError)
            else error
        )


def _is_call_id(name: str, field: Any) -> bool:
    if field is None:
        return name == "tool_call_id"
    marker = _langchain().InjectedToolCallId
    return any(mark is marker or isinstance(mark, marker) for mark in field.metadata)


def _ways(tool: Any) -> tuple[bool, bool]:
    """Whether a tool has a blocking form of its own, and an awaited one."""
    library = _langchain()
    if isinstance(tool, (library.StructuredTool, library.Tool)):
        return tool.func is not None, tool.coroutine is not None
    return True, tool.__class__._arun is not library.BaseTool._arun


def _langchain() -> Any:
    """The package, which is there because a tool of it is."""
    from importlib import import_module

    return import_module("langchain_core.tools")


def _langchain_value(answer: Any) -> Any:
    """What a tool gave; the content of a message, its media as parts. Raises ``ToolFailed`` for a message of an error."""
    is_message = getattr(answer, "type", None) == "tool" and hasattr(answer, "status")
    content = _langchain_content(answer.content if is_message else answer)
    if is_message and answer.status == "error":
        raise ToolFailed(content if isinstance(content, str) else dumps(answer.content))
    return content


def _langchain_content(content: Any) -> Any:
    if not _is_langchain_blocks(content):
        return content
    return _alone([block if isinstance(block, str) else _LANGCHAIN_BLOCKS[block["type"]](block) for block in content])


def _is_langchain_blocks(content: Any) -> bool:
    """Whether this is a list of content blocks, texts among them; a list of texts alone is a list of texts."""
    if not _is_list(content):
        return False
    blocks = [block for block in content if not isinstance(block, str)]
    return bool(blocks) and all(map(_is_langchain_block, blocks))


def _is_list(value: Any) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _is_langchain_block(block: Any) -> bool:
    return isinstance(block, dict) and cast("dict[str, Any]", block).get("type") in _LANGCHAIN_BLOCKS


def _langchain_media(block: JsonObject) -> Any:
    kind = str(block["type"])
    return _media(
        kind,
        data=block.get("base64") or block.get("data"),
        url=block.get("url"),
        file_id=block.get("file_id") or (block.get("id") if block.get("source_type") == "id" else None),
        mime=block.get("mime_type"),
    ) or block  # fmt: skip


def _langchain_image_url(block: JsonObject) -> Any:
    image = block.get("image_url")
    url = image.get("url") if isinstance(image, dict) else image
    head, _, data = str(url).partition(";base64,")
    return _media("image", data=data, mime=head.removeprefix("data:")) if data else _media("image", url=url)


_LANGCHAIN_BLOCKS: Mapping[str, Callable[[JsonObject], Any]] = {
    "text": lambda block: block.get("text", block),
    "image": _langchain_media,
    "audio": _langchain_media,
    "file": _langchain_media,
    "image_url": _langchain_image_url,
}


# --- both -------------------------------------------------------------------------------------------------

_AUDIO_FORMATS: Mapping[str, str] = {"mpeg": "mp3", "mpga": "mp3", "vnd.wave": "wav", "wave": "wav", "x-wav": "wav"}


def _media(kind: str, *, data: Any = None, url: Any = None, file_id: Any = None, mime: Any = None) -> MediaPart | None:
    """A part of ours; ``None`` where there is none for it."""
    if data is None and url is None and file_id is None:
        return None
    if kind == "image":
        return ImagePart(url, data, mime, file_id=file_id)
    if kind == "audio":
        subtype = str(mime or "audio/wav").partition(";")[0].partition("/")[2]
        return AudioPart(data, _AUDIO_FORMATS.get(subtype, subtype)) if data is not None else None
    return FilePart(data, url, file_id, media_type=mime)


def _family(mime: Any) -> str:
    return str(mime or "").partition("/")[0]


def _alone(values: list[Any]) -> Any:
    """One value by itself, several as a list, nothing as an empty text."""
    return values[0] if len(values) == 1 else values or ""


def _kind(value: Any) -> str:
    return f"the class {value.__name__}" if isinstance(value, type) else f"a {type(value).__name__}"
