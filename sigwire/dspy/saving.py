"""Reading files that DSPy saved: states without field names, DSPy's models, and the loops of its agents.

Each function returns a state of the core's form and leaves the given state as it is.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

from sigwire.core.narrow import is_mapping, is_sequence
from sigwire.errors import StateError, warn_user
from sigwire.files.whole import write_whole
from sigwire.modules.programs.files import save_program
from sigwire.modules.tree.saving import file_metadata

if TYPE_CHECKING:
    from sigwire.modules.module import Module

__all__ = [
    "PROGRAM_FILE", "name_fields", "read_lm", "read_state", "read_states", "text_loops",
    "write_program", "written_classes",
]  # fmt: skip

PROGRAM_FILE = "program.json"
"""The file of a whole program, in its folder."""
_written: dict[Path, WeakValueDictionary[tuple[str, str], type]] = {}


def write_program(program: Module, folder: str | PathLike[str]) -> None:
    """Write a whole program to a folder, which is made; ``metadata.json`` has the versions that wrote it.

    Raises ``StateError`` if the path is that of a file.
    """
    if Path(folder).suffix in (".json", ".pkl"):
        raise StateError(f"{folder} must be a directory (saving a program). Pass a folder, or save_program=False.")
    Path(folder).mkdir(parents=True, exist_ok=True)
    save_program(program, Path(folder, PROGRAM_FILE))
    write_whole(Path(folder, "metadata.json"), json.dumps(file_metadata()))
    _written[Path(folder).resolve()] = WeakValueDictionary(_classes(program))


def written_classes(folder: str | PathLike[str]) -> Mapping[tuple[str, str], Any]:
    """Return the classes of the program that this process wrote to a folder, by part, "module" and "signature"."""
    return _written.get(Path(folder).resolve(), {})


def _classes(program: Module) -> Iterator[tuple[tuple[str, str], type]]:
    for name, part in program.named_sub_modules():
        yield (name, "module"), type(part)
        if isinstance(signature := getattr(part, "signature", None), type):
            yield (name, "signature"), signature


def read_states(program: Module, state: Any) -> Any:
    """Return the state of a program; of a loop that the agent does not run it has the task, demos and model, and warns."""
    if not is_mapping(state):
        return state
    read, parameters = dict(state), dict[str, Any](program.named_parameters())
    agents: list[Any] = [part for _, part in program.named_sub_modules() if hasattr(part, "react")]
    tasks = {id(agent.react): agent.signature.instructions for agent in agents if _is_signature(agent)}
    for name, parameter in parameters.items():
        saved: Any = state.get(name)
        if _is_foreign_loop(parameter, saved):
            read[name] = _read_loop(parameter.dump_state(), saved, tasks.get(id(parameter)))
            extraction = f"{name.removesuffix('react')}extract.predict"  # DSPy's ReActV2 has none
            if extraction in parameters and extraction not in read:
                read[extraction] = {**parameters[extraction].dump_state(), "lm": read[name]["lm"]}
            warn_user(
                f"The saved loop of {name!r} asks for next_thought (DSPy's ReAct: next_tool_name, next_tool_args), which this "
                "ReAct does not. Of its instructions the task was loaded, if the task here was not changed, and DSPy's text "
                "about the loop was left out; the model is not shown its demos. Save the program again to silence this."
            )
        elif is_mapping(saved) and hasattr(parameter, "signature"):
            with suppress(StateError):  # the parameter raises the error with its name
                read[name] = read_state(parameter.signature, saved)
    return read


@contextmanager
def text_loops(program: Module, state: Any) -> Generator[None]:
    """Make agents run DSPy's loop if the state has one of theirs; an error of the block undoes it."""
    undo: list[Callable[[], None]] = []
    parameters = dict[str, Any](program.named_parameters()) if is_mapping(state) else {}
    saved = [parameters[name] for name in parameters if _is_foreign_loop(parameters[name], state.get(name), _TEXT)]
    agents: list[Any] = [part for _, part in program.named_sub_modules() if hasattr(part, "takes_text_loop")]
    for agent in agents if saved else ():
        if any(agent.react is each for each in saved) and agent.takes_text_loop():
            undo.append(agent.use_text_loop())
    try:
        yield
    except BaseException:
        for change in undo:
            change()
        raise


def read_state(signature: Any, state: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the state of a predictor with this signature."""
    if is_mapping(saved := state.get("signature")):
        state = {**state, "signature": name_fields(signature, saved)}
    return {**state, "lm": read_lm(state["lm"])} if "lm" in state else state


def read_lm(state: Any) -> Any:
    """Return the state of a model, with its class under the core's key; DSPy's ``LM`` if it names none.

    >>> read_lm({"_dspy_lm_class": "dspy.clients.lm.LM", "model": "openai/gpt-5-mini", "model_type": "responses"})
    {'class': 'dspy.clients.lm.LM', 'model': 'openai/gpt-5-mini', 'model_type': 'responses'}
    """
    if not is_mapping(state) or "class" in state:
        return state
    given = {name: value for name, value in state.items() if name != "_dspy_lm_class"}
    return {"class": state.get("_dspy_lm_class") or "dspy.clients.lm.LM", **given}


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


def _read_loop(own: Mapping[str, Any], saved: Mapping[str, Any], own_task: str | None) -> dict[str, Any]:
    """Return a loop's own state with the model and the demos of a loop of DSPy, and its task instead of the own one."""
    text: str = own["signature"]["instructions"]
    task = str(saved["signature"].get("instructions") or "").partition(_LOOP_TEXT)[0].strip()
    if task and own_task and text.startswith(own_task):
        text = task + text.removeprefix(own_task)
    signature = {**own["signature"], "instructions": text}
    return {**own, "signature": signature, "demos": saved.get("demos", []), "lm": read_lm(saved.get("lm"))}


def _is_signature(agent: Any) -> bool:
    return hasattr(getattr(agent, "signature", None), "instructions")


_LOOP_TEXT = "You are an Agent. "
"""Where DSPy's text about the loop begins, behind the task."""


_TEXT = "next_tool_name"
"""The field that only DSPy's loop in text has."""


def _is_foreign_loop(parameter: Any, state: Any, field: str = "next_thought") -> bool:
    """Return True if the state of an agent's loop has a field that only loops of DSPy have."""
    signature = getattr(parameter, "signature", None)
    if signature is None or "next_thought" in signature.spec.by_name:
        return False
    try:
        return f"${{{field}}}" in [each["description"] for each in state["signature"]["fields"]]
    except (KeyError, TypeError):
        return False
