"""Processes that end during an experiment: killed, and interrupted by Ctrl-C. No answer that arrived is paid for twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from sigwire.core.request import Request
from sigwire.experiments.folder import load_experiment
from sigwire.experiments.reproducing import reproduce
from sigwire.lm.client import LM
from sigwire.modules.predict import Predict
from sigwire.testing import Delivered, FakeProvider
from tests.experiments.grid import data, grid, random_search, table
from tests.optimizers.stub import label, number_of, share, skill_of
from tests.patience import PATIENCE, wait_until

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")

PROGRAM = """
import sys
from tests.experiments.test_killed import experiment
url, folder, parallel = sys.argv[1:]
experiment(url).run(folder, parallel=int(parallel), num_threads=2, progress=False)
print("complete", flush=True)
"""


def experiment(url: str, run: str = "killed") -> Any:
    """Return the grid of these tests, whose requests name their run."""
    lm = LM(
        "openai/gpt-4o-mini", base_url=url, api_key="k", limit=False, cache=False, num_retries=0, headers={"run": run}
    )
    return grid(
        programs=Predict("question -> answer"),
        models={"mini": lm},
        optimizers={"none": None, "random": random_search(strategy="greedy")},
        datasets=data(train=6, dev=4, test=4),
        seeds=(0, 1),
    )


def text_of(request: Request) -> str:
    number = number_of(request.messages[-1].text)
    assert number is not None
    is_right = share(f"{number}") < skill_of(request)
    return f"[[ ## answer ## ]]\n{label(number if is_right else number + 1)}\n\n[[ ## completed ## ]]"


@contextmanager
def started(url: str, folder: Path, parallel: int) -> Generator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, url, str(folder), str(parallel)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, start_new_session=True, env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def recorded(folder: Path) -> int:
    """Return how many answers are in the cassettes of a folder."""
    found = 0
    for path in folder.glob("points/*/*.cassette.jsonl"):
        found += path.read_bytes().count(b'\n{"lm"')
    return found


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[dict[str, Any]], int]:
    folder = tmp_path_factory.mktemp("whole") / "run"
    with FakeProvider(text_of) as provider:
        rows = table(experiment(provider.url("openai")).run(folder, progress=False))
        assert len(provider.requests) == recorded(folder)
    return rows, recorded(folder)


def check_killed_runs(kills: int, seed: int, folder: Path, undisturbed: tuple[list[dict[str, Any]], int]) -> None:
    """Kill processes at random moments; compare what a last run makes of the folder with an undisturbed one."""
    rows, total = undisturbed
    numbers = random.Random(seed)
    with FakeProvider(lambda request: Delivered(text_of(request), after=numbers.random() * 0.005)) as provider:
        for kill in range(kills):
            target = recorded(folder) + numbers.randint(0, 2 * total // kills)
            with started(provider.url("openai"), folder, 1 + kill % 2) as process:
                wait_until(lambda: recorded(folder) >= min(target, total) or process.poll() is not None)  # noqa: B023
        before = recorded(folder)
        last = experiment(provider.url("openai"), "last")
        result = last.run(folder, progress=False)
        # By their header: requests of killed processes may arrive late.
        paid = [each for each in provider.requests if each.headers.get("run") == "last"]
    assert len(paid) == total - before
    assert recorded(folder) == total, "no answer is recorded twice"
    assert table(result) == rows
    assert table(load_experiment(folder)) == rows
    assert reproduce(folder, last).differs == ()  # the provider is gone


def test_run_after_a_kill_pays_only_for_what_is_missing(
    undisturbed: tuple[list[dict[str, Any]], int], tmp_path: Path
) -> None:
    check_killed_runs(1, 3, tmp_path / "run", undisturbed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(5))
def test_run_after_many_kills_equals_an_undisturbed_one(
    seed: int, undisturbed: tuple[list[dict[str, Any]], int], tmp_path: Path
) -> None:
    check_killed_runs(10, seed, tmp_path / "run", undisturbed)


@pytest.mark.parametrize("parallel", [1, 2])
@pytest.mark.long
def test_interrupt_lets_requests_in_flight_end_and_they_are_not_sent_again(
    parallel: int, undisturbed: tuple[list[dict[str, Any]], int], tmp_path: Path
) -> None:
    rows, total = undisturbed
    folder, fast, release = tmp_path / "run", 6, threading.Event()

    waiting: list[Request] = []

    def answer(request: Request) -> str:
        if len(provider.requests) > fast:
            waiting.append(request)
            release.wait(PATIENCE)
        return text_of(request)

    with FakeProvider(answer) as provider:
        with started(provider.url("openai"), folder, parallel) as process:
            wait_until(lambda: len(waiting) >= parallel or process.poll() is not None)
            os.killpg(process.pid, signal.SIGINT)
            assert process.stderr is not None
            assert any("interrupted: waiting at most 10 s for" in line for line in process.stderr)
            release.set()
            out, error = process.communicate(timeout=PATIENCE)
        assert "complete" not in out
        assert "EvaluationInterrupted: The experiment was interrupted." in error
        sent = len(provider.requests)
        assert recorded(folder) == sent < total
        result = experiment(provider.url("openai"), "last").run(folder, progress=False)
        assert len(provider.requests) == total
    assert table(result) == rows
