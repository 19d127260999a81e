"""The cache of several processes: one file, forks, and writers that are killed."""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from sigwire.lm.client import LM
from sigwire.lm.policy.cache.cache import cache, configure_cache
from sigwire.lm.policy.cache.store import DiskStore
from sigwire.testing import FakeProvider
from tests.lm.calls import HELLO

ROOT = Path(__file__).resolve().parents[4]
LIMIT = 1 << 30

ASK = """
import sigwire
lm = sigwire.LM("openai/gpt-4o-mini", base_url={url!r}, api_key="k")
response = lm.respond(sigwire.Request((sigwire.Message.user("hello"),)))
print(response.cache, response.choices[0].text, response.usage.cost, response.attempts == ())
"""

# Writes entries until it is killed, and reports each one that was written.
WRITE = """
import sys
from pathlib import Path
from sigwire.lm.policy.cache.store import DiskStore
store = DiskStore(Path(sys.argv[1]), 1 << 30)
number = int(sys.argv[2])
end = int(sys.argv[3])
while number < end:
    store.put(number.to_bytes(32, "big"), b'{"text": "' + b"x" * (number % 3 * 4000) + b'"}')
    if not store.counts["dropped"]:
        print(number, flush=True)
    store.counts.clear()
    number += 1
"""


def start(program: str, *arguments: object, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)],
        stdout=subprocess.PIPE, text=True, cwd=ROOT, env={**os.environ, **variables},
    )  # fmt: skip


def test_processes_share_answers(tmp_path: Path) -> None:
    with FakeProvider(["4", "5"]) as provider:
        program = ASK.format(url=provider.url("openai"))
        variables = {"SIGWIRE_CACHE": "", "SIGWIRE_CACHE_DIR": str(tmp_path / "cache")}
        said = [start(program, **variables).communicate()[0].split() for _ in range(2)]
        assert len(provider.requests) == 1
    assert said == [["miss", "4", "None", "False"], ["hit", "4", "0.0", "True"]]


def killed_writers(folder: Path, rounds: int, chance: random.Random) -> None:
    """Kill a writer in each round: every entry that it reported is there and whole."""
    for number in range(rounds):
        first, last = number * 100_000, chance.randrange(1, 60)
        writer = start(WRITE, folder, first, first + 100_000)
        assert writer.stdout is not None
        reported = [int(writer.stdout.readline()) for _ in range(last)]
        writer.send_signal(signal.SIGKILL)
        reported += map(int, writer.stdout.read().split())
        writer.wait()
        writer.stdout.close()
        store = DiskStore(folder, LIMIT)
        assert all(store.get(entry.to_bytes(32)) is not None for entry in reported)
        assert not store.counts
        store.close()
    connection = sqlite3.connect(folder / "cache-1.sqlite3")
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
    assert list(folder.glob("*.broken-*")) == []


def test_killed_writers_lose_no_entry_that_was_written(tmp_path: Path) -> None:
    killed_writers(tmp_path / "cache", 3, random.Random(1))


@pytest.mark.long
def test_fifty_killed_writers_lose_no_entry_that_was_written(tmp_path: Path) -> None:
    killed_writers(tmp_path / "cache", 50, random.Random(2))


def test_processes_write_into_a_new_file_at_once(tmp_path: Path) -> None:
    writers = [start(WRITE, tmp_path / "cache", number * 1000, number * 1000 + 50) for number in range(4)]
    reported = [int(entry) for writer in writers for entry in writer.communicate()[0].split()]
    store = DiskStore(tmp_path / "cache", LIMIT)
    assert all(store.get(entry.to_bytes(32)) is not None for entry in reported)
    assert len(reported) >= 150  # a write that waits for 50 ms is dropped
    store.close()


def in_child(work: Callable[[], bool]) -> int:
    """Run a function in a forked child; return its exit status, 0 for True."""
    pid = os.fork()
    if pid == 0:
        signal.alarm(20)
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_forked_child_reads_and_writes(folder: Path) -> None:
    with FakeProvider([f"answer {number}" for number in range(9)]) as provider:
        lm = LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k")
        lm("hello")
        cache.store(b"p" * 32, lm.history[-1]["response"])
        disk = cache._disk
        assert disk is not None
        held, release = threading.Event(), threading.Event()

        def hold() -> None:  # another thread has every lock while the process forks
            with disk._lock, cache.flights._guard._lock:
                held.set()
                release.wait(60)

        cache.flights._flights[b"k"] = object()  # type: ignore[assignment]
        thread = threading.Thread(target=hold)
        thread.start()
        held.wait(60)

        def child() -> bool:
            cache.store(b"c" * 32, lm.history[-1]["response"])
            assert cache.memory is not None
            cache.memory.clear()
            return (
                cache.find(b"p" * 32) is not None
                and cache.find(b"c" * 32) is not None
                and lm("hello") == ["answer 0"]
                and cache.flights._flights == {}
            )

        assert in_child(child) == 0
        release.set()
        thread.join()
        cache.flights._flights.clear()
        assert cache.memory is not None
        cache.memory.clear()
        assert cache.find(b"c" * 32) is not None
        cache.store(b"q" * 32, lm.history[-1]["response"])
        assert cache.stats().failed == cache.stats().dropped == 0
        configure_cache(disk_cache_dir=folder)
        assert cache.find(b"q" * 32) is not None


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_exit_of_a_forked_child_keeps_the_file_of_the_parent(folder: Path) -> None:
    with FakeProvider(["4"]) as provider:
        lm = LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k")
        response = lm.respond(HELLO)
        for number in range(8):
            assert in_child(lambda: cache.find(b"none" * 8) is None) == 0
            cache.store(number.to_bytes(32), response)
        assert cache.stats().disk_entries == 9
    connection = sqlite3.connect(folder / "cache-1.sqlite3")
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()
