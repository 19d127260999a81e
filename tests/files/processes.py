"""Forked children with a guard: a child that hangs is ended, and its status is not 0."""

from __future__ import annotations

import os
import signal
import threading
import traceback
from collections.abc import Callable, Generator
from contextlib import contextmanager

HANG_SECONDS = 60


def fork(work: Callable[[], object]) -> int:
    """Run a function in a child, which is ended if it hangs. Return the pid."""
    child = os.fork()
    if child:
        return child
    status = 1
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(HANG_SECONDS)
        work()
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def statuses(children: list[int]) -> list[int]:
    """Return the exit codes of children: 0 for those whose function returned."""
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def at_once(*works: Callable[[], object]) -> list[int]:
    """Run functions in children that start together. Return their exit codes."""
    reader, writer = os.pipe()

    def waiting(work: Callable[[], object]) -> None:
        os.close(writer)
        os.read(reader, 1)  # returns when the parent closes its end
        work()

    children = [fork(lambda work=work: waiting(work)) for work in works]  # type: ignore[misc]
    os.close(writer)
    os.close(reader)
    return statuses(children)


@contextmanager
def busy_threads(work: Callable[[], object], number: int = 3) -> Generator[None]:
    """Call a function in threads, again and again, until the block ends."""
    ended, failed = threading.Event(), list[BaseException]()

    def repeat() -> None:
        try:
            while not ended.is_set():
                work()
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=repeat) for _ in range(number)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    assert not failed, failed
