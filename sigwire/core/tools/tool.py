"""Tools and the traffic about them: Tool (what is offered), ToolCall (the model's ask), ToolResult (the answer).

Nothing here runs a tool on a model's behalf; ``sigwire.modules.agents.toolbox`` does, and it alone. A ``Tool`` knows its name,
its JSON Schema and how arguments fit its Python function (``bind``). A ``ToolCall`` keeps the model's argument text
whatever it is: arguments that are not an object give a tagged ``error``, never a guess and never a lost call.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import isfinite
from operator import is_
from types import MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeGuard, cast, overload

from sigwire.core.json import JsonObject, JsonValue, Value, dumps, loads_once
from sigwire.core.parts import MediaPart
from sigwire.core.tools.hooks import tool_call_hook
from sigwire.effects.loops import block_on, to_thread
from sigwire.errors import InputError, ToolDefinitionError

if TYPE_CHECKING:
    from sigwire.core.tools.function import Arguments, BoundArguments, FunctionArguments
    from sigwire.core.tools.mcp import ResultMode

__all__ = [
    "CallError",
    "CallErrorKind",
    "Tool",
    "ToolCall",
    "ToolCalls",
    "ToolResult",
    "WebSearch",
    "are_same_tools",
    "number_calls",
]

CallErrorKind: TypeAlias = Literal["malformed_json", "not_an_object", "unknown_tool", "schema_mismatch"]


@dataclass(frozen=True, slots=True)
class CallError(Value):
    """Why a call cannot be run as it stands; ``message`` is written for the model to read."""

    code: CallErrorKind
    message: str


@dataclass(frozen=True, slots=True)
class ToolCall(Value):
    """The model's wish to run a tool. Only a module may grant it.

    ``arguments`` is a dict, or ``None`` when the model's text was not an object: then ``error`` says why and
    ``raw_arguments`` has the text. ``provider_data`` is the provider's own (a thought signature) and goes back unread.

    >>> ToolCall.read("call_0", "add", '{"a": 1}').arguments
    {'a': 1}
    >>> ToolCall.read("call_0", "add", '{"a": ').error.code
    'malformed_json'
    """

    kind: ClassVar[str] = "tool_call"
    id: str
    name: str
    arguments: JsonObject | None
    raw_arguments: str | None = None
    error: CallError | None = None
    provider_data: JsonValue = None

    @classmethod
    def read(cls, id: str, name: str, arguments: object, *, provider_data: JsonValue = None) -> ToolCall:
        """A call from whatever a provider or a text gave as arguments: an object, JSON text, ``""``, ``None``.

        ``""``, ``None`` and JSON ``null`` mean no arguments. Text that was encoded twice is decoded twice. Anything else
        that is not an object becomes a call with an ``error``; nothing is repaired and nothing is raised.
        """
        raw = arguments if isinstance(arguments, str) else None
        value, error = _read_arguments(arguments)
        if error and raw is None:
            raw = _as_text(arguments)
        return cls(id, name, value, raw, error, provider_data)

    @property
    def args(self) -> JsonObject | None:
        """The same as ``arguments``."""
        return self.arguments

    @property
    def arguments_text(self) -> str:
        """The arguments as the text to send back: compact JSON; where they are no object, what the model wrote."""
        if self.arguments is None:
            return self.raw_arguments or ""
        return dumps(self.arguments)


def _read_arguments(arguments: object) -> tuple[JsonObject | None, CallError | None]:
    if isinstance(arguments, str):
        try:
            arguments = _decoded(arguments)
            if isinstance(arguments, str):  # it was encoded twice
                arguments = _decoded(arguments)
        except ValueError as fault:
            return None, CallError("malformed_json", f"The arguments are not valid JSON: {fault}")
        if isinstance(arguments, dict):  # straight from JSON: ours to keep, and its keys are texts
            return cast("JsonObject", arguments), None
    if arguments is None:
        return {}, None
    if _is_json_object(arguments):
        return _within_bounds(arguments)
    found = "an object with keys that are not strings" if isinstance(arguments, Mapping) else _json_type(arguments)
    return None, CallError("not_an_object", f"The arguments must be a JSON object, not {found}.")


def _decoded(text: str) -> object:
    return None if not text or text.isspace() else loads_once(text)  # nothing but spaces is nothing


def _is_json_object(value: object) -> TypeGuard[Mapping[str, Any]]:
    return isinstance(value, Mapping) and all(isinstance(key, str) for key in cast("Mapping[object, Any]", value))


def _within_bounds(arguments: Mapping[str, Any]) -> tuple[JsonObject | None, CallError | None]:
    """The reader of whole bodies is less strict than ours: to it ``1e999`` is infinity, which no JSON can say."""
    given = dict(arguments)
    try:
        fault = None if _is_finite(given) else "a number is too large"
    except RecursionError:
        fault = "they are nested too deeply"
    if fault is None:
        return given, None
    return None, CallError("malformed_json", f"The arguments are not valid JSON: {fault}.")


def _is_finite(value: object) -> bool:
    if isinstance(value, dict):
        return all(map(_is_finite, cast("dict[str, object]", value).values()))
    if isinstance(value, list):
        return all(map(_is_finite, cast("list[object]", value)))
    return not isinstance(value, float) or isfinite(value)


_JSON_TYPES: Mapping[type, str] = {
    bool: "a boolean", int: "a number", float: "a number", str: "a string", list: "an array",
}  # fmt: skip


def _json_type(value: object) -> str:
    return _JSON_TYPES.get(type(value), f"a {type(value).__name__}")


def _as_text(value: object) -> str:
    try:
        return dumps(value)
    except (TypeError, ValueError, RecursionError):
        return repr(value)


def number_calls(calls: Iterable[ToolCall], taken: Iterable[str] = ()) -> tuple[ToolCall, ...]:
    """Give every call without an id the first free ``call_<n>``, unique among these calls and the ids ``taken``.

    >>> [call.id for call in number_calls([ToolCall("", "f", {}), ToolCall("x", "f", {})], taken=["call_0"])]
    ['call_1', 'x']
    """
    calls = tuple(calls)
    ids = [call.id for call in calls]
    if all(ids):
        return calls
    used = {*ids, *taken}
    numbered: list[ToolCall] = []
    n = 0
    for call in calls:
        if not call.id:
            while f"call_{n}" in used:
                n += 1
            used.add(f"call_{n}")
            call = ToolCall(f"call_{n}", call.name, call.arguments, call.raw_arguments, call.error, call.provider_data)
        numbered.append(call)
    return tuple(numbered)


class ToolCalls(Sequence[ToolCall]):
    """The calls a model made in one turn, in order: the type of a signature's tool-calls output.

    A sequence of ``ToolCall`` that does not change. ``text`` is the model's text beside them. A call may be given as
    ``{"name", "args"}``, ``{"name", "arguments"}`` or OpenAI's ``{"id", "function": {...}}``.

    >>> calls = ToolCalls([ToolCall("call_0", "add", {"a": 1})])
    >>> len(calls), calls[0].name, bool(ToolCalls())
    (1, 'add', False)
    """

    __slots__ = ("_calls", "_text")

    def __init__(self, tool_calls: Iterable[ToolCall | Mapping[str, Any]] = (), text: str = "") -> None:
        self._calls = number_calls([call if isinstance(call, ToolCall) else _call_from_dict(call) for call in tool_calls])
        self._text = text

    @property
    def tool_calls(self) -> list[ToolCall]:
        """The calls as a list."""
        return list(self._calls)

    @property
    def text(self) -> str:
        """What the model said beside the calls."""
        return self._text

    @overload
    def __getitem__(self, index: int) -> ToolCall: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[ToolCall, ...]: ...
    def __getitem__(self, index: int | slice) -> ToolCall | tuple[ToolCall, ...]:
        return self._calls[index]

    def __len__(self) -> int:
        return len(self._calls)

    def __iter__(self) -> Iterator[ToolCall]:
        return iter(self._calls)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, ToolCalls):
            return self._calls == other._calls and self.text == other.text
        return NotImplemented

    def __hash__(self) -> int:
        return hash(tuple((call.id, call.name) for call in self._calls))

    def __repr__(self) -> str:
        text = f", text={self.text!r}" if self.text else ""
        return f"ToolCalls({list(self._calls)!r}{text})"

    def to_json(self) -> JsonObject:
        """Plain JSON with ids, raw arguments, errors and provider data."""
        return {"tool_calls": [call.to_json() for call in self._calls], **({"text": self.text} if self.text else {})}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> ToolCalls:
        """Read what ``to_json`` wrote."""
        return cls([ToolCall.from_json(call) for call in data["tool_calls"]], data.get("text", ""))


def _call_from_dict(data: Mapping[str, Any]) -> ToolCall:
    if data.get("type") == ToolCall.kind:
        return ToolCall.from_json(data)
    body = data.get("function") if isinstance(data.get("function"), Mapping) else data
    name = body.get("name") if body else None
    if not body or not isinstance(name, str) or not name:
        raise ValueError(f"A tool call needs a name; got {data!r:.120}. Write {{'name': ..., 'args': {{...}}}}.")
    arguments = next((body[key] for key in ("arguments", "args", "parameters") if key in body), None)
    return ToolCall.read(str(data.get("id") or ""), name, arguments)


@dataclass(frozen=True, slots=True)
class ToolResult(Value):
    """What a call gave. ``content`` is text, or any JSON value; ``is_error`` tells the model that it failed.

    ``media`` holds images, sound or files that belong to the result.

    >>> ToolResult("call_0", "stock", {"left": 3}).text
    '{"left":3}'
    """

    kind: ClassVar[str] = "tool_result"
    id: str
    name: str
    content: JsonValue = ""
    is_error: bool = False
    media: tuple[MediaPart, ...] = ()

    @property
    def text(self) -> str:
        """The content as text: strings as they are, everything else as compact JSON."""
        return self.content if isinstance(self.content, str) else dumps(self.content)


@dataclass(frozen=True, slots=True)
class WebSearch(Value):
    """A provider's built-in web search. Limits that a provider does not know are refused or warned about by its wire."""

    kind: ClassVar[str] = "web_search"
    allowed_domains: tuple[str, ...] = ()
    blocked_domains: tuple[str, ...] = ()
    max_uses: int | None = None
    user_location: JsonObject | None = None


