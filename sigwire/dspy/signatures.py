"""The names of ``dspy.signatures``. DSPy's modules below it are this module."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sigwire.dspy.missing import advise
from sigwire.dspy.paths import add_paths
from sigwire.errors import InputError
from sigwire.signatures import declarations
from sigwire.signatures.declarations import direction_of
from sigwire.signatures.fields import infer_prefix
from sigwire.signatures.signature import Signature, SignatureMeta, ensure_signature, make_signature

__all__ = [
    "InputField", "OutputField", "Signature", "SignatureMeta", "ensure_signature", "get_dspy_field_type",
    "infer_prefix", "make_signature",
]  # fmt: skip

if TYPE_CHECKING:  # type checkers read the core's as declarations of fields
    from sigwire.signatures.declarations import InputField, OutputField
else:

    def InputField(**options: Any) -> Any:  # noqa: N802
        """Declare an input as ``sigwire.InputField`` does; ``prefix`` is kept in ``json_schema_extra``, with a warning.

        >>> get_dspy_field_type(InputField(desc="what to look for"))
        'input'
        """
        return declarations.InputField(**_with_prefix(options))

    def OutputField(**options: Any) -> Any:  # noqa: N802
        """Declare an output; see ``InputField``. One that no text can fill is refused by the first call.

        >>> get_dspy_field_type(OutputField(desc="the passages"))
        'output'
        """
        options["json_schema_extra"] = {**(options.get("json_schema_extra") or {}), declarations.AT_CALL_KEY: True}
        return declarations.OutputField(**_with_prefix(options))


def _with_prefix(options: dict[str, Any]) -> dict[str, Any]:
    """Return options whose prefix is in the schema also: no prompt has it, and the core warns."""
    if options.get("prefix") is None:
        return options
    return {**options, "json_schema_extra": {**(options.get("json_schema_extra") or {}), "prefix": options["prefix"]}}


def get_dspy_field_type(field: object) -> str:
    """Return "input" or "output". Raises ``InputError`` for a value that is no field of a signature.

    >>> get_dspy_field_type(OutputField())
    'output'
    """
    direction = direction_of(field)
    if direction is None:
        raise InputError(f"{field!r:.80} does not have a __dspy_field_type (reading it). Pass signature.fields[name].")
    return direction


add_paths(__name__, "field signature utils")
advise(__name__)
