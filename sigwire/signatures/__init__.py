"""Signatures: tasks as typed inputs and outputs. No I/O, no prompt text. The names below are lazy.

signature     Signature and its metaclass: both forms, editing        class_body   the class form: annotations, docstring
json_form     the JSON of values of a type, written and read
fields        FieldSpec, SignatureSpec: the view that adapters read   declarations  InputField, OutputField
parser        the string form, parsed without evaluation              state        the texts that optimizers change, as JSON
roles         the meaning of a field's type: value, tools, media ...  annotations  walk a type expression
criteria      descriptions of values, levels; deciding outputs
types         History, Image, Audio, File, Reasoning, Code            cards        the cards of signatures and histories
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigwire.core.lazy import lazy_names

if TYPE_CHECKING:
    from sigwire.signatures.declarations import UNSET, InputField, OutputField
    from sigwire.signatures.fields import FieldSpec, SignatureSpec
    from sigwire.signatures.signature import Signature, ensure_signature, make_signature

__all__ = [
    "UNSET", "FieldSpec", "InputField", "OutputField", "Signature", "SignatureSpec", "ensure_signature",
    "make_signature",
]  # fmt: skip

__getattr__ = lazy_names(
    __name__,
    declarations="UNSET InputField OutputField",
    fields="FieldSpec SignatureSpec",
    signature="Signature ensure_signature make_signature",
)
