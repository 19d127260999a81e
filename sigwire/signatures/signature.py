"""Signature: a task as typed inputs and outputs, declared as a class or as a string.

A signature is a class, not a pydantic model. Its metaclass compiles the fields once into ``spec`` (``fields``); adapters
read only the spec. Every edit makes a new class. Instances are plain records; to type checkers, ``Predict`` returns one.

Names are resolved in one frame: the scope of the ``class`` statement, or the direct caller of ``Signature("...")``. Type
checkers see ``dataclass_transform``: inputs are constructor keywords, outputs are attributes.
"""

from __future__ import annotations

import copyreg
import inspect
import types
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast, dataclass_transform, overload

from sigwire.core.json import JsonObject
from sigwire.core.narrow import is_items, is_mapping
from sigwire.core.record import FieldValue, FieldValues, Record
from sigwire.core.typed_dict import TypeExpression
from sigwire.errors import FieldDefinitionError, InputError, SignatureError, suggest, warn_user
from sigwire.keywords import check_keywords
from sigwire.show.card import HasCard
from sigwire.signatures.class_body import check_attributes, check_name, resolve_annotations, starts_with_f_string
from sigwire.signatures.declarations import InputField, OutputField, direction_of
from sigwire.signatures.fields import (
    FieldSpec,
    SignatureSpec,
    compile_bare,
    compile_field,
    fields_of,
    list_names,
    make_spec,
    recompile,
    replace_fields,
)
from sigwire.signatures.parser import Names, TypeScope, caller_frame, caller_scope, parse_signature
from sigwire.signatures.state import dump_texts, load_texts

if TYPE_CHECKING:
    from pydantic.fields import FieldInfo

    from sigwire.core.evidence import Evidence
    from sigwire.core.example import Prediction

__all__ = ["DECLARED", "Signature", "SignatureMeta", "ensure_signature", "make_signature"]

M = TypeVar("M", bound="SignatureMeta")
SignatureClass: TypeAlias = Any
"""A signature class that was made or edited at run time. No type checker can follow its fields."""
SignatureLike: TypeAlias = "str | FieldValues | SignatureMeta | type[Signature]"

_SPEC, DECLARED = "__sigwire_spec__", "__sigwire_declared__"


