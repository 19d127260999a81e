"""Tool: a function that a model may call. It has a name, a JSON Schema, and ``bind``, which validates arguments.

This file runs no tool on behalf of a model; only ``sigwire.modules.agents.toolbox`` does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import partial
from inspect import isawaitable
from operator import is_
from reprlib import repr as short
from types import GeneratorType, MethodType
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeGuard, cast, get_args

from sigwire.core.json import JsonObject, decoding
from sigwire.core.tools.calls import ToolCall, WebSearch
from sigwire.core.tools.held import HasHandler, Memo, holds, rebound
from sigwire.core.tools.hooks import tool_call_hook
from sigwire.effects.loops import EventLoop, block_on_result, to_thread
from sigwire.errors import ConfigurationError, InputError, ToolDefinitionError
from sigwire.keywords import ChecksKeywords
from sigwire.overriding import check_overrides
from sigwire.show.card import HasCard

if TYPE_CHECKING:
    from sigwire.core.record import FieldValues
    from sigwire.core.tools.function import Arguments, BoundArguments, FunctionArguments
    from sigwire.core.tools.injected import Injection
    from sigwire.core.tools.inspection import UserFunction
    from sigwire.core.tools.mcp import McpSession, ResultMode
    from sigwire.core.tools.texts import ToolText

__all__ = [
    "Approve", "OnCrash", "OnError", "Tool", "are_same_tools", "as_tool", "check_limits", "check_on_error", "several_tools",
]  # fmt: skip

JsonSchema: TypeAlias = dict[str, Any]
"""A JSON Schema written by a user: any dict, so that literals need no cast."""
OnCrash: TypeAlias = Literal["ask", "rerun", "fail"]
Approve: TypeAlias = bool | Callable[[ToolCall], object]
OnError: TypeAlias = Literal["answer", "abort"] | Callable[[Exception], object]
_NO_PARAMETERS: JsonObject = {"type": "object", "properties": {}}
_MOST_VIEWS = 256
_OPTIONS: Mapping[str, object] = {
    "timeout": None, "max_output": None, "parallel": True, "on_crash": "ask", "approve": None, "max_calls": None,
    "repeat": False, "tunable": True, "on_error": None, "defer": None,
}  # fmt: skip
_ADDED: Mapping[str, object] = {"guards": (), "injected": {}}
_NO_ARGUMENTS: tuple[JsonObject, ...] = ({}, {"type": "object"})


class Tool(ChecksKeywords, HasCard, HasHandler):
    """A tool that a model may call: a name, a description, a JSON Schema of the arguments, and the function.

    ``Tool(function)`` reads name, description and schema from the function: type hints, docstring, defaults. ``Tool(module)``
    reads them from the module's signature, or from its ``forward``; a model gets its declared outputs. ``parameters``
    is a JSON Schema that is used unchanged (see ``from_schema``), or an object that describes and validates arguments
    (``Arguments``). ``handler`` is the function, sync or async, the module, a ``functools.partial`` of one, or ``None`` for a
    tool that the provider or caller runs.

    ``timeout`` is in seconds and ``max_output`` in characters of the encoded result (``None``: no limit);
    ``parallel=False`` forbids running the tool at the same time as other tools. ``on_crash`` is for runs with a ``Journal``:
    whether a call that a crash interrupted waits for a decision ("ask"), runs again ("rerun") or fails ("fail").
    ``approve``: ``True`` asks a person before each call (``ApprovalNeeded``); a function, sync or async, gets the ``ToolCall``
    and returns ``True``, ``False``, the reason of a denial, or ``None`` to ask; ``False`` asks never; ``None``: as the agent.
    ``max_calls`` is for one run of an agent; ``repeat=True`` allows equal calls with equal results without limit. ``config``
    has the settings of a built-in tool. ``metadata`` is JSON that models do not see, such as annotations of an MCP tool.
    ``tunable=False`` keeps optimizers from changing the texts. ``on_error`` is ``on_tool_error`` of ``ReAct``, for this tool
    (``None``: as the agent). ``defer``: an agent offers the tool only after a search of tools (``True``), from the start
    (``False``), or as its ``tool_search`` decides (``None``).
    Tools are immutable. Raises ``ToolDefinitionError`` if name, schema or function cannot be offered.

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
        "_arguments",
        "_bind",
        "_parameters",
        "_spec",
        "_views",
        "approve",
        "config",
        "defer",
        "description",
        "guards",
        "handler",
        "injected",
        "is_async",
        "max_calls",
        "max_output",
        "metadata",
        "name",
        "on_crash",
        "on_error",
        "parallel",
        "repeat",
        "timeout",
        "tunable",
    )

    _shown_by = "sigwire.core.cards.tools:tool"
    callbacks: ClassVar[tuple[object, ...]] = ()  # read by every call: a missing attribute would be slow
    fixed_methods: ClassVar[Mapping[str, str]] = {
        **dict.fromkeys(("__call__", "acall", "astart", "check_injected", "start"), "pass the function as handler"),
        "described": "override spec",
    }

    name: str
    description: str
    handler: UserFunction | None
    config: WebSearch | None
    timeout: float | None
    max_output: int | None
    parallel: bool
    on_crash: OnCrash
    approve: Approve | None
    max_calls: int | None
    repeat: bool
    metadata: JsonObject
    tunable: bool
    on_error: OnError | None
    defer: bool | None
    is_async: bool
    guards: tuple[Callable[[Any], object], ...]
    injected: Mapping[str, Injection]
    _arguments: Arguments | None
    _parameters: JsonObject | None
    _spec: JsonObject | None
    _bind: Callable[[FieldValues], BoundArguments] | None
    _views: dict[ToolText, Tool]

    def __init__(
        self,
        function: UserFunction | None = None,
        name: str | None = None,
        description: str | None = None,
        parameters: JsonSchema | Arguments | None = None,
        handler: UserFunction | None = None,
        *,
        config: WebSearch | None = None,
        timeout: float | None = None,
        max_output: int | None = None,
        parallel: bool = True,
        on_crash: OnCrash = "ask",
        approve: Approve | None = None,
        max_calls: int | None = None,
        repeat: bool = False,
        metadata: JsonObject | None = None,
        tunable: bool = True,
        on_error: OnError | None = None,
        defer: bool | None = None,
    ) -> None:
        from sigwire.core.tools.inspection import is_async_function  # lazy: only tools need it

        handler = handler if function is None else function
        is_described = parameters is not None or config is not None
        read = (
            None
            if is_described and name is not None and description is not None
            else _read(handler, name, is_described)
        )
        arguments = parameters if _describes_arguments(parameters) else None if is_described or not read else read[2]
        name = (read[0] if read else "") if name is None else name
        description = (read[1] if read else "") if description is None else description
        _check_tool(name, handler, None if arguments else parameters)
        check_limits(f"the tool {name!r}", timeout=timeout, max_output=max_output, max_calls=max_calls)
        if approve is not None and not isinstance(approve, bool) and not callable(approve):  # pyright: ignore[reportUnnecessaryComparison]
            raise ToolDefinitionError(
                f"approve is True, False or a function, not {short(approve)} (the tool {name!r}). Pass one of these."
            )
        if on_crash not in (known := get_args(OnCrash)):
            raise ToolDefinitionError(
                f"on_crash is one of {', '.join(known)}, not {short(on_crash)} (the tool {name!r}). Use one of these."
            )
        check_on_error(on_error, f"the tool {name!r}")
        if defer not in (None, True, False):
            raise ToolDefinitionError(
                f"defer is True, False or None, not {short(defer)} (the tool {name!r}). Pass one of these."
            )
        keep = partial(object.__setattr__, self)
        for part in ("name", name), ("description", description), ("handler", handler), ("config", config):
            keep(*part)
        options = (timeout, max_output, parallel, on_crash, approve, max_calls, repeat, tunable, on_error, defer)
        for option, value in zip(_OPTIONS, options, strict=True):
            keep(option, value)
        keep("is_async", handler is not None and is_async_function(handler))
        keep("metadata", dict(metadata or {}))
        keep("guards", ())
        keep("injected", _injected_of(handler, arguments))
        keep("_arguments", arguments)
        keep("_parameters", None if arguments or parameters in _NO_ARGUMENTS else parameters)
        keep("_spec", None)
        keep("_bind", arguments.bind if arguments else None)
        keep("_views", {})

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        check_overrides(cls)

    @classmethod
    def from_function(cls, function: UserFunction, **options: Any) -> Tool:
        """Return ``Tool(function, **options)``."""
        return cls(function, **options)

    @classmethod
    def from_schema(
        cls,
        name: str,
        description: str = "",
        parameters: JsonSchema | None = None,
        handler: UserFunction | None = None,
        **options: Any,
    ) -> Tool:
        """Return a tool with a JSON Schema, which is sent unchanged and enforced before ``handler(**arguments)`` is called.

        >>> tool = Tool.from_schema("ping", "Say hello.", {"type": "object", "properties": {"from": {"type": "string"}}})
        >>> tool.bind({"from": "me"}).kwargs
        {'from': 'me'}
        """
        parameters = _NO_PARAMETERS if parameters is None else parameters
        return cls(name=name, description=description, parameters=parameters, handler=handler, **options)

    @classmethod
    def from_mcp_tool(
        cls,
        session: McpSession,
        tool: object,
        *,
        result_mode: ResultMode = "auto",
        loop: EventLoop | None = None,
        **options: Any,
    ) -> Tool:
        """Return a tool of an MCP server (https://modelcontextprotocol.io). The caller must keep the session open.

        ``session``: an object with MCP's async ``call_tool``, such as the SDK's ``Client`` and ``ClientSession``. ``tool``: one
        of ``(await session.list_tools()).tools``, or its JSON. The input schema is kept whole and enforced before the session
        is called. Title, annotations and output schema are in ``metadata``; the title is the default description.
        ``options`` are keywords of ``Tool`` and override the server's values: ``name``, ``description``, ``timeout`` ...

        A result is a text, JSON or a media part, or a list of those. ``result_mode``: ``"auto"`` returns structured content
        and the blocks that do not repeat it; ``"structured"`` only structured content, if there is some; ``"text"`` only the
        blocks. A result with ``isError`` raises ``ToolFailed``.

        A session belongs to one event loop: the running one, or ``loop``. Calls run there, from every thread and loop.
        ``EventLoopError`` is raised if a call would never end, such as a blocking call on that loop. Raises
        ``ToolDefinitionError`` if session or tool is another kind of object.

        >>> class Session:
        ...     async def call_tool(self, name, arguments):
        ...         return {"content": [{"type": "text", "text": f"{name} of {arguments['n']}"}]}
        >>> schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
        >>> Tool.from_mcp_tool(Session(), {"name": "half", "inputSchema": schema})(n=4)
        'half of 4'
        """
        from sigwire.core.tools.mcp import mcp_definition

        return cls(**mcp_definition(session, tool, result_mode=result_mode, loop=loop) | options)

    @classmethod
    def from_langchain(cls, tool: object, *, injected: FieldValues | None = None, **options: Any) -> Tool:
        """Return a LangChain tool: a ``BaseTool``, such as a function under ``@tool``, sync, async or both.

        Injected arguments are hidden from the model; ``injected`` has their values (the id of the call is filled in).
        ``ToolException`` becomes ``ToolFailed``, whether or not the tool handles it; arguments that only the tool's validators
        refuse become ``RetryTool``. If a tool returns content and artifact, the content is the value, with media as parts.
        Tags, metadata and extras are in ``metadata``. ``options`` are keywords of ``Tool`` and override the tool's values:
        ``name``, ``description``, ``timeout`` ...

        Raises ``ToolDefinitionError`` for other objects, and for injected arguments without a value.

        >>> from langchain_core.tools import tool
        >>> @tool
        ... def half(n: int) -> float:
        ...     "Half a number."
        ...     return n / 2
        >>> Tool.from_langchain(half)(n="5")
        2.5
        """
        from sigwire.core.tools.langchain import langchain_definition

        return cls(**langchain_definition(tool, injected=injected) | options)

    @classmethod
    def web_search(cls, search: WebSearch | None = None) -> Tool:
        """Return the built-in web search of the provider, which runs it.

        >>> Tool.web_search(WebSearch(max_uses=2)).spec
        {'type': 'web_search', 'web_search': {'max_uses': 2}}
        """
        return cls(name=WebSearch.kind, description="Search the web.", config=search or WebSearch())

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
        """The tool in a request: OpenAI's dict of a function, or ``{"type": kind, kind: {...}}`` if built-in."""
        spec = self._spec
        if spec is None:
            spec = self._make_spec()
            object.__setattr__(self, "_spec", spec)
        return spec

    def _make_spec(self) -> JsonObject:
        if self.config is not None:
            settings = self.config.to_json()
            kind = str(settings.pop("type"))
            return {"type": kind, kind: settings}
        function: JsonObject = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}

    def described(self, text: ToolText) -> Tool:
        """Return a view of the tool with other texts; function, types and validation are shared. Equal texts give one view.

        Raises ``ToolDefinitionError`` for an unknown argument, a tool with ``tunable=False`` and a tool of the provider.

        >>> from sigwire.core.tools.texts import ToolText
        >>> tool = Tool.from_schema("ping", "Greet.")
        >>> tool.described(ToolText("Greet the user.")).description, tool.description
        ('Greet the user.', 'Greet.')
        """
        view = self._views.get(text)
        if view is None:
            if len(self._views) >= _MOST_VIEWS:
                self._views.clear()
            view = self._views.setdefault(text, self._make_view(text))
        return view

    def _make_view(self, text: ToolText) -> Tool:
        if not self.tunable or self.config is not None:
            raise ToolDefinitionError(f"The texts of the tool {self.name!r} are fixed. Remove its ToolText.")
        view = object.__new__(Tool)  # not of a subclass, whose spec would not have the texts
        view.__setstate__({**self.__getstate__(), **text.state(self.spec, self.parameters)})
        object.__setattr__(view, "_bind", self.bind)
        return view

    def bind(self, arguments: FieldValues) -> BoundArguments:
        """Validate and convert arguments for the handler. Raises ``InputError`` with a text that a model can act on.

        pydantic converts arguments of functions to their declared types (``"5"`` for an ``int`` to 5); a JSON Schema only
        validates.
        """
        bind = self._bind
        if bind is None:
            bind = _schema_bind(self.parameters)
            object.__setattr__(self, "_bind", bind)
        return bind(arguments)

    def __call__(self, /, **arguments: object) -> Any:
        """Call the handler with validated arguments. Waits for an async handler."""
        with tool_call_hook(self, arguments) as end:
            end(result := block_on_result(self.start(self.bind(arguments))))
        return result

    async def acall(self, /, **arguments: object) -> Any:
        """``tool(...)``, awaited. A blocking function runs in a thread."""
        with tool_call_hook(self, arguments) as end:
            bound = self.bind(arguments)
            waiting = self.astart(bound)
            result = await (to_thread(self.start, bound) if waiting is None else waiting)
            end(result := await result if isawaitable(result) else result)
        return result

    def start(self, bound: BoundArguments) -> Any:
        """Call the handler with arguments of ``bind``; what it returns may be awaitable."""
        keywords = self._with_injected(bound) if self.injected else bound.kwargs
        value = self._required_handler()(*bound.args, **keywords)
        return _guarded(value, self.guards) if self.guards else value

    def astart(self, bound: BoundArguments) -> Awaitable[Any] | None:
        """Start the handler and return what to await; ``None`` for a blocking function. A module is awaited by ``acall``."""
        handler = self._required_handler()
        if not self.is_async:
            from sigwire.core.tools.inspection import in_partials
            from sigwire.core.tools.module_tool import module_of

            if (module := module_of(handler)) is None:
                return None
            handler = in_partials(handler, module.acall)
        waiting: Awaitable[Any] = handler(*bound.args, **self._with_injected(bound))
        return _guard_awaited(waiting, self.guards) if self.guards else waiting

    def _with_injected(self, bound: BoundArguments) -> dict[str, Any]:
        """Return the keywords of a call. A module injects itself, where no listener sees the values."""
        from sigwire.core.tools.module_tool import module_of

        if not self.injected or module_of(self.handler) is not None:
            return bound.kwargs
        return {**bound.kwargs, **self._injected_values("calling it")}

    def check_injected(self) -> None:
        """Raise ``ConfigurationError`` if an injected parameter has no value in this context, or one of another type."""
        if self.injected:
            self._injected_values("before the first request of an agent")

    def _injected_values(self, stage: str) -> dict[str, object]:
        from sigwire.core.tools.injected import values_of

        return values_of(self.injected.values(), f"the tool {self.name!r}", stage)

    def then(self, function: Callable[[Any], object]) -> Tool:
        """Return the tool with a guard on its results: ``function``, sync or async, gets each value and returns another.

        It gets the value that the model would see (of a module the declared outputs, as ``tool.handler`` stays the module) and
        returns the value to record and to show, or raises ``ToolFailed``. It is called once for each value, also in a journal.
        Several guards run in the order of ``then``. Raises ``ToolDefinitionError`` if nothing here runs the tool, or
        ``function`` is no function.

        >>> def balance(account: int) -> int:
        ...     return account * 100
        >>> Tool(balance).then(lambda cents: f"{cents / 100:.2f} EUR")(account=5)
        '5.00 EUR'
        """
        if not callable(function):  # pyright: ignore[reportUnnecessaryComparison]
            raise ToolDefinitionError(
                f"then takes a function of the value, not {function!r:.80} (the tool {self.name!r})."
            )
        self._required_handler()
        return self._copied(guards=(*self.guards, function))

    def with_spec(self, spec: JsonObject) -> Tool:
        """Return the tool with another form in requests; everything else is the tool's."""
        return self._copied(_spec=spec)

    def _copied(self, **changes: object) -> Tool:
        made = object.__new__(type(self))
        made.__setstate__({**self.__getstate__(), **getattr(self, "__dict__", {}), **changes})
        object.__setattr__(made, "_bind", self._bind)
        return made

    def _required_handler(self) -> UserFunction:
        if self.handler is None:
            raise ToolDefinitionError(
                f"The tool {self.name!r} has no handler to call. Pass one: Tool(name=..., parameters=..., handler=f)."
            )
        return self.handler

    def to_json(self) -> JsonObject:
        """Return the tool as JSON, without its handler."""
        data: JsonObject = {"name": self.name, "description": self.description}
        data |= {"parameters": self.parameters} if self.config is None else {"config": self.config.to_json()}
        more: dict[str, Any] = {name: getattr(self, name) for name in _OPTIONS}
        more["approve"] = None if self.approve is None else self.approve is not False  # a function is code
        more["on_error"] = None if callable(self.on_error) else self.on_error
        data |= {name: value for name, value in more.items() if value != _OPTIONS[name]}
        if self.metadata:
            data["metadata"] = self.metadata
        return data

    @classmethod
    def from_json(cls, data: Mapping[str, Any], handler: UserFunction | None = None) -> Tool:
        """Decode the result of ``to_json``, with a handler.

        >>> Tool.from_json(Tool.from_schema("ping", "Hi.").to_json()) == Tool.from_schema("ping", "Hi.")
        True
        """
        with decoding("Tool", data):
            config = WebSearch.from_json(data["config"]) if "config" in data else None
            parameters = None if config else data.get("parameters", _NO_PARAMETERS)
            names = (*_OPTIONS, "metadata")
            options = {name: data[name] for name in names if name in data}
            options |= {"name": data["name"], "description": data.get("description", ""), "config": config}
            return cls(parameters=parameters, handler=handler, **options)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, Tool):
            return NotImplemented
        names = ("handler", "guards", *_OPTIONS, "metadata", "spec")
        return all(getattr(self, name) == getattr(other, name) for name in names)

    def __hash__(self) -> int:
        return hash(self.name)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"A Tool is immutable; make a new one to set {name!r}.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"A Tool is immutable; {name!r} cannot be deleted.")

    def __copy__(self) -> Tool:
        return self

    def __deepcopy__(self, memo: Memo) -> Tool:
        if not holds(self):
            memo[id(self)] = self  # tools are immutable, and a handler may hold connections and locks
            return self
        made = object.__new__(type(self))
        memo[id(self)] = made  # before its function, which may hold a module that has this tool
        made.__setstate__(self.__getstate__() | getattr(self, "__dict__", {}))
        object.__setattr__(made, "_bind", self._bind)
        object.__setattr__(made, "handler", rebound(self.handler, memo))
        object.__setattr__(made, "guards", tuple(rebound(guard, memo) for guard in self.guards))
        return made

    def __getstate__(self) -> dict[str, object]:
        # Compiled validators cannot be pickled; the handler is pickled by name.
        return {name: getattr(self, name) for name in Tool.__slots__ if name not in ("_bind", "_views")}

    def __setstate__(self, state: FieldValues) -> None:
        for name, value in {**_OPTIONS, **_ADDED, **state}.items():  # an earlier version had fewer options
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_bind", self._arguments.bind if self._arguments else None)
        object.__setattr__(self, "_views", {})


