"""``sigwire coordinator`` and ``sigwire batch``."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from pathlib import Path

import pytest

from sigwire import LM, BatchLM, FakeLM
from sigwire.cli import main
from sigwire.errors import LMTimeoutError, LMUnexpectedError
from sigwire.jobs.permits import permits_of
from sigwire.lm.http.messages import HttpReply
from sigwire.testing import BatchPlan, FakeProvider
from tests.lm.batch.edits import EditingTransport, has_results

MODEL = "openai/gpt-4.1-mini"


@pytest.mark.skipif(os.name == "nt", reason="there is no SIGINT for a thread")
def test_coordinator_serves_its_limits_until_interrupted(capsys: pytest.CaptureFixture[str]) -> None:
    errors: list[str] = []
    main_thread = threading.get_ident()

    def work() -> None:
        try:
            while not (url := capsys.readouterr().out.strip()):
                time.sleep(0.001)
            with permits_of(url):
                FakeLM("Hello")("Hi")
                try:
                    FakeLM("Hello")("Hi")
                except Exception as error:
                    errors.append(str(error))
        finally:
            signal.pthread_kill(main_thread, signal.SIGINT)

    worker = threading.Thread(target=work)
    worker.start()
    assert main(["coordinator", "--calls", "1", "--rate", "1000"]) == 0
    worker.join()
    assert "1 of 1 calls" in errors[0]
    assert "1 calls" in capsys.readouterr().out


def test_coordinator_on_a_used_port_is_reported_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    with FakeProvider() as provider:
        port = provider.url("ollama").rpartition(":")[2].partition("/")[0]
        assert main(["coordinator", "--port", port]) == 2
    assert "Use another host or port" in capsys.readouterr().err


@pytest.fixture
def store(folder: Path) -> Path:
    return folder / "out.batch"


def leave_batch(provider: FakeProvider, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave a batch behind that runs at the provider, as a script that ended."""
    monkeypatch.setenv("OPENAI_BASE_URL", provider.url("openai"))
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    with pytest.raises(LMTimeoutError):
        BatchLM(LM(MODEL, cache=False), store, quiet=0, deadline=0.03)("Hi")


def test_batch_polls_until_no_batch_runs_and_keeps_the_results(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now, waits = [1_000.0], list[float]()

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        now[0] += seconds

    with FakeProvider("Hello", batches=BatchPlan(seconds=100, clock=lambda: now[0])) as provider:
        leave_batch(provider, store, monkeypatch)
        assert main(["batch", MODEL, str(store), "--json"]) == 0
        assert [(each["state"], each["lines"]) for each in json.loads(capsys.readouterr().out)] == [("running", 1)]
        monkeypatch.setattr("sigwire.effects.waiting.sleep", sleep)
        assert main(["batch", MODEL, str(store), "--wait"]) == 0
        assert waits == [60, 60]
        head, row = capsys.readouterr().out.splitlines()
        assert (head.split()[:2], row.split()[:2], row.split()[-1]) == (["state", "lines"], ["ended", "1"], "batch_1")
        assert BatchLM(LM(MODEL, cache=False), store, quiet=0)("Hi") == ["Hello"]
        assert len(provider.requests) == 1


def test_batch_cancels_what_runs(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with FakeProvider("Hello", batches=BatchPlan(seconds=5_000)) as provider:
        leave_batch(provider, store, monkeypatch)
        assert main(["batch", MODEL, str(store), "--cancel"]) == 0
        assert capsys.readouterr().out.splitlines()[1].split()[0] == "ended"
        assert provider.requests == ()


def test_batch_asks_again_for_results_that_were_lost(
    store: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    transport = EditingTransport()
    transport.edit = lambda request, reply: HttpReply(404, {}, b"{}") if has_results(request) else reply
    with FakeProvider("Hello") as provider:
        monkeypatch.setenv("OPENAI_BASE_URL", provider.url("openai"))
        monkeypatch.setenv("OPENAI_API_KEY", "k")
        with pytest.raises(LMUnexpectedError, match="sigwire batch --again"):
            BatchLM(LM(MODEL, cache=False, transport=transport), store, quiet=0, poll=(0, 0))("Hi")
        for options, state in (([], "lost"), (["--again"], "ended"), ([], "ended")):
            assert main(["batch", MODEL, str(store), *options]) == 0
            assert capsys.readouterr().out.splitlines()[1].split()[0] == state
        assert BatchLM(LM(MODEL, cache=False), store, quiet=0)("Hi") == ["Hello"]
        assert len(provider.requests) == 1


def test_batch_makes_no_store(store: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["batch", MODEL, str(store)]) == 2
    assert "There is no file" in capsys.readouterr().err
    assert not store.exists()
