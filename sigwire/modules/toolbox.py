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
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeGuard, cast

from sigwire.core.json import Value
from sigwire.core.tools import Tool, ToolCall, ToolResult
from sigwire.errors import ToolDefinitionError, ToolSignal
from sigwire.modules.tool_results import encode, limit, short_message
from sigwire.observe.callbacks import call as watch
from sigwire.steps import Gather, Program, arun, block_on, off_loop, run

__all__ = ["OnError", "ToolRun", "Toolbox", "as_tools"]

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
    ``ToolDefinitionError`` for two tools of one name and for a tool without a handler.

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

    def run(self, calls: Iterable[ToolCall], *, record: list[ToolRun] | None = None) -> Program[tuple[ToolRun, ...]]:
        """The program that runs calls. ``record`` gets each as it is done: an interrupted run leaves what it has there."""
        items = [self._prepare(call) for call in calls]
        if record is not None:
            for item in items:
                item.record = record
        done: list[ToolRun | None] = [None] * len(items)
        for group in self._groups(items):
            if len(group) == 1:
                done[group[0]] = yield items[group[0]]
                continue
            runs = yield Gather([_performed(items[at]) for at in group], limit=self.parallel)
            for at, finished in zip(group, runs, strict=True):
                done[at] = finished
        return tuple(cast("list[ToolRun]", done))

    def _prepare(self, call: ToolCall) -> _Running:
        tool = self.tools.get(call.name)
        if call.error is not None and call.error.code != "unknown_tool":
            return _Running(self, call, tool, fault=call.error.message)
        if tool is None:
            names = ", ".join(self.tools) or "none"
            return _Running(self, call, fault=f"There is no tool {call.name!r}. The tools are: {names}.")
        if call.arguments is None:
            return _Running(self, call, tool, fault="The arguments must be a JSON object.")
        try:
            return _Running(self, call, tool, bound=tool.bind(call.arguments))
        except Exception as fault:  # validators of users' types are users' code
            message = str(fault) if isinstance(fault, ValueError) and str(fault) else short_message(fault)
            return _Running(self, call, tool, fault=message)

    def _groups(self, items: Sequence[_Running]) -> Iterator[list[int]]:
        """Which calls run together: neighbours whose tools allow it. A tool with ``parallel=False`` runs alone."""
        together: list[int] = []
        for at, item in enumerate(items):
            if self.parallel > 1 and (item.tool is None or item.tool.parallel):
                together.append(at)
                continue
            if together:
                yield together
                together = []
            yield [at]
        if together:
            yield together


def _performed(item: _Running) -> Program[ToolRun]:
    done: ToolRun = yield item
    return done


class _TooSlow(Exception):
    """A tool took longer than it may."""


