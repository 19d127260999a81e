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
from sigwire.errors import InputError, suggest, warn_user
from sigwire.evaluate.plain import plain_fields
from sigwire.modules.module import Module

__all__ = ["check_devset", "content_digest", "example_ids"]


def example_ids(examples: Sequence[Example]) -> tuple[str, ...]:
    """Return the ids of examples, each once. Examples of equal content get the suffixes ``-2``, ``-3`` and a warning.

    Raises ``InputError`` if two examples have one ``id``.

    >>> example_ids([Example(question="2+2?"), Example(id=7)])
    ('edde7d758c', '7')
    """
    given = [str(example["id"]) if "id" in example else None for example in examples]
    twice = [each for each, count in Counter(each for each in given if each is not None).items() if count > 1]
    if twice:
        raise InputError(f"Two examples have the id {twice[0]!r} (reading the devset). Records need ids of their own.")
    seen = Counter[str]()
    ids: list[str] = []
    for example, own in zip(examples, given, strict=True):
        if own is None:
            digest = content_digest(example)[:10]
            seen[digest] += 1
            own = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
        ids.append(own)
    if copies := sum(count - 1 for count in seen.values()):
        warn_user(f"{copies} of {len(ids)} examples are copies of others (reading the devset); each is evaluated.")
    return tuple(ids)


def content_digest(example: Mapping[str, object] | Example) -> str:
    """Return the SHA-256 of the content of an example, in hexadecimal digits."""
    fields = example.__dict__ if isinstance(example, Example) else example
    text = json.dumps(plain_fields(fields), ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def check_devset(examples: Sequence[object], program: object = None) -> tuple[Example, ...]:
    """Return the examples of a devset. Raises ``InputError``, before any call, for an empty devset, for an example without
    declared inputs or without a value for one, and for inputs that ``program`` does not take.

    >>> check_devset([Example(question="2+2?")])
    Traceback (most recent call last):
    sigwire.errors.InputError: Example 0 of the devset declares no inputs (reading the devset). Write example.with_inputs(...
    """
    if isinstance(examples, (str, Mapping)) or not examples:
        raise InputError(
            "The devset is empty or no list of Examples (reading the devset). Pass devset=[Example(...), ...]."
        )
    checked: list[Example] = []
    known: set[frozenset[str]] = set()
    for index, example in enumerate(examples):
        names = _input_names(index, example)
        checked.append(cast(Example, example))
        if program is not None and names not in known:
            known.add(names)
            _check_inputs(index, names, program)
    return tuple(checked)


def _input_names(index: int, example: object) -> frozenset[str]:
    if not isinstance(example, Example):
        raise InputError(
            f"Example {index} of the devset is a {type(example).__name__} (reading the devset). Write "
            'Example(question="...", answer="...").with_inputs("question").'
        )
    names = example._input_keys  # pyright: ignore[reportPrivateUsage]
    if names is None:
        raise InputError(
            f"Example {index} of the devset declares no inputs (reading the devset). Write example.with_inputs('question')."
        )
    if missing := sorted(names - example.__dict__.keys()):
        raise InputError(
            f"Example {index} of the devset has no value for its input {missing[0]!r} (reading the devset). "
            f"{suggest(missing[0], example.__dict__)}It has {', '.join(example.__dict__) or 'no fields'}."
        )
    return names


def _check_inputs(index: int, names: frozenset[str], program: object) -> None:
    """Compare the inputs of an example with those of a signature, or with the parameters of the user's function."""
    spec = getattr(getattr(program, "signature", None), "spec", None)
    name = type(program).__name__ if isinstance(program, Module) else getattr(program, "__name__", "the program")
    if spec is not None:
        takes = [field.name for field in spec.inputs]
        needs = [field.name for field in spec.inputs if not field.has_default and field is not spec.history_field]
        missing, unknown = sorted(set(needs) - names), sorted(names - set(takes))
        is_continued = spec.history_field is not None and spec.history_field.name in names
        if (missing and not is_continued) or unknown:
            what = f"lacks the input {missing[0]!r}" if missing else f"has the unknown input {unknown[0]!r}"
            hint = suggest(unknown[0], takes) if unknown else ""
            raise InputError(
                f"Example {index} of the devset {what} of {name} (reading the devset). {hint}It takes {', '.join(takes)}."
            )
        return
    entry = next((found for each in ("forward", "aforward") if (found := _own_entry(program, each))), None)
    function = entry or (None if isinstance(program, Module) else program)
    try:
        signature = inspect.signature(cast("Callable[..., Any]", function))
    except (TypeError, ValueError):  # steps of a library module, or a function of C
        return
    try:
        signature.bind(**dict.fromkeys(names))
    except TypeError as error:
        raise InputError(f"Example {index} of the devset does not fit {name}: {error} (reading the devset).") from None


def _own_entry(program: object, name: str) -> Callable[..., object] | None:
    """Return ``forward`` or ``aforward`` of a user's module; modules of sigwire take any arguments there."""
    entry = getattr(program, name, None)
    module = str(getattr(entry, "__module__", "sigwire."))
    return entry if isinstance(program, Module) and not module.startswith("sigwire.") else None
