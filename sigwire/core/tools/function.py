"""The arguments of a Python function as a tool: their JSON Schema for the model, their validation for the call.

pydantic makes the schema of type hints and defaults; the docstring has the descriptions.

    def f(a, /, b: int, *rest: int, c: str = "x", **more: float)

    a, b, c   properties; required if without a default       rest   an optional array property, spread on the call
    more      additionalProperties of that type; without it unknown names are refused

Parameters that ``functools.partial`` binds by name are not offered. A property name that Python forbids is an alias of its
parameter: ``from_: Annotated[str, Field(alias="from")]``.

The function is inspected when the tool is made (``FunctionParameter``). pydantic compiles its validation on first use. The
schema is made at once if a type is not plain, so that a type without a schema raises where the tool is defined.
"""

from __future__ import annotations

import json
import types
import typing
from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import Parameter
from typing import Annotated, Any, NamedTuple, Protocol, Self, TypeAlias, cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.record import FieldValues
from sigwire.core.schema import inline_refs, schema_of, untitled_generator
from sigwire.core.tools.docstring import ParsedDocstring, read_docstring
from sigwire.core.tools.injected import Injection, injection_of
from sigwire.core.tools.inspection import (
    UserFunction,
    bound_parameters,
    check_bound,
    function_docstring,
    function_name,
    inspect_signature,
    is_unpacked,
    type_hints,
)
from sigwire.core.tools.properties import annotated_metadata, drop_repeated, properties_of
from sigwire.core.tools.validation import Validate, describe_argument_errors, refuse_booleans
from sigwire.core.typed_dict import TypeExpression, to_typing_extensions, typed_dict_members
from sigwire.errors import InputError, ToolDefinitionError

__all__ = ["Arguments", "BoundArguments", "FunctionArguments", "FunctionParameter"]


