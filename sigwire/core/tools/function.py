"""A tool from a Python function: its name, its description, a JSON Schema of its parameters, and how arguments fit them.

Type hints and defaults make the schema, through pydantic; the docstring describes the function and its parameters.

    def f(a, /, b: int, *rest: int, c: str = "x", **more: float)

    a, b, c   properties; required are those without a default        rest   an optional array property, spread on the call
    more      additionalProperties of that type; without it unknown names are refused

Parameters that ``functools.partial`` binds by name are nobody's to give, and are not offered. A parameter whose property
needs a name that Python forbids takes it as an alias: ``from_: Annotated[str, Field(alias="from")]``.

Two steps: a function is read when the tool is made (``FunctionParameter``s), and compiled by pydantic when a schema or a call first
needs it; or at once where a type is not plain, so that one without a schema is refused where the tool is written.
"""

from __future__ import annotations

import functools
import inspect
import json
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from inspect import Parameter
from typing import Annotated, Any, NamedTuple, Protocol, cast

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.schema import inline_refs, schema_of, shorten, untitled_generator
from sigwire.core.tools.docstring import ParsedDocstring, read_docstring
from sigwire.core.typed_dict import to_typing_extensions, typed_dict_members
from sigwire.errors import InputError, ToolDefinitionError

__all__ = [
    "Arguments",
    "BoundArguments",
    "FunctionArguments",
    "FunctionParameter",
    "argument_faults",
    "function_docstring",
    "function_name",
    "is_async_function",
]