class _Running:
    """The effect of one call: run the tool, or answer at once where that is not possible."""

    __slots__ = ("_bound", "_box", "_call", "_fault", "record", "tool")

    def __init__(
        self, box: Toolbox, call: ToolCall, tool: Tool | None = None, *, bound: Any = None, fault: str | None = None
    ) -> None:
        self._box, self._call, self.tool, self._bound, self._fault = box, call, tool, bound, fault
        self.record: list[ToolRun] | None = None

    def run(self) -> ToolRun:
        if self._fault is not None:
            return self._failed(self._fault, 0.0)
        began = time.perf_counter()
        try:
            with watch("tool", self.tool, self._inputs) as end:
                value = self._value()
                end(value)
        except Exception as error:
            return self._raised(error, time.perf_counter() - began)
        return self._answered(value, time.perf_counter() - began)

    async def arun(self) -> ToolRun:
        if self._fault is not None:
            return self._failed(self._fault, 0.0)
        began = time.perf_counter()
        try:
            with watch("tool", self.tool, self._inputs) as end:
                value = await self._awaited()
                end(value)
        except Exception as error:
            return self._raised(error, time.perf_counter() - began)
        return self._answered(value, time.perf_counter() - began)

    # --- the one place where a model's wish becomes a deed ---

    def _value(self) -> Any:
        tool = cast(Tool, self.tool)
        if tool.is_async:
            return block_on(self._awaited())
        if self._seconds is None:
            value = _handler(tool)(*self._bound.args, **self._bound.kwargs)
        else:
            value = _within(self._seconds, _handler(tool), self._bound)
        return block_on(_await(value)) if _is_awaitable(value) else value

    async def _awaited(self) -> Any:
        limit = asyncio.timeout(self._seconds)
        try:
            async with limit:
                return await self._waited()
        except TimeoutError as error:
            raise (_TooSlow() if limit.expired() else error) from error

    async def _waited(self) -> Any:
        tool = cast(Tool, self.tool)
        if tool.is_async:
            return await _handler(tool)(*self._bound.args, **self._bound.kwargs)
        # A thread cannot be stopped: past its time the handler goes on, and its value is dropped.
        value = (await off_loop(_captured, _handler(tool), self._bound))()
        return await value if _is_awaitable(value) else value

    @property
    def _seconds(self) -> float | None:
        tool = cast(Tool, self.tool)
        return self._box.timeout if tool.timeout is None else tool.timeout

    def _inputs(self) -> Mapping[str, Any]:
        return self._call.arguments or {}

    # --- from a value or an error to a result ---

    def _answered(self, value: Any, seconds: float) -> ToolRun:
        if isinstance(value, ToolResult):
            return self._done(value.content, seconds, value.is_error, value.media)
        try:
            content, media = encode(value)
        except ValueError as fault:
            return self._failed(f"The tool ran, but its result cannot be shown: {fault}.", seconds)
        return self._done(content, seconds, media=media)

    def _raised(self, error: Exception, seconds: float) -> ToolRun:
        if isinstance(error, _TooSlow):
            return self._failed(f"The tool did not finish within {self._seconds:g} seconds.", seconds)
        if isinstance(error, ToolSignal):
            return self._failed(str(error) or type(error).__name__, seconds)
        # Waiting for another thread's task raises a cancellation that is, unlike asyncio's own, an Exception.
        if self._box.on_error == "abort" or isinstance(error, CancelledError):
            raise error
        return self._failed(f"The tool failed. {short_message(error)}", seconds)

    def _failed(self, message: str, seconds: float) -> ToolRun:
        return self._done(message, seconds, is_error=True)

    def _done(self, content: Any, seconds: float, is_error: bool = False, media: tuple[Any, ...] = ()) -> ToolRun:
        call, tool = self._call, self.tool
        result = shown = ToolResult(call.id, call.name, content, is_error, media)
        most = tool.max_output if tool is not None and tool.max_output is not None else self._box.max_output
        cut = limit(content, most)
        if cut is not content:
            shown = ToolResult(call.id, call.name, cut, is_error, media)
        done = ToolRun(call, result, shown, seconds)
        if self.record is not None:
            self.record.append(done)
        return done


_NEVER_AWAITED = frozenset({dict, list, str, int, float, bool, type(None)})


def _is_awaitable(value: Any) -> TypeGuard[Awaitable[Any]]:
    return type(value) not in _NEVER_AWAITED and inspect.isawaitable(value)


def _handler(tool: Tool) -> Callable[..., Any]:
    if tool.handler is None:
        raise RuntimeError(f"{tool.name} is run by the provider, not here")
    handler: Callable[..., Any] = tool.handler
    return handler


def _within(seconds: float, handler: Callable[..., Any], bound: Any) -> Any:
    """Run for so long at most. In a thread of its own: one of a pool might have to be waited for first."""
    outcome: list[Callable[[], Any]] = []

    def work() -> None:
        try:
            outcome.append(_captured(handler, bound))
        except BaseException as error:
            outcome.append(_raiser(error))

    thread = threading.Thread(target=contextvars.copy_context().run, args=(work,), name="sigwire-tool", daemon=True)
    thread.start()
    thread.join(seconds)
    if not outcome:
        raise _TooSlow
    return outcome[0]()


def _captured(handler: Callable[..., Any], bound: Any) -> Callable[[], Any]:
    """Run in a thread; what comes back gives the value or raises. ``StopIteration`` cannot cross a future by itself."""
    try:
        value = handler(*bound.args, **bound.kwargs)
    except StopIteration as error:
        fault = RuntimeError("the tool raised StopIteration")
        fault.__cause__ = error
        return _raiser(fault)
    return lambda: value


def _raiser(error: BaseException) -> Callable[[], Any]:
    def give() -> Any:
        raise error

    return give


async def _await(value: Awaitable[Any]) -> Any:
    return await value
