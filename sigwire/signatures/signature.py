"""Signature: a task as typed inputs and outputs, declared as a class or as a string.

A signature is a class, and is not a pydantic model: its metaclass compiles the fields once into ``spec`` (fields.py),
and adapters read only that. Every edit gives a new class. Instances are plain records; what ``Predict`` returns for a
class signature is one, as far as type checkers are concerned.

Names are looked up in one frame: the body of the ``class`` statement's surroundings, or the direct caller of
``Signature("...")``. Type checkers see ``dataclass_transform``: inputs are constructor keywords, outputs are
attributes.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
import typing
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast, dataclass_transform, overload

from sigwire.core.record import Record
from sigwire.errors import FieldDefinitionError, InputError, SignatureError, StateError
from sigwire.signatures.fields import (
    FieldSpec,
    InputField,
    OutputField,
    SignatureSpec,
    compile_bare,
    compile_field,
    direction_of,
    redeclare,
)
from sigwire.signatures.parser import TypeScope, caller_frame, caller_scope, parse_signature, scope_of
from sigwire.signatures.roles import check_roles
from sigwire.signatures.types.base import as_items, as_mapping

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

__all__ = ["Signature", "SignatureMeta", "ensure_signature", "make_signature"]

M = TypeVar("M", bound="SignatureMeta")

_SPEC, _DECLARED = "__sigwire_spec__", "__sigwire_declared__"


@dataclass_transform(kw_only_default=True, field_specifiers=(InputField, OutputField))
class SignatureMeta(type):
    """What signature classes can do as classes. Methods live here and not on instances, so a field may have their
    names.
    """

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], *, spec: SignatureSpec | None = None
    ) -> Any:
        if spec is not None:
            return super().__new__(mcs, name, bases, {**namespace, _SPEC: spec})
        if not any(isinstance(base, SignatureMeta) for base in bases):
            return super().__new__(mcs, name, bases, {**namespace, _SPEC: SignatureSpec(name, "", (), False)})
        frame = caller_frame()
        declared = {key: value for key, value in namespace.items() if direction_of(value) is not None}
        rest = {key: value for key, value in namespace.items() if key not in declared}
        cls = super().__new__(mcs, name, bases, rest)
        annotations = _annotations(cls, declared, rest, frame)
        _refuse_strays(cls, rest, declared)
        own = [compile_field(key, annotations.get(key, str), value) for key, value in declared.items()]
        type.__setattr__(cls, _SPEC, _spec(name, _inherited(bases, own), _instructions(cls, rest, frame)))
        return cls

    def __init__(cls, *args: Any, **kwargs: Any) -> None:
        type.__init__(cls, *args)

    if not TYPE_CHECKING:  # for checkers, a call of a signature class is a call of its synthesized __init__

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            if cls is Signature:
                kwargs.setdefault("scope", caller_scope())
                return make_signature(*args, **kwargs)
            return super().__call__(*args, **kwargs)

    # --- reading ---

    @property
    def spec(cls) -> SignatureSpec:
        """The compiled signature: what adapters read."""
        return cast("SignatureSpec", cls.__dict__[_SPEC])

    @property
    def instructions(cls) -> str:
        """What the model is told to do. Assigning changes this class; ``with_instructions`` makes a new one."""
        return cls.spec.instructions

    @instructions.setter
    def instructions(cls, text: str) -> None:
        type.__setattr__(cls, _SPEC, replace(cls.spec, instructions=text, instructions_given=True))
        type.__setattr__(cls, "__doc__", text)

    @property
    def fields(cls) -> dict[str, FieldInfo]:
        """All fields, inputs first, as pydantic's ``FieldInfo``."""
        return {spec.name: spec.info for spec in cls.spec.fields}

    @property
    def input_fields(cls) -> dict[str, FieldInfo]:
        """The inputs, as pydantic's ``FieldInfo``."""
        return {spec.name: spec.info for spec in cls.spec.inputs}

    @property
    def output_fields(cls) -> dict[str, FieldInfo]:
        """The outputs, as pydantic's ``FieldInfo``."""
        return {spec.name: spec.info for spec in cls.spec.outputs}

    @property
    def signature(cls) -> str:
        """The names: ``"question, k -> answer"``."""
        return f"{_names(cls.spec.inputs)} -> {_names(cls.spec.outputs)}"

    # --- editing: each gives a new class ---

    def with_instructions(cls: M, instructions: str) -> M:
        """The same fields with other instructions."""
        return cast("M", _derive(cls, replace(cls.spec, instructions=instructions, instructions_given=True)))

    def append_instructions(cls: M, instructions: str) -> M:
        """The old instructions, a blank line, and more."""
        return cls.with_instructions(
            f"{cls.spec.instructions}\n\n{instructions}" if cls.spec.instructions else instructions
        )

    # Editing fields gives Any: no checker can follow what the new class has.

    def with_updated_fields(cls, name: str, type_: Any = None, **changes: Any) -> Any:
        """One field with another type, or with whatever else ``InputField`` and ``OutputField`` take; the rest stays.

        A constraint replaces the one of its name, and ``None`` takes it away.

        >>> b = Signature("a -> b").with_updated_fields("b", int, desc="how many", ge=0).spec.outputs[0]
        >>> b.description, b.constraints
        ('how many', 'at least 0')
        """
        old = cls._field(name)
        updated = _recompiled(old, old.info.annotation if type_ is None else type_, changes)
        return _derive(cls, _with_fields(cls.spec, [updated if spec is old else spec for spec in cls.spec.fields]))

    def prepend(cls, name: str, field: Any, type_: Any = None) -> Any:
        """A new field before the other inputs, or outputs."""
        return cls.insert(0, name, field, type_)

    def append(cls, name: str, field: Any, type_: Any = None) -> Any:
        """A new field after the other inputs, or outputs."""
        return cls.insert(-1, name, field, type_)

    def insert(cls, index: int, name: str, field: Any, type_: Any = None) -> Any:
        """A new field at ``index`` among the inputs, or outputs; negative counts from the end (-1 is after the last).

        ``field`` is an ``InputField`` or ``OutputField``; ``type_`` defaults to ``str``. A field of the same name is
        replaced. Raises ``SignatureError`` for an index out of range.

        >>> Signature("a, b -> c").insert(1, "x", InputField()).signature
        'a, x, b -> c'
        """
        new = _compile(name, field, str if type_ is None else type_)
        others = [spec for spec in cls.spec.fields if spec.name != name]
        sides = {"input": list(_side(others, "input")), "output": list(_side(others, "output"))}
        side = sides[new.direction]
        at = index if index >= 0 else len(side) + index + 1
        if not 0 <= at <= len(side):
            raise SignatureError(
                f"{cls.__name__}: there is no place {index} among {len(side)} {new.direction}s for {name!r}. "
                f"Use {-len(side) - 1} to {len(side)}."
            )
        side.insert(at, new)
        return _derive(cls, _with_fields(cls.spec, [*sides["input"], *sides["output"]]))

    def delete(cls, name: str) -> Any:
        """The signature without a field; a name it does not have changes nothing."""
        return _derive(cls, _with_fields(cls.spec, [spec for spec in cls.spec.fields if spec.name != name]))

    # --- comparing and state ---

    def equals(cls, other: Any) -> bool:
        """Whether both say the same: instructions, names, order, types, constraints, descriptions and defaults."""
        if not isinstance(other, SignatureMeta):
            return False
        mine, theirs = cls.spec, other.spec
        return mine.instructions == theirs.instructions and mine.fields == theirs.fields

    def dump_state(cls) -> dict[str, Any]:
        """What optimizers change, as JSON: instructions, and description and prefix of each field by name."""
        fields = [
            {"name": spec.name, "prefix": spec.prefix, "description": _desc(spec.info)} for spec in cls.spec.fields
        ]
        return {"instructions": cls.spec.instructions, "fields": fields}

    def load_state(cls: M, state: Mapping[str, Any]) -> M:
        """A signature with the instructions and texts that ``dump_state`` wrote. Fields are matched by name.

        Raises ``StateError`` when they do not fit.
        """
        saved = _by_name(cls.spec, _field_texts(cls.spec, state.get("fields", [])))
        fields = [_restored(spec, saved[spec.name]) if spec.name in saved else spec for spec in cls.spec.fields]
        instructions = state.get("instructions", cls.spec.instructions)
        if not isinstance(instructions, str):
            raise _no_texts(cls.spec, f"instructions are {type(instructions).__name__}")
        spec = replace(_with_fields(cls.spec, fields), instructions=instructions, instructions_given=True)
        return cast("M", _derive(cls, spec))

    def _field(cls, name: str) -> FieldSpec:
        try:
            return cls.spec.by_name[name]
        except KeyError:
            raise SignatureError(f"{cls.__name__} has no field {name!r}; it has {_names(cls.spec.fields)}.") from None

    def __repr__(cls) -> str:
        if not cls.spec.fields:
            return super().__repr__()
        fields = "".join(f"\n    {_line(spec)}" for spec in cls.spec.fields)
        return f"{cls.__name__}({cls.signature}\n    instructions={cls.spec.instructions!r}{fields}\n)"


