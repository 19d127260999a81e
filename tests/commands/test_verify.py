"""``sigwire verify``: the plan, the question before the first request, the files to send, the exit status."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from sigwire.cli import main
from sigwire.core.response import Response
from sigwire.modules.ask import Ask
from sigwire.probes.table import PROBES
from sigwire.testing import FakeProvider
from tests.lm.calls import forget_keys
from tests.probes.provider import KEY, Honest, Provider

OFFLINE = ["verify", "offline/lexical"]


class Terminal(io.StringIO):
    """A standard input that is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys(monkeypatch)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


def arguments_at(provider: FakeProvider, monkeypatch: pytest.MonkeyPatch, *more: str) -> list[str]:
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url("openai"))
    return ["verify", "openai/gpt-4.1", *more]


def test_embedded_model_keeps_the_promises_of_its_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*OFFLINE, "--yes"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("offline/lexical at this process: 22 probes, 27 requests")
    rows = [line.split() for line in out.splitlines() if line.startswith("  ")]
    assert {row[-1] for row in rows if row[0] in PROBES} == {"agrees", "behaviour"}
    assert [row[-1] for row in rows if row[0] == "length"] == ["agrees"]
    assert not {row[0] for row in rows} & {"bad_key", "image"}


def test_verify_writes_the_two_files_that_its_last_line_names(
    folder: Path, capsys: pytest.CaptureFixture[str], key: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Provider("openai") as provider:
        arguments = arguments_at(provider, monkeypatch, "--yes", "--json", "r.json", "--cassette", "c.jsonl")
        assert main(arguments) == 0
        assert len(provider.requests) == json.loads((folder / "r.json").read_text(encoding="utf-8"))["requests"]
    assert "send r.json and c.jsonl" in capsys.readouterr().out.splitlines()[-1]
    texts = "".join((folder / name).read_text(encoding="utf-8") for name in ("r.json", "c.jsonl"))
    assert KEY not in texts
    assert '"cassette"' in texts


@pytest.mark.parametrize(
    ("lie", "more", "status"),
    [
        ("", [], 0),
        ("obeys_name", [], 1),
        ("obeys_name", ["--requests", "1"], 3),
        ("", ["--money", "0"], 3),
    ],
)
def test_exit_status_of_verify(
    lie: str, more: list[str], status: int, key: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Provider("openai", lie) as provider:
        assert main(arguments_at(provider, monkeypatch, "--yes", "--probes", "text,named", *more)) == status


def test_verify_takes_an_address_and_sends_no_key_of_the_environment_there(
    key: None, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeProvider(Honest()) as provider:
        arguments = ["verify", "openai/gpt-4.1", "--base-url", provider.url("openai"), "--probes", "text", "--yes"]
        assert main(arguments) == 3
    (received,) = provider.requests
    assert "authorization" not in received.headers
    assert "LMAuthenticationError" in capsys.readouterr().out


@pytest.mark.parametrize("terminal", [False, True], ids=["no terminal", "terminal"])
def test_nothing_is_sent_without_yes(
    terminal: bool, key: None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("n\n") if terminal else io.StringIO("y\n"))
    with Provider("openai") as provider:
        assert main(arguments_at(provider, monkeypatch)) == (3 if terminal else 2)
        assert provider.requests == ()
    streams = capsys.readouterr()
    assert "27 probes, 31 requests" in streams.out
    assert ("nothing was sent." if terminal else "Add --yes") in streams.err


def test_answer_y_at_the_terminal_sends(key: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", Terminal("y\n"))
    with Provider("openai") as provider:
        assert main(arguments_at(provider, monkeypatch, "--probes", "text")) == 0
        assert len(provider.requests) == 1


def test_interrupted_verify_prints_the_answers_until_then(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run, count = Ask.run, iter(range(9))

    def interrupted(ask: Ask) -> Response:
        if next(count):
            raise KeyboardInterrupt
        return run(ask)

    monkeypatch.setattr(Ask, "run", interrupted)
    assert main([*OFFLINE, "--probes", "text,usage,system", "--yes", "--json", "r.json"]) == 130
    rows = json.loads((folder / "r.json").read_text(encoding="utf-8"))["rows"]
    assert [row["verdict"] for row in rows] == ["agrees", "not sent", "not sent"]
    assert "interrupted" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--probes", "txt"], "Did you mean text?"),
        (["--requests", "-1"], "requests=-1 is too small"),
        (["--json", "none/r.json"], "in a folder that exists"),
        (["--cassette", "none/c.jsonl"], "in a folder that exists"),
        (["--money", "-1"], "money of a Budget"),
    ],
)
def test_wrong_usage_of_verify_is_one_line_and_status_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*OFFLINE, "--yes", *arguments]) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line


def test_wire_of_the_row_is_chosen_by_its_name(
    capsys: pytest.CaptureFixture[str], key: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    with FakeProvider(['{"zq_named": 0.75}']) as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url("decisions"))
        assert main(["verify", "openai/gpt-6-luna", "--wire", "decisions", "--probes", "bool", "--yes"]) == 0
    assert [sent.path for sent in provider.requests] == ["/v1/decisions"]
    assert "1 agrees" in capsys.readouterr().out
