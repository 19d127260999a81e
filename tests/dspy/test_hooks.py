"""The hooks of the core that the door uses: those of the table in ADR 0026, and no private member of a class of the core."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sigwire
import sigwire.dspy as dspy
from sigwire.lm.base import Entries

PAGE = Path(__file__).resolve().parents[2] / "docs" / "decisions" / "0026-a-door-for-dspy-programs.md"
HOOKS = dict(re.findall(r"^\| `(\w+\.(\w+))` \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE))


def door_classes() -> Iterator[tuple[type, set[str]]]:
    """Yield the classes of the door with the names that their bodies define."""
    for found in pkgutil.walk_packages(dspy.__path__, "sigwire.dspy."):
        module = importlib.import_module(found.name)
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.ClassDef):
                yield getattr(module, node.name), set(names_of(node))


def names_of(node: ast.ClassDef) -> Iterator[str]:
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef):
            yield statement.name
        elif isinstance(statement, ast.Assign | ast.AnnAssign):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            yield from (target.id for target in targets if isinstance(target, ast.Name))


def core_class_with(cls: type, name: str) -> type | None:
    """Return the class of the core, among the bases of a class of the door, that defines or declares a name."""
    for base in cls.__mro__[1:]:
        is_core = base.__module__.startswith("sigwire.") and not base.__module__.startswith("sigwire.dspy")
        if is_core and (name in vars(base) or name in vars(base).get("__annotations__", {})):
            return base
    return None


CLASSES = [*door_classes()]


def test_door_defines_no_private_member_of_a_class_of_the_core() -> None:
    broken = [
        f"{cls.__module__}.{cls.__name__}.{name} (of {base.__name__}): make it a hook, or override a public method"
        for cls, names in CLASSES
        for name in sorted(names)
        if re.match(r"_[a-z]", name) and (base := core_class_with(cls, name)) is not None
    ]
    assert broken == []


def test_rule_finds_a_private_member() -> None:
    class Mine(sigwire.Predict[..., Any]):
        def _signature_steps(self, *args: Any, **kwargs: Any) -> Any: ...

    assert core_class_with(Mine, "_signature_steps") is sigwire.Predict


@pytest.mark.parametrize("hook", HOOKS)
def test_hook_is_of_the_core_documented_and_used_by_the_door(hook: str) -> None:
    owner, name = getattr(sigwire, hook.partition(".")[0]), HOOKS[hook]
    users = [cls for cls, names in CLASSES if name in names and core_class_with(cls, name) is not None]
    assert any(issubclass(cls, owner) for cls in users)
    value = inspect.getattr_static(owner, name)
    source = inspect.getsource(next(base for base in owner.__mro__ if name in vars(base)))
    is_described = re.search(rf'^    {name}\b[^\n]*\n    """', source, re.MULTILINE) or name == "fixed_methods"
    assert inspect.getdoc(value) if inspect.isfunction(value) else is_described


def test_table_has_every_hook_that_the_door_overrides() -> None:
    """Class attributes; ``Entries`` is the object of one of them."""
    named = {*HOOKS.values()}
    attributes = {
        name
        for cls, names in CLASSES
        for name in names
        if not name.startswith("_")
        and (base := core_class_with(cls, name)) is not None
        and base is not Entries
        and not callable(inspect.getattr_static(base, name, None))
        and not isinstance(inspect.getattr_static(base, name, None), property | classmethod | staticmethod)
        and "ClassVar" in str(vars(base).get("__annotations__", {}).get(name))
    }
    assert attributes <= named
