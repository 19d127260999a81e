"""``sigwire.history`` and ``inspect_history``: failed calls, path, turn and example; folded demos; clean text."""

from __future__ import annotations

import asyncio
import copy
import gc
import io
import json
import pickle
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

import sigwire
from sigwire import LM, Evaluate, Example, FakeLM, Module, Predict, ReAct, ToolCall
from sigwire.errors import AdapterParseError, ConfigurationError, LMRateLimitError, UnsupportedOption
from sigwire.testing import FakeProvider, Fault
from tests.modules.test_where import awaited, blocking, streamed, streamed_awaited

HOSTILE = "a\x1b[31mred\x1b[0m\u202eb\ud800"
every_way = pytest.mark.parametrize("call", [blocking, awaited, streamed, streamed_awaited])


class Double(Module):
    def __init__(self, lm: Any, second: Module | None = None) -> None:
        super().__init__()
        self.first = Predict("n -> m", lm=lm)
        self.second = second or Predict("m -> k", lm=lm)

    def forward(self, n: str) -> Any:
        return self.second(m=self.first(n=n).m)


def look(at: str) -> str:
    """Look."""
    return at


def text_of(n: int, lm: Any, **options: Any) -> str:
    out = io.StringIO()
    sigwire.inspect_history(n, out, lm=lm, **options)
    return out.getvalue()


@every_way
async def test_history_has_path_and_turn_of_each_call(call: Callable[..., Awaitable[Any]]) -> None:
    lm = FakeLM([{"m": "1"}, ToolCall("", "look", {"at": "x"}), ToolCall("", "submit", {"k": "2"})])
    agent = ReAct("m -> k", tools=[look])
    agent.set_lm(lm)
    await call(Double(lm, agent), n="1")
    assert [(each.path, each.turn) for each in sigwire.history(3, lm=lm)] == [
        ("first", None), ("second.react", 0), ("second.react", 1),
    ]  # fmt: skip
    head = text_of(1, lm).splitlines()[1]
    assert "second.react · turn 1" in head


@every_way
async def test_history_has_failed_calls_with_their_error(call: Callable[..., Awaitable[Any]]) -> None:
    lm = FakeLM([{"m": "1"}, LMRateLimitError("slow down")])
    with pytest.raises(LMRateLimitError) as caught:
        await call(Double(lm), n="1")
    first, failed = sigwire.history(5, lm=lm)
    assert (first.path, first.error) == ("first", None)
    assert (failed.path, type(failed.error), failed.response) == ("second", LMRateLimitError, None)
    assert failed.error is not caught.value
    assert failed.error.__traceback__ is None
    assert "LMRateLimitError: slow down" in text_of(1, lm)
    assert [entry["outputs"] for entry in lm.history] == [[lm.history[0]["outputs"][0]]]


def test_history_has_attempts_seconds_and_error_of_a_call_over_http() -> None:
    with FakeProvider([Fault(status=401), "[[ ## a ## ]]\nyes"]) as provider:
        lm = LM("openai/gpt-4.1-mini", base_url=provider.url("openai"), api_key="k", num_retries=0)
        predict = Predict("q -> a", lm=lm)
        with pytest.raises(sigwire.LMAuthenticationError):
            predict(q="1")
        predict(q="2")
        shown = text_of(1, lm, format="wire")
    failed, done = sigwire.history(2, lm=lm)
    assert [attempt.error for attempt in failed.attempts] == ["auth"]
    assert [attempt.error for attempt in done.attempts] == [None]
    assert done.seconds is not None
    assert 0 < done.seconds < 10
    assert (done.cache, done.path) == ("off", "self")
    assert '"model": "gpt-4.1-mini"' in shown
    assert '"choices"' in shown


def test_direct_call_of_a_model_has_no_path() -> None:
    lm = FakeLM(["a"])
    lm("hello")
    (call,) = sigwire.history(9, lm=lm)
    assert (call.path, call.turn, call.example) == (None, None, None)


