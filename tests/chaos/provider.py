"""The provider of a chaos run, in a process of its own: ``python -m tests.chaos.provider SEED SILENCE``.

Each key has a rate limit, apart from the plan: a provider does not refuse by chance. It prints the base URLs of the wires as
JSON. After a line on its input it prints the number of exchanges by call, and the number of requests that it still answers.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path

from sigwire.core.request import Request
from sigwire.testing import Answer, FakeProvider, RateLimit
from tests.chaos.plan import WIRES, Plan, number_of

__all__ = ["ChaosProvider", "providing"]

ROOT = Path(__file__).resolve().parent.parent.parent
LIMIT = RateLimit(requests=100, per=1, burst=30)


class ChaosProvider:
    """The running provider: ``urls`` by wire; ``finish`` stops it and returns the exchanges by call."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.urls: Mapping[str, str] = json.loads(self._line())

    def finish(self) -> tuple[Mapping[int, int], int]:
        """Stop; return the exchanges by call, and the number of requests without an end."""
        printed, _ = self._process.communicate("stop\n", timeout=60)
        assert self._process.returncode == 0
        counts, running = json.loads(printed)
        return {int(number): count for number, count in counts.items()}, running

    def _line(self) -> str:
        assert self._process.stdout
        return self._process.stdout.readline()


@contextmanager
def providing(plan: Plan) -> Generator[ChaosProvider]:
    """Run a provider that follows the plan."""
    command = [sys.executable, "-m", "tests.chaos.provider", str(plan.seed), str(plan.silence)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT)
    with process:
        try:
            yield ChaosProvider(process)
        finally:
            process.kill()


def main() -> None:
    plan = Plan(int(sys.argv[1]), float(sys.argv[2]))
    exchanges: Counter[int] = Counter()

    def answer(request: Request) -> Answer:
        number = number_of(request.messages[-1].text)
        exchanges[number] += 1  # exchanges of one call do not overlap
        return plan.answer(number, exchanges[number] - 1)

    with FakeProvider(answer, keep=0, limit=LIMIT) as provider:
        print(json.dumps({wire: provider.url(wire) for wire in WIRES}), flush=True)
        sys.stdin.readline()
        running = sum(counts.now for counts in provider.traffic.values())
    print(json.dumps([exchanges, running]), flush=True)


if __name__ == "__main__":
    main()