_NO_PARAMETERS: JsonObject = {"type": "object", "properties": {}}


class Tool:
    """Something a model may ask for: a name, a description, a JSON Schema for the arguments, and the function behind it.

    ``Tool(function)`` reads all of it from the function: type hints, docstring, defaults. With
    ``parameters`` (a JSON Schema of an object) the schema is taken as it is, see
    ``from_schema``; it may also be an object that describes and checks arguments in a way of its own (``Arguments``).
    ``handler`` is the function, sync or async, or ``None`` for a tool that somebody else runs.

    ``timeout`` is in seconds and ``max_output`` in characters of the encoded result (``None``: no limit);
    ``parallel=False`` keeps the tool from running beside others. ``config`` holds a built-in tool's settings. ``metadata``
    is JSON about the tool that no model sees, such as an MCP tool's annotations.
    A tool does not change. Raises ``ToolDefinitionError`` when name, schema or function cannot be offered.

    >>> def add(a: int, b: int = 1) -> int:
    ...     '''Add two numbers.
    ...
    ...     Args:
    ...         a: The first.
    ...     '''
    ...     return a + b
    >>> tool = Tool(add)
    >>> tool.name, tool.description, tool.parameters["required"]
    ('add', 'Add two numbers.', ['a'])
    >>> tool(a=2)
    3
    """

    __slots__ = (
        "_arguments", "_bind", "_parameters", "_spec", "config", "description", "handler", "is_async", "max_output",
        "metadata", "name", "parallel", "timeout",
    )  # fmt: skip

    callbacks: ClassVar[tuple[Any, ...]] = ()  # looked up for every call: missing would be slow

    name: str
    description: str
    handler: Callable[..., Any] | None
    config: WebSearch | None
    timeout: float | None
    max_output: int | None
    parallel: bool
    metadata: JsonObject
    is_async: bool
    _arguments: Arguments | None
    _parameters: JsonObject | None
    _spec: JsonObject | None
    _bind: Callable[[Mapping[str, Any]], BoundArguments] | None

    def __init__(
        self,
        function: Callable[..., Any] | None = None,
        name: str | None = None,
        description: str | None = None,
        parameters: dict[str, Any] | Arguments | None = None,
        handler: Callable[..., Any] | None = None,
        *,
        config: WebSearch | None = None,
        timeout: float | None = None,
        max_output: int | None = None,
        parallel: bool = True,
        metadata: JsonObject | None = None,
    ) -> None:
        # A program without tools loads nothing of how they are made.
        from sigwire.core.tools.docstring import read_docstring
        from sigwire.core.tools.inspection import function_docstring, function_name, is_async_function

        handler = handler if function is None else function
        read = _function_arguments(handler, name) if parameters is None and config is None else None
        arguments = parameters if _describes_arguments(parameters) else read
        if name is None:
            name = "" if handler is None else function_name(handler)
        if description is None:
            text = read.text if read else read_docstring(handler and function_docstring(handler))
            description = text.description
        _check_tool(name, handler, None if arguments else parameters)
        keep = partial(object.__setattr__, self)
        keep("name", name)
        keep("description", description)
        keep("handler", handler)
        keep("config", config)
        keep("timeout", timeout)
        keep("max_output", max_output)
        keep("parallel", parallel)
        keep("is_async", handler is not None and is_async_function(handler))
        keep("metadata", dict(metadata or {}))
        keep("_arguments", arguments)
        keep("_parameters", None if arguments else parameters)
        keep("_spec", None)
        keep("_bind", arguments.bind if arguments else None)

    @classmethod
    def from_function(cls, function: Callable[..., Any], **options: Any) -> Tool:
        """The same as ``Tool(function, ...)``."""
        return cls(function, **options)

    @classmethod
    def from_schema(
        cls,
        name: str,
        description: str = "",
        parameters: dict[str, Any] | None = None,
        handler: Callable[..., Any] | None = None,
        **options: Any,
    ) -> Tool:
        """A tool whose parameters are a JSON Schema, sent as it is and enforced before ``handler(**arguments)`` is called.

        >>> tool = Tool.from_schema("ping", "Say hello.", {"type": "object", "properties": {"from": {"type": "string"}}})
        >>> tool.bind({"from": "me"}).kwargs
        {'from': 'me'}
        """
        parameters = _NO_PARAMETERS if parameters is None else parameters
        return cls(name=name, description=description, parameters=parameters, handler=handler, **options)

    @classmethod
    def from_mcp_tool(
        cls, session: Any, tool: Any, *, result_mode: ResultMode = "auto", loop: Any = None, **options: Any
    ) -> Tool:
        """A tool of an MCP server (https://modelcontextprotocol.io), called through a session that you keep open.

        ``session``: whatever has MCP's async ``call_tool``, such as the SDK's ``Client`` and ``ClientSession``. ``tool``: one
        of ``(await session.list_tools()).tools``, or its JSON. The input schema is kept whole, and arguments are checked
        against it before the session is called. Title, annotations and output schema are in ``metadata``; without a
        description, the title is one. ``options`` go to ``Tool`` and over what the server says: ``name``, ``description``,
        ``timeout`` ...

        A result is a text, JSON or a media part, or a list of those. ``result_mode``: ``"auto"`` gives structured content and
        whatever else the result says, each once; ``"structured"`` only the former where there is some, ``"text"`` only the
        latter. A result with ``isError`` raises ``ToolFailed`` with its words.

        A session lives on one event loop: the one that runs here, or ``loop``. Calls are made there from every thread and
        loop; ``EventLoopError`` is raised where that would never end, above all for a blocking call on that very loop.
        Raises ``ToolDefinitionError`` for what is no session or no tool.

        >>> class Session:
        ...     async def call_tool(self, name, arguments):
        ...         return {"content": [{"type": "text", "text": f"{name} of {arguments['n']}"}]}
        >>> schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        >>> Tool.from_mcp_tool(Session(), {"name": "half", "inputSchema": schema})(n=4)
        'half of 4'
        """
        from sigwire.core.tools.mcp import mcp_tool

        return mcp_tool(session, tool, result_mode=result_mode, loop=loop, **options)

    @classmethod
    def from_langchain(cls, tool: Any, *, injected: Mapping[str, Any] | None = None, **options: Any) -> Tool:
        """A LangChain tool: a ``BaseTool``, such as a function under ``@tool``, sync, async or both.

        Arguments that are marked as injected are hidden from the model; ``injected`` has their values (the id of the call is
        given by itself). ``ToolException`` becomes ``ToolFailed``, whether or not the tool handles it; arguments that only the
        tool's own validators refuse become ``RetryTool``. Of a tool that answers with content and artifact, the content is the
        value, media among it as parts. Tags, metadata and extras are in ``metadata``. ``options`` go to ``Tool`` and over what
        the tool says: ``name``, ``description``, ``timeout`` ...

        Raises ``ToolDefinitionError`` for what is no LangChain tool, and for injected arguments without a value.

        >>> from langchain_core.tools import tool
        >>> @tool
        ... def half(n: int) -> float:
        ...     "Half a number."
        ...     return n / 2
        >>> Tool.from_langchain(half)(n="5")
        2.5
        """
        from sigwire.core.tools.mcp import langchain_tool

        return langchain_tool(tool, injected=injected, **options)

    @classmethod
    def web_search(cls, search: WebSearch | None = None) -> Tool:
        """The provider's built-in web search; the provider runs it.

        >>> Tool.web_search(WebSearch(max_uses=2)).spec
        {'type': 'web_search', 'web_search': {'max_uses': 2}}
        """
        return cls(name=WebSearch.kind, description="Search the web.", config=search or WebSearch())

    # --- for the model ---

    @property
    def parameters(self) -> JsonObject:
        """The JSON Schema of the arguments, an object. Made on first use."""
        parameters = self._parameters
        if parameters is None:
            parameters = self._arguments.schema() if self._arguments else _NO_PARAMETERS
            object.__setattr__(self, "_parameters", parameters)
        return parameters

    @property
    def spec(self) -> JsonObject:
        """The tool as it stands in a request: OpenAI's dict of a function, or ``{"type": kind, kind: {...}}`` if built-in."""
        spec = self._spec
        if spec is None:
            spec = self._write_spec()
            object.__setattr__(self, "_spec", spec)
        return spec

    def _write_spec(self) -> JsonObject:
        if self.config is not None:
            settings = self.config.to_json()
            kind = str(settings.pop("type"))
            return {"type": kind, kind: settings}
        function: JsonObject = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}

    # --- for the call ---

    def bind(self, arguments: Mapping[str, Any]) -> BoundArguments:
        """Check and convert arguments for the handler. Raises ``InputError`` whose message a model can act on.

        Functions get their declared types (``"5"`` for an ``int`` is 5, as pydantic reads it); a JSON Schema is enforced
        as it stands and changes nothing.
        """
        bind = self._bind
        if bind is None:
            bind = _schema_bind(self.parameters)
            object.__setattr__(self, "_bind", bind)
        return bind(arguments)

    def __call__(self, /, **arguments: Any) -> Any:
        """Call the handler yourself, with checked arguments. An async handler is waited for."""
        with tool_call_hook(self, arguments) as end:
            result = self._handler()(*(bound := self.bind(arguments)).args, **bound.kwargs)
            end(result := block_on(_wait_for(result)) if inspect.isawaitable(result) else result)
        return result

    async def acall(self, /, **arguments: Any) -> Any:
        """``tool(...)``, awaited; a handler that blocks runs in a thread."""
        with tool_call_hook(self, arguments) as end:
            end(result := await self._called(self.bind(arguments)))
        return result

    async def _called(self, bound: BoundArguments) -> Any:
        if self.is_async:
            return await self._handler()(*bound.args, **bound.kwargs)
        result = await to_thread(self._handler(), *bound.args, **bound.kwargs)
        return await result if inspect.isawaitable(result) else result

    def _handler(self) -> Callable[..., Any]:
        if self.handler is None:
            raise ToolDefinitionError(
                f"The tool {self.name!r} has no handler to call. Give it one: Tool(name=..., parameters=..., handler=f)."
            )
        return self.handler

    # --- value ---

    def to_json(self) -> JsonObject:
        """The tool without its handler."""
        data: JsonObject = {"name": self.name, "description": self.description}
        data |= {"parameters": self.parameters} if self.config is None else {"config": self.config.to_json()}
        more: JsonObject = {
            "timeout": self.timeout,
            "max_output": self.max_output,
            "parallel": None if self.parallel else False,
            "metadata": self.metadata or None,
        }
        return data | {name: value for name, value in more.items() if value is not None}

    @classmethod
    def from_json(cls, data: Mapping[str, Any], handler: Callable[..., Any] | None = None) -> Tool:
        """Read what ``to_json`` wrote; the handler is given anew.

        >>> Tool.from_json(Tool.from_schema("ping", "Hi.").to_json()) == Tool.from_schema("ping", "Hi.")
        True
        """
        config = WebSearch.from_json(data["config"]) if "config" in data else None
        parameters = None if config else data.get("parameters", _NO_PARAMETERS)
        options = {name: data[name] for name in ("timeout", "max_output", "parallel", "metadata") if name in data}
        options |= {"name": data["name"], "description": data.get("description", ""), "config": config}
        return cls(parameters=parameters, handler=handler, **options)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Tool):
            return NotImplemented
        return (self.handler, self.timeout, self.max_output, self.parallel, self.metadata, self.spec) == (
            other.handler, other.timeout, other.max_output, other.parallel, other.metadata, other.spec,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash(self.name)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"A Tool does not change; make a new one to set {name!r}.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"A Tool does not change; {name!r} stays.")

    def __copy__(self) -> Tool:
        return self

    def __deepcopy__(self, memo: object) -> Tool:
        return self  # a handler may hold connections and locks, and a tool does not change

    def __getstate__(self) -> dict[str, Any]:
        # What is compiled stays behind; the handler goes along, by name, if it can.
        return {name: getattr(self, name) for name in Tool.__slots__ if name != "_bind"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name, value in state.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_bind", self._arguments.bind if self._arguments else None)

    def __repr__(self) -> str:
        return f"Tool({self.name}({', '.join(cast('JsonObject', self.parameters.get('properties', {})))}))"


def _function_arguments(
    handler: Callable[..., Any] | None,
    name: str | None,
) -> FunctionArguments:
    if handler is None:
        raise ToolDefinitionError(
            f"The tool {name or '(unnamed)'!r} has neither a function nor parameters. Use Tool(function), or "
            "Tool.from_schema(name, description, parameters)."
        )
    if not callable(handler):
        raise ToolDefinitionError(
            f"A tool is made from a function, not from {type(handler).__name__} ({handler!r:.60}). {_how_to_make_one(handler)}"
        )
    from sigwire.core.tools.function import FunctionArguments

    return FunctionArguments(handler)


def _how_to_make_one(thing: object) -> str:
    packages = {cls.__module__.partition(".")[0] for cls in type(thing).__mro__}
    known = (way for package, way in _WAYS.items() if package in packages)
    return next(known, "Use Tool(function), or Tool(name=..., description=..., parameters={...}, handler=function).")


# By the package that something is from: how to make a tool of it.
_WAYS: Mapping[str, str] = {
    "langchain_core": "Use Tool.from_langchain(tool).",
    "mcp": "Use Tool.from_mcp_tool(session, tool).",
    "mcp_types": "Use Tool.from_mcp_tool(session, tool).",
}


def _describes_arguments(parameters: object) -> TypeGuard[Arguments]:
    return callable(getattr(parameters, "schema", None)) and callable(getattr(parameters, "bind", None))


def _check_tool(name: object, handler: object, parameters: Any) -> None:
    if not isinstance(name, str) or not name.strip():
        raise ToolDefinitionError(f"A tool needs a name, a text that is not empty; got {name!r}. Pass name='...'.")
    if name == "<lambda>":
        raise ToolDefinitionError("A lambda has no name that a model could use. Pass one: Tool(f, name='...').")
    if handler is not None and not callable(handler):
        raise ToolDefinitionError(
            f"The handler of {name!r} is no function but {type(handler).__name__}. Pass a callable."
        )
    if parameters is not None:
        if not isinstance(parameters, dict):
            raise ToolDefinitionError(f"The parameters of {name!r} are no JSON Schema but {type(parameters).__name__}.")
        from sigwire.core.schema import check_schema

        check_schema(cast("JsonObject", parameters), f"Tool {name!r}")


def _schema_bind(schema: JsonObject) -> Callable[[Mapping[str, Any]], BoundArguments]:
    from sigwire.core.schema import validator
    from sigwire.core.tools.function import BoundArguments

    faults_of = validator(schema)

    def bind(arguments: Mapping[str, Any]) -> BoundArguments:
        values = dict(arguments)
        if faults := faults_of(values):
            raise InputError("; ".join(faults))
        return BoundArguments((), values)

    return bind


async def _wait_for(result: Awaitable[Any]) -> Any:
    return await result


def are_same_tools(some: tuple[object, ...], others: tuple[object, ...]) -> bool:
    """Return True if both hold the same tools or functions, by identity; bound methods compare by object and function."""
    if some is others:
        return True
    return len(some) == len(others) and (all(map(is_, some, others)) or all(map(_is_same, some, others)))


def _is_same(one: object, other: object) -> bool:
    return one is other or (type(one) is MethodType and one == other)
