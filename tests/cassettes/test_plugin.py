"""The pytest plugin: where files are, what the option does, and what a start of pytest imports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = """
import asyncio
import sigwire

asked = []

def answer(request):
    asked.append(request)
    return {"answer": "4"}

predict = sigwire.Predict("question -> answer", lm=sigwire.FakeLM(answer))

class TestSums:
    def test_sum(self, cassette):
        assert predict(question="2+2?").answer == "4"

async def test_awaited(cassette):
    assert (await predict.acall(question="2+2?")).answer == "4"

def test_streamed(cassette):
    assert list(predict.stream(question="2+2?"))[-1].value.answer == "4"

def test_number_of_questions(request):
    assert len(asked) == (0 if request.config.getoption("--cassette") == "replay" else 3)
"""
FILES = ["test_sums/TestSums-test_sum.jsonl", "test_sums/test_awaited.jsonl", "test_sums/test_streamed.jsonl"]


def pytest_in(folder: Path, *args: str) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "pytest_sigwire",
        "-p",
        "pytest_asyncio.plugin",
        "-p",
        "no:cacheprovider",
        *args,
    ]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "", "SIGWIRE_CACHE": "off", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "pytest.ini").write_text(
        "[pytest]\nasyncio_mode = auto\nasyncio_default_fixture_loop_scope = function\n"
    )
    (tmp_path / "test_sums.py").write_text(TESTS)
    return tmp_path


@pytest.mark.long
def test_fixture_records_a_file_for_each_passed_test_and_replays_without_a_question(suite: Path) -> None:
    recorded = pytest_in(suite, "--cassette=record")
    assert "4 passed" in recorded.stdout, recorded.stdout
    folder = suite / "cassettes"
    assert sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*.jsonl")) == FILES
    before = {name: (folder / name).read_bytes() for name in FILES}
    replayed = pytest_in(suite)
    assert "4 passed" in replayed.stdout, replayed.stdout
    (suite / "test_sums.py").write_text(TESTS.replace('.answer == "4"', '.answer == "5"'))
    assert "3 failed" in pytest_in(suite, "--cassette=record").stdout
    assert {name: (folder / name).read_bytes() for name in FILES} == before
    kept = {f"{name}.part" for name in FILES}  # the answers of failed tests, which were paid for
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*.*")} == {*FILES, *kept}


def test_plugin_imports_no_module_of_sigwire() -> None:
    script = (
        "import sys, pytest; before = set(sys.modules); import pytest_sigwire; print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['pytest_sigwire']"
