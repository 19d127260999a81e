"""A call's keyword arguments against a signature's inputs: names, defaults, types, tools. One ``InputReader`` per signature.

Names are settled before anything is sent: a missing or unknown input is an ``InputError`` that shows the right call. A value
that does not fit its type is a warning, and goes to the model as it is: programs rely on passing near enough values.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple, cast

from sigwire.core.messages import Message
from sigwire.core.tools.calls import ToolCalls
from sigwire.core.tools.tool import Tool, are_same_tools
from sigwire.errors import InputError
from sigwire.signatures.fields import FieldSpec, SignatureSpec

__all__ = ["InputReader", "UsedCallIds"]

SPECIALS = frozenset({"config", "demos", "lm", "prediction", "signature"})


class InputReader:
    """Reads the inputs of one signature.

    >>> from sigwire.signatures import Signature
    >>> reader = InputReader(Signature("question, k: int -> answer").spec)
    >>> reader.read("Predict", {"question": "2+2?", "k": 3})
    {'question': '2+2?', 'k': 3}
    >>> reader.read("Predict", {"question": "2+2?"})
    Traceback (most recent call last):
        ...
    sigwire.errors.InputError: Predict needs the input 'k' (calling 'question, k -> answer'). Write Predict(...k=...).
    """

    def __init__(self, spec: SignatureSpec) -> None:
        self.spec = spec
        self.names = frozenset(field.name for field in spec.inputs)
        self.specials = SPECIALS - self.names
        self.tools_name = spec.tools_field.name if spec.tools_field else None
        self.history_name = spec.history_field.name if spec.history_field else None
        self._defaults = tuple(field for field in spec.inputs if field.has_default)
        self._conversation = {self.tools_name, self.history_name} - {None}
        self._values = frozenset(self.names - self._conversation)
        self._known_tools: tuple[_KnownTools, ...] = ()  # replaced as a whole: other threads may look at it
        self._checked = tuple(field for field in spec.inputs if field.name in self._values)

    def read(self, module: str, given: dict[str, Any], *, check_types: bool = True) -> dict[str, Any]:
        """The inputs to format: checked, defaults filled in, functions made tools. ``given`` may be taken over.

        Without any value, a call whose history is not empty goes on with that conversation: nothing is missing then.
        """
        if given.keys() != self.names and not self._goes_on(given):
            given = self._completed(module, given)
        if self.tools_name is not None:
            given[self.tools_name] = self._tools(given[self.tools_name])
        if check_types:
            for field in self._checked:
                value = given.get(field.name)
                if type(value) is not field.annotation and field.name in given:
                    _warn_of_mismatch(module, field, value)
        return given

    def _goes_on(self, given: dict[str, Any]) -> bool:
        """Whether a conversation, with its tools, is all there is to say, as it is at an agent's turns."""
        return self.history_name is not None and given.keys() == self._conversation and bool(given[self.history_name])

    def _completed(self, module: str, given: dict[str, Any]) -> dict[str, Any]:
        if unknown := [name for name in given if name not in self.names]:
            raise InputError(
                f"{module} has no input {_list(unknown)} (calling {self._text()!r}). Write {module}({self._call()})."
            )
        goes_on = bool(self.history_name and given.get(self.history_name)) and self._values.isdisjoint(given)
        completed = dict(given)
        for field in self._defaults:
            if field.name not in given and not (goes_on and field.name in self._values):
                completed[field.name] = field.default_value()
        if goes_on:
            missing = [name for name in (self.tools_name,) if name is not None and name not in completed]
        else:
            missing = [f.name for f in self.spec.inputs if f.name not in completed and f.name != self.history_name]
        if missing:
            noun = "input" if len(missing) == 1 else "inputs"
            raise InputError(
                f"{module} needs the {noun} {_list(missing)} (calling {self._text()!r}). Write {module}({self._call()})."
            )
        return completed

    def _tools(self, value: Any) -> Any:
        """Tools as they were given, functions among them as tools. The same ones give the same object: plans know it."""
        if isinstance(value, Tool) or value is None:
            return value
        if issubclass(type(value), Mapping):
            names = tuple(value)
            return dict(zip(names, self._tools_for(tuple(value.values()), names), strict=True))
        if callable(value):
            return self._tools_for((value,))[0]
        return self._tools_for(tuple(value))

    def _tools_for(self, given: tuple[Any, ...], names: tuple[str, ...] = ()) -> tuple[Tool, ...]:
        for known in self._known_tools:
            if names == known.names and are_same_tools(given, known.given):
                return known.tools
        tools = tuple(map(_as_named_tool, given, names)) if names else tuple(map(_as_tool, given))
        self._known_tools = (_KnownTools(given, names, tools), *self._known_tools[: _MOST_KNOWN - 1])
        return tools

    def refuse_positional(self, module: str) -> InputError:
        """The error for a call with positional arguments."""
        return InputError(f"{module} takes its inputs by name. Write {module}({self._call()}).")

    def _call(self) -> str:
        return ", ".join(f"{field.name}=..." for field in self.spec.inputs)

    def _text(self) -> str:
        sides = (self.spec.inputs, self.spec.outputs)
        return " -> ".join(", ".join(field.name for field in side) for side in sides)


def _list(names: list[str]) -> str:
    return ", ".join(map(repr, names))


def _warn_of_mismatch(module: str, field: FieldSpec, value: Any) -> None:
    from pydantic import ValidationError

    try:
        field.adapter.validate_python(value)
    except ValidationError as fault:
        problem = fault.errors()[0]["msg"]
    except ValueError as fault:
        problem = str(fault)
    else:
        return
    warnings.warn(
        f"{module}: the input {field.name!r} does not fit its type ({problem}); it was sent as it is. "
        "configure(warn_on_type_mismatch=False) turns this warning off.",
        UserWarning,
        stacklevel=2,
    )


_MOST_KNOWN = 8


class _KnownTools(NamedTuple):
    """Tools as a call gave them (``names``: the keys, if in a mapping), and as ``Tool`` objects."""

    given: tuple[Any, ...]
    names: tuple[str, ...]
    tools: tuple[Tool, ...]


def _as_named_tool(tool: Any, name: str) -> Tool:
    return tool if isinstance(tool, Tool) else Tool(tool, name=name)


def _as_tool(function: Any) -> Tool:
    if isinstance(function, Tool):
        return function
    if not callable(function):
        raise InputError(f"Tools are Tool objects or functions, not {type(function).__name__}. Write Tool(function).")
    return Tool(function)


class UsedCallIds(Iterable[str]):
    """The call ids of a history, looked up only where a call needs a new one."""

    __slots__ = ("_history",)

    def __init__(self, history: Any) -> None:
        self._history = history

    def __iter__(self) -> Iterator[str]:
        for turn in getattr(self._history, "messages", self._history) or ():
            if isinstance(turn, Message):
                yield from (call.id for call in turn.tool_calls)
            elif isinstance(turn, Mapping):
                for value in cast("Mapping[str, Any]", turn).values():
                    if isinstance(value, ToolCalls):
                        yield from (call.id for call in value)
