"""Predict and ChainOfThought: inputs, options, one request per call, re-asks on request; tools are never run."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, Literal

import pydantic
import pytest

from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.two_step import TwoStepAdapter
from sigwire.core.capabilities import Capabilities
from sigwire.core.example import Prediction
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response, Usage
from sigwire.core.tools.calls import ToolCall, ToolCalls
from sigwire.core.tools.tool import Tool
from sigwire.errors import (
    AdapterParseError,
    ConfigurationError,
    ContentFiltered,
    EmptyResponse,
    InputError,
    LMNotConfigured,
    LMServerError,
    MalformedToolCall,
    ModelError,
    OutputTruncated,
    Refused,
    UnsupportedOption,
)
from sigwire.lm.base import BaseLM
from sigwire.lm.client import LM
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.chain_of_thought import ChainOfThought
from sigwire.modules.inputs import InputReader, _KnownTools
from sigwire.modules.predict import Predict
from sigwire.settings import context, settings
from sigwire.signatures import InputField, OutputField, Signature
from sigwire.signatures.types import History, Reasoning

NATIVE = Capabilities(native_tools=True)
TEXT = Capabilities()


class Rate(Signature):
    """Rate the review."""

    review: str = InputField()
    scale: int = InputField(default=5)
    stars: int = OutputField(ge=1)
    why: str = OutputField()


GOOD = {"stars": 3, "why": "so so"}


class Script(FakeLM):
    """A script from which several FakeLMs can be made."""

    def __init__(self, answers: list[Any], **options: Any) -> None:
        super().__init__(answers, **options)
        self.again = lambda: FakeLM(answers, **options)


async def ask(module: Any, lm: Script, /, **inputs: Any) -> Any:
    """Call blocking and awaited with the same script; compare the predictions."""
    first = module(lm=lm, **inputs)
    second = await module.acall(lm=lm.again(), **inputs)
    assert first == second
    return first


# --- inputs --------------------------------------------------------------------------------------------


async def test_predict_returns_typed_outputs_and_fills_in_defaults() -> None:
    lm = Script([GOOD])
    prediction = await ask(Predict(Rate), lm, review="fine")
    assert (prediction.stars, prediction.why) == (3, "so so")
    assert "[[ ## scale ## ]]\n5" in lm.requests[0].messages[-1].text


WRONG_CALLS: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
    ((), {}, "needs the input 'review'"),
    ((), {"scale": 3}, "needs the input 'review'"),
    ((), {"review": "x", "sclae": 3}, "has no input 'sclae'"),
    ((), {"review": "x", "stars": 3}, "has no input 'stars'"),
    (("x",), {}, "takes its inputs by name"),
]


@pytest.mark.parametrize(("args", "kwargs", "message"), WRONG_CALLS)
async def test_wrong_call_names_input_and_shows_right_call(
    args: tuple[Any, ...], kwargs: dict[str, Any], message: str
) -> None:
    lm = FakeLM([GOOD])
    predict = Predict(Rate, lm=lm)
    with pytest.raises(InputError, match=message) as caught:
        predict(*args, **kwargs)
    assert "Predict(review=..., scale=...)" in str(caught.value)
    with pytest.raises(InputError, match=message):
        await predict.acall(*args, **kwargs)
    assert lm.requests == []


def test_input_of_another_type_is_sent_with_warning() -> None:
    predict = Predict("n: int -> answer", lm=FakeLM([{"answer": "a"}, {"answer": "b"}]))
    with pytest.warns(UserWarning, match="'n' does not fit its type") as caught:
        predict(n="many")  # type: ignore[call-arg, unused-ignore]
    assert [warning.filename for warning in caught] == [__file__]
    with context(warn_on_type_mismatch=False), warnings.catch_warnings():
        warnings.simplefilter("error")
        predict(n="many")


@pytest.mark.parametrize("warns", [True, False])
@pytest.mark.parametrize(("kind", "value"), [("Image", "red.png"), ("list[Image]", ["red.png"]), ("Audio", 3)])
async def test_text_in_place_of_a_file_is_an_error_before_anything_is_sent(kind: str, value: Any, warns: bool) -> None:
    lm = FakeLM([{"answer": "a"}])
    predict: Any = Predict(f"photo: {kind} -> answer", lm=lm)

    async def streamed() -> None:
        [event async for event in predict.astream(photo=value)]

    message = r"the input 'photo' is .+, not of the type .*(Image|Audio).* \(calling\): .+ Write Image\(\.\.\.\)"
    with context(warn_on_type_mismatch=warns):
        with pytest.raises(InputError, match=message):
            predict(photo=value)
        with pytest.raises(InputError, match=message):
            await predict.acall(photo=value)
        with pytest.raises(InputError, match=message):
            list(predict.stream(photo=value))
        with pytest.raises(InputError, match=message):
            await streamed()
    assert lm.requests == []


@pytest.mark.parametrize("value", [3, "3", True])
def test_input_that_pydantic_accepts_gives_no_warning(value: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Predict("n: int -> answer", lm=FakeLM([{"answer": "a"}]))(n=value)


def test_input_named_like_an_option_is_an_input() -> None:
    lm = FakeLM([{"answer": "a"}])
    Predict("config, demos, signature -> answer", lm=lm)(config="c", demos="d", signature="s")
    assert "[[ ## config ## ]]\nc" in lm.requests[0].messages[-1].text


# --- models and options --------------------------------------------------------------------------------


def test_model_of_call_overrides_module_and_settings() -> None:
    call, module, default = (FakeLM([GOOD], model=name) for name in ("call", "module", "default"))
    predict = Predict(Rate)
    with context(lm=default):
        assert predict(review="x").attempts[0].model == "default"
        predict.lm = module
        assert predict(review="x").attempts[0].model == "module"
        assert predict(lm=call, review="x").attempts[0].model == "call"


BAD_MODELS: list[tuple[Any, type[Exception], str]] = [
    (None, LMNotConfigured, "No language model for Predict"),
    ("openai/gpt-5-mini", ConfigurationError, r"sigwire\.LM\('openai/gpt-5-mini'\)"),
    (object(), ConfigurationError, "has no respond"),
]


@pytest.mark.parametrize(("lm", "error", "message"), BAD_MODELS)
async def test_object_that_is_no_model_raises_error_with_correction(
    lm: Any, error: type[Exception], message: str
) -> None:
    predict = Predict(Rate)
    predict.lm = lm
    with pytest.raises(error, match=message):
        predict(review="x")
    with pytest.raises(ValueError, match=message):
        await predict.acall(review="x")


def test_options_of_call_override_those_of_module() -> None:
    lm = FakeLM([GOOD, GOOD])
    predict = Predict(Rate, lm=lm, temperature=0.5, top_p=0.9)
    predict(review="x", config={"temperature": 1.0, "seed": 7})
    predict(review="x")
    assert lm.requests[0].options == {"temperature": 1.0, "top_p": 0.9, "seed": 7}
    assert lm.requests[1].options == {"temperature": 0.5, "top_p": 0.9}


def test_call_takes_demos_signature_and_predicted_text() -> None:
    lm = FakeLM([GOOD, {"summary": "s"}, GOOD])
    predict = Predict(Rate, lm=lm)
    predict.demos = [{"review": "old demo", "stars": 1, "why": "w"}]
    predict(review="x", demos=[{"review": "new demo", "stars": 2, "why": "w"}])
    shown = "".join(message.text for message in lm.requests[0].messages)
    assert "new demo" in shown
    assert "old demo" not in shown
    assert predict(signature="text -> summary", text="t", demos=[]).summary == "s"
    predict(review="x", prediction={"type": "content", "content": "c"})
    assert lm.requests[2].options["prediction"] == {"type": "content", "content": "c"}
    assert predict.signature is Rate


def test_next_call_uses_changed_instructions_and_adapter() -> None:
    lm = FakeLM(lambda request: GOOD)
    predict = Predict(Rate, lm=lm)
    predict(review="x")
    predict.signature = predict.signature.with_instructions("Be severe.")
    predict(review="x")
    assert "Be severe." in lm.requests[1].messages[0].text
    with context(adapter=ChatAdapter(types="schema")):
        predict(review="x")
    assert lm.requests[2].messages[0] != lm.requests[1].messages[0]
    predict.signature.instructions = "Be mild."
    predict(review="x")
    assert "Be mild." in lm.requests[3].messages[0].text


# --- answers -------------------------------------------------------------------------------------------


async def test_call_makes_one_request_and_prediction_has_its_usage() -> None:
    lm = Script([GOOD], usage=Usage(input_tokens=10, output_tokens=2))
    prediction = await ask(Predict(Rate), lm, review="x")
    assert len(lm.requests) == 1
    assert [attempt.purpose for attempt in prediction.attempts] == ["ask"]
    assert prediction.usage == Usage(input_tokens=10, output_tokens=2)
    assert (prediction.mode, prediction.repairs, prediction.warnings) == ("prompt", (), ())
    assert prediction.choice.text == prediction.response.choices[0].text


FAILURES: list[tuple[Any, type[Exception]]] = [
    ("no fields at all", AdapterParseError),
    (Choice(text=""), EmptyResponse),
    (Response(), EmptyResponse),
    (Choice(text="[[ ## stars ## ]]\n3", finish_reason="length"), OutputTruncated),
    (Choice(text="[[ ## stars ## ]]\n3", finish_reason="content_filter"), ContentFiltered),
    (Choice(finish_reason="error"), MalformedToolCall),
    (Choice(refusal="I would rather not"), Refused),
    (Choice(text="[[ ## stars ## ]]\n3\n\n[[ ## why ## ]]\nw", refusal="I would rather not"), Refused),
    (LMServerError("overloaded"), LMServerError),
]


@pytest.mark.parametrize(("answer", "error"), FAILURES)
async def test_unusable_answer_raises_specific_error_after_one_request(answer: Any, error: type[Exception]) -> None:
    lm = FakeLM([answer] * 4)
    predict = Predict(Rate, lm=lm)
    with pytest.raises(error) as called:
        predict(review="x")
    assert len(lm.requests) == 1
    if isinstance(called.value, ModelError):
        assert len(called.value.attempts) == 1
    with pytest.raises(error) as awaited:
        await predict.acall(review="x")
    with pytest.raises(error) as streamed:
        list(predict.stream(review="x"))
    with pytest.raises(error) as streamed_awaited:
        [event async for event in predict.astream(review="x")]
    raised = [caught.value for caught in (called, awaited, streamed, streamed_awaited)]
    assert [(type(one), str(one)) for one in raised] == [(error, str(raised[0]))] * 4


async def test_reask_sends_errors_of_answer_and_is_counted() -> None:
    lm = Script([{"stars": 0, "why": "w"}, {"stars": "none", "why": "w"}, GOOD], usage=Usage(input_tokens=1))
    prediction = await ask(Predict(Rate, max_reasks=2), lm, review="x")
    assert prediction.stars == 3
    assert [attempt.purpose for attempt in prediction.attempts] == ["ask", "repair", "repair"]
    assert prediction.usage.input_tokens == 3
    assert "stars" in lm.requests[1].messages[-1].text


HUGE = "x" * 100_000


@pytest.mark.parametrize(
    "bad",
    [HUGE, f"[[ ## stars ## ]]\nmany\n\n[[ ## why ## ]]\n{HUGE}", Choice(f'{{"stars": "many", "why": "{HUGE}"}}')],
    ids=["no fields", "a long field", "JSON"],
)
async def test_reask_sends_only_the_last_failure_shortened(bad: Any) -> None:
    lm = Script([{"stars": 0, "why": "first"}, bad, GOOD, GOOD])
    await ask(Predict(Rate, max_reasks=2), lm, review="x")
    first, second, third = lm.requests[:3]
    assert [len(request.messages) - len(first.messages) for request in (second, third)] == [2, 2]
    text = "".join(message.text for message in third.messages)
    assert "first" not in text
    assert len(text) < 20_000
    if bad is not HUGE:
        assert "many" in text


async def test_reask_of_a_call_shortens_its_arguments() -> None:
    def double(n: int) -> int:
        return 2 * n

    calls = [ToolCall("a", "double", {"n": HUGE}), ToolCall("b", "double", {"n": 1})]
    lm = Script([calls, calls[1]])
    signature = "q, tools: list[Tool] -> calls: ToolCalls"
    result = await ask(Predict(signature, max_reasks=1), lm, q="?", tools=[double])
    assert result.calls[0].arguments == {"n": 1}
    asked, results = lm.requests[1].messages[-2:]
    assert len(asked.tool_calls[0].arguments_text) < 10_000
    assert [result.id for result in results.tool_results] == ["a", "b"]


async def test_last_error_has_all_attempts_when_reasks_are_used() -> None:
    lm = FakeLM(["nonsense", "nonsense", "nonsense"])
    with pytest.raises(AdapterParseError) as caught:
        Predict(Rate, lm=lm)(review="x", config={"max_reasks": 1})
    assert len(lm.requests) == 2
    assert [attempt.purpose for attempt in caught.value.attempts] == ["ask", "repair"]
    assert "max_reasks" not in lm.requests[0].options


@pytest.mark.parametrize("answer", [Choice(text="[[ ## stars", finish_reason="length"), Choice(refusal="no")])
def test_truncated_or_refused_answer_is_never_reasked(answer: Choice) -> None:
    lm = FakeLM([answer, GOOD])
    with pytest.raises((OutputTruncated, Refused)):
        Predict(Rate, lm=lm, max_reasks=3)(review="x")
    assert len(lm.requests) == 1


async def test_candidates_are_completions_of_the_prediction() -> None:
    lm = Script([GOOD, {"stars": 4, "why": "good"}])
    prediction = await ask(Predict(Rate), lm, review="x", config={"n": 2})
    assert prediction.completions.stars == [3, 4]
    assert prediction.stars == 3
    assert lm.requests[0].options == {"n": 2}


def test_unreadable_candidate_is_omitted_with_warning() -> None:
    lm = FakeLM(["nonsense", GOOD])
    prediction = Predict(Rate, lm=lm)(review="x", config={"n": 2})
    assert (prediction.stars, prediction.completions.stars) == (3, [3])
    assert prediction.warnings[0].feature == "choices"
    assert prediction.choice is prediction.response.choices[1]


async def test_second_request_of_two_step_adapter_is_counted() -> None:
    extractor = FakeLM(lambda request: GOOD, model="extractor", usage=Usage(input_tokens=1))
    with context(adapter=TwoStepAdapter(extractor)):
        prediction = await ask(Predict(Rate), Script(["Three stars, so so."], usage=Usage(input_tokens=5)), review="x")
    assert prediction.stars == 3
    assert [(attempt.purpose, attempt.model) for attempt in prediction.attempts] == [
        ("ask", "fake"),
        ("extract", "extractor"),
    ]
    assert prediction.usage.input_tokens == 6


def test_prediction_explains_missing_output() -> None:
    signature = Signature("question, tools: list[Tool] -> answer, calls: ToolCalls")
    prediction = Predict(signature, lm=FakeLM([ToolCall("c", "f", {})]))(question="?", tools=[explode])
    with pytest.raises(AttributeError, match="called tools instead"):
        _ = prediction.answer


# --- tools are offered, never run ------------------------------------------------------------------------


def explode(n: int) -> int:
    raise AssertionError("a tool was run")


async def explode_later(n: int) -> int:
    raise AssertionError("a tool was run")


TOOLS = [
    [explode, explode_later],
    {"explode": explode, "explode_later": Tool(explode_later)},
    (Tool(explode), Tool(explode_later)),
]
WRITTEN = 'Sure.\n\n~~~tool_call\n{"name": "explode", "arguments": {"n": 1}}\n~~~'
CALLS: list[tuple[Any, Capabilities]] = [
    (ToolCall("c", "explode", {"n": 1}), NATIVE),
    ([ToolCall("c", "explode", {"n": 1}), ToolCall("d", "explode_later", {"n": 1})], NATIVE),
    (WRITTEN, NATIVE),
    (WRITTEN, TEXT),
]


@pytest.mark.parametrize("tools", TOOLS)
@pytest.mark.parametrize(("answer", "capabilities"), CALLS)
async def test_predict_returns_tool_calls_without_running_tools(
    tools: Any, answer: Any, capabilities: Capabilities
) -> None:
    lm = Script([answer], capabilities=capabilities)
    prediction = await ask(Predict("question, tools: list[Tool] -> calls: ToolCalls"), lm, question="?", tools=tools)
    assert isinstance(prediction.calls, ToolCalls)
    assert prediction.calls[0].name == "explode"
    assert prediction.calls[0].arguments == {"n": 1}
    assert bool(lm.requests[0].tools) is capabilities.native_tools


@pytest.mark.parametrize("adapter", [ChatAdapter(), JSONAdapter()])
def test_input_reader_converts_functions_to_tools_once(adapter: Any) -> None:
    lm = FakeLM(lambda request: ToolCall("c", "explode", {"n": 1}))
    predict = Predict("question, tools: list[Tool] -> calls: ToolCalls", lm=lm)
    with context(adapter=adapter):
        for _ in range(2):
            predict(question="?", tools=[explode])
    assert lm.requests[0].tools[0] is lm.requests[1].tools[0]


def test_predict_converts_each_function_bound_method_and_dict_entry_once() -> None:
    class Shop:
        def find(self, name: str) -> str:
            raise AssertionError("predictors run no tools")

    lm, shop = FakeLM(lambda request: ToolCall("c", "find", {"name": "n"})), Shop()
    predict = Predict("question, tools: list[Tool] -> calls: ToolCalls", lm=lm)
    for _ in range(2):
        for tools in ([shop.find], {"seek": shop.find}, {"look": shop.find}, [explode, shop.find]):
            predict(question="?", tools=tools)
    first, again = lm.requests[:4], lm.requests[4:]
    assert [request.tools[0]["function"]["name"] for request in first] == ["find", "seek", "look", "explode"]
    assert all(one.tools is other.tools for one, other in zip(first, again, strict=True))
    predict(question="?", tools=[Shop().find])
    assert lm.requests[-1].tools is not first[0].tools


def test_predict_uses_tools_of_a_list_changed_in_place() -> None:
    lm, tools = FakeLM(lambda request: ToolCall("c", "explode", {"n": 1})), [Tool(explode)]
    predict = Predict("question, tools: list[Tool] -> calls: ToolCalls", lm=lm)
    for name in ("explode", "other", "third"):
        tools[0] = Tool(explode, name=name)
        predict(question="?", tools=tools)
    tools.append(Tool(explode))
    predict(question="?", tools=tools)
    names = [[spec["function"]["name"] for spec in request.tools] for request in lm.requests]
    assert names == [["explode"], ["other"], ["third"], ["third", "explode"]]


def test_input_reader_keeps_tools_of_two_threads_separate() -> None:
    class Shared(InputReader):
        """Each read of the attribute finds the tools of another thread."""

        @property
        def _known_tools(self) -> Any:
            looks.append(None)
            given = mine if len(looks) % 2 else theirs
            return (_KnownTools(given, (), tuple(map(Tool, given))),)

        @_known_tools.setter
        def _known_tools(self, value: Any) -> None: ...

    def add(a: int) -> int:
        return a

    looks, mine, theirs = list[None](), (explode,), (add,)
    read = Shared(Signature("question, tools: list[Tool] -> calls: ToolCalls").spec).read
    assert [tool.name for tool in read("Predict", {"question": "?", "tools": mine})["tools"]] == ["explode"]


def test_call_with_wrong_arguments_has_error_and_is_reasked_on_request() -> None:
    bad, good = ToolCall.read("c", "explode", '{"n": '), ToolCall("c", "explode", {"n": 1})
    signature = "question, tools: list[Tool] -> calls: ToolCalls"
    handed = Predict(signature, lm=FakeLM([bad]))(question="?", tools=[explode])
    assert handed.calls[0].error.code == "malformed_json"
    lm = FakeLM([bad, good])
    assert Predict(signature, lm=lm, max_reasks=1)(question="?", tools=[explode]).calls[0].arguments == {"n": 1}
    assert lm.requests[1].messages[-1].tool_results[0].is_error


def test_generated_ids_of_text_calls_differ_from_those_of_history() -> None:
    text = '~~~tool_call\n{"name": "explode", "arguments": {"n": 1}}\n~~~'
    history = History([{"question": "old", "calls": ToolCalls([ToolCall("call_0", "explode", {"n": 1})])}])
    predict = Predict("question, history: History, tools: list[Tool] -> calls: ToolCalls")
    predict.lm = FakeLM([text], capabilities=TEXT)
    assert predict(question="?", history=history, tools=[explode]).calls[0].id == "call_1"


def test_conversation_continues_without_new_inputs() -> None:
    lm = FakeLM([{"answer": "a"}])
    Predict("question, history: History -> answer", lm=lm)(history=History([{"question": "said before"}]))
    assert [message.role for message in lm.requests[0].messages] == ["system", "user"]
    with pytest.raises(InputError, match="'question'"):
        Predict("question, history: History -> answer", lm=lm)(history=History())


# --- traces ----------------------------------------------------------------------------------------------


async def test_trace_of_settings_is_filled_and_bounded() -> None:
    predict = Predict(Rate, lm=FakeLM(lambda request: GOOD))
    predict(review="before")
    assert settings.trace is None
    trace: list[Any] = []
    with context(trace=trace, max_trace_size=2):
        first = predict(review="one")
        assert trace == [(predict, {"review": "one", "scale": 5}, first)]
        await predict.acall(review="two")
        predict(review="three")
    assert [entry[1]["review"] for entry in trace] == ["two", "three"]


def test_reset_removes_learned_state_and_keeps_signature() -> None:
    predict = Predict(Rate, lm=FakeLM([GOOD]), temperature=0.5)
    predict.demos, predict.train, predict.traces = [{}], [{}], [{}]
    predict.reset()
    assert (predict.demos, predict.train, predict.traces, predict.lm) == ([], [], [], None)
    assert (predict.signature, predict.config) == (Rate, {"temperature": 0.5})


# --- chain of thought --------------------------------------------------------------------------------------


class Place(pydantic.BaseModel):
    city: str
    kind: Literal["capital", "town"]


async def test_chain_of_thought_adds_reasoning_as_first_output() -> None:
    lm = Script([{"reasoning": "I know it.", "place": {"city": "Paris", "kind": "capital"}}])
    think = ChainOfThought(Signature("question -> place: Place"))
    prediction = await ask(think, lm, question="?")
    assert list(prediction.keys()) == ["reasoning", "place"]
    assert isinstance(prediction.reasoning, str)
    assert prediction.place == Place(city="Paris", kind="capital")
    assert [name for name, _ in think.named_predictors()] == ["predict"]


def test_chain_of_thought_keeps_reasoning_of_the_signature() -> None:
    class Own(Signature):
        """Answer."""

        question: str = InputField()
        answer: str = OutputField()
        reasoning: list[str] = OutputField(desc="the steps")

    assert ChainOfThought(Own).predict.signature is Own


def test_chain_of_thought_uses_native_reasoning_of_model() -> None:
    answer = Choice(text="[[ ## answer ## ]]\n4", reasoning="two and two")
    lm = FakeLM([answer], capabilities=Capabilities(reasoning=True), reasoning="low")
    prediction = ChainOfThought("question -> answer")(question="2+2?", lm=lm)
    assert prediction.reasoning == "two and two"
    assert isinstance(prediction.reasoning, Reasoning)
    assert "reasoning" not in lm.requests[0].messages[0].text


def test_chain_of_thought_takes_another_reasoning_field() -> None:
    think = ChainOfThought("question -> answer", OutputField(desc="the proof"), str)
    spec = think.predict.signature.spec.outputs[0]
    assert (spec.name, spec.description, spec.annotation) == ("reasoning", "the proof", str)


def test_chain_of_thought_passes_options_to_its_predictor() -> None:
    lm = FakeLM(["nonsense", {"reasoning": "r", "answer": "a"}])
    think = ChainOfThought("question -> answer", lm=lm, max_reasks=1, temperature=0.5)
    assert think(question="?").answer == "a"
    assert lm.requests[1].options == {"temperature": 0.5}


def test_predict_takes_model_without_base_class() -> None:
    class Echo:
        model = "echo"
        capabilities = Capabilities()

        def respond(self, request: Request) -> Response:
            return Response((Choice(text=f"[[ ## answer ## ]]\n{len(request.messages)}"),))

        async def arespond(self, request: Request) -> Response:
            return self.respond(request)

    prediction = Predict("question -> answer", lm=Echo())(question="?")
    assert isinstance(prediction, Prediction)
    assert prediction.answer == "2"


WRONG: list[tuple[str, Callable[[], Any], type[Exception], str]] = [
    (
        "a class as model",
        lambda: Predict("q -> a", lm=FakeLM)(q="?"),
        ConfigurationError,
        r"the class FakeLM. Write FakeLM\(",
    ),
    ("a model as callbacks", lambda: Predict("q -> a", FakeLM()), ConfigurationError, "a model is passed as lm="),
    (
        "demos that are text",
        lambda: answering()(q="?", demos="abc"),
        InputError,
        "Example or a dict of fields, not str",
    ),
    ("demos that are one demo", lambda: answering()(q="?", demos={"q": "a"}), InputError, "Example or a dict"),
    (
        "options that are text",
        lambda: answering()(q="?", config="abc"),
        InputError,
        "config is a dict of request options",
    ),
    ("the old name", lambda: answering(max_repairs=1), ConfigurationError, "max_repairs is now max_reasks"),
    ("the old name of a call", lambda: answering()(q="?", config={"max_repairs": 1}), ConfigurationError, "max_reasks"),
    ("re-asks that are text", lambda: answering(max_reasks="1")(q="?"), ConfigurationError, "max_reasks is a number"),
    ("re-asks of a call", lambda: answering()(q="?", config={"max_reasks": -1}), ConfigurationError, "max_reasks"),
    ("messages that are text", lambda: FakeLM(["x"])(messages="hi"), InputError, r'Use lm\("text"\)'),
]


def answering(**options: Any) -> Any:
    return Predict("q -> a", lm=FakeLM([{"a": "4"}]), **options)


@pytest.mark.parametrize(("use", "error", "text"), [case[1:] for case in WRONG], ids=[case[0] for case in WRONG])
def test_misuse_raises_error_with_correction(use: Callable[[], Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        use()


# --- names of options --------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [Predict, ChainOfThought, ReAct])
def test_options_of_requests_are_checked_at_construction_where_the_model_is_known(make: Any) -> None:
    wrong = r"'temprature' \(making \w+\)\. Did you mean temperature"
    with pytest.raises(UnsupportedOption, match=wrong):
        make("q -> a", lm=FakeLM(), temprature=0.5)
    with context(lm=LM("openai/gpt-4.1")), pytest.raises(UnsupportedOption, match=wrong):
        make("q -> a", temprature=0.5)
    with pytest.raises(UnsupportedOption, match="openai has no option 'num_ctx'"):
        make("q -> a", lm=LM("openai/gpt-4.1"), num_ctx=4096)


async def test_options_of_requests_are_checked_at_the_first_call_where_the_model_was_unknown() -> None:
    predict = Predict("q -> a", temprature=0.5)
    predict.set_lm(FakeLM(["x"]))
    with pytest.raises(UnsupportedOption, match="temprature"):
        predict(q="?")
    with pytest.raises(UnsupportedOption, match="temprature"):
        await predict.acall(q="?")
    with pytest.raises(UnsupportedOption, match="nonsense"):
        list(Predict("q -> a").stream(q="?", lm=FakeLM(["x"]), config={"nonsense": 1}))


def test_options_of_another_model_than_that_of_the_settings_are_accepted() -> None:
    with context(lm=LM("openai/gpt-4.1")):
        predict = Predict("q -> a", num_ctx=4096)
    predict.set_lm(FakeLM([{"a": "x"}]))
    assert predict(q="?").a == "x"


def test_options_of_a_model_of_the_user_are_not_checked() -> None:
    class Own(BaseLM):
        def forward(self, request: Request) -> str:
            return f"[[ ## a ## ]]\n{request.options['speed']}"

    assert Predict("q -> a", lm=Own("own"), speed="fast")(q="?").a == "fast"


@pytest.mark.parametrize("reasks", [-1, "2", True])
def test_number_of_reasks_is_checked_at_construction(reasks: Any) -> None:
    with pytest.raises(ConfigurationError, match="max_reasks is a number of re-asks"):
        Predict("q -> a", max_reasks=reasks)


def test_demos_as_an_option_are_refused_with_their_attribute() -> None:
    with pytest.raises(
        ConfigurationError, match=r"demos are an attribute .* \(making Predict\)\. Write module\.demos = "
    ):
        Predict("question -> answer", demos=[])


@pytest.mark.parametrize("drive", ["call", "await", "stream", "nested"])
async def test_adapter_of_a_predictor_takes_the_place_of_the_setting(drive: str) -> None:
    lm = FakeLM([{"reasoning": "Add.", "answer": "4"}], adapter=JSONAdapter())
    program: Any = (ChainOfThought if drive == "nested" else Predict)("question -> answer", lm=lm)
    (predict,) = program.predictors()
    predict.adapter = JSONAdapter()
    with context(adapter=ChatAdapter()):
        if drive == "await":
            await program.acall(question="2+2?")
        elif drive == "stream":
            list(program.stream(question="2+2?"))
        else:
            program(question="2+2?")
    assert "JSON object" in lm.requests[0].messages[0].text
    assert "adapter" not in predict.dump_state()
