"""Run a program over batches in lives that are killed: ``python -m tests.lm.batch.lives WIRE URL STORE [LOST]``.

Each life is a fork of this process, which has imported the library once. Life n of the run is killed before or after its n-th
request over HTTP, until one reaches the end. Prints the number of kills and the answers, or names of errors, of the last life.
LOST: an answer whose result is missing in all files of results.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from sigwire.lm.batch.model import BatchLM
from sigwire.lm.client import LM
from sigwire.lm.http.messages import HttpReply, HttpRequest
from sigwire.lm.http.transport import HttpTransport
from sigwire.modules.predict import Predict
from tests.lm.batch.conftest import MODELS
from tests.lm.batch.edits import Edit, on_line


class KillingTransport(HttpTransport):
    """Kills the process at a moment: 1 is before the first request, 2 is after its reply, and so on."""

    moment = 0
    sent = 0
    edit: Edit | None = None

    def send(self, request: HttpRequest) -> HttpReply:
        self.sent += 1
        self._die_at(2 * self.sent - 1)
        reply = super().send(request)
        self._die_at(2 * self.sent)
        return reply if self.edit is None else self.edit(request, reply)

    def _die_at(self, moment: int) -> None:
        if moment == self.moment:
            os.kill(os.getpid(), signal.SIGKILL)


def live(wire: str, url: str, store: Path, moment: int, lost: str) -> list[str]:
    """Run the program; return its answers."""
    transport = KillingTransport()
    transport.moment = moment
    transport.edit = on_line(lost, lambda line: []) if lost else None
    lm = LM(MODELS[wire], base_url=url, api_key="k", cache=False, transport=transport)
    batched = BatchLM(lm, store=store, quiet=0.05, poll=(0.01, 0.02), settle=0.2)
    questions: list[dict[str, object]] = [{"question": f"question {number}"} for number in range(3)]
    results = Predict("question -> answer", lm=batched).batch(questions, return_exceptions=True)
    return [getattr(each, "answer", type(each).__name__) for each in results]


def main(wire: str, url: str, store: str, lost: str = "") -> None:
    kills = 0
    while True:
        child = os.fork()
        if child == 0:
            answers = live(wire, url, Path(store), kills + 1, lost)
            print(json.dumps([kills, answers]), flush=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.exit(os.waitstatus_to_exitcode(status))
        kills += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
