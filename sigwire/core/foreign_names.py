"""Names of another library that stand in files, in signatures and in errors; decision 0026 lists those that the core keeps.

Everything else of that library is in the door.
"""

from __future__ import annotations

from typing import Any

__all__ = ["DIRECTION_KEY", "DOOR", "HIDDEN", "LIBRARY", "NAMESPACE", "NamedFields"]

LIBRARY = "DSPy"
NAMESPACE = "dspy"
"""The namespace of types in the text of a signature (``name.Image``), and of classes in saved programs."""
DOOR = "sigwire.dspy"
"""The package with the other names, for errors: nothing here imports it."""
DIRECTION_KEY = "__dspy_field_type"
"""The key of a field's direction in ``json_schema_extra``: tools for signatures read it."""
HIDDEN = "dspy_"
"""Fields with this prefix are bookkeeping: kept, but not counted and not listed."""


class NamedFields:
    """The lists of a record's fields, without the hidden ones unless they are asked for."""

    __slots__ = ()

    # The lists read ``__dict__``: a field may have the name of a method.

    def keys(self, include_dspy: bool = False) -> list[str]:
        """Return the field names; names with the prefix ``HIDDEN`` on request only."""
        return [name for name in self.__dict__ if include_dspy or not name.startswith(HIDDEN)]

    def values(self, include_dspy: bool = False) -> list[Any]:
        """Return the field values, in the order of ``keys``."""
        return [value for name, value in self.__dict__.items() if include_dspy or not name.startswith(HIDDEN)]

    def items(self, include_dspy: bool = False) -> list[tuple[str, Any]]:
        """Return names with values."""
        return [(name, value) for name, value in self.__dict__.items() if include_dspy or not name.startswith(HIDDEN)]
