"""Toolbox: the only code that runs a tool for a model; a failure of a tool is a result."""

from __future__ import annotations

import ast
import asyncio
import contextvars
import dataclasses
import datetime
import enum
import json
import pickle
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.tools import StructuredTool

import sigwire
from sigwire.core.example import Prediction
from sigwire.core.parts import ImagePart
from sigwire.core.tools.calls import ToolCall, ToolResult, WebSearch
from sigwire.core.tools.tool import Tool
from sigwire.effects.steps import arun, run
from sigwire.errors import ConfigurationError, RetryTool, ToolDefinitionError, ToolFailed, ToolWarning
from sigwire.modules.agents.large_results.shortening import shorten
from sigwire.modules.agents.tool_results import encode, short_message
from sigwire.modules.agents.toolbox import Toolbox, ToolRun
from sigwire.observe.callbacks import BaseCallback
from sigwire.settings import context
from sigwire.signatures.types import Image
from tests.figures import trees

pytestmark = pytest.mark.filterwarnings("ignore::sigwire.errors.ToolWarning")


def add(a: int, b: int = 1) -> int:
    return a + b


async def add_later(a: int) -> int:
    await asyncio.sleep(0.001)
    return a + 1


def call(name: str, id: str = "call_0", /, **arguments: Any) -> ToolCall:
    return ToolCall(id, name, arguments)


async def both(box: Toolbox, *calls: ToolCall) -> list[ToolResult]:
    """Run the calls blocking and awaited; compare the results."""
    blocking = await asyncio.to_thread(box, calls)
    awaited = await box.acall(calls)
    assert blocking == awaited
    return awaited


# --- invalid calls and exceptions ----------------------------------------------------------------------

FAULTS: list[tuple[ToolCall, str]] = [
    (call("sub"), "Unknown tool 'sub'. The tools are: add, add_later."),
    (ToolCall.read("c", "add", '{"a": '), "not valid JSON"),
    (ToolCall.read("c", "add", "[1]"), "must be a JSON object, not an array"),
    (call("add", a="x"), "a"),
    (call("add", a=True), "a: Input should be a valid integer (got True)"),
    (call("n" * 100_000), f"Unknown tool '{'n' * 60}'. The tools are: add, add_later."),
    (call("add"), "a"),
    (call("add", a=1, c=2), "c"),
]


@pytest.mark.parametrize(("bad", "message"), FAULTS)
async def test_invalid_call_gets_result_with_correction(bad: ToolCall, message: str) -> None:
    (result,) = await both(Toolbox([add, add_later]), bad)
    assert result.is_error
    assert message in result.text
    assert (result.id, result.name) == (bad.id, bad.name)


async def test_invalid_call_does_not_affect_other_calls() -> None:
    box = Toolbox([add, add_later])
    results = await both(box, call("add", a=1), call("nothing"), call("add_later", a=2))
    assert [result.content for result in results if not result.is_error] == [2, 3]


def failing(error: BaseException) -> Tool:
    def fail() -> None:
        raise error

    return Tool(fail)


SIGNALS: list[tuple[Exception, str]] = [
    (RetryTool("order numbers have four digits"), "order numbers have four digits"),
    (ToolFailed("the shop is closed"), "the shop is closed"),
    (ValueError("bad value\nsecond line"), "The tool failed. ValueError: bad value"),
    (KeyError("x"), "The tool failed. KeyError: 'x'"),
    (RuntimeError(), "The tool failed. RuntimeError"),
    (StopIteration("done"), "The tool failed."),
    (TimeoutError("of its own"), "The tool failed. TimeoutError: of its own"),
]


@pytest.mark.parametrize(("error", "message"), SIGNALS)
async def test_tool_exception_becomes_short_error_result(error: Exception, message: str) -> None:
    box = Toolbox([failing(error)])
    for result in (box([call("fail")])[0], (await box.acall([call("fail")]))[0]):
        assert result.is_error
        assert result.text.startswith(message)
        assert "Traceback" not in result.text
        assert "second line" not in result.text


