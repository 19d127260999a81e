"""Toolbox: the only code that runs a tool because a model called it.

The toolbox finds the tool, validates the arguments, runs the handler and converts its value to a ``ToolResult``. Each failure
is a result too, with ``is_error=True`` and a line that the model can act on:

    a call with an error                its message
    an unknown name                     the known names, of many tools the nearest ones
    invalid arguments                   each problem
    RetryTool, ToolFailed               the text of the exception
    an inner model's answer is no use   class and first line: ``ModelError``, ``AgentStopped``, a request that is too long
    any other exception                 class and first line; a ``ToolWarning`` for the author
    timed out                           the limit, also if an async tool catches its cancellation

An error that no model can solve (``ends_run``) is raised instead, unless ``on_error`` is set. ``BaseException`` (an
interrupt, a cancellation) is never a result. Independent calls run in parallel; results are in call
order. Async handlers are awaited. An awaited toolbox runs blocking handlers in threads, so the event loop is not blocked.
"""

from __future__ import annotations

import copy
import inspect
import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import partial
from time import perf_counter
from typing import Any, Literal, Protocol, TypeAlias, TypeGuard, TypeVar, cast

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.parts import MediaPart
from sigwire.core.response import LMWarning
from sigwire.core.tools.calls import ToolCall, ToolResult, WebSearch
from sigwire.core.tools.function import BoundArguments
from sigwire.core.tools.held import HasTools, Memo, holds
from sigwire.core.tools.tool import OnError, Tool, as_tool, check_limits, check_on_error, several_tools
from sigwire.effects.cancellation import CoroutineOf
from sigwire.effects.loops import block_on, to_thread
from sigwire.effects.steps import Steps, arun, run
from sigwire.effects.time_limit import TimeLimitReached, await_within, call_within, capture_outcome
from sigwire.errors import (
    ConfigurationError,
    SigwireError,
    ToolDefinitionError,
    ToolWarning,
    Whose,
    ends_run,
    is_interrupt,
)
from sigwire.keywords import ChecksKeywords
from sigwire.lm.policy.deadlines import remaining_seconds, shorter
from sigwire.modules.agents.approval.gate import CallGate
from sigwire.modules.agents.approval.limits import CallRules
from sigwire.modules.agents.large_results.shortening import shorten
from sigwire.modules.agents.running_call import CurrentCall, depth_problem
from sigwire.modules.agents.tool_results import describe_exception, encode, short_message
from sigwire.modules.agents.tool_run import RunRecorder, ToolRun
from sigwire.modules.calling import called_steps
from sigwire.modules.where import locate
from sigwire.observe.callbacks import watched_call
from sigwire.observe.usage import record_tool_call

__all__ = ["OnError", "ToolRun", "ToolSearchOption", "Toolbox", "ToolsLike", "as_tools", "members_of", "spec_size"]

T = TypeVar("T")

ToolsLike: TypeAlias = "ToolLike | Iterable[ToolLike] | Mapping[str, ToolLike] | None"
ToolLike: TypeAlias = "Tool | WebSearch | ToolFunction | Toolset"
ToolFunction: TypeAlias = Callable[..., Any]
ToolSearchOption: TypeAlias = bool | int | Callable[[list[str]], Any] | Literal["auto"]


class Toolset(Protocol):
    """An object that has several tools, such as ``Memory`` and ``Skills``."""

    @property
    def tools(self) -> tuple[Tool, ...]: ...


def as_tools(tools: ToolsLike) -> list[Tool]:
    """Return a list of tools from one tool, function, module or ``WebSearch``, several, or a dict of them by name.

    An object whose ``tools`` is a tuple of tools (``Memory``, ``Skills``) stands for its tools.

    >>> def add(a: int, b: int) -> int:
    ...     return a + b
    >>> [tool.name for tool in as_tools([add])], [tool.name for tool in as_tools({"plus": add})]
    (['add'], ['plus'])
    """
    if tools is None:
        return []
    if isinstance(tools, Tool | WebSearch) or callable(tools):
        return [as_tool(tools)]
    if isinstance(tools, Mapping):
        return [as_tool(tool, name) for name, tool in cast("Mapping[str, ToolLike]", tools).items()]
    if (members := members_of(tools)) is not None:
        return [*members]
    made: list[Tool] = []
    for each in several_tools(tools, "reading tools="):
        members = members_of(each)
        made += [as_tool(each)] if members is None else members
    return made


