"""The coordinator over HTTP: calls of this process, and of workers that are killed."""

from __future__ import annotations

import asyncio
import contextvars
import http.client
import json
import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Hashable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import sigwire
from sigwire import Budget, BudgetSpent, Price
from sigwire.errors import ConfigurationError, LMRateLimitError
from sigwire.evaluate.rows.map_result import MapResult
from sigwire.evaluate.rows.map_rows import map_rows
from sigwire.jobs import permits as permits_module
from sigwire.jobs.coordinator import Coordinator
from sigwire.jobs.job import Job
from sigwire.jobs.lease_book import LeaseAsk, LeaseBook, LeaseReply, Settlement
from sigwire.jobs.permits import CoordinatorLost, permits_of
from sigwire.lm.policy.money.sums import Sums
from sigwire.testing import FakeProvider, RateLimit
from tests.jobs.engines import InlineExecutor
from tests.patience import PATIENCE

ASK = sigwire.Request((sigwire.Message.user("Hi"),))
ROOT = Path(__file__).resolve().parents[2]


def lm(**usage: int) -> sigwire.FakeLM:
    return sigwire.FakeLM(
        lambda request: "Hello", usage=sigwire.Usage(**(usage or {"input_tokens": 10, "output_tokens": 5}))
    )


def served(provider: FakeProvider) -> sigwire.LM:
    return sigwire.LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="any")


# --- calls of one process


def test_blocking_calls_are_counted_by_the_coordinator() -> None:
    with Coordinator(calls=2) as coordinator:
        with permits_of(coordinator.url):
            lm()("Hi")
        with permits_of(coordinator.url):
            lm()("Hi")
            with pytest.raises(BudgetSpent, match="2 of 2 calls"):
                lm()("Hi")
        assert (coordinator.spent.calls, coordinator.spent.tokens) == (2, 30)


async def test_awaited_calls_are_counted_by_the_coordinator() -> None:
    with Coordinator(calls=5) as coordinator:
        with permits_of(coordinator.url):
            answers = await asyncio.gather(*(lm().acall("Hi") for _ in range(8)), return_exceptions=True)
        assert sorted(type(answer).__name__ for answer in answers) == ["BudgetSpent"] * 3 + ["list"] * 5
        assert coordinator.spent.calls == 5


def test_streamed_call_is_counted_by_the_coordinator() -> None:
    program = sigwire.Predict("question -> answer")
    with Coordinator(calls=1) as coordinator:
        with permits_of(coordinator.url), sigwire.context(lm=sigwire.FakeLM([{"answer": "Paris"}])):
            events = list(program.stream(question="Which?"))
        assert events
        assert coordinator.spent.calls == 1


def test_closed_stream_is_charged_and_holds_no_permit() -> None:
    budget = Budget(calls=5)
    with FakeProvider(["word " * 400]) as provider, Coordinator(budget=budget) as coordinator:
        with permits_of(coordinator.url):
            stream = served(provider).stream(ASK)
            next(stream)
            stream.close()
        assert (budget.spent.calls, budget.spent.estimated, budget.reserved.calls) == (1, 1, 0)


def test_models_without_a_block_need_no_permit() -> None:
    with Coordinator(calls=0):
        assert lm()("Hi") == ["Hello"]


def test_money_of_a_budget_is_reserved_and_settled() -> None:
    model = sigwire.LM("offline/lexical", price=Price(input=1.0, output=10.0), max_tokens=10)
    budget = Budget(money=1.0)
    with Coordinator(budget=budget) as coordinator, permits_of(coordinator.url):
        response = model.respond(ASK)
    assert response.cost
    assert budget.spent.money == pytest.approx(response.cost)
    assert budget.reserved.money == 0


def test_model_without_a_price_is_refused_by_a_budget_of_money() -> None:
    with (
        Coordinator(budget=1.0) as coordinator,
        permits_of(coordinator.url),
        pytest.raises(ConfigurationError, match="No price"),
    ):
        lm()("Hi")


def test_open_budget_of_the_driver_is_charged() -> None:
    with Budget(calls=1) as budget:
        coordinator = Coordinator()
    with coordinator, permits_of(coordinator.url):
        lm()("Hi")
        with pytest.raises(BudgetSpent):
            lm()("Hi")
    assert budget.spent.calls == 1


