"""The state of a signature, as JSON: the texts that optimizers change. Types and constraints stay in the code."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from sigwire.core.foreign_names import DOOR, LIBRARY
from sigwire.errors import StateError
from sigwire.signatures.declarations import extra_of
from sigwire.signatures.fields import FieldSpec, SignatureSpec, list_names, recompile, replace_fields

if TYPE_CHECKING:
    from sigwire.core.json import JsonObject, JsonValue

__all__ = ["dump_texts", "load_texts"]


def dump_texts(spec: SignatureSpec) -> JsonObject:
    """Return the instructions, and name, prefix and description of each field."""
    fields: list[JsonValue] = [
        {"name": each.name, "prefix": each.prefix, "description": _description(each)} for each in spec.fields
    ]
    criteria = _criteria(spec)
    return {"instructions": spec.instructions, "fields": fields, **({"criteria": criteria} if criteria else {})}


def _criteria(spec: SignatureSpec) -> JsonObject:
    """Return the descriptions of criteria, by path and label."""
    if "sigwire.signatures.criteria" not in sys.modules:  # then no type has criteria
        return {}
    from sigwire.signatures.criteria import criteria_texts

    return {path: {**texts} for each in spec.outputs for path, texts in criteria_texts(each).items() if texts}


def _load_criteria(spec: SignatureSpec, fields: Sequence[FieldSpec], saved: Mapping[str, Any]) -> list[FieldSpec]:
    from sigwire.signatures.criteria import with_criterion

    loaded = {each.name: each for each in fields}
    for path, texts in saved.items():
        name = path.partition(".")[0]
        if name not in loaded:
            raise _invalid_state(spec, f"criteria have a field {path!r:.60}")
        if not isinstance(texts, Mapping):
            raise _invalid_state(spec, f"criteria hold {type(texts).__name__}")
        for label, text in cast("Mapping[str, Any]", texts).items():
            if not isinstance(text, str):
                raise _invalid_state(spec, f"criteria hold {type(text).__name__}")
            try:
                loaded[name] = with_criterion(loaded[name], path, label, text)
            except KeyError:
                raise _invalid_state(spec, f"criteria of {path} have a label {label!r:.60}") from None
    return [*loaded.values()]


def load_texts(spec: SignatureSpec, state: Mapping[str, object]) -> SignatureSpec:
    """Return the spec with the texts of ``dump_texts``. Raises ``StateError`` if the texts do not fit the fields."""
    saved = _match_by_name(spec, _field_texts(spec, state.get("fields", [])))
    fields = [_load_field(each, saved[each.name]) if each.name in saved else each for each in spec.fields]
    criteria: Any = state.get("criteria") or {}
    if not isinstance(criteria, Mapping):
        raise _invalid_state(spec, f"criteria are {type(criteria).__name__}")
    if criteria:
        fields = _load_criteria(spec, fields, cast("Mapping[str, Any]", criteria))
    instructions = state.get("instructions", spec.instructions)
    if not isinstance(instructions, str):
        raise _invalid_state(spec, f"instructions are {type(instructions).__name__}")
    return replace(replace_fields(spec, fields), instructions=instructions, instructions_given=True)


def _description(spec: FieldSpec) -> str:
    return str(extra_of(spec.info)["desc"])


def _field_texts(spec: SignatureSpec, saved: Any) -> list[Mapping[str, Any]]:
    """Return the saved fields after a check: a file may contain anything."""
    fields: list[Any] = saved if issubclass(type(saved), list) else [saved]
    for field in fields:
        if not issubclass(type(field), Mapping):
            raise _invalid_state(spec, f"fields hold {type(field).__name__}")
        if odd := [value for value in field.values() if not isinstance(value, str)]:
            raise _invalid_state(spec, f"field texts hold {type(odd[0]).__name__}")
    return fields


def _invalid_state(spec: SignatureSpec, found: str) -> StateError:
    return StateError(
        f"The saved signature's {found} (loading {spec.name}); instructions must be a text and fields a list of objects "
        "with texts. Save it again with dump_state()."
    )


def _match_by_name(spec: SignatureSpec, saved: list[Mapping[str, Any]]) -> dict[str, Mapping[str, Any]]:
    if not all("name" in field for field in saved):
        raise StateError(
            f"The saved signature has fields without names (loading {spec.name}), as files of {LIBRARY} have. Load it into a "
            f"program of {DOOR}."
        )
    found = {str(field["name"]): field for field in saved}
    if unknown := [name for name in found if name not in spec.by_name]:
        raise StateError(
            f"The saved signature has a field {unknown[0]!r}, and {spec.name} has {list_names(spec.fields)}. "
            "Load it into the program that saved it."
        )
    return found


def _load_field(spec: FieldSpec, saved: Mapping[str, Any]) -> FieldSpec:
    texts = {"desc": saved.get("description", _description(spec)), "prefix": saved.get("prefix", spec.prefix)}
    if texts == {"desc": _description(spec), "prefix": spec.prefix}:
        return spec
    return recompile(spec, spec.info.annotation, texts)
