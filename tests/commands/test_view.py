"""``sigwire view``, ``export`` and ``preview``: files of records as reports and exports, and the request of a call."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from sigwire.cli import main
from sigwire.testing import FakeProvider

EVAL = ["eval", "app:program", "data.jsonl", "--metric", "app:exact", "--log"]


@pytest.fixture
def records(capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return two files of records, of two programs."""
    assert main([*EVAL, "a.jsonl"]) == 0
    assert main(["eval", "app:first_word", *EVAL[2:], "b.jsonl"]) == 0
    capsys.readouterr()
    return ["a.jsonl", "b.jsonl"]


def test_view_writes_the_report_beside_the_records(
    records: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", "a.jsonl"]) == 0
    streams = capsys.readouterr()
    assert streams.out == "a.html\n"
    assert "exact" in streams.err
    assert "billing please" in (folder / "a.html").read_text(encoding="utf-8")


def test_view_of_two_files_is_their_comparison(
    records: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", *records, "--out", "both.html"]) == 0
    assert "not shown to be better" in capsys.readouterr().err
    assert "<html" in (folder / "both.html").read_text(encoding="utf-8")


def test_view_prints_markdown_for_a_pull_request(
    records: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", *records, "--markdown"]) == 0
    assert "not shown to be better" in capsys.readouterr().out
    assert not (folder / "b.html").exists()


@pytest.mark.parametrize("how", ["its own name", "a link", "another way to write it"])
@pytest.mark.parametrize("verb", [["view"], ["export", "--to", "html"]])
def test_no_command_writes_over_the_file_that_it_reads(
    verb: list[str], how: str, records: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    same = folder / "same.html"
    (folder / "a.jsonl").rename(same)
    before, out = same.read_bytes(), ["--out", "x/../same.html"]
    if how == "a link":
        (folder / "linked.html").symlink_to(same)
        out = ["--out", "linked.html"]
    (folder / "x").mkdir()
    assert main([verb[0], "same.html", *verb[1:], *([] if how == "its own name" else out)]) == 2
    assert "is the file that is read" in capsys.readouterr().err
    assert same.read_bytes() == before


def test_markdown_has_no_html_of_a_model(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [json.dumps({"message": "<img src=x onerror=alert(1)>", "topic": "<b>billing</b>"})]
    (folder / "data.jsonl").write_text("\n".join(rows), encoding="utf-8")
    assert main([*EVAL, "c.jsonl"]) == 0
    capsys.readouterr()
    assert main(["view", "c.jsonl", "--markdown"]) == 0
    shown = capsys.readouterr().out
    assert "<img" not in shown
    assert "<b>" not in shown


def test_view_opens_the_report_in_a_browser_on_request(
    records: list[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    assert main(["view", "a.jsonl"]) == 0
    assert opened == []
    assert main(["view", "a.jsonl", "--open"]) == 0
    assert opened == [(folder / "a.html").as_uri()]


def test_view_of_a_journal_is_the_report_of_its_search(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    search = ["optimize", "app:program", "data.jsonl", "--metric", "app:exact", "--optimizer", "BootstrapFewShot"]
    assert main([*search, "--yes", "--journal", "search.jsonl", "--report", "now.html"]) == 0
    assert main(["view", "search.jsonl"]) == 0
    assert "BootstrapFewShot" in capsys.readouterr().err
    assert (folder / "search.html").exists()
    assert (folder / "now.html").exists()


@pytest.mark.parametrize(
    "arguments", [["none.jsonl"], ["data.jsonl"], ["a.jsonl", "data.jsonl"], ["a.jsonl", "a.jsonl"], ["."]]
)
def test_view_of_a_file_without_records_is_status_2(
    arguments: list[str], records: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["view", *arguments]) == 2
    assert len(capsys.readouterr().err.strip().splitlines()) == 1


def test_view_of_different_examples_names_the_option_for_shared_ones(
    records: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        main(["eval", "app:program", "data.jsonl", "--metric", "app:exact", "--limit", "2", "--log", "part.jsonl"]) == 0
    )
    assert main(["view", "a.jsonl", "part.jsonl"]) == 2
    assert "(--common compares" in capsys.readouterr().err
    assert main(["view", "a.jsonl", "part.jsonl", "--common"]) == 0


def test_export_writes_csv_html_and_a_log_of_inspect(
    records: list[str], folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    written: list[Path] = []
    for form in ("csv", "html", "inspect"):
        assert main(["export", "a.jsonl", "--to", form]) == 0
        written.append(folder / capsys.readouterr().out.strip())
    with written[0].open(encoding="utf-8", newline="") as file:
        assert len([*csv.DictReader(file)]) == 3
    assert "<html" in written[1].read_text(encoding="utf-8")
    assert json.loads(written[2].read_text(encoding="utf-8"))["eval"]["model"]
    assert main(["export", "a.jsonl", "--to", "csv", "--out", "named.csv"]) == 0
    assert (folder / "named.csv").exists()


def test_key_of_the_program_is_in_no_output_or_file_of_any_verb(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    canary = "sk-canary-0123456789abcdef"
    monkeypatch.setenv("OPENAI_API_KEY", canary)
    with FakeProvider(lambda request: "[[ ## topic ## ]]\nbilling") as provider:
        source = (folder / "app.py").read_text(encoding="utf-8")
        lm = (
            f"sigwire.LM('openai/gpt-5-mini', base_url={provider.url('openai')!r}, cache=False, api_key={canary!r}, "
            f"headers={{'x-account': {canary!r}}}, extra_body={{'metadata': {{'token': {canary!r}}}}})"
        )
        (folder / "app.py").write_text(source.replace("sigwire.FakeLM(answer)", lm), encoding="utf-8")
        verbs = [
            [*EVAL, "run.jsonl", "--json"],
            ["view", "run.jsonl"],
            *(["export", "run.jsonl", "--to", form] for form in ("csv", "html", "inspect")),
            [
                "optimize",
                "app:program",
                "data.jsonl",
                "--metric",
                "app:exact",
                "--optimizer",
                "BootstrapFewShot",
                "--yes",
            ],
            ["models"],
            ["doctor"],
        ]
        for verb in verbs:
            assert main(verb) == 0, verb
        assert provider.requests
    streams = capsys.readouterr()
    assert canary not in streams.out + streams.err
    files = [path for path in folder.iterdir() if path.is_file() and path.name != "app.py"]
    assert len(files) >= 6
    assert [path.name for path in files if canary in path.read_text(encoding="utf-8")] == []
