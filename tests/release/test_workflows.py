"""Workflows, forms and other files of the project: they parse, ask for few permissions, and name what exists."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from sigwire.commands.doctor import EXTRAS, NEEDED
from tests.release import extras

ROOT = Path(__file__).resolve().parents[2]
GITHUB = ROOT / ".github"
WORKFLOWS = sorted((GITHUB / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
TARGETS = {*re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)}
MAY_WRITE = {
    "release.yml/publish": {"id-token"},
    "release.yml/announce": {"contents"},
    "docs.yml/publish": {"pages", "id-token"},
    "audit.yml/code": {"security-events"},
}


def load(path: Path) -> Any:
    yaml = pytest.importorskip("yaml")
    return yaml.load(path.read_text(encoding="utf-8"), Loader=yaml.BaseLoader)  # BaseLoader: "on" is no boolean


def steps(workflow: Any) -> Iterator[Any]:
    for job in workflow["jobs"].values():
        yield from job["steps"]


def test_every_workflow_of_a_release_exists() -> None:
    assert [path.stem for path in WORKFLOWS] == ["audit", "bench", "ci", "docs", "release"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_has_no_permission_that_a_job_does_not_name(path: Path) -> None:
    workflow = load(path)
    assert workflow["permissions"] in ({}, "{}")
    for name, job in workflow["jobs"].items():
        writes = {scope for scope, access in job.get("permissions", {}).items() if access == "write"}
        assert writes == MAY_WRITE.get(f"{path.name}/{name}", set()), name
        assert "timeout-minutes" in job, name


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_pins_each_action_by_commit_and_names_its_version(path: Path) -> None:
    uses = re.findall(r"uses: (.*)", path.read_text(encoding="utf-8"))
    assert [each for each in uses if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", each)] == []
    for step in steps(load(path)):
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] == "false"


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_workflow_runs_no_expression_in_a_shell_and_only_files_that_exist(path: Path) -> None:
    for step in steps(load(path)):
        script = step.get("run", "")
        assert "${{" not in script, script
        named = re.findall(r"(?:tests|docs|\.ci)/[\w/.-]+", script)
        assert [each for each in named if not (ROOT / each).exists()] == []
        assert {*re.findall(r"^make (\w+)", script, re.MULTILINE)} <= TARGETS


def test_one_commit_is_used_for_each_action() -> None:
    uses = {
        each for path in WORKFLOWS for each in re.findall(r"uses: ([\w.-]+/[\w.-]+).*?@(\w+)", path.read_text("utf-8"))
    }
    assert len({action for action, _ in uses}) == len(uses)


@pytest.mark.parametrize("path", sorted(GITHUB.rglob("*.yml")), ids=lambda path: path.name)
def test_configuration_file_parses(path: Path) -> None:
    assert load(path)


def test_bug_form_asks_for_the_output_of_doctor() -> None:
    form = load(GITHUB / "ISSUE_TEMPLATE" / "bug.yml")
    required = {each["id"] for each in form["body"] if each.get("validations", {}).get("required") == "true"}
    assert {"program", "expected", "doctor"} <= required
    assert "sigwire doctor" in str(form)


def test_citation_has_the_fields_of_its_format() -> None:
    citation = load(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors", "version", "license"} <= citation.keys()
    assert citation["license"] == PROJECT["license"]


def test_extras_of_the_project_are_those_of_doctor_and_of_their_check() -> None:
    own = {name: re.split(r"[<>=!]", rows[0])[0] for name, rows in PROJECT["optional-dependencies"].items()}
    users = {name: package for name, package in own.items() if name not in ("all", "demo", "dev", "docs", "test")}
    assert users == EXTRAS
    assert extras.EXTRAS.keys() == users.keys() == extras.FEATURES.keys()
    matrix = load(GITHUB / "workflows" / "ci.yml")["jobs"]["extras"]["strategy"]["matrix"]["extra"]
    assert {*matrix} == {*users, "all"}
    assert {re.split(r"[<>=!]", row)[0] for row in PROJECT["dependencies"]} == {*NEEDED}


def test_ci_runs_every_python_of_the_classifiers() -> None:
    listed = {row.rpartition(" ")[2] for row in PROJECT["classifiers"] if re.search(r":: 3\.\d+$", row)}
    assert {*load(GITHUB / "workflows" / "ci.yml")["jobs"]["checks"]["strategy"]["matrix"]["python"]} == listed


ZIZMOR = shutil.which("zizmor", path=str(Path(sys.executable).parent)) or shutil.which("zizmor") or ""


@pytest.mark.skipif(not ZIZMOR, reason="zizmor is not installed")
def test_zizmor_finds_nothing_in_the_workflows() -> None:
    command = [ZIZMOR, "--offline", "--pedantic", "--quiet", str(GITHUB)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
