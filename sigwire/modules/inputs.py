"""Check the keyword arguments of a call against the inputs of a signature: names, defaults, types, tools.

A missing or unknown input is an ``InputError`` that shows the right call, raised before anything is sent; the setting
``unknown_inputs`` may leave unknown ones out. A value that does not fit its type is a warning and is sent as it is: programs
rely on nearly fitting values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import repeat
from typing import Literal, NamedTuple, TypeAlias, cast

from sigwire.core.messages import Message
from sigwire.core.record import FieldValues
from sigwire.core.tools.calls import ToolCalls, WebSearch
from sigwire.core.tools.tool import Tool, are_same_tools, as_tool, several_tools
from sigwire.errors import InputError, suggest, warn_user
from sigwire.signatures.annotations import describe_type
from sigwire.signatures.fields import FieldSpec, SignatureSpec

__all__ = ["InputReader", "UnknownInputs", "UsedCallIds", "mismatch_of"]

UnknownInputs: TypeAlias = Literal["error", "warn", "ignore"]
_HOW_TO_OMIT = 'configure(unknown_inputs="warn") leaves unknown inputs out.'
_TURN_OFF = 'configure(unknown_inputs="ignore") turns this warning off.'
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
        self._conversation = {name for name in (self.tools_name, self.history_name) if name is not None}
        self._values = self.names - self._conversation
        self._checked = tuple(field for field in spec.inputs if field.name in self._values)
        self._files = tuple(field for field in self._checked if field.role == "media")
        self._known_tools: tuple[_KnownTools, ...] = ()  # replaced as a whole: other threads may read it

    def read(
        self, module: str, given: dict[str, object], *, check_types: bool = True, unknown: UnknownInputs = "error"
    ) -> dict[str, object]:
        """Return the inputs to format: checked, with defaults, functions as tools. May change and return ``given``.

        ``unknown``: refuse inputs that the signature does not have, or leave them out, with or without a warning.

        If ``given`` has a history that is not empty and no other value, the call continues the conversation: then no input is
        missing and no default is filled in.
        """
        if given.keys() != self.names and not self._is_conversation(given):
            given = self._with_defaults(module, self._known_inputs(module, given, unknown))
        if self.tools_name is not None:
            given[self.tools_name] = self._as_tools(given[self.tools_name])
        for field in self._checked if check_types else self._files:
            value = given.get(field.name)
            if type(value) is not field.annotation and field.name in given:
                _check_type(module, field, value)
        return given

    def _is_conversation(self, given: dict[str, object]) -> bool:
        """Return True if a history and its tools are the only inputs, as at the turns of an agent."""
        return self.history_name is not None and given.keys() == self._conversation and bool(given[self.history_name])

    def _known_inputs(self, module: str, given: dict[str, object], unknown: UnknownInputs) -> dict[str, object]:
        """Return the inputs that the signature has."""
        names = [name for name in given if name not in self.names]
        if not names:
            return given
        if unknown == "error":
            hint = "".join(suggest(name, self.names - given.keys()) for name in names)
            raise InputError(f"{module} has no input {_quote(names)} ({self._help(module, hint)} {_HOW_TO_OMIT}")
        if unknown == "warn":
            self.warn_of_unknown(module, names)
        return {name: value for name, value in given.items() if name in self.names}

    def warn_of_unknown(self, module: str, names: list[str]) -> None:
        """Warn of inputs that were left out."""
        warn_user(f"{module} has no input {_quote(names)}; it was left out. {_TURN_OFF}")

    def _with_defaults(self, module: str, given: FieldValues) -> dict[str, object]:
        completed = dict(given)
        missing: list[str] = []
        for field in self._absent_inputs(given):
            if field.has_default:
                completed[field.name] = field.default_value()
            elif field.name != self.history_name:
                missing.append(field.name)
        if missing:
            noun = "input" if len(missing) == 1 else "inputs"
            raise InputError(f"{module} needs the {noun} {_quote(missing)} ({self._help(module)}")
        return completed

    def _absent_inputs(self, given: FieldValues) -> Iterable[FieldSpec]:
        """Yield the inputs that are not given; in a conversation without new values, only those of history and tools."""
        continues = self.history_name is not None and given.get(self.history_name) and self._values.isdisjoint(given)
        for field in self.spec.inputs:
            if field.name not in given and not (continues and field.name in self._values):
                yield field

    def _as_tools(self, value: object) -> object:
        """Return tools in their given form, functions as ``Tool``. Equal tools return the same object: plans use identity."""
        if isinstance(value, Tool) or value is None:
            return value
        if isinstance(value, WebSearch):
            return as_tool(value)
        if issubclass(type(value), Mapping):
            value = cast(FieldValues, value)
            names = tuple(value)
            return dict(zip(names, self._tools_for(tuple(value.values()), names), strict=True))
        if callable(value):
            return self._tools_for((value,))[0]
        return self._tools_for(tuple(several_tools(value, f"reading the input {self.tools_name!r}")))

    def _tools_for(self, given: tuple[object, ...], names: tuple[str, ...] = ()) -> tuple[Tool, ...]:
        for known in self._known_tools:
            if names == known.names and are_same_tools(given, known.given):
                return known.tools
        tools = tuple(map(_as_tool, given, names or repeat(None)))
        self._known_tools = (_KnownTools(given, names, tools), *self._known_tools[: _MOST_KNOWN - 1])
        return tools

    def positional_error(self, module: str) -> InputError:
        """Return the error for a call with positional arguments."""
        return InputError(f"{module} takes its inputs by name. Write {self._example(module)}.")

    def _help(self, module: str, hint: str = "") -> str:
        sides = (self.spec.inputs, self.spec.outputs)
        text = " -> ".join(", ".join(field.name for field in side) for side in sides)
        return f"calling {text!r}). {hint}Write {self._example(module)}."

    def _example(self, module: str) -> str:
        return f"{module}({', '.join(f'{field.name}=...' for field in self.spec.inputs)})"


def _quote(names: list[str]) -> str:
    return ", ".join(map(repr, names))


def mismatch_of(field: FieldSpec, value: object, *, strict: bool | None = None) -> str:
    """Return why a value does not fit the type of its field, an empty text if it fits."""
    from pydantic import ValidationError

    try:
        field.adapter.validate_python(value, strict=strict)
    except ValueError as error:
        return str(error.errors()[0]["msg"] if isinstance(error, ValidationError) else error)
    return ""


def _check_type(module: str, field: FieldSpec, value: object) -> None:
    """Raise ``InputError`` for a value in place of a file; warn of another one that does not fit."""
    if not (problem := mismatch_of(field, value)):
        return
    if field.role == "media":
        raise InputError(
            f"{module}: the input {field.name!r} is {value!r:.60}, not of the type {describe_type(field.annotation)} "
            f"(calling): the model would read this text and see no file. Write Image(...), Audio(...) or File(...) around it. "
            f"({problem})"
        )
    warn_user(
        f"{module}: the input {field.name!r} does not fit its type ({problem}); it was sent as it is. "
        "configure(warn_on_type_mismatch=False) turns this warning off."
    )


_MOST_KNOWN = 8


class _KnownTools(NamedTuple):
    """Tools as a call gave them (``names``: the keys, if in a mapping), and as ``Tool`` objects."""

    given: tuple[object, ...]
    names: tuple[str, ...]
    tools: tuple[Tool, ...]


def _as_tool(given: object, key: str | None) -> Tool:
    if isinstance(given, Tool):
        return given  # of any name: the key is the caller's
    if not (callable(given) or isinstance(given, WebSearch)):
        raise InputError(
            f"Tools are Tool objects or functions, not {type(given).__name__} (reading the input of tools). Write "
            "Tool(function)."
        )
    return as_tool(given, None if isinstance(given, WebSearch) else key)


class UsedCallIds(Iterable[str]):
    """The call ids of a history. The history is searched only when a call needs a new id."""

    __slots__ = ("_history",)

    def __init__(self, history: object) -> None:
        self._history = history

    def __iter__(self) -> Iterator[str]:
        turns: object = getattr(self._history, "messages", self._history)
        for turn in cast("Iterable[object]", turns or ()):
            if isinstance(turn, Message):
                yield from (call.id for call in turn.tool_calls)
            elif isinstance(turn, Mapping):
                for value in cast(FieldValues, turn).values():
                    if isinstance(value, ToolCalls):
                        yield from (call.id for call in value)
