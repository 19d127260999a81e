"""Run a program over batches in lives that are killed: ``python -m tests.lm.batch.lives WIRE URL STORE``.

Each life is a fork of this process, which has imported the library once. Life n of the run is killed before or after its n-th
request over HTTP, until one reaches the end. Prints the number of kills and the answers of the last life.
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


class KillingTransport(HttpTransport):
    """Kills the process at a moment: 1 is before the first request, 2 is after its reply, and so on."""

    moment = 0
    sent = 0

    def send(self, request: HttpRequest) -> HttpReply:
        self.sent += 1
        self._die_at(2 * self.sent - 1)
        reply = super().send(request)
        self._die_at(2 * self.sent)
        return reply

    def _die_at(self, moment: int) -> None:
        if moment == self.moment:
            os.kill(os.getpid(), signal.SIGKILL)


def live(wire: str, url: str, store: Path, moment: int) -> list[str]:
    """Run the program; return its answers."""
    transport = KillingTransport()
    transport.moment = moment
    lm = LM(MODELS[wire], base_url=url, api_key="k", cache=False, transport=transport)
    batched = BatchLM(lm, store=store, quiet=0.05, poll=(0.01, 0.02))
    questions: list[dict[str, object]] = [{"question": f"question {number}"} for number in range(3)]
    return [each.answer for each in Predict("question -> answer", lm=batched).batch(questions)]


def main(wire: str, url: str, store: str) -> None:
    kills = 0
    while True:
        child = os.fork()
        if child == 0:
            answers = live(wire, url, Path(store), kills + 1)
            print(json.dumps([kills, answers]), flush=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            sys.exit(os.waitstatus_to_exitcode(status))
        kills += 1


if __name__ == "__main__":
    main(*sys.argv[1:])