def _read(handler: UserFunction | None, name: str | None, is_described: bool) -> _Read:
    """Return name, description and arguments of a handler. ``is_described``: the arguments are given."""
    from sigwire.core.tools.docstring import read_docstring
    from sigwire.core.tools.function import FunctionArguments
    from sigwire.core.tools.inspection import function_docstring, function_name
    from sigwire.core.tools.module_tool import module_of, read_module

    if not is_described:
        _check_handler(handler, name)
    if handler is None:
        return "", "", None
    if (module := module_of(handler)) is not None:
        made, arguments = read_module(handler, module)
        return made, arguments.text.description, arguments
    if is_described:
        return function_name(handler), read_docstring(function_docstring(handler)).description, None
    arguments = FunctionArguments(handler)
    return function_name(handler), arguments.text.description, arguments


_Read: TypeAlias = "tuple[str, str, FunctionArguments | None]"
"""Name, description and arguments."""


def _injected_of(handler: UserFunction | None, arguments: Arguments | None) -> Mapping[str, Injection]:
    """Return the injected parameters: those that were read with the arguments, else those of the function."""
    found: Mapping[str, Injection] | None = getattr(arguments, "injected", None)
    if found is not None or handler is None:
        return found or {}
    from sigwire.core.tools.injected import injected_parameters

    return injected_parameters(handler)


