"""Type guards for untyped data of users and models, which ``isinstance`` cannot narrow to element types."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeGuard

from typing_extensions import TypeIs

__all__ = ["is_array", "is_items", "is_mapping", "is_object", "is_sequence"]


def is_mapping(value: object) -> TypeIs[Mapping[str, Any]]:
    """Return True for a mapping. Its keys are assumed to be strings.

    >>> is_mapping({}), is_mapping([])
    (True, False)
    """
    return isinstance(value, Mapping)


def is_sequence(value: object) -> TypeIs[Sequence[Any]]:
    """Return True for a sequence other than text and bytes.

    >>> is_sequence([1]), is_sequence("ab")
    (True, False)
    """
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


def is_items(value: object) -> TypeGuard[Sequence[Any]]:
    """Return True for a list or a tuple, which is an array in JSON."""
    return isinstance(value, (list, tuple))


def is_object(value: object) -> TypeIs[dict[str, Any]]:
    """Return True for a JSON object: a ``dict``."""
    return isinstance(value, dict)


def is_array(value: object) -> TypeIs[list[Any]]:
    """Return True for a JSON array: a ``list``."""
    return isinstance(value, list)
