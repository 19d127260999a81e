"""``ProcessTable``: one value a key, a bound, and what a forked child keeps."""

from __future__ import annotations

import os
import threading

import pytest

from sigwire.lm.policy.registry import ProcessTable
from tests.files.processes import fork, statuses


def test_threads_get_one_value_of_a_key() -> None:
    table, meet, found = ProcessTable[str, object](9), threading.Barrier(8), list[object]()

    def find() -> None:
        meet.wait(60)
        found.append(table.find("key", object))

    threads = [threading.Thread(target=find) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [table.entries["key"]] * 8


def test_oldest_value_is_forgotten_for_a_new_one() -> None:
    table = ProcessTable[int, str](2)
    for key in (1, 2, 1, 3):
        table.find(key, lambda: "new")
    assert list(table.entries) == [2, 3]
    table.clear()
    assert not table.entries


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
@pytest.mark.parametrize("keeps", [False, True])
def test_forked_child_has_a_free_lock_and_no_values_or_values_that_are_reset(keeps: bool) -> None:
    table = ProcessTable[str, list[int]](9, list.clear if keeps else None)
    value = table.find("key", lambda: [1])

    def child() -> None:
        assert table.entries == ({"key": []} if keeps else {})
        assert (table.find("key", list) is value) == keeps

    inside, ended = threading.Event(), threading.Event()

    def hold() -> None:
        with table.lock:
            inside.set()
            ended.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    inside.wait(60)
    assert statuses([fork(child)]) == [0]
    ended.set()
    thread.join()
    assert table.find("key", list) == [1]
