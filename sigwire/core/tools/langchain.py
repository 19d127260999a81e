"""Tools of LangChain (``langchain_definition``). Its package is imported only for one of its tools.

The one surprise: a LangChain tool may have arguments that are hidden from the model. They are removed from the schema,
refused if a model passes them, and taken from ``injected``.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import Any, TypeGuard, cast

from sigwire.core.json import JsonObject, dumps, loads
from sigwire.core.narrow import is_array, is_object
from sigwire.core.record import FieldValues
from sigwire.core.schema import inline_refs, untitled_generator, validator
from sigwire.core.tools.foreign_media import describe_kind, media_part, unwrap_single
from sigwire.core.tools.function import BoundArguments, Types
from sigwire.core.tools.validation import describe_argument_errors, refuse_booleans
from sigwire.effects.loops import started_by_block_on, to_thread
from sigwire.errors import InputError, RetryTool, ToolDefinitionError, ToolFailed

__all__ = ["langchain_definition"]


def langchain_definition(tool: Any, *, injected: FieldValues | None = None) -> dict[str, Any]:
    """Return the keyword arguments of ``Tool`` for a LangChain tool. See ``Tool.from_langchain``."""
    if not any(cls.__module__.startswith("langchain_core.tools") for cls in type(tool).__mro__):
        raise ToolDefinitionError(
            f"Tool.from_langchain needs a LangChain tool (a BaseTool, or a function under @tool), not {describe_kind(tool)}. "
            "For a Python function, use Tool(function)."
        )
    call = _LangChainCall(tool, dict(injected or {}))
    return {
        "name": tool.name,
        "description": tool.description or "",
        "parameters": call.arguments,
        "handler": call.acall if call.is_async else call.call,
        "metadata": _langchain_metadata(tool),
    }


def _langchain_metadata(tool: object) -> JsonObject:
    """Return the attributes of a LangChain tool that are JSON and not part of the call."""
    found: JsonObject = {}
    for name in ("tags", "metadata", "extras", "response_format"):
        value = getattr(tool, name, None)
        try:
            loads(dumps(value))
        except (TypeError, ValueError, RecursionError):
            continue
        if value and value != "content":
            found[name] = value
    return found


class _LangChainArguments:
    """The arguments of a LangChain tool: its schema without injected arguments; validated by pydantic if it is a model."""

    def __init__(self, tool: Any) -> None:
        self._tool = tool
        self.hidden = _hidden(tool)

    def schema(self) -> JsonObject:
        return self._described[0]

    @cached_property  # LangChain makes a new model at each access
    def _described(self) -> tuple[JsonObject, Any]:
        """The schema, and the pydantic model (version 2) of the arguments; ``None`` if there is only a schema."""
        if is_object(self._tool.args_schema):
            return cast("JsonObject", self._tool.args_schema), None
        if _takes_one_text(self._tool):
            return {"type": "object", "properties": dict(self._tool.args), "required": list(self._tool.args)}, None
        found = self._tool.tool_call_schema
        model = found if hasattr(found, "model_json_schema") else None
        made: JsonObject = model.model_json_schema(schema_generator=untitled_generator()) if model else found.schema()
        return inline_refs({name: made[name] for name in made if name not in ("title", "description")}), model

    def types(self) -> Types:
        return {name: field.annotation for name, field in _fields_of(self._described[1]).items()}

    def bind(self, arguments: FieldValues) -> BoundArguments:
        """Validate arguments; LangChain converts them. Raises ``InputError``."""
        given = dict(arguments)
        if hidden := sorted(given.keys() & self.hidden):
            raise InputError("; ".join(f"{name}: there is no such argument" for name in hidden))
        if problems := self._problems(given):
            raise InputError(problems)
        return BoundArguments((), given)

    def _problems(self, given: dict[str, Any]) -> str:
        schema, model = self._described
        if model is None:
            return "; ".join(validator(schema)(given))
        try:
            refuse_booleans(model.__pydantic_validator__)(given)
        except ValueError as error:  # pydantic's ValidationError is one
            return describe_argument_errors(error)
        return ""


def _hidden(tool: Any) -> frozenset[str]:
    by_signature: frozenset[str] = frozenset(getattr(tool, "_injected_args_keys", ()))
    if is_object(tool.args_schema) or _takes_one_text(tool):
        return by_signature
    hidden: set[str] = _fields_of(tool.get_input_schema()).keys() - _fields_of(tool.tool_call_schema).keys()
    return by_signature | hidden


def _fields_of(model: object) -> dict[str, Any]:
    """Return the fields of a pydantic model of version 1 or 2; none for other objects."""
    name = "model_fields" if hasattr(model, "model_fields") else "__fields__"
    return dict(getattr(model, name, {}))


def _takes_one_text(tool: Any) -> bool:
    """Return True for LangChain's oldest kind of tool: a function of one text."""
    return isinstance(tool, _langchain().Tool) and tool.args_schema is None