@pytest.mark.parametrize("error", [ValueError("x"), OSError("disk")])
async def test_on_error_abort_raises_tool_exception(error: Exception) -> None:
    box = Toolbox([failing(error), add], on_error="abort")
    with pytest.raises(type(error)):
        box([call("fail")])
    with pytest.raises(type(error)):
        await box.acall([call("add", a=1), call("fail")])


async def test_on_error_abort_returns_signals_and_argument_errors() -> None:
    box = Toolbox([failing(RetryTool("again")), add], on_error="abort")
    results = await both(box, call("fail"), call("add"), call("nothing"))
    assert [result.is_error for result in results] == [True, True, True]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(1)])
def test_interrupt_is_never_a_result(error: BaseException) -> None:
    with pytest.raises(type(error)):
        Toolbox([failing(error)])([call("fail")])


async def test_cancellation_propagates_and_finished_runs_are_recorded() -> None:
    started = asyncio.Event()

    async def wait() -> None:
        started.set()
        await asyncio.sleep(10)

    record: list[ToolRun] = []
    program = Toolbox([wait, add]).run([call("add", a=1), call("wait", "call_1")], record=record)
    task = asyncio.ensure_future(arun(program))
    await started.wait()
    while not record:
        await asyncio.sleep(0.001)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [done.result.content for done in record] == [2]


# --- error texts for the model ---------------------------------------------------------------------------

MESSAGES: list[tuple[Exception, str]] = [
    (
        FileNotFoundError(2, "No such file", "/home/ada/x/data.csv"),
        "FileNotFoundError: [Errno 2] No such file: 'data.csv'",
    ),
    (ValueError(r"cannot open C:\Users\ada\keys.txt now"), "ValueError: cannot open keys.txt now"),
    (ValueError("see https://example.com/a/b for help"), "ValueError: see https://example.com/a/b for help"),
    (ValueError("~/secret/dir/file and 1/2 of it"), "ValueError: file and 1/2 of it"),
]


@pytest.mark.parametrize(("error", "message"), MESSAGES)
def test_short_message_keeps_urls_and_removes_directories(error: Exception, message: str) -> None:
    assert short_message(error) == message


@given(st.text())
def test_short_message_is_one_short_line(text: str) -> None:
    message = short_message(ValueError(text))
    assert message.startswith("ValueError")
    assert len(message) <= 500
    assert len(message.splitlines()) == 1


SECRETS = [
    "401 for https://x.example/o?api_key={}&page=2",
    "cannot reach postgres://ada:{}@db.example/shop",
    "Authorization: Bearer {}",
    "{{'api_token': '{}', 'page': 2}}",
    "password={}; host=db",
    "Incorrect API key provided: sk-proj-{}.",
]


@pytest.mark.parametrize("text", SECRETS)
def test_short_message_masks_secrets(text: str) -> None:
    message = short_message(RuntimeError(text.format("Qw3rty_Secret-42")))
    assert "Qw3rty" not in message
    assert "***" in message


@pytest.mark.filterwarnings("always::sigwire.errors.ToolWarning")
@pytest.mark.parametrize("text", SECRETS)
def test_warning_of_a_bug_in_a_tool_masks_secrets(text: str) -> None:
    with pytest.warns(ToolWarning) as caught:
        Toolbox([failing(RuntimeError(text.format("Qw3rty_Secret-42")))])([call("fail")])
    assert "Qw3rty" not in str(caught[0].message)
    assert "***" in str(caught[0].message)


@pytest.mark.parametrize("text", ["unexpected token: a word", "no key: 'x'", "basic rules for x", "max_tokens=5"])
def test_short_message_keeps_ordinary_words(text: str) -> None:
    assert short_message(ValueError(text)) == f"ValueError: {text}"


