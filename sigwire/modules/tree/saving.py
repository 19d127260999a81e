"""Saved programs: one JSON object, ``{parameter name: its state, ...}``; read whole and checked before anything changes.

Loading is in two halves. ``prepare`` checks every parameter's state and gives the changes as functions; only when all of them
are there does the caller run them. A file is written beside its target and then moved onto it.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol, cast

from sigwire.core.json import JsonObject, loads
from sigwire.core.record import to_plain
from sigwire.errors import MissingState, StateError

__all__ = ["Stateful", "dump", "plain", "prepare", "prepare_one", "read", "write"]

_METADATA = "metadata"


class Stateful(Protocol):
    """What a parameter offers for saving and loading."""

    def dump_state(self) -> JsonObject: ...

    def prepare_state(self, state: Mapping[str, Any], *, allow_unsafe_lm_state: bool) -> Callable[[], None]: ...


def dump(parameter: Any) -> JsonObject:
    """A parameter's state."""
    return cast(Stateful, parameter).dump_state()


def plain(kind: str, records: list[Any]) -> list[Any]:
    """Demos and the like as JSON data: records become objects, pydantic values what pydantic writes."""
    return [_plain_one(f"{kind}[{number}]", record) for number, record in enumerate(records)]


def _plain_one(name: str, record: Any) -> Any:
    try:
        return to_plain(record)
    except (ValueError, RecursionError) as fault:
        raise StateError(
            f"{name} of a predictor cannot be saved: {fault}. Take it out, or give it plain values."
        ) from fault


def prepare(
    owner: str, parameters: Mapping[str, Any], state: Mapping[str, Any], unsafe: bool
) -> list[Callable[[], None]]:
    """Check a state against the parameters it is for; gives the changes to make."""
    names = {name for name in state if name != _METADATA}
    if missing := sorted(parameters.keys() - names):
        raise MissingState(
            f"The saved state has nothing for {', '.join(missing)} (loading {owner}; it has {', '.join(sorted(names))}). "
            "Load it into the program that saved it. Nothing was changed."
        )
    if unknown := sorted(names - parameters.keys()):
        raise StateError(
            f"The saved state has {', '.join(unknown)}, which {owner} does not have. "
            "Load it into the program that saved it. Nothing was changed."
        )
    return [prepare_one(name, parameter, state[name], unsafe) for name, parameter in parameters.items()]


def prepare_one(name: str, parameter: Any, state: Any, unsafe: bool) -> Callable[[], None]:
    """Check one parameter's state; gives the change to make."""
    try:
        return cast(Stateful, parameter).prepare_state(state, allow_unsafe_lm_state=unsafe)
    except ValueError as fault:
        raise StateError(f"The saved state of {name!r} cannot be used: {fault} Nothing was changed.") from fault


def write(path: str | os.PathLike[str], state: JsonObject) -> None:
    """Write a state with the versions that wrote it."""
    target = _json_path(path)
    if _METADATA in state:
        raise StateError(
            f"A parameter named {_METADATA!r} cannot be saved: files keep their versions there. Rename it."
        )
    versions = {"python": ".".join(map(str, sys.version_info[:3])), "sigwire": _version()}
    text = _text({**state, _METADATA: {"dependency_versions": versions}})
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"There is no directory {str(target.parent)!r} to save {target.name!r} in. Make it first."
        )
    beside = target.with_name(f".{target.name}.{os.urandom(16).hex()}.tmp")
    try:
        beside.write_text(text + "\n", encoding="utf-8")
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


def _text(state: Mapping[str, Any]) -> str:
    try:
        text = json.dumps(state, ensure_ascii=False, indent=2, allow_nan=False)
    except ValueError as fault:
        raise StateError(
            f"The program cannot be saved as JSON: {fault}. A demo holds NaN or infinity; take it out."
        ) from fault
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, as in odd file names: JSON's escapes can hold it
        text = json.dumps(state, indent=2)
    return text


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a saved state, without its metadata."""
    source = _json_path(path)
    try:
        state = loads(source.read_text(encoding="utf-8"))
    except ValueError as fault:
        raise StateError(f"{source.name} is not a saved program: {fault}. Nothing was changed.") from fault
    if not isinstance(state, dict):
        raise StateError(f"{source.name} is not a saved program: its JSON is no object. Nothing was changed.")
    return {name: entry for name, entry in cast("dict[str, Any]", state).items() if name != _METADATA}


def _json_path(path: str | os.PathLike[str]) -> Path:
    target = Path(path)
    if target.suffix != ".json":
        raise StateError(
            f"{target.name!r} does not end in .json (saving or loading a program). Programs are JSON; pickle files, which "
            "can run any code, are neither written nor read."
        )
    return target


def _version() -> str:
    from importlib import metadata  # slow to import, and only for saving

    try:
        return metadata.version("sigwire")
    except metadata.PackageNotFoundError:
        return "unknown"
