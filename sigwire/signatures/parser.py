"""The string form: parse "question, k: int -> answer: list[str]" to names and types. Nothing is evaluated or imported.

    signature := fields "->" fields          type   := member ("|" member)*
    fields    := [field ("," field)*]        member := NAME ("." NAME)* ["[" arguments "]"] | "(" type ")"
    field     := NAME [":" type]             arguments of Literal are constants, of anything else types

In this order: tokens, parser, names (``TypeScope``). Every error shows its position in the text.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import re
import types
import typing
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn, TypeAlias, cast

from sigwire.core.foreign_names import DOOR, NAMESPACE
from sigwire.core.typed_dict import TypeExpression
from sigwire.errors import SignatureError, similar_name
from sigwire.signatures import types as field_types

__all__ = ["Fields", "Names", "TypeScope", "caller_frame", "caller_scope", "parse_signature", "scope_of"]

Fields: TypeAlias = list[tuple[str, TypeExpression]]
Names: TypeAlias = Mapping[str, Any]
"""Values by the name that code sees them under."""


def parse_signature(text: str, names: TypeScope) -> tuple[Fields, Fields]:
    """Return the inputs and outputs of a signature's text, each as (name, type). Raises ``SignatureError``.

    >>> parse_signature("question, k: int -> answers: list[str]", TypeScope())
    ([('question', <class 'str'>), ('k', <class 'int'>)], [('answers', list[str])])
    """
    try:
        return _Parser(text, names).signature()
    except RecursionError:
        raise SignatureError("The types of the signature are nested too deeply. Give one by custom_types.") from None


_TOKEN = re.compile(
    r"""\s*(?:
      (?P<arrow>->)
    | (?P<string>[bB]?(?:'(?:[^'\\\n]|\\.)*'|"(?:[^"\\\n]|\\.)*"))
    | (?P<name>[^\W\d]\w*)
    | (?P<number>-?\d+(?:\.\d+)?)
    | (?P<mark>\.\.\.|[,:.|()\[\]=-])
    | (?P<end>$)
    )""",
    re.VERBOSE,
)


class _Token(NamedTuple):
    kind: str
    text: str
    at: int


def _tokens(text: str) -> list[_Token]:
    found: list[_Token] = []
    position = 0
    while not found or found[-1].kind != "end":
        match = _TOKEN.match(text, position)
        if match is None:
            at = len(text) - len(text[position:].lstrip())
            quoted = text[at] in "'\""
            _fail(text, at, "This quote is not closed." if quoted else f"{text[at]!r} has no meaning in a signature.")
        kind = cast("str", match.lastgroup)
        found.append(_Token(kind, match[kind], match.start(kind)))
        position = match.end()
    return found


def _fail(text: str, at: int, message: str) -> NoReturn:
    """Raise ``SignatureError`` with the line of the text and a caret under the position."""
    start = text.rfind("\n", 0, at) + 1
    line = text[start:].split("\n", 1)[0]
    raise SignatureError(f"{message}\n    {line}\n    {' ' * (at - start)}^")


class _Parser:
    """One pass over the tokens. Each method parses the construct of its name and moves behind it."""

    def __init__(self, text: str, names: TypeScope) -> None:
        self._text = text
        self._scope = names
        self._tokens = _tokens(text)
        self._position = 0

    @property
    def _next(self) -> _Token:
        return self._tokens[self._position]

    def _read_token(self) -> _Token:
        token = self._next
        self._position += 1
        return token

    def _skip(self, mark: str) -> bool:
        if self._next.text != mark or self._next.kind not in ("mark", "arrow"):
            return False
        self._position += 1
        return True

    def _expect(self, mark: str, instead_of: str) -> None:
        if not self._skip(mark):
            self._fail(f"Expected {mark!r} {instead_of}.")

    def _fail(self, message: str, at: int | None = None) -> NoReturn:
        _fail(self._text, self._next.at if at is None else at, message)

    def signature(self) -> tuple[Fields, Fields]:
        taken: set[str] = set()
        inputs = self._fields(taken)
        if self._next.text == "->" and not inputs:
            self._fail("Expected an input before the arrow: a signature is 'inputs -> outputs'.")
        if not self._skip("->"):
            expected = "'->'" if self._next.kind == "end" else "',' or '->'"
            self._fail(f"Expected {expected} here: a signature is 'inputs -> outputs'.")
        outputs = self._fields(taken)
        if self._next.text == "->":
            self._fail("A signature has one arrow; this is the second.")
        if self._next.kind != "end":
            self._fail("Expected ',' or the end of the signature here.")
        if not outputs:
            self._fail("Expected an output after the arrow: a signature is 'inputs -> outputs'.")
        return inputs, outputs

    def _fields(self, taken: set[str]) -> Fields:
        fields: Fields = []
        while self._next.kind not in ("arrow", "end"):
            fields.append(self._field(taken))
            if not self._skip(","):
                break
        return fields

    def _field(self, taken: set[str]) -> tuple[str, TypeExpression]:
        token = self._next
        if token.kind != "name":
            self._fail("Expected the name of a field here.")
        if not token.text.isidentifier():  # \w matches characters that Python forbids in names: "x²"
            self._fail(f"{token.text!r} is not a Python identifier, which a field's name must be.")
        if token.text in taken:
            self._fail(f"duplicate field {token.text!r}; inputs and outputs have distinct names.")
        if token.text.startswith("_"):
            self._fail(f"{token.text!r} starts with an underscore, which field names do not.")
        taken.add(self._read_token().text)
        annotation = self._type() if self._skip(":") else str
        if self._next.text == "=":
            self._fail("The string form has no defaults. Use a signature class with InputField(default=...).")
        return token.text, annotation

    def _type(self) -> TypeExpression:
        at = self._next.at
        members = [self._member()]
        while self._skip("|"):
            members.append(self._member())
        return members[0] if len(members) == 1 else self._apply(typing.Union, tuple(members), at)

    def _member(self) -> TypeExpression:
        start = self._next
        if self._skip("("):
            inner = self._type()
            self._expect(")", "or '|' here")
            return inner
        if start.kind != "name":
            self._fail(
                "Expected a type here." + (" Text belongs inside Literal[...]." if start.kind == "string" else "")
            )
        kind = self._scope.resolve_type(self._dotted_name(), self._failing_at(start))
        if not self._skip("["):
            return self._fail(f"{start.text} needs [...] after it.", start.at) if kind in _INCOMPLETE else kind
        is_literal = kind is typing.Literal or getattr(kind, "_name", None) == "Literal"
        arguments = self._constants() if is_literal else self._types(kind)
        return self._apply(kind, arguments, start.at)

    def _dotted_name(self) -> list[str]:
        path = [self._read_token().text]
        while self._skip("."):
            if self._next.kind != "name":
                self._fail("Expected a name after '.' here.")
            path.append(self._read_token().text)
        return path

    def _failing_at(self, start: _Token) -> Callable[[str], NoReturn]:
        return lambda message: self._fail(message, start.at)

    def _types(self, kind: TypeExpression) -> tuple[TypeExpression, ...]:
        arguments: list[TypeExpression] = []
        while not self._skip("]"):
            arguments.append(self._argument(kind, first=not arguments))
            if not self._skip(","):
                self._expect("]", "or ',' here")
                break
        return tuple(arguments)

    def _argument(self, kind: TypeExpression, *, first: bool) -> TypeExpression:
        if self._skip("..."):
            return ...
        if not first and kind is typing.Annotated:
            return self._constant()
        if kind is field_types.Code:  # Code[java], Code["java"]
            return self._read_token().text if self._next.kind == "name" else self._constant()
        return self._type()

    def _constants(self) -> tuple[object, ...]:
        values = [self._constant()]
        while self._skip(","):
            if self._next.text == "]":
                break
            values.append(self._constant())
        self._expect("]", "or ',' here")
        return tuple(values)

    def _constant(self) -> object:
        token = self._next
        if token.kind in ("string", "number"):
            return self._value_of(self._read_token())
        if token.kind == "name" and token.text in _CONSTANTS:
            return _CONSTANTS[self._read_token().text]
        if token.kind == "name":
            return self._scope.resolve(self._dotted_name(), self._failing_at(token))
        return self._fail("Expected a constant here: text in quotes, a number, True, False, None or an enum member.")

    def _value_of(self, token: _Token) -> object:
        try:
            return ast.literal_eval(token.text)  # one token of a known shape, never an expression
        except (SyntaxError, ValueError) as error:  # a null character, an invalid escape, digits of other scripts
            self._fail(f"{token.text[:40]!r} is not a Python constant: {error}.", token.at)

    def _apply(self, kind: TypeExpression, arguments: tuple[object, ...], at: int) -> TypeExpression:
        try:
            return kind[arguments if len(arguments) != 1 else arguments[0]]
        except (TypeError, ValueError, IndexError, AttributeError) as error:
            return self._fail(f"This type cannot be built: {error}.", at)


_CONSTANTS: Names = {"True": True, "False": False, "None": None}


_INCOMPLETE = (typing.Optional, typing.Union, typing.Literal, typing.Annotated, typing.ClassVar, typing.Final)


_BUILTINS = "int str float bool list tuple dict set frozenset complex bytes bytearray object type".split()
_TYPING: Names = {name: vars(typing)[name] for name in vars(typing)["__all__"] if name in vars(typing)}
_FIELD_TYPES: Names = {name: getattr(field_types, name) for name in field_types.__all__}
_KNOWN: Names = {
    **_TYPING,
    **_FIELD_TYPES,
    **{name: getattr(builtins, name) for name in _BUILTINS},
    "None": type(None),
    "NoneType": type(None),
}
_NAMESPACES: Mapping[str, Names] = {"typing": _TYPING, NAMESPACE: _FIELD_TYPES, "sigwire": _FIELD_TYPES}
_SUGGESTIONS: Mapping[str, str] = {
    "any": "Any", "array": "list", "boolean": "bool", "number": "float", "integer": "int", "object": "dict",
    "string": "str", "text": "str",
}  # fmt: skip
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class TypeScope:
    """The names of a signature's text. The first match wins: ``custom_types``; builtins, ``typing`` and sigwire's types
    (also as ``sigwire.Image``); the caller's ``scope``.

    >>> import datetime
    >>> TypeScope(scope={"datetime": datetime}).resolve_type(["datetime", "date"], fail=print)
    <class 'datetime.date'>
    """

    custom_types: Names | None = None
    scope: Names | None = None

    def resolve_type(self, path: list[str], fail: Callable[[str], NoReturn]) -> TypeExpression:
        """Return the type of a dotted name. ``fail`` is called with a message and raises."""
        found = self.resolve(path, fail)
        if found is None:
            return type(None)
        if _is_type(found):
            return found
        kind = "a module" if isinstance(found, types.ModuleType) else f"of type {type(found).__name__}"
        return fail(f"{'.'.join(path)!r} is {kind}, not a type.")

    def resolve(self, path: list[str], fail: Callable[[str], NoReturn]) -> Any:
        """Return the value of a dotted name."""
        custom = self.custom_types or {}
        for length in range(len(path), 0, -1):  # custom_types may have the key "Outer.Inner"
            if (name := ".".join(path[:length])) in custom:
                return _attributes(custom[name], path, length, fail)
        # The door has subclasses of the types.
        door = getattr((self.scope or {}).get(NAMESPACE), "__name__", "") == DOOR
        if len(path) > 1 and path[1] in _NAMESPACES.get(path[0], ()) and not (door and path[0] == NAMESPACE):
            return _attributes(_NAMESPACES[path[0]][path[1]], path, 2, fail)
        return _attributes(self._resolve_head(path[0], fail), path, 1, fail)

    def _resolve_head(self, name: str, fail: Callable[[str], NoReturn]) -> Any:
        known = _KNOWN.get(name, _ABSENT)
        local = self.scope.get(name, _ABSENT) if self.scope is not None else _ABSENT
        if known is _ABSENT:
            return local if local is not _ABSENT else fail(self._unknown(name))
        if isinstance(local, type) and local is not known:
            if getattr(known, "__origin__", None) is local:  # collections.abc.Sequence for typing.Sequence
                return local
            if isinstance(known, type) and issubclass(local, known) and local.__module__.startswith("sigwire."):
                return local
            fail(
                f"ambiguous type {name!r}: {_qualified_name(known)}, or your {_qualified_name(local)}. "
                f'For yours, pass custom_types={{"{name}": {name}}}.'
            )
        return known

    def _unknown(self, name: str) -> str:
        close = _SUGGESTIONS.get(name.lower()) or similar_name(name, {*_KNOWN, *(self.custom_types or {})})
        meant = f"Did you mean {close!r}? Otherwise pass" if close else "Pass"
        return f'{name!r} is not a known type. {meant} custom_types={{"{name}": {name}}}.'


def _attributes(found: Any, path: list[str], start: int, fail: Callable[[str], NoReturn]) -> Any:
    for at in range(start, len(path)):
        found = getattr(found, path[at], _ABSENT)
        if found is _ABSENT:
            fail(f"{'.'.join(path[:at])!r} has no attribute {path[at]!r}.")
    return found


def _is_type(value: object) -> bool:
    """Return True if a value can be used in an annotation. Functions of ``typing`` and modules cannot."""
    if isinstance(value, type):
        return True
    return not isinstance(value, (types.FunctionType, types.ModuleType)) and type(value).__module__ in (
        "typing",
        "types",
        "typing_extensions",
    )


def _qualified_name(kind: TypeExpression) -> str:
    return f"{getattr(kind, '__module__', '?')}.{getattr(kind, '__qualname__', kind)}"


def caller_frame(levels: int = 1) -> types.FrameType:
    """Return the frame of the caller's caller; with ``levels=2`` of the caller of that frame."""
    frame = inspect.currentframe()
    for _ in range(levels + 1):
        if frame is None:
            break
        frame = frame.f_back
    if frame is None:
        raise SignatureError("no calling frame has the names of the types. Pass custom_types={...}.")
    return frame


def caller_scope(levels: int = 1) -> Names:
    """Return the names visible in the frame of the caller's caller, in that frame only.

    A function that makes signatures from its caller's text passes the scope:

    >>> from sigwire.signatures.signature import ensure_signature
    >>> def module(text):
    ...     return ensure_signature(text, scope=caller_scope())
    >>> class City: ...
    >>> module("where -> city: City").spec.outputs[0].annotation.__name__
    'City'
    """
    return scope_of(caller_frame(levels + 1))


def scope_of(frame: types.FrameType) -> Names:
    """Return the names visible in one frame: its locals, then the globals of its module."""
    if frame.f_locals is frame.f_globals:
        return frame.f_globals
    return ChainMap(frame.f_locals, frame.f_globals)
