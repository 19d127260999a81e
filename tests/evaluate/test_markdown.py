"""Results and comparisons as Markdown."""

from __future__ import annotations

from sigwire.evaluate.comparison import compare
from tests.evaluate.runs import failed_cell, make_result


def test_markdown_of_a_result_has_its_figures_as_a_table() -> None:
    lines = make_result([1, 0, 1, 1, failed_cell("program", score=0.0)]).to_markdown().split("\n")
    assert lines[0] == "**EvaluationResult** Program · 5 examples × 1 · offline/lexical"
    assert lines[2:4] == ["| | |", "|---|---|"]
    assert lines[4].startswith("| exact | 0.600   95 % 0.077 … 1.000 (adjusted t)   5 of 5 scored<br>")
    assert "| failed | 1 OutputTruncated (scored 0) |" in lines
    assert [line for line in lines if "first wrong" in line] == []


def test_markdown_of_a_comparison_has_a_row_for_each_program_and_the_sentence() -> None:
    found = compare({"a": make_result([1, 0, 1, 1, 0]), "b": make_result([1, 1, 1, 1, 0])})
    text = found.to_markdown()
    assert "| program | exact | interval | scored | failed | \\$ per 1,000 | p50 |" in text
    assert f"| difference | {found.sentences[0]} |" in text
    assert "| a wrong | 1 | 1 |" in text


def test_marks_and_line_ends_of_values_are_escaped_in_markdown() -> None:
    hostile = make_result([failed_cell("program", "A|B\n# <img src=x> [a](b) `c` &lt;", score=0.0)], name="<b>*x*")
    text = hostile.to_markdown()
    assert "A\\|B \\# &lt;img src=x&gt; \\[a\\](b) \\`c\\` &amp;lt;" in text
    assert "&lt;b&gt;\\*x\\*" in text
