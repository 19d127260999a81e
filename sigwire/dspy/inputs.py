"""The inputs of a ``Predict`` of the door, read as DSPy reads them."""

from __future__ import annotations

from sigwire.core.record import FieldValues
from sigwire.modules.inputs import InputReader
from sigwire.signatures.fields import SignatureSpec

__all__ = ["InputsOfDspy", "read_as_dspy"]


class InputsOfDspy(InputReader):
    """Take any value for a text without a warning, and ``None`` for a missing input whose type has ``None``.

    >>> from sigwire.signatures import Signature
    >>> InputsOfDspy(Signature("context, hint: str | None -> answer").spec).read("Predict", {"context": ["a"]})
    {'hint': None, 'context': ['a']}
    """

    def __init__(self, spec: SignatureSpec) -> None:
        super().__init__(spec)
        self._checked = tuple(field for field in self._checked if field.annotation is not str)
        self._optional = [
            field.name for field in spec.inputs if _takes_none(field.annotation) and not field.has_default
        ]

    def _with_defaults(self, module: str, given: FieldValues) -> dict[str, object]:
        return super()._with_defaults(module, {**dict.fromkeys(self._optional), **given})


def read_as_dspy(reader: InputReader) -> InputReader:
    """Return the reader of the same signature with DSPy's rules."""
    return reader if isinstance(reader, InputsOfDspy) else InputsOfDspy(reader.spec)


def _takes_none(annotation: object) -> bool:
    return type(None) in getattr(annotation, "__args__", ())
