"""Signatures: what a program wants from a model, as typed inputs and outputs. No I/O, no prompt text.

fields     InputField, OutputField; FieldSpec and SignatureSpec: the compiled, immutable view that adapters read
roles      what a field's type means to the library: a plain value, tools, tool calls, history, media, ...
grammar    the string form "question, k: int -> answer": text to names and types, without evaluating anything
signature  Signature and its metaclass: both forms, editing, state
types      History, Image, Audio, File, Reasoning, Code; and Tool, ToolCalls

The names below are loaded when they are first used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigwire.core.lazy import lazy_names

if TYPE_CHECKING:
    from sigwire.signatures.fields import UNSET, FieldSpec, InputField, OutputField, SignatureSpec
    from sigwire.signatures.signature import Signature, ensure_signature, make_signature

__all__ = [
    "UNSET",
    "FieldSpec",
    "InputField",
    "OutputField",
    "Signature",
    "SignatureSpec",
    "ensure_signature",
    "make_signature",
]

__getattr__ = lazy_names(
    __name__,
    fields="UNSET FieldSpec InputField OutputField SignatureSpec",
    signature="Signature ensure_signature make_signature",
)