def _guarded(value: object, guards: Sequence[Callable[[Any], object]]) -> object:
    """Return what the guards make of a value. It is awaitable if the value or a guard is."""
    for at, guard in enumerate(guards):
        if isawaitable(value):
            return _guard_awaited(value, guards[at:])
        value = guard(_seen_value(value))
    return value


async def _guard_awaited(waiting: Awaitable[object], guards: Sequence[Callable[[Any], object]]) -> object:
    from sigwire.core.tools.inspection import is_async_function

    value = await waiting
    for guard in guards:
        seen = _seen_value(value)
        value = guard(seen) if is_async_function(guard) else await to_thread(guard, seen)
        if isawaitable(value):
            value = await value
    return value


def _seen_value(value: object) -> object:
    """Return the value that the model would see: of a prediction the declared outputs, of a generator the list."""
    if isinstance(value, GeneratorType):
        return [*cast("Iterable[object]", value)]
    send: Callable[[object], object] | None = getattr(type(value), "sent_outputs", None)  # a field may have the name
    return value if send is None else send(value)


def _check_handler(handler: UserFunction | None, name: str | None) -> None:
    from sigwire.core.tools.inspection import unwrap_partials

    if handler is None:
        raise ToolDefinitionError(
            f"The tool {name or '(unnamed)'!r} has no function and no parameters (making it). Use Tool(function), or "
            "Tool.from_schema(name, description, parameters)."
        )
    if not callable(handler):
        raise ToolDefinitionError(
            f"A tool is made from a function, not from {type(handler).__name__} ({handler!r:.60}). {_advice_for(handler)}"
        )
    if hasattr(cls := unwrap_partials(handler), "tool_source") and isinstance(cls, type):
        raise ToolDefinitionError(
            f"{cls.__name__} is the class of a module, and a tool is made from a module (making a tool). Make one first: "
            f"Tool({cls.__name__}(...))."
        )