@dataclass_transform(kw_only_default=True, field_specifiers=(InputField, OutputField))
class SignatureMeta(HasCard, type):
    """The methods of signature classes. Instances do not have them, so a field may have the name of a method."""

    _shown_by = "sigwire.signatures.cards.signatures:signature"
    __rich_console__: Any = None  # rich refuses classes; it prints their ``repr``

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
        annotations = resolve_annotations(cls, declared, rest, frame)
        check_attributes(cls, rest, declared)
        own = [compile_field(key, annotations.get(key, str), value) for key, value in declared.items()]
        type.__setattr__(cls, _SPEC, make_spec(name, _inherit_fields(bases, own), _instructions(cls, rest, frame)))
        return cls

    def __init__(cls, *args: Any, **kwargs: Any) -> None:
        type.__init__(cls, *args)

    if not TYPE_CHECKING:  # to type checkers, a call of a signature class calls its synthesized __init__

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            if cls is Signature:
                check_keywords("Signature", make_signature, kwargs)
                kwargs.setdefault("scope", caller_scope())
                return make_signature(*args, **kwargs)
            return super().__call__(*args, **kwargs)

    @property
    def spec(cls) -> SignatureSpec:
        """The compiled signature, which adapters read."""
        spec: SignatureSpec = cls.__dict__[_SPEC]
        return spec

    @property
    def instructions(cls) -> str:
        """The task for the model. Assigning changes this class; ``with_instructions`` makes a new class."""
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
        return f"{list_names(cls.spec.inputs)} -> {list_names(cls.spec.outputs)}"

    def with_instructions(cls: M, instructions: str) -> M:
        """Return the signature with other instructions."""
        return cast("M", _derive(cls, replace(cls.spec, instructions=instructions, instructions_given=True)))

    def append_instructions(cls: M, instructions: str) -> M:
        """Return the signature with more instructions, after a blank line."""
        return cls.with_instructions(
            f"{cls.spec.instructions}\n\n{instructions}" if cls.spec.instructions else instructions
        )

    def with_updated_fields(cls, name: str, type_: TypeExpression = None, **changes: FieldValue) -> SignatureClass:
        """Return the signature with one field changed: its type, or keywords of ``InputField`` and ``OutputField``.

        A constraint replaces the constraint of its name; ``None`` removes it.

        >>> b = Signature("a -> b").with_updated_fields("b", int, desc="how many", ge=0).spec.outputs[0]
        >>> b.description, b.constraints
        ('how many', 'at least 0')
        """
        old = cls._field(name)
        updated = recompile(old, old.info.annotation if type_ is None else type_, changes)
        return _derive(cls, replace_fields(cls.spec, [updated if spec is old else spec for spec in cls.spec.fields]))

    def prepend(cls, name: str, field: FieldValue, type_: TypeExpression = None) -> SignatureClass:
        """Return the signature with a new first input or output."""
        return cls.insert(0, name, field, type_)

    def append(cls, name: str, field: FieldValue, type_: TypeExpression = None) -> SignatureClass:
        """Return the signature with a new last input or output."""
        return cls.insert(-1, name, field, type_)

    def insert(cls, index: int, name: str, field: FieldValue, type_: TypeExpression = None) -> SignatureClass:
        """Return the signature with a new input or output at ``index``; -1 is after the last.

        ``field`` is an ``InputField`` or ``OutputField``; ``type_`` defaults to ``str``. A field of the same name is
        replaced. Raises ``SignatureError`` for an index out of range.

        >>> Signature("a, b -> c").insert(1, "x", InputField()).signature
        'a, x, b -> c'
        """
        new = _compile(name, field, str if type_ is None else type_)
        others = [spec for spec in cls.spec.fields if spec.name != name]
        sides = {"input": list(fields_of(others, "input")), "output": list(fields_of(others, "output"))}
        side = sides[new.direction]
        at = index if index >= 0 else len(side) + index + 1
        if not 0 <= at <= len(side):
            raise SignatureError(
                f"{cls.__name__}: index {index} is out of range for {len(side)} {new.direction}s (inserting {name!r}). "
                f"Use {-len(side) - 1} to {len(side)}."
            )
        side.insert(at, new)
        return _derive(cls, replace_fields(cls.spec, [*sides["input"], *sides["output"]]))

    def delete(cls, name: str) -> SignatureClass:
        """Return the signature without a field. An unknown name changes nothing."""
        return _derive(cls, replace_fields(cls.spec, [spec for spec in cls.spec.fields if spec.name != name]))

    def equals(cls, other: object) -> bool:
        """Return True if instructions, names, order, types, constraints, descriptions and defaults are equal."""
        if not isinstance(other, SignatureMeta):
            return False
        return cls.spec.instructions == other.spec.instructions and cls.spec.fields == other.spec.fields

    def dump_state(cls) -> JsonObject:
        """Return the texts that optimizers change, as JSON: instructions, and texts of each field by name."""
        return dump_texts(cls.spec)

    def load_state(cls: M, state: FieldValues) -> M:
        """Return the signature with the texts of ``dump_state``. Fields are matched by name.

        Raises ``StateError`` if the texts do not fit.
        """
        return cast("M", _derive(cls, load_texts(cls.spec, state)))

    def typed_evidence(cls, found: Mapping[str, Evidence]) -> dict[str, Evidence]:
        """Return evidence of a file, by path, with the values of the declared types. That of other outputs is unchanged."""
        from sigwire.signatures.criteria import deciding_outputs  # few programs ask for evidence

        outputs = {output.path: output for output in deciding_outputs(cls.spec)}
        return {path: each.typed(outputs[path]) if path in outputs else each for path, each in found.items()}

    def _field(cls, name: str) -> FieldSpec:
        try:
            return cls.spec.by_name[name]
        except KeyError:
            raise SignatureError(
                f"{cls.__name__} has no field {name!r} (changing a signature). {suggest(name, cls.spec.by_name)}It has "
                f"{list_names(cls.spec.fields)}."
            ) from None


