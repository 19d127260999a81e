"""Save and load programs: one JSON object, ``{parameter name: its state, ...}``.

Loading has two phases. ``prepare`` checks the state of every parameter and returns the changes as functions; the caller runs
the changes only if all checks passed.
"""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as short
from typing import Any, TypeGuard, cast

from sigwire.core.json import JsonObject, JsonValue, loads
from sigwire.core.lazy import version
from sigwire.core.narrow import is_mapping
from sigwire.core.record import FieldValues, Record, to_plain
from sigwire.errors import MissingState, StateError, warn_user
from sigwire.files.whole import write_whole
from sigwire.modules.tree.walk import Parameter
from sigwire.signatures.fields import SignatureSpec

__all__ = [
    "NoStateFile", "SavedReport", "file_metadata", "plain_records", "prepare", "prepare_one", "read",
    "report_of", "warn_of_refusal", "with_model", "write",
]  # fmt: skip

_METADATA, _REPORT = "metadata", "optimization"


@dataclass(frozen=True, slots=True, repr=False)
class SavedReport:
    """The report of a search in the file of its program, as JSON; ``program.optimization`` decodes it when it is read."""

    data: JsonObject

    def to_json(self) -> JsonObject:
        """Return the JSON."""
        return self.data

    def decode(self) -> Any:
        """Return the ``OptimizationReport``. Raises ``StateError`` for JSON that no search wrote."""
        # Modules do not import searches; the front door is loaded with any module, and imports the class by its name.
        return sys.modules["sigwire"].OptimizationReport.from_json(self.data)

    def __deepcopy__(self, memo: object) -> SavedReport:
        return self


class NoStateFile(StateError, FileNotFoundError):
    """The file of a saved program, or the folder to save it in, does not exist or cannot be read."""


def plain_records(kind: str, records: Iterable[object], spec: SignatureSpec | None = None) -> list[JsonValue]:
    """Return demos and traces as JSON data: fields of ``spec`` by their types, as in a prompt, others by their own."""
    return [_plain_record(f"{kind}[{number}]", record, spec) for number, record in enumerate(records)]


def _plain_record(name: str, record: object, spec: SignatureSpec | None) -> JsonValue:
    fields = record.__dict__ if isinstance(record, Record) else record
    try:
        if spec is not None and isinstance(fields, Mapping):
            return spec.dump(cast(FieldValues, fields))
        return cast(JsonValue, to_plain(record))
    except (ValueError, RecursionError) as error:
        raise StateError(f"{name} of a predictor cannot be saved. {error} Or remove it.") from error


def prepare(
    owner: str, parameters: Mapping[str, Parameter], state: FieldValues, unsafe: bool, held: Collection[str] = ()
) -> list[Callable[[], None]]:
    """Check a state against the parameters of ``owner``; return the changes that apply it.

    ``held``: the names of parameters in tools. If the state lacks one, it is kept as it is, with a warning: earlier versions
    did not save it.
    """
    _check_names(owner, state)
    names = {name for name in state if name != _METADATA}
    if kept := sorted(set(held) - names):
        warn_user(
            f"The saved state has nothing for {', '.join(kept)} (loading {owner}): what its tools hold is kept as it is. Save "
            "the program again to silence this."
        )
    # A state has the predictor of summaries only if it was changed.
    absent = {
        name: restore for name in parameters.keys() - names if (restore := _restore_of(parameters[name])) is not None
    }
    parameters = {name: each for name, each in parameters.items() if name not in kept and name not in absent}
    if missing := sorted(parameters.keys() - names):
        raise MissingState(
            f"The saved state has nothing for {', '.join(missing)} (loading {owner}; it has {', '.join(sorted(names))}). "
            "Load it into the program that saved it. Nothing was changed."
        )
    if unknown := sorted(names - parameters.keys()):
        raise StateError(
            f"The saved state has {', '.join(unknown)}, which {owner} does not have (loading it). "
            "Load it into the program that saved it. Nothing was changed."
        )
    changes = [prepare_one(name, parameter, state[name], unsafe) for name, parameter in parameters.items()]
    return [*changes, *absent.values()]


def _restore_of(parameter: Parameter) -> Callable[[], None] | None:
    found: Callable[[], None] | None = getattr(parameter, "restore_default", None)
    return found


def _check_names(owner: str, state: object) -> None:
    if not is_mapping(state) or not all(isinstance(name, str) for name in cast("Mapping[object, object]", state)):
        raise StateError(
            f"This is no state of a program but {short(state)} (loading {owner}). Pass what dump_state returned. Nothing was "
            "changed."
        )


def prepare_one(name: str, parameter: Parameter, state: object, unsafe: bool) -> Callable[[], None]:
    """Check the state of one parameter; return the change that applies it."""
    try:
        return parameter.prepare_state(cast(FieldValues, state), allow_unsafe_lm_state=unsafe)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError) as error:
        raise StateError(
            f"The saved state of {name!r} cannot be used: {_unended(error)} (loading it). Nothing was changed."
        ) from error


