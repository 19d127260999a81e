"""``sigwire eval``: exit status, output for people and machines, data files, logs and baselines."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import sigwire
from sigwire.cli import main

ROOT = Path(__file__).resolve().parents[2]
EVAL = ["eval", "app:program", "data.jsonl", "--metric", "app:exact"]


def test_eval_prints_the_result_and_returns_0(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(EVAL) == 0
    assert "exact        0.667" in capsys.readouterr().out


@pytest.mark.parametrize(("bound", "status"), [("0.6", 0), ("0.8", 1)])
def test_fail_under_decides_the_exit_status(bound: str, status: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*EVAL, "--fail-under", bound]) == status
    assert ("below --fail-under" in capsys.readouterr().err) is bool(status)


def test_json_is_the_only_output_on_stdout(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGWIRE_PROGRESS", "log")
    assert main([*EVAL, "--json", "--limit", "2"]) == 0
    streams = capsys.readouterr()
    found = json.loads(streams.out)
    assert (found["n"], found["mean"], found["status"]) == (2, 1.0, "complete")
    assert found["intervals"] == {"exact": found["interval"]}
    assert (found["interval"]["is_few"], found["tools"], found["warnings"]) == (False, {}, {})
    assert "sigwire.evaluate 2/2" in streams.err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["eval", "app:progam", "data.jsonl", "--metric", "app:exact"], "Did you mean program?"),
        (["eval", "app:prog", "data.jsonl", "--metric", "app:exact"], "Did you mean program?"),
        (
            ["eval", "app:xyz", "data.jsonl", "--metric", "app:exact"],
            "app.py has Support, Triage, answer, broken, exact, first_word, program, unset.",
        ),
        (["eval", "apps:program", "data.jsonl", "--metric", "app:exact"], "There is no module 'apps'"),
        (["eval", "app.py", "data.jsonl", "--metric", "app:exact"], "Write app:program"),
        (["eval", "app:number", "data.jsonl", "--metric", "app:exact"], "int is not callable"),
        (["eval", "app:program", "none.jsonl", "--metric", "app:exact"], "There is no file 'none.jsonl'"),
        (["eval", "app:program", "data.jsonl", "--metric", "app:number"], "A metric is a function"),
        (["eval", "app:unset", "data.jsonl", "--metric", "app:exact"], "(the arguments have none). Add --lm MODEL"),
        ([*EVAL, "--lm", "nobody-7b"], "No provider for the model 'nobody-7b'"),
        ([*EVAL, "--resume"], "Add --log FILE"),
        ([*EVAL, "--log", "data.jsonl", "--resume"], "Name another file with --log"),
        ([*EVAL, "--limit", "-1"], "--limit is a number above 0, not -1"),
        ([*EVAL, "--baseline", "data.jsonl"], "has no run"),
        ([*EVAL, "--load", "data.jsonl"], "data.jsonl"),
        ([*EVAL, "--inputs", "question"], "question"),
    ],
)
def test_wrong_usage_is_one_line_and_status_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    lines = capsys.readouterr().err.strip().splitlines()
    assert len(lines) == 1
    assert message in lines[0]
    assert re.search(r"\b\w+=|\w\(\)", lines[0].partition("Write def metric(")[0]) is None, "options of Python"


def test_log_of_another_run_is_refused_in_words_of_the_command_line(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*EVAL, "--log", "run.jsonl"]) == 0
    assert main([*EVAL[:1], "app:first_word", *EVAL[2:], "--log", "run.jsonl", "--resume"]) == 2
    assert capsys.readouterr().err.rstrip().endswith("(opening the log). Name another file with --log.")


def test_eval_shows_no_names_of_python(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(EVAL) == 0
    out = capsys.readouterr().out
    assert "first wrong" in out
    assert "result." not in out


def test_wrong_option_is_status_2() -> None:
    with pytest.raises(SystemExit) as error:
        main([*EVAL, "--nonsense"])
    assert error.value.code == 2


@pytest.mark.parametrize("source", ["import sigwire\n1/0\n", "def f(:\n", "import no_such_package\n"])
def test_failing_import_names_the_line_of_the_user(
    source: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "app.py").write_text(source, encoding="utf-8")
    assert main(EVAL) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert "app.py:" in line
    assert line.endswith("Correct that file.")


def test_aborted_evaluation_is_status_3_and_prints_the_finished_part(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*EVAL[:-1], "app:broken"]) == 3
    streams = capsys.readouterr()
    assert "aborted" in streams.out
    assert "sigwire eval: The metric failed on the first 3 examples" in streams.err


def test_control_characters_of_an_error_are_visible(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = (
        (folder / "app.py").read_text(encoding="utf-8").replace('KeyError("topic")', r'ValueError("\x1b[31m\u202e")')
    )
    (folder / "app.py").write_text(source, encoding="utf-8")
    assert main([*EVAL[:-1], "app:broken"]) == 3
    streams = capsys.readouterr()
    assert r"\x1b[31m\u202e" in streams.err
    assert "\x1b" not in streams.out + streams.err


def test_terminal_without_unicode_shows_escapes(folder: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "sigwire", *EVAL]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert r"\u2501" in done.stdout


def test_bug_of_the_user_names_its_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "app.py").write_text(
        "import sigwire\nclass program(sigwire.Module):\n    def __init__(self):\n        1 / 0\n", "utf-8"
    )
    assert main(EVAL) == 3
    assert "ZeroDivisionError at " in (line := capsys.readouterr().err)
    assert "app.py:4" in line


def test_spent_budget_is_status_3(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sigwire.prices, "_rows", ())  # the file registers a price in this process
    price = "sigwire.prices.register('fake*', sigwire.Price(input=1e6, output=1e6))\n"
    source = (folder / "app.py").read_text(encoding="utf-8").replace("program = ", f"{price}program = ")
    (folder / "app.py").write_text(source, encoding="utf-8")
    assert main([*EVAL, "--budget", "0"]) == 3
    assert "budget" in capsys.readouterr().err


def test_log_is_resumed_with_resume_only(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*EVAL, "--log", "run.jsonl"]) == 0
    assert main([*EVAL, "--log", "run.jsonl"]) == 2
    assert "Add --resume" in capsys.readouterr().err
    before = (folder / "run.jsonl").read_text(encoding="utf-8").count('"type":"record"')
    assert main([*EVAL, "--log", "run.jsonl", "--resume"]) == 0
    assert (folder / "run.jsonl").read_text(encoding="utf-8").count('"type":"record"') == before == 3


def test_program_worse_than_the_baseline_is_status_1(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [json.dumps({"message": f"billing {n}", "topic": "billing"}) for n in range(30)]
    (folder / "data.jsonl").write_text("\n".join(rows), encoding="utf-8")
    source = (folder / "app.py").read_text(encoding="utf-8")
    (folder / "app.py").write_text(
        f"{source}\ndef worse(message):\n    return sigwire.Prediction(topic='')\n", encoding="utf-8"
    )
    assert main([*EVAL, "--log", "run.jsonl"]) == 0
    assert main([*EVAL, "--baseline", "run.jsonl"]) == 0
    assert main(["eval", "app:worse", *EVAL[2:], "--baseline", "run.jsonl", "--json"]) == 1
    streams = capsys.readouterr()
    assert "this is worse than baseline" in streams.err
    assert main(["eval", "app:worse", *EVAL[2:], "--baseline", "run.jsonl", "--limit", "20"]) == 1


def test_program_worse_by_another_metric_than_the_headline_is_status_1(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [json.dumps({"message": f"billing {n}", "topic": "billing"}) for n in range(30)]
    (folder / "data.jsonl").write_text("\n".join(rows), encoding="utf-8")
    with (folder / "app.py").open("a", encoding="utf-8") as file:
        file.write("\ndef worse(message):\n    return sigwire.Prediction(topic='')\n")
        file.write(
            "\ndef both(example, prediction):\n    return {'kind': 1, 'right': prediction.topic == example.topic}\n"
        )
    options = ["both" if option == "exact" else option.replace("app:exact", "app:both") for option in EVAL[2:]]
    assert main([*EVAL[:2], *options, "--log", "run.jsonl"]) == 0
    capsys.readouterr()
    assert main(["eval", "app:worse", *options, "--baseline", "run.jsonl", "--json"]) == 1
    streams = capsys.readouterr()
    assert "right: this is worse than baseline" in streams.err
    found = json.loads(streams.out)["baseline"]
    assert (found["verdict"], found["metrics"]["right"]["verdict"]) == ("not shown to be better", "worse")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["app:exact", "--repeat", "2"], "its --repeat is 1 and not 2"),
        (["app:broken"], "its metric is 'exact' and not 'broken'"),
        (["app:exact"], "it ran 3 of these 4 examples and 0 others"),
    ],
)
def test_baseline_that_does_not_fit_is_refused_before_any_call(
    changes: list[str], message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*EVAL, "--log", "run.jsonl"]) == 0
    with (folder / "data.jsonl").open("a", encoding="utf-8") as file:
        file.write('\n{"message": "more of it", "topic": "billing"}\n' if len(changes) == 1 else "\n")
    capsys.readouterr()
    assert main([*EVAL[:-1], *changes, "--baseline", "run.jsonl", "--log", "new.jsonl"]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line
    assert not (folder / "new.jsonl").exists()


@pytest.mark.parametrize("target", ["app:Support", "app:program", "app:first_word", "app:program.triage"])
def test_program_is_a_module_a_class_or_a_function(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", target, *EVAL[2:], "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["scored"] == 3


def test_lm_is_the_model_of_all_predictors(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*EVAL, "--lm", "offline/lexical", "--log", "run.jsonl"]) == 0
    header = json.loads((folder / "run.jsonl").read_text(encoding="utf-8").splitlines()[0])
    assert header["lm"]["model"] == "offline/lexical"
    assert main(["eval", "app:Triage", *EVAL[2:], "--lm", "offline/lexical"]) == 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("data.json", '[{"message": "billing", "order": 3, "topic": "billing"}]'),
        ("data.csv", "message,order,topic\nbilling,3,billing\n"),
        ("data.jsonl", '\ufeff{"message": "billing", "order": 3, "topic": "billing"}\n\n'),
    ],
)
def test_data_files_are_json_lines_json_and_csv(
    name: str, text: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / name).write_text(text, encoding="utf-8")
    log = ["--log", "run.jsonl", "--lm", "offline/lexical"]
    assert main(["eval", "app:Triage", name, "--metric", "app:exact", *log]) == 0
    record = json.loads((folder / "run.jsonl").read_text(encoding="utf-8").splitlines()[1])
    assert record["inputs"] == {"message": "billing", "order": 3}
    assert record["labels"] == {"topic": "billing"}


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("bad.jsonl", '{"message": "a"}\n{"message": \n', "bad.jsonl, line 2"),
        ("bad.jsonl", "[1]\n", "bad.jsonl, row 1 is no JSON object"),
        ("bad.json", "{}x", "bad.json, line 1"),
        ("bad.csv", "message,topic\na,b,c\n", "bad.csv, line 2"),
        ("bad.jsonl", "", "has no examples"),
        ("bad.txt", "a", "has a suffix that is not known"),
        ("bad.jsonl", '{"question": "a"}', "none of the program's inputs message"),
    ],
)
def test_unreadable_data_names_file_and_line(
    name: str, text: str, message: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / name).write_text(text, encoding="utf-8")
    assert main(["eval", "app:program", name, "--metric", "app:exact"]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="there is no SIGINT for another process")
def test_interrupted_evaluation_is_status_130_and_resumable(folder: Path) -> None:
    (folder / "app.py").write_text(
        "import time, sigwire\n"
        "def program(message):\n    time.sleep(0.2 if message.startswith('billing') else 30)\n"
        "    print('ran', flush=True)\n    return sigwire.Prediction(topic='billing')\n"
        "def exact(example, prediction):\n    return 1.0\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "sigwire", *EVAL, "--log", "run.jsonl", "--threads", "2"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ran\n"
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        out, error = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    assert "--log run.jsonl --resume runs the rest" in error
    assert "Traceback" not in error + out
    assert len(re.findall("interrupted[;.]", error)) == 1


def test_configured_model_of_the_file_is_used_unless_lm_is_given(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = sigwire.settings.lm
    source = (folder / "app.py").read_text(encoding="utf-8")
    (folder / "app.py").write_text(f"{source}\nsigwire.configure(lm=sigwire.FakeLM(answer))\n", encoding="utf-8")
    arguments = ["eval", "app:unset", *EVAL[2:], "--json"]
    try:
        assert main(arguments) == 0
        assert json.loads(capsys.readouterr().out)["mean"] == pytest.approx(2 / 3)
        assert main([*arguments, "--lm", "offline/lexical", "--log", "run.jsonl"]) == 0
    finally:
        sigwire.configure(lm=before)
    assert '"model":"offline/lexical"' in (folder / "run.jsonl").read_text(encoding="utf-8").replace(" ", "")


def test_repeat_and_named_inputs_reach_the_evaluation(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*EVAL, "--repeat", "2", "--inputs", "message", "--log", "run.jsonl", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["n"] == 3
    assert (folder / "run.jsonl").read_text(encoding="utf-8").count('"type":"record"') == 6


DECIDING = """
import sigwire

