"""Kill the process of a run and start the run again: ``python -m tests.journal.kills moments|random|chain COUNT MODE...``.

This process has imported the library once and forks each life, so a life takes some 50 ms. It prints the number
of kills of each mode.

moments   COUNT lives, killed at moments spread over all effects, each followed by a whole life
random    COUNT lives, killed at random times
chain     one run whose lives are killed at their first effect, their second, and so on, until a life reaches the end
"""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.journal.order import ITEMS, Ledger, live

MOMENTS = 46  # of a whole run: two for each of its 23 lines
EXPECTED = {
    "answer": "ordered",
    "summary": "Two shelves and a lamp.",
    "results": ["2 shelf", "1 lamp", "12 kg", "paid 9900", "paid 100", "Completed."],
}


def one_life(folder: Path, mode: str, kill_at: int = 0, after: float | None = None) -> bool:
    """Fork a life of the run; kill it ``after`` seconds. Return True if it was killed."""
    child = os.fork()
    if child == 0:
        try:
            live(folder, mode, kill_at)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    if after is not None:
        time.sleep(after)
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if os.WIFEXITED(status) and os.WEXITSTATUS(status):
        raise AssertionError("a life failed")
    return os.WIFSIGNALED(status)


def check(folder: Path, mode: str, kills: int) -> None:
    """Compare a finished run with one that nothing disturbed, and its effects with its kills."""
    assert not one_life(folder, mode)
    result = json.loads((folder / "result").read_text())
    ledger = Ledger(folder)
    lines = ledger.lines()
    assert {name: result[name] for name in EXPECTED} == EXPECTED, result
    assert [value for _, value in ledger.rows("reserved")] == sorted(ITEMS), ledger.rows("reserved")
    assert [value for _, value in ledger.rows("charged")] == ["100", "9900"], ledger.rows("charged")
    repeated = {line: count - 1 for line, count in Counter(lines).items() if count > 1}
    assert sum(count for line, count in repeated.items() if line.startswith("paid")) <= kills, repeated
    assert all(count <= kills for count in repeated.values()), repeated
    assert not one_life(folder, mode)  # a finished run
    assert ledger.lines() == lines
    assert json.loads((folder / "result").read_text()) == result


@contextmanager
def run_folder() -> Iterator[Path]:
    memory = Path("/dev/shm")  # a kill loses nothing that was written, to any file system
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None) as folder:
        yield Path(folder)


def at_moments(mode: str, count: int) -> int:
    kills = 0
    for number in range(count):
        with run_folder() as folder:
            assert one_life(folder, mode, 1 + (2 * number + 1) * MOMENTS // (2 * count))
            check(folder, mode, 1)
        kills += 1
    return kills


def at_random(mode: str, count: int) -> int:
    source, kills = random.Random(count), 0
    with run_folder() as folder:
        started = time.monotonic()
        one_life(folder, mode)
        whole = time.monotonic() - started
    for _ in range(count):
        with run_folder() as folder:
            lives = source.choice((1, 2, 3))
            killed = sum(one_life(folder, mode, after=source.uniform(0, whole)) for _ in range(lives))
            check(folder, mode, killed)
        kills += killed
    return kills


def chained(mode: str, count: int) -> int:
    with run_folder() as folder:
        kills = 0
        while one_life(folder, mode, kills % count + 1):
            kills += 1
        check(folder, mode, kills)
    return kills


def main() -> None:
    how, count, *modes = sys.argv[1:]
    folder = Path(tempfile.mkdtemp())
    live(folder, "sync")  # loads what a life needs
    shutil.rmtree(folder)
    for mode in modes:
        try:
            print({"moments": at_moments, "random": at_random, "chain": chained}[how](mode, int(count)))
        except AssertionError as error:
            error.add_note(f"in the mode {mode}")
            raise


if __name__ == "__main__":
    main()
