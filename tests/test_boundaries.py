"""The check of the core without a part of the package: which tests it leaves out, and that it fails for an import upwards."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import boundaries
from tests.boundaries import copy_without, files_that_need

FILES = {
    "sigwire/__init__.py": "__all__ = []\n",
    "sigwire/core.py": "",
    "sigwire/dspy/__init__.py": "",
    "tests/core/test_core.py": "import sigwire.core\ndef test_core(): ...\n",
    "tests/core/test_door.py": "from sigwire import dspy\n",
    "tests/core/test_text.py": "import_module('sigwire.dspy.lm')\n",
    "tests/core/helper.py": "import sigwire.dspy.lm\n",
    "tests/core/test_helped.py": "from tests.core.helper import lm\n",
    "tests/dspy/test_dspy.py": "import sigwire.dspy\n",
    "sigwire/testing/__init__.py": "",
    "tests/core/test_fake.py": "import sigwire.testing\n",
    ".venv/large.py": "",
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / "project" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "project"


def test_tests_that_need_a_part_are_those_that_import_it_themselves_or_by_others(project: Path) -> None:
    needed = {path.name for path in files_that_need("dspy", project)}
    assert needed == {"test_door.py", "test_text.py", "helper.py", "test_helped.py", "test_dspy.py"}
    assert {path.name for path in files_that_need("testing", project)} == {"test_fake.py"}


def test_copy_has_the_core_and_its_tests(project: Path, tmp_path: Path) -> None:
    copy = copy_without(["dspy", "testing"], project, tmp_path / "copy")
    found = {str(path.relative_to(copy)) for path in copy.rglob("*") if path.is_file()}
    assert found == {"sigwire/__init__.py", "sigwire/core.py", "tests/core/test_core.py"}


@pytest.mark.parametrize(
    ("text", "code"), [pytest.param("", 0, marks=pytest.mark.long), ("from sigwire.dspy import lm", 1)]
)
def test_import_upwards_is_a_failure(
    text: str, code: int, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(boundaries, "ROOT", project)
    monkeypatch.setattr(boundaries, "WORKERS", "0")
    (project / "sigwire" / "core.py").write_text(text, encoding="utf-8")
    assert boundaries.main(["dspy", "testing"]) == code
    assert ("No module named 'sigwire.dspy'" in capsys.readouterr().out) == bool(code)