def _advice_for(thing: object) -> str:
    packages = {cls.__module__.partition(".")[0] for cls in type(thing).__mro__}
    known = (advice for package, advice in _ADVICE.items() if package in packages)
    return next(known, "Use Tool(function), or Tool(name=..., description=..., parameters={...}, handler=function).")


# By package of an object: how to make a tool of the object.
_ADVICE: Mapping[str, str] = {
    "langchain_core": "Use Tool.from_langchain(tool).",
    "mcp": "Use Tool.from_mcp_tool(session, tool).",
    "mcp_types": "Use Tool.from_mcp_tool(session, tool).",
}


def _describes_arguments(parameters: object) -> TypeGuard[Arguments]:
    return callable(getattr(parameters, "schema", None)) and callable(getattr(parameters, "bind", None))


def _check_tool(name: object, handler: object, parameters: object) -> None:
    if not isinstance(name, str) or not name.strip():
        raise ToolDefinitionError(
            f"A tool needs a name that is not empty; got {short(name)} (making a tool). Pass name='...'."
        )
    if name == "<lambda>":
        raise ToolDefinitionError("A lambda has no name for the model. Pass one: Tool(f, name='...').")
    if handler is not None and not callable(handler):
        raise ToolDefinitionError(
            f"The handler of {name!r} must be callable, not {type(handler).__name__}. Pass a function."
        )
    if parameters is not None:
        if not isinstance(parameters, dict):
            raise ToolDefinitionError(
                f"The parameters of {name!r} must be a JSON Schema, not {type(parameters).__name__} (making a tool). Pass one."
            )
        from sigwire.core.schema import check_schema

        check_schema(cast("JsonObject", parameters), f"Tool {name!r}")


