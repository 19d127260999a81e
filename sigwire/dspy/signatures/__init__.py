"""The names of ``dspy.signatures``. DSPy's modules below it are this module."""

from __future__ import annotations

from sigwire.dspy.paths import add_paths
from sigwire.errors import InputError
from sigwire.signatures.declarations import InputField, OutputField, direction_of
from sigwire.signatures.fields import infer_prefix
from sigwire.signatures.signature import Signature, SignatureMeta, ensure_signature, make_signature

__all__ = [
    "InputField", "OutputField", "Signature", "SignatureMeta", "ensure_signature", "get_dspy_field_type",
    "infer_prefix", "make_signature",
]  # fmt: skip


def get_dspy_field_type(field: object) -> str:
    """Return "input" or "output". Raises ``InputError`` for a value that is no field of a signature.

    >>> get_dspy_field_type(OutputField())
    'output'
    """
    direction = direction_of(field)
    if direction is None:
        raise InputError(f"{field!r:.80} is no field (reading its direction). Pass signature.fields[name].")
    return direction


add_paths(__name__, "field signature utils")
