"""Calls that a script of DSPy makes itself: of adapters, of tool calls, of functions over many items."""

from __future__ import annotations

import pickle
import threading
from typing import Any, Literal

import pytest

import sigwire
import sigwire.dspy as dspy
from sigwire.dspy.adapters import parse_value
from sigwire.dspy.primitives import set_attribute_by_name
from sigwire.dspy.signatures import get_dspy_field_type
from sigwire.dspy.tools import convert_input_schema_to_tool_args
from sigwire.dspy.utils.dummies import DummyVectorizer, dummy_rm
from sigwire.dspy.utils.parallelizer import ParallelExecutor

QA = dspy.make_signature("question -> answer")


def add(a: int, b: int = 0) -> int:
    return a + b


# --- adapters


@pytest.mark.parametrize("name", ["BAMLAdapter", "ChatAdapter", "JSONAdapter", "XMLAdapter"])
def test_adapter_called_with_a_model_returns_the_fields_of_each_choice(name: str) -> None:
    adapter = getattr(dspy, name)()
    lm = dspy.DummyLM([{"answer": "a"}, {"answer": "b"}], adapter=adapter)
    assert adapter(lm, {"n": 2}, QA, [], {"question": "?"}) == [{"answer": "a"}, {"answer": "b"}]


async def test_adapter_awaited_with_a_model_sends_demos_and_options() -> None:
    lm = dspy.DummyLM([{"answer": "b"}])
    demos = [{"question": "first", "answer": "a"}]
    assert await dspy.ChatAdapter().acall(lm, {"temperature": 0.5}, QA, demos, {"question": "?"}) == [{"answer": "b"}]
    assert lm.history[-1]["kwargs"]["temperature"] == 0.5
    assert [message["role"] for message in lm.history[-1]["messages"]] == ["system", "user", "assistant", "user"]


class Answering(dspy.BaseLM):
    """A model with tools that gives one message, and keeps what it was sent."""

    supports_function_calling = True

    def __init__(self, **message: Any) -> None:
        super().__init__("answering", cache=False)
        self.message, self.sent = message, {}

    def forward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Any:
        self.sent = {"messages": messages, **kwargs}
        return {"choices": [{"message": self.message, "finish_reason": "stop"}]}


class Acting(dspy.Signature):
    question: str = dspy.InputField()
    tools: list[dspy.Tool] = dspy.InputField()
    answer: str = dspy.OutputField()
    calls: dspy.ToolCalls = dspy.OutputField()


ASKED = {"question": "?", "tools": [dspy.Tool(add)]}
CALL = {"id": "c", "type": "function", "function": {"name": "add", "arguments": '{"a": 1,}'}}


@pytest.mark.parametrize("name", ["ChatAdapter", "JSONAdapter", "XMLAdapter"])
async def test_adapter_gives_none_for_outputs_that_the_answer_lacks(name: str) -> None:
    adapter = getattr(dspy, name)(parallel_tool_calls=False)
    lm = Answering(content=None, tool_calls=[CALL])
    for fields in (adapter(lm, {}, Acting, [], ASKED), await adapter.acall(lm, {}, Acting, [], ASKED)):
        calls = dspy.ToolCalls(tool_calls=[dspy.ToolCalls.ToolCall(id="c", name="add", args={"a": 1})])
        assert fields == [{"answer": None, "calls": calls}]
    assert (lm.sent["tool_choice"], lm.sent["parallel_tool_calls"]) == ("auto", False)
    text = {
        "ChatAdapter": "[[ ## answer ## ]]\n3",
        "JSONAdapter": '{"answer": "3"}',
        "XMLAdapter": "<answer>3</answer>",
    }
    assert adapter(Answering(content=text[name]), {}, Acting, [], ASKED) == [{"answer": "3", "calls": None}]


async def test_two_step_adapter_makes_its_second_request() -> None:
    main, second = Answering(content="It is 4."), dspy.DummyLM([{"answer": "4"}] * 3)
    adapter = dspy.TwoStepAdapter(second)
    assert adapter.parse(QA, "It is 4.") == {"answer": "4"}
    assert adapter(main, {}, QA, [], {"question": "?"}) == [{"answer": "4"}]
    assert await adapter.acall(main, {}, QA, [], {"question": "?"}) == [{"answer": "4"}]
    assert ["It is 4." in call["messages"][-1]["content"] for call in second.history] == [True] * 3