class BoundArguments(NamedTuple):
    """Arguments that fit: call ``function(*bound.args, **bound.kwargs)``."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]


class Arguments(Protocol):
    """How a tool takes arguments: described for the model, and checked for the call."""

    def schema(self) -> JsonObject:
        """The JSON Schema of the arguments, an object."""
        ...

    def types(self) -> dict[str, Any]:
        """Python type by argument, where there is one."""
        ...

    def bind(self, arguments: Mapping[str, Any]) -> BoundArguments:
        """Check arguments. Raises ``InputError``, in words that a model can act on."""
        ...


class FunctionParameter(NamedTuple):
    """One parameter of a function as a tool sees it: the property it is offered as, its type and its default."""

    name: str
    offered_as: str
    hint: Any
    default: Any
    description: str | None
    kind: Any

    @property
    def required(self) -> bool:
        """Whether the model must give it."""
        return self.default is Parameter.empty and self.kind is not Parameter.VAR_POSITIONAL


_BY_POSITION = (Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL)


class FunctionArguments:
    """How a function takes arguments: ``text`` describes it, ``schema`` is for the model, ``bind`` for the call.

    ``types`` and ``descriptions`` go over what hints and docstring say. Raises ``ToolDefinitionError`` naming the parameter
    that has no JSON Schema.

    >>> def area(width: float, height: float = 1.0) -> float:
    ...     return width * height
    >>> arguments = FunctionArguments(area)
    >>> arguments.schema()["required"], arguments.bind({"width": "2"}).kwargs
    (['width'], {'width': 2.0})
    """

    __slots__ = ("_adapter", "_arguments", "_by_position", "_more", "_name", "_rest", "_schema", "_validate", "text")

    def __init__(
        self,
        function: Callable[..., Any],
        types: Mapping[str, Any] | None = None,
        descriptions: Mapping[str, str] | None = None,
    ) -> None:
        self._name = function_name(function)
        self.text: ParsedDocstring = read_docstring(function_docstring(function))
        read = list(
            _read_arguments(function, self._name, types or {}, {**self.text.parameters, **(descriptions or {})})
        )
        self._arguments = {argument.name: argument for argument in read if argument.kind is not Parameter.VAR_KEYWORD}
        self._more = next((argument for argument in read if argument.kind is Parameter.VAR_KEYWORD), None)
        self._rest = next((argument.name for argument in read if argument.kind is Parameter.VAR_POSITIONAL), None)
        self._by_position = any(argument.kind in _BY_POSITION for argument in read)
        self._adapter: Any = None
        self._schema: JsonObject | None = None
        self._validate: Callable[[Any], dict[str, Any]] | None = None
        self._check_names(types or {}, descriptions or {})
        if not all(_is_plain(argument.hint) for argument in read):
            self._check_types()

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        compiled = {"_adapter": None, "_validate": None}  # made again where they are needed; pydantic's do not travel
        return None, {name: getattr(self, name) for name in self.__slots__} | compiled

    def _check_names(self, types: Mapping[str, Any], descriptions: Mapping[str, str]) -> None:
        unknown = sorted((types.keys() | descriptions.keys()) - self._arguments.keys())
        if unknown and self._more is None:
            raise ToolDefinitionError(
                f"The tool {self._name!r} has no parameter {unknown[0]!r} to describe. "
                f"Its parameters are: {', '.join(self._arguments) or 'none'}."
            )

    def _check_types(self) -> None:
        """Refuse types without a schema. A class that names one not yet defined gets its time until the first use."""
        try:
            self.schema()
        except ToolDefinitionError as fault:
            if not _is_unfinished(fault.__cause__):
                raise
            self._adapter = None

    def types(self) -> dict[str, Any]:
        """Python type by parameter."""
        return {name: _bare(argument.hint) for name, argument in self._arguments.items()}

    # --- for the model ---

    def schema(self) -> JsonObject:
        """The JSON Schema of the arguments, an object."""
        if self._schema is None:
            try:
                self._schema = self._make_schema()
            except Exception as fault:
                raise self._no_schema(fault) from fault
        return self._schema

    def _make_schema(self) -> JsonObject:
        simple = _simple_record(self._arguments.values())
        made = simple or self._compiled().json_schema(schema_generator=untitled_generator())
        properties = cast("dict[str, Any]", made.get("properties", {}))
        for argument in self._arguments.values():
            _annotate(properties[argument.offered_as], argument)
        schema: JsonObject = {"type": "object", "properties": properties}
        if "required" in made:
            schema["required"] = made["required"]
        if "$defs" in made:
            schema["$defs"] = made["$defs"]
        return self._with_more(inline_refs(schema))

    def _with_more(self, schema: JsonObject) -> JsonObject:
        if self._more is None:
            return schema
        more = schema_of(self._more.hint)
        definitions = {**cast("JsonObject", more.pop("$defs", {})), **cast("JsonObject", schema.get("$defs", {}))}
        described: JsonObject = {"description": self._more.description} if self._more.description else {}
        schema["additionalProperties"] = {**more, **described} or True
        return {**schema, "$defs": definitions} if definitions else schema

    # --- for the call ---

    def bind(self, arguments: Mapping[str, Any]) -> BoundArguments:
        """Check and convert arguments. Raises ``InputError``, in words that a model can act on."""
        validate = self._validate or self._compile_validate()
        try:
            values = validate(arguments)
        except ValueError as fault:  # pydantic's ValidationError is one
            raise InputError(self._faults(fault)) from fault
        return self._spread(values) if self._by_position else BoundArguments((), values)

    def _spread(self, values: dict[str, Any]) -> BoundArguments:
        """Positional-only and starred parameters go by position; what stands before the starred one must then too."""
        args: list[Any] = []
        starred = bool(self._rest and values.get(self._rest))
        for name, argument in self._arguments.items():
            if argument.kind is Parameter.VAR_POSITIONAL:
                args += values.pop(name, ())
            elif argument.kind is Parameter.POSITIONAL_ONLY or (
                starred and argument.kind is Parameter.POSITIONAL_OR_KEYWORD
            ):
                args.append(values.pop(name, argument.default))
        return BoundArguments(tuple(args), values)

    # --- compiling ---

    def _compiled(self) -> Any:
        if self._adapter is None:
            from typing import NotRequired

            from pydantic import TypeAdapter
            from typing_extensions import TypedDict

            # A TypedDict takes any name, refuses unknown ones and gives back only what was given: defaults stay Python's.
            hints = {
                name: argument.hint if argument.required else NotRequired[argument.hint]
                for name, argument in self._arguments.items()
            }
            record: Any = cast(Any, TypedDict)("Arguments", hints)
            record.__pydantic_config__ = {"extra": "forbid"}
            self._adapter = TypeAdapter(record)
        return self._adapter

    def _compile_validate(self) -> Callable[[Any], dict[str, Any]]:
        try:
            validate = self._compiled().validator.validate_python
        except Exception as fault:
            raise self._no_schema(fault) from fault
        if self._more is not None:
            validate = self._with_more_checked(validate, self._more.hint)
        self._validate = validate
        return cast("Callable[[Any], dict[str, Any]]", validate)

    def _with_more_checked(
        self, validate: Callable[[Any], dict[str, Any]], hint: Any
    ) -> Callable[[Any], dict[str, Any]]:
        """The declared arguments as ever, the others as ``**more: hint`` says."""
        from pydantic import TypeAdapter

        keywords: Any = types.GenericAlias(dict, (str, hint))
        validate_more = TypeAdapter(keywords).validator.validate_python
        declared = self._arguments.keys() | {argument.offered_as for argument in self._arguments.values()}

        def both(arguments: Mapping[str, Any]) -> dict[str, Any]:
            known = {name: value for name, value in arguments.items() if name in declared}
            more = {name: value for name, value in arguments.items() if name not in declared}
            return {**validate(known), **validate_more(more)}

        return both

    # --- faults ---

    def _no_schema(self, fault: Exception) -> ToolDefinitionError:
        if _is_unfinished(fault):
            return ToolDefinitionError(
                f"The tool {self._name!r} cannot be used yet: one of its types names a class that is not defined ({fault}). "
                "Define that class before the tool is first used."
            )
        for argument in (*self._arguments.values(), *((self._more,) if self._more else ())):
            if not _has_schema(argument.hint):
                return ToolDefinitionError(
                    f"The tool {self._name!r} cannot be offered: its parameter {argument.name!r} has the type "
                    f"{_type_name(argument.hint)}, which no JSON can describe. Give it a type such as str, int, list or a "
                    f"pydantic model, or bind it beforehand: Tool(functools.partial(f, {argument.name}=...))."
                )
        return ToolDefinitionError(f"The tool {self._name!r} cannot be offered: {fault}")

    def _faults(self, fault: ValueError) -> str:
        return argument_faults(fault, [argument.offered_as for argument in self._arguments.values()])


def argument_faults(fault: ValueError, known: Iterable[str] = ()) -> str:
    """What pydantic found wrong with arguments, for the model to read; ``known`` are the names that there are.

    >>> argument_faults(ValueError("no such day"))
    'no such day'
    """
    errors: list[Any] = cast(Any, fault).errors(include_url=False) if hasattr(fault, "errors") else []
    if not errors:
        return shorten(str(fault))
    lines = [_fault_line(error) for error in errors[:_MOST_FAULTS]]
    if len(errors) > _MOST_FAULTS:
        lines.append(f"and {len(errors) - _MOST_FAULTS} more faults")
    if any(error["type"] == "extra_forbidden" and len(error["loc"]) == 1 for error in errors):
        names = shorten(", ".join(known), _LONGEST_LIST)
        lines.append(f"the arguments are: {names}" if names else "this tool takes no arguments")
    return "; ".join(lines)


def _annotate(schema: dict[str, Any], argument: FunctionParameter) -> None:
    """Put a parameter's description and default into its property."""
    if argument.description:
        schema["description"] = argument.description
        for member in schema.get("anyOf", ()):  # the same words once, where they came with a member of X | None
            if member.get("description") == argument.description:
                del member["description"]
    if argument.default is Parameter.empty or _is_pydantic_field(argument.default):
        return
    from pydantic_core import to_jsonable_python

    try:
        default = to_jsonable_python(argument.default)
        if isinstance(default, float | list | dict):
            json.dumps(default, allow_nan=False)
    except Exception:  # a default that is no JSON (a sentinel object, infinity) is the function's own affair
        schema.pop("default", None)
    else:
        schema["default"] = default


