"""``Parallel``: order, forms of inputs, failures."""

from __future__ import annotations

import threading
from typing import Any

import pytest

import sigwire
from sigwire import BatchRun, Example, FakeLM
from sigwire.modules.parallel import Parallel
from sigwire.modules.predict import Predict


def double(n: int) -> int:
    if n < 0:
        raise ValueError(f"negative: {n}")
    return 2 * n


async def shout(text: str) -> str:
    return text.upper()


PAIRS: list[Any] = [(double, {"n": 4}), (shout, ("hi",)), (double, [5]), (double, Example(n=6).with_inputs("n"))]


def test_results_are_in_order_for_every_form_of_inputs() -> None:
    assert Parallel(num_threads=3)(PAIRS) == [8, "HI", 10, 12]


async def test_awaited_and_streamed_calls_give_the_same() -> None:
    assert await Parallel(num_threads=3).acall(PAIRS) == [8, "HI", 10, 12]
    *_, last = Parallel().stream(PAIRS)
    assert last.value == [8, "HI", 10, 12]


def test_failures_are_none_with_one_warning_that_names_the_first() -> None:
    with pytest.warns(RuntimeWarning, match=r"1 of 2 calls failed.*ValueError: negative: -1"):
        assert Parallel()([(double, {"n": -1}), (double, {"n": 1})]) == [None, 2]


def test_failed_inputs_and_errors_are_returned_of_each_call_alone() -> None:
    parallel = Parallel(return_failed_examples=True)
    for _ in range(2):
        results, failed, errors = parallel([(double, {"n": -1}), (double, {"n": 1})])
        assert (results, failed, [str(error) for error in errors]) == ([None, 2], [{"n": -1}], ["negative: -1"])


def test_more_failures_than_max_errors_raise_and_keep_what_is_finished() -> None:
    pairs: list[Any] = [(double, {"n": n}) for n in (1, -1, -2)]
    with pytest.raises(ValueError, match="negative: -2") as caught:
        Parallel(num_threads=1, max_errors=1)(pairs)
    assert BatchRun.of(caught.value).results[0] == 2


def test_example_is_passed_whole_without_access_to_its_inputs() -> None:
    example = Example(n=6).with_inputs("n")
    assert Parallel(access_examples=False)([(lambda row: row.n, example)]) == [6]


def test_calls_run_at_once_and_inherit_settings() -> None:
    meet = threading.Barrier(2, timeout=60)

    def meeting() -> object:
        meet.wait()
        return sigwire.settings.rollout_id

    with sigwire.context(rollout_id=7):
        assert Parallel(num_threads=2)([(meeting, ()), (meeting, ())]) == [7, 7]


def test_programs_are_modules_as_well_and_their_usage_is_counted() -> None:
    predict = Predict("question -> answer", lm=FakeLM([{"answer": "a"}, {"answer": "b"}]))
    with sigwire.track_usage() as tracker:
        results = Parallel(num_threads=1)([(predict, {"question": "1"}), (predict, {"question": "2"})])
    assert [result.answer for result in results] == ["a", "b"]
    assert len(tracker.attempts["fake"]) == 2


@pytest.mark.parametrize(("options", "text"), [({"max_errors": -1}, "max_errors"), ({"num_thread": 2}, "num_threads")])
def test_wrong_options_are_refused(options: dict[str, Any], text: str) -> None:
    with pytest.raises((sigwire.ConfigurationError, TypeError), match=text):
        Parallel(**options)


def test_inputs_of_another_type_are_refused() -> None:
    with pytest.raises(sigwire.ConfigurationError, match="not int"):
        Parallel(max_errors=0)([(double, 3)])  # type: ignore[list-item]