def test_error_of_the_second_request_names_the_adapter_and_the_first_answer() -> None:
    adapter = dspy.TwoStepAdapter(Answering(content="no fields"))
    with pytest.raises(dspy.AdapterParseError, match=r"extraction model.*answer: the field is missing") as caught:
        adapter.parse(QA, "It is 4.")
    assert (caught.value.adapter_name, caught.value.signature) == ("TwoStepAdapter", QA)
    assert (caught.value.lm_response, caught.value.__cause__.lm_response) == ("It is 4.", "no fields")


def test_history_replays_calls_with_the_results_that_they_hold() -> None:
    class Conversation(Acting):
        history: dspy.History = dspy.InputField()

    calls = dspy.ToolCalls.from_dict_list([{"id": name, "name": "add", "args": {"a": 1}} for name in "ab"])
    results = dspy.ToolCallResults.from_tool_calls_and_values(calls, [{"sum": 1}, "no"], [False, True])
    turn = {"question": "1?", "calls": calls.model_copy(update={"tool_call_results": results})}
    lm = Answering(content="[[ ## answer ## ]]\n3")
    dspy.ChatAdapter()(lm, {}, Conversation, [], {**ASKED, "history": dspy.History(messages=[turn])})
    _, _, called, *results_sent, _ = lm.sent["messages"]
    assert [call["id"] for call in called["tool_calls"]] == ["a", "b"]
    assert [(message["tool_call_id"], message["content"]) for message in results_sent] == [
        ("a", '{"sum":1}'),
        ("b", "no"),
    ]
    as_text = dspy.ChatAdapter(use_native_function_calling=False)
    messages = as_text.format(Conversation, [], {**ASKED, "history": dspy.History(messages=[turn])})
    assert [message["role"] for message in messages] == ["system", "user", "assistant", "user", "user"]
    assert '{"sum"' in messages[3]["content"]


class Polite(dspy.ChatAdapter):
    def __call__(self, lm: Any, lm_kwargs: Any, signature: Any, demos: Any, inputs: Any) -> Any:  # type: ignore[override]
        return super().__call__(lm, lm_kwargs, signature.with_instructions("Be polite."), demos, inputs)


class Awaited(dspy.ChatAdapter):
    async def acall(self, lm: Any, lm_kwargs: Any, signature: Any, demos: Any, inputs: Any) -> Any:
        return await super().acall(lm, {**lm_kwargs, "temperature": 0.25}, signature, demos, inputs)


async def test_predict_uses_the_call_that_a_subclass_of_an_adapter_overrides() -> None:
    lm = dspy.DummyLM([{"answer": "yes"}] * 3)
    predict = dspy.Predict(QA)
    with dspy.context(lm=lm, adapter=Polite()):
        assert predict(question="?").answer == "yes"
        assert (await predict.acall(question="?")).answer == "yes"
    assert all("Be polite." in call["messages"][0]["content"] for call in lm.history)
    with dspy.context(lm=lm, adapter=Awaited()):
        assert predict(question="?").answer == "yes"
    assert lm.history[-1]["kwargs"]["temperature"] == 0.25


def test_an_overridden_call_gets_the_demos_and_options_of_the_predictor() -> None:
    seen: list[Any] = []

    class Watching(dspy.ChatAdapter):
        def __call__(self, lm: Any, lm_kwargs: Any, signature: Any, demos: Any, inputs: Any) -> Any:  # type: ignore[override]
            seen.append((lm_kwargs, demos, inputs))
            return [{"answer": "made"}]

    predict = dspy.Predict(QA, temperature=0.5)
    predict.demos = [{"question": "first", "answer": "a"}]
    with dspy.context(lm=dspy.DummyLM([]), adapter=Watching()):
        assert predict(question="?", config={"max_tokens": 7}).answer == "made"
    assert seen == [({"temperature": 0.5, "max_tokens": 7}, predict.demos, {"question": "?"})]


def test_parse_value_reads_text_as_an_answer_is_read() -> None:
    assert parse_value(3, str) == "3"
    assert parse_value(["1"], list[int]) == [1]
    assert parse_value('{"a": 1}', dict[str, int]) == {"a": 1}
    with pytest.raises(sigwire.AdapterParseError):
        parse_value("maybe", bool)


# --- calls of tools


def test_tool_call_executes_the_function_of_its_name() -> None:
    call = dspy.ToolCalls.ToolCall(name="add", args={"a": 1, "b": 2})
    assert call.execute() == call.execute([dspy.Tool(add)]) == call.execute({"add": add}) == 3
    with pytest.raises(sigwire.InputError, match=r"'other' is not found .*functions="):
        dspy.ToolCalls.ToolCall(name="other", args={}).execute([])


