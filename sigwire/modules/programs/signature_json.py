"""Signatures as JSON: a class by its name, or names and types as text; and the texts that optimizers change."""

from __future__ import annotations

import types
import typing
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, TypeAlias

from sigwire.core.json import JsonObject
from sigwire.errors import SignatureError, StateError
from sigwire.signatures.signature import DECLARED, Signature, SignatureClass, SignatureMeta, make_signature
from sigwire.signatures.types import Code

__all__ = ["NoteClass", "decode_signature", "encode_signature", "type_text"]

NoteClass: TypeAlias = "Callable[[type], str]"
"""Registers a class that a file names; returns the name."""


def encode_signature(signature: SignatureMeta, note: NoteClass) -> JsonObject:
    """Return a signature as JSON. Raises ``StateError`` if classes and texts do not restore it.

    >>> encode_signature(make_signature("question, k: int -> answer"), lambda cls: cls.__name__)["text"]
    'question: str, k: int -> answer: str'
    """
    declared: SignatureMeta = vars(signature).get(DECLARED, signature)
    texts = signature.dump_state()
    if declared is not Signature and _is_restored(signature, lambda: declared.load_state(texts)):
        return {"class": note(declared), "texts": texts}
    named: dict[str, type] = {}

    def note_type(cls: type) -> str:
        name = note(cls)
        named[name] = cls
        return name

    fields = [
        (field.direction, f"{field.name}: {type_text(field.annotation, note_type)}") for field in signature.spec.fields
    ]
    inputs, outputs = (", ".join(text for side, text in fields if side == wanted) for wanted in ("input", "output"))
    data: JsonObject = {"text": f"{inputs} -> {outputs}", "types": list(named), "texts": texts}
    if not _is_restored(signature, lambda: decode_signature(data, named)):
        raise StateError(
            f"The signature {signature.spec.name} ({signature.signature}) has constraints or defaults that text does not hold "
            "(saving a program). Declare the whole signature as a class."
        )
    return data


def decode_signature(data: Mapping[str, Any], classes: Mapping[str, type]) -> SignatureClass:
    """Return the signature of JSON. ``classes``: the registered ones by name; nothing else is looked up."""
    if (name := data.get("class")) is not None:
        declared = classes.get(name)
        if not isinstance(declared, SignatureMeta):
            raise StateError(f"{name} is the name of a signature in the file, and not here (loading a program).")
        return declared.load_state(data.get("texts", {}))
    try:
        made = make_signature(data["text"], custom_types=classes, scope={})
    except SignatureError as error:
        raise StateError(f"The signature {data['text']!r:.200} cannot be read (loading a program): {error}") from error
    return made.load_state(data.get("texts", {}))


def _is_restored(signature: SignatureMeta, restore: Callable[[], SignatureMeta]) -> bool:
    try:
        return restore().equals(signature)
    except StateError:
        return False


# --- types -------------------------------------------------------------------------------------------


def type_text(annotation: Any, note: NoteClass) -> str:
    """Return a type in the string form of signatures. Raises ``StateError`` for a type without such a form.

    >>> type_text(dict[str, typing.Literal["a", 1]] | None, lambda cls: cls.__name__)
    "dict[str, Literal['a', 1]] | None"
    """
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is None or annotation is type(None):
        return "None"
    if origin in (typing.Union, types.UnionType):
        return " | ".join(type_text(each, note) for each in arguments)
    if origin is typing.Literal:
        return f"Literal[{', '.join(_constant_text(each, note) for each in arguments)}]"
    if origin is not None and isinstance(origin, type):
        return f"{_class_text(origin, note)}[{', '.join(_argument_text(each, note) for each in arguments)}]"
    if isinstance(annotation, type):
        return _class_text(annotation, note)
    if annotation is Any:
        return "Any"
    raise StateError(f"The type {annotation!r:.80} has no text (saving a program). Declare the signature as a class.")


def _argument_text(argument: object, note: NoteClass) -> str:
    return "..." if argument is ... else type_text(argument, note)


def _constant_text(value: object, note: NoteClass) -> str:
    return f"{note(type(value))}.{value.name}" if isinstance(value, Enum) else repr(value)


def _class_text(cls: type[Any], note: NoteClass) -> str:
    if issubclass(cls, Code) and Code.__class_getitem__(cls.language) is cls:
        return f"Code[{cls.language!r}]"
    is_known = cls.__module__ == "builtins" or cls.__module__.startswith(("sigwire.", "collections.abc", "typing"))
    return cls.__name__ if is_known else note(cls)
