"""Examples of an evaluation: their ids, and the checks of a devset before any call.

The id of an example is its field ``id``, else 10 hex digits of the SHA-256 of its content.
"""

from __future__ import annotations

import inspect
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any, cast

from sigwire.core.example import Example
from sigwire.core.record import FieldValue
from sigwire.errors import InputError, suggest, warn_user
from sigwire.evaluate.plain import plain_fields, written_fields
from sigwire.modules.field_types import NO_TYPES, FieldTypes
from sigwire.modules.module import Module, unknown_policy
from sigwire.signatures.fields import SignatureSpec

__all__ = ["check_devset", "check_program", "content_digest", "example_ids", "split_fields"]


def split_fields(example: Example) -> tuple[dict[str, FieldValue], dict[str, FieldValue]]:
    """Return the inputs and the labels of an example of a devset. (``inputs()`` and ``labels()`` make two more examples.)"""
    keys = example._input_keys  # pyright: ignore[reportPrivateUsage]
    if type(example) is not Example or keys is None:
        return type(example).inputs(example).__dict__, type(example).labels(example).__dict__
    fields = example.__dict__
    return {k: v for k, v in fields.items() if k in keys}, {k: v for k, v in fields.items() if k not in keys}


def example_ids(examples: Sequence[Example], types: FieldTypes = NO_TYPES) -> tuple[str, ...]:
    """Return the ids of examples, each once. Examples of equal content get the suffixes ``-2``, ``-3`` and a warning.

    ``types``: see ``content_digest``.

    Raises ``InputError`` if two examples have one ``id``.

    >>> example_ids([Example(question="2+2?"), Example(id=7)])
    ('edde7d758c', '7')
    """
    given = Counter(str(example["id"]) for example in examples if "id" in example)
    if twice := next((own for own, count in given.items() if count > 1), None):
        raise InputError(f"Two examples have the id {twice!r} (reading the devset). Records need ids of their own.")
    seen = Counter[str]()
    ids = tuple(str(example["id"]) if "id" in example else _content_id(example, seen, types) for example in examples)
    if copies := sum(count - 1 for count in seen.values()):
        warn_user(f"{copies} of {len(ids)} examples are copies of others (reading the devset); each is evaluated.")
    return ids


def _content_id(example: Example, seen: Counter[str], types: FieldTypes) -> str:
    digest = content_digest(example, types)[:10]
    seen[digest] += 1
    return digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"


_canonical_json = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode


def content_digest(example: Mapping[str, object] | Example, types: FieldTypes = NO_TYPES) -> str:
    """Return the SHA-256 of the content of an example, in hexadecimal digits.

    ``types``: of fields whose values only the declared type writes; other values are written by their class.
    """
    fields = example.__dict__ if isinstance(example, Example) else example
    written = written_fields(fields)
    typed = {name: fields[name] for name, form in written.forms.items() if form == "text" and name in types}
    text = _canonical_json({**written.plain, **(plain_fields(typed, types) if typed else {})})
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def check_program(program: object) -> None:
    """Raise ``InputError`` for a program that cannot be called, and for a class.

    >>> check_program(None)
    Traceback (most recent call last):
    sigwire.errors.InputError: A program is a module or a function, not None (starting the evaluation). ...
    """
    if isinstance(program, type) or not callable(program):
        hint = f"{program.__name__}()" if isinstance(program, type) else 'Predict("question -> answer")'
        raise InputError(
            f"A program is a module or a function, not {program!r:.80} (starting the evaluation). Pass {hint}."
        )


def check_devset(examples: Sequence[object], program: object = None, name: str = "devset") -> tuple[Example, ...]:
    """Return the examples of a devset. Raises ``InputError``, before any call, for an empty devset, for an example without
    declared inputs or without a value for one, and for inputs that ``program`` does not take. ``name``: of the set, for errors.

    >>> check_devset([Example(question="2+2?")])
    Traceback (most recent call last):
    sigwire.errors.InputError: Example 0 of the devset declares no inputs (reading the devset). Write example.with_inputs(...
    """
    if isinstance(examples, (str, Mapping)) or not examples:
        raise InputError(
            f"The {name} is empty or no list of Examples (reading the {name}). Pass {name}=[Example(...), ...]."
        )
    checked: list[Example] = []
    known: set[frozenset[str]] = set()
    for index, example in enumerate(examples):
        names = _input_names(index, example, name)
        checked.append(cast(Example, example))
        if program is not None and names not in known:
            known.add(names)
            _check_inputs(index, names, program, name)
    return tuple(checked)


def _input_names(index: int, example: object, part: str) -> frozenset[str]:
    if not isinstance(example, Example):
        raise InputError(
            f"Example {index} of the {part} is a {type(example).__name__} (reading the {part}). Write "
            'Example(question="...", answer="...").with_inputs("question").'
        )
    names = example._input_keys  # pyright: ignore[reportPrivateUsage]
    if names is None:
        raise InputError(
            f"Example {index} of the {part} declares no inputs (reading the {part}). Write example.with_inputs('question')."
        )
    if not names <= example.__dict__.keys():
        missing = min(names - example.__dict__.keys())
        raise InputError(
            f"Example {index} of the {part} has no value for its input {missing!r} (reading the {part}). "
            f"{suggest(missing, example.__dict__)}It has {', '.join(example.__dict__) or 'no fields'}."
        )
    return names


def _check_inputs(index: int, names: frozenset[str], program: object, part: str) -> None:
    """Compare the inputs of an example with those of a signature, or with the parameters of the user's function."""
    name = type(program).__name__ if isinstance(program, Module) else getattr(program, "__name__", "the program")
    spec = getattr(getattr(program, "signature", None), "spec", None)
    if spec is None:
        problem = _parameter_problem(names, program)
    elif unknown_policy(program) == "error":
        problem = _signature_problem(names, spec)
    else:  # calls leave unknown inputs out
        problem = _signature_problem(names.intersection(field.name for field in spec.inputs), spec)
    if problem is not None:
        raise InputError(f"Example {index} of the {part} does not fit {name}: {problem} (reading the {part}).")


def _signature_problem(names: frozenset[str], spec: SignatureSpec) -> str | None:
    takes = [field.name for field in spec.inputs]
    if unknown := sorted(names.difference(takes)):
        return f"the input {unknown[0]!r} is unknown. {suggest(unknown[0], takes)}The inputs are {', '.join(takes)}"
    if spec.history_field is not None and spec.history_field.name in names:
        return None  # a continued conversation needs no other input
    return next((f"the input {name!r} is missing" for name in _needed(spec) if name not in names), None)


def _needed(spec: SignatureSpec) -> list[str]:
    return [field.name for field in spec.inputs if not field.has_default and field is not spec.history_field]


def _parameter_problem(names: frozenset[str], program: object) -> str | None:
    function = program
    if isinstance(program, Module):
        function = _own_entry(program, "forward") or _own_entry(program, "aforward")
    try:
        signature = inspect.signature(cast("Callable[..., Any]", function))
    except (TypeError, ValueError):  # steps of a library module, or a function of C
        return None
    try:
        signature.bind(**dict.fromkeys(names))
    except TypeError as error:
        return str(error)
    return None


def _own_entry(program: Module, name: str) -> Callable[..., object] | None:
    """Return ``forward`` or ``aforward`` of a user's module; modules of sigwire take any arguments there."""
    entry = getattr(program, name, None)
    module = str(getattr(entry, "__module__", "sigwire."))
    return None if module.startswith("sigwire.") else entry