# --- bugs in tools ---------------------------------------------------------------------------------------


def rate(currency: str) -> float:
    return {"EUR": 1.0}[currency]


def rate_line() -> str:
    return f"test_toolbox.py:{rate.__code__.co_firstlineno + 1}"


@pytest.mark.filterwarnings("always::sigwire.errors.ToolWarning")
@pytest.mark.parametrize("limit", [None, 30.0])
async def test_bug_in_a_tool_is_a_warning_with_file_and_line_once(limit: float | None) -> None:
    box = Toolbox([Tool(rate, timeout=limit)])
    with pytest.warns(ToolWarning) as caught:
        (result,) = await both(box, call("rate", currency="USD"))
    (warning,) = caught
    assert str(warning.message).startswith(f"rate raised KeyError('USD') at {rate_line()};")
    assert (warning.filename, warning.lineno) == (__file__, rate.__code__.co_firstlineno + 1)
    assert result.text == "The tool failed. KeyError: 'USD'"
    assert isinstance(result.exception, KeyError)
    assert traceback.extract_tb(result.exception.__traceback__)[-1].name == "rate"


@pytest.mark.filterwarnings("always::sigwire.errors.ToolWarning")
def test_warning_names_the_line_of_the_tool_when_a_library_raises() -> None:
    def parse(text: str) -> object:
        return datetime.datetime.fromisoformat(json.loads(text))

    with pytest.warns(ToolWarning) as caught:
        Toolbox([parse])([call("parse", text="{")])
    assert caught[0].lineno == parse.__code__.co_firstlineno + 1


class Broken(pydantic.BaseModel):
    n: int

    @pydantic.field_validator("n")
    @classmethod
    def check(cls, n: int) -> int:
        raise RuntimeError("a bug")


@pytest.mark.filterwarnings("always::sigwire.errors.ToolWarning")
def test_warning_names_the_function_inside_a_langchain_tool() -> None:
    made = Tool.from_langchain(StructuredTool.from_function(rate, description="The rate."))
    with pytest.warns(ToolWarning) as caught:
        Toolbox([made])([call("rate", currency="USD")])
    assert (caught[0].filename, caught[0].lineno) == (__file__, rate.__code__.co_firstlineno + 1)


@pytest.mark.filterwarnings("always::sigwire.errors.ToolWarning")
def test_value_without_json_form_and_failing_validator_are_warnings() -> None:
    def takes(it: Broken) -> None: ...

    def gives() -> object:
        return threading.Lock()

    box = Toolbox([takes, gives])
    with pytest.warns(ToolWarning) as caught:
        results = box([call("takes", it={"n": 1}), call("gives")])
    assert sorted(str(warning.message).split("(")[0] for warning in caught) == [
        "gives raised ValueError",
        "takes raised RuntimeError",
    ]
    assert [type(result.exception) for result in results] == [RuntimeError, ValueError]
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.filterwarnings("error::sigwire.errors.ToolWarning")
async def test_signals_timeouts_and_wrong_arguments_are_no_warnings() -> None:
    async def slow() -> None:
        await asyncio.sleep(10)

    box = Toolbox([failing(RetryTool("again")), Tool(slow, timeout=0.01), add])
    results = await both(box, call("fail"), call("slow"), call("add", a="x"), call("nothing"))
    assert [result.exception for result in results] == [None] * 4


def test_exception_of_a_result_is_no_part_of_json_pickles_and_comparisons() -> None:
    (result,) = Toolbox([rate])([call("rate", currency="USD")])
    plain = ToolResult(result.id, result.name, result.content, is_error=True)
    assert result == plain
    assert result.to_json() == plain.to_json()
    assert repr(result) == repr(plain)
    assert pickle.loads(pickle.dumps(result)).exception is None


def test_exception_with_failing_str_becomes_result() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    assert short_message(Mute()) == "Mute"


