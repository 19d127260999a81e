"""The boundary of the core: it imports, and its tests pass, without ``sigwire.dspy`` and ``sigwire.testing``.

python -m tests.boundaries            in a copy of the project without both parts and the tests that need one of them
python -m tests.boundaries testing    in a copy without that part

A copy without both shows what two copies show: what imports one of them fails. Prints a line for each step, and ends with exit
code 1 at the first that fails.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

__all__ = ["PARTS", "copy_without", "files_that_need", "main"]

ROOT = Path(__file__).resolve().parent.parent
PARTS = ("dspy", "testing")
ROOMS = (
    "core", "effects", "signatures", "test_settings.py", "modules", "evaluate/metrics", "retrieval", "data", "journal", "media",
)  # fmt: skip
"""The rooms whose tests run: those that import the most of the core in the least time."""
WORKERS = "2"
_LEFT_OUT = shutil.ignore_patterns(".*", "__pycache__", "node_modules", "site", "dist", "build", "*.egg-info")

_IMPORT_ALL = """
import importlib, pkgutil, sigwire
names = [found.name for found in pkgutil.walk_packages(sigwire.__path__, "sigwire.") if not found.name.endswith("__main__")]
for name in names:
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:  # of an extra
        if (error.name or "").partition(".")[0] == "sigwire":
            raise
missing = [name for name in sigwire.__all__ if not hasattr(sigwire, name)]
assert not missing, missing
print(len(names), "modules and", len(sigwire.__all__), "names")
"""


def main(parts: Sequence[str]) -> int:
    """Check the boundary of the parts; return the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        started = time.monotonic()
        copy = copy_without(parts, ROOT, Path(folder, "copy"))
        rooms = [f"tests/{name}" for name in ROOMS if (copy / "tests" / name).exists()]
        pytest = ["-m", "pytest", "-q", "-m", "not long", "-n", WORKERS, "-p", "no:cacheprovider", *rooms]
        for what, command in (("imports", ["-c", _IMPORT_ALL]), ("tests", pytest)):
            environment = {**os.environ, "PYTHONPATH": str(copy)}
            done = subprocess.run(
                [sys.executable, *command], cwd=copy, env=environment, capture_output=True, text=True, check=False
            )
            last = (done.stdout.strip().splitlines() or [""])[-1]
            names = " and ".join(f"sigwire.{part}" for part in parts)
            print(f"without {names}: {what}: {last} ({time.monotonic() - started:.0f} s)", flush=True)
            if done.returncode:
                print(done.stdout[-6000:], done.stderr[-3000:], sep="\n")
                return 1
    return 0


def copy_without(parts: Iterable[str], project: Path, target: Path) -> Path:
    """Copy a project without parts of the package, their tests, and the tests that need a part; return the copy."""
    shutil.copytree(project, target, ignore=_LEFT_OUT)
    for path in {path for part in parts for path in files_that_need(part, target)}:
        path.unlink()
    for path in (target / folder / part for part in parts for folder in ("sigwire", "tests")):
        shutil.rmtree(path, ignore_errors=True)
    return target


def files_that_need(part: str, project: Path) -> set[Path]:
    """Return the files of tests that import a part of the package, or another test file that does."""
    wanted = {path: set(_imports(path)) for path in (project / "tests").rglob("*.py")}
    names = {path: ".".join(path.relative_to(project).with_suffix("").parts) for path in wanted}
    removed = {f"sigwire.{part}"}
    found: set[Path] = set()
    while more := {path for path in wanted.keys() - found if any(_is_in(name, removed) for name in wanted[path])}:
        found |= more
        removed |= {names[path] for path in more}
    return found


def _is_in(name: str, removed: set[str]) -> bool:
    return any(name == each or name.startswith(f"{each}.") for each in removed)


def _imports(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports, and the modules that it names in a text (``import_module("sigwire.dspy.x")``)."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and "sigwire." in node.value:
            for part in PARTS:
                if f"sigwire.{part}" in node.value:
                    yield f"sigwire.{part}"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.boundaries")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; default: all")
    sys.exit(main(parser.parse_args().parts or PARTS))
