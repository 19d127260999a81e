"""Programs with the calls of six of DSPy's tutorials run with their import line changed, and nothing else."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire.testing import FakeProvider

PROGRAMS = Path(__file__).parent / "programs"


def run_program(name: str) -> dict[str, Any]:
    source = (PROGRAMS / f"{name}.py").read_text(encoding="utf-8")
    changed = re.sub(r"^(import|from) dspy", r"\1 sigwire.dspy", source, flags=re.M)
    changed = changed.replace("import sigwire.dspy\n", "import sigwire.dspy as dspy\n")
    module: dict[str, Any] = {"__name__": f"tutorial_{name}"}
    sys.modules[module["__name__"]] = sys.modules[__name__]  # names of the program's own classes
    exec(compile(changed, f"{name}.py", "exec", dont_inherit=True), module)
    return module["results"]


@pytest.mark.filterwarnings("ignore:.*does not fit its type:UserWarning")  # DSPy logs the same warning
@pytest.mark.parametrize("name", sorted(path.stem for path in PROGRAMS.glob("*.py")))
def test_tutorial_runs_when_its_import_line_is_changed(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = {key: sigwire.settings[key] for key in sigwire.settings}
    with FakeProvider(sigwire.LM("offline/lexical")) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url("openai"))
        monkeypatch.setenv("OPENAI_API_KEY", "test")
        try:
            results = run_program(name)
        finally:
            sigwire.configure(**before)
    assert {key: value for key, value in results.items() if not _holds(value)} == {}


def _holds(value: object) -> bool:
    return all(map(_holds, value)) if isinstance(value, tuple | list) else bool(value) or value == []