# --- results -----------------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"


class Point(pydantic.BaseModel):
    x: int
    when: datetime.date = datetime.date(2026, 1, 2)


@dataclasses.dataclass
class Pair:
    left: Point
    right: Any


class Array:
    """The methods of numpy arrays and scalars."""

    def tolist(self) -> list[float]:
        return [1.5, 2.5]


VALUES: list[tuple[Any, Any]] = [
    ("text", "text"),
    ("", ""),
    (None, None),
    (True, True),
    (3, 3),
    (0.5, 0.5),
    (float("nan"), "NaN"),
    ([1, "a", None], [1, "a", None]),
    ((1, 2), [1, 2]),
    ({"a": {1}}, {"a": [1]}),
    (b"\xff\x00", "_wA="),
    (datetime.datetime(2026, 1, 2, 3, 4), "2026-01-02T03:04:00"),
    (Colour.RED, "red"),
    (Point(x=1), {"x": 1, "when": "2026-01-02"}),
    (Pair(Point(x=1), [Colour.RED]), {"left": {"x": 1, "when": "2026-01-02"}, "right": ["red"]}),
    (Prediction(answer="4"), {"answer": "4"}),
    ({1: "a"}, {"1": "a"}),
    (range(3), [0, 1, 2]),
    ({"array": Array(), "on": datetime.date(2026, 1, 2)}, {"array": [1.5, 2.5], "on": "2026-01-02"}),
    ("caf\udce9.txt", "caf\\udce9.txt"),  # Python decodes a file name that is not UTF-8 to this
    (["caf\udce9"], ["caf\\udce9"]),
    (memoryview(b"\xff\x00"), "_wA="),
]


@pytest.mark.parametrize(("value", "content"), VALUES, ids=lambda value: type(value).__name__)
async def test_encode_converts_values_to_json(value: Any, content: Any) -> None:
    def give() -> Any:
        return value

    (result,) = await both(Toolbox([give]), call("give"))
    assert (result.content, result.is_error) == (content, False)


@pytest.mark.parametrize("value", [object(), {"a": object()}, lambda: 1, threading.Lock()])
async def test_encode_error_names_type_without_repr_of_value(value: Any) -> None:
    def give() -> Any:
        return value

    (result,) = await both(Toolbox([give]), call("give"))
    assert result.is_error
    assert "has no JSON form" in result.text
    assert "0x" not in result.text


def test_encode_error_names_type_of_nested_value() -> None:
    with pytest.raises(ValueError, match=r"the type [Ll]ock"):
        encode({"fine": 1, "bad": [threading.Lock()]})


def _ring() -> list[Any]:
    ring: list[Any] = []
    ring.append(ring)
    return ring


def _tower() -> list[Any]:
    tower: list[Any] = []
    for _ in range(5_000):
        tower = [tower]
    return tower


class Faulty:
    def to_json(self) -> Any:
        raise ZeroDivisionError


def _giving_up() -> Any:
    yield 1
    raise ZeroDivisionError


ODD: dict[str, Callable[[], Any]] = {
    "contains itself": _ring,
    "nested too deeply": _tower,
    "a number of thousands of digits": lambda: 10**5000,
    "a number inside": lambda: {"n": [10**5000]},
    "a number in an object": lambda: Pair(Point(x=1), 10**5000),
    "a result of its own": lambda: ToolResult("", "", object()),
    "fails when it is written": Faulty,
    "fails while it is read": _giving_up,
}


@pytest.mark.parametrize("make", ODD.values(), ids=ODD)
async def test_value_that_fails_to_encode_becomes_error_result(make: Callable[[], Any]) -> None:
    def give() -> Any:
        return make()

    (result,) = await both(Toolbox([give]), call("give"))
    assert result.is_error
    assert "cannot be shown" in result.text


