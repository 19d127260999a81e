"""Programs of other projects as the other side of sigwire's wires: servers for its client, clients for ``FakeProvider``.

A program that is not installed skips its tests, with the command that installs it; CONTRIBUTING has all commands. The tests are
marked ``long``.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.interop.tiny_model import LLAMA_CHECKS, MISTRAL_CHECKS, TEMPLATE, THINKS, write_tiny_model

KEY = "sk-interop"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = f"{Path(__file__).parent}{os.sep}"
    for item in items:
        if str(item.path).startswith(here):
            item.add_marker(pytest.mark.long)


@dataclass(frozen=True)
class LlamaServer:
    """A running llama-server with the tiny model. ``model``: the model's name in requests, which the server ignores."""

    root: str
    model: str = "tiny"
    key: str = KEY


@pytest.fixture(scope="session")
def llama_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    with _running_server(tmp_path_factory.mktemp("llama"), "tiny", TEMPLATE) as server:
        yield server


@pytest.fixture(scope="session")
def thinking_llama_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaServer]:
    """A server whose model thinks before it answers."""
    with _running_server(tmp_path_factory.mktemp("thinking"), "qwen3-tiny", TEMPLATE + THINKS) as server:
        yield server


@pytest.fixture(scope="session", params=["mistral-tiny", "llama-3-tiny"])
def strict_llama_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LlamaServer]:
    """A server whose chat template refuses the histories that the templates of this family refuse."""
    name = str(request.param)
    checks = MISTRAL_CHECKS if name.startswith("mistral") else LLAMA_CHECKS
    with _running_server(tmp_path_factory.mktemp(name), name, checks + TEMPLATE) as server:
        yield server


@contextmanager
def _running_server(directory: Path, name: str, template: str) -> Iterator[LlamaServer]:
    program = shutil.which("llama-server")
    if program is None:
        pytest.skip("llama-server is not on the PATH: apt-get install llama.cpp-tools (Debian sid)")
    if find_spec("gguf") is None:
        pytest.skip("the package gguf, which writes the model, is not installed: pip install gguf")
    model = directory / f"{name}.gguf"
    write_tiny_model(model, template)
    port = _free_port()
    command = [
        *(program, "--model", str(model), "--host", "127.0.0.1", "--port", str(port), "--api-key", KEY, "--jinja"),
        *("--ctx-size", "32768", "--parallel", "1", "--threads", "1"),
    ]
    log = directory / "server.log"
    with log.open("wb") as output, subprocess.Popen(command, stdout=output, stderr=output) as process:
        try:
            _wait_until_ready(f"http://127.0.0.1:{port}/health", process, log)
            yield LlamaServer(f"http://127.0.0.1:{port}", name)
        finally:
            process.terminate()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_until_ready(url: str, process: subprocess.Popen[Any], log: Path) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        try:
            with urlopen(url, timeout=5):
                return
        except (URLError, OSError):  # not listening yet, or still loading
            time.sleep(0.05)
    raise AssertionError(f"llama-server did not start:\n{log.read_text(errors='replace')[-3000:]}")


@pytest.fixture(scope="session")
def node_modules() -> Path:
    """The directory with the npm packages: the environment variable ``SIGWIRE_INTEROP_NODE``."""
    directory = os.environ.get("SIGWIRE_INTEROP_NODE")
    if shutil.which("node") is None:
        pytest.skip("node is not on the PATH: apt-get install nodejs npm")
    if not directory or not (Path(directory) / "node_modules" / "ai").is_dir():
        pytest.skip(
            "SIGWIRE_INTEROP_NODE names no directory with the npm package ai: npm install --prefix DIRECTORY ai zod "
            "@ai-sdk/openai @ai-sdk/openai-compatible @ai-sdk/anthropic @ai-sdk/google"
        )
    return Path(directory).resolve()