if TYPE_CHECKING:
    S = TypeVar("S")

    class _Retold:
        """New instructions, for a class and for what checkers take for an instance of one."""

        @overload
        def __get__(self, instance: None, owner: type[S], /) -> Callable[[str], type[S]]: ...
        @overload
        def __get__(self, instance: S, owner: type[S], /) -> Callable[[str], S]: ...
        def __get__(self, instance: Any, owner: Any, /) -> Any: ...

    class _Base(Record):
        """The methods of signature classes, on instances: checkers take ``Signature("a -> b")``, a class, for one."""

        with_instructions = _Retold()
        append_instructions = _Retold()
        append: Any
        delete: Any
        dump_state: Any
        fields: Any
        input_fields: Any
        insert: Any
        instructions: Any
        load_state: Any
        output_fields: Any
        prepend: Any
        signature: Any
        spec: Any
        with_updated_fields: Any

        @classmethod
        def equals(cls, other: Any) -> bool: ...
else:
    _Base = Record


class Signature(_Base, metaclass=SignatureMeta):
    """A task: typed inputs, typed outputs, and instructions.

    As a class, the docstring is the instructions:

    >>> class Rate(Signature):
    ...     '''Rate the review.'''
    ...     review: str = InputField()
    ...     stars: int = OutputField(ge=1, le=5)
    >>> Rate.instructions, Rate.spec.field("stars").constraints
    ('Rate the review.', 'at least 1, at most 5')

    As a string, ``Signature(text, instructions=None, *, custom_types=None, signature_name=None)``; a type that is
    missing is ``str``, and names are looked up in ``custom_types``, then among known types, then where the call stands.
    A dict of ``{name: InputField() or (type, InputField())}`` works too. The result is a class:

    >>> Signature("question, k: int -> answers: list[str]").signature
    'question, k -> answers'

    Raises ``SignatureError`` (a ``ValueError``) when text, types or roles contradict each other.
    """

    __slots__ = ()
    if TYPE_CHECKING:

        def __init__(
            self,
            text: str | Mapping[str, Any] = "",
            instructions: str | None = None,
            *,
            custom_types: Mapping[str, Any] | None = None,
            signature_name: str | None = None,
            **kwargs: Any,
        ) -> None: ...
    else:

        def __init__(self, **fields: Any) -> None:
            known = type(self).spec.by_name
            if unknown := next((name for name in fields if name not in known), None):
                raise InputError(f"{type(self).__name__} has no field {unknown!r}; it has {', '.join(known)}.")
            super().__init__(**fields)