def test_encode_returns_media_separately_with_placeholders() -> None:
    image = Image("https://example.com/cat.png")
    assert encode(image) == ("", (ImagePart(url="https://example.com/cat.png"),))
    content, media = encode({"caption": "two cats", "images": [image, image]})
    assert content == {"caption": "two cats", "images": ["(image 1)", "(image 2)"]}
    assert len(media) == 2


def test_tool_may_return_tool_result() -> None:
    def give() -> ToolResult:
        return ToolResult("ignored", "ignored", "no luck", is_error=True)

    assert Toolbox([give])([call("give", "call_7")]) == [ToolResult("call_7", "give", "no luck", is_error=True)]


@given(st.text(), st.integers(0, 50))
def test_shorten_keeps_start_and_end_and_counts_omitted_characters(text: str, most: int) -> None:
    shown = shorten(text, most)
    assert isinstance(shown, str)
    if len(text) <= most:
        assert shown is text
        return
    head, note, tail = shown.partition(f"\n[... {len(text) - most} of {len(text)} characters omitted ...]\n")
    assert note
    assert text.startswith(head)
    assert text.endswith(tail)
    assert len(head) + len(tail) == most


def test_max_output_of_tool_overrides_toolbox_and_result_stays_complete() -> None:
    def numbers() -> list[int]:
        return list(range(100))

    box = Toolbox([Tool(numbers, max_output=20), Tool(numbers, name="more")], max_output=40)
    runs = run(box.run([call("numbers"), call("more")]))
    assert [len(done.shown.text.replace("\n", "")) < 100 for done in runs] == [True, True]
    assert len(runs[0].shown.text) < len(runs[1].shown.text)
    assert all(done.result.content == list(range(100)) for done in runs)


# --- running ---------------------------------------------------------------------------------------------


async def test_blocking_tools_do_not_block_the_event_loop() -> None:
    begun, released = threading.Event(), threading.Event()

    def block() -> str:
        begun.set()
        assert released.wait(60), "the event loop stood still"
        return threading.current_thread().name

    async def release() -> None:
        while not begun.is_set():
            await asyncio.sleep(0)
        released.set()

    releasing = asyncio.ensure_future(release())
    (result,) = await Toolbox([block]).acall([call("block")])
    await releasing
    assert (result.is_error, result.content != "MainThread") == (False, True)


def meeting(count: int) -> Callable[..., str]:
    """A tool that returns only if ``count`` calls run at once."""
    barrier = threading.Barrier(count, timeout=60)

    def meet(n: int) -> str:
        barrier.wait()
        return f"met {n}"

    return meet


async def test_value_of_blocking_tool_is_encoded_in_its_thread() -> None:
    threads: list[str] = []

    def numbers() -> Any:
        for n in range(2):
            threads.append(threading.current_thread().name)
            yield n

    (result,) = await Toolbox([numbers]).acall([call("numbers")])
    assert result.content == [0, 1]
    assert threading.current_thread().name not in threads


async def test_independent_calls_run_in_parallel_with_results_in_call_order() -> None:
    calls = [call("meet", f"call_{n}", n=n) for n in range(4)]
    expected = [f"met {n}" for n in range(4)]
    assert [result.content for result in await both(Toolbox([meeting(4)]), *calls)] == expected


async def test_turn_may_mix_blocking_and_async_tools() -> None:
    results = await both(Toolbox([add, add_later]), call("add_later", a=1), call("add", a=1), call("add_later", a=3))
    assert [result.content for result in results] == [2, 2, 4]