@pytest.mark.parametrize("make", [partial(ThreadPoolExecutor, 1), InlineExecutor], ids=["thread", "caller"])
@pytest.mark.parametrize("calls", [3, 10])
def test_open_budget_of_the_driver_limits_its_rows(make: Callable[[], Executor], calls: int, tmp_path: Path) -> None:
    job = Job(program="tests.jobs.app:Answer", lm="offline/lexical", concurrency=1)
    rows = [{"question": f"Question {number}?"} for number in range(5)]
    budget, found = Budget(calls=calls), list[MapResult]()

    def work() -> None:
        with budget, make() as executor:
            found.append(map_rows(job, rows, tmp_path / "out.jsonl", executor=executor, chunk=5))

    thread = threading.Thread(target=work, daemon=True)  # a call that waits for what it holds itself waits for ever
    thread.start()
    thread.join(PATIENCE / 6)
    (result,) = found
    assert (result.status, result.rows, budget.spent.calls) == (("budget", 3, 3) if calls == 3 else ("complete", 5, 5))


def test_budget_of_the_settings_is_charged_once_when_workers_are_threads(tmp_path: Path) -> None:
    job = Job(program="tests.jobs.app:Answer", lm="offline/lexical", concurrency=1)
    before = sigwire.settings["budget"]
    sigwire.configure(budget=(budget := Budget(calls=10)))
    try:
        with ThreadPoolExecutor(1) as pool:
            result = map_rows(job, [{"question": f"{n}?"} for n in range(3)], tmp_path / "out.jsonl", executor=pool)
    finally:
        sigwire.configure(budget=before)
    assert (result.rows, budget.spent.calls) == (3, 3)


def test_coordinator_of_the_caller_has_the_limits(tmp_path: Path) -> None:
    job = Job(program="tests.jobs.app:Answer", lm="offline/lexical", concurrency=1)
    with Coordinator(calls=2) as coordinator, ThreadPoolExecutor(1) as pool:
        rows = [{"question": f"Question {number}?"} for number in range(5)]
        result = map_rows(job, rows, tmp_path / "out.jsonl", executor=pool, coordinator=coordinator.url)
        assert (result.status, result.rows, coordinator.spent.calls) == ("budget", 2, 2)
        with pytest.raises(ConfigurationError, match="own limits"):
            map_rows(job, rows, tmp_path / "other.jsonl", executor=pool, coordinator=coordinator.url, calls=3)


def test_refused_exchange_is_a_call_of_the_coordinator() -> None:
    def refuse(request: object) -> str:
        raise LMRateLimitError("slow down", status=429, retry_after=0.01)

    with Coordinator(calls=2) as coordinator, permits_of(coordinator.url):
        with pytest.raises(LMRateLimitError):
            sigwire.FakeLM(refuse)("Hi")
        assert lm()("Hi") == ["Hello"]
        with pytest.raises(BudgetSpent):
            lm()("Hi")


@pytest.mark.long
async def test_rate_limit_of_the_provider_slows_the_permits_of_all_workers() -> None:
    limit = RateLimit(requests=5, per=1.0, burst=2)
    with FakeProvider(lambda request: "Hello", limit=limit) as provider, Coordinator() as coordinator:
        assert coordinator.book.rate == math.inf
        with permits_of(coordinator.url):
            model = served(provider).copy(limit=False)
            answers = await asyncio.gather(*(model.acall(f"Question {number}") for number in range(6)))
        assert answers == [["Hello"]] * 6
        assert coordinator.book.rate < math.inf


def test_deadline_ends_the_wait_for_a_permit() -> None:
    with Coordinator(rate=0.01) as coordinator:
        with permits_of(coordinator.url):
            lm()("Hi")
            with sigwire.deadline(0.05), pytest.raises(sigwire.LMTimeoutError):
                lm()("Hi")
        assert coordinator.spent.calls == 1


def test_call_inside_the_loop_over_a_stream_does_not_wait_for_the_permit_of_that_stream() -> None:
    with FakeProvider(lambda request: "Hello") as provider, Coordinator(calls=1) as coordinator:
        with permits_of(coordinator.url):
            for _ in served(provider).stream(ASK):
                with pytest.raises(BudgetSpent):
                    served(provider).respond(ASK)
        assert coordinator.spent.calls == 1


async def test_blocking_call_on_the_loop_does_not_wait_for_calls_of_that_loop() -> None:
    with (
        FakeProvider(lambda request: "Hello") as provider,
        Coordinator(calls=1) as coordinator,
        permits_of(coordinator.url),
    ):
        stream = served(provider).astream(ASK)
        await anext(stream)
        with pytest.raises(BudgetSpent):
            await asyncio.create_task(blocking(provider), context=contextvars.copy_context())
        await stream.aclose()


async def blocking(provider: FakeProvider) -> None:
    served(provider).respond(ASK)


# --- the coordinator


def post(url: str, body: bytes, path: str | None = None) -> tuple[int, bytes]:
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
    try:
        connection.request("POST", path or parts.path, body)
        reply = connection.getresponse()
        return reply.status, reply.read()
    finally:
        connection.close()


