"""Language models with DSPy's options: LM, BaseLM, DummyLM."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

import sigwire.dspy as dspy
from sigwire.core.capabilities import Capabilities
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Usage
from sigwire.core.tools.calls import ToolCall, ToolCalls
from sigwire.dspy.lm import LM, BaseLM, DummyLM
from sigwire.errors import ConfigurationError, InputError, StateError, UnsupportedOption
from sigwire.lm import base, client
from sigwire.lm.fake import FakeLM
from sigwire.testing import FakeProvider
from tests.ways import in_every_way

ASK = Request((Message.user("go"),))
CALL = ToolCall("call_0", "add", {"a": 1})


class Echo(BaseLM):
    def forward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Any:
        return {"choices": [{"message": {"content": messages[-1]["content"]}}]}


# --- options -----------------------------------------------------------------------------------------


def test_capabilities_come_from_one_object_or_from_overridden_properties() -> None:
    class Able(Echo):
        @property
        def supports_function_calling(self) -> bool:
            return True

    given = Capabilities(native_tools=True, json_schema=True)
    assert Echo("m").capabilities == Capabilities()
    assert Echo("m", capabilities=given).capabilities is given
    assert Echo("m", capabilities=given).supports_response_schema
    able = Able("m")
    assert able.capabilities.native_tools
    assert able.capabilities is able.capabilities  # plans are cached by it


async def test_base_lm_takes_positional_arguments_in_the_order_of_dspy() -> None:
    lm = Echo("m", "text", 0.5, 100, False, None, 7)
    assert (lm.model_type, lm.kwargs, lm.cache, lm.num_retries) == (
        "text", {"temperature": 0.5, "max_tokens": 100}, False, 7,
    )  # fmt: skip
    assert (lm("hello"), await lm.acall("hello")) == (["hello"], ["hello"])
    assert lm.history[-1]["model_type"] == "text"
    assert lm.supported_params == set()


@pytest.mark.parametrize(
    ("options", "wire"), [({}, "openai"), ({"model_type": "responses"}, "openai-responses")], ids=["chat", "responses"]
)
async def test_model_type_chooses_the_wire_and_rollout_id_is_not_sent(options: dict[str, Any], wire: str) -> None:
    with FakeProvider(["hello"] * 2) as provider:
        lm = LM("openai/gpt-4.1", api_key="any", base_url=provider.url(wire), **options)
        assert lm("hello", rollout_id=1, temperature=0.5) == ["hello"]
        assert await lm.copy(rollout_id=2).acall("hello") == ["hello"]
        assert all("rollout_id" not in json.dumps(recorded.body) for recorded in provider.requests)


def test_model_type_of_another_name_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="model_type='image'"):
        LM("openai/gpt-4.1", model_type="image")


def test_a_copy_takes_another_model_type() -> None:
    lm = LM("openai/gpt-4.1", "responses").copy(model_type="chat")
    assert (lm.model_type, lm.dump_state().get("wire")) == ("chat", None)
    assert lm.copy(model_type="responses").dump_state()["wire"] == "responses"


def test_state_keeps_model_type_and_class_and_loads_through_the_core() -> None:
    lm = LM("openai/gpt-4.1", "responses", 0.5)
    loaded = base.BaseLM.load_state(lm.dump_state())
    assert isinstance(loaded, LM)
    assert (loaded.model_type, loaded.kwargs) == ("responses", lm.kwargs)
    assert type(base.BaseLM.load_state({**lm.dump_state(), "class": "", "model_type": "chat"})) is client.LM


async def test_messages_may_be_in_the_place_of_the_prompt() -> None:
    asked = [{"role": "user", "content": "hi"}]
    assert Echo("m")(asked) == await Echo("m").acall(asked) == ["hi"]
    assert "red" in DummyLM([{"answer": "red"}])(asked)[0]


def test_setting_capabilities_of_an_lm_changes_its_properties() -> None:
    lm = LM("openai/gpt-4.1")
    lm.capabilities = Capabilities(reasoning=True)
    assert (lm.supports_reasoning, lm.supports_function_calling) == (True, False)


# --- reasoning models ------------------------------------------------------------------------------


def test_limit_of_a_reasoning_model_has_its_own_name_in_kwargs_and_is_sent() -> None:
    with FakeProvider(["a", "b", "c"]) as provider:
        lm = LM("openai/o4-mini", max_tokens=30_000, api_key="any", base_url=provider.url("openai"))
        assert lm.kwargs == {"temperature": None, "max_completion_tokens": 30_000}
        lm("one")
        lm("two", max_tokens=20_000)
        lm.copy(max_tokens=40_000)("three")
        limits = [recorded.body["max_completion_tokens"] for recorded in provider.requests]
    assert limits == [30_000, 20_000, 40_000]


def test_limit_of_a_reasoning_model_is_saved_as_max_tokens_and_read_by_both_names() -> None:
    state = LM("azure/gpt-5", max_tokens=20_000).dump_state()
    assert (state["max_tokens"], "max_completion_tokens" in state) == (20_000, False)
    for saved in (
        state,
        {"_dspy_lm_class": "dspy.clients.lm.LM", "model": "azure/gpt-5", "max_completion_tokens": 20_000},
    ):
        loaded: Any = BaseLM.load_state(saved)
        assert loaded.kwargs["max_completion_tokens"] == 20_000
        assert loaded.dump_state() == state


def test_copies_of_a_reasoning_model_name_the_limit_as_their_own_model_does() -> None:
    lm = LM("openai/o3", max_tokens=20_000)
    assert lm.copy(model="openai/gpt-4.1", max_tokens=5).kwargs == {"temperature": None, "max_tokens": 5}
    assert lm.copy(max_tokens=None).kwargs == {"temperature": None, "max_completion_tokens": None}
    both = lm.copy(max_tokens=1, max_completion_tokens=2)
    with pytest.raises(InputError, match="max_tokens was given twice"):
        both("hello")


@pytest.mark.parametrize("options", [{"temperature": 0.2}, {"max_tokens": 500}])
def test_reasoning_model_without_its_room_is_refused(options: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="max_tokens >= 16000 or None"):
        LM("openai/gpt-5.1", **options)
    assert LM("openai/gpt-5-chat", **options).kwargs.items() >= options.items()


def test_training_options_are_attributes_and_the_developer_role_is_saved() -> None:
    lm = LM(
        "openai/gpt-4.1", finetuning_model="m", launch_kwargs={"a": 1}, train_kwargs={"b": 2}, use_developer_role=True
    )
    assert (lm.finetuning_model, lm.launch_kwargs, lm.train_kwargs) == ("m", {"a": 1}, {"b": 2})
    loaded: Any = LM.load_state(lm.dump_state())
    assert loaded.use_developer_role
    assert loaded.dump_state() == lm.dump_state()


def test_a_state_of_a_foreign_class_is_loaded_if_either_option_of_trust_is_given() -> None:
    state = {"_dspy_lm_class": f"{__name__}.Echo", "model": "m"}
    with pytest.raises(StateError, match="allow_unsafe_lm_state=True"):
        BaseLM.load_state(state)
    assert type(BaseLM.load_state(state, allow_custom_lm_class=True)) is Echo
    assert type(BaseLM.load_state(state, allow_unsafe_lm_state=True)) is Echo


# --- DummyLM -----------------------------------------------------------------------------------------


def test_dummy_lm_answers_that_none_are_left_when_the_list_is_used_up() -> None:
    lm = DummyLM([{"answer": "red"}])
    assert "red" in lm("one")[0]
    assert "No more responses" in lm("two")[0]
    assert lm.model == "dummy"


def test_dummy_lm_makes_calls_of_tool_calls_among_its_fields() -> None:
    (choice,) = DummyLM([{"answer": "red", "calls": ToolCalls([CALL])}], reasoning=True).respond(ASK).choices
    assert (choice.tool_calls, "calls" in choice.text) == ((CALL,), False)
    assert choice.reasoning is not None


def test_dummy_lm_answers_by_substring_of_the_last_message() -> None:
    lm = DummyLM({"sky": {"answer": "blue"}, "grass": {"answer": "green"}})
    assert "green" in lm("the grass")[0]
    assert "No more responses" in lm("the sea")[0]


def test_dummy_lm_repeats_the_demo_whose_inputs_match() -> None:
    lm = DummyLM([{"answer": "scripted"}], follow_examples=True)
    demo = [
        {"role": "user", "content": "[[ ## q ## ]]\nsky"},
        {"role": "assistant", "content": "[[ ## answer ## ]]\nblue"},
    ]
    asked = {"role": "user", "content": "[[ ## q ## ]]\nsky\n\nAnswer with the section [[ ## answer ## ]]."}
    assert lm(messages=[*demo, asked]) == ["[[ ## answer ## ]]\nblue"]
    assert "scripted" in lm(messages=[*demo, {"role": "user", "content": "[[ ## q ## ]]\nsea"}])[0]


def test_dummy_lm_adds_reasoning_and_keeps_the_conversation() -> None:
    lm = DummyLM([{"answer": "red"}], reasoning=True)
    (output,) = lm("one")
    assert output["reasoning_content"]
    messages, outputs = lm.get_convo(0)
    assert (messages, outputs) == ([{"role": "user", "content": "one"}], [output])


def test_cache_is_on_by_default_and_kept_in_the_state() -> None:
    assert (LM("openai/gpt-4.1").cache, LM("openai/gpt-4.1", cache=False).cache) == (True, False)
    assert LM.load_state(LM("openai/gpt-4.1").dump_state()).cache
    assert not LM.load_state(LM("openai/gpt-4.1", cache=False).dump_state()).cache


def test_option_names_are_checked_beside_those_of_dspy() -> None:
    assert LM("openai/gpt-4.1", rollout_id=1).copy(rollout_id=2).kwargs["rollout_id"] == 2
    with pytest.raises(UnsupportedOption, match="Did you mean temperature"):
        LM("openai/gpt-4.1", temprature=1)
    with pytest.raises(UnsupportedOption, match="Did you mean temperature"):
        DummyLM([{"answer": "red"}], temprature=1)
    assert DummyLM([{"answer": "red"}], rollout_id=1).kwargs["rollout_id"] == 1


def test_global_history_has_the_calls_of_all_models_since_it_was_cleared(capsys: pytest.CaptureFixture[str]) -> None:
    from sigwire.dspy.clients.base_lm import GLOBAL_HISTORY

    first, second = dspy.DummyLM([{"answer": "one"}]), dspy.DummyLM([{"answer": "two"}, {"answer": "three"}])
    first("before")
    GLOBAL_HISTORY.clear()
    assert (len(GLOBAL_HISTORY), list(GLOBAL_HISTORY), isinstance(GLOBAL_HISTORY, list)) == (0, [], True)
    for lm, prompt in ((second, "Hi"), (first, "Hello"), (second, "Bye")):
        lm(prompt)
    assert [entry["prompt"] for entry in GLOBAL_HISTORY] == ["Hi", "Hello", "Bye"]
    assert (GLOBAL_HISTORY[-1]["messages"][0]["content"], len(GLOBAL_HISTORY[:2])) == ("Bye", 2)
    with dspy.context(lm=first):
        dspy.inspect_history(n=1)  # of all models
    assert "Bye" in capsys.readouterr().out
    dspy.inspect_history(lm=first)
    assert "Hello" in capsys.readouterr().out
    GLOBAL_HISTORY.clear()
    dspy.inspect_history(5)
    assert capsys.readouterr().out == ""


def test_state_names_the_class_of_the_model_whatever_its_options_are() -> None:
    state = Echo("m", **{"class": "other.module.LM", "model_name": "x"}).dump_state()
    assert (str(state["class"]).rpartition(".")[2], state["model_name"]) == ("Echo", "x")


def test_dummy_lm_answers_with_a_text_of_its_list() -> None:
    assert DummyLM(["As it is.", {"answer": "red"}])("?") == ["As it is."]


@pytest.mark.parametrize("change", [{"temperature": 0.7}, {"max_tokens": 100}, {"temperature": 0.7, "max_tokens": 100}])
@pytest.mark.parametrize("load", [LM.load_state, base.BaseLM.load_state])
def test_copy_of_a_reasoning_model_with_another_limit_is_loaded_from_its_state(
    load: Any, change: dict[str, Any]
) -> None:
    copied = LM("openai/gpt-5-mini", api_key="k").copy(**change)
    loaded = load(copied.dump_state())
    assert (type(loaded), loaded.kwargs) == (LM, {**copied.kwargs})


@pytest.mark.parametrize("state", [3, "openai/gpt-4.1", None, {"model": 3}])
def test_state_of_another_shape_is_refused_in_words(state: Any) -> None:
    for load in (LM.load_state, base.BaseLM.load_state, client.LM.load_state):
        with pytest.raises(StateError, match=r"\(loading its state\)"):
            load(state)


@in_every_way
def test_history_of_a_model_is_complete_and_bounded_by_the_setting(way: Callable[..., Any]) -> None:
    lm = FakeLM(lambda request: {"answer": "4"}, usage=Usage(cost=0.5))
    door = dspy.DummyLM([{"answer": "4"}] * 70)
    predict = dspy.Predict("question -> answer")
    for _ in range(60):
        way(predict, question="?", lm=door)
    assert len(door.history) == 60
    with dspy.context(max_history_size=5):
        way(predict, question="?", lm=door)
    assert len(door.history) == 5
    with dspy.context(max_history_size=100):
        for _ in range(60):
            way(predict, question="?", lm=lm)
    assert sum(entry["cost"] for entry in lm.history) == 30
