"""Reading files that DSPy saved: states without field names, DSPy's models, and the loops of its agents.

Each function returns a state of the core's form and leaves the given state as it is.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping
from contextlib import suppress
from importlib.metadata import version
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sigwire.core.narrow import is_mapping, is_sequence
from sigwire.errors import StateError, warn_user
from sigwire.modules.programs.files import save_program

if TYPE_CHECKING:
    from sigwire.modules.module import Module

__all__ = [
    "PROGRAM_FILE", "name_fields", "read_lm", "read_state", "read_states", "warn_of_endpoints",
    "write_program",
]  # fmt: skip

PROGRAM_FILE = "program.json"
"""The file of a whole program, in its folder."""


def write_program(program: Module, folder: str | PathLike[str]) -> None:
    """Write a whole program to a folder, which is made; ``metadata.json`` has the versions that wrote it.

    Raises ``StateError`` if the path is that of a file.
    """
    if Path(folder).suffix in (".json", ".pkl"):
        raise StateError(f"{folder} must be a directory (saving a program). Pass a folder, or save_program=False.")
    Path(folder).mkdir(parents=True, exist_ok=True)
    save_program(program, Path(folder, PROGRAM_FILE))
    versions = {"python": platform.python_version(), "sigwire": version("sigwire")}
    Path(folder, "metadata.json").write_text(json.dumps({"dependency_versions": versions}), encoding="utf-8")


def read_states(parameters: Mapping[str, Any], state: Any) -> Any:
    """Return the state of a program; a loop of DSPy's agents is replaced by the loop of the program, and warns."""
    if not is_mapping(state):
        return state
    read = dict(state)
    for name, parameter in parameters.items():
        saved: Any = state.get(name)
        if _is_foreign_loop(parameter, saved):
            read[name] = {**parameter.dump_state(), "lm": read_lm(saved.get("lm"))}
            extraction = f"{name.removesuffix('react')}extract.predict"  # DSPy's ReActV2 has none
            if extraction in parameters and extraction not in read:
                read[extraction] = {**parameters[extraction].dump_state(), "lm": read[name]["lm"]}
            warn_user(
                f"The saved loop of {name!r} asks for next_thought (DSPy's ReAct: next_tool_name, next_tool_args), which this "
                "ReAct does not; its instructions and demos were left out, a saved extraction was loaded. Save the program "
                "again to silence this."
            )
        elif is_mapping(saved) and hasattr(parameter, "signature"):
            with suppress(StateError):  # the parameter raises the error with its name
                read[name] = read_state(parameter.signature, saved)
    return read


def read_state(signature: Any, state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the state of a predictor with this signature."""
    if is_mapping(saved := state.get("signature")):
        state = {**state, "signature": name_fields(signature, saved)}
    return {**state, "lm": read_lm(state["lm"])} if "lm" in state else state


def read_lm(state: Any) -> Any:
    """Return the state of a model: DSPy's ``LM`` is that of the door, a user's class keeps its name.

    >>> read_lm({"_dspy_lm_class": "dspy.clients.lm.LM", "model": "openai/gpt-5-mini", "model_type": "responses"})
    {'class': 'sigwire.dspy.lm.LM', 'model': 'openai/gpt-5-mini', 'model_type': 'responses'}
    """
    if not is_mapping(state) or "class" in state:
        return state
    path = state.get("_dspy_lm_class") or _LM
    given = {name: value for name, value in state.items() if name != "_dspy_lm_class"}
    return {"class": "sigwire.dspy.lm.LM" if path == _LM else path, **given}


def warn_of_endpoints(state: object) -> None:
    """Warn of an endpoint of the model in the state of a predictor: it would get the key, and is not loaded."""
    lm = state.get("lm") if is_mapping(state) else None
    found = [name for name in ("api_base", "base_url", "model_list") if is_mapping(lm) and name in lm]
    if found:
        warn_user(
            f"The saved model has {', '.join(found)}, which would get your key and is not loaded. Set it in your code, or "
            "trust the file with allow_unsafe_lm_state=True."
        )


_LM = "dspy.clients.lm.LM"


def name_fields(signature: Any, state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a signature's state whose fields have names; fields without names are matched by position.

    Raises ``StateError`` if their number differs.

    >>> from sigwire.signatures.signature import Signature
    >>> name_fields(Signature("a -> b"), {"fields": [{"prefix": "A:"}, {"prefix": "B:"}]})["fields"]
    [{'prefix': 'A:', 'name': 'a'}, {'prefix': 'B:', 'name': 'b'}]
    """
    saved, spec = state.get("fields"), signature.spec
    fields = [field for field in saved if is_mapping(field)] if is_sequence(saved) else []
    if not is_sequence(saved) or len(fields) < len(saved) or all("name" in field for field in fields):
        return state  # the core reads it, or refuses it
    if len(fields) != len(spec.fields):
        raise StateError(
            f"The saved signature has {len(fields)} fields without names, and {spec.name} has {len(spec.fields)} "
            f"({', '.join(field.name for field in spec.fields)}). Load it into the program that saved it."
        )
    named = [{**texts, "name": field.name} for field, texts in zip(spec.fields, fields, strict=True)]
    return {**state, "fields": named}


def _is_foreign_loop(parameter: Any, state: Any) -> bool:
    """Return True if the state of an agent's loop has a field that only loops of DSPy have."""
    signature = getattr(parameter, "signature", None)
    if signature is None or "next_thought" in signature.spec.by_name:
        return False
    try:
        return "${next_thought}" in [field["description"] for field in state["signature"]["fields"]]
    except (KeyError, TypeError):
        return False
