"""Tools and calls under DSPy's names, as subclasses of the core's.

Tool         arguments func, desc, args, arg_types and arg_desc; the attributes of these names
ToolCalls    from_dict_list, model_validate, ToolCall, format
NamedCall    the calls inside: ToolCalls.ToolCall(name=, args=), execute, format
ToolCallResults, NamedResult      the values of calls
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, cast

from pydantic_core import CoreSchema, core_schema

from sigwire.adapters.values.json_text import read_json
from sigwire.core import tools as core
from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.record import FieldValues
from sigwire.core.schema import inline_refs
from sigwire.core.tools.function import FunctionArguments
from sigwire.errors import ConfigurationError, InputError, ToolFailed
from sigwire.keywords import ChecksKeywords

if TYPE_CHECKING:
    from sigwire.core.tools.mcp import ResultMode

__all__ = [
    "CallFailed", "NamedCall", "NamedResult", "Tool", "ToolCallResults", "ToolCalls",
    "convert_input_schema_to_tool_args", "let_block_if",
]  # fmt: skip


_Members: TypeAlias = Mapping[str, Any]
"""An object of JSON, or the variables of a function."""


class Tool(core.Tool):
    """A tool by DSPy's arguments; every other option is that of ``sigwire.Tool``.

    ``args`` holds a JSON Schema by argument, ``arg_types`` and ``arg_desc`` replace types and descriptions of the function.

    >>> tool = Tool(lambda city: city, name="find", desc="Find a city.", arg_types={"city": str})
    >>> tool.desc, tool.args
    ('Find a city.', {'city': {'type': 'string'}})
    """

    __slots__ = ()
    is_refused_at_call: ClassVar[bool] = True  # as an output, by the first call
    fixed_methods: ClassVar[Mapping[str, str]] = dict.fromkeys(
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
    def from_mcp_tool(cls, session: Any, tool: Any, result_mode: ResultMode = "text", **options: Any) -> Self:
        """Return a tool of an MCP server; see ``sigwire.Tool.from_mcp_tool``. A result is its texts, as in DSPy."""
        return cls.of(core.Tool.from_mcp_tool(session, tool, result_mode=result_mode, **options))

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
        """JSON Schema by argument, without references."""
        return convert_input_schema_to_tool_args(self.parameters)[0]

    @property
    def arg_types(self) -> dict[str, Any]:
        """Python type by argument; for a tool made from a schema the type of its JSON."""
        return self._types_of_function() or convert_input_schema_to_tool_args(self.parameters)[1]

    def _types_of_function(self) -> dict[str, Any]:
        return dict(self._arguments.types()) if self._arguments else {}

    @property
    def arg_desc(self) -> dict[str, str]:
        """Description by argument, where there is one; for a tool made from a schema also which it needs."""
        if not self._types_of_function():
            return convert_input_schema_to_tool_args(self.parameters)[2]
        return {name: schema["description"] for name, schema in self.args.items() if "description" in schema}

    @property
    def has_kwargs(self) -> bool:
        """True if the tool takes arguments beside the named ones."""
        return self.parameters.get("additionalProperties") not in (None, False)

    def format_as_litellm_function_call(self, model_type: str = "chat") -> JsonObject:
        """Return ``spec``; for ``model_type="responses"`` its parts at the top."""
        function = self.spec.get("function")
        if model_type == "responses" and isinstance(function, dict):
            return {"type": "function", **function}
        return self.spec

    def __call__(self, /, **arguments: object) -> Any:
        """Call the handler with validated arguments. Waits for an async handler, unless a setting forbids this."""
        if self.is_async and not _may_block():
            raise ConfigurationError(
                f"The tool {self.name!r} is async (calling it blocking). Await tool.acall(...), or set "
                "allow_tool_async_sync_conversion=True."
            )
        return super().__call__(**arguments)

    def __str__(self) -> str:
        description = f", whose description is <desc>{self.desc}</desc>." if self.desc else "."
        return f"{self.name}{description} It takes arguments {self.args}.".replace("\n", "  ")


def _may_block() -> object:  # replaced by the settings, which import this file
    return True


def let_block_if(allowed: Callable[[], object]) -> None:
    """Set the function that decides whether async tools can be called blocking."""
    global _may_block
    _may_block = allowed


def convert_input_schema_to_tool_args(
    schema: _Members,
) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """Return the schemas, types and descriptions of the arguments in a JSON Schema. References are replaced by what they name.

    >>> convert_input_schema_to_tool_args({"properties": {"n": {"type": "integer"}}, "required": ["n"]})[2]
    {'n': 'No description provided. (Required)'}
    """
    found = cast("Mapping[str, _Members]", inline_refs(dict(schema)).get("properties") or {})
    required = schema.get("required", ())
    args = {name: dict(part) for name, part in found.items()}
    types = {name: _TYPES.get(str(part.get("type")), Any) for name, part in args.items()}
    texts = {name: part.get("description", "No description provided.") for name, part in args.items()}
    return args, types, {name: f"{text} (Required)" if name in required else text for name, text in texts.items()}


_TYPES: Mapping[str, type] = {
    "string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict,
}  # fmt: skip


def _schema_of(args: _Members) -> JsonObject:
    required: list[JsonValue] = [name for name, schema in args.items() if "default" not in schema]
    return {"type": "object", "properties": dict(args), **({"required": required} if required else {})}


@dataclass(frozen=True, slots=True, init=False, eq=False, repr=False)
class NamedCall(core.ToolCall):
    """A call by DSPy's arguments ``name`` and ``args``; it can run itself. Arguments that are nearly JSON are repaired.

    >>> call = NamedCall(name="add", args={"a": 1, "b": 2})
    >>> call.execute({"add": lambda a, b: a + b}), call.format()
    (3, {'name': 'add', 'args': {'a': 1, 'b': 2}})
    """

    def __init__(self, name: str, args: object = None, id: str | None = None) -> None:
        self._copy(core.ToolCalls([{"id": id, "name": name, "arguments": args}])[0])
        object.__setattr__(self, "id", id)

    def _copy(self, call: core.ToolCall) -> Self:
        for field in fields(call):
            object.__setattr__(self, field.name, getattr(call, field.name))
        if call.error is not None and call.error.code == "malformed_json":
            with suppress(ValueError):
                arguments = read_json(call.raw_arguments or "")[0]
                object.__setattr__(self, "arguments", arguments if isinstance(arguments, dict) else None)
        return self

    @classmethod
    def of(cls, call: core.ToolCall) -> Self:
        """Return a call of the core as an object of this class."""
        return call if isinstance(call, cls) else object.__new__(cls)._copy(call)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, core.ToolCall):
            return NotImplemented
        same = (self.id, self.name, self.arguments) == (other.id, other.name, other.arguments)
        return same and (self.arguments is not None or self.raw_arguments == other.raw_arguments)

    def __hash__(self) -> int:
        return hash((self.id, self.name))

    def __repr__(self) -> str:
        return f"ToolCall(id={self.id!r}, name={self.name!r}, args={self.arguments!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        plain = core.ToolCall(*(getattr(self, field.name) for field in fields(self)))
        return NamedCall.of, (plain,)

    def format(self) -> JsonObject:
        """Return the name and the arguments."""
        return {"name": self.name, "args": self.arguments}

    def execute(self, functions: Mapping[str, Callable[..., Any]] | Iterable[core.Tool] | None = None) -> Any:
        """Call the function of this name with the arguments: from a dict, from tools, or from the caller's variables.

        Raises ``InputError`` without such a function, and ``CallFailed`` from the error of the function.
        """
        if functions is None:
            frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
            known: _Members = {**frame.f_globals, **frame.f_locals}
        elif isinstance(functions, Mapping):
            known = cast("_Members", functions)
        else:
            known = {tool.name: tool for tool in functions}
        function = known.get(self.name)
        if function is None:
            raise InputError(
                f"The function {self.name!r} is not found (executing a tool call). Pass the tools: execute(functions=[...])."
            )
        try:
            return function(**(self.arguments or {}))
        except Exception as error:
            raise CallFailed(f"Error executing tool {self.name!r}: {error}") from error


class CallFailed(ToolFailed):
    """The function of a call raised an error, which is the cause."""


class ToolCalls(core.ToolCalls):
    """The calls a model made in one turn, with DSPy's methods; a ``History`` replays ``tool_call_results`` as results."""

    __slots__ = ("tool_call_results",)
    ToolCall: ClassVar[type[NamedCall]] = NamedCall
    tool_call_results: ToolCallResults | None

    def __init__(
        self,
        tool_calls: Iterable[core.ToolCall | _Members] = (),
        text: str = "",
        *,
        tool_call_results: ToolCallResults | None = None,
    ) -> None:
        super().__init__(tool_calls, text)
        self._calls = tuple(map(NamedCall.of, self._calls))
        self.tool_call_results = tool_call_results

    @property
    def tool_calls(self) -> list[Any]:
        """The calls as a list."""
        return list(self._calls)

    @classmethod
    def of(cls, calls: core.ToolCalls) -> Self:
        """Return calls of the core as an object of this class."""
        return calls if isinstance(calls, cls) else cls(calls, calls.text)

    @classmethod
    def from_dict_list(cls, calls: Iterable[_Members]) -> Self:
        """Return the calls of ``{"name", "args"}``, ``{"name", "arguments"}`` or ``{"id", "function": {...}}``.

        >>> ToolCalls.from_dict_list([{"name": "add", "args": {"a": 1}}])[0].arguments
        {'a': 1}
        """
        return cls(calls)

    @classmethod
    def model_validate(cls, value: object) -> Self:
        """Return the calls of one call, a list of calls, or ``{"tool_calls": [...]}``. Raises ``InputError``.

        >>> len(ToolCalls.model_validate({"tool_calls": [{"name": "now", "args": {}}]}))
        1
        """
        if isinstance(value, core.ToolCalls):
            return cls.of(value)
        if isinstance(value, Mapping):
            given = cast("_Members", value)
            value = given.get("tool_calls", [given])
        return cls(cast("Iterable[_Members]", value))

    def model_copy(self, *, update: _Members | None = None, deep: bool = False) -> Self:
        """Return a copy with other ``tool_calls`` or ``tool_call_results``."""
        kept: _Members = {"tool_calls": self, "text": self.text, "tool_call_results": self.tool_call_results}
        return type(self)(**{**kept, **(update or {})})

    def model_dump(self, **options: object) -> JsonObject:
        """Return ``format()``."""
        return self.format()

    @classmethod
    def description(cls) -> str:
        """Return the description of the type for a model."""
        return 'Tool calls: {"tool_calls": [{"name": "...", "args": {...}}]}.'

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: object) -> CoreSchema:
        to_json = core_schema.plain_serializer_function_ser_schema(cls.format, when_used="json-unless-none")
        return core_schema.no_info_plain_validator_function(cls.model_validate, serialization=to_json)

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: object) -> JsonObject:
        call: JsonObject = {"name": {"type": "string"}, "args": {"type": "object"}}
        items: JsonObject = {"type": "object", "properties": call, "required": [*call]}
        calls: JsonObject = {"tool_calls": {"type": "array", "items": items}}
        return {"type": "object", "properties": calls, "required": [*calls]}

    def format(self) -> JsonObject:
        """Return the names and arguments of the calls.

        >>> ToolCalls.from_dict_list([{"name": "add", "args": {"a": 1}}]).format()
        {'tool_calls': [{'name': 'add', 'args': {'a': 1}}]}
        """
        return {"tool_calls": [{"name": call.name, "args": call.arguments} for call in self]}


