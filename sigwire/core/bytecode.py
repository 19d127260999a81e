"""The content of the code of a function, and the names that it uses: from its bytecode, so that no source is needed.

The place of a function in its file, the order of sets and addresses in memory change nothing. Another minor version of Python
compiles the same source to other bytecode.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from types import CodeType
from typing import cast

__all__ = ["CodeUse", "code_digest", "code_use", "digest"]

_CHANGING = frozenset(
    "add append appendleft clear discard extend extendleft insert pop popitem popleft remove setdefault update".split()
)
_NAMED = frozenset("LOAD_ATTR LOAD_CLASSDEREF LOAD_DEREF LOAD_GLOBAL LOAD_NAME".split())
_FLAGS = 0x04 | 0x08 | 0x20 | 0x80 | 0x200  # *args, **kwargs, generators, coroutines, async generators
_LENGTH = 16  # hexadecimal digits


def digest(content: object) -> str:
    """Return the digest of a content whose ``repr`` is the same in each process."""
    return sha256(repr(content).encode("utf-8", "surrogatepass")).hexdigest()[:_LENGTH]


@lru_cache(maxsize=4096)
def code_digest(code: CodeType) -> str:
    """Return the digest of what a code does.

    >>> one, other = (lambda: 1), (lambda: 1)
    >>> code_digest(one.__code__) == code_digest(other.__code__), code_digest((lambda: 2).__code__) == code_digest(one.__code__)
    (True, False)
    """
    return digest(_code_data(code))


def _code_data(code: CodeType) -> tuple[object, ...]:
    arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return (
        code.co_code,
        code.co_names,
        code.co_freevars,
        arguments,
        code.co_flags & _FLAGS,
        [*map(_constant, code.co_consts)],
    )


def _constant(value: object) -> object:
    if isinstance(value, CodeType):
        return _code_data(value)
    if isinstance(value, frozenset):  # its order depends on the process
        return sorted(map(repr, cast("frozenset[object]", value)))
    return [*map(_constant, cast("tuple[object, ...]", value))] if isinstance(value, tuple) else repr(value)


@dataclass(slots=True)
class CodeUse:
    """The names that a code uses. ``globals``: each with the attributes that are read of it; ``imports``: modules inside it.

    ``written``: names of variables and attributes that the code itself changes while it runs; ``stores_items``: it assigns to
    items, of any container that it uses.
    """

    globals: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    imports: set[tuple[str, int]] = field(default_factory=set[tuple[str, int]])
    written: set[str] = field(default_factory=set[str])
    stores_items: bool = False


@lru_cache(maxsize=4096)
def code_use(code: CodeType) -> CodeUse:
    """Return what a code and the functions inside it use.

    >>> def count(rows):
    ...     global seen
    ...     seen = len(rows)
    >>> found = code_use(count.__code__)
    >>> sorted(found.globals), found.written
    (['len'], {'seen'})
    """
    use = CodeUse()
    for each in _nested(code):
        _read(each, use)
    return use


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _nested(each)


def _read(code: CodeType, use: CodeUse) -> None:
    base = last = ""  # the global whose attributes are read, and the name that was read last
    level = 0
    steps = [*dis.get_instructions(code)]
    for place, step in enumerate(steps):
        name, operation = step.argval, step.opname
        if operation in ("LOAD_GLOBAL", "LOAD_NAME"):
            use.globals.setdefault(name, set())
            base = last = name
        elif operation in ("LOAD_ATTR", "LOAD_METHOD"):
            if base:
                use.globals[base].add(name)
            if name in _CHANGING and (changed := _container_of_item(steps, place - 1) or last):
                use.written.add(changed)
            base, last = "", name
        elif operation in ("LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FAST"):
            base, last = "", name if operation != "LOAD_FAST" else ""
        elif operation in ("STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR", "DELETE_GLOBAL", "DELETE_DEREF", "DELETE_ATTR"):
            use.written.add(name)
        elif operation in ("STORE_SUBSCR", "DELETE_SUBSCR"):
            use.stores_items = True
            if changed := _container(steps, place):
                use.written.add(changed)
        elif operation == "LOAD_CONST":
            level = name if isinstance(name, int) else level
        elif operation == "IMPORT_NAME":
            use.imports.add((name, level))


def _container(steps: Sequence[dis.Instruction], place: int) -> str:
    """Return the global, the free variable or the attribute with the item that a step takes or stores, "" if it is none.

    Keys with branches are not followed.
    """
    if place and steps[place - 1].opname == "SWAP":  # memo[key] += 1: container and key were copied in front of the sum
        while place and steps[place].opname != "COPY":
            place -= 1
        place -= 1
    height = 0
    while place > 0 and height < 1:  # back over the key
        place -= 1
        height += dis.stack_effect(steps[place].opcode, steps[place].arg)
    place -= 1
    if place < 0 or height > 1:  # one step loads the key and a container that is a local variable
        return ""
    return str(steps[place].argval) if steps[place].opname in _NAMED else _container_of_item(steps, place)


def _container_of_item(steps: Sequence[dis.Instruction], place: int) -> str:
    """Return the ``_container`` of the item that a step takes, "" if it takes none."""
    step = steps[place]
    takes_item = step.opname == "BINARY_SUBSCR" or (step.opname == "BINARY_OP" and step.argrepr == "[]")
    return _container(steps, place) if takes_item else ""
