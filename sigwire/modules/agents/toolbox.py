"""Toolbox: the only code that runs a tool because a model asked for it.

A call is looked up, its arguments are validated, the handler runs, and its value becomes a ``ToolResult``. Whatever
goes wrong on the way becomes a result as well, with ``is_error=True`` and a line the model can act on:

    a call with an error                its message
    an unknown name                     the names there are
    arguments that do not fit           each of them, and why
    RetryTool, ToolFailed               the tool's own words
    any other exception                 class and first line; with ``on_error="abort"`` it is raised instead
    too slow                            the limit

``BaseException`` (an interrupt, a cancellation) is never a result. Independent calls run side by side, results stand in call
order. Async handlers are awaited, blocking ones run in threads when the program is awaited, so the loop stays free.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import partial
from time import perf_counter
from typing import Any, Literal, Protocol, TypeAlias, TypeGuard, TypeVar, cast, get_args

from sigwire.core.json import Value
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.function import BoundArguments
from sigwire.core.tools.tool import Tool
from sigwire.effects.gather import Gather
from sigwire.effects.loops import block_on, to_thread
from sigwire.effects.steps import Steps, arun, run
from sigwire.errors import ConfigurationError, EventLoopError, ToolDefinitionError, ToolSignal
from sigwire.modules.agents.tool_results import encode, short_message, shorten
from sigwire.observe.callbacks import watched_call as watch

__all__ = ["OnError", "ToolRun", "Toolbox", "as_tools"]

T = TypeVar("T")

OnError: TypeAlias = Literal["answer", "abort"]


@dataclass(frozen=True, slots=True)
class ToolRun(Value):
    """One call, answered. ``result`` is whole; ``shown`` is what the model sees of it; ``seconds`` is how long it took."""

    call: ToolCall
    result: ToolResult
    shown: ToolResult
    seconds: float = 0.0


def as_tools(tools: Any) -> list[Tool]:
    """Tools from what users hand in: one tool or function, several, or a dict of them by name.

    >>> def add(a: int, b: int) -> int:
    ...     return a + b
    >>> [tool.name for tool in as_tools([add])], [tool.name for tool in as_tools({"plus": add})]
    (['add'], ['plus'])
    """
    if tools is None:
        return []
    if isinstance(tools, Tool) or callable(tools):
        return [tools if isinstance(tools, Tool) else Tool(tools)]
    if isinstance(tools, Mapping):
        return [_named(name, tool) for name, tool in cast("Mapping[str, Any]", tools).items()]
    return [tool if isinstance(tool, Tool) else Tool(tool) for tool in tools]


def _named(name: str, tool: Any) -> Tool:
    if not isinstance(tool, Tool):
        return Tool(tool, name=name)
    if tool.name != name:
        raise ToolDefinitionError(f"The tool under {name!r} is named {tool.name!r}. Use its name, or give a list.")
    return tool


class Toolbox:
    """Tools by name, and what it takes to run them for a model.

    ``tools``: ``Tool`` objects, functions, or a dict of them by name. ``parallel``: how many calls of a turn run side
    by side (``False``: one after the other). ``timeout`` and ``max_output`` apply to tools that have none of their
    own. ``on_error="abort"`` raises what a tool raises, except ``RetryTool`` and ``ToolFailed``. Raises
    ``ToolDefinitionError`` for two tools of one name and for a tool without a handler, ``ConfigurationError`` for another
    ``on_error``.

    >>> def add(a: int, b: int) -> int:
    ...     return a + b
    >>> box = Toolbox([add])
    >>> [result.content for result in box([ToolCall("call_0", "add", {"a": 1, "b": 2}), ToolCall("call_1", "sub", {})])]
    [3, "There is no tool 'sub'. The tools are: add."]
    """

    def __init__(
        self,
        tools: Any = (),
        *,
        parallel: int | bool = 8,
        timeout: float | None = None,
        max_output: int | None = None,
        on_error: OnError = "answer",
    ) -> None:
        if on_error not in (known := get_args(OnError)):
            raise ConfigurationError(f"What a tool raises can be {' or '.join(map(repr, known))}, not {on_error!r}.")
        self.tools: dict[str, Tool] = {}
        for tool in as_tools(tools):
            self._add(tool)
        self.parallel = int(parallel) if parallel is not True else 8
        self.timeout, self.max_output, self.on_error = timeout, max_output, on_error

    def _add(self, tool: Tool) -> None:
        if tool.name in self.tools:
            raise ToolDefinitionError(
                f"Two tools are named {tool.name!r}, and a model could not tell them apart. Rename one: Tool(f, name=...)."
            )
        if tool.handler is None and tool.config is None:
            raise ToolDefinitionError(
                f"The tool {tool.name!r} has no handler, so nothing could answer its calls here. Give it one: "
                "Tool.from_schema(name, description, parameters, handler). Predict offers tools without running them."
            )
        self.tools[tool.name] = tool

    # --- running -----------------------------------------------------------------------------------------

    def __call__(self, calls: Iterable[ToolCall]) -> list[ToolResult]:
        """Run calls, blocking; the results in call order, as the model would see them."""
        return [done.shown for done in run(self.run(calls))]

    async def acall(self, calls: Iterable[ToolCall]) -> list[ToolResult]:
        """Run calls, awaited."""
        return [done.shown for done in await arun(self.run(calls))]

    def run(self, calls: Iterable[ToolCall], *, record: RunRecorder | None = None) -> Steps[tuple[ToolRun, ...]]:
        """The program that runs calls. ``record`` gets each as it is done: an interrupted run leaves what it has there."""
        items = [self._prepare(call, record) for call in calls]
        if len(items) == 1:
            return ((yield items[0]),)
        done: list[ToolRun | None] = [None] * len(items)
        for group in self._groups(items):
            if len(group) == 1:
                done[group[0]] = yield items[group[0]]
                continue
            runs = yield Gather([_performed(items[at]) for at in group], limit=self.parallel)
            for at, finished in zip(group, runs, strict=True):
                done[at] = finished
        return tuple(cast("list[ToolRun]", done))

    def _prepare(self, call: ToolCall, record: RunRecorder | None) -> _ToolRunEffect | _RejectedRun:
        tool = self.tools.get(call.name)
        if call.error is not None and call.error.code != "unknown_tool":
            return _RejectedRun(self, call, tool, call.error.message, record)
        if tool is None:
            names = ", ".join(self.tools) or "none"
            return _RejectedRun(self, call, tool, f"There is no tool {call.name!r}. The tools are: {names}.", record)
        if call.arguments is None:
            return _RejectedRun(self, call, tool, "The arguments must be a JSON object.", record)
        if tool.handler is None:
            return _RejectedRun(self, call, tool, f"The provider runs {tool.name} itself; do not call it.", record)
        try:
            return _ToolRunEffect(self, call, tool, tool.handler, tool.bind(call.arguments), record)
        except Exception as fault:  # validators of users' types are users' code
            message = str(fault) if isinstance(fault, ValueError) and str(fault) else short_message(fault)
            return _RejectedRun(self, call, tool, message, record)

    def _groups(self, items: Sequence[_ToolRunEffect | _RejectedRun]) -> Sequence[list[int]]:
        """Which calls run together: neighbours whose tools allow it. A tool with ``parallel=False`` runs alone."""
        groups: list[list[int]] = []
        together: list[int] = []
        for at, item in enumerate(items):
            if self.parallel > 1 and (item.tool is None or item.tool.parallel):
                together.append(at)
                continue
            if together:
                groups.append(together)
                together = []
            groups.append([at])
        return [*groups, together] if together else groups


class RunRecorder(Protocol):
    """Who is told of each call as it is done: a list will do. It may be told from several threads at once."""

    def append(self, done: ToolRun, /) -> None: ...


def _performed(item: _ToolRunEffect | _RejectedRun) -> Steps[ToolRun]:
    done: ToolRun = yield item
    return done


def _answer(
    box: Toolbox,
    call: ToolCall,
    tool: Tool | None,
    content: Any,
    seconds: float,
    is_error: bool = False,
    media: tuple[Any, ...] = (),
) -> ToolRun:
    """What a call gave, and what the model sees of it."""
    result = shown = ToolResult(call.id, call.name, content, is_error, media)
    most = box.max_output if tool is None or tool.max_output is None else tool.max_output
    if most is not None and (cut := shorten(content, most)) is not content:
        shown = ToolResult(call.id, call.name, cut, is_error, media)
    return ToolRun(call, result, shown, seconds)


class _ToolTimeout(Exception):
    """A tool took longer than it may."""


class _RejectedRun:
    """The effect of a call that cannot be run: it is answered at once."""

    __slots__ = ("_box", "_call", "_fault", "_record", "tool")

    nests = True  # its record may tell a stream of it

    def __init__(self, box: Toolbox, call: ToolCall, tool: Tool | None, fault: str, record: RunRecorder | None) -> None:
        self._box, self._call, self.tool, self._fault, self._record = box, call, tool, fault, record

    def run(self) -> ToolRun:
        done = _answer(self._box, self._call, self.tool, self._fault, 0.0, is_error=True)
        if self._record is not None:
            self._record.append(done)
        return done

    async def arun(self) -> ToolRun:
        return self.run()


class _ToolRunEffect:
    """The effect of a call that fits its tool: run the tool."""

    __slots__ = ("_bound", "_box", "_call", "_handler", "_record", "tool")

    nests = True  # a tool may run programs

    def __init__(
        self,
        box: Toolbox,
        call: ToolCall,
        tool: Tool,
        handler: Callable[..., Any],
        bound: BoundArguments,
        record: RunRecorder | None,
    ) -> None:
        self._box, self._call, self.tool, self._record = box, call, tool, record
        self._handler, self._bound = handler, bound

    def run(self) -> ToolRun:
        began = perf_counter()
        try:
            with watch("tool", self.tool, self._inputs) as end:
                value, done = self._blocked(began)
                end(value)
        except Exception as error:
            done = self._raised(error, perf_counter() - began)
        return self._recorded(done)

    async def arun(self) -> ToolRun:
        began = perf_counter()
        try:
            with watch("tool", self.tool, self._inputs) as end:
                value, done = await self._awaited(began)
                end(value)
        except Exception as error:
            done = self._raised(error, perf_counter() - began)
        return self._recorded(done)

    # --- the one place where a model's wish becomes a deed ---

    def _blocked(self, began: float) -> tuple[Any, ToolRun]:
        if self.tool.is_async:
            return block_on(self._awaited(began))
        seconds = self._seconds
        value, done = self._work(began) if seconds is None else _within(seconds, partial(self._work, began))
        return (value, done) if done is not None else block_on(self._finished(value, began))

    async def _awaited(self, began: float) -> tuple[Any, ToolRun]:
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                return await self._waited(began)
        except TimeoutError as error:
            raise (_ToolTimeout() if limit.expired() else error) from error

    async def _waited(self, began: float) -> tuple[Any, ToolRun]:
        if self.tool.is_async:
            return await self._finished(self._handler(*self._bound.args, **self._bound.kwargs), began)
        # A thread cannot be stopped: past its time the handler goes on, and its value is dropped.
        value, done = (await to_thread(_captured, partial(self._work, began)))()
        return (value, done) if done is not None else await self._finished(value, began)

    def _work(self, began: float) -> tuple[Any, ToolRun | None]:
        """Call the handler, and answer where it called: large values take time, a generator is the tool's code."""
        value = self._handler(*self._bound.args, **self._bound.kwargs)
        return value, None if _is_awaitable(value) else self._answered(value, began)

    async def _finished(self, waiting: Awaitable[Any], began: float) -> tuple[Any, ToolRun]:
        value = await waiting
        return value, self._answered(value, began)

    @property
    def _seconds(self) -> float | None:
        seconds = self.tool.timeout
        return self._box.timeout if seconds is None else seconds

    def _inputs(self) -> Mapping[str, Any]:
        return self._call.arguments or {}

    # --- from a value or an error to a result ---

    def _answered(self, value: Any, began: float) -> ToolRun:
        is_error, more = False, ()
        try:
            if isinstance(value, ToolResult):  # a tool may say it all itself
                value, is_error, more = value.content, value.is_error, value.media
            content, media = encode(value)
            seconds = perf_counter() - began
            return _answer(self._box, self._call, self.tool, content, seconds, is_error, more + media)
        except Exception as fault:  # a value's own ways of being written and read are users' code
            why = str(fault) if isinstance(fault, ValueError) else short_message(fault)
            return self._failed(f"The tool ran, but its result cannot be shown: {why}.", perf_counter() - began)

    def _raised(self, error: Exception, seconds: float) -> ToolRun:
        if isinstance(error, _ToolTimeout):
            return self._failed(f"The tool did not finish within {self._seconds:g} seconds.", seconds)
        if isinstance(error, ToolSignal):
            return self._failed(str(error) or type(error).__name__, seconds)
        # Waiting for another thread's task raises a cancellation that is, unlike asyncio's own, an Exception.
        # A loop that cannot go on is no fault of the tool's, and nothing that a model could change.
        if self._box.on_error == "abort" or isinstance(error, CancelledError | EventLoopError):
            raise error
        return self._failed(f"The tool failed. {short_message(error)}", seconds)

    def _failed(self, message: str, seconds: float) -> ToolRun:
        return _answer(self._box, self._call, self.tool, message, seconds, is_error=True)

    def _recorded(self, done: ToolRun) -> ToolRun:
        if self._record is not None:
            self._record.append(done)
        return done


_NEVER_AWAITED = frozenset({dict, list, str, int, float, bool, type(None)})


def _is_awaitable(value: Any) -> TypeGuard[Awaitable[Any]]:
    return type(value) not in _NEVER_AWAITED and inspect.isawaitable(value)


def _within(seconds: float, work: Callable[[], T]) -> T:
    """Run for so long at most. In a thread of its own: one of a pool might have to be waited for first."""
    outcome: list[Callable[[], T]] = []

    def run_it() -> None:
        try:
            outcome.append(_captured(work))
        except BaseException as error:
            outcome.append(_raiser(error))

    thread = threading.Thread(target=contextvars.copy_context().run, args=(run_it,), name="sigwire-tool", daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        raise _ToolTimeout
    return outcome[0]()


def _captured(work: Callable[[], T]) -> Callable[[], T]:
    """Run in a thread; what comes back gives the value or raises. ``StopIteration`` cannot cross a future by itself."""
    try:
        value = work()
    except StopIteration as error:
        fault = RuntimeError("the tool raised StopIteration")
        fault.__cause__ = error
        return _raiser(fault)
    return lambda: value


def _raiser(error: BaseException) -> Callable[[], Any]:
    def give() -> Any:
        raise error

    return give
