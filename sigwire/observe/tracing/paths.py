"""Paths of the modules of a program, for listeners. ``modules`` is above this room: programs are used by their methods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["name_in", "paths_of"]


def paths_of(module: Any) -> Mapping[int, str]:
    """Return the paths of the modules of a program, by the id of the module; "" for the program itself."""
    try:
        parts = reversed([(name, part) for name, part in module.named_sub_modules()])
    except Exception:  # attributes of a user's module may raise
        return {id(module): ""}
    return {id(part): name.removeprefix("self").removeprefix(".") for name, part in parts}


def name_in(paths: Mapping[int, str], module: object) -> str:
    """Return the path of a module; for the program itself, the name of its class."""
    return paths.get(id(module)) or type(module).__name__
