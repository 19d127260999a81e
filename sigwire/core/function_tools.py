"""A tool from a Python function: its name, its description, a JSON Schema of its parameters, and how arguments fit them.

Type hints and defaults make the schema, through pydantic; the docstring (Google, NumPy or reST style) describes the function
and its parameters. Parameter names are free: ``from_`` is a name like any other, and so is ``self`` in a plain function.

    def f(a, /, b: int, *rest: int, c: str = "x", **more: float)

    a, b, c   properties; required are those without a default        rest   an optional array property, spread on the call
    more      additionalProperties of that type; without it unknown names are refused
"""

from __future__ import annotations

import functools
import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter
from typing import Annotated, Any, ClassVar, cast

from sigwire.core.json import JsonObject
from sigwire.core.schema import inline_refs, untitled
from sigwire.errors import InputError, ToolDefinitionError

__all__ = ["Bound", "FunctionArguments", "FunctionText", "function_name", "is_async_function", "read_docstring"]


@dataclass(frozen=True, slots=True)
class Bound:
    """Arguments that fit: call ``function(*bound.args, **bound.kwargs)``."""

    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FunctionText:
    """What a docstring says of a function and of its parameters."""

    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)


_SECTIONS = (
    ("NUMPYDOC", re.compile(r"^\s*(?:Other )?Parameters\s*\n\s*-{3,}", re.MULTILINE)),
    ("GOOGLE", re.compile(r"^\s*(?:Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments):\s*$", re.MULTILINE)),
    ("REST", re.compile(r"^\s*:(?:param|parameter|arg|argument|key|keyword)\b", re.MULTILINE)),
    ("EPYDOC", re.compile(r"^\s*@param\b", re.MULTILINE)),
)


def read_docstring(text: str | None) -> FunctionText:
    """The description and the parameters' descriptions of a docstring, whichever of the common styles it is in.

    >>> read_docstring("Add.\\n\\nArgs:\\n    a: The first.").parameters
    {'a': 'The first.'}
    """
    if not text:
        return FunctionText()
    text = inspect.cleandoc(text)
    style = next((name for name, pattern in _SECTIONS if pattern.search(text)), None)
    if style is None:
        return FunctionText(text)
    import docstring_parser

    try:
        parsed = docstring_parser.parse(text, style=docstring_parser.DocstringStyle[style])
    except docstring_parser.ParseError:
        return FunctionText(text)
    described = {p.arg_name.lstrip("*"): " ".join(p.description.split()) for p in parsed.params if p.description}
    return FunctionText((parsed.description or "").strip(), described)


def function_name(function: Callable[..., Any]) -> str:
    """The name a function is offered under: its own, or its class's for a callable object."""
    inner = function.func if isinstance(function, functools.partial) else function
    return getattr(inner, "__name__", None) or type(inner).__name__


