"""An evaluation in a real kernel: its cell has one output, which is the card at the end."""

from __future__ import annotations

import os
from pathlib import Path

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


@pytest.mark.long
@pytest.mark.filterwarnings("default")
def test_cell_of_an_evaluation_has_one_output_without_a_widget(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SIGWIRE_PROGRESS", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
    cells = [nbformat.v4.new_code_cell(CODE.format(root=str(ROOT), threads=threads)) for threads in (1, 4)]
    cells.append(nbformat.v4.new_code_cell("result"))
    notebook = nbformat.v4.new_notebook(cells=cells)
    nbclient.NotebookClient(notebook, kernel_name="python3", timeout=120).execute()
    for cell, kind in zip(notebook.cells, ["display_data", "display_data", "execute_result"], strict=True):
        (output,) = cell.outputs
        assert output.output_type == kind
        assert set(output.data) == {"text/plain", "text/html"}
        assert output.data["text/plain"].startswith("EvaluationResult  program · 20 examples")
        assert 'class="sigwire"' in output.data["text/html"]
        assert "<progress" not in output.data["text/html"]
    assert "widgets" not in notebook.metadata