_MOST_FAULTS = 8
_LONGEST_ECHO = 60
_LONGEST_LIST = 600


def _fault_line(error: Mapping[str, Any]) -> str:
    place = ".".join(shorten(str(step)) for step in error["loc"])
    said = (
        _SAYINGS.get(error["type"])
        or f"{shorten(error['msg'])} (got {shorten(repr(error.get('input')), _LONGEST_ECHO)})"
    )
    return f"{place}: {said}" if place else said


_SAYINGS: Mapping[str, str] = {
    "missing": "this argument is required",
    "extra_forbidden": "there is no such argument",
    "unexpected_keyword_argument": "there is no such argument",
    "dict_type": "a JSON object is needed",
}


def _has_schema(hint: Any) -> bool:
    from pydantic import TypeAdapter

    try:
        TypeAdapter(hint).json_schema()
    except Exception:
        return False
    return True


def _is_unfinished(fault: BaseException | None) -> bool:
    """Whether pydantic waits for a class that is named and not yet defined."""
    return fault is not None and getattr(fault, "code", None) in ("class-not-fully-defined", "undefined-annotation")


def _bare(hint: Any) -> Any:
    return typing.get_args(hint)[0] if typing.get_origin(hint) is Annotated else hint


def _type_name(hint: Any) -> str:
    hint = _bare(hint)
    return getattr(hint, "__qualname__", None) or str(hint)


# --- reading a function ---------------------------------------------------------------------------


def function_name(function: Callable[..., Any]) -> str:
    """The name a function is offered under: its own, or its class's for a callable object."""
    inner = _inside_partials(function)
    return getattr(inner, "__name__", None) or type(inner).__name__