def is_async_function(function: object) -> bool:
    """Whether calling it gives a coroutine; callable objects and partials are looked into."""
    while isinstance(function, functools.partial):
        function = cast(Any, function).func
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


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

    __slots__ = ("_adapter", "_more", "_name", "_parameters", "_rest", "_validate", "text")

    _SPREAD: ClassVar = (Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL)

    def __init__(
        self,
        function: Callable[..., Any],
        types: Mapping[str, Any] | None = None,
        descriptions: Mapping[str, str] | None = None,
    ) -> None:
        self._name = function_name(function)
        self.text = read_docstring(_docstring(function))
        described = {**self.text.parameters, **(descriptions or {})}
        hints = {**_hints(function, self._name, frozenset(types or ())), **(types or {})}
        self._parameters: dict[str, Parameter] = {}
        self._more: Parameter | None = None
        self._rest: str | None = None
        for name, parameter in _signature(function, self._name).parameters.items():
            hint = _described(_hint(parameter, hints.get(name, Any)), described.get(name))
            if parameter.kind is Parameter.VAR_KEYWORD:
                self._more = parameter.replace(annotation=hint)
                continue
            if parameter.kind is Parameter.VAR_POSITIONAL:
                self._rest, hint = name, list[hint]
            self._parameters[name] = parameter.replace(annotation=hint)
        self._adapter: Any = None
        self._validate: Callable[[Any], dict[str, Any]] | None = None

    def check(self) -> None:
        """Raise ``ToolDefinitionError`` where the function can be told unfit without compiling anything."""
        for name, parameter in self._parameters.items():
            if isinstance(parameter.annotation, str):
                raise ToolDefinitionError(f"The type {parameter.annotation!r} of {name!r} is only a text.")

    def types(self) -> dict[str, Any]:
        """Python type by parameter."""
        return {name: _bare(parameter.annotation) for name, parameter in self._parameters.items()}

    # --- for the model ---

    def schema(self) -> JsonObject:
        """The JSON Schema of the arguments, an object."""
        try:
            schema: JsonObject = self._compiled().json_schema(schema_generator=untitled())
        except Exception as fault:
            raise self._no_schema(fault) from fault
        schema.pop("title", None)
        properties = cast("dict[str, Any]", schema.setdefault("properties", {}))
        for name, parameter in self._parameters.items():
            if parameter.default is not Parameter.empty:
                self._add_default(properties[name], parameter)
        if self._more is None:
            schema.pop("additionalProperties", None)
        inlined = inline_refs(schema)
        order = ("type", "properties", "required")
        return {key: inlined[key] for key in (*order, *(k for k in inlined if k not in order)) if key in inlined}

    def _add_default(self, schema: dict[str, Any], parameter: Parameter) -> None:
        from pydantic_core import to_jsonable_python

        try:
            schema["default"] = to_jsonable_python(parameter.default)
        except Exception:  # a default that is no JSON (a sentinel object) is the function's own affair
            return

    # --- for the call ---

    def bind(self, arguments: Mapping[str, Any]) -> Bound:
        """Check and convert arguments. Raises ``InputError``, in words that a model can act on."""
        try:
            values = (self._validate or self._compiled_validate())(arguments)
        except ValueError as fault:  # pydantic's ValidationError is one
            raise InputError(self._faults(fault)) from fault
        if not any(parameter.kind in self._SPREAD for parameter in self._parameters.values()):
            return Bound((), values)
        return self._spread(values)

    def _spread(self, values: dict[str, Any]) -> Bound:
        """Positional-only and starred parameters go by position; what stands before them must then too."""
        args: list[Any] = []
        starred = bool(self._rest and values.get(self._rest))
        for name, parameter in self._parameters.items():
            if parameter.kind is Parameter.VAR_POSITIONAL:
                args += values.pop(name, ())
            elif parameter.kind is Parameter.POSITIONAL_ONLY or (
                starred and parameter.kind is Parameter.POSITIONAL_OR_KEYWORD
            ):
                if name not in values and parameter.default is Parameter.empty:
                    break
                args.append(values.pop(name, parameter.default))
        return Bound(tuple(args), values)

    # --- compiling ---

    def _compiled(self) -> Any:
        if self._adapter is None:
            from pydantic import TypeAdapter
            from typing_extensions import NotRequired, TypedDict

            fields = {
                name: parameter.annotation if self._is_required(parameter) else NotRequired[parameter.annotation]
                for name, parameter in self._parameters.items()
            }
            arguments: Any = TypedDict("Arguments", fields)  # type: ignore[operator]
            arguments.__pydantic_config__ = {
                "extra": "forbid" if self._more is None else "allow",
                "arbitrary_types_allowed": False,
            }
            try:
                self._adapter = TypeAdapter(arguments)
            except Exception as fault:
                raise self._no_schema(fault) from fault
        return self._adapter

    def _is_required(self, parameter: Parameter) -> bool:
        return parameter.default is Parameter.empty and parameter.kind is not Parameter.VAR_POSITIONAL

    def _compiled_validate(self) -> Callable[[Any], dict[str, Any]]:
        validate = self._compiled().validator.validate_python
        if self._more is not None and self._more.annotation is not Any:
            validate = self._with_more(validate, self._more.annotation)
        self._validate = validate
        return cast("Callable[[Any], dict[str, Any]]", validate)

    def _with_more(self, validate: Callable[[Any], dict[str, Any]], annotation: Any) -> Callable[[Any], dict[str, Any]]:
        from pydantic import TypeAdapter

        more: Any = TypeAdapter(dict[str, annotation])  # type: ignore[valid-type]
        known = self._parameters.keys()

        def both(arguments: Any) -> dict[str, Any]:
            values = validate(arguments)
            extra = {name: value for name, value in values.items() if name not in known}
            return {**values, **more.validate_python(extra)} if extra else values

        return both

    # --- faults ---

    def _no_schema(self, fault: Exception) -> ToolDefinitionError:
        for name, parameter in self._parameters.items():
            if not _has_schema(parameter.annotation):
                return ToolDefinitionError(
                    f"The tool {self._name!r} cannot be offered: its parameter {name!r} has the type "
                    f"{_type_name(parameter.annotation)}, which no JSON can describe. Give it a type such as str, int, list or a "
                    "pydantic model, or bind it beforehand with functools.partial."
                )
        return ToolDefinitionError(f"The tool {self._name!r} cannot be offered: {fault}")

    def _faults(self, fault: ValueError) -> str:
        errors = cast("list[Any]", fault.errors(include_url=False)) if hasattr(fault, "errors") else []
        if not errors:
            return str(fault)
        known = ", ".join(self._parameters) or "none"
        lines = [_fault_line(error) for error in errors]
        if any(error["type"] == "extra_forbidden" for error in errors):
            lines.append(f"the arguments are: {known}")
        return "; ".join(lines)


