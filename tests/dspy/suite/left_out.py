"""The rule that leaves a test of a foreign suite out, from its source alone.

A test is left out if it uses, directly or through helpers, fixtures and names of its file:

- ``litellm`` or a name imported from it, the server of DSPy's tests (which starts LiteLLM), or ``openai``;
- ``diskcache`` or ``cachetools``, the libraries that hold DSPy's cache: the pickles and classes of its storage;
- a private name (``_name``) imported from DSPy or read from one of its modules and classes, or a patch of a name inside
  DSPy's modules (``patch("dspy.x.y")``): no public behaviour.

Fixtures of the shared server and the keys of real providers are found by the same words.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

__all__ = ["left_out"]

_SERVICES = re.compile(r"\b(?:litellm\w*|read_litellm\w*|openai|LM_FOR_TEST|lm_for_test)\b")
_STORAGE = frozenset({"cachetools", "diskcache"})
_PRIVATE = re.compile(r"^_[a-z]\w*$", re.IGNORECASE)


def left_out(path: Path) -> dict[str, str]:
    """Return the reason for each definition of the file that the rule leaves out: ``{"test_name": "litellm"}``.

    Tests of classes have the name ``TestClass::test_name``.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    reasons: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom | ast.Import):
            reasons.update(_imported(node))
    definitions = dict(_definitions(tree.body, ""))
    found = -1
    while found != len(reasons):  # a helper that uses a helper
        found = len(reasons)
        for name, node in definitions.items():
            reason = reasons.get(name) or _reason(node, reasons)
            if reason:
                reasons[name] = reason
    return {name: reason for name, reason in reasons.items() if name in definitions}


def _imported(node: ast.ImportFrom | ast.Import) -> list[tuple[str, str]]:
    module = node.module or "" if isinstance(node, ast.ImportFrom) else ""
    found: list[tuple[str, str]] = []
    for alias in node.names:
        bound = alias.asname or alias.name
        if _SERVICES.search(f"{module} {alias.name}"):
            found.append((bound, "litellm"))
        elif (module or alias.name).partition(".")[0] in _STORAGE:
            found.append((bound, "storage"))
        elif module.partition(".")[0] == "dspy" and _PRIVATE.match(alias.name):
            found.append((bound, "private"))
    return found


def _definitions(body: list[ast.stmt], prefix: str) -> list[tuple[str, ast.stmt]]:
    found: list[tuple[str, ast.stmt]] = []
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name.startswith("Test"):
            found += _definitions(node.body, f"{node.name}::")
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            found.append((prefix + node.name, node))
        elif isinstance(node, ast.Assign):
            found += [(target.id, node) for target in node.targets if isinstance(target, ast.Name)]
    return found


def _reason(node: ast.stmt, reasons: dict[str, str]) -> str:
    for inner in ast.walk(node):
        if isinstance(inner, ast.Constant) and re.match(r"litellm\b|dspy(?:\.\w+)*\.litellm\b", str(inner.value)):
            return "litellm"
        if isinstance(inner, ast.Call) and _is_patch(inner):
            return "private"
        name = inner.id if isinstance(inner, ast.Name) else inner.arg if isinstance(inner, ast.arg) else ""
        if name and (name in reasons or _SERVICES.fullmatch(name)):
            return reasons.get(name, "litellm")
        if isinstance(inner, ast.Attribute) and _PRIVATE.match(inner.attr) and not _is_own(inner.value):
            return "private"
    return ""


def _is_patch(call: ast.Call) -> bool:
    """Return True for ``patch("dspy.x.y")`` and ``monkeypatch.setattr(f"dspy.x.{y}", ...)``."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    target = call.args[0] if call.args else None
    if isinstance(target, ast.JoinedStr) and target.values:
        target = target.values[0]
    return name in ("patch", "setattr") and isinstance(target, ast.Constant) and str(target.value).startswith("dspy.")


def _is_own(value: ast.expr) -> bool:
    """Return True for ``self._x`` and ``cls._x``: names of the test's own classes."""
    return isinstance(value, ast.Name) and value.id in ("self", "cls")
