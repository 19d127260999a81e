"""The tests run where only the extra of tests is installed."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]


def normal(name: str) -> str:
    """Return the name of a distribution as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def installed_with(extra: str) -> set[str]:
    """Return the distributions that ``sigwire[extra]`` installs, with all that they require."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    seen: set[tuple[str, str]] = set()
    left = [(Requirement(f"sigwire[{extra}]"), "")]
    while left:
        wanted, of = left.pop()
        if wanted.marker is not None and not wanted.marker.evaluate({"extra": of}):
            continue
        for part in {"", *wanted.extras} - {part for name, part in seen if name == normal(wanted.name)}:
            seen.add((normal(wanted.name), part))
            if normal(wanted.name) == "sigwire":
                texts = project["optional-dependencies"][part] if part else project["dependencies"]
            else:
                try:
                    texts = requires(wanted.name) or []
                except PackageNotFoundError:
                    continue
            left += [(Requirement(text), part) for text in texts]
    return {name for name, _ in seen}


@pytest.mark.long
def test_files_of_tests_import_only_what_the_extra_of_tests_installs() -> None:
    of_tests, owners = installed_with("test"), packages_distributions()
    assert {"pytest", "numpy", "pydantic"} <= of_tests
    assert "pandas" not in of_tests
    wrong = []
    for file in sorted((ROOT / "tests").rglob("*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            names = [each.name for each in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for top in {name.partition(".")[0] for name in names} - sys.stdlib_module_names:
                if (owned_by := {normal(each) for each in owners.get(top, [])}) and not owned_by & of_tests:
                    wrong.append(f"{file.relative_to(ROOT)} imports {top}: use pytest.importorskip in the test")
    assert not wrong, "\n".join(wrong)
