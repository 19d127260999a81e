"""The repr and card of signature classes: instructions, and a row for each field."""

from __future__ import annotations

import sys

from sigwire.show.card import Card
from sigwire.show.cleaning import inline, visible
from sigwire.show.layout import filled_columns
from sigwire.show.lines import ValueLine
from sigwire.show.values import safe_repr, short_repr
from sigwire.signatures.cards.types import python_type
from sigwire.signatures.fields import FieldSpec
from sigwire.signatures.signature import SignatureMeta

__all__ = ["signature_card", "signature_line"]


def signature_line(signature: SignatureMeta) -> str:
    """Return a signature class with a line for each field."""
    if "__sigwire_spec__" not in vars(signature) or not signature.spec.fields:  # a class in the making has no spec
        return type.__repr__(signature)
    fields = "".join(f"\n    {_field_line(spec)}" for spec in signature.spec.fields)
    return f"{signature.__name__}({signature.signature}\n    instructions={safe_repr(signature.spec.instructions)}{fields}\n)"


def signature_card(signature: SignatureMeta) -> Card:
    """Return the card of a signature class."""
    spec = signature.spec
    rows = [("instructions", [ValueLine(spec.instructions)])] if spec.instructions else []
    rows += [(f"{path} criteria", lines) for each in spec.outputs for path, lines in _criteria_lines(each)]
    table = [["field", "role", "type", "description", "limits", "default"], *map(_field_row, spec.fields)]
    shown = filled_columns(table, 3) if spec.fields else ()
    return Card(signature.__name__, signature.signature, rows, shown)


def _field_line(spec: FieldSpec) -> str:
    facts = visible("; ".join(fact for fact in (spec.description, spec.constraints) if fact).replace("\n", " "))
    return f"{spec.name}: {python_type(spec.annotation)} ({spec.direction}){f': {facts}' if facts else ''}"


def _criteria_lines(spec: FieldSpec) -> list[tuple[str, list[ValueLine]]]:
    """Return the levels or the described values of an output, by path."""
    if "sigwire.signatures.criteria" not in sys.modules:  # then no type has criteria
        return []
    from sigwire.signatures.criteria import criteria_texts

    return [
        (path, [ValueLine(f"{label}: {text}" if text else label) for label, text in texts.items()])
        for path, texts in criteria_texts(spec, has_bare_levels=True).items()
    ]


def _field_row(spec: FieldSpec) -> list[str]:
    role = spec.direction if spec.role == "value" else f"{spec.direction}, {spec.role.replace('_', ' ')}"
    return [spec.name, role, python_type(spec.annotation), inline(spec.description), spec.constraints, _default(spec)]


def _default(spec: FieldSpec) -> str:
    if spec.default_factory is not None:
        return "made for each call"
    return short_repr(spec.default) if spec.has_default else ""
