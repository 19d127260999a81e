"""``dspy.utils.unbatchify``: single calls that share batches."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from importlib import import_module
from typing import Any

import pytest

from sigwire.dspy.utils.unbatchify import Unbatchify
from sigwire.errors import ConfigurationError, InputError, StateError


def test_calls_of_several_threads_share_a_full_batch() -> None:
    batches: list[Sequence[int]] = []

    def double(numbers: list[int]) -> list[int]:
        batches.append(numbers)
        return [2 * number for number in numbers]

    with Unbatchify(double, max_batch_size=4, max_wait_time=60) as call, ThreadPoolExecutor(8) as pool:
        assert list(pool.map(call, range(8))) == [0, 2, 4, 6, 8, 10, 12, 14]
    assert sorted(number for batch in batches for number in batch) == list(range(8))
    assert [len(batch) for batch in batches] == [4, 4]


def test_call_alone_is_answered_after_the_wait() -> None:
    with Unbatchify(lambda texts: texts, max_wait_time=0.0) as call:
        assert call("tea") == "tea"


@pytest.mark.parametrize("outputs", [[], [1, 2]])
def test_wrong_number_of_outputs_is_an_error_of_each_call(outputs: list[int]) -> None:
    with (
        Unbatchify(lambda items: outputs, max_wait_time=0.0) as call,
        pytest.raises(InputError, match=f"returned {len(outputs)} outputs for 1 items"),
    ):
        call("item")


def test_error_of_the_function_is_raised_in_the_call_and_ends_no_other() -> None:
    def invert(numbers: list[int]) -> list[float]:
        return [1 / number for number in numbers]

    with Unbatchify(invert, max_batch_size=1) as call:
        with pytest.raises(ZeroDivisionError):
            call(0)
        assert call(2) == 0.5


def test_close_answers_the_waiting_calls_and_ends_the_thread() -> None:
    call: Any = Unbatchify(lambda items: items, max_batch_size=3, max_wait_time=60)
    waiting: Future[str] = Future()
    call.input_queue.put(("a", waiting))
    call.close()
    assert waiting.result(timeout=10) == "a"
    assert not call.worker_thread.is_alive()
    with pytest.raises(StateError, match="was closed"):
        call("b")
    call.close()


def test_unbatchify_without_a_size_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="max_batch_size"):
        Unbatchify(list, max_batch_size=0)


def test_unbatchify_is_at_the_path_of_dspy() -> None:
    assert import_module("sigwire.dspy.utils.unbatchify").Unbatchify is Unbatchify
