"""What ``isinstance`` cannot say to type checkers: mappings and sequences of anything, out of users' and models' data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import TypeIs

__all__ = ["is_mapping", "is_sequence"]


def is_mapping(value: object) -> TypeIs[Mapping[str, Any]]:
    """Whether a value is a mapping; its keys are taken for strings.

    >>> is_mapping({}), is_mapping([])
    (True, False)
    """
    return isinstance(value, Mapping)


def is_sequence(value: object) -> TypeIs[Sequence[Any]]:
    """Whether a value is a sequence other than text.

    >>> is_sequence([1]), is_sequence("ab")
    (True, False)
    """
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))
