"""Tools and calls under DSPy's names, as subclasses of the core's.

Tool         arguments func, desc, args, arg_types and arg_desc; the attributes of these names
ToolCalls    from_dict_list, ToolCall, format
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Self, cast

from sigwire.core import tools as core
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.tools.function import FunctionArguments

__all__ = ["Tool", "ToolCalls"]


class Tool(core.Tool):
    """A tool by DSPy's arguments; every other option is that of ``sigwire.Tool``.

    ``args`` holds a JSON Schema by argument, ``arg_types`` and ``arg_desc`` replace types and descriptions of the function.

    >>> tool = Tool(lambda city: city, name="find", desc="Find a city.", arg_types={"city": str})
    >>> tool.desc, tool.args
    ('Find a city.', {'city': {'type': 'string'}})
    """

    __slots__ = ()
    _fixed: ClassVar[Mapping[str, str]] = dict.fromkeys(
        ("desc", "func", "args", "arg_types", "arg_desc", "has_kwargs", "format_as_litellm_function_call"),
        "pass func, desc, args, arg_types and arg_desc to the constructor, or override spec",
    )

    def __init__(
        self,
        func: Callable[..., Any] | None = None,
        name: str | None = None,
        desc: str | None = None,
        args: Mapping[str, Any] | None = None,
        arg_types: Mapping[str, Any] | None = None,
        arg_desc: Mapping[str, str] | None = None,
        *,
        description: str | None = None,
        parameters: Any = None,
        handler: Callable[..., Any] | None = None,
        **options: Any,
    ) -> None:
        function = handler if func is None else func
        if parameters is None and args is not None:
            parameters = _schema_of(args)
        if parameters is None and callable(function) and (arg_types or arg_desc):
            parameters = FunctionArguments(function, arg_types, arg_desc)
        description = desc if description is None else description
        super().__init__(function, name, description, parameters, **options)

    @classmethod
    def of(cls, tool: core.Tool) -> Self:
        """Return a tool of the core as one of this class; the handler is shared.

        >>> Tool.of(core.Tool(print, name="say")).func is print
        True
        """
        if isinstance(tool, cls):
            return tool
        made = object.__new__(cls)
        made.__setstate__(tool.__getstate__())
        return made

    @classmethod
    def from_mcp_tool(cls, session: Any, tool: Any, **options: Any) -> Self:
        """Return a tool of an MCP server; see ``sigwire.Tool.from_mcp_tool``."""
        return cls.of(core.Tool.from_mcp_tool(session, tool, **options))

    @classmethod
    def from_langchain(cls, tool: Any, **options: Any) -> Self:
        """Return a LangChain tool; see ``sigwire.Tool.from_langchain``."""
        return cls.of(core.Tool.from_langchain(tool, **options))

    @property
    def desc(self) -> str:
        """The description."""
        return self.description

    @property
    def func(self) -> Callable[..., Any] | None:
        """The handler."""
        return self.handler

    @property
    def args(self) -> dict[str, Any]:
        """JSON Schema by argument."""
        return dict(cast("dict[str, Any]", self.parameters.get("properties", {})))

    @property
    def arg_types(self) -> dict[str, Any]:
        """Python type by argument; empty for a tool made from a schema."""
        return dict(self._arguments.types()) if self._arguments else {}

    @property
    def arg_desc(self) -> dict[str, str]:
        """Description by argument, where there is one."""
        return {name: schema["description"] for name, schema in self.args.items() if "description" in schema}

    @property
    def has_kwargs(self) -> bool:
        """True if the tool takes arguments beside the named ones."""
        return self.parameters.get("additionalProperties") not in (None, False)

    def format_as_litellm_function_call(self) -> JsonObject:
        """Return ``spec``."""
        return self.spec


def _schema_of(args: Mapping[str, Any]) -> JsonObject:
    required: list[JsonValue] = [name for name, schema in args.items() if "default" not in schema]
    return {"type": "object", "properties": dict(args), **({"required": required} if required else {})}


class ToolCalls(core.ToolCalls):
    """The calls a model made in one turn, with DSPy's methods."""

    __slots__ = ()

    @classmethod
    def of(cls, calls: core.ToolCalls) -> Self:
        """Return calls of the core as an object of this class."""
        return calls if isinstance(calls, cls) else cls(calls, calls.text)

    @classmethod
    def from_dict_list(cls, calls: Iterable[Mapping[str, Any]]) -> Self:
        """Return the calls of ``{"name", "args"}``, ``{"name", "arguments"}`` or ``{"id", "function": {...}}``.

        >>> ToolCalls.from_dict_list([{"name": "add", "args": {"a": 1}}])[0].arguments
        {'a': 1}
        """
        return cls(calls)

    @staticmethod
    def ToolCall(name: str, args: object = None, id: str | None = None) -> core.ToolCall:  # noqa: N802  (DSPy's name)
        """Return a call; ``args`` is an object or JSON text. ``ToolCalls`` gives it an id if it has none.

        >>> ToolCalls([ToolCalls.ToolCall(name="add", args={"a": 1})])[0].id
        'call_0'
        """
        return core.ToolCalls([{"id": id, "name": name, "arguments": args}])[0]

    def format(self) -> JsonObject:
        """Return the names and arguments of the calls.

        >>> ToolCalls.from_dict_list([{"name": "add", "args": {"a": 1}}]).format()
        {'tool_calls': [{'name': 'add', 'args': {'a': 1}}]}
        """
        return {"tool_calls": [{"name": call.name, "args": call.arguments} for call in self]}
