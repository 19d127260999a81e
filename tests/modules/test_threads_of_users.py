"""Threads of the user: a warning about the default model, asked although a block of another thread sets one."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import uuid4

import pytest

import sigwire
from sigwire import FakeLM, LMNotConfigured, Predict, context, settings
from tests.ways import in_every_way


def answering(model: str) -> FakeLM:
    return FakeLM(lambda _: {"answer": model}, model=model)


@pytest.fixture
def names() -> Iterator[tuple[str, str]]:
    """The names of a default model and of the model of a block: a warning is given once for each two."""
    default, other = f"default-{uuid4().hex[:8]}", f"other-{uuid4().hex[:8]}"
    sigwire.configure(lm=answering(default))
    yield default, other
    sigwire.configure(lm=None)


@in_every_way
def test_plain_thread_pool_that_misses_the_context_gets_one_warning(way: Any, names: tuple[str, str]) -> None:
    default, other = names
    with context(lm=answering(other)), ThreadPoolExecutor(1) as pool:
        first, second = [pool.submit(way, Predict("question -> answer"), question="?").result() for _ in range(2)]
    assert (first.answer, second.answer) == (default, default)
    [warning] = first.warnings
    assert warning.feature == "settings"
    assert default in warning.detail
    assert other in warning.detail
    assert "settings.bind" in warning.detail
    assert second.warnings == ()


def test_warning_about_a_missed_context_is_counted_by_trackers(names: tuple[str, str]) -> None:
    def ask() -> list[str]:
        with sigwire.track_usage() as tracker:
            Predict("question -> answer")(question="?")
        return list(tracker.warnings)

    with context(lm=answering(names[1])), ThreadPoolExecutor(1) as pool:
        assert pool.submit(ask).result() == ["settings"]


def warnings_of(function: Any) -> Any:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, question="?").result().warnings


def test_no_warning_when_the_function_is_bound(names: tuple[str, str]) -> None:
    outside = settings.bind(Predict("question -> answer"))  # bound to the defaults, on purpose
    with context(lm=answering(names[1])):
        assert warnings_of(settings.bind(Predict("question -> answer"))) == ()
        assert warnings_of(outside) == ()


def test_no_warning_when_the_predictor_has_its_own_model(names: tuple[str, str]) -> None:
    with context(lm=answering(names[1])):
        assert warnings_of(Predict("question -> answer", lm=answering("own"))) == ()


def test_no_warning_after_the_block_or_for_a_context_of_other_settings(names: tuple[str, str]) -> None:
    with context(lm=answering(names[1])):
        pass
    with context(num_threads=2):
        assert warnings_of(Predict("question -> answer")) == ()


def test_no_warning_in_the_threads_of_the_library(names: tuple[str, str]) -> None:
    opened, done = threading.Event(), threading.Event()

    def hold() -> None:
        with context(lm=answering(names[1])):
            opened.set()
            done.wait(60)

    thread = threading.Thread(target=hold)
    thread.start()
    opened.wait(60)
    results = Predict("question -> answer").batch([{"question": "?"}] * 2)
    done.set()
    thread.join()
    assert [result.warnings for result in results] == [(), ()]


def test_missing_default_names_the_model_of_the_block_that_the_thread_misses() -> None:
    with context(lm=answering("of-the-block")), ThreadPoolExecutor(1) as pool:
        future = pool.submit(Predict("question -> answer"), question="?")
        with pytest.raises(LMNotConfigured, match=r"of-the-block.*settings\.bind"):
            future.result()