MESSAGE = {"asks": [[[1, 1, 1, 0, 0], [], True, 0.05]], "settled": []}


def test_coordinator_answers_only_with_its_token() -> None:
    with Coordinator(calls=1) as coordinator:
        for path in ("/", "/" + "x" * 32, urlsplit(coordinator.url).path + "x"):
            assert post(coordinator.url, json.dumps(MESSAGE).encode(), path) == (404, b"{}")
        assert post(coordinator.url, json.dumps(MESSAGE).encode())[0] == 200
        with pytest.raises(CoordinatorLost, match="status 404"), permits_of(coordinator.url.replace("#", "x#")):
            lm()("Hi")


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"[]",
        b"{}",
        b'{"asks": 1, "settled": []}',
        b'{"asks": [[["a"], [], true, 0.05]], "settled": []}',
        b'{"asks": [[[-1, 0, 0, 0, 0], [], true, 0.05]], "settled": []}',
        b'{"asks": [[[1, 0, 0, 0, 0], [], true, NaN]], "settled": []}',
        b'{"asks": [], "settled": [[1, [1, 2, 3, 4, 5, 6], null]]}',
    ],
)
def test_coordinator_refuses_another_message(message: bytes) -> None:
    with Coordinator(calls=1) as coordinator:
        assert post(coordinator.url, message) == (400, b"{}")


def test_coordinator_gets_numbers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    canary, bodies = "sk-canary-123", list[str]()
    sent = http.client.HTTPConnection.request

    def request(self: http.client.HTTPConnection, method: str, url: str, body: bytes) -> None:
        bodies.append(body.decode())
        sent(self, method, url, body)

    monkeypatch.setattr(http.client.HTTPConnection, "request", request)
    with FakeProvider(lambda request: "Hello") as provider, Coordinator(calls=1) as coordinator:
        model = sigwire.LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key=canary)
        with permits_of(coordinator.url):
            model(f"A private row {canary}")
    assert bodies
    for body in bodies:
        assert set(body) <= set('{}[]", :.0123456789-' + "asks" + "settled" + "null" + "true")


def test_connections_end_with_the_coordinator() -> None:
    with Coordinator() as coordinator:
        permits = permits_of(coordinator.url)
        permits.__enter__()
        lm()("Hi")
    try:
        with pytest.raises(CoordinatorLost, match="start it again"):
            lm()("Hi")
    finally:
        permits.__exit__()
    assert "sigwire-permits" not in {thread.name for thread in threading.enumerate()}


async def test_permit_of_a_cancelled_call_is_free_again() -> None:
    sent, is_cancelled = 1, False
    with Coordinator(calls=5, rate=5) as coordinator, permits_of(coordinator.url):
        await lm().arespond(ASK)
        while not is_cancelled:  # on a busy machine a call may be sent before it is cancelled
            late = asyncio.create_task(lm().arespond(ASK))  # its permit starts in 0.2 seconds
            await asyncio.sleep(0.02)
            late.cancel()
            try:
                await late
                sent += 1
            except asyncio.CancelledError:
                is_cancelled = True
        for _ in range(5 - sent):
            await lm().arespond(ASK)


class _SlowBook(LeaseBook):
    """A coordinator whose reply takes a while to arrive, as to a worker that imports meanwhile."""

    def __init__(self, replies: list[float]) -> None:
        super().__init__(rate=1000)
        self.slacks = list[float]()
        self._seconds = replies

    def answer(self, worker: Hashable, asks: Sequence[LeaseAsk], settled: Sequence[Settlement]) -> LeaseReply:
        reply = super().answer(worker, asks, settled)
        self.slacks += [ask.slack for ask in asks]
        time.sleep(self._seconds.pop(0) if self._seconds and asks else 0)
        return reply


@pytest.mark.parametrize("replies", [[0.1], [0.1, 0.3]])
def test_permit_that_at_call_is_given_back_and_asked_for_with_more_slack(replies: list[float]) -> None:
    coordinator = Coordinator(rate=1000)
    coordinator.book = book = _SlowBook([*replies])
    with coordinator, permits_of(coordinator.url):
        lm()("Hi")
    assert len(book.slacks) > len(replies)
    assert book.slacks == [0.05 * 4**number for number in range(len(book.slacks))]


def test_permit_of_a_run_without_a_rate_is_never_late() -> None:
    with Coordinator(calls=2) as coordinator, permits_of(coordinator.url) as permits:
        assert permits.lease(Sums(1), (), waits=True).result(60).last == math.inf


def test_permits_of_many_coordinators_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(permits_module, "_known", {})
    monkeypatch.setattr(permits_module, "_MOST_KNOWN", 2)
    for number in range(4):
        permits_of(f"http://127.0.0.1:80/{number}")
    assert [url[-1] for _, url in permits_module._known] == ["2", "3"]


