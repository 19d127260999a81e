"""``sigwire preview``: the request of a call, its bytes and its curl command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sigwire.cli import main
from sigwire.testing import FakeProvider

PREVIEW = ["preview", "app:Triage", "message=Where is it?", "--lm", "openai/gpt-5-mini", "order=42"]


def test_preview_shows_the_request_and_the_variable_of_the_key(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    assert main(PREVIEW) == 0
    out = capsys.readouterr().out
    assert "Where is it?" in out
    assert "env:OPENAI_API_KEY" in out
    assert "sk-canary" not in out


def test_wire_prints_the_bytes_that_a_call_sends(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    (folder / "one.jsonl").write_text('{"message": "Where is it?", "order": 42, "topic": "t"}', encoding="utf-8")
    with FakeProvider(lambda request: "[[ ## topic ## ]]\nt") as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url("openai"))
        assert main([*PREVIEW, "--wire"]) == 0
        printed = json.loads(capsys.readouterr().out)
        assert not provider.requests
        lm = ["--lm", "openai/gpt-5-mini"]
        assert main(["eval", "app:Triage", "one.jsonl", "--metric", "app:exact", *lm]) == 0
        assert [request.body for request in provider.requests] == [printed]


def test_curl_has_the_key_as_a_variable_of_the_shell(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    assert main([*PREVIEW, "--curl"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("curl ")
    assert "$OPENAI_API_KEY" in out
    assert "sk-canary" not in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["preview", "app:Triage", "mesage=Hi"], "Did you mean message?"),
        (["preview", "app:Triage", "Hi"], "Write NAME=VALUE"),
        (["preview", "app:Triage", "message"], "'message' is not NAME=VALUE"),
        (["preview", "app:Triage", "message=Hi"], "--lm MODEL"),
        (["preview", "app:first_word", "message=Hi"], "no request to preview"),
    ],
)
def test_wrong_usage_of_preview_is_one_line_and_status_2(
    arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert message in line


@pytest.mark.parametrize("arguments", [[*PREVIEW, "--nonsense"], ["doctor", "a=b"]])
def test_unknown_argument_is_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert arguments[-1] in capsys.readouterr().err