# --- making ---------------------------------------------------------------------------------------


def make_signature(
    signature: Any,
    instructions: str | None = None,
    signature_name: str | None = None,
    custom_types: Mapping[str, Any] | None = None,
    *,
    scope: Mapping[str, Any] | None = None,
) -> Any:
    """A signature class from text or from a dict of fields.

    ``scope`` holds the names the text may use beside ``custom_types`` and the known types; by default what the direct
    caller sees. Raises ``SignatureError``.

    >>> make_signature({"text": InputField(), "words": (int, OutputField())}, "Count.").signature
    'text -> words'
    """
    name = signature_name or "StringSignature"
    if isinstance(signature, str):
        names = TypeScope(custom_types, caller_scope() if scope is None else scope)
        inputs, outputs = parse_signature(signature, names)
        fields = [compile_bare(key, kind, "input") for key, kind in inputs]
        fields += [compile_bare(key, kind, "output") for key, kind in outputs]
    elif (declared := as_mapping(signature)) is not None:
        fields = [_compile(key, *_info_and_type(value)) for key, value in declared.items()]
    else:
        raise SignatureError(
            f"A signature is made of text or of a dict of fields, not {type(signature).__name__}. "
            'Write Signature("question -> answer").'
        )
    spec = _spec(name, fields, instructions)
    return SignatureMeta(
        name, (Signature,), {"__doc__": spec.instructions, "__module__": __name__, "__slots__": ()}, spec=spec
    )


def ensure_signature(
    signature: Any,
    instructions: str | None = None,
    *,
    custom_types: Mapping[str, Any] | None = None,
    scope: Mapping[str, Any] | None = None,
) -> Any:
    """The signature class that a module's argument stands for: a class as it is, text and dicts made into one.

    ``scope`` is for modules, whose own caller wrote the text: they pass ``caller_scope()``.
    """
    if isinstance(signature, SignatureMeta):
        return signature if instructions is None else signature.with_instructions(instructions)
    scope = caller_scope() if scope is None else scope
    return make_signature(signature, instructions, custom_types=custom_types, scope=scope)


