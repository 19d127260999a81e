"""The runner of the tests: a failure has its name in the report, whatever other threads do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

# Each collection of garbage on the main thread gives another thread the time to print a traceback, which parses for its carets:
# what a busy machine does by chance.
BESIDE = """
import atexit
import gc
import io
import threading
import traceback

{guard}
asked, done = threading.Event(), threading.Event()


def deep(levels):
    return deep(levels - 1) if levels else 1 / 0


def print_tracebacks():
    while True:
        asked.wait()
        asked.clear()
        try:
            deep(30)
        except ZeroDivisionError:
            traceback.print_exc(file=io.StringIO())
        done.set()


def give_way(phase, info):
    if threading.current_thread() is threading.main_thread() and not asked.is_set():
        done.clear()
        asked.set()
        done.wait(60)


threading.Thread(target=print_tracebacks, daemon=True).start()
gc.callbacks.append(give_way)
atexit.register(gc.callbacks.remove, give_way)
"""
FAILS = "def test_fails():\n    assert [1] == [2]\n\n\ndef beside():\n" + "    call(1, [2, 3], {'a': [4]})\n" * 100


NEEDS_GUARD = (3, 11) <= sys.version_info < (3, 11, 8)


@pytest.mark.parametrize(
    ("guard", "is_named"),
    [
        pytest.param("from tests.parsing import guard_parsing; guard_parsing()", True, id="guarded"),
        # Without its guard, the runner dies: the test can fail.
        pytest.param("", not NEEDS_GUARD, id="unguarded", marks=pytest.mark.long),
    ],
)
def test_failed_test_is_named_while_other_threads_print_tracebacks(tmp_path: Path, guard: str, is_named: bool) -> None:
    (tmp_path / "conftest.py").write_text(BESIDE.format(guard=guard), encoding="utf-8")
    (tmp_path / "test_it.py").write_text(FAILS, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:langsmith_plugin", str(tmp_path)],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
    )
    printed = done.stdout + done.stderr
    assert ("FAILED test_it.py::test_fails" in printed) is is_named, printed
    assert ("INTERNALERROR" in printed) is not is_named
