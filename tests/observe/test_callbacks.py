"""Callbacks: order of handlers, their arguments, and failing listeners."""

from __future__ import annotations

import asyncio
import itertools
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.tools.tool import Tool
from sigwire.lm.fake import FakeLM
from sigwire.observe.callbacks import ACTIVE_CALL_ID, BaseCallback, listen_to, watched_call
from sigwire.settings import bind, context


class Recorder(BaseCallback):
    def __init__(self) -> None:
        self.events: list[tuple[Any, ...]] = []

    def on_lm_start(self, call_id: str, instance: Any, inputs: Any) -> None:
        self.events.append(("start", call_id, ACTIVE_CALL_ID.get(), instance, dict(inputs)))

    def on_lm_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        self.events.append(("end", call_id, outputs, exception))


class Watched:
    def __init__(self, *callbacks: Any) -> None:
        self.callbacks = list(callbacks)


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    recorder = Recorder()
    with context(callbacks=[recorder]):
        yield recorder


def test_start_and_end_share_an_id_and_end_has_the_outputs(recorder: Recorder) -> None:
    with watched_call("lm", "model", {"q": 1}) as end:
        end("answer")
    start, done = recorder.events
    assert start[3:] == ("model", {"q": 1})
    assert done == ("end", start[1], "answer", None)


def test_handlers_are_called_with_keywords() -> None:
    heard: list[dict[str, Any]] = []

    class Loose:
        def on_lm_start(self, **facts: Any) -> None:
            heard.append(facts)

        def on_lm_end(self, outputs: Any, **rest: Any) -> None:
            heard.append(rest)

    with context(callbacks=[Loose()]), watched_call("lm", "model", {"q": 1}) as end:
        end("answer")
    assert [sorted(facts) for facts in heard] == [["call_id", "inputs", "instance"], ["call_id", "exception"]]


def test_call_without_listeners_is_one_shared_object_and_makes_no_inputs() -> None:
    def inputs() -> dict[str, Any]:
        raise AssertionError("made for nobody")

    assert watched_call("lm", "model", inputs) is watched_call("tool", object(), inputs)
    with watched_call("lm", "model", inputs) as end:
        end("ignored")


def test_inputs_may_be_a_function(recorder: Recorder) -> None:
    with watched_call("lm", "model", lambda: {"q": 2}):
        pass
    assert recorder.events[0][4] == {"q": 2}


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), asyncio.CancelledError()])
def test_exception_is_reported_and_raised(recorder: Recorder, error: BaseException) -> None:
    with pytest.raises(type(error)), watched_call("lm", "model", {}):
        raise error
    assert recorder.events[1][2:] == (None, error)


def test_start_handler_sees_the_parent_id_and_the_body_its_own(recorder: Recorder) -> None:
    with watched_call("lm", "outer", {}):
        outer = ACTIVE_CALL_ID.get()
        with watched_call("lm", "inner", {}):
            inner = ACTIVE_CALL_ID.get()
        assert ACTIVE_CALL_ID.get() == outer
    assert ACTIVE_CALL_ID.get() is None
    assert [event[1:3] for event in recorder.events if event[0] == "start"] == [(outer, None), (inner, outer)]


def test_listeners_of_settings_precede_those_of_the_instance() -> None:
    order: list[str] = []

    class Named(BaseCallback):
        def __init__(self, name: str) -> None:
            self.name = name

        def on_tool_start(self, call_id: str, instance: Any, inputs: Any) -> None:
            order.append(self.name)

    with context(callbacks=[Named("common")]), watched_call("tool", Watched(Named("own")), {}):
        pass
    assert order == ["common", "own"]


async def test_direct_tool_call_is_reported_with_its_value_or_error() -> None:
    class Hearing(BaseCallback):
        def on_tool_start(self, call_id: str, instance: Any, inputs: Any) -> None:
            heard.append((instance.name, dict(inputs)))

        def on_tool_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
            heard.append((outputs, exception))

    def half(n: int) -> int:
        if n % 2:
            raise failure
        return n // 2

    async def ahalf(n: int) -> int:
        return half(n)

    failure = LookupError("odd")
    with context(callbacks=[Hearing()]):
        for tool in (Tool(half), Tool(ahalf)):
            heard: list[Any] = []
            assert (tool(n=4), await tool.acall(n=6)) == (2, 3)
            with pytest.raises(LookupError):
                tool(n=3)
            name = tool.name
            assert heard == [
                (name, {"n": 4}),
                (2, None),
                (name, {"n": 6}),
                (3, None),
                (name, {"n": 3}),
                (None, failure),
            ]


def test_object_with_a_handler_method_is_a_listener() -> None:
    class Bare:
        ended: Any = None

        def on_evaluate_end(self, call_id: str, outputs: Any, exception: Any = None) -> None:
            self.ended = outputs

    bare = Bare()
    with watched_call("evaluate", Watched(bare), {}) as end:
        end(3)
    assert bare.ended == 3


def test_failing_listener_warns_and_other_listeners_are_called() -> None:
    class Broken(BaseCallback):
        def on_lm_start(self, call_id: str, instance: Any, inputs: Any) -> None:
            raise RuntimeError("broken listener")

    good = Recorder()
    with (
        context(callbacks=[Broken(), good]),
        pytest.warns(RuntimeWarning, match=r"Broken\.on_lm_start failed .* broken listener"),
        watched_call("lm", "model", {}) as end,
    ):
        end(1)
    assert [event[0] for event in good.events] == ["start", "end"]


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_streams_of_one_context_that_end_in_any_order_leave_no_active_id(
    recorder: Recorder, order: tuple[int, ...]
) -> None:
    with watched_call("module", object(), {}):
        around = ACTIVE_CALL_ID.get()
        streams = [FakeLM(["a b"]).stream(Request((Message.user("hello"),))) for _ in range(3)]
        for events in streams:
            next(events)
        for number in order:
            list(streams[number])
        assert ACTIVE_CALL_ID.get() == around
    assert ACTIVE_CALL_ID.get() is None


async def test_parent_ids_follow_tasks_and_bound_threads(recorder: Recorder) -> None:
    seen: list[str | None] = []

    async def child() -> None:
        seen.append(ACTIVE_CALL_ID.get())

    with watched_call("lm", "parent", {}):
        parent = ACTIVE_CALL_ID.get()
        await asyncio.gather(child(), asyncio.to_thread(lambda: seen.append(ACTIVE_CALL_ID.get())))
        thread = threading.Thread(target=bind(lambda: seen.append(ACTIVE_CALL_ID.get())))
        thread.start()
        thread.join()
    assert parent is not None
    assert seen == [parent] * 3


def test_source_of_listeners_can_be_restored() -> None:
    recorder = Recorder()
    before = listen_to(lambda: [recorder])
    try:
        with watched_call("lm", "model", {}):
            pass
    finally:
        listen_to(before)
    with watched_call("lm", "model", {}):
        pass
    assert len(recorder.events) == 2