def members_of(value: object) -> tuple[Tool, ...] | None:
    """Return the tools of an object that has several, ``None`` for another one."""
    if isinstance(value, Tool) or callable(value) or not isinstance(members := getattr(value, "tools", None), tuple):
        return None
    found = cast("tuple[object, ...]", members)
    return cast("tuple[Tool, ...]", found) if all(isinstance(each, Tool) for each in found) else None


class Toolbox(ChecksKeywords, HasTools):
    """Tools by name, and the options to run them for a model.

    ``tools``: ``Tool`` objects, functions, modules, ``WebSearch``, or a dict of them by name. ``parallel``: how many calls of a
    turn run at once (``False``: one after the other). ``timeout`` (seconds) and ``max_output`` (characters) are defaults for
    tools without these options. ``on_error`` is ``on_tool_error`` of ``ReAct``. Raises ``ToolDefinitionError`` for two tools of
    one name and for a tool without a handler, ``ConfigurationError`` for another ``on_error``.

    >>> def add(a: int, b: int) -> int:
    ...     return a + b
    >>> box = Toolbox([add])
    >>> [result.content for result in box([ToolCall("call_0", "add", {"a": 1, "b": 2}), ToolCall("call_1", "sub", {})])]
    [3, "Unknown tool 'sub'. The tools are: add."]
    """

    def __init__(
        self,
        tools: ToolsLike = (),
        *,
        parallel: int | bool = 8,
        timeout: float | None = None,
        max_output: int | None = None,
        on_error: OnError | None = None,
    ) -> None:
        check_on_error(on_error, "creating a Toolbox; ReAct: on_tool_error")
        check_limits("creating a Toolbox", parallel=int(parallel) if isinstance(parallel, bool) else parallel)
        check_limits("creating a Toolbox; ReAct: tool_timeout, max_output", timeout=timeout, max_output=max_output)
        self.rules = CallRules()
        self.tools: dict[str, Tool] = {}
        for tool in as_tools(tools):
            self._add(tool)
        self.parallel = int(parallel) if parallel is not True else 8
        self.timeout, self.max_output = timeout, max_output
        self.on_error: OnError | None = on_error
        self.reader = ""  # the name of the tool that reads shortened results
        self.schema_of: Callable[[str], JsonObject | None] | None = None  # of a tool that the model has not seen
        self._size: int | None = None
        self._warned: set[tuple[str, str, int]] = set()

    def _add(self, tool: Tool) -> None:
        if tool.name in self.tools:
            raise ToolDefinitionError(
                f"Two tools are named {tool.name!r}, but a model needs distinct names. Name them: "
                "tools={'one': f, 'other': g}, or Tool(f, name=...)."
            )
        if tool.handler is None and tool.config is None:
            raise ToolDefinitionError(
                f"The tool {tool.name!r} has no handler, so its calls cannot be run. Add one: "
                "Tool.from_schema(name, description, parameters, handler). Predict offers tools without running them."
            )
        self.tools[tool.name] = tool

    def __deepcopy__(self, memo: Memo) -> Toolbox:
        if not any(map(holds, self.tools.values())):
            memo.update({id(each): each for each in self.tools.values()})
            return self
        made = copy.copy(self)
        memo[id(self)] = made
        made.tools = {name: copy.deepcopy(tool, memo) for name, tool in self.tools.items()}
        return made

    @property
    def schema_size(self) -> int:
        """The size of all tools in a request, in tokens (estimated). Counted once."""
        if self._size is None:
            self._size = sum(map(spec_size, self.tools.values()))
        return self._size

    def check_injected(self) -> None:
        """Raise ``ConfigurationError`` if an injected parameter of a tool has no value in this context, or a wrong one."""
        for tool in self.tools.values():
            tool.check_injected()

    def __call__(self, calls: Iterable[ToolCall]) -> list[ToolResult]:
        """Run calls, blocking; return the results in call order, as the model sees them."""
        return [done.shown for done in run(self.run(calls))]

    async def acall(self, calls: Iterable[ToolCall]) -> list[ToolResult]:
        """``__call__``, awaited."""
        return [done.shown for done in await arun(self.run(calls))]

    def run(
        self, calls: Iterable[ToolCall], *, record: RunRecorder | None = None, gate: CallGate | None = None
    ) -> Steps[tuple[ToolRun, ...]]:
        """Return the steps that run calls. ``record`` receives each finished run, also those before an interrupt.

        ``gate`` is that of a run of several turns. Raises ``ApprovalNeeded`` if calls wait for a decision.
        """
        return (gate or CallGate(self.rules)).run(_Calls(self, record), tuple(calls))

    def warn(self, name: str, tool: Tool | None, error: Exception) -> LMWarning:
        """Return the warning of an exception of a tool; also emit a ``ToolWarning``, once for each line of a tool."""
        text, file, line = describe_exception(name, error, tool and tool.handler)
        if (name, file, line) not in self._warned:
            self._warned.add((name, file, line))
            warnings.warn_explicit(text, ToolWarning, file, line)
        from sigwire.observe.tracing.logs import log_tool_error  # loads logging

        log_tool_error(name, error, file, line)
        return LMWarning("tool", text)


