"""A budget in a file that several processes share, one of which is killed while it holds a reservation."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import sigwire
from sigwire import Budget, BudgetSpent

SCRIPT = textwrap.dedent(
    """
    import sys, time
    import sigwire
    path, kind = sys.argv[1:]

    def answer(request):
        print("asked", flush=True)
        if kind == "hang":
            time.sleep(60)
        return "Hello"

    lm = sigwire.FakeLM(answer, usage=sigwire.Usage(input_tokens=10, output_tokens=5))
    answers = 0
    with sigwire.Budget(calls=20, tokens=1_000_000, path=path):
        for _ in range(20):
            try:
                lm("Hi", max_tokens=100)
                answers += 1
            except sigwire.BudgetSpent:
                break
    print(answers)
    """
)


def start(path: Path, kind: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(path), kind], stdout=subprocess.PIPE, text=True)


def test_processes_share_the_budget_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "budget.sqlite3"
    running = [start(path, "answer") for _ in range(2)]
    answers = [int(process.communicate(timeout=60)[0].split()[-1]) for process in running]
    assert sum(answers) == 20
    budget = Budget(calls=20, path=path)
    assert (budget.spent.calls, budget.spent.tokens, budget.reserved.calls) == (20, 300, 0)


@pytest.mark.skipif(os.name == "nt", reason="the system has no SIGKILL")
def test_reservation_of_a_killed_process_counts_at_its_upper_bound(tmp_path: Path) -> None:
    path = tmp_path / "budget.sqlite3"
    process = start(path, "hang")
    assert process.stdout is not None
    assert process.stdout.readline() == "asked\n"
    budget = Budget(calls=2, path=path)
    assert (budget.spent.calls, budget.reserved.calls) == (0, 1)
    process.send_signal(signal.SIGKILL)
    process.wait(60)
    process.stdout.close()
    lm = sigwire.FakeLM(lambda request: "Hello", usage=sigwire.Usage(input_tokens=10, output_tokens=5))
    with budget:
        lm("Hi")
        with pytest.raises(BudgetSpent):
            lm("Hi")
    assert (budget.spent.calls, budget.spent.estimated, budget.reserved.calls) == (2, 1, 0)
    assert budget.spent.tokens
    assert budget.spent.tokens > 115  # the bound of the killed call: max_tokens and the input
