"""``sigwire check``: what a model does not take of a program."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sigwire.cli import main


def test_check_lists_what_the_model_refuses_and_is_status_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = (folder / "app.py").read_text(encoding="utf-8")
    (folder / "app.py").write_text(f"{source}\nodd = sigwire.Predict('q -> a', top_k=3)\n", encoding="utf-8")
    assert main(["check", "app:odd", "--lm", "openai/gpt-4.1"]) == 1
    assert "top_k" in capsys.readouterr().out
    assert main(["check", "app:odd", "--lm", "openai/gpt-4.1", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)[0]["path"] == "self"


def test_check_of_a_program_that_fits_is_status_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "app:Triage", "--lm", "openai/gpt-4.1"]) == 0
    assert capsys.readouterr().out == "Nothing found.\n"


@pytest.mark.parametrize(
    ("target", "message"),
    [("app:first_word", "no request to check"), ("app:Triage", "--lm MODEL"), ("app:x", "no 'x'")],
)
def test_wrong_usage_of_check_is_status_2(target: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", target]) == 2
    assert message in capsys.readouterr().err