class _LangChainCall:
    def __init__(self, tool: Any, injected: dict[str, Any]) -> None:
        self.arguments = _LangChainArguments(tool)
        self._tool, self._injected = tool, injected
        self._ids = itertools.count()
        needs_id = bool(self._check_injected())
        # For a whole call, LangChain returns a message, whose status marks an error that the tool handled.
        self._as_call = needs_id or bool(tool.handle_tool_error or tool.handle_validation_error)
        self._has_blocking_form, self.is_async = _forms(tool)

    def _check_injected(self) -> frozenset[str]:
        """Return the arguments for the call's id. Raises ``ToolDefinitionError`` for injected arguments without a value."""
        fields = _fields_of(self._tool.get_input_schema())
        ids = frozenset(name for name in self.arguments.hidden if _is_call_id(name, fields.get(name)))
        for name in sorted(self.arguments.hidden - ids - self._injected.keys()):
            if name not in fields or fields[name].is_required():
                raise ToolDefinitionError(
                    f"The LangChain tool {self._tool.name!r} has the injected argument {name!r}, which models cannot see. "
                    f"Pass its value: Tool.from_langchain(tool, injected={{{name!r}: ...}})."
                )
        for name in sorted(self._injected.keys() - self.arguments.hidden):
            raise ToolDefinitionError(
                f"The LangChain tool {self._tool.name!r} has no injected argument {name!r}. "
                f"Its injected arguments are: {', '.join(sorted(self.arguments.hidden)) or 'none'}."
            )
        return ids

    def call(self, /, **arguments: object) -> object:
        with self._translated_errors():
            answer = self._tool.invoke(self._call_input(arguments))
        return _langchain_value(answer)

    async def acall(self, /, **arguments: object) -> object:
        """Await the tool; under ``block_on``, call its blocking form if it has one."""
        if self._has_blocking_form and started_by_block_on():
            return await to_thread(self.call, **arguments)
        with self._translated_errors():
            answer = await self._tool.ainvoke(self._call_input(arguments))
        return _langchain_value(answer)

    def _call_input(self, arguments: dict[str, object]) -> dict[str, object]:
        given = {**arguments, **self._injected}
        # Arguments in the form of a call would be taken as a call.
        if not self._as_call and given.get("type") != "tool_call":
            return given
        return {"type": "tool_call", "id": f"call_{next(self._ids)}", "name": self._tool.name, "args": given}

    @contextmanager
    def _translated_errors(self) -> Generator[None]:
        try:
            yield
        except _langchain().ToolException as error:
            raise ToolFailed(str(error) or "The tool failed without an error message.") from error
        except ValueError as error:
            schema = self._tool.args_schema
            if isinstance(schema, type) and getattr(error, "title", None) == schema.__name__:
                raise RetryTool(describe_argument_errors(error)) from error
            raise


def _is_call_id(name: str, field: Any) -> bool:
    if field is None:
        return name == "tool_call_id"
    marker = _langchain().InjectedToolCallId
    return any(mark is marker or isinstance(mark, marker) for mark in field.metadata)


def _forms(tool: Any) -> tuple[bool, bool]:
    """Return whether a tool has a blocking form, and whether it has an async form."""
    library = _langchain()
    if isinstance(tool, (library.StructuredTool, library.Tool)):
        return tool.func is not None, tool.coroutine is not None
    return True, tool.__class__._arun is not library.BaseTool._arun


def _langchain() -> Any:
    from importlib import import_module

    return import_module("langchain_core.tools")


def _langchain_value(answer: Any) -> object:
    """Return the result of a tool, or the content of a message with media as parts. Raises ``ToolFailed`` for errors."""
    is_message = getattr(answer, "type", None) == "tool" and hasattr(answer, "status")
    content: object = answer.content if is_message else answer
    if _has_blocks(content):
        content = unwrap_single([b if isinstance(b, str) else _LANGCHAIN_BLOCKS[b["type"]](b) for b in content])
    if is_message and answer.status == "error":
        raise ToolFailed(content if isinstance(content, str) else dumps(answer.content))
    return content


def _has_blocks(content: object) -> TypeGuard[list[Any]]:
    """Return True for a list of content blocks and texts. A list of texts only is a plain value."""
    if not is_array(content):
        return False
    blocks = [block for block in content if not isinstance(block, str)]
    return bool(blocks) and all(is_object(block) and block.get("type") in _LANGCHAIN_BLOCKS for block in blocks)


def _langchain_media(block: JsonObject) -> object:
    data, url, mime = block.get("base64") or block.get("data"), block.get("url"), block.get("mime_type")
    file_id = block.get("file_id") or (block.get("id") if block.get("source_type") == "id" else None)
    return media_part(str(block["type"]), data=data, url=url, file_id=file_id, mime=mime) or block


def _langchain_image_url(block: JsonObject) -> object:
    image = block.get("image_url")
    url = image.get("url") if isinstance(image, dict) else image
    head, _, data = str(url).partition(";base64,")
    return media_part("image", data=data, mime=head.removeprefix("data:")) if data else media_part("image", url=url)


_LANGCHAIN_BLOCKS: Mapping[str, Callable[[JsonObject], object]] = {
    "text": lambda block: block.get("text", block),
    "image_url": _langchain_image_url,
    **dict.fromkeys(("image", "audio", "file"), _langchain_media),
}
