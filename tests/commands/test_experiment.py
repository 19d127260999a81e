"""``sigwire experiment`` and ``reproduce``, and the folder of an experiment in ``view`` and ``export``."""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire.cli import main
from sigwire.testing import FakeProvider

GRID = """
pairs = [(topic, n) for n in range(6) for topic in ("billing", "refund")]
rows = [sigwire.Example(message=f"{topic} {n}", topic=topic).with_inputs("message") for topic, n in pairs]
experiment = sigwire.Experiment(
    programs={"short": sigwire.Predict("message -> topic"), "first": first_word},
    models=sigwire.FakeLM(answer),
    datasets=sigwire.DataSplit((), (), tuple(rows)),
    metric=exact,
)
"""
RUN = ["experiment", "app:experiment", "--out", "run", "--yes"]


def change(folder: Path, old: str, new: str) -> None:
    """Change the program of the folder, as an edit between two commands does."""
    path = folder / "app.py"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    sys.modules.pop("app", None)


@pytest.fixture(autouse=True)
def grid(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder, with an experiment of two programs in ``app.py``."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # a compiled file of the same second would hide a change
    with (folder / "app.py").open("a", encoding="utf-8") as file:
        file.write(GRID)
    return folder


@pytest.fixture
def ran(folder: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Return the folder of a finished experiment."""
    assert main(RUN) == 0
    capsys.readouterr()
    return folder / "run"


# --- experiment


def test_plan_is_printed_before_anything_is_written(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["experiment", "app:experiment", "--plan"]) == 0
    assert capsys.readouterr().out.startswith("2 points, 24 calls; price unknown of ")
    assert main(["experiment", "app:experiment", "--plan", "--json", "--out", "run"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["calls"] == {"min": 24, "expected": 24, "max": 24}
    assert [point["arm"] for point in found["points"]] == ["short", "first"]
    assert not (folder / "run").exists()


def test_run_prints_the_plan_and_the_table_and_runs_nothing_twice(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RUN, "--threads", "2", "--parallel", "2"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("2 points, 24 calls")
    assert "sigwire view run writes its page" in out
    assert main(RUN[:-1]) == 0  # nothing is missing: nothing is asked
    again = capsys.readouterr().out
    assert again.startswith("0 points, 0 calls")
    assert again[again.index("Experiment  ") :] == out[out.index("Experiment  ") :]


def test_json_has_the_rows_and_the_plan_is_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RUN, "--json"]) == 0
    streams = capsys.readouterr()
    found = json.loads(streams.out)
    assert (found["status"], found["missing"]) == ("complete", [])
    assert [row["program"] for row in found["rows"]] == ["short", "first"]
    assert streams.err.startswith("2 points, 24 calls")


class Terminal(io.StringIO):
    """A standard input that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 3), ("", 3)])
def test_run_of_unknown_price_is_confirmed_at_the_terminal(
    answer: str, status: int, folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    assert main(RUN[:-1]) == status
    assert (folder / "run").exists() is (status == 0)
    assert ("nothing was run" in capsys.readouterr().err) is (status == 3)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["app:experiment"], "Add --out DIR, or --plan"),
        (["app:experiment", "--out", "run"], "no terminal for a question. Add --yes."),
        (["app:experimen", "--out", "run"], "Did you mean experiment? "),
        (["app:number", "--out", "run"], "app:number is no Experiment but a int"),
        (["app:experiment", "--out", ".", "--yes"], "it has other files"),
        (["app:experiment", "--out", "run", "--yes", "--threads", "0"], "rows at once from 1"),
        (["app:experiment", "--out", "run", "--yes", "--budget", "-1"], "money of a Budget"),
    ],
)
def test_wrong_usage_of_an_experiment_is_one_line_and_status_2(
    arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["experiment", *arguments]) == 2
    lines = [line for line in capsys.readouterr().err.splitlines() if not line.startswith("sigwire.experiment")]
    assert len(lines) == 1
    assert message in lines[0]
    assert not (folder / "run").exists()


def test_error_names_the_file_that_defines_no_experiment(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "other.py").write_text("def program(message): ...\n", encoding="utf-8")
    assert main(["experiment", "other:experiment", "--plan"]) == 2
    assert "other.py defines no Experiment." in capsys.readouterr().err