class BoundArguments(NamedTuple):
    """Validated arguments: call ``function(*bound.args, **bound.kwargs)``."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Arguments(Protocol):
    """The arguments of a tool: described for the model, validated for the call."""

    def schema(self) -> JsonObject:
        """Return the JSON Schema of the arguments, an object."""
        ...

    def types(self) -> Types:
        """Return the known Python types by argument."""
        ...

    def bind(self, arguments: FieldValues) -> BoundArguments:
        """Validate arguments. Raises ``InputError`` with a text that a model can act on."""
        ...


class FunctionParameter(NamedTuple):
    """One parameter of a function: the property that a tool offers, its type and its default."""

    name: str
    offered_as: str
    hint: TypeExpression
    default: Any
    description: str | None
    kind: Any

    @property
    def required(self) -> bool:
        """Whether the model must pass the argument."""
        return self.default is Parameter.empty and self.kind is not Parameter.VAR_POSITIONAL


Types: TypeAlias = Mapping[str, TypeExpression]

_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL)


class FunctionArguments:
    """The arguments of a function: ``text`` is its docstring, ``schema`` is for the model, ``bind`` for the call.

    ``types`` and ``descriptions`` override hints and docstring, ``name`` and ``text`` its name and docstring. Raises
    ``ToolDefinitionError`` with the parameter that has no JSON Schema.

    >>> def area(width: float, height: float = 1.0) -> float:
    ...     return width * height
    >>> arguments = FunctionArguments(area)
    >>> arguments.schema()["required"], arguments.bind({"width": "2"}).kwargs
    (['width'], {'width': 2.0})
    """

    __slots__ = (
        "_adapter",
        "_arguments",
        "_by_position",
        "_extra",
        "_name",
        "_schema",
        "_starred",
        "_validate",
        "injected",
        "text",
    )

    def __init__(
        self,
        function: UserFunction,
        types: Types | None = None,
        descriptions: Mapping[str, str] | None = None,
        *,
        name: str | None = None,
        text: ParsedDocstring | None = None,
    ) -> None:
        name = name or function_name(function)
        text = text or read_docstring(function_docstring(function))
        described = {**text.parameters, **(descriptions or {})}
        injected: list[Injection] = []
        self._keep(name, text, list(_read_parameters(function, name, types or {}, described, injected)), injected)
        self._check_names(types or {}, descriptions or {})

    @classmethod
    def of_parameters(cls, name: str, text: ParsedDocstring, parameters: Sequence[FunctionParameter]) -> Self:
        """Return the arguments of parameters that no function declares. ``name`` is for errors."""
        made = cls.__new__(cls)
        made._keep(name, text, parameters)
        return made

    def _keep(
        self,
        name: str,
        text: ParsedDocstring,
        read: Sequence[FunctionParameter],
        injected: Iterable[Injection] = (),
    ) -> None:
        self._name, self.text = name, text
        self.injected: Mapping[str, Injection] = {each.name: each for each in injected}
        self._arguments = {argument.name: argument for argument in read if argument.kind is not Parameter.VAR_KEYWORD}
        self._extra = next((argument for argument in read if argument.kind is Parameter.VAR_KEYWORD), None)
        self._starred = next((argument.name for argument in read if argument.kind is Parameter.VAR_POSITIONAL), None)
        self._by_position = any(argument.kind in _BY_POSITION for argument in read)
        self._adapter: Any = None
        self._schema: JsonObject | None = None
        self._validate: Validate | None = None
        if not all(_is_plain(argument.hint) for argument in read):
            self._check_types()

    @property
    def is_open(self) -> bool:
        """Whether every name is an argument, and none is declared."""
        return self._extra is not None and not self._arguments.keys() - {self._starred}

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        # Made again on first use: pydantic validators cannot be pickled.
        return None, {name: getattr(self, name) for name in self.__slots__} | {"_adapter": None, "_validate": None}

    def _check_names(self, types: Types, descriptions: Mapping[str, str]) -> None:
        unknown = sorted((types.keys() | descriptions.keys()) - self._arguments.keys())
        if unknown and self._extra is None:
            raise ToolDefinitionError(
                f"The tool {self._name!r} has no parameter {unknown[0]!r} to describe. "
                f"Its parameters are: {', '.join(self._arguments) or 'none'}."
            )

    def _check_types(self) -> None:
        """Raise for types without a schema. Classes that refer to an undefined class are checked on first use."""
        try:
            self.schema()
        except ToolDefinitionError as error:
            if not _is_undefined_class(error.__cause__):
                raise
            self._adapter = None

    def types(self) -> Types:
        """Return the Python type by parameter."""
        return {name: _strip_metadata(argument.hint) for name, argument in self._arguments.items()}

    def schema(self) -> JsonObject:
        """Return the JSON Schema of the arguments, an object."""
        if self._schema is None:
            try:
                self._schema = self._make_schema()
            except Exception as error:
                raise self._schema_error(error) from error
        return self._schema

    def _make_schema(self) -> JsonObject:
        schema: JsonObject = {"type": "object"}
        properties: dict[str, Any] | None = properties_of([*self._arguments.values()])
        made: JsonObject = {}
        if properties is None:
            made = self._compiled().json_schema(schema_generator=untitled_generator())
            properties = cast("dict[str, Any]", made.get("properties", {}))
            required = cast("list[JsonValue]", made.get("required", []))  # not one with a default inside of Annotated
            for argument in self._arguments.values():
                drop_repeated(argument.description, properties[argument.offered_as])
        else:
            required = [argument.offered_as for argument in self._arguments.values() if argument.required]
        schema["properties"] = properties
        for argument in self._arguments.values():
            _add_metadata(properties[argument.offered_as], argument)
        if required:
            schema["required"] = [*required]
        if "$defs" in made:
            schema["$defs"] = made["$defs"]
        return self._with_extra_schema(inline_refs(schema))

    def _with_extra_schema(self, schema: JsonObject) -> JsonObject:
        if self._extra is None:
            return schema
        more = schema_of(self._extra.hint)
        definitions = {**cast("JsonObject", more.pop("$defs", {})), **cast("JsonObject", schema.get("$defs", {}))}
        described: JsonObject = {"description": self._extra.description} if self._extra.description else {}
        schema["additionalProperties"] = {**more, **described} or True
        return {**schema, "$defs": definitions} if definitions else schema

    def bind(self, arguments: FieldValues) -> BoundArguments:
        """Validate and convert arguments. Raises ``InputError`` with a text that a model can act on."""
        if self.injected and (hidden := sorted(arguments.keys() & self.injected.keys())):  # ``**more`` would take them
            raise InputError("; ".join(f"{name}: there is no such argument" for name in hidden))
        validate = self._validate or self._compile_validate()
        try:
            values = validate(arguments)
        except ValueError as error:  # pydantic's ValidationError is one
            names = [argument.offered_as for argument in self._arguments.values()]
            raise InputError(describe_argument_errors(error, names)) from error
        return self._spread(values) if self._by_position else BoundArguments((), values)

    def _spread(self, values: dict[str, Any]) -> BoundArguments:
        """Pass positional-only and starred parameters by position, and those before a starred one."""
        args: list[object] = []
        starred = bool(self._starred and values.get(self._starred))
        for name, argument in self._arguments.items():
            if argument.kind is Parameter.VAR_POSITIONAL:
                args += values.pop(name, ())
            elif argument.kind is Parameter.POSITIONAL_ONLY or (
                starred and argument.kind is Parameter.POSITIONAL_OR_KEYWORD
            ):
                args.append(values.pop(name, argument.default))
        return BoundArguments(tuple(args), values)

    def _compiled(self) -> Any:
        if self._adapter is None:
            from typing import NotRequired

            from pydantic import TypeAdapter
            from typing_extensions import TypedDict

            # A TypedDict allows any name, refuses unknown names and returns only given values: Python applies the defaults.
            hints = {
                name: argument.hint if argument.required else NotRequired[argument.hint]
                for name, argument in self._arguments.items()
            }
            record = cast(Any, TypedDict)("Arguments", hints)
            record.__pydantic_config__ = {"extra": "forbid"}
            self._adapter = TypeAdapter(record)
        return self._adapter

    def _compile_validate(self) -> Validate:
        try:
            validate = refuse_booleans(self._compiled().validator)
        except Exception as error:
            raise self._schema_error(error) from error
        if self._extra is not None:
            validate = self._with_extra_validation(validate, self._extra.hint)
        self._validate = validate
        return validate

    def _with_extra_validation(self, validate: Validate, hint: TypeExpression) -> Validate:
        """Validate declared arguments by their types, and others by the hint of ``**more: hint``."""
        from pydantic import TypeAdapter

        keywords: Any = types.GenericAlias(dict, (str, hint))
        validate_more = refuse_booleans(TypeAdapter(keywords).validator)
        declared = self._arguments.keys() | {argument.offered_as for argument in self._arguments.values()}

        def validate_all(arguments: FieldValues) -> dict[str, Any]:
            known = {name: value for name, value in arguments.items() if name in declared}
            more = {name: value for name, value in arguments.items() if name not in declared}
            return {**validate(known), **validate_more(more)}

        return validate_all

    def _schema_error(self, error: Exception) -> ToolDefinitionError:
        if _is_undefined_class(error):
            return ToolDefinitionError(
                f"The tool {self._name!r} cannot be used yet: one of its types refers to an undefined class ({error}). "
                "Define that class before the first use of the tool."
            )
        for argument in (*self._arguments.values(), *((self._extra,) if self._extra else ())):
            if not _has_schema(argument.hint):
                return ToolDefinitionError(
                    f"The tool {self._name!r} cannot be offered: its parameter {argument.name!r} has the type "
                    f"{_type_name(argument.hint)}, which has no JSON form. Use a type such as str, int, list or a "
                    f"pydantic model, or bind it beforehand: Tool(functools.partial(..., {argument.name}=...))."
                )
        return ToolDefinitionError(f"The tool {self._name!r} cannot be offered: {error}")


def _add_metadata(schema: dict[str, Any], argument: FunctionParameter) -> None:
    """Add the description and default of a parameter to its property."""
    if argument.description:
        schema["description"] = argument.description
    if argument.default is Parameter.empty or _is_pydantic_field(argument.default):
        return
    from pydantic_core import to_jsonable_python

    try:
        default = to_jsonable_python(argument.default)
        if isinstance(default, float | list | dict):
            json.dumps(default, allow_nan=False)
    except Exception:  # a default without JSON form (a sentinel object, infinity) is not described
        schema.pop("default", None)
    else:
        schema["default"] = default


def _has_schema(hint: TypeExpression) -> bool:
    from pydantic import TypeAdapter

    try:
        TypeAdapter(hint).json_schema()
    except Exception:
        return False
    return True


def _is_undefined_class(error: BaseException | None) -> bool:
    """Return True if pydantic refused a reference to an undefined class."""
    return error is not None and getattr(error, "code", None) in ("class-not-fully-defined", "undefined-annotation")


def _strip_metadata(hint: object) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint


def _type_name(hint: object) -> str:
    hint = _strip_metadata(hint)
    return getattr(hint, "__qualname__", None) or str(hint)


def _read_parameters(
    function: UserFunction, name: str, types: Types, descriptions: Mapping[str, str], injected: list[Injection]
) -> Iterator[FunctionParameter]:
    """Yield the parameters that a model passes; add the others to ``injected``."""
    parameters = inspect_signature(function, name).parameters
    check_bound(function, name, parameters)
    bound = bound_parameters(function)
    is_starred = any(each.kind is Parameter.VAR_POSITIONAL for each in parameters.values())
    hints = {**type_hints(function, name, bound | types.keys()), **types}
    for parameter in parameters.values():
        if parameter.name in bound:
            continue
        hint = hints.get(parameter.name, Any if isinstance(parameter.annotation, str) else parameter.annotation)
        if (found := injection_of(f"the tool {name!r}", parameter, hint, is_starred=is_starred)) is not None:
            injected.append(found)
        elif parameter.kind is Parameter.VAR_KEYWORD and is_unpacked(hint):
            yield from _unpacked_parameters(typing.get_args(hint)[0], descriptions)
        else:
            hint = Any if hint is Parameter.empty else to_typing_extensions(hint)
            yield _parameter(parameter, hint, descriptions.get(parameter.name))


def _parameter(parameter: Parameter, hint: TypeExpression, description: str | None) -> FunctionParameter:
    default = parameter.default
    if _is_pydantic_field(default):
        hint = Annotated[hint, default]
        default = Parameter.empty if default.is_required() else default
    elif default is None and not _admits_none(hint):
        hint = typing.Optional[hint]  # noqa: UP045  # works for every form a hint can have
    offered_as, described = _read_metadata(hint, parameter.name)
    if parameter.kind is Parameter.VAR_POSITIONAL:
        hint = list[hint]
    return FunctionParameter(parameter.name, offered_as, hint, default, described or description, parameter.kind)


def _is_pydantic_field(default: Any) -> bool:
    """Return True if a default is ``pydantic.Field(...)``, whose options pydantic applies."""
    return type(default).__name__ == "FieldInfo" and hasattr(default, "is_required")


def _read_metadata(hint: TypeExpression, name: str) -> tuple[str, str | None]:
    """Return the name and description of a property from ``Annotated``: a string, ``Doc`` or ``Field``."""
    description: str | None = None
    for data in annotated_metadata(hint):
        alias = getattr(data, "validation_alias", None)
        name = alias if isinstance(alias, str) else name
        described = getattr(data, "description", None) or getattr(data, "documentation", None)
        text = data if isinstance(data, str) else described
        description = text if isinstance(text, str) else description
    return name, description


def _admits_none(hint: object) -> bool:
    return _strip_metadata(hint) is Any or types.NoneType in typing.get_args(_strip_metadata(hint))


def _unpacked_parameters(record: TypeExpression, descriptions: Mapping[str, str]) -> Iterator[FunctionParameter]:
    """Yield a parameter for each member of the TypedDict in ``**options: Unpack[Options]``."""
    for name, hint, required in typed_dict_members(record):
        offered_as, described = _read_metadata(hint, name)
        default = Parameter.empty if required else _ABSENT
        description = described or descriptions.get(name)
        yield FunctionParameter(
            name, offered_as, to_typing_extensions(hint), default, description, Parameter.KEYWORD_ONLY
        )


_ABSENT = object()  # the default of a keyword that may be omitted


_PLAIN = {Any, str, int, float, bool, types.NoneType, list, dict}
_CONTAINERS = {list, dict, typing.Union, types.UnionType}


def _is_plain(hint: object) -> bool:
    origin = typing.get_origin(hint)
    if origin is None:
        return isinstance(hint, type) and hint in _PLAIN
    return origin is typing.Literal or (origin in _CONTAINERS and all(map(_is_plain, typing.get_args(hint))))