def test_history_names_the_example_of_a_batch_and_of_an_evaluation() -> None:
    lm = FakeLM(lambda _: {"m": "1", "k": "2"})
    program = Double(lm)
    program.batch([{"n": "1"}, {"n": "2"}], num_threads=2)
    assert sorted((call.example, call.path) for call in sigwire.history(4, lm=lm)) == [
        (0, "first"), (0, "second"), (1, "first"), (1, "second"),
    ]  # fmt: skip
    devset = [Example(id="odd", n="1", k="2").with_inputs("n")]
    Evaluate(devset=devset, metric=lambda example, pred: True, display_progress=False)(program)
    assert [(call.example, call.path) for call in sigwire.history(2, lm=lm)] == [("odd", "first"), ("odd", "second")]


def test_history_merges_the_calls_of_all_models_in_order() -> None:
    one, other = FakeLM(lambda _: {"m": "1"}, model="one"), FakeLM(lambda _: {"k": "1"}, model="other")
    program = Double(one, Predict("m -> k", lm=other))
    program(n="1")
    program(n="2")
    assert [call.model for call in sigwire.history(4)] == ["one", "other", "one", "other"]
    assert sigwire.history(0) == []
    last = sigwire.history(1)[0]
    assert last.path == "second"


def test_history_keeps_no_call_of_a_model_without_history() -> None:
    lm = FakeLM([{"m": "1"}, LMRateLimitError("slow down")])
    lm.history = []
    lm = lm.copy()
    lm._history = type(lm.history)(0)
    predict = Predict("n -> m", lm=lm)
    predict(n="1")
    with pytest.raises(LMRateLimitError):
        predict(n="1")
    assert sigwire.history(9, lm=lm) == []


def test_inspect_history_folds_demos_and_repeated_system_messages() -> None:
    lm = FakeLM(lambda _: {"a": "yes"})
    predict = Predict("q -> a", lm=lm)
    predict.demos = [{"q": f"canary {number}", "a": "no"} for number in range(4)]
    predict(q="first")
    predict(q="second")
    shown = text_of(2, lm)
    assert "canary" not in shown
    assert shown.count("\n4 demos, ") == 2
    assert shown.count("Each input field") == 1
    assert shown.count("system:\nas above") == 1
    assert "first" in shown
    assert "second" in shown


@pytest.mark.parametrize("form", ["text", "wire", "json"])
def test_inspect_history_writes_no_control_characters_to_a_file(form: Any) -> None:
    lm = FakeLM([{"a": HOSTILE}, LMRateLimitError(HOSTILE)])
    predict = Predict("q -> a", lm=lm)
    predict(q=HOSTILE)
    with pytest.raises(LMRateLimitError):
        predict(q=HOSTILE)
    shown = text_of(2, lm, format=form)
    assert shown.replace("\n", "").isprintable()
    assert "\\x1b" in shown or "\\u001b" in shown


def test_inspect_history_bounds_each_text() -> None:
    lm = FakeLM([{"a": "x" * 200_000}])
    Predict("q -> a", lm=lm)(q="y" * 200_000)
    assert len(text_of(1, lm)) < 45_000
    assert "more characters" in text_of(1, lm)


def test_inspect_history_as_json_has_a_line_a_call_without_secrets() -> None:
    canary = "-".join(("canary", "7Kq"))
    lm = FakeLM([{"a": "yes"}, {"a": "no"}])
    predict = Predict("q -> a", lm=lm, extra_body={"token": canary})
    predict(q="1")
    predict(q="2")
    lines = text_of(2, lm, format="json").splitlines()
    assert [json.loads(line)["path"] for line in lines] == ["self", "self"]
    assert canary not in "".join(
        [*lines, text_of(2, lm), text_of(2, lm, format="wire"), repr(sigwire.history(2, lm=lm))]
    )


