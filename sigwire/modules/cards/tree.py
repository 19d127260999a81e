"""The repr and card of programs: a line for each predictor; a table of all parts, shared parts once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from sigwire.core.narrow import is_mapping
from sigwire.core.paths import Walkable, name_of
from sigwire.modules.cards.predictors import model_text
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.modules.tree.walk import Parameter, parts_of
from sigwire.show.card import Card
from sigwire.show.cleaning import inline
from sigwire.show.layout import filled_columns
from sigwire.show.numbers import count
from sigwire.show.values import safe_repr
from sigwire.signatures.signature import SignatureMeta

__all__ = ["module_card", "module_line"]

_MOST_PARTS = 200
_HEAD = ["part", "class", "signature", "demos", "tools", "notes"]


def module_line(module: Module) -> str:
    """Return a line for each predictor."""
    lines = [f"{name} = {safe_repr(parameter)}" for name, parameter in module.named_parameters()]
    return "\n".join(lines) or f"{type(module).__name__}()"


def module_card(module: Module) -> Card:
    """Return the card of a program: path, class, signature, demos, tools and model of each part."""
    parts = list(islice(_parts(module), _MOST_PARTS))
    models = {model_text(part.lm) for _, part, first in parts if isinstance(part, Predict) and first is None}
    rows = [_part_row(*each, is_model_shown=len(models) > 1) for each in parts]
    model = [("model", [models.pop()])] if len(models) == 1 else []
    return Card(
        type(module).__name__,
        count(len(module.predictors()), "predictor"),
        model,
        filled_columns([_HEAD, *rows], 2),
    )


def _parts(module: Module) -> Iterator[tuple[str, Walkable, str | None]]:
    """Yield each part with its path, a part before its own parts; of a part that was met before, the first path."""
    first = {id(module): "self"}
    stack: list[tuple[str, Walkable]] = [("", module)]
    while stack:
        path, part = stack.pop()
        known = first.get(id(part)) if path else None
        yield path or "self", part, known
        if known is None:
            first.setdefault(id(part), path)
            inside = [(f"{path}.{name}" if path else name, each) for name, each in _own_parts(part)]
            stack.extend(reversed(inside))


def _own_parts(part: Walkable) -> list[tuple[str, Walkable]]:
    return [(name_of(path, quoted=False), each) for path, each in parts_of(part)]


def _part_row(path: str, part: Walkable, first: str | None, *, is_model_shown: bool) -> list[str]:
    kind = type(part).__name__
    if first is not None:
        return [inline(path, 60), f"= {inline(first, 50)}", "", "", "", ""]
    notes = ["frozen"] if getattr(part, "_compiled", False) else []
    if isinstance(part, Predict):
        notes += [model_text(part.lm)] if is_model_shown else []
        return [inline(path, 60), kind, part.signature.signature, str(len(part.demos) or ""), "", ", ".join(notes)]
    notes += [inline(safe_repr(part), 60)] if isinstance(part, Parameter) else []
    signature = getattr(part, "signature", None)
    names = signature.signature if isinstance(signature, SignatureMeta) else ""
    return [inline(path, 60), kind, names, "", _tool_names(part), ", ".join(notes)]


def _tool_names(part: Walkable) -> str:
    tools: object = getattr(part, "tools", None)
    names: Mapping[str, object] = tools if is_mapping(tools) else {}
    return ", ".join(inline(name, 40) for name in islice(names, 8))
