"""The names of ``dspy.signatures``. DSPy's modules below it are this module."""

from __future__ import annotations

from sigwire.dspy.paths import add_paths
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.fields import infer_prefix
from sigwire.signatures.signature import Signature, SignatureMeta, ensure_signature, make_signature

__all__ = [
    "InputField", "OutputField", "Signature", "SignatureMeta", "ensure_signature", "infer_prefix", "make_signature",
]  # fmt: skip

add_paths(__name__, "field signature")