def test_tool_call_raises_the_error_of_its_function_as_the_cause() -> None:
    call = dspy.ToolCalls.ToolCall(name="add", args={"c": 1})
    with pytest.raises(RuntimeError, match="Error executing tool 'add'") as caught:
        call.execute({"add": add})
    assert isinstance(caught.value.__cause__, TypeError)


def test_tool_call_of_the_door_equals_that_of_the_core_and_is_pickled() -> None:
    call = dspy.ToolCalls.ToolCall(name="add", args={"a": 1}, id="x")
    plain = sigwire.ToolCall("x", "add", {"a": 1})
    assert call == plain
    assert plain == call
    assert pickle.loads(pickle.dumps(call)) == call
    assert dspy.ToolCalls.ToolCall(name="add").id is None
    assert call.format() == {"name": "add", "args": {"a": 1}}
    assert "name='add'" in repr(call)


@pytest.mark.parametrize(
    "value",
    [
        {"name": "add", "args": {"a": 1}},
        [{"name": "add", "arguments": '{"a": 1}'}],
        {"tool_calls": [{"function": {"name": "add", "arguments": {"a": 1}}}]},
        dspy.ToolCalls([{"name": "add", "args": {"a": 1}}]),
    ],
)
def test_tool_calls_are_validated_from_the_forms_of_dspy(value: object) -> None:
    (call,) = dspy.ToolCalls.model_validate(value).tool_calls
    assert isinstance(call, dspy.ToolCalls.ToolCall)
    assert (call.name, call.args) == ("add", {"a": 1})


@pytest.mark.parametrize("value", [{"some": "thing"}, [{"some": "thing"}]])
def test_tool_calls_without_a_name_are_refused(value: object) -> None:
    with pytest.raises(sigwire.InputError):
        dspy.ToolCalls.model_validate(value)


def test_results_of_tool_calls_have_the_ids_and_errors_of_their_calls() -> None:
    calls = dspy.ToolCalls.from_dict_list([{"name": "add", "args": {}}, {"name": "sub", "args": {}}])
    results = dspy.ToolCallResults.from_tool_calls_and_values(calls, [1, "bad"], [False, True]).tool_call_results
    assert [(result.call_id, result.value, result.is_error) for result in results] == [
        ("call_0", 1, False),
        ("call_1", "bad", True),
    ]
    for values, errors in (([1], None), ([1, 2], [True])):
        with pytest.raises(sigwire.InputError, match="must have the same length"):
            dspy.ToolCallResults.from_tool_calls_and_values(calls, values, errors)


def test_results_of_tool_calls_are_validated_from_a_list_and_from_one_result() -> None:
    one = {"name": "add", "value": 1}
    made = dspy.ToolCallResults.model_validate([one])
    assert made == dspy.ToolCallResults.model_validate(one) == dspy.ToolCallResults.model_validate(made)
    with pytest.raises(sigwire.InputError, match="a name and a value"):
        dspy.ToolCallResults.model_validate([{"some": "thing"}])


def test_tool_has_the_text_and_the_forms_of_dspy() -> None:
    tool = dspy.Tool(add, desc="Add.")
    assert str(tool).startswith("add, whose description is <desc>Add.</desc>. It takes arguments {'a': ")
    assert tool.format_as_litellm_function_call(model_type="responses")["name"] == "add"
    assert tool.format_as_litellm_function_call("chat") == tool.spec


def test_schema_is_split_into_arguments_types_and_texts() -> None:
    schema = {"properties": {"n": {"type": "integer", "description": "A number."}, "x": {}}, "required": ["n"]}
    args, types, texts = convert_input_schema_to_tool_args(schema)
    assert (args["n"]["type"], types, texts["n"]) == ("integer", {"n": int, "x": Any}, "A number. (Required)")


# --- functions over many items


def test_parallel_executor_keeps_the_order_and_the_settings() -> None:
    with dspy.context(rm=len):
        assert ParallelExecutor(num_threads=3).execute(lambda text: dspy.settings.rm(text), ["a", "bb"]) == [1, 2]


def test_parallel_executor_counts_failures_and_stops_at_the_limit() -> None:
    def checked(n: int) -> int:
        if n == 2:
            raise ValueError("two")
        return n

    executor = ParallelExecutor(num_threads=1, max_errors=2)
    with pytest.warns(UserWarning, match="Item 1 failed .* ValueError: two"):
        assert executor.execute(checked, [1, 2, 3]) == [1, None, 3]
    assert (executor.failed_indices, str(executor.exceptions_map[1])) == ([1], "two")
    done: list[int] = []
    with pytest.warns(UserWarning, match="Item 1"), pytest.raises(ValueError, match="two"):
        ParallelExecutor(num_threads=1, max_errors=1).execute(lambda n: done.append(checked(n)), [1, 2, 3])
    assert len(done) == 1