def answer(request):
    number = int(request.messages[-1].text.split("row ")[-1].split()[0])
    p = 0.95 if number % 2 else 0.05
    return {"urgent": p > 0.5, **({"evidence_": {"urgent": p}} if "evidence_" in request.messages[0].text else {})}

program = sigwire.Predict("ticket -> urgent: bool", lm=sigwire.FakeLM(answer))

def exact(example, prediction, trace=None):
    return example.urgent == prediction.urgent
"""


def write_deciding(folder: Path, count: int = 30, options: str = "") -> None:
    """Write a program that states its probabilities, if it is asked, and its rows."""
    (folder / "app.py").write_text(DECIDING.replace('urgent: bool", ', f'urgent: bool", {options}'), encoding="utf-8")
    lines = [json.dumps({"ticket": f"row {number}", "urgent": number % 2 == 1}) for number in range(count)]
    (folder / "data.jsonl").write_text("\n".join(lines), encoding="utf-8")


def test_evidence_shows_the_calibration_of_each_output(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_deciding(folder)
    assert main([*EVAL, "--evidence", "stated"]) == 0
    assert "calibration urgent  ECE 0.05, Brier 0.01 (stated, 30 rows)" in capsys.readouterr().out
    assert main([*EVAL, "--evidence", "stated", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["calibration"]["urgent"]["n"] == 30
    assert main(EVAL) == 0
    assert "calibration" not in capsys.readouterr().out


def test_function_has_no_evidence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["eval", "app:first_word", *EVAL[2:], "--evidence", "auto"]) == 2
    assert "has no predictors (reading --evidence)" in capsys.readouterr().err