class Crowd:
    """Counts the calls that run at once."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.lock = threading.Lock()
        self.order: list[int] = []

    def enter(self, n: int) -> int:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.order.append(n)
        time.sleep(0.005)
        with self.lock:
            self.now -= 1
        return n


@pytest.mark.parametrize(("parallel", "most"), [(2, 2), (1, 1), (False, 1)])
async def test_parallel_limits_calls_that_run_at_once(parallel: int | bool, most: int) -> None:
    crowd = Crowd()
    box = Toolbox([crowd.enter], parallel=parallel)
    results = await both(box, *[call("enter", f"call_{n}", n=n) for n in range(6)])
    assert [result.content for result in results] == list(range(6))
    assert crowd.most == most


async def test_tool_without_parallel_runs_alone() -> None:
    crowd = Crowd()
    alone: list[int] = []

    def check(n: int) -> int:
        alone.append(crowd.now)
        return n

    box = Toolbox([crowd.enter, Tool(check, parallel=False)])
    calls = [call("enter", n=0), call("enter", n=1), call("check", n=2), call("enter", n=3)]
    assert [result.content for result in await both(box, *calls)] == [0, 1, 2, 3]
    assert alone == [0, 0]


def test_tool_without_parallel_runs_in_thread_of_caller() -> None:
    def where() -> str:
        return threading.current_thread().name

    assert Toolbox([Tool(where, parallel=False)])([call("where"), call("where")])[0].content == "MainThread"


async def test_slow_tool_gets_error_result_after_timeout() -> None:
    def slow() -> None:
        time.sleep(0.2)

    async def slow_too() -> None:
        await asyncio.sleep(10)

    box = Toolbox([Tool(slow, timeout=0.02), slow_too], timeout=0.03)
    results = await both(box, call("slow"), call("slow_too"))
    assert [result.text for result in results] == [
        "The tool did not finish within 0.02 seconds.",
        "The tool did not finish within 0.03 seconds.",
    ]


@pytest.mark.parametrize("ends", ["late", "never", "at once"])
async def test_async_tool_that_catches_its_cancellation_is_timed_out_at_its_limit(ends: str) -> None:
    async def stubborn() -> str:
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            await asyncio.sleep({"late": 0.5, "never": 60, "at once": 0}[ends])
        finished.append(ends)
        return "finished after all"

    finished: list[str] = []
    (result,) = await both(Toolbox([Tool(stubborn, timeout=0.03)]), call("stubborn"))
    assert (result.is_error, result.text) == (True, "The tool did not finish within 0.03 seconds.")
    assert "never" not in finished


async def test_cleanup_of_timed_out_async_tool_ends_before_the_run_goes_on() -> None:
    cleaned: list[str] = []

    async def tidy() -> None:
        try:
            await asyncio.sleep(10)
        finally:
            await asyncio.sleep(0.01)
            cleaned.append("closed")

    await both(Toolbox([Tool(tidy, timeout=0.02)]), call("tidy"))
    assert cleaned == ["closed", "closed"]


async def test_timeout_includes_the_coroutine_that_a_blocking_function_returns() -> None:
    def slow() -> Any:
        return asyncio.sleep(10)

    (result,) = await both(Toolbox([Tool(slow, timeout=0.03)]), call("slow"))
    assert result.text == "The tool did not finish within 0.03 seconds."


async def test_cancellation_of_the_run_reaches_an_async_tool_with_a_timeout() -> None:
    started, seen = asyncio.Event(), list[str]()

    async def waiting() -> None:
        started.set()
        try:
            await asyncio.sleep(10)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    task = asyncio.create_task(Toolbox([Tool(waiting, timeout=30)]).acall([call("waiting")]))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert seen == ["cancelled"]


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit])
async def test_interrupt_raised_by_an_async_tool_with_a_timeout_propagates(interrupt: type[BaseException]) -> None:
    async def leaves() -> None:
        raise interrupt

    with pytest.raises(interrupt):
        await Toolbox([Tool(leaves, timeout=30)]).acall([call("leaves")])


async def test_tools_see_context_of_caller_however_they_are_run() -> None:
    variable = contextvars.ContextVar("variable", default="unset")

    def read() -> str:
        return variable.get()

    async def read_later() -> str:
        return variable.get()

    variable.set("set")
    box = Toolbox([read, read_later, Tool(read, name="timed", timeout=5)])
    calls = [call("read"), call("read_later"), call("timed")]
    assert [result.content for result in await both(box, *calls)] == ["set"] * 3
    assert [result.content for one in calls for result in await both(box, one)] == ["set"] * 3


async def test_function_that_returns_coroutine_is_awaited() -> None:
    def hidden() -> Any:
        return add_later(1)

    (result,) = await both(Toolbox([hidden]), call("hidden"))
    assert result.content == 2


async def test_callbacks_receive_each_tool_with_value_or_error() -> None:
    class Recorder(BaseCallback):
        def __init__(self) -> None:
            self.events: list[Any] = []

        def on_tool_start(self, call_id: str, instance: Any, inputs: Any) -> None:
            self.events.append((instance.name, dict(inputs)))

        def on_tool_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
            self.events.append((outputs, type(exception)))

    box, recorder = Toolbox([add, failing(ValueError("x"))]), Recorder()
    with context(callbacks=[recorder]):
        box([call("add", a=1)])
        await box.acall([call("fail")])
    assert recorder.events == [("add", {"a": 1}), (2, type(None)), ("fail", {}), (None, ValueError)]


def test_empty_turn_has_no_results() -> None:
    assert Toolbox([add])([]) == []


# --- construction ------------------------------------------------------------------------------------


def test_on_error_must_be_a_setting() -> None:
    with pytest.raises(ConfigurationError, match=r"on_error is 'raise' .*'answer', 'abort' or a function"):
        Toolbox([add], on_error="raise")


def test_toolbox_refuses_duplicate_names_and_missing_handlers() -> None:
    with pytest.raises(ToolDefinitionError, match="Two tools are named 'add'"):
        Toolbox([add, Tool(add)])
    with pytest.raises(ToolDefinitionError, match="no handler"):
        Toolbox([Tool.from_schema("far", "Elsewhere.", {"type": "object", "properties": {}})])
    assert list(Toolbox([Tool.web_search(WebSearch())]).tools) == ["web_search"]


async def test_call_of_provider_tool_gets_result_that_names_the_provider() -> None:
    (result,) = await both(Toolbox([Tool.web_search()]), call("web_search"))
    assert result.is_error
    assert result.content == "The provider runs web_search itself; do not call it."
    assert list(Toolbox({"plus": add}).tools) == ["plus"]
    assert list(Toolbox(add).tools) == ["add"]
    assert list(Toolbox(None).tools) == []
    with pytest.raises(ToolDefinitionError, match="'plus' is named 'add'"):
        Toolbox({"plus": Tool(add)})


def test_tool_run_is_a_json_value() -> None:
    (done,) = run(Toolbox([add]).run([call("add", a=1)]))
    assert ToolRun.from_json(done.to_json()) == done


@pytest.mark.long
def test_only_toolbox_and_tool_read_a_handler() -> None:
    """Search the source: no other file reads the handler of a tool."""
    package = Path(sigwire.__file__).parent
    allowed = {"modules/agents/toolbox.py", "core/tools/tool.py", "core/tools/inspection.py", "core/tools/langchain.py"}
    allowed |= {"core/tools/properties.py"}  # ``func`` of a functools.partial
    allowed |= {"evaluate/fingerprint/reading.py"}  # its code, which no result may outlive
    allowed |= {"dspy/tools.py"}  # ``func`` of the door is an alias of ``handler``
    allowed |= {
        "jobs/job.py",
        "core/tools/held.py",
        "modules/code/host_tools.py",
        "modules/code/tool_signatures.py",
    }  # its name, types, closure and defaults only
    touching = {
        path.relative_to(package).as_posix()
        for path, tree in trees().items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and node.attr in ("handler", "func", "acall_tool")
        and not isinstance(node.ctx, ast.Store)
    }
    assert touching <= allowed
    assert "modules/agents/toolbox.py" in touching
