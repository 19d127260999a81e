"""``HostTools``: the tools of a toolbox as functions of code. Each call is the tool effect of an agent's call."""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import count

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.tool import Tool
from sigwire.effects.steps import Steps
from sigwire.errors import ToolDefinitionError
from sigwire.interpreters.host_calls import HostCallError, HostFunction
from sigwire.modules.agents.approval.gate import CallGate
from sigwire.modules.agents.tool_run import RunRecorder, ToolRun
from sigwire.modules.agents.toolbox import Toolbox
from sigwire.modules.code.tool_signatures import tool_signature

__all__ = ["HostTools", "shown_in_code"]

_FAILED = re.compile(r"The tool failed\. (\w+)(?:: )?(.*)", re.DOTALL)


class HostTools:
    """The functions of a toolbox by the names that code uses.

    A name that is no name of Python, or that of a builtin, is changed: ``get-weather`` is ``get_weather``, ``sum`` is ``sum_``.
    Raises ``ToolDefinitionError`` for two tools with one such name, and for a tool that the provider runs.

    >>> def add(a: int, b: int) -> int:
    ...     return a + b
    >>> from sigwire.effects.steps import run
    >>> run(HostTools(Toolbox([add])).functions()["add"](1, b=2))
    3
    """

    def __init__(self, toolbox: Toolbox) -> None:
        self.toolbox = toolbox
        self.by_name: dict[str, Tool] = {}
        for tool in toolbox.tools.values():
            if tool.handler is None:
                raise ToolDefinitionError(
                    f"{tool.name!r} runs at the provider, and code cannot call it. Use ReAct for it."
                )
            if (other := self.by_name.setdefault(name := python_name(tool.name), tool)) is not tool:
                raise ToolDefinitionError(
                    f"The tools {other.name!r} and {tool.name!r} are both {name!r} in code. Rename one: Tool(f, name=...)."
                )

    def functions(
        self,
        record: RunRecorder | None = None,
        prefix: str = "code",
        most: int | None = None,
        gate: CallGate | None = None,
    ) -> Mapping[str, HostFunction]:
        """Return the functions of one run of code: at most ``most`` calls, whose ids start with ``prefix``.

        ``record`` receives each finished call. ``gate`` is that of the run; without one, limits count for this code.
        """
        ids = iter([f"{prefix}_{number}" for number in range(most)]) if most else map(f"{prefix}_{{}}".format, count())
        gate = gate or CallGate(self.toolbox.rules)
        run = partial(self.toolbox.run, record=record, gate=gate)
        return {name: _function(run, name, tool, ids, most) for name, tool in self.by_name.items()}


def python_name(name: str) -> str:
    """Return a name of a tool as a name of Python.

    >>> python_name("get-weather"), python_name("sum"), python_name("3d")
    ('get_weather', 'sum_', '_3d')
    """
    name = re.sub(r"\W", "_", name)
    name = f"_{name}" if not name.isidentifier() else name
    return f"{name}_" if keyword.iskeyword(name) or hasattr(builtins, name) else name


def shown_in_code(tool: Tool) -> JsonObject:
    """Return a tool that a search found, for code that can call it.

    >>> shown_in_code(Tool.from_schema("get-time", "Now."))
    {'name': 'get_time', 'signature': 'def get_time()\\n    Now.'}
    """
    name = python_name(tool.name)
    return {"name": name, "signature": tool_signature(name, tool)}


def _function(
    run: Callable[[Sequence[ToolCall]], Steps[tuple[ToolRun, ...]]],
    name: str,
    tool: Tool,
    ids: Iterator[str],
    most: int | None,
) -> HostFunction:
    def call(*args: JsonValue, **kwargs: JsonValue) -> Steps[JsonValue]:
        if (number := next(ids, None)) is None:
            raise HostCallError("RuntimeError", f"the limit of {most} calls of functions is used up")
        call = ToolCall(number, tool.name, {**_by_name(name, tool, args, kwargs), **kwargs})
        (done,) = yield from run([call])
        if done.result.is_error:
            raise _exception(done.result.text)
        content: JsonValue = done.result.content
        return content

    return call


def _by_name(
    name: str, tool: Tool, args: tuple[JsonValue, ...], kwargs: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return positional arguments by the names of the tool's parameters."""
    properties = tool.parameters.get("properties")
    names = list(properties) if isinstance(properties, dict) else []
    if len(args) > len(names):
        raise HostCallError("TypeError", f"{name}() takes {len(names)} arguments, and {len(args)} were given")
    if twice := [each for each in names[: len(args)] if each in kwargs]:
        raise HostCallError("TypeError", f"{name}() got two values for the argument {twice[0]!r}")
    return dict(zip(names, args, strict=False))


def _exception(text: str) -> HostCallError:
    """Return the error of a tool for the code. Its text is all that a journal keeps: class and first line of the exception."""
    found = _FAILED.fullmatch(text)
    if found is None:
        return HostCallError("RuntimeError", text)
    # The text of a KeyError is the repr of its key, and the code makes a KeyError of this message.
    return HostCallError(found[1], found[2].strip("'") if found[1] == "KeyError" else found[2])