def test_changed_metric_is_refused_by_name(ran: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = (ran / "experiment.json").read_bytes()
    change(folder, "return example.topic == prediction.topic", "return example.topic != prediction.topic")
    assert main(RUN) == 2
    assert "metric" in capsys.readouterr().err
    assert (ran / "experiment.json").read_bytes() == before


def test_interrupted_run_is_status_130_and_goes_on(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stop = "import pathlib\n    if '3' in message and not pathlib.Path('go').exists(): raise KeyboardInterrupt\n    "
    change(folder, "return sigwire.Prediction(", f"{stop}return sigwire.Prediction(")
    assert main([*RUN, "--threads", "1"]) == 130
    error = capsys.readouterr().err.splitlines()[-1]
    assert "1 of 2 points are finished. The same command goes on." in error
    (folder / "go").touch()
    assert main(RUN) == 0
    assert capsys.readouterr().out.startswith("1 point, 12 calls")


@pytest.fixture
def provider(folder: Path) -> Iterator[FakeProvider]:
    """Yield a provider whose model has a price; the experiment asks it."""
    with FakeProvider(lambda request: "[[ ## topic ## ]]\nbilling") as found:
        lm = f"sigwire.LM('openai/gpt-5-mini', base_url={found.url('openai')!r}, api_key='sk-a', cache=False)"
        change(folder, "models=sigwire.FakeLM(answer)", f"models={lm}")
        change(folder, '"first": first_word', '"long": sigwire.Predict("message -> topic", "Think.")')
        yield found


def test_spent_budget_is_status_3_and_the_same_command_goes_on(
    provider: FakeProvider, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RUN[:-1], "--budget", "0.0000001", "--threads", "1"]) == 3
    error = capsys.readouterr().err.splitlines()[-1]
    assert "the budget is spent, and 2 of 2 points are missing" in error
    assert main([*RUN[:-1], "--budget", "1"]) == 0
    assert len(provider.requests) == 24


# --- reproduce


def test_reproduction_needs_no_name_and_no_call(ran: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(folder, "def answer(request):", "def answer(request):\n    raise AssertionError\n\ndef _(request):")
    assert main(["reproduce", "run"]) == 0
    assert "the same: 2 points" in capsys.readouterr().out


def test_reproduction_names_what_differs(ran: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    change(folder, "topic=message.split()[0]", "topic=message.split()[0].upper()")
    assert main(["reproduce", "run", "app:experiment", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["same"] == ["short, seed 0"]
    assert "first, seed 0: other outputs in 12 rows" in found["differs"][0]
    assert "first" in found["changed"][0]


def test_live_reproduction_runs_into_a_folder_of_its_own(
    ran: Path, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    live = ["reproduce", "run", "--live", "--yes"]
    assert main([*live, "--out", "again"]) == 0
    assert "the same: 2 arms" in capsys.readouterr().out
    assert (folder / "again" / "experiment.json").exists()
    for arguments, message in (
        (live, "Write --live --out DIR"),
        (["reproduce", "run", "--out", "x"], "Write --live --out DIR"),
        ([*live, "--out", "../" + folder.name + "/run"], "is the folder that is reproduced"),
        ([*live[:-1], "--out", "other"], "Add --yes."),
    ):
        assert main(arguments) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["none"], "'none' has no experiment"),
        (["run"], "names no declaration"),
        (["run", "app:number"], "app:number is no Experiment"),
        (["run", "app:experiment"], "has no finished point"),
    ],
)
def test_folder_that_cannot_be_reproduced_is_status_2(
    arguments: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    sys.path.insert(0, str(folder))
    experiment: Any = __import__("app").experiment
    experiment.run("run", budget=sigwire.Budget(calls=1), progress=False)
    assert main(["reproduce", *arguments]) == 2
    assert message in capsys.readouterr().err


# --- view, export


def test_view_writes_the_page_into_the_folder(ran: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in ("run", "run/experiment.json"):
        assert main(["view", path]) == 0
        streams = capsys.readouterr()
        assert streams.out == f"{Path('run', 'experiment.html')}\n"
        assert "Experiment  2 programs" in streams.err
    assert len([*(ran / "experiment-points").iterdir()]) == 2
    assert main(RUN) == 0  # the page is no other experiment


def test_view_prints_the_table_as_markdown(ran: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["view", "run", "--markdown"]) == 0
    assert "| short | " in capsys.readouterr().out
    assert not (ran / "experiment.html").exists()


def test_export_writes_the_table_of_each_format(ran: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for form, name in (("csv", "experiment.csv"), ("markdown", "experiment.md"), ("latex", "experiment.tex")):
        assert main(["export", "run", "--to", form]) == 0
        assert capsys.readouterr().out == f"{Path('run', name)}\n"
    assert main(["export", "run", "--to", "html", "--out", "paper/grid.html"]) == 0
    with (ran / "experiment.csv").open(encoding="utf-8", newline="") as file:
        assert [row["program"] for row in csv.DictReader(file)] == ["short", "first"]
    assert "| short | " in (ran / "experiment.md").read_text(encoding="utf-8")
    assert (ran / "experiment.tex").read_text(encoding="utf-8").startswith("\\begin{tabular}")
    assert Path("paper/grid.html").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["view", "."], "has no experiment"),
        (["view", "run", "run"], "is shown alone"),
        (["view", "run", "--out", "run/experiment.json"], "is the file that is read"),
        (["export", "run", "--to", "csv", "--out", "run/experiment.json"], "is the file that is read"),
        (["export", "run", "--to", "inspect"], "Use csv, markdown, latex, html"),
        (["export", "a.jsonl", "--to", "latex"], "Use inspect, csv, markdown, html"),
    ],
)
def test_faces_of_a_folder_held_wrong_are_status_2(
    arguments: list[str], message: str, ran: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if "a.jsonl" in arguments:
        assert main(["eval", "app:first_word", "data.jsonl", "--metric", "app:exact", "--log", "a.jsonl"]) == 0
        capsys.readouterr()
    before = (ran / "experiment.json").read_bytes()
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line
    assert (ran / "experiment.json").read_bytes() == before