def _fault_line(error: Mapping[str, Any]) -> str:
    place = ".".join(str(step) for step in error["loc"])
    if error["type"] == "missing":
        return f"{place}: this argument is required"
    if error["type"] == "extra_forbidden":
        return f"{place}: there is no such argument"
    given = repr(error.get("input"))
    given = given if len(given) <= 80 else f"{given[:60]} ... "
    return f"{place}: {error['msg']} (got {given})"


def _has_schema(annotation: Any) -> bool:
    from pydantic import TypeAdapter

    try:
        TypeAdapter(annotation).json_schema()
    except Exception:
        return False
    return True


def _bare(annotation: Any) -> Any:
    return typing.get_args(annotation)[0] if typing.get_origin(annotation) is Annotated else annotation


def _type_name(annotation: Any) -> str:
    annotation = _bare(annotation)
    return getattr(annotation, "__qualname__", None) or str(annotation)


# --- reading a function ---------------------------------------------------------------------------


def _docstring(function: Any) -> str | None:
    if isinstance(function, functools.partial):
        return _docstring(cast(Any, function).func)
    if inspect.isroutine(function) or inspect.isclass(function):
        return function.__doc__
    # A callable object: its own words, then those of the method that is called; not what every object inherits.
    return type(function).__doc__ or getattr(type(function).__call__, "__doc__", None)


def _signature(function: Any, name: str) -> inspect.Signature:
    try:
        return inspect.signature(function)
    except (TypeError, ValueError) as fault:
        raise ToolDefinitionError(
            f"The tool {name!r} cannot be offered: Python does not know its parameters. Wrap it in a function with type "
            "hints, or use Tool.from_schema(name, description, parameters, handler)."
        ) from fault


def _hints(function: Any, name: str, known: frozenset[str]) -> dict[str, Any]:
    while isinstance(function, functools.partial):
        function = function.func
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


def _hints_one_by_one(function: Any, name: str, known: frozenset[str], fault: NameError) -> dict[str, Any]:
    """Hints whose text names something local: what the function closes over is known, the rest must be given."""
    raw: dict[str, Any] = dict(getattr(function, "__annotations__", {}))
    closed = dict(inspect.getclosurevars(function).nonlocals) if isinstance(function, types.FunctionType) else {}
    hints: dict[str, Any] = {}
    for parameter, hint in raw.items():
        if parameter in known or parameter == "return":
            continue
        holder = types.SimpleNamespace(__annotations__={parameter: hint})
        try:
            hints |= typing.get_type_hints(
                holder, globalns=getattr(function, "__globals__", {}), localns=closed, include_extras=True
            )
        except NameError as unknown:
            raise ToolDefinitionError(
                f"The tool {name!r} cannot be offered: the type {hint!r} of its parameter {parameter!r} is not known here "
                f"({unknown}). Define the type at module level, or pass arg_types={{{parameter!r}: TheType}}."
            ) from fault
    return hints


def _hint(parameter: Parameter, hint: Any) -> Any:
    """A parameter's type, with ``None`` when that is its default."""
    if parameter.default is None and hint is not Any:
        return hint | None if not isinstance(hint, str) else hint
    return hint


def _described(hint: Any, description: str | None) -> Any:
    """The type with its description for the schema: a plain text in ``Annotated`` wins over the docstring."""
    from pydantic import Field

    if typing.get_origin(hint) is Annotated:
        plain = next((data for data in hint.__metadata__ if isinstance(data, str)), None)
        if plain is None and any(getattr(data, "description", None) for data in hint.__metadata__):
            return hint
        description = plain or description
    return Annotated[hint, Field(description=description)] if description else hint
