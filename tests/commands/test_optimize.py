"""``sigwire optimize``: plan, confirmation, the saved program, journal and interruption."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from sigwire.cli import main
from tests.commands.test_eval import write_deciding

SEARCH = ["optimize", "app:program", "data.jsonl", "--metric", "app:exact", "--optimizer", "BootstrapFewShot", "--yes"]


def test_optimize_prints_the_plan_and_saves_a_program_that_eval_loads(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lm = ["--lm", "offline/lexical"]
    assert main([*SEARCH, "--testset", "data.jsonl", "--set", "max_labeled_demos=2", *lm]) == 0
    out = capsys.readouterr().out
    assert out.startswith("BootstrapFewShot: ")
    assert "no limit of money" in out.splitlines()[0]
    saved = json.loads((folder / "best.json").read_text(encoding="utf-8"))
    assert len(saved["triage"]["demos"]) >= 1
    assert main(["eval", "app:program", "data.jsonl", "--metric", "app:exact", "--load", "best.json", *lm]) == 0


def test_optimize_json_has_the_report_and_the_plan_is_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SEARCH, "--json", "--out", "found.json"]) == 0
    streams = capsys.readouterr()
    assert json.loads(streams.out)["report"]["optimizer"] == "BootstrapFewShot"
    assert "BootstrapFewShot: " in streams.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--optimizer", "MIPROV2"], "Did you mean MIPROv2?"),
        (["--set", "max_demos"], "Write --set auto=medium"),
        (["--set", "max_labelled_demos=2"], "Did you mean max_labeled_demos?"),
        (["--out", "best.pkl"], "Name a .json file"),
        (["--out", "none/best.json"], "in a folder that exists"),
        (["--resume"], "Add --journal FILE"),
        (["--journal", "app.py"], "Add --resume"),
        (["--journal", "data.jsonl", "--resume"], "Name another file with --journal"),
        (["--report", "./data.jsonl"], "Name another file with --report"),
        (["--valset", "dev.json", "--out", "dev.json"], "Name another file with --out"),
        (["--budget", "-1"], "money of a Budget"),
    ],
)
def test_wrong_usage_of_optimize_is_one_line_and_status_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("dev.json").write_text(Path("data.jsonl").read_text(encoding="utf-8"), encoding="utf-8")
    assert main([*SEARCH, *arguments]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line


def test_function_cannot_be_optimized(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["optimize", "app:first_word", *SEARCH[2:]]) == 2
    assert "nothing to optimize" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "asks"),
    [([], True), (["--budget", "2"], True), (["--budget", "1"], False), (["--lm", "offline/lexical"], False)],
)
def test_search_above_one_dollar_needs_a_confirmation(
    arguments: list[str], asks: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    main([*SEARCH[:-1], *arguments])
    assert ("Add --yes" in capsys.readouterr().err) is asks


class Terminal(io.StringIO):
    """A standard input that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 3), ("", 3)])
def test_answer_at_the_terminal_decides(
    answer: str, status: int, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    assert main(SEARCH[:-1]) == status
    assert (folder / "best.json").exists() is (status == 0)
    assert ("nothing was run" in capsys.readouterr().err) is (status == 3)


def test_journal_resumes_the_search_without_calls(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = ["--journal", "search.jsonl"]
    assert main([*SEARCH, *journal]) == 0
    capsys.readouterr()
    assert main([*SEARCH, *journal, "--resume", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["report"]["resumed"] > 0


def test_interrupted_search_saves_the_best_program_and_is_status_130(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = (folder / "app.py").read_text(encoding="utf-8")
    interrupting = f"{source}\ndef interrupting(example, prediction, trace=None):\n    raise KeyboardInterrupt\n"
    (folder / "app.py").write_text(interrupting, encoding="utf-8")
    assert main(["optimize", "app:program", "data.jsonl", "--metric", "app:interrupting", *SEARCH[5:]]) == 130
    assert (folder / "best.json").exists()
    assert "interrupted" in capsys.readouterr().err


def test_optimizer_of_the_user_is_taken_as_it_is(folder: Path) -> None:
    source = (folder / "app.py").read_text(encoding="utf-8")
    (folder / "app.py").write_text(f"{source}\noptimizer = sigwire.LabeledFewShot(k=1)\n", encoding="utf-8")
    assert main(["optimize", "app:program", "data.jsonl", "--optimizer", "app:optimizer", "--yes"]) == 0
    saved = json.loads((folder / "best.json").read_text(encoding="utf-8"))
    assert len(saved["triage"]["demos"]) == 1


def test_every_optimizer_of_the_table_exists() -> None:
    from importlib import import_module

    from sigwire.commands.optimize import OPTIMIZERS

    for name, file in OPTIMIZERS.items():
        assert getattr(import_module(f"sigwire.optimizers.rules.{file}"), name).__name__ == name


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        ([], "GEPA needs a metric (making it). Write --metric METRIC."),
        (["--metric", "app:exact"], "got none (making it). Write --set auto=light."),
        (["--metric", "app:exact", "--set", "autox=1"], "Did you mean auto?"),
    ],
)
def test_options_of_an_optimizer_are_named_as_arguments(
    given: list[str], advice: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["optimize", "app:program", "data.jsonl", "--optimizer", "GEPA", *given]) == 2
    error = capsys.readouterr().err
    assert advice in error
    assert "GEPA(" not in error


@pytest.mark.filterwarnings("ignore:Predict is saved")  # the model is a fake
def test_risk_gives_a_certificate(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_deciding(folder, options='evidence="stated", ')
    arguments = ["optimize", "app:program", "data.jsonl", "--metric", "app:exact", "--yes"]
    assert main([*arguments, "--optimizer", "Calibrate", "--risk", "0.2"]) == 0
    assert "Certified: loss of answered rows at most 0.2 with confidence 0.9" in capsys.readouterr().out
    saved = json.loads((folder / "best.json").read_text(encoding="utf-8"))
    assert saved["decisions"]["urgent"]["least"] == 0.95


def test_risk_of_another_optimizer_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["optimize", "app:program", "data.jsonl", "--metric", "app:exact", "--optimizer", "COPRO"]
    assert main([*arguments, "--risk", "0.2"]) == 2
    assert "Use --optimizer Calibrate" in capsys.readouterr().err
