"""``types_of``: the fields that a program declares, by whose types values are written and read outside of prompts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from sigwire.core.record import dump_fields
from sigwire.modules.module import Module
from sigwire.signatures.fields import FieldSpec
from sigwire.signatures.signature import SignatureMeta

__all__ = ["NO_TYPES", "FieldTypes", "dumped_fields", "types_of"]

FieldTypes: TypeAlias = Mapping[str, FieldSpec]
"""The declared fields of a program, by name."""

NO_TYPES: FieldTypes = {}


def types_of(program: object) -> FieldTypes:
    """Return the fields that a program declares: those of its signature, else the outputs of its predictors.

    Outputs of one name and different types are left out. ``program`` may be a signature class; a function declares nothing.

    >>> from sigwire.modules.predict import Predict
    >>> list(types_of(Predict("text -> score: float")))
    ['text', 'score']
    """
    own: object = program if isinstance(program, SignatureMeta) else getattr(program, "signature", None)
    if isinstance(own, SignatureMeta):
        return own.spec.by_name
    if not isinstance(program, Module):
        return NO_TYPES
    specs = [spec for _, each in program.named_predictors() for spec in each.signature.spec.outputs]
    found = {spec.name: spec for spec in specs}
    unclear = {spec.name for spec in specs if spec.annotation != found[spec.name].annotation}
    return {name: spec for name, spec in found.items() if name not in unclear}


def dumped_fields(fields: Mapping[str, object], types: FieldTypes) -> dict[str, object]:
    """Return the fields with the declared ones as JSON by their types; others, tools and calls are unchanged.

    Raises ``ValueError`` for a declared field without a JSON form.
    """
    return dump_fields(
        fields, lambda name, value: types[name].dump(value) if name in types and types[name].role == "value" else value
    )