if TYPE_CHECKING:
    S = TypeVar("S")

    class _InstructionsEditor:
        """Edits the instructions of a class, or of an instance as type checkers see it."""

        @overload
        def __get__(self, instance: None, owner: type[S], /) -> Callable[[str], type[S]]: ...
        @overload
        def __get__(self, instance: S, owner: type[S], /) -> Callable[[str], S]: ...
        def __get__(self, instance: object, owner: object, /) -> object: ...

    class _SignatureBase(Prediction):
        """The methods of signature classes on instances: to type checkers, ``Signature("a -> b")`` is an instance.

        An instance is a ``Prediction`` without unknown fields: a misspelt output is an error.
        """

        __getattr__: None  # type: ignore[assignment, misc]  # pyright: ignore[reportIncompatibleMethodOverride]
        with_instructions = _InstructionsEditor()
        append_instructions = _InstructionsEditor()
        append: SignatureClass
        delete: SignatureClass
        dump_state: SignatureClass
        fields: SignatureClass
        input_fields: SignatureClass
        insert: SignatureClass
        instructions: SignatureClass
        load_state: SignatureClass
        output_fields: SignatureClass
        prepend: SignatureClass
        signature: SignatureClass
        spec: SignatureClass
        with_updated_fields: SignatureClass

        @classmethod
        def equals(cls, other: object) -> bool: ...
else:
    _SignatureBase = Record


class Signature(_SignatureBase, metaclass=SignatureMeta):
    """A task: typed inputs, typed outputs, and instructions.

    As a class, the docstring is the instructions:

    >>> class Rate(Signature):
    ...     '''Rate the review.'''
    ...     review: str = InputField()
    ...     stars: int = OutputField(ge=1, le=5)
    >>> Rate.instructions, Rate.spec.field("stars").constraints
    ('Rate the review.', 'at least 1, at most 5')

    As a string, ``Signature(text, instructions=None, *, custom_types=None, signature_name=None)``. The default type is
    ``str``; names are resolved in ``custom_types``, then known types, then the scope of the call. Instead of text, a dict
    ``{name: InputField() or (type, InputField())}``. The result is a class:

    >>> Signature("question, k: int -> answers: list[str]").signature
    'question, k -> answers'

    Raises ``SignatureError`` (a ``ValueError``) if text, types or roles contradict each other.
    """

    __slots__ = ()
    if TYPE_CHECKING:
        # Methods with the name of a likely field; without an annotation, which would declare a field.
        keys = values = items = get = copy = without = inputs = labels = make = from_completions = cast(FieldValue, ...)

        def __init__(
            self,
            text: str | FieldValues = "",
            instructions: str | None = None,
            *,
            custom_types: Names | None = None,
            signature_name: str | None = None,
            **kwargs: FieldValue,
        ) -> None: ...
    else:

        def __init__(self, **fields: Any) -> None:
            known = type(self).spec.by_name
            if unknown := next((name for name in fields if name not in known), None):
                raise InputError(
                    f"{type(self).__name__} has no field {unknown!r} (making one). {suggest(unknown, known)}It has "
                    f"{', '.join(known)}."
                )
            super().__init__(**fields)


def make_signature(
    signature: SignatureLike,
    instructions: str | None = None,
    signature_name: str | None = None,
    custom_types: Names | None = None,
    *,
    scope: Names | None = None,
) -> SignatureClass:
    """Return a signature class made of text or of a dict of fields. Raises ``SignatureError``.

    ``scope``: names for the text, besides ``custom_types`` and the known types; default: the scope of the direct caller.

    >>> make_signature({"text": InputField(), "words": (int, OutputField())}, "Count.").signature
    'text -> words'
    """
    name = signature_name or "StringSignature"
    if isinstance(signature, str):
        names = TypeScope(custom_types, caller_scope() if scope is None else scope)
        inputs, outputs = parse_signature(signature, names)
        fields = [compile_bare(key, kind, "input") for key, kind in inputs]
        fields += [compile_bare(key, kind, "output") for key, kind in outputs]
    elif is_mapping(signature):
        fields = [_compile(key, *_declaration_and_type(value)) for key, value in signature.items()]
    else:
        raise SignatureError(
            f"A signature is made of text or of a dict of fields, not {type(signature).__name__}. "
            'Write Signature("question -> answer").'
        )
    spec = make_spec(name, fields, instructions)
    return _make_class(Signature, name, __name__, name, spec)


