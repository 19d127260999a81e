"""The inputs of a ``Predict`` of the door, read as DSPy reads them.

A value that does not fit its type, and an input that the signature does not have, are records of DSPy's logger
``dspy.predict.predict``, where programs look for them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigwire.modules.inputs import InputReader, UnknownInputs, mismatch_of
from sigwire.signatures.annotations import describe_type
from sigwire.signatures.fields import FieldSpec, SignatureSpec

if TYPE_CHECKING:
    from logging import Logger

__all__ = ["InputsOfDspy", "read_as_dspy"]


class InputsOfDspy(InputReader):
    """Take any value for a text without a record, and ``None`` for a missing input whose type has ``None``.

    Types are checked as they are written: ``["1"]`` is no ``list[int]``.

    >>> from sigwire.signatures import Signature
    >>> InputsOfDspy(Signature("context, hint: str | None -> answer").spec).read("Predict", {"context": ["a"]})
    {'hint': None, 'context': ['a']}
    """

    def __init__(self, spec: SignatureSpec) -> None:
        super().__init__(spec)
        self._checked = tuple(field for field in self._checked if field.annotation is not str)
        self._files = ()  # a text in place of an image is a record as well
        self._optional = [
            field.name for field in spec.inputs if _takes_none(field.annotation) and not field.has_default
        ]

    def read(
        self, module: str, given: dict[str, object], *, check_types: bool = True, unknown: UnknownInputs = "warn"
    ) -> dict[str, object]:
        """Return the inputs to format; see ``InputReader.read``."""
        if not self._is_conversation(given):
            given = {**dict.fromkeys(self._optional), **given}
        given = super().read(module, given, check_types=False, unknown=unknown)
        for field in self._checked if check_types else ():
            if field.name in given and type(given[field.name]) is not field.annotation:
                _log_mismatch(module, field, given[field.name])
        return given

    def warn_of_unknown(self, module: str, names: list[str]) -> None:
        """Write a record of inputs that were left out."""
        _logger().warning(
            "Input contains fields not in signature. These fields will be ignored: %s. Expected: %s. (%s; "
            'configure(unknown_inputs="ignore") turns this off.)',
            names,
            [field.name for field in self.spec.inputs],
            module,
        )


def read_as_dspy(reader: InputReader) -> InputReader:
    """Return the reader of the same signature with DSPy's rules."""
    return reader if isinstance(reader, InputsOfDspy) else InputsOfDspy(reader.spec)


def _takes_none(annotation: object) -> bool:
    return type(None) in getattr(annotation, "__args__", ())


def _logger() -> Logger:
    import logging  # lazy: most calls have nothing to report

    return logging.getLogger("dspy.predict.predict")


def _log_mismatch(module: str, field: FieldSpec, value: object) -> None:
    if problem := mismatch_of(field, value, strict=True):
        _logger().warning(
            "Type mismatch for field %r: expected %s (%s); %s sends it as it is. "
            "configure(warn_on_type_mismatch=False) turns this off.",
            field.name,
            describe_type(field.annotation).replace("typing.", ""),
            problem,
            module,
        )