class _Calls:
    def __init__(self, box: Toolbox, record: RunRecorder | None) -> None:
        self._box, self._record, self.parallel = box, record, box.parallel

    def prepare(self, call: ToolCall) -> _ToolRunEffect | _KnownRun:
        tool = self._box.tools.get(call.name)
        error: Exception | None = None
        if call.error is not None and call.error.code != "unknown_tool":
            problem = call.error.message
        elif tool is None:
            problem = _unknown_tool(call.name, self._box.tools)
        elif call.arguments is None:
            problem = "The arguments must be a JSON object."
        elif deep := depth_problem():
            problem = deep
        elif tool.handler is None:
            problem = f"The provider runs {tool.name} itself; do not call it."
        else:
            try:
                return _ToolRunEffect(self._box, call, tool, tool.bind(call.arguments), self._record)
            except Exception as fault:  # the validators of users' types may raise anything
                is_expected = isinstance(fault, ValueError) and str(fault)
                problem, error = (str(fault), None) if is_expected else (short_message(fault), fault)
                unseen = self._box.schema_of and self._box.schema_of(call.name)
                problem = f"{problem} The schema of the arguments: {dumps(unseen)}" if unseen else problem
        return self.refused(call, tool, problem, error)

    def refused(self, call: ToolCall, tool: Tool | None, problem: str, error: Exception | None = None) -> _KnownRun:
        make = partial(_tool_run, self._box, call, tool, problem, 0.0, True, exception=error)
        return _KnownRun(call, tool, lambda: _counted(make()), self._record)

    def known(self, done: ToolRun) -> _KnownRun:
        return _KnownRun(done.call, self._box.tools.get(done.call.name), done.kept, None)


def spec_size(tool: Tool) -> int:
    """Return the size of a tool in a request, in tokens: four characters are one."""
    return len(dumps(tool.spec)) // 4


_MOST_NAMES, _NEAREST = 30, 5  # in an error


def _unknown_tool(name: str, tools: Mapping[str, Tool]) -> str:
    """Return the error of a call of no tool: it names all tools, or of many the nearest ones."""
    shown = name[:60]
    if len(tools) <= _MOST_NAMES:
        return f"Unknown tool {shown!r}. The tools are: {', '.join(tools) or 'none'}."
    from difflib import get_close_matches  # needed for errors only

    return (
        f"Unknown tool {shown!r}. The nearest names are: {', '.join(get_close_matches(shown, tools, _NEAREST, 0.0))}."
    )


def _tool_run(
    box: Toolbox,
    call: ToolCall,
    tool: Tool | None,
    content: JsonValue,
    seconds: float,
    is_error: bool = False,
    media: tuple[MediaPart, ...] = (),
    exception: Exception | None = None,
    *,
    is_bug: bool = True,
) -> ToolRun:
    """Return a finished call, with its result shortened for the model. ``is_bug``: warn the tool's author of ``exception``."""
    result = shown = ToolResult(call.id, call.name, content, is_error, media, exception)
    most = box.max_output if tool is None or tool.max_output is None else tool.max_output
    if most is not None and (cut := shorten(content, most, box.reader, call.id)) is not content:
        shown = ToolResult(call.id, call.name, cut, is_error, media)
    return ToolRun(call, result, shown, seconds, box.warn(call.name, tool, exception) if exception and is_bug else None)