def _spec(name: str, fields: Iterable[FieldSpec], instructions: str | None) -> SignatureSpec:
    fields = tuple(fields)
    check_roles(name, fields)
    ordered = (*_side(fields, "input"), *_side(fields, "output"))
    text = _default_instructions(ordered) if instructions is None else instructions
    return SignatureSpec(name, text, ordered, instructions is not None)


def _side(fields: Iterable[FieldSpec], direction: str) -> tuple[FieldSpec, ...]:
    return tuple(spec for spec in fields if spec.direction == direction)


def _default_instructions(fields: Iterable[FieldSpec]) -> str:
    """Instructions for a task that has none. Tools and history go their own way to the model and are not named."""
    shown = [spec for spec in fields if spec.role not in ("tools", "tool_calls", "history")]
    inputs, outputs = (", ".join(f"`{spec.name}`" for spec in _side(shown, side)) for side in ("input", "output"))
    calls = any(spec.role == "tool_calls" for spec in fields)
    use = f"Use {inputs} to " if inputs else ""
    if not outputs:
        return _capital(f"{use}decide which tools to call.") if calls else f"Read {inputs}." if inputs else ""
    return _capital(f"{use}write {outputs}{', calling tools where they help' if calls else ''}.")


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _with_fields(spec: SignatureSpec, fields: Iterable[FieldSpec]) -> SignatureSpec:
    return _spec(spec.name, fields, spec.instructions if spec.instructions_given else None)


def _derive(cls: Any, spec: SignatureSpec) -> Any:
    """A new class with another spec. It stands on the class that was written down, however many edits ago that was."""
    origin = cls.__dict__.get(_DECLARED, cls)
    namespace = {
        "__doc__": spec.instructions,
        "__module__": cls.__module__,
        "__qualname__": cls.__qualname__,
        "__slots__": (),
        _DECLARED: origin,
    }
    return type(cls)(cls.__name__, (origin,), namespace, spec=spec)


def _info_and_type(value: Any) -> tuple[Any, Any]:
    if (pair := as_items(value)) is not None and len(pair) == 2:
        return pair[1], pair[0]
    annotation = getattr(value, "annotation", None)
    return value, str if annotation is None else annotation


def _compile(name: str, field: Any, annotation: Any) -> FieldSpec:
    _check_name(name)
    if direction_of(field) is None:
        raise FieldDefinitionError(f"Field {name!r} is made by InputField() or OutputField(), not {field!r:.80}.")
    return compile_field(name, annotation, field)


def _check_name(name: object) -> None:
    if not isinstance(name, str) or not name.isidentifier() or name.startswith("_"):
        raise FieldDefinitionError(f"{name!r} cannot name a field: names are identifiers without a leading underscore.")


def _recompiled(old: FieldSpec, annotation: Any, changes: Mapping[str, Any]) -> FieldSpec:
    """The field with another type or other metadata; everything else of its declaration stays."""
    declared = redeclare(old.info, changes)
    if annotation is not old.info.annotation:
        declared.annotation = None
    return compile_field(old.name, annotation, declared)


# --- the class form -------------------------------------------------------------------------------


def _inherited(bases: tuple[type, ...], own: list[FieldSpec]) -> list[FieldSpec]:
    """Fields of the bases, then our own; a field that is declared again keeps its place."""
    fields: dict[str, FieldSpec] = {}
    for base in reversed(bases):
        if isinstance(base, SignatureMeta):
            fields |= base.spec.by_name
    return list((fields | {spec.name: spec for spec in own}).values())


_PLAIN_ATTRIBUTES = (types.FunctionType, staticmethod, classmethod, property, type)


def _refuse_strays(cls: type, rest: Mapping[str, Any], declared: Mapping[str, Any]) -> None:
    """A signature's public attributes are fields, methods and class variables; anything else is a slip."""
    for name in declared:
        _check_name(name)
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


def _is_class_variable(annotation: Any) -> bool:
    if isinstance(annotation, str):
        return bool(re.match(r"(\w+\.)?ClassVar\b", annotation))
    return annotation is ClassVar or typing.get_origin(annotation) is ClassVar


