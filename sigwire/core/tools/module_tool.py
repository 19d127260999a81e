"""A module as a tool: its name, its description and the arguments that a model may give.

Modules are above this room. An object is a module if its class has ``tool_source``, which returns what describes it: a function
(``forward``), a signature (an object with ``spec``) or ``None``. ``functools.partial`` around a module binds inputs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import partial
from inspect import Parameter, isroutine
from typing import Any, Protocol, TypeAlias, TypeGuard, cast

from sigwire.core.tools.docstring import ParsedDocstring, read_docstring
from sigwire.core.tools.function import FunctionArguments, FunctionParameter
from sigwire.core.tools.inspection import (
    UserFunction,
    bound_parameters,
    check_partials,
    in_partials,
    type_hints,
    unwrap_partials,
)
from sigwire.core.typed_dict import TypeExpression
from sigwire.errors import ToolDefinitionError

__all__ = ["ModuleTool", "ToolModule", "module_of", "read_module", "result_types"]


class ToolModule(Protocol):
    """A module, as tools see it."""

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any: ...

    async def acall(self, /, *args: Any, **kwargs: Any) -> Any: ...

    def tool_source(self) -> object: ...


ModuleTool: TypeAlias = "tuple[str, FunctionArguments]"
"""The name of a tool, and its arguments with the description."""


def module_of(handler: object) -> ToolModule | None:
    """Return the module that a handler calls: itself, or inside of partials; ``None`` for a function.

    >>> module_of(print)
    """
    inner: object = unwrap_partials(handler)
    return inner if _is_module(inner) else None


def _is_module(value: object) -> TypeGuard[ToolModule]:
    return hasattr(type(value), "tool_source")


def read_module(handler: UserFunction, module: ToolModule) -> ModuleTool:
    """Return name and arguments of the tool. Raises ``ToolDefinitionError`` if a model could not call the module.

    >>> from sigwire.modules.predict import Predict
    >>> name, arguments = read_module(predict := Predict("text, n: int -> label, score: float"), predict)
    >>> name, arguments.text.description, list(arguments.schema()["properties"])
    ('label_and_score', 'Use `text`, `n` to write `label`, `score`.', ['text', 'n'])
    """
    source: Any = module.tool_source()
    label = type(module).__name__
    if hasattr(source, "spec"):
        return _signature_name(module, source.spec), _signature_arguments(handler, label, source.spec)
    if source is None:
        raise ToolDefinitionError(
            f"{label} cannot be a tool: it has no signature and no forward (making a tool). Define forward in it, or pass "
            "a function that calls it."
        )
    return _snake_case(type(getattr(source, "__self__", module)).__name__), _forward_arguments(handler, label, source)


def result_types(handler: UserFunction) -> Mapping[str, TypeExpression]:
    """Return the types of a handler's result: of the value alone under ``""``, else of each member; empty if unknown."""
    module = module_of(handler)
    source: Any = handler if module is None else module.tool_source()
    if hasattr(source, "spec"):
        outputs = {field.name: field.value_type for field in source.spec.sent_outputs}
        return outputs if len(outputs) > 1 else dict(zip(("",), outputs.values(), strict=False))
    hints = type_hints(source, "", set()) if isroutine(source) else {}
    return {"": hints["return"]} if "return" in hints else {}


# --- described by a signature -----------------------------------------------------------------------------


def _signature_name(module: ToolModule, spec: Any) -> str:
    """Return the name of the user's signature or module in snake case; the names of the outputs if both are the library's."""
    cls = type(module)
    named = [spec.name, *((cls.__name__,) if cls.__module__.partition(".")[0] != "sigwire" else ())]
    found = next((name for name in named if name != "StringSignature"), None)
    return "_and_".join(field.name for field in spec.sent_outputs) if found is None else _snake_case(found)


def _signature_arguments(handler: UserFunction, label: str, spec: Any) -> FunctionArguments:
    if isinstance(handler, partial) and cast(Any, handler).args:
        raise ToolDefinitionError(
            f"{label} takes its inputs by name, and a partial gives one by position (making a tool). Write "
            "functools.partial(module, name=value)."
        )
    check_partials(cast(object, handler), label, (*(field.name for field in spec.inputs), *_CALL_OPTIONS))
    parameters = list(_signature_parameters(label, spec, bound_parameters(cast(object, handler))))
    return FunctionArguments.of_parameters(label, ParsedDocstring(spec.instructions), parameters)


# What calls of modules take beside their inputs. A module that does not take one refuses its call.
_CALL_OPTIONS = ("adapter", "config", "demos", "history", "lm", "max_iters", "prediction", "signature")


def _signature_parameters(label: str, spec: Any, bound: set[str]) -> Iterator[FunctionParameter]:
    for field in spec.inputs:
        if field.name in bound or field.role == "history":
            continue
        if field.role != "tools":
            default = Parameter.empty if not field.has_default else field.default_factory or field.default
            description = field.description or None
            yield FunctionParameter(
                field.name, field.name, field.value_type, default, description, Parameter.KEYWORD_ONLY
            )
        elif not field.has_default:
            raise ToolDefinitionError(
                f"{label} cannot be a tool: JSON cannot give its input {field.name!r}, which has tools (making a tool). "
                f"Bind it beforehand: functools.partial(module, {field.name}=[...])."
            )


# --- described by forward ---------------------------------------------------------------------------------


def _forward_arguments(handler: UserFunction, label: str, forward: UserFunction) -> FunctionArguments:
    of_class, of_forward = (
        read_docstring(text) for text in (type(getattr(forward, "__self__", None)).__doc__, forward.__doc__)
    )
    described = {**of_class.parameters, **of_forward.parameters}
    text = ParsedDocstring(of_class.description or of_forward.description, described)
    arguments = FunctionArguments(in_partials(handler, forward), name=label, text=text)
    if arguments.is_open:
        raise ToolDefinitionError(
            f"{label} cannot be a tool: its forward takes **kwargs only, so a model cannot know its inputs (making a tool). "
            "Name them, with type hints: def forward(self, question: str)."
        )
    return arguments


def _snake_case(name: str) -> str:
    """Return the name of a class in snake case.

    >>> _snake_case("HTTPExpert"), _snake_case("_LabelAndScore2")
    ('http_expert', 'label_and_score2')
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).strip("_").lower()
