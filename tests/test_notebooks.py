"""The notebooks of the examples run in a real kernel, without a key: the last state of each cell is its card, not a bar."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Mapping
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest

jupytext = pytest.importorskip("jupytext")
nbclient = pytest.importorskip("nbclient")
pytest.importorskip("ipykernel")

ROOT = Path(__file__).resolve().parent.parent
NOTEBOOKS = sorted((ROOT / "examples" / "notebooks").glob("*.md"))

pytestmark = [pytest.mark.long, pytest.mark.filterwarnings("default")]


@cache
def notebooks() -> Mapping[str, Any]:
    """Return the notebooks by name, executed in a copy of the examples, once in a process of tests."""
    with pytest.MonkeyPatch.context() as patched, tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "examples"
        shutil.copytree(ROOT / "examples", copy, ignore=shutil.ignore_patterns("__pycache__", "runs"))
        for name in ("SIGWIRE_PROGRESS", "SIGWIRE_LM", "CI"):
            patched.delenv(name, raising=False)
        patched.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]))
        return {page.stem: run(jupytext.read(page), copy / "notebooks") for page in NOTEBOOKS}


def run(notebook: Any, folder: Path) -> Any:
    """Execute a notebook in a kernel that starts in a folder."""
    settings = {"metadata": {"path": str(folder)}}
    return nbclient.NotebookClient(notebook, kernel_name="python3", timeout=60, resources=settings).execute()


@pytest.fixture(scope="module")
def executed() -> Mapping[str, Any]:
    return notebooks()


def cells(notebook: Any, source: str) -> list[Any]:
    found = [cell for cell in notebook.cells if cell.cell_type == "code" and source in cell.source]
    assert found, source
    return found


def html(cell: Any) -> str:
    """Return the HTML of the only output of a cell."""
    (output,) = cell.outputs
    return str(output.data["text/html"])


@pytest.mark.parametrize("page", NOTEBOOKS, ids=lambda page: page.stem)
def test_notebook_has_no_outputs_and_runs_without_an_error_or_a_widget(executed: Mapping[str, Any], page: Path) -> None:
    assert [cell for cell in jupytext.read(page).cells if cell.get("outputs")] == []
    notebook = executed[page.stem]
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    assert code
    assert [cell.execution_count for cell in code] == list(range(1, len(code) + 1))
    assert [each for cell in code for each in cell.outputs if each.output_type == "error"] == []
    assert "widgets" not in notebook.metadata
    shown = {kind for cell in code for each in cell.outputs for kind in each.get("data", ())}
    assert [kind for kind in shown if "widget" in kind] == []
    assert [each for cell in code for each in cell.outputs if each.get("name") == "stderr"] == []


def test_notebooks_run_within_twenty_seconds_each_on_the_mean(executed: Mapping[str, Any]) -> None:
    assert len(executed) == 4
    assert sum(seconds(notebook) for notebook in executed.values()) < 20 * len(executed)


def seconds(notebook: Any) -> float:
    """Return the seconds from the start of the first cell to the reply of the last."""
    timed = [cell.metadata["execution"] for cell in notebook.cells if cell.cell_type == "code"]
    first, last = timed[0]["iopub.status.busy"], timed[-1]["shell.execute_reply"]
    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


def test_cell_of_an_evaluation_ends_with_the_card_and_no_bar(executed: Mapping[str, Any]) -> None:
    notebook = executed["evaluate_and_compare"]
    for cell in [*cells(notebook, 'log=runs / "baseline.jsonl"'), *cells(notebook, 'log=runs / "taught.jsonl"')]:
        assert "EvaluationResult" in html(cell)
        assert "<progress" not in html(cell)
    (shown,) = cells(notebook, "sigwire.compare(")
    assert "with demos is better than baseline" in html(shown)
    (resumed,) = cells(notebook, "resumed.mean == baseline.mean")
    assert resumed.outputs[0].text == "True 24 of 48 were not run again\n"


def test_optimization_shows_its_report_its_plots_and_the_changed_words(executed: Mapping[str, Any]) -> None:
    notebook = executed["optimize"]
    (searched,) = cells(notebook, "report = OptimizationReport.of(optimized)")
    assert "on 40 test rows" in html(searched)
    for kind in ("score", "cost", "rows"):
        (plotted,) = cells(notebook, f'report.plot("{kind}")')
        assert html(plotted).startswith("<svg")
    (changed,) = cells(notebook, 'diffs["self.tools.rma_create.desc"]')
    assert "<ins>" in html(changed)
    (reloaded,) = cells(notebook, "again.headline ==")
    assert reloaded.outputs[-1].data["text/plain"].startswith("(True, ")


def test_experiment_ends_with_the_table_of_a_paper_and_is_reproduced(executed: Mapping[str, Any]) -> None:
    notebook = executed["experiment"]
    (ran,) = cells(notebook, "result = grid.run(")
    assert "reasons · demos" in html(ran)
    assert "<progress" not in html(ran)
    (compared,) = cells(notebook, "result.compare(")
    assert "direct · demos is better than direct · none" in html(compared)
    (plotted,) = cells(notebook, 'result.plot("seeds")')
    assert html(plotted).startswith("<svg")
    (table,) = cells(notebook, "print(result.to_latex())")
    assert "\\textbf{0." in table.outputs[0].text
    (reproduced,) = cells(notebook, "sigwire.reproduce(")
    assert reproduced.outputs[0].text == "the same: 12 points\n"
