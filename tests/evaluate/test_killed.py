"""Processes that end during an evaluation: killed, and interrupted by Ctrl-C. Nothing finished is paid for twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sigwire import Example, Predict, Prediction
from sigwire.core.request import Request
from sigwire.evaluate.evaluation import Evaluate, load_records
from sigwire.lm.client import LM
from sigwire.testing import Delivered, FakeProvider
from tests.patience import wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

COUNT = 60
DEVSET = [Example(question=f"number {n}", answer=str(n % 3)).with_inputs("question") for n in range(COUNT)]
PROGRAM = """
import asyncio, sys
from sigwire import LM, Example, Predict
from sigwire.evaluate.evaluation import Evaluate

def exact(example, prediction):
    return bool(example.answer == prediction.answer)

url, log, count, how, threads = sys.argv[1:]
devset = [Example(question=f"number {n}", answer=str(n % 3)).with_inputs("question") for n in range(int(count))]
program = Predict("question -> answer", lm=LM("openai/gpt-4o-mini", base_url=url, api_key="k", limit=False))
evaluate = Evaluate(devset=devset, metric=exact, log=log, num_threads=int(threads), display_progress=False)
print("started", flush=True)
result = asyncio.run(evaluate.acall(program)) if how == "awaited" else evaluate(program)
print("score", result.score, flush=True)
"""


def exact(example: Example, prediction: Prediction) -> bool:
    return bool(example.answer == prediction.answer)


def text_of(request: Request) -> str:
    number = int(request.messages[-1].text.split("number ")[1].split()[0])
    return f"[[ ## answer ## ]]\n{number % 4}\n\n[[ ## completed ## ]]"


def start(provider: FakeProvider, log: Path, count: int, how: str, threads: int = 4) -> subprocess.Popen[str]:
    arguments = [provider.url("openai"), str(log), str(count), how, str(threads)]
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip


def records_in(path: Path) -> int:
    return path.read_bytes().count(b'"type":"record"') if path.exists() else 0


def check_killed_runs(kills: int, seed: int, tmp_path: Path) -> None:
    """Kill processes at random moments until the evaluation is complete; compare with an uninterrupted one."""
    numbers, path, kept = random.Random(seed), tmp_path / f"log{seed}.jsonl", 0
    with FakeProvider(lambda request: Delivered(text_of(request), after=numbers.random() * 0.01)) as provider:
        for kill in range(kills):
            process = start(provider, path, COUNT, ("blocking", "awaited")[kill % 2])
            target = min(COUNT, kept + numbers.randint(0, 2 * COUNT // kills))
            wait_until(lambda: records_in(path) >= target or process.poll() is not None)  # noqa: B023
            process.kill()
            process.communicate()
            kept = len(load_records(path).records) if records_in(path) else 0
        program = Predict(
            "question -> answer",
            lm=LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k", headers={"run": "last"}),
        )
        resumed = Evaluate(devset=DEVSET, metric=exact, log=path)(program)
        # By their header: requests of killed processes may arrive late.
        paid = [each for each in provider.requests if each.headers.get("run") == "last"]
        assert len(paid) == COUNT - kept
        whole = Evaluate(devset=DEVSET, metric=exact)(program)
    assert resumed.score == whole.score
    assert [record.id for record in resumed.records] == [record.id for record in whole.records]
    assert [record.cell.score for record in resumed.records] == [record.cell.score for record in whole.records]
    assert [record.cell.outputs for record in resumed.records] == [record.cell.outputs for record in whole.records]


def test_resumed_evaluation_after_a_kill_pays_only_for_what_is_missing(tmp_path: Path) -> None:
    check_killed_runs(1, seed=1, tmp_path=tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2, 5))
def test_resumed_evaluation_after_many_kills_equals_an_uninterrupted_one(seed: int, tmp_path: Path) -> None:
    check_killed_runs(5, seed, tmp_path)


@pytest.mark.parametrize("how", ["blocking", "awaited"])
@pytest.mark.long
def test_interrupt_with_many_slow_calls_keeps_what_is_finished(how: str, tmp_path: Path) -> None:
    path, fast = tmp_path / "log.jsonl", 7

    def answer(request: Request) -> Delivered:
        number = int(request.messages[-1].text.split("number ")[1].split()[0])
        return Delivered(text_of(request), after=0.0 if number < fast else 300.0)

    with FakeProvider(answer) as provider:
        process = start(provider, path, 207, how, threads=200)
        try:
            wait_until(lambda: records_in(path) == fast and len(provider.requests) == 207)
            process.send_signal(signal.SIGINT)
            out, error = process.communicate(timeout=60)
        finally:
            process.kill()
            process.communicate()
    assert process.returncode == (-signal.SIGINT if how == "awaited" else 1) or process.returncode in (1, -2, 130)
    assert "score" not in out
    result = load_records(path)
    assert sorted(record.index for record in result.records) == list(range(fast))
    assert result.status == "cancelled"
    if how == "blocking":
        assert "EvaluationInterrupted" in error
        assert f"{fast} of 207 runs are finished" in error
        assert "EvaluationResult(" not in error  # the message is the report
