"""The body of a signature class: its annotations, its attributes and its docstring.

Names in annotations are resolved in one frame: the scope of the ``class`` statement.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
import typing
from typing import ClassVar

from sigwire.core.record import FieldValues
from sigwire.core.typed_dict import TypeExpression
from sigwire.errors import FieldDefinitionError, SignatureError
from sigwire.signatures.declarations import direction_of
from sigwire.signatures.parser import scope_of

__all__ = ["check_attributes", "check_name", "resolve_annotations", "starts_with_f_string"]


def check_name(name: object) -> None:
    """Raise ``FieldDefinitionError`` unless the name can be the name of a field."""
    if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
        raise FieldDefinitionError(f"{name!r} cannot name a field: names are identifiers without a leading underscore.")


_PLAIN_ATTRIBUTES = (types.FunctionType, staticmethod, classmethod, property, type)


def check_attributes(cls: type, rest: FieldValues, declared: FieldValues) -> None:
    """Raise ``FieldDefinitionError`` for a public attribute that is no field, method or class variable."""
    for name in declared:
        check_name(name)
    annotations = inspect.get_annotations(cls)
    for name in dict.fromkeys([*rest, *annotations]):
        if name.startswith("_") or name in declared or _is_class_variable(annotations.get(name)):
            continue
        value = rest.get(name)
        if name in rest and (isinstance(value, _PLAIN_ATTRIBUTES) or hasattr(value, "__get__")):
            continue
        shown = f" = {value!r:.60}" if name in rest else ""
        raise FieldDefinitionError(
            f"{cls.__name__}.{name}{shown} is not a field. Write {name}: ... = InputField() or OutputField()"
            f"{'; a default goes into InputField(default=...)' if name in rest else ''}."
        )


def _is_class_variable(annotation: object) -> bool:
    if isinstance(annotation, str):
        return bool(re.match(r"(\w+\.)?ClassVar\b", annotation))
    return annotation is ClassVar or typing.get_origin(annotation) is ClassVar


def resolve_annotations(
    cls: type, declared: FieldValues, rest: FieldValues, frame: types.FrameType
) -> dict[str, TypeExpression]:
    """Return the types of the fields. Strings (``from __future__ import annotations``) are resolved in ``frame``."""
    module = sys.modules.get(cls.__module__)

    def holder() -> None: ...

    try:
        holder.__annotations__ = _raw_annotations(cls, declared, frame)
        return typing.get_type_hints(
            holder,
            {**vars(module), **frame.f_globals} if module else frame.f_globals,
            {**frame.f_locals, **rest},
            include_extras=True,
        )
    except NameError as error:
        raise SignatureError(
            f"{cls.__name__}: unknown type name {error.name!r}. "
            "Define or import it before the signature, outside of TYPE_CHECKING."
        ) from error
    except (SyntaxError, TypeError) as error:
        raise FieldDefinitionError(f"{cls.__name__}: an annotation is not a type: {error}.") from error


def _raw_annotations(cls: type, declared: FieldValues, frame: types.FrameType) -> dict[str, TypeExpression]:
    """Return the unresolved annotations. In ``date: date = InputField()`` Python assigns first: the name is the field."""
    scope = scope_of(frame)
    written = {name: kind for name, kind in inspect.get_annotations(cls).items() if name in declared}
    return {name: kind if direction_of(kind) is None else scope.get(name, str) for name, kind in written.items()}


_F_STRING = re.compile(r"""\b(?:f|rf|fr)['"]""", re.IGNORECASE)


def starts_with_f_string(name: str, frame: types.FrameType) -> bool:
    """Return True if the class body starts with an f-string. Parses the source only if an f-string is near."""
    import linecache

    lines = linecache.getlines(frame.f_code.co_filename, frame.f_globals)[frame.f_lineno - 1 :]
    if not any(_F_STRING.search(line) for line in lines[:12]):
        return False
    import ast
    import textwrap

    try:
        tree = ast.parse(textwrap.dedent("".join(inspect.getblock(lines))))
    except (SyntaxError, ValueError):
        return False
    found = next((node for node in ast.walk(tree) if isinstance(node, ast.ClassDef) and node.name == name), None)
    return found is not None and isinstance(found.body[0], ast.Expr) and isinstance(found.body[0].value, ast.JoinedStr)