def ensure_signature(
    signature: SignatureLike,
    instructions: str | None = None,
    *,
    custom_types: Names | None = None,
    scope: Names | None = None,
) -> SignatureClass:
    """Return the signature class of a module's argument: a class unchanged, or a class made of text or a dict.

    ``scope`` is for modules, whose caller wrote the text: they pass ``caller_scope()``.
    """
    if isinstance(signature, SignatureMeta):
        return signature if instructions is None else signature.with_instructions(instructions)
    scope = caller_scope() if scope is None else scope
    return make_signature(signature, instructions, custom_types=custom_types, scope=scope)


def _derive(cls: SignatureMeta, spec: SignatureSpec) -> SignatureClass:
    """Return a new class with another spec. Its base is the class of the source, however many edits lie between."""
    return _make_class(cls.__dict__.get(DECLARED, cls), cls.__name__, cls.__module__, cls.__qualname__, spec)


def _make_class(origin: SignatureMeta, name: str, module: str, qualname: str, spec: SignatureSpec) -> SignatureClass:
    namespace = {
        "__doc__": spec.instructions,
        "__module__": module,
        "__qualname__": qualname,
        "__slots__": (),
        DECLARED: origin,
    }
    return type(origin)(name, (origin,), namespace, spec=spec)


def _reduce_class(cls: SignatureMeta) -> str | tuple[Callable[..., SignatureClass], tuple[object, ...]]:
    """Pickle a class that was made at run time by its spec, and any other class by its name."""
    origin = cls.__dict__.get(DECLARED)
    if origin is None:
        return cls.__qualname__
    return _make_class, (origin, cls.__name__, cls.__module__, cls.__qualname__, cls.spec)


copyreg.pickle(SignatureMeta, _reduce_class)  # pyright: ignore[reportArgumentType]


def _declaration_and_type(value: object) -> tuple[Any, TypeExpression]:
    if is_items(value) and len(value) == 2:
        return value[1], value[0]
    annotation = getattr(value, "annotation", None)
    return value, str if annotation is None else annotation


def _compile(name: str, field: FieldInfo, annotation: TypeExpression) -> FieldSpec:
    check_name(name)
    if direction_of(field) is None:
        raise FieldDefinitionError(f"Field {name!r} is made by InputField() or OutputField(), not {field!r:.80}.")
    return compile_field(name, annotation, field)


def _inherit_fields(bases: tuple[type, ...], own: list[FieldSpec]) -> list[FieldSpec]:
    """Return the fields of the bases, then those of the class. A field that is declared again keeps its position."""
    fields: dict[str, FieldSpec] = {}
    for base in reversed(bases):
        if isinstance(base, SignatureMeta):
            fields |= base.spec.by_name
    return list((fields | {spec.name: spec for spec in own}).values())


def _instructions(cls: type, rest: FieldValues, frame: types.FrameType) -> str | None:
    """Return the docstring, else the given instructions of a base class, else ``None``."""
    if isinstance(docstring := rest.get("__doc__"), str):
        return inspect.cleandoc(docstring)
    if starts_with_f_string(cls.__name__, frame):
        warn_user(
            f"{cls.__name__} starts with an f-string, which Python does not keep as a docstring, so the signature has no "
            "instructions. Use a plain string, or with_instructions(f'...')."
        )
    parents = (base.spec for base in cls.__mro__[1:] if isinstance(base, SignatureMeta))
    return next((spec.instructions for spec in parents if spec.instructions_given), None)
