"""The commit of the working folder, read from the files of a repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from sigwire import Example
from sigwire.evaluate.commit import current_commit
from sigwire.evaluate.evaluation import Evaluate

COMMIT = "b807a4b1c2d3e4f5061728394a5b6c7d8e9f0a1b"


def repository(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / ".git" / name.replace("__", "/").replace("_", "-")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (folder / "inner").mkdir(exist_ok=True)
    return folder / "inner"


def test_commit_of_a_branch_is_found_from_an_inner_folder(tmp_path: Path) -> None:
    inner = repository(tmp_path, HEAD="ref: refs/heads/main\n", refs__heads__main=f"{COMMIT}\n")
    assert current_commit(inner) == COMMIT


def test_commit_of_a_detached_head_and_of_packed_refs_is_found(tmp_path: Path) -> None:
    assert current_commit(repository(tmp_path / "one", HEAD=COMMIT)) == COMMIT
    packed = f"# pack-refs with: peeled\n{COMMIT} refs/heads/main\n"
    assert current_commit(repository(tmp_path / "two", HEAD="ref: refs/heads/main", packed_refs=packed)) == COMMIT


def test_commit_of_a_worktree_is_found(tmp_path: Path) -> None:
    head, place = "ref: refs/heads/topic", "worktrees__topic__"
    repository(tmp_path, **{f"{place}HEAD": head, f"{place}commondir": "../..", "refs__heads__topic": COMMIT})
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / ".git").write_text(f"gitdir: {tmp_path / '.git' / 'worktrees' / 'topic'}\n")
    assert current_commit(tmp_path / "copy") == COMMIT


@pytest.mark.parametrize("head", ["ref: refs/heads/new", "../../secret", "", "ref: HEAD"])
def test_repository_without_a_commit_has_none(head: str, tmp_path: Path) -> None:
    assert current_commit(repository(tmp_path, HEAD=head)) is None


def test_header_of_a_run_has_the_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository(tmp_path, HEAD=COMMIT))
    devset = [Example(number=1).with_inputs("number")]
    result = Evaluate(devset=devset, metric=lambda example, prediction: 1, progress=False)(lambda number: number)
    assert result.run.header["git"] == {"commit": COMMIT}
    result.to_html("report.html")
    assert "commit b807a4b1c2" in Path("report.html").read_text(encoding="utf-8")
