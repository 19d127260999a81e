"""An evaluation in a real kernel: its cell has one output, which is the card at the end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).resolve().parent.parent.parent
CODE = """
import sys, time
sys.path.insert(0, {root!r})
from sigwire import Evaluate, Example, Prediction

devset = [Example(number=n, even=n % 2 == 0).with_inputs("number") for n in range(20)]

def program(number):
    time.sleep(0.05)
    return Prediction(even=True)

result = Evaluate(devset=devset, metric=lambda e, p: e.even == p.even, num_threads={threads})(program)
"""


pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]


def test_cell_of_an_evaluation_has_one_output_without_a_widget(monkeypatch: pytest.MonkeyPatch) -> None:
    notebook = run(monkeypatch, *(CODE.format(root=str(ROOT), threads=threads) for threads in (1, 4)), "result")
    for cell, kind in zip(notebook.cells, ["display_data", "display_data", "execute_result"], strict=True):
        (output,) = cell.outputs
        assert output.output_type == kind
        assert set(output.data) == {"text/plain", "text/html"}
        assert output.data["text/plain"].startswith("EvaluationResult  program · 20 examples")
        assert 'class="sigwire"' in output.data["text/html"]
        assert "<progress" not in output.data["text/html"]
    assert "widgets" not in notebook.metadata


def test_cell_that_ends_with_the_evaluation_has_one_output(monkeypatch: pytest.MonkeyPatch) -> None:
    code = CODE.format(root=str(ROOT), threads=4)
    evaluate = "Evaluate(devset=devset[:4], metric=lambda e, p: e.even == p.even)(program)"
    notebook = run(
        monkeypatch, f"{code}\nresult", evaluate, f"other = {evaluate}\ndisplay(result)\nother", "result, result"
    )
    kinds = [[output.output_type for output in cell.outputs] for cell in notebook.cells]
    assert kinds == [["display_data"], ["display_data"], ["display_data"] * 2, ["execute_result"]]
    shown = [
        [output.data["text/plain"].split(" examples")[0] for output in cell.outputs] for cell in notebook.cells[:3]
    ]
    four, twenty = "EvaluationResult  program · 4", "EvaluationResult  program · 20"
    assert shown == [[twenty], [four], [four, twenty]]


def run(monkeypatch: pytest.MonkeyPatch, *cells: str) -> Any:
    """Return a notebook of these cells after it ran in a kernel."""
    for name in ("SIGWIRE_PROGRESS", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    return nbclient.NotebookClient(notebook, kernel_name="python3", timeout=120).execute()
