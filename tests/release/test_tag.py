"""The check of a release's tag."""

from __future__ import annotations

from pathlib import Path

import pytest

import sigwire
from tests.release import tag

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "sigwire").mkdir()
    (tmp_path / "sigwire" / "__init__.py").write_text('__version__ = "0.2.0"\n', encoding="utf-8")
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 0.2.0\n", encoding="utf-8")
    changes = "# Changelog\n\n## 0.2.0 (2026-12-01)\n\n- New.\n\n## 0.1.0 (2026-11-22)\n\n- First.\n"
    (tmp_path / "CHANGELOG.md").write_text(changes, encoding="utf-8")
    return tmp_path


def test_fitting_tag_writes_the_notes_of_its_version(project: Path) -> None:
    notes = project / "notes.md"
    assert tag.main(["v0.2.0", "--notes", str(notes)], project) == 0
    assert notes.read_text(encoding="utf-8") == "## 0.2.0 (2026-12-01)\n\n- New.\n"


@pytest.mark.parametrize(
    ("file", "before", "after", "message"),
    [
        ("sigwire/__init__.py", "0.2.0", "0.3.0", "sigwire.__version__ is 0.3.0"),
        ("CITATION.cff", "0.2.0", "0.1.0", "CITATION.cff does not have version: 0.2.0"),
        ("CHANGELOG.md", "## 0.2.0 ", "## 0.2.1 ", "no section '## 0.2.0"),
        ("CHANGELOG.md", "(2026-12-01)", "(unreleased)", "calls 0.2.0 unreleased"),
    ],
)
def test_tag_that_does_not_fit_is_refused(
    file: str, before: str, after: str, message: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = project / file
    path.write_text(path.read_text(encoding="utf-8").replace(before, after), encoding="utf-8")
    assert tag.main(["v0.2.0"], project) == 1
    assert message in capsys.readouterr().err


def test_files_of_this_version_agree() -> None:
    found = [each for each in tag.problems(f"v{sigwire.__version__}") if "unreleased" not in each]
    assert found == []