def is_async_function(function: object) -> bool:
    """Whether calling it gives a coroutine; callable objects and partials are looked into."""
    function = _inside_partials(function)  # of a callable object its method says it: that is no callable() in disguise
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _inside_partials(function: Any) -> Any:
    while isinstance(function, functools.partial):
        function = cast(Any, function).func
    return function


def _bound_by_name(function: Any) -> set[str]:
    """The parameters that partials have settled."""
    bound: set[str] = set()
    while isinstance(function, functools.partial):
        bound |= cast(Any, function).keywords.keys()
        function = cast(Any, function).func
    return bound


def function_docstring(function: Any) -> str | None:
    """The docstring that describes a call: the function's own, or the class's or ``__call__``'s of a callable object."""
    function = _inside_partials(function)
    if inspect.isroutine(function) or inspect.isclass(function):
        return function.__doc__
    # A callable object: its own words, then those of the method that is called; not what every object inherits.
    return type(function).__doc__ or getattr(type(function).__call__, "__doc__", None)


def _read_arguments(
    function: Callable[..., Any], name: str, types: Mapping[str, Any], descriptions: Mapping[str, str]
) -> Iterator[FunctionParameter]:
    parameters = _signature(function, name).parameters
    _check_bound(function, name, parameters)
    settled = _bound_by_name(function)
    hints = {**_hints(function, name, settled | types.keys()), **types}
    for parameter in parameters.values():
        if parameter.name in settled:
            continue
        hint = hints.get(parameter.name, Any if isinstance(parameter.annotation, str) else parameter.annotation)
        if parameter.kind is Parameter.VAR_KEYWORD and _is_unpacked(hint):
            yield from _keywords_of(typing.get_args(hint)[0], descriptions)
        else:
            hint = Any if hint is Parameter.empty else to_typing_extensions(hint)
            yield _argument(parameter, hint, descriptions.get(parameter.name))


def _signature(function: Any, name: str) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as fault:
        raise ToolDefinitionError(
            f"The tool {name!r} cannot be offered: Python does not know its parameters. Wrap it in a function with type "
            "hints, or use Tool.from_schema(name, description, parameters, handler)."
        ) from fault


def _check_bound(function: Any, name: str, parameters: Mapping[str, Parameter]) -> None:
    """A method taken from its class would offer its ``self`` to the model."""
    first = next(iter(parameters.values()), None)
    inside, _, _ = getattr(function, "__qualname__", "").rpartition(".")
    in_class = bool(inside) and not inside.endswith("<locals>")
    if first is not None and first.name in ("self", "cls") and first.annotation is Parameter.empty and in_class:
        raise ToolDefinitionError(
            f"The tool {name!r} cannot be offered: it is a method of a class, and {first.name!r} is nothing a model can give. "
            f"Take it from an object: Tool(an_object.{name})."
        )


def _argument(parameter: Parameter, hint: Any, description: str | None) -> FunctionParameter:
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
    """Whether a default is ``pydantic.Field(...)``; pydantic itself then fills in what the field says."""
    return type(default).__name__ == "FieldInfo" and hasattr(default, "is_required")


def _read_metadata(hint: Any, name: str) -> tuple[str, str | None]:
    """The property's name and its description, as ``Annotated`` gives them: a plain text, ``Doc`` or ``Field``."""
    description: str | None = None
    for data in _metadata(hint):
        alias = getattr(data, "validation_alias", None)
        name = alias if isinstance(alias, str) else name
        said = (
            data
            if isinstance(data, str)
            else getattr(data, "description", None) or getattr(data, "documentation", None)
        )
        description = said if isinstance(said, str) else description
    return name, description


def _metadata(hint: Any) -> tuple[Any, ...]:
    """What ``Annotated`` says of a type, or of the type beside ``None``."""
    if typing.get_origin(hint) is Annotated:
        return (*_metadata(typing.get_args(hint)[0]), *hint.__metadata__)
    members = [member for member in typing.get_args(hint) if member is not types.NoneType]
    is_optional = typing.get_origin(hint) in (typing.Union, types.UnionType) and len(members) == 1
    return _metadata(members[0]) if is_optional else ()


def _admits_none(hint: Any) -> bool:
    return _bare(hint) is Any or types.NoneType in typing.get_args(_bare(hint))


def _is_unpacked(hint: Any) -> bool:
    return "Unpack" in str(typing.get_origin(hint))