def _unended(error: Exception) -> str:
    return str(error).removesuffix(".")


def with_model(state: FieldValues, lm: object) -> JsonObject:
    """Return the state of a program or a predictor with ``lm`` in place of each model that it has.

    >>> with_model({"draft": {"demos": [], "lm": {"model": "m"}}, "check": {"lm": None}}, "mine")
    {'draft': {'demos': [], 'lm': 'mine'}, 'check': {'lm': None}}
    """
    _check_names("a program", state)
    parts = {name: with_model(part, lm) if _has_model(part) else part for name, part in state.items()}
    return cast(JsonObject, {**parts, "lm": lm} if isinstance(parts.get("lm"), Mapping) else parts)


def _has_model(part: object) -> TypeGuard[FieldValues]:
    return isinstance(part, Mapping) and isinstance(cast("FieldValues", part).get("lm"), Mapping)


def warn_of_refusal(name: str, check: Callable[[], object]) -> None:
    """Warn if the check of a load refuses what was just saved: a model of another class, or at an address."""
    try:
        check()
    except StateError as error:
        reason = str(error).partition(" (loading its state)")[0]
        warn_user(
            f"{name} is saved, and a plain load refuses the file: {reason}. Load it with lm=, or with "
            "allow_unsafe_lm_state=True."
        )


def report_of(program: object) -> JsonObject | None:
    """Return the report of the search that made a program as JSON; ``None`` without one."""
    report: Any = vars(program).get(_REPORT)
    return report.to_json() if hasattr(report, "to_json") else None


def write(path: str | os.PathLike[str], state: JsonObject, report: JsonObject | None = None) -> None:
    """Write a state, the versions of Python and sigwire, and the report of a search as JSON."""
    target = _json_path(path)
    if _METADATA in state:
        raise StateError(
            f"A parameter named {_METADATA!r} cannot be saved: the file stores versions under that name. Rename it."
        )
    known: JsonObject = {} if report is None else {_REPORT: report}
    text = _text({**state, _METADATA: {**file_metadata(), **known}})
    if not target.parent.is_dir():
        raise NoStateFile(f"There is no directory {str(target.parent)!r} to save {target.name!r} in. Create it first.")
    write_whole(target, text + "\n")


def file_metadata() -> JsonObject:
    """Return the versions that write a file. Readers look each of ``dependency_versions`` up: it has names that all know.

    >>> sorted(file_metadata())
    ['dependency_versions', 'sigwire']
    """
    return {"dependency_versions": {"python": ".".join(map(str, sys.version_info[:2]))}, "sigwire": version()}


def _text(state: JsonObject) -> str:
    try:
        text = json.dumps(state, ensure_ascii=False, indent=2, allow_nan=False)
    except ValueError as error:
        raise StateError(
            f"The program has no JSON form: {error} (saving {_not_finite(state)}). A demo holds NaN or infinity; remove it."
        ) from error
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, as in undecodable file names: JSON escapes can hold it
        text = json.dumps(state, indent=2)
    return text


def _not_finite(value: JsonValue, name: str = "") -> str:
    """Return the name of the first number that JSON lacks; "" if there is none."""
    if isinstance(value, float):
        return "" if math.isfinite(value) else name
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    found = (_not_finite(item, f"{name}[{key}]" if isinstance(key, int) else f"{name}.{key}") for key, item in inside)
    return next(filter(None, found), "").lstrip(".")


def read(path: str | os.PathLike[str]) -> tuple[JsonObject, SavedReport | None]:
    """Read a saved state, without its metadata, and the report of the search that made the program."""
    source = _json_path(path)
    try:
        state = loads(source.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise NoStateFile(f"{str(source)!r}: {error.strerror} (loading it in {Path.cwd()}). Check the path.") from error
    except ValueError as error:
        raise StateError(f"{source.name} is not a saved program: {error} (loading it). Nothing was changed.") from error
    if not isinstance(state, dict):
        raise StateError(
            f"{source.name} is not a saved program: its JSON is not an object (loading it). Nothing was changed."
        )
    entries = cast(JsonObject, state)
    metadata = entries.get(_METADATA)
    report = metadata.get(_REPORT) if isinstance(metadata, dict) else None
    rest = {name: entry for name, entry in entries.items() if name != _METADATA}
    return rest, SavedReport(report) if isinstance(report, dict) else None


def _json_path(path: str | os.PathLike[str]) -> Path:
    target = Path(path)
    if target.suffix != ".json":
        raise StateError(
            f"{target.name!r} does not end in .json (saving or loading a program). Programs are saved as JSON. Pickle files "
            "are not supported, because loading one runs code."
        )
    return target
