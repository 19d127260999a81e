"""Wheel and sdist: built, checked, and used by README's programs in an environment without the checkout."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

import sigwire

pytestmark = pytest.mark.long
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a wheel and an sdist of the checkout. The wheel is built from the sdist."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("dist")
    isolated = [] if importlib.util.find_spec("hatchling") is None else ["--no-isolation"]
    command = [sys.executable, "-m", "build", *isolated, "--outdir", str(folder), str(ROOT)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode and not isolated and "hatchling" in done.stdout + done.stderr:
        pytest.skip("hatchling is not installed and cannot be downloaded")
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return folder


def wheel_of(dist: Path) -> Path:
    (found,) = dist.glob("*.whl")
    return found


def test_wheel_and_sdist_pass_twine_and_check_wheel_contents(dist: Path) -> None:
    pytest.importorskip("twine")
    pytest.importorskip("check_wheel_contents")
    for command in (
        ["twine", "check", "--strict", *map(str, dist.iterdir())],
        ["check_wheel_contents", "--toplevel=sigwire,pytest_sigwire.py", str(wheel_of(dist))],
    ):
        done = subprocess.run([sys.executable, "-m", *command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_wheel_has_the_package_and_the_plugin_of_pytest_and_nothing_else(dist: Path) -> None:
    names = zipfile.ZipFile(wheel_of(dist)).namelist()
    files = {path.relative_to(ROOT).as_posix() for path in (ROOT / "sigwire").rglob("*") if path.is_file()}
    assert {name for name in names if ".dist-info/" not in name} == {
        "pytest_sigwire.py",
        *(name for name in files if "__pycache__" not in name),
    }
    assert {"sigwire/py.typed", "sigwire/__init__.pyi", "sigwire/dspy/__init__.pyi"} <= {*names}
    assert [name for name in names if Path(name).name.startswith("test_") or name.endswith((".pth", ".pyc"))] == []


def test_metadata_of_the_wheel_has_urls_license_and_extras(dist: Path) -> None:
    archive = zipfile.ZipFile(wheel_of(dist))
    (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
    text = archive.read(name).decode()
    assert f"\nVersion: {sigwire.__version__}\n" in text
    for label in ("Homepage", "Documentation", "Source", "Changelog", "Issues"):
        assert f"\nProject-URL: {label}, https://" in text
    assert "\nLicense-Expression: MIT\n" in text
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert "https://raw.githubusercontent.com/sigwire/sigwire/main/docs/pictures/run.png" in links
    core = [line for line in text.splitlines() if line.startswith("Requires-Dist") and "extra ==" not in line]
    assert len(core) == 6
    every = [line for line in text.splitlines() if line.startswith("Requires-Dist") and "extra == 'all'" in line]
    assert every
    assert "litellm" not in " ".join(every)


def test_sdist_has_tests_documentation_and_files_of_the_project(dist: Path) -> None:
    (path,) = dist.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    expected = "README.md CHANGELOG.md LICENSE SECURITY.md CITATION.cff CONTRIBUTING.md Makefile pyproject.toml .ci/run"
    assert {*expected.split(), ".github/workflows/ci.yml", "docs/index.md", "tests/conftest.py"} <= names
    assert [name for name in names if name.startswith((".venv", ".git/", "runs/"))] == []


@pytest.fixture(scope="module")
def python(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the Python of an environment that has the wheel and nothing else."""
    environment = tmp_path_factory.mktemp("environment") / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    found = environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    install = ["pip", "--python", str(found), "install", "--quiet", "--no-deps", "--no-index", str(wheel_of(dist))]
    subprocess.run([sys.executable, "-m", *install], check=True, capture_output=True)
    return found


def test_readme_runs_from_the_wheel_in_an_environment_of_its_own(python: Path, tmp_path: Path) -> None:
    # Dependencies are those of this environment. Files such as .pth are not read there, so its own sigwire stays hidden.
    variables = {**os.environ, "PYTHONPATH": sysconfig.get_path("purelib")}
    smoke = ROOT / "tests" / "release" / "smoke.py"
    command = [str(python), str(smoke), str(ROOT / "README.md")]
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "programs of" in done.stdout


TYPED = """
import sigwire
import sigwire.dspy as dspy
reveal_type(sigwire.f1_score("a", "b"))
reveal_type(dspy.LM("openai/gpt-5-mini").model_type)
print(sigwire.Predictor)
"""
CHECKERS = {
    "mypy": ("mypy", "--strict", "--no-incremental", "--python-executable"),
    "pyright": ("pyright", "--pythonpath"),
}


@pytest.mark.parametrize("checker", CHECKERS)
def test_type_checker_reads_the_stubs_of_the_wheel(checker: str, python: Path, tmp_path: Path) -> None:
    pytest.importorskip(checker)
    program = tmp_path / "program.py"
    program.write_text(TYPED, encoding="utf-8")
    command = [sys.executable, "-m", *CHECKERS[checker], str(python), str(program)]
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True)
    lines = [line for line in done.stdout.splitlines() if "program.py:" in line]
    assert [line.rpartition(" ")[2].strip('".') for line in lines if "evealed type" in line or "Type of" in line] == [
        "float",
        "str",
    ]
    (error,) = [line for line in lines if " error: " in line]
    assert "Predictor" in error
