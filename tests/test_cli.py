"""The command line."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest

from sigwire.cli import main
from sigwire.testing import FakeProvider

RUN = [sys.executable, "-c", "import sys; from sigwire.cli import main; sys.exit(main())", "fake-provider"]
ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGINT for another process")
def test_fake_provider_answers_until_interrupted() -> None:
    command = [*RUN, "--port", "0", "--answer", "Hello"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process, ExitStack() as afterwards:
        afterwards.callback(process.kill)
        assert process.stdout is not None
        lines = [process.stdout.readline().split() for _ in range(9)]
        urls = {line[0]: line[1] for line in lines}
        body = json.dumps({"model": "m", "stream": False, "messages": [{"role": "user", "content": "Hi"}]}).encode()
        with urlopen(Request(urls["ollama"] + "/api/chat", body), timeout=10) as answer:
            assert json.loads(answer.read())["message"]["content"] == "Hello"
        with urlopen(Request(urls["ollama"] + "/api/chat", body.replace(b"false", b"true")), timeout=10) as answer:
            assert [json.loads(line)["done"] for line in answer] == [False, True]
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 0
        assert process.stdout.read() == "2 requests\n"
    assert sorted(urls) == [
        *("anthropic", "azure", "azure-responses", "compatible", "gemini", "ollama", "openai", "openai-responses"),
        "vertex",
    ]


def test_port_in_use_is_reported_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeProvider() as provider:
        port = str(urlsplit(provider.url("ollama")).port)
        assert main(["fake-provider", "--port", port]) == 1
    assert "Use another --port" in capsys.readouterr().out


def test_unknown_command_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["fly"])
    assert "fake-provider" in capsys.readouterr().err