@dataclass(frozen=True)
class NamedResult:
    """The value of one call."""

    name: str
    value: Any
    call_id: str | None = None
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class ToolCallResults(ChecksKeywords):
    """The values of the calls of one turn, in order.

    >>> calls = ToolCalls.from_dict_list([{"name": "add", "args": {"a": 1}}])
    >>> ToolCallResults.from_tool_calls_and_values(calls, [2]).tool_call_results[0].value
    2
    """

    ToolCallResult: ClassVar[type[NamedResult]] = NamedResult
    tool_call_results: Sequence[NamedResult]

    def model_dump(self, **options: object) -> dict[str, object]:
        """Return the results as a dict."""
        items = [{name: getattr(item, name) for name in _RESULT} for item in self.tool_call_results]
        return {"tool_call_results": items}

    @classmethod
    def from_tool_calls_and_values(
        cls, tool_calls: Iterable[core.ToolCall], values: Sequence[Any], is_errors: Sequence[bool] | None = None
    ) -> Self:
        """Return the results of calls. Raises ``InputError`` if the calls, values and errors are not of one length."""
        calls = list(tool_calls)
        errors = [False] * len(calls) if is_errors is None else is_errors
        if not len(calls) == len(values) == len(errors):
            raise InputError(
                f"{len(calls)} calls have {len(values)} values and {len(errors)} errors (making ToolCallResults). "
                "They must have the same length."
            )
        results = zip(calls, values, errors, strict=True)
        return cls([NamedResult(call.name, value, call.id, failed) for call, value, failed in results])

    @classmethod
    def model_validate(cls, value: object) -> Self:
        """Return the results of a list, of one result, or of ``{"tool_call_results": [...]}``. Raises ``InputError``."""
        if isinstance(value, cls):
            return value
        if isinstance(value, Mapping):
            given = cast("FieldValues", value)
            value = given.get("tool_call_results", [given])
        try:
            items = cast("Iterable[Any]", value)
            return cls([item if isinstance(item, NamedResult) else NamedResult(**item) for item in items])
        except TypeError as error:
            raise InputError(f"A result has a name and a value (making ToolCallResults): {error}.") from error


_RESULT = ("call_id", "name", "value", "is_error")