def _annotations(
    cls: type, declared: Mapping[str, Any], rest: Mapping[str, Any], frame: types.FrameType
) -> dict[str, Any]:
    """The fields' types. Text (``from __future__ import annotations``) is resolved where the class statement stands."""
    module = sys.modules.get(cls.__module__)

    def holder() -> None: ...

    try:
        holder.__annotations__ = _written_types(cls, declared, frame)
        return typing.get_type_hints(
            holder,
            {**vars(module), **frame.f_globals} if module else frame.f_globals,
            {**frame.f_locals, **rest},
            include_extras=True,
        )
    except NameError as fault:
        raise SignatureError(
            f"{cls.__name__}: the type name {fault.name!r} is not known here. "
            "Define or import it before the signature, outside of TYPE_CHECKING."
        ) from fault
    except (SyntaxError, TypeError) as fault:
        raise FieldDefinitionError(f"{cls.__name__}: an annotation is not a type: {fault}.") from fault


def _written_types(cls: type, declared: Mapping[str, Any], frame: types.FrameType) -> dict[str, Any]:
    """The annotations as they stand. In ``date: date = InputField()`` Python assigns first, so the name is the field's."""
    scope = scope_of(frame)
    written = {name: kind for name, kind in inspect.get_annotations(cls).items() if name in declared}
    return {name: kind if direction_of(kind) is None else scope.get(name, str) for name, kind in written.items()}


def _instructions(cls: type, rest: Mapping[str, Any], frame: types.FrameType) -> str | None:
    """The docstring; without one the parent's instructions, unless those were made up; then ``None``."""
    own = rest.get("__doc__")
    if own is not None:
        return inspect.cleandoc(own)
    if _has_lost_docstring(cls.__name__, frame):
        warnings.warn(
            f"{cls.__name__} begins with an f-string, which Python does not keep as a docstring, so it has no "
            "instructions. Use a plain string, or with_instructions(f'...').",
            stacklevel=3,
        )
    parents = (base.spec for base in cls.__mro__[1:] if isinstance(base, SignatureMeta))
    return next((spec.instructions for spec in parents if spec.instructions_given), None)


_F_STRING = re.compile(r"""\b(?:f|rf|fr)['"]""", re.IGNORECASE)


def _has_lost_docstring(name: str, frame: types.FrameType) -> bool:
    """Whether the class body starts with an f-string. Parses the source only where one stands near."""
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


# --- state ----------------------------------------------------------------------------------------


def _desc(info: FieldInfo) -> str:
    return str(cast("dict[str, Any]", info.json_schema_extra)["desc"])


def _field_texts(spec: SignatureSpec, saved: Any) -> list[Mapping[str, Any]]:
    """The saved fields, if that is what they are: a file may hold anything."""
    fields: list[Any] = saved if issubclass(type(saved), list) else [saved]
    for field in fields:
        if not issubclass(type(field), Mapping):
            raise _no_texts(spec, f"fields hold {type(field).__name__}")
        if odd := [value for value in field.values() if not isinstance(value, str)]:
            raise _no_texts(spec, f"field texts hold {type(odd[0]).__name__}")
    return fields


def _no_texts(spec: SignatureSpec, found: str) -> StateError:
    return StateError(
        f"The saved signature's {found} (loading {spec.name}); instructions are a text and fields a list of objects with "
        "texts. Save it again with dump_state()."
    )


def _by_name(spec: SignatureSpec, saved: list[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    if not all("name" in field for field in saved):
        raise StateError(
            f"The saved signature has fields without names (loading {spec.name}), as files of DSPy have. Load it into a "
            "program of sigwire.dspy."
        )
    found = {str(field["name"]): field for field in saved}
    if unknown := [name for name in found if name not in spec.by_name]:
        raise StateError(
            f"The saved signature has a field {unknown[0]!r}, and {spec.name} has {_names(spec.fields)}. "
            "Load it into the program that saved it."
        )
    return found


def _restored(spec: FieldSpec, saved: Mapping[str, Any]) -> FieldSpec:
    texts = {"desc": saved.get("description", _desc(spec.info)), "prefix": saved.get("prefix", spec.prefix)}
    if texts == {"desc": _desc(spec.info), "prefix": spec.prefix}:
        return spec
    return _recompiled(spec, spec.info.annotation, texts)


def _names(fields: Iterable[FieldSpec]) -> str:
    return ", ".join(spec.name for spec in fields)


def _line(spec: FieldSpec) -> str:
    kind = spec.annotation.__name__ if isinstance(spec.annotation, type) else str(spec.annotation)
    facts = "; ".join(fact for fact in (spec.description, spec.constraints) if fact)
    return f"{spec.name}: {kind} ({spec.direction}){f': {facts}' if facts else ''}"