def check_on_error(on_error: object, where: str) -> None:
    """Raise ``ConfigurationError`` if ``on_error`` is no setting for the errors of tools.

    >>> check_on_error("abort", "creating an agent")
    """
    if on_error not in (None, "answer", "abort") and not callable(on_error):
        raise ConfigurationError(
            f"on_error is {short(on_error)} ({where}). Use None, 'answer', 'abort' or a function that gets the exception and "
            "returns a text for the model."
        )


def check_limits(where: str, **limits: object) -> None:
    """Raise ``ConfigurationError`` unless each limit is ``None`` or a number from 0 to a thousand million."""
    for name, value in limits.items():
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if value is not None and not (is_number and 0 <= cast(float, value) <= _MOST):
            raise ConfigurationError(f"{name} is no {short(value)} ({where}). Pass a number from 0 to {_MOST:,}.")


_MOST = 1_000_000_000


def _schema_bind(schema: JsonObject) -> Callable[[FieldValues], BoundArguments]:
    from sigwire.core.schema import validator
    from sigwire.core.tools.function import BoundArguments

    problems_of = validator(schema)

    def bind(arguments: FieldValues) -> BoundArguments:
        values: dict[str, Any] = dict(arguments)
        if problems := problems_of(values):
            raise InputError("; ".join(problems))
        return BoundArguments((), values)

    return bind


