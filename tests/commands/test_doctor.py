"""``sigwire doctor``: facts for a bug report, without secrets and without a socket; ``--ping`` asks a model."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest

from sigwire.cli import main
from sigwire.testing import FakeProvider

ROOT = Path(__file__).resolve().parents[2]
AUDIT = """
import sys
seen = []
sys.addaudithook(lambda event, args: seen.append(event))
from sigwire.cli import main
assert main(["doctor"]) == 0
heavy = {"aiohttp", "pydantic", "ssl", "litellm", "genai_prices"} & {name.split(".")[0] for name in sys.modules}
print([event for event in seen if event.startswith("socket.")], sorted(heavy), file=sys.stderr)
"""


def test_doctor_prints_no_key_and_opens_no_socket_without_ping() -> None:
    secret = "sk-canary"
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "OPENAI_API_KEY": secret,
        "AZURE_OPENAI_API_KEY": secret,
        "HTTPS_PROXY": f"http://me:{secret}@proxy.corp:3128",
        "all_proxy": f"me:{secret}@proxy.corp:1080",
        "OLLAMA_HOST": f"http://me:{secret}@gpu-box",
        "SIGWIRE_CACHE": "memory",
    }
    done = subprocess.run([sys.executable, "-c", AUDIT], capture_output=True, text=True, env=environment, check=True)
    assert done.stderr == "[] []\n"
    assert secret not in done.stdout
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert {"OPENAI_API_KEY set", "HTTPS_PROXY http://proxy.corp:3128", "all_proxy proxy.corp:1080", "mode memory"} <= {
        *lines
    }


def test_doctor_names_versions_extras_and_the_cache(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SIGWIRE_CACHE_DIR", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "responses.sqlite3").write_bytes(b"0" * 2_000_000)
    assert main(["doctor", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert {"sigwire", "Python", "platform", "aiohttp", "pydantic"} <= facts["versions"].keys()
    assert {"litellm", "mcp", "otel", "prices"} <= facts["extras"].keys()
    assert facts["cache"]["size"] == "2.0 MB"
    assert "ping" not in facts


def test_ping_asks_the_model_once_and_reports_an_error_as_status_3(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with FakeProvider(lambda request: "pong") as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url("openai"))
        assert main(["doctor", "--ping", "openai/gpt-5-mini", "--json"]) == 0
        assert len(provider.requests) == 1
    assert "seconds" in json.loads(capsys.readouterr().out)["ping"]
    assert main(["doctor", "--ping", "openai/gpt-5-mini"]) == 3
    assert "LMTransportError" in capsys.readouterr().out
    assert main(["doctor", "--ping", "gpt-5"]) == 3


class _Ollama(BaseHTTPRequestHandler):
    """Answers the questions of ``doctor`` about the server and its loaded models."""

    replies: ClassVar[dict[str, Any]] = {
        "/api/version": {"version": "0.13.1"},
        "/api/ps": {"models": [{"name": "qwen3:4b", "context_length": 8192}]},
        "/api/chat": {
            "model": "qwen3",
            "message": {"role": "assistant", "content": "pong"},
            "done": True,
            "done_reason": "stop",
        },
    }

    def do_GET(self) -> None:
        body = json.dumps(self.replies[self.path]).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(body)))
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def ollama(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Ollama)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    monkeypatch.setenv("OLLAMA_HOST", f"http://127.0.0.1:{server.server_port}")
    yield
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.usefixtures("ollama")
@pytest.mark.parametrize(("model", "window"), [("qwen3", "8192"), ("llama4", "unknown: the model is not loaded")])
def test_ping_of_ollama_reports_its_version_and_num_ctx(
    model: str, window: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--ping", f"ollama/{model}", "--json"]) == 0
    ping = json.loads(capsys.readouterr().out)["ping"]
    assert (ping["Ollama"], ping["num_ctx"]) == ("0.13.1", window)