async def test_asyncify_runs_in_a_thread_with_the_settings_of_the_caller() -> None:
    with dspy.context(num_threads=3, async_max_workers=1):
        seen = await dspy.asyncify(lambda: (dspy.settings.num_threads, threading.current_thread()))()
    assert seen[0] == 3
    assert seen[1] is not threading.current_thread()


class Double(dspy.Module):
    async def aforward(self, n: int) -> int:
        return 2 * n


async def test_syncify_gives_a_module_a_blocking_form_inside_a_loop() -> None:
    assert dspy.syncify(Double()).forward(n=2) == 4
    around = dspy.syncify(Double(), in_place=False)
    assert around(n=3) == 6
    assert isinstance(around.program, Double)


# --- retrievers


class Passage:
    long_text = "tea"


@pytest.mark.parametrize(
    ("rm", "passages"),
    [
        (lambda query, k: [Passage()] * k, ["tea", "tea"]),
        (lambda query, k: "tea", ["tea"]),
        (lambda query, k: dspy.Prediction(passages=["a", "b"]), ["a", "b"]),
        (dummy_rm(["black tea", "a red car", "teapot"]), ["teapot", "black tea"]),
        (dummy_rm(), []),
    ],
)
def test_retrieve_asks_the_retriever_of_the_settings(rm: Any, passages: list[str]) -> None:
    with dspy.context(rm=rm):
        assert sorted(dspy.Retrieve(k=2)("tea").passages) == sorted(passages)


async def test_retrieve_awaits_a_module_and_passes_the_number_of_the_call() -> None:
    class Store(dspy.Module):
        def forward(self, query: str, k: int) -> list[str]:
            return [query] * k

    with dspy.context(rm=Store()):
        assert (await dspy.Retrieve().acall("tea", k=1)).passages == ["tea"]
    with pytest.raises(sigwire.ConfigurationError, match=r"no retriever .* configure\(rm="):
        dspy.Retrieve()("tea")


def test_vectorizer_is_deterministic_and_fits_an_embedder() -> None:
    vectors = DummyVectorizer(max_length=8)(["tea", "car", "tea"])
    assert vectors.shape == (3, 8)
    assert (vectors[0] == vectors[2]).all()
    examples = [dspy.Example(question=text).with_inputs("question") for text in ("tea", "red car")]
    (nearest,) = dspy.KNN(1, examples, dspy.Embedder(DummyVectorizer()))(question="red car")
    assert nearest.question == "red car"


def test_knn_has_the_vectors_of_its_examples() -> None:
    examples = [dspy.Example(question=text, answer="").with_inputs("question") for text in ("tea", "red car")]
    vectors = dspy.KNN(1, examples, dspy.Embedder(DummyVectorizer())).trainset_vectors
    assert (vectors == DummyVectorizer()(["tea", "red car"])).all()
    with pytest.raises(sigwire.ConfigurationError, match=r"compares words .* vectorizer="):
        _ = dspy.KNN(1, examples).trainset_vectors


def test_parse_value_reads_a_literal_in_the_words_of_its_type() -> None:
    kind = Literal["a", "b"]
    assert [parse_value(text, kind) for text in ("a", "'a'", "Literal[a]", "str[a]")] == ["a"] * 4
    assert parse_value("str[a]", str) == "str[a]"
    with pytest.raises(ValueError):
        parse_value("Literal[c]", kind)


def test_attribute_is_set_by_its_path() -> None:
    program = dspy.Module()
    program.parts = [dspy.Module(), ({"key": dspy.Module()},)]
    for path in ("note", "parts[0].note", "parts[1][0]['key'].note"):
        set_attribute_by_name(program, path, path)
    assert program.note == "note"
    assert program.parts[0].note == "parts[0].note"
    assert program.parts[1][0]["key"].note == "parts[1][0]['key'].note"
    with pytest.raises(sigwire.ConfigurationError, match="ends with no attribute"):
        set_attribute_by_name(program, "parts[0]", 1)


def test_direction_of_a_field_is_read() -> None:
    fields = dspy.Signature("question -> answer").fields
    assert [get_dspy_field_type(field) for field in fields.values()] == ["input", "output"]
    with pytest.raises(ValueError, match="3 does not have a __dspy_field_type"):
        get_dspy_field_type(3)