def as_tool(thing: object, name: str | None = None) -> Tool:
    """Return a tool, a web search, a function or a module as a tool. ``name``: its key in a dict of tools.

    Raises ``ToolDefinitionError`` if a tool has another name, and for a value that is none of them.

    >>> as_tool(WebSearch()).name, as_tool(len, "size").name
    ('web_search', 'size')
    """
    tool = thing if isinstance(thing, Tool) else Tool.web_search(thing) if isinstance(thing, WebSearch) else None
    if tool is None:
        return Tool(cast("UserFunction", thing), name=name)
    if name is not None and tool.name != name:
        raise ToolDefinitionError(f"The tool under {name!r} is named {tool.name!r}. Use its name, or give a list.")
    return tool


def several_tools(given: object, where: str) -> Iterable[Any]:
    """Return several tools to iterate. Raises ``ToolDefinitionError`` for a value that holds none, such as a closed block."""
    if hasattr(type(given), "__iter__") and not isinstance(given, (str, bytes)):
        return cast("Iterable[Any]", given)
    if hasattr(type(given), "__enter__"):
        raise ToolDefinitionError(
            f"{type(given).__name__} gives its tools inside its block only ({where}). Write: with mcp_tools(...) as tools: and "
            "pass tools=tools in it."
        )
    raise ToolDefinitionError(
        f"Tools are functions, Tool objects, modules or a dict of them, not {type(given).__name__} ({where}). Write "
        "tools=[function]."
    )


def are_same_tools(some: tuple[object, ...], others: tuple[object, ...]) -> bool:
    """Return True if both hold the same tools or functions, by identity; bound methods compare by object and function."""
    if some is others:
        return True
    return len(some) == len(others) and (all(map(is_, some, others)) or all(map(_is_same, some, others)))


def _is_same(one: object, other: object) -> bool:
    return one is other or (type(one) is MethodType and one == other)
