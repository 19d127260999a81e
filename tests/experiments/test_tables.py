"""The table of arms as LaTeX and Markdown: escapes, bold for the best; compiled by a TeX if one is installed."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from sigwire.experiments.result import ExperimentResult
from sigwire.experiments.tables import latex_table
from sigwire.show.lines import Strong
from tests.evaluate.runs import scored_cell
from tests.experiments.grids import make_experiment

SPECIAL = r"a&b%c$d#e_f{g}h~i^j\k"
ESCAPED = r"a\&b\%c\$d\#e\_f\{g\}h\textasciitilde{}i\textasciicircum{}j\textbackslash{}k"


def grid(name: str = SPECIAL, metrics: tuple[str, ...] = ("exact_match", "50%")) -> ExperimentResult:
    """Return an arm that beats another, with names that LaTeX would read as commands."""
    tables: dict[Any, Any] = {
        (model, optimizer): {
            seed: [scored_cell(float(n % 4 < good), subscores={"50%": 0.5}, cost=0.5, requests=1) for n in range(40)]
            for seed in range(3)
        }
        for model, good in (("weak", 1), (name, 4))
        for optimizer in ("none", "gepa")
    }
    return make_experiment(tables, axes=("model", "optimizer"), metrics=metrics)


def test_latex_has_no_character_that_tex_reads_as_its_own() -> None:
    text = grid().to_latex()
    assert f"{ESCAPED} · gepa & \\textbf{{1.000}}" in text
    assert "exact\\_match" in text
    assert "50\\%" in text
    assert "\\$60.00" in text
    lines = text.splitlines()
    assert [lines[at] for at in (1, 3, -2)] == ["\\toprule", "\\midrule", "\\bottomrule"]
    known = r"\\(?:[&%$#_{}]|\\|text\w+\{|(?:top|mid|bottom)rule|(?:begin|end)\{tabular\}|ldots\{\}|geq)|\$\\geq\$"
    left = re.sub(known, "", "\n".join(lines[1:-1]))
    assert not re.search(r"[%$#_~^\\]", left)
    columns = len(re.fullmatch(r"\\begin\{tabular\}\{([lr]+)\}", lines[0])[1])  # type: ignore[index]
    for line in (lines[2], *lines[4:-2]):
        assert len(re.findall(r"(?<!\\)&", line)) == columns - 1


@pytest.mark.parametrize("character", "&%$#_{}~^\\<>|")
def test_latex_escapes_each_character_in_any_place(character: str) -> None:
    cell = latex_table([["arm"], [f"{character}x{character}"]]).splitlines()[4]
    assert cell.count("\\") == 2 + 2
    assert "x" in cell


def test_bold_are_the_best_in_every_table_and_never_another_number() -> None:
    found = grid()
    assert found.best == (f"{SPECIAL} · none", f"{SPECIAL} · gepa")
    bold = [cell for row in found.table() for cell in row if isinstance(cell, Strong)]
    assert bold == ["1.000", "1.000"]
    assert found.to_latex().count("\\textbf") == 2
    assert re.findall(r"\*\*(\d\.\d+)\*\*", found.to_markdown()) == ["1.000", "1.000"]
    assert found._repr_html_().count("<b>1.000</b>") == 2
    equal = make_experiment({name: {0: [1, 0, 1, n / 4]} for n, name in enumerate("abc")}, axes=("model",))
    assert equal.to_latex().count("\\textbf") == 3


def test_cell_that_begins_with_a_bracket_is_no_option_of_the_line_break() -> None:
    assert "\n{}[x]" in latex_table([["arm"], ["[x]"]])


def test_table_has_no_column_without_content() -> None:
    one = make_experiment({"mini": {0: [1, 0]}}, axes=("model",)).table()
    assert one[0] == ["arm", "exact", "interval", "n", "calls", "cost"]
    assert grid().table()[0] == [
        "arm", "exact_match", "interval", "50%", "sd", "seeds", "n", "calls", "cost", "search calls", "search cost",
    ]  # fmt: skip


def test_markdown_escapes_labels() -> None:
    text = grid("<b>|*_`").to_markdown()
    assert "&lt;b&gt;\\|\\*" in text
    assert "<b>" not in text


def test_latex_is_compiled(tmp_path: Path) -> None:
    tex = shutil.which("pdflatex")
    if tex is None:
        pytest.skip("there is no pdflatex")
    tables = [grid(name).to_latex() for name in (SPECIAL, "<>|…≥", "größer · naïve", "a--b [c] 'd' \"e\"")]
    body = "\n\n".join(tables)
    document = (
        f"\\documentclass{{article}}\\usepackage{{booktabs}}\\begin{{document}}\\small\n{body}\n\\end{{document}}\n"
    )
    (tmp_path / "table.tex").write_text(document, encoding="utf-8")
    done = subprocess.run(
        [tex, "-interaction=nonstopmode", "-halt-on-error", "table.tex"],
        cwd=tmp_path, capture_output=True, text=True, errors="replace", timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-2_000:]
    assert "Missing character" not in (tmp_path / "table.log").read_text(errors="replace")