def test_url_needs_a_running_coordinator_and_permits_need_a_url() -> None:
    with pytest.raises(ConfigurationError, match="inside its `with` block"):
        _ = Coordinator().url
    for url in ("127.0.0.1:80/token", "http://127.0.0.1:80/", "https://127.0.0.1/token"):
        with pytest.raises(ConfigurationError, match="HOST:PORT/TOKEN"):
            permits_of(url)


def test_two_blocks_of_threads_share_a_connection() -> None:
    with Coordinator(calls=40) as coordinator:

        def chunk(_: int) -> None:
            with permits_of(coordinator.url):
                for _ in range(5):
                    lm()("Hi")

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(chunk, range(8)))
        assert (coordinator.spent.calls, coordinator.spent.estimated) == (40, 0)


def test_call_outside_the_block_of_its_permits_is_refused() -> None:
    with Coordinator() as coordinator:
        permits = permits_of(coordinator.url)
        future = permits.lease(Sums(1), (), waits=True)
        with pytest.raises(CoordinatorLost, match="block has ended"):
            future.result()


# --- workers in processes

WORKER = """
import sys, time, sigwire
from sigwire.jobs.permits import permits_of
url, calls, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
def answer(request):
    print("call", flush=True)
    time.sleep(seconds)
    return "Hello"
lm = sigwire.FakeLM(answer)
with permits_of(url):
    for _ in range(calls):
        try:
            lm("Hi")
        except sigwire.BudgetSpent:
            print("spent", flush=True)
            break
        except sigwire.CallerError as error:
            print(type(error).__name__, flush=True)
            break
print("end", flush=True)
"""


@pytest.fixture
def start() -> Iterator[object]:
    running: list[subprocess.Popen[str]] = []

    def start_worker(url: str, calls: int, seconds: float = 0.0) -> subprocess.Popen[str]:
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", WORKER, url, str(calls), str(seconds)]
        running.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment, cwd=ROOT))
        return running[-1]

    yield start_worker
    for process in running:
        process.kill()
        process.communicate(timeout=60)


@pytest.mark.long
def test_budget_is_exact_with_killed_workers_then_raised_and_resumed(start) -> None:  # type: ignore[no-untyped-def]
    with Coordinator(calls=60) as coordinator:
        stuck = start(coordinator.url, 5, 60.0)  # killed while its first call is under way
        assert stuck.stdout.readline() == "call\n"
        killed = start(coordinator.url, 100, 0.01)
        lines = [killed.stdout.readline() for _ in range(5)]
        workers = [start(coordinator.url, 100) for _ in range(2)]
        killed.send_signal(signal.SIGKILL)
        stuck.send_signal(signal.SIGKILL)
        lines += killed.communicate(timeout=60)[0].splitlines(keepends=True)
        lines += [line for worker in workers for line in worker.communicate(timeout=60)[0].splitlines(keepends=True)]
        made = 1 + lines.count("call\n")
        # The calls of killed workers stay spent, made or not: at most one call of each was granted and not made.
        assert (coordinator.spent.calls, lines.count("spent\n")) == (60, 2)
        assert 58 <= made <= 60
    with Coordinator(calls=70 - coordinator.spent.calls) as raised:
        output = start(raised.url, 100).communicate(timeout=60)[0]
        assert (output.count("call\n"), output.count("spent\n"), raised.spent.calls) == (10, 1, 10)


@pytest.mark.long
def test_workers_stop_when_the_driver_ends(start) -> None:  # type: ignore[no-untyped-def]
    with Coordinator() as coordinator:
        worker = start(coordinator.url, 10_000, 0.001)
        assert worker.stdout.readline() == "call\n"
    output = worker.communicate(timeout=60)[0].splitlines()
    assert output[-2:] == ["CoordinatorLost", "end"]


@pytest.mark.long
def test_rate_is_shared_by_four_workers(start) -> None:  # type: ignore[no-untyped-def]
    starts: list[float] = []
    with Coordinator(rate=200) as coordinator:
        grant = coordinator.book._grant

        def noting(*arguments: object) -> tuple[int, float]:
            number, delay = grant(*arguments)  # type: ignore[arg-type]
            starts.append(coordinator.book._last)
            return number, delay

        coordinator.book._grant = noting  # type: ignore[method-assign]
        workers = [start(coordinator.url, 50) for _ in range(4)]
        outputs = [worker.communicate(timeout=60)[0] for worker in workers]
    assert sum(output.count("call\n") for output in outputs) == len(starts) == 200
    windows = [sum(at - 0.5 < other <= at for other in starts) for at in starts]
    assert max(windows) <= 100 + 10 + 1