@every_way
async def test_inspect_history_without_a_configured_model_shows_the_calls_of_modules(
    call: Callable[..., Awaitable[Any]],
) -> None:
    lm = FakeLM([{"m": "1"}, {"k": "only call of its kind"}])
    assert sigwire.settings.lm is None
    await call(Double(lm), n="1")
    assert "only call of its kind" in text_of(1, None)


def test_inspect_history_refuses_another_format() -> None:
    with pytest.raises(ConfigurationError, match='format is "text", "wire" or "json"'):
        text_of(1, FakeLM([]), format="yaml")


def test_history_of_a_module_has_its_failed_calls(capsys: pytest.CaptureFixture[str]) -> None:
    lm = FakeLM([{"m": "1"}, LMRateLimitError("slow down")])
    program = Double(lm)
    with sigwire.context(max_history_size=5), pytest.raises(LMRateLimitError):
        program(n="1")
    program.inspect_history(2)
    shown = capsys.readouterr().out
    assert "· first" in shown
    assert "· second" in shown
    assert "slow down" in shown
    assert len(program.history) == 1


def test_cost_of_a_call_without_a_price_is_unknown() -> None:
    lm = FakeLM([{"a": "yes"}], usage=sigwire.Usage(input_tokens=3, output_tokens=1), model="acme/none")
    Predict("q -> a", lm=lm)(q="1")
    assert sigwire.history(1, lm=lm)[0].cost is None


def test_copy_and_pickle_of_a_model_hold_no_module_of_its_calls() -> None:
    class Held(Double):
        def __reduce__(self) -> Any:
            raise AssertionError

        def __deepcopy__(self, memo: Any) -> Any:
            raise AssertionError

    lm = LM("offline/lexical", cache=False)
    Held(lm)(n="1")
    for other in (copy.deepcopy(lm), pickle.loads(pickle.dumps(lm))):
        assert [call.path for call in sigwire.history(2, lm=other)] == ["first", "second"]


def test_calls_of_a_copied_model_are_in_the_history_of_all_models() -> None:
    lm = copy.deepcopy(LM("offline/lexical", cache=False))
    Predict("n -> m", lm=lm)(n="canary")
    (call,) = sigwire.history(1)
    assert "canary" in call.request.messages[-1].text


def test_failed_call_keeps_no_frame_of_the_program() -> None:
    import weakref

    class Big:
        pass

    lm = FakeLM([LMRateLimitError("slow down")])

    def program() -> weakref.ref[Big]:
        big = Big()
        with pytest.raises(LMRateLimitError):
            Predict("q -> a", lm=lm)(q="1")
        return weakref.ref(big)

    found = program()
    gc.collect()
    assert found() is None
    assert sigwire.history(1, lm=lm)[0].error is not None


def test_request_that_cannot_be_sent_is_a_failed_call() -> None:
    lm = LM("openai/gpt-4.1-mini", api_key="k")
    with pytest.raises(UnsupportedOption):
        Predict("q -> a", lm=lm)(q="1", config={"top_k": 3})
    (call,) = sigwire.history(1, lm=lm)
    assert isinstance(call.error, UnsupportedOption)
    assert "top_k" in text_of(1, lm, format="wire")


def test_parse_error_is_no_failed_call() -> None:
    lm = FakeLM(["no number"])
    with pytest.raises(AdapterParseError):
        Predict("q -> a: int", lm=lm)(q="1")
    assert sigwire.history(1, lm=lm)[0].error is None


def test_concurrent_programs_have_their_own_paths() -> None:
    lm = FakeLM(lambda _: {"m": "1", "k": "2"})

    class Other(Module):
        def __init__(self) -> None:
            self.inner = Predict("n -> m", lm=lm)

        async def aforward(self, n: str) -> Any:
            await asyncio.sleep(0)
            return await self.inner.acall(n=n)

    async def both() -> None:
        await asyncio.gather(Other().acall(n="1"), Double(lm).acall(n="1"), Other().acall(n="2"))

    asyncio.run(both())
    assert sorted(str(call.path) for call in sigwire.history(4, lm=lm)) == ["first", "inner", "inner", "second"]