class _KnownRun:
    """The effect of a call that is not run: it is invalid and its result an error, or its run is recorded."""

    __slots__ = ("_make", "_record", "call", "tool")

    is_known = True
    nests = True  # the recorder may emit an event

    def __init__(
        self, call: ToolCall, tool: Tool | None, make: Callable[[], ToolRun], record: RunRecorder | None
    ) -> None:
        self.call, self.tool, self._make, self._record = call, tool, make, record

    def run(self) -> ToolRun:
        done = self._make()
        done.add_report()
        return _recorded(done, self._record)

    async def arun(self) -> ToolRun:
        return self.run()


class _ToolRunEffect:
    __slots__ = ("_bound", "_box", "_record", "call", "on_crash", "tool")

    kind = "tool"
    is_known = False
    nests = True  # a tool may run programs

    def __init__(
        self,
        box: Toolbox,
        call: ToolCall,
        tool: Tool,
        bound: BoundArguments,
        record: RunRecorder | None,
    ) -> None:
        self._box, self.call, self.tool, self._record = box, call, tool, record
        self._bound, self.on_crash = bound, tool.on_crash

    def run(self) -> ToolRun:
        started, call = perf_counter(), CurrentCall(self.call)
        try:
            with call, watched_call("tool", self.tool, self._inputs) as end:
                value, done = self._run_blocking(started)
                end(value)
        except Exception as error:
            done = run(self._failed_run(error, perf_counter() - started))
        return _recorded(_counted(done.with_report(call.node.report)), self._record)

    async def arun(self) -> ToolRun:
        started, call = perf_counter(), CurrentCall(self.call)
        try:
            with call, watched_call("tool", self.tool, self._inputs) as end:
                value, done = await self._run_awaited(started)
                end(value)
        except Exception as error:
            done = await arun(self._failed_run(error, perf_counter() - started))
        return _recorded(_counted(done.with_report(call.node.report)), self._record)

    def fingerprint(self) -> JsonObject:
        return {"name": self.call.name, "arguments": self.call.arguments}

    def dump(self, value: ToolRun) -> JsonObject:
        return value.to_json()

    def dump_error(self, error: Exception) -> None:
        """Return ``None``: an exception that ends the run is not recorded, and the tool runs again in the next run."""

    def load(self, data: JsonObject) -> _KnownRun:
        done = ToolRun.from_json(data)
        return _KnownRun(self.call, self.tool, lambda: _counted(done), self._record)

    def settle(self, decision: Mapping[str, JsonValue]) -> ToolRun:
        """Return the run of a call that a crash interrupted: ``{"result": value}`` or ``{"deny": "why"}``."""
        if "result" in decision:
            return _tool_run(self._box, self.call, self.tool, decision["result"], 0.0)
        return self._error_run(f"The call was denied: {decision['deny']}", 0.0)

    def _run_blocking(self, started: float) -> _Outcome:
        if self.tool.is_async:
            return block_on(self._run_awaited(started))
        seconds, call = self._remaining_seconds(started), partial(self._call_handler, started)
        value, done = call() if seconds is None else call_within(seconds, call)
        if done is None:
            return block_on(self._in_limit(self._await_value(value, started), started))
        return value, done

    async def _run_awaited(self, started: float) -> _Outcome:
        waiting = self.tool.astart(self._bound)
        running = self._run_in_thread(started) if waiting is None else self._await_value(waiting, started)
        return await self._in_limit(running, started)

    async def _run_in_thread(self, started: float) -> _Outcome:
        # A thread cannot be stopped: after a timeout the handler continues and its value is dropped.
        value, done = (await to_thread(capture_outcome, partial(self._call_handler, started)))()
        return (value, done) if done is not None else await self._await_value(value, started)

    async def _in_limit(self, running: CoroutineOf[T], started: float) -> T:
        seconds = self._remaining_seconds(started)
        return await (running if seconds is None else await_within(seconds, running))

    def _call_handler(self, started: float) -> tuple[Any, ToolRun | None]:
        """Call the handler and convert its value in its thread: large values take time, generators run the tool's code."""
        value = self.tool.start(self._bound)
        return value, None if _is_awaitable(value) else self._finished_run(value, started)

    async def _await_value(self, waiting: Awaitable[object], started: float) -> _Outcome:
        value = await waiting
        return value, self._finished_run(value, started)

    @property
    def _timeout(self) -> float | None:
        return self._box.timeout if self.tool.timeout is None else self.tool.timeout

    def _remaining_seconds(self, started: float) -> float | None:
        """Return the seconds until the timeout of the tool or the deadline of the context, whichever is earlier."""
        own = self._timeout
        return shorter(remaining_seconds(), None if own is None else own + started - perf_counter())

    def _inputs(self) -> Mapping[str, object]:
        return self.call.arguments or {}

    def _finished_run(self, value: object, started: float) -> ToolRun:
        is_error = False
        given_media: tuple[MediaPart, ...] = ()
        try:
            if isinstance(value, ToolResult):
                is_error, given_media, value = value.is_error, value.media, value.content
            content, media = encode(value)
            seconds = perf_counter() - started
            return _tool_run(self._box, self.call, self.tool, content, seconds, is_error, given_media + media)
        except Exception as error:  # the conversion methods of a user's class may raise anything
            if ends_run(error):  # a generator runs the tool's code
                raise
            why = str(error) if isinstance(error, ValueError) else short_message(error)
            message = f"The tool ran, but its result cannot be shown: {why}."
            return self._error_run(message, perf_counter() - started, error)

    def _failed_run(self, error: Exception, seconds: float) -> Steps[ToolRun]:
        if isinstance(error, TimeLimitReached):
            own = self._timeout
            limit = "before the deadline" if own is None or seconds < own else f"within {own:g} seconds"
            return self._error_run(f"The tool did not finish {limit}.", seconds)
        whose: Whose = error.whose if isinstance(error, SigwireError) else "run" if is_interrupt(error) else "author"
        try:
            text = None if whose == "run" else (yield from self._answer_to(error))
            if text is not None:
                return self._error_run(text, seconds, error, is_bug=False)
            if whose == "run" or (whose != "model" and self._raises(error)):
                raise error
        except Exception as raised:
            record_tool_call(self.call.name, is_error=True)
            locate(raised, tool=self.call.name)
            raise
        if whose == "model":
            return self._error_run(str(error) or type(error).__name__, seconds)
        is_bug = whose not in ("inner model", "request")
        return self._error_run(f"The tool failed. {short_message(error)}", seconds, error, is_bug=is_bug)

    @property
    def _on_error(self) -> OnError | None:
        return self._box.on_error if self.tool.on_error is None else self.tool.on_error

    def _answer_to(self, error: Exception) -> Steps[str | None]:
        """Return what the user's function answers to an error; ``None`` without one."""
        if not callable(self._on_error):
            return None
        text = yield from called_steps(self._on_error, [error], {})
        if text is None or isinstance(text, str):
            return text
        raise ConfigurationError(
            f"on_error returned {type(text).__name__}, not text (the tool {self.call.name!r} raised {type(error).__name__}). "
            "Return the text for the model, or None."
        ) from error

    def _raises(self, error: Exception) -> bool:
        return self._on_error == "abort" or (self._on_error != "answer" and ends_run(error))

    def _error_run(
        self, message: str, seconds: float, exception: Exception | None = None, *, is_bug: bool = True
    ) -> ToolRun:
        return _tool_run(self._box, self.call, self.tool, message, seconds, True, (), exception, is_bug=is_bug)


def _counted(done: ToolRun) -> ToolRun:
    record_tool_call(done.call.name, is_error=done.result.is_error, warning=done.warning)
    return done


def _recorded(done: ToolRun, record: RunRecorder | None) -> ToolRun:
    if record is not None:
        record.append(done)
    return done


_Outcome: TypeAlias = "tuple[object, ToolRun]"
_NEVER_AWAITED = frozenset({dict, list, str, int, float, bool, type(None)})


def _is_awaitable(value: object) -> TypeGuard[Awaitable[object]]:
    return type(value) not in _NEVER_AWAITED and inspect.isawaitable(value)