def _keywords_of(record: Any, descriptions: Mapping[str, str]) -> Iterator[FunctionParameter]:
    """``**options: Unpack[Options]``: the keywords of a TypedDict, each a parameter."""
    for name, hint, required in typed_dict_members(record):
        offered_as, described = _read_metadata(hint, name)
        default = Parameter.empty if required else _ABSENT
        description = described or descriptions.get(name)
        yield FunctionParameter(
            name, offered_as, to_typing_extensions(hint), default, description, Parameter.KEYWORD_ONLY
        )


_ABSENT = object()  # a default that is no value: the keyword may simply be left out


# --- hints -------------------------------------------------------------------------------------------


def _hints(function: Any, name: str, known: set[str]) -> dict[str, Any]:
    function = _inside_partials(function)
    if not (inspect.isroutine(function) or inspect.isclass(function)):
        function = type(function).__call__
    if inspect.isclass(function):
        function = function.__init__
    function = inspect.unwrap(function)
    try:
        return typing.get_type_hints(function, include_extras=True, localns=_type_parameters(function))
    except NameError as fault:
        return _hints_one_by_one(function, name, known, fault)
    except TypeError:
        return {}


def _type_parameters(function: Any) -> dict[str, Any] | None:
    """PEP 695 type parameters by name."""
    return {parameter.__name__: parameter for parameter in getattr(function, "__type_params__", ())} or None


def _hints_one_by_one(function: Any, name: str, known: set[str], fault: NameError) -> dict[str, Any]:
    """Hints whose text names something local: what the function closes over is known, the rest must be given."""
    written: dict[str, Any] = dict(getattr(function, "__annotations__", {}))
    local = {**_closed_over(function), **(_type_parameters(function) or {})}
    hints: dict[str, Any] = {}
    for parameter, hint in written.items():
        if parameter in known or parameter == "return":
            continue
        try:
            hints |= _resolve({parameter: hint}, getattr(function, "__globals__", {}), local)
        except NameError as unknown:
            raise ToolDefinitionError(
                f"The tool {name!r} cannot be offered: the type {hint!r} of its parameter {parameter!r} is not known here "
                f"({unknown}). Define the type at module level."
            ) from fault
    return hints


def _closed_over(function: Any) -> dict[str, Any]:
    return dict(inspect.getclosurevars(function).nonlocals) if isinstance(function, types.FunctionType) else {}


def _resolve(written: dict[str, Any], known: dict[str, Any], local: dict[str, Any]) -> dict[str, Any]:
    def holder() -> None: ...

    holder.__annotations__ = written
    return typing.get_type_hints(holder, globalns=known, localns=local, include_extras=True)


# --- plain types: those that need no look by pydantic to be known to have a schema ----------------------

_PLAIN = {Any, str, int, float, bool, types.NoneType, list, dict}
_CONTAINERS = {list, dict, typing.Union, types.UnionType}


def _is_plain(hint: Any) -> bool:
    origin = typing.get_origin(hint)
    if origin is None:
        return isinstance(hint, type) and hint in _PLAIN
    return origin is typing.Literal or (origin in _CONTAINERS and all(map(_is_plain, typing.get_args(hint))))


# --- simple types: their schemas, as pydantic gives them, without the cost of compiling a validator -----------

_TYPES: Mapping[type, str] = {
    str: "string", int: "integer", float: "number", bool: "boolean", types.NoneType: "null",
}  # fmt: skip


def _simple_record(arguments: Iterable[FunctionParameter]) -> JsonObject | None:
    """The schema of these arguments; ``None`` if a type is not simple."""
    properties: JsonObject = {}
    required: list[JsonValue] = []
    for argument in arguments:
        schema = _simple_schema(argument.hint)
        if schema is None:
            return None
        properties[argument.offered_as] = schema
        if argument.required:
            required.append(argument.offered_as)
    return {"properties": properties, **({"required": required} if required else {})}


def _simple_schema(hint: Any) -> JsonObject | None:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if not arguments:
        return {"type": _TYPES[hint]} if isinstance(hint, type) and hint in _TYPES else None
    if origin is typing.Literal:
        return {"enum": [*arguments], "type": "string"} if _are_several_texts(arguments) else None
    if origin is list:
        inner = _simple_schema(arguments[0])
        return inner and {"items": inner, "type": "array"}
    if origin is dict and arguments[0] is str:
        inner = _simple_schema(arguments[1])
        return inner and {"additionalProperties": inner, "type": "object"}
    members = [argument for argument in arguments if argument is not types.NoneType]
    if len(members) == 1 and origin in (typing.Union, types.UnionType):
        inner = _simple_schema(members[0])
        return inner and {"anyOf": [inner, {"type": "null"}]}
    return None


def _are_several_texts(values: tuple[Any, ...]) -> bool:
    return len(values) > 1 and all(type(value) is str for value in values)
