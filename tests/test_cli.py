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

import sigwire
from sigwire.cli import main
from sigwire.commands.parser import VERBS
from sigwire.testing import FakeProvider

RUN = [sys.executable, "-c", "import sys; from sigwire.cli import main; sys.exit(main())", "fake-provider"]
ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGINT for another process")
def test_fake_provider_answers_until_interrupted() -> None:
    command = [*RUN, "--port", "0", "--answer", "Hello"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process, ExitStack() as afterwards:
        afterwards.callback(process.kill)
        assert process.stdout is not None
        lines = [process.stdout.readline().split() for _ in range(15)]
        urls = {line[0]: line[1] for line in lines}
        body = json.dumps({"model": "m", "stream": False, "messages": [{"role": "user", "content": "Hi"}]}).encode()
        with urlopen(Request(urls["ollama"] + "/api/chat", body), timeout=60) as answer:
            assert json.loads(answer.read())["message"]["content"] == "Hello"
        with urlopen(Request(urls["ollama"] + "/api/chat", body.replace(b"false", b"true")), timeout=60) as answer:
            assert [json.loads(line)["done"] for line in answer] == [False, True]
        process.send_signal(signal.SIGINT)
        assert process.wait(60) == 0
        assert process.stdout.read() == "2 requests\n"
    assert sorted(urls) == [
        *(
            "anthropic",
            "azure",
            "azure-responses",
            "bedrock",
            "compatible",
            "decisions",
            "gemini",
            "gemini-decisions",
            "ollama",
            "openai",
            "openai-responses",
            "system-one",
        ),
        *("vertex", "vertex-chat", "vertex-claude"),
    ]


def test_port_in_use_is_reported_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeProvider() as provider:
        port = str(urlsplit(provider.url("ollama")).port)
        assert main(["fake-provider", "--port", port]) == 1
    assert "Use another --port" in capsys.readouterr().out


HELP = """
import contextlib, io, sys
from sigwire.cli import main
from sigwire.commands.parser import VERBS
for arguments in ([], *([verb.replace("_", "-")] for verb in VERBS)):
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()) as out:
        main([*arguments, "--help"])
    assert out.getvalue().startswith("usage: sigwire"), arguments
print(*sorted({name.partition(".")[0] for name in sys.modules}), *sorted(n for n in sys.modules if n.startswith("sigwire.")))
"""


def test_help_of_every_verb_loads_no_pydantic_and_no_aiohttp() -> None:
    done = subprocess.run([sys.executable, "-c", HELP], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = set(done.stdout.split())
    heavy = {"aiohttp", "asyncio", "email", "jsonschema", "litellm", "pydantic", "rich", "ssl"}
    assert loaded & heavy == set()
    files = {name for name in loaded if name.startswith("sigwire.") and not name.startswith("sigwire.commands")}
    assert files == {"sigwire.cli", "sigwire.core", "sigwire.core.lazy", "sigwire.errors", "sigwire.tracebacks"}


def test_help_of_all_verbs_loads_no_verb() -> None:
    code = "import sys; from sigwire.commands.parser import parser; parser('').format_help(); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    loaded = {name for name in done.stdout.split() if name.startswith("sigwire.") or name in ("dataclasses", "inspect")}
    own = {"sigwire.commands.arguments", "sigwire.commands.parser", "sigwire.core.lazy"}
    assert loaded == {"sigwire.commands", "sigwire.core", *own}


def test_sigwire_without_arguments_shows_the_help_with_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([])
    streams = capsys.readouterr()
    assert (ended.value.code, streams.out) == (2, "")
    assert all(phrase in streams.err for phrase in ("usage: sigwire", "run a program on examples and score it"))


def test_help_verb_is_the_help_option(capsys: pytest.CaptureFixture[str]) -> None:
    pages: list[str] = []
    for arguments in (["help", "view"], ["view", "--help"], ["help"], ["--help"]):
        with pytest.raises(SystemExit) as ended:
            main(arguments)
        assert ended.value.code == 0
        pages.append(capsys.readouterr().out)
    assert (pages[0], pages[2]) == (pages[1], pages[3])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["evl"], "sigwire: There is no verb 'evl' (reading the arguments). Did you mean eval? "),
        (["fake_provider"], "Did you mean fake-provider? "),
        (["version"], "Did you mean --version? "),
        (["fly"], "sigwire: There is no verb 'fly' (reading the arguments). sigwire --help lists what there is."),
        (["eval", "app:program", "--metrc", "x"], "sigwire eval: There is no option --metrc (reading the arguments). "),
        (["eval", "app:program", "--metrc=x"], "Did you mean --metric? sigwire eval --help lists"),
        (["--jsn", "models"], "sigwire: There is no option --jsn"),
        (["models", "-j"], "sigwire models: There is no option -j"),
        (["eval", "app:program"], "are required: data, --metric (reading the arguments). sigwire eval --help"),
        (["models", "openai", "groq"], "sigwire models: 'groq' is one argument too many (reading the arguments)."),
        (["export", "a.jsonl", "--to", "cvs"], "invalid choice: 'cvs'"),
    ],
)
def test_wrong_arguments_are_one_line_with_a_suggestion(
    arguments: list[str], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert text in error
    assert (error.count("\n"), error.count("--help lists")) == (1, 1)


def test_beginning_of_an_option_is_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "offline", "--js"]) == 0
    assert capsys.readouterr().out.startswith("[")


def test_module_of_the_package_runs_the_command_line() -> None:
    command = [sys.executable, "-m", "sigwire", "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == f"sigwire {sigwire.__version__}\n"


@pytest.mark.parametrize("columns", [40, 80, 160])
@pytest.mark.parametrize("verb", ["", *VERBS])
def test_help_of_a_verb_fits_the_terminal(
    verb: str, columns: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    with pytest.raises(SystemExit) as ended:
        main([*([verb.replace("_", "-")] if verb else []), "--help"])
    assert ended.value.code == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= columns, max(lines, key=len)


@pytest.mark.skipif(os.name == "nt", reason="a closed pipe is another error there")
def test_closed_pipe_ends_the_output_without_a_traceback() -> None:
    command = f"{sys.executable} -m sigwire completion powershell | head -1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stderr == ""
