"""Ctrl-C during an evaluation or a search: requests that are sent are paid for, so their answers are kept."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from sigwire import LM, Evaluate, Example, Predict, answer_exact_match, load_records
from tests.patience import PATIENCE, wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")
COUNT, FAST, THREADS = 14, 4, 4

PROGRAM = """
import sys
url, path, how, imported = sys.argv[1:]
if imported:
    __import__(imported)
from sigwire import LM, Evaluate, Example, Predict, answer_exact_match

devset = [Example(question=f"number {n}", answer=str(n)).with_inputs("question") for n in range(14)]
program = Predict("question -> answer", lm=LM("openai/gpt-4o-mini", base_url=url, api_key="k", limit=False, num_retries=0))
evaluate = Evaluate(devset=devset, metric=answer_exact_match, log=path, num_threads=4, display_progress=False)
if how in ("processes", "threads", "map_rows"):
    from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
    from sigwire import Job, map_rows
    pool = ThreadPoolExecutor(2) if how == "threads" else ProcessPoolExecutor(2)
    if how == "map_rows":
        job = Job.of(program, concurrency=2)
        map_rows(job, [dict(question=f"number {n}") for n in range(14)], path, executor=pool, chunk=4)
    else:
        result = evaluate(program, executor=pool, num_threads=4 if how == "threads" else 2)
elif how == "blocking":
    result = evaluate(program)
elif how == "streamed":
    for event in evaluate.stream(program):
        result = getattr(event, "value", None)
else:
    from sigwire import BootstrapFewShot
    optimizer = BootstrapFewShot(answer_exact_match, max_bootstrapped_demos=14, num_threads=4, journal=path)
    optimizer.compile(program, trainset=devset)
print("complete", flush=True)
"""


class SlowProvider(ThreadingHTTPServer):
    """A provider of right answers. The first rows are answered at once, the others when ``release`` is set."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Answering)
        self.requests, self.counting, self.release = 0, threading.Lock(), threading.Event()
        self.url = f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: object, client_address: object) -> None:
        """Print no traceback of a client that closed its connection."""


class Answering(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, SlowProvider)
        sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
        number = sent["messages"][-1]["content"].split("number ")[-1].split()[0]
        with server.counting:
            server.requests += 1
        if int(number) >= FAST:  # by row: a process whose last row alone is slow takes no other one before it
            server.release.wait(PATIENCE)
        content = f"[[ ## answer ## ]]\n{number}\n\n[[ ## completed ## ]]"
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": content}}
        body = json.dumps({"id": "r", "object": "chat.completion", "model": "m", "choices": [choice]}).encode()
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@pytest.fixture
def provider() -> Iterator[SlowProvider]:
    with SlowProvider() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.release.set()
            server.shutdown()
            thread.join(PATIENCE)


@contextmanager
def started(provider: SlowProvider, path: Path, how: str, imported: str = "") -> Generator[subprocess.Popen[str]]:
    arguments = [provider.url, str(path), how, imported]
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def resume(provider: SlowProvider, path: Path, how: str) -> None:
    """Run what is missing. An evaluation does so in this process, which is cheaper than another one."""
    if how in ("search", "map_rows"):
        with started(provider, path, how) as process:
            assert process.communicate(timeout=PATIENCE)[0] == "complete\n"
        return
    devset = [Example(question=f"number {n}", answer=str(n)).with_inputs("question") for n in range(COUNT)]
    lm = LM("openai/gpt-4o-mini", base_url=provider.url, api_key="k", limit=False, num_retries=0)
    result = Evaluate(devset=devset, metric=answer_exact_match, log=path, num_threads=4)(
        Predict("question -> answer", lm=lm)
    )
    lm.close()
    assert result.score == 100


def read_until(process: subprocess.Popen[str], text: str) -> None:
    assert process.stderr is not None
    assert any(text in line for line in process.stderr)


@pytest.mark.parametrize(
    ("how", "imported"),
    [
        ("blocking", "polars"),
        pytest.param("blocking", "", marks=pytest.mark.long),
        pytest.param("streamed", "polars", marks=pytest.mark.long),
        pytest.param("search", "polars", marks=pytest.mark.long),
        pytest.param("processes", "", marks=pytest.mark.long),
        pytest.param("threads", "", marks=pytest.mark.long),
        pytest.param("map_rows", "", marks=pytest.mark.long),
    ],
)
def test_interrupt_lets_requests_in_flight_end_and_their_rows_are_not_sent_again(
    how: str, imported: str, provider: SlowProvider, tmp_path: Path
) -> None:
    if imported and importlib.util.find_spec(imported) is None:
        pytest.skip(f"{imported} is not installed")
    path = tmp_path / "log.jsonl"
    with started(provider, path, how, imported) as process:
        wait_until(lambda: provider.requests == FAST + THREADS or process.poll() is not None)
        if how not in ("search", "map_rows"):  # a worker begins the next rows before its answers are written
            wait_until(lambda: len(load_records(path).records) == FAST or process.poll() is not None)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal: the processes of a pool get it too
        read_until(process, f"interrupted: waiting at most 10 s for {THREADS} rows in flight.")
        provider.release.set()
        out, error = process.communicate(timeout=PATIENCE)
    assert "complete" not in out
    raised = {"search": "OptimizationInterrupted", "map_rows": "KeyboardInterrupt"}
    assert raised.get(how, "EvaluationInterrupted") in error
    assert provider.requests == FAST + THREADS
    if how not in raised:
        assert f"{FAST + THREADS} of {COUNT} runs are finished" in error
        assert load_records(path).status == "cancelled"
    resume(provider, path, how)
    assert provider.requests == COUNT


@pytest.mark.long
@pytest.mark.parametrize("how", ["blocking", "search", "processes"])
def test_second_interrupt_cancels_requests_in_flight(how: str, provider: SlowProvider, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    with started(provider, path, how) as process:
        wait_until(lambda: provider.requests == FAST + THREADS or process.poll() is not None)
        if how != "search":  # a worker begins the next rows before its answers are written
            wait_until(lambda: len(load_records(path).records) == FAST or process.poll() is not None)
        os.killpg(process.pid, signal.SIGINT)
        read_until(process, "Press Ctrl-C again to cancel.")
        os.killpg(process.pid, signal.SIGINT)
        _, error = process.communicate(timeout=PATIENCE)
    provider.release.set()
    assert "Interrupted" in error
    if how != "search":
        assert len(load_records(path).records) == FAST
    resume(provider, path, how)
    assert provider.requests == COUNT + THREADS
