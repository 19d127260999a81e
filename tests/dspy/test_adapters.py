"""DSPy's options of the four adapters."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

import pytest
from pydantic import BaseModel

import sigwire.dspy as dspy
from sigwire.core.capabilities import Capabilities
from sigwire.core.tools.calls import ToolCalls
from sigwire.core.tools.tool import Tool
from sigwire.dspy import types
from sigwire.dspy.adapters import (
    Adapter,
    BAMLAdapter,
    ChatAdapter,
    FieldInfoWithName,
    JSONAdapter,
    TwoStepAdapter,
    XMLAdapter,
)
from sigwire.dspy.layouts.thinking import with_thinking
from sigwire.dspy.lm import LM, BaseLM
from sigwire.errors import AdapterParseError, ConfigurationError
from sigwire.lm.fake import FakeLM
from sigwire.lm.openai_dicts import encode_messages
from sigwire.modules.agents.react import ReAct
from sigwire.modules.predict import Predict
from sigwire.settings import context
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature, make_signature
from sigwire.signatures.types.history import History
from sigwire.signatures.types.text import Reasoning


class Both(Signature):
    question: str = InputField()
    tools: list[Tool] = InputField()
    calls: ToolCalls = OutputField()


def test_options_that_change_nothing_are_accepted() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        adapter = ChatAdapter(callbacks=None, use_json_adapter_fallback=True, native_response_types=[Reasoning])
    assert adapter == ChatAdapter()


def test_option_without_effect_warns_and_names_the_alternative() -> None:
    with pytest.warns(UserWarning, match="capabilities") as caught:
        adapter = XMLAdapter(native_response_types=[Reasoning, str])
    assert adapter == XMLAdapter()
    assert caught[0].filename == __file__


@pytest.mark.parametrize("adapter", [ChatAdapter, JSONAdapter, XMLAdapter])
def test_native_function_calling_is_another_name_for_native_tools(adapter: type[Adapter]) -> None:
    native = Capabilities(native_tools=True)
    assert adapter(use_native_function_calling=False).plan(Both, native).tools_mode == "text"
    assert adapter().plan(Both, native).tools_mode == "native"


def test_two_step_adapter_takes_the_options_beside_its_model() -> None:
    lm = FakeLM(["x"])
    adapter = TwoStepAdapter(lm, use_native_function_calling=False)
    assert (adapter.extraction_model, adapter.native_tools) == (lm, False)
    with pytest.raises(ValueError, match="extracts with a language model"):
        TwoStepAdapter("openai/gpt-4.1")


# --- outputs of type Reasoning -------------------------------------------------------------------------------


class Weighed(Signature):
    """Weigh it."""

    item: str = InputField()
    thoughts: types.Reasoning = OutputField()
    grams: int = OutputField()


WRITTEN = "[[ ## thoughts ## ]]\nHeavy.\n\n[[ ## grams ## ]]\n7"
EFFORT = {"reasoning_effort": "low"}


class Thinker(BaseLM):
    """A model that thinks by an option, else it writes its reasoning."""

    asked: list[dict[str, Any]]
    supports_reasoning = True  # type: ignore[assignment]

    def __init__(self, **options: Any) -> None:
        super().__init__("thinker", **options)
        self.asked = []

    def forward(self, prompt: Any = None, messages: Any = None, **options: Any) -> Any:
        self.asked.append({name: value for name, value in options.items() if name.startswith("reasoning")})
        native = self.asked[-1].get("reasoning_effort")
        message = {"content": "[[ ## grams ## ]]\n7", "reasoning_content": "Heavy."} if native else {"content": WRITTEN}
        return {"choices": [{"message": message}]}


@pytest.mark.parametrize(
    ("adapter", "options", "sent"),
    [
        (ChatAdapter(), {}, EFFORT),
        (ChatAdapter(native_response_types=[Reasoning]), {}, EFFORT),
        (ChatAdapter(native_response_types=[]), {}, {}),
        (ChatAdapter(), {"reasoning_effort": None}, {}),
        (ChatAdapter(), {"reasoning_effort": "high"}, {"reasoning_effort": "high"}),
    ],
)
def test_an_output_of_type_reasoning_switches_the_reasoning_of_a_model_on(
    adapter: Adapter, options: dict[str, Any], sent: dict[str, Any]
) -> None:
    lm = Thinker()
    found = {"thoughts": "Heavy.", "grams": 7}
    assert adapter(lm, options, Weighed, [], {"item": "stone"}) == [found]
    with context(lm=lm, adapter=adapter):
        assert dspy.Predict(Weighed, **options)(item="stone").toDict() == found
    assert [{k: v for k, v in asked.items() if v} for asked in lm.asked] == [sent, sent]


def test_reasoning_is_not_switched_on_against_the_model_or_for_a_field_of_another_type() -> None:
    high, plain = Thinker(reasoning_effort="high"), Thinker()
    ChatAdapter()(high, {}, Weighed, [], {"item": "stone"})
    ChatAdapter()(plain, {}, Weighed.with_updated_fields("thoughts", type_=str), [], {"item": "stone"})
    assert (high.asked, plain.asked) == ([{}], [{}])
    for model, takes in {
        "groq/qwen/qwen3-32b": False,
        "anthropic/claude-sonnet-4-5": True,
        "openai/gpt-4o": False,
    }.items():
        lm = LM(model, api_key="x")
        assert ("reasoning_effort" in with_thinking(Weighed, lm, {"max_reasks": 1})) is takes


# --- tools without an output for calls -----------------------------------------------------------------------


def measure(width: int) -> str:
    """Measure a wall."""
    return str(width)


@pytest.mark.parametrize(
    ("kind", "tools"),
    [("list[Tool]", [Tool(measure)]), ("dict[str, Tool]", {"measure": measure}), ("Tool", Tool(measure))],
)
@pytest.mark.parametrize("adapter", [ChatAdapter(), BAMLAdapter(use_native_function_calling=True), XMLAdapter()])
def test_tools_without_an_output_for_calls_are_an_input_to_read(adapter: Adapter, kind: str, tools: Any) -> None:
    lm = FakeLM([{"plan": "go"}], adapter=adapter, capabilities=Capabilities(native_tools=True))
    planner = dspy.Predict(make_signature(f"room, tools: {kind} -> plan"))
    with context(lm=lm, adapter=adapter):
        assert planner(room="hall", tools=tools).plan == "go"
    (record,) = lm.history
    system, user = (message["content"] for message in record["messages"])
    assert "tool" not in system.replace("tools", "")
    assert '["measure, whose description is <desc>Measure a wall.</desc>. It takes arguments ' in user
    assert not record["kwargs"].get("tools")


def test_saved_and_missing_tools_of_a_demo_are_data() -> None:
    planner = dspy.Predict(make_signature("room, tools: list[Tool] | None -> plan"))
    planner.demos = [dspy.Example(room="hall", tools=[Tool(measure)], plan="go")]
    other = dspy.Predict(planner.signature)
    other.load_state(planner.dump_state())
    lm = dspy.DummyLM([{"plan": "go"}])
    other(room="loft", lm=lm)
    demo, now = (lm.history[0]["messages"][at]["content"] for at in (1, 3))
    assert '"name":"measure"' in demo
    assert now.split("\n\n")[1] == "[[ ## tools ## ]]\n[]"


# --- methods that a subclass overrides -----------------------------------------------------------------------

QA = Signature("question -> answer")
DEMO = {"question": "2+2?", "answer": "4"}
PAST = History(messages=[{"question": "1+1?", "answer": "2"}])


class Talk(Signature):
    """Answer."""

    history: History = InputField()
    question: str = InputField()
    answer: str = OutputField()


class Own(ChatAdapter):
    """Marks each text that it formats, and parses a form of its own."""

    def format_task_description(self, signature: Any) -> str:
        return super().format_task_description(signature) + " <task>"

    def format_field_description(self, signature: Any) -> str:
        return super().format_field_description(signature) + " <fields>"

    def format_field_structure(self, signature: Any) -> str:
        return super().format_field_structure(signature) + " <structure>"

    def format_user_message_content(self, signature: Any, inputs: Any, *args: Any, **options: Any) -> Any:
        return super().format_user_message_content(signature, inputs, *args, **options) + " <user>"

    def format_assistant_message_content(self, signature: Any, outputs: Any, *args: Any) -> str:
        return super().format_assistant_message_content(signature, outputs, *args) + " <assistant>"

    def parse(self, signature: Any, completion: Any) -> dict[str, Any]:
        return {"answer": completion.upper()}


class Whole(JSONAdapter):
    """Formats and parses everything by itself."""

    def format(self, signature: Any, demos: Any, inputs: Any) -> Any:
        shown = [{"role": "user", "content": f"demo {demo['question']}"} for demo in demos]
        return [*shown, {"role": "user", "content": inputs["question"]}]

    def parse(self, signature: Any, completion: Any) -> dict[str, Any]:
        return {"answer": completion.strip("*")}


class Counting(XMLAdapter):
    """Calls ``super()`` in each method that decides messages."""

    def format(self, signature: Any, demos: Any, inputs: Any) -> Any:
        return [*super().format(signature, demos, inputs), {"role": "user", "content": "format"}]

    def format_system_message(self, signature: Any) -> str:
        return super().format_system_message(signature) + " <system>"

    def format_demos(self, signature: Any, demos: Any) -> Any:
        return [*super().format_demos(signature, demos), {"role": "user", "content": "demos"}]

    def format_conversation_history(self, signature: Any, history_field_name: str, inputs: Any) -> Any:
        messages = super().format_conversation_history(signature, history_field_name, inputs)
        return [*messages, {"role": "user", "content": history_field_name}]


def _blocking(module: Any, **inputs: Any) -> Any:
    return module(**inputs)


async def _awaited(module: Any, **inputs: Any) -> Any:
    return await module.acall(**inputs)


async def _streamed(module: Any, **inputs: Any) -> Any:
    events = [event async for event in module.astream(**inputs)]
    text = "".join(event.text for event in events if getattr(event, "field", "") == "answer" and hasattr(event, "text"))
    assert text == events[-1].value.answer
    return events[-1].value


async def ask(kind: Any, adapter: Adapter, answer: str, signature: Any = QA, **inputs: Any) -> tuple[Any, Any]:
    lm = FakeLM([answer])
    predict = Predict(signature, lm=lm)
    predict.demos = [DEMO]
    with context(adapter=adapter):
        result = kind(predict, question="?", **inputs)
        result = await result if hasattr(result, "__await__") else result
    return result.answer, lm.requests[0].messages


KINDS = pytest.mark.parametrize("kind", [_blocking, _awaited, _streamed])


@KINDS
async def test_overridden_texts_and_parse_are_used_by_every_call(kind: Any) -> None:
    answer, messages = await ask(kind, Own(), "oslo")
    assert answer == "OSLO"
    system, demo, reply, user = (message.text for message in messages)
    assert system.index("<fields>") < system.index("<structure>") < system.index("<task>")
    assert (demo.count("<user>"), reply.count("<assistant>"), user.count("<user>")) == (1, 1, 1)
    assert "[[ ## question ## ]]\n2+2?" in demo
    assert "[[ ## answer ## ]]\n4" in reply


@KINDS
async def test_overridden_format_and_parse_replace_messages_and_fields_of_every_call(kind: Any) -> None:
    answer, messages = await ask(kind, Whole(), "*Oslo*")
    assert answer == "Oslo"
    assert [(message.role, message.text) for message in messages] == [("user", "demo 2+2?"), ("user", "?")]


@KINDS
async def test_overridden_messages_are_used_by_every_call_in_order(kind: Any) -> None:
    answer, messages = await ask(kind, Counting(), "<answer>Oslo</answer>", Talk, history=PAST)
    assert answer == "Oslo"
    texts = [message.text for message in messages]
    assert [message.role for message in messages] == [
        "system", "user", "assistant", "user", "user", "assistant", "user", "user", "user",
    ]  # fmt: skip
    assert texts[0].endswith("Answer. <system>")
    assert (texts[3], texts[6], texts[8]) == ("demos", "history", "format")
    assert "1+1?" in texts[4]
    assert "?" in texts[7]


@pytest.mark.parametrize("adapter", [ChatAdapter(), JSONAdapter(), XMLAdapter(), TwoStepAdapter(FakeLM([]))])
def test_format_without_overrides_gives_the_messages_of_a_call(adapter: Adapter) -> None:
    lm = FakeLM([{"answer": "x"}], adapter=adapter)
    predict = Predict(Talk, lm=lm)
    predict.demos = [DEMO]
    with context(adapter=adapter), suppress(ConfigurationError):
        predict(question="?", history=PAST)
    assert adapter.format(Talk, [DEMO], {"question": "?", "history": PAST}) == encode_messages(lm.requests[0].messages)


def test_each_format_method_gives_its_part_without_overrides() -> None:
    adapter = ChatAdapter()
    system = adapter.format_system_message(QA)
    assert adapter.format_field_description(QA) + "\n\n" + adapter.format_field_structure(QA) in system
    assert system.endswith(adapter.format_task_description(QA))
    assert adapter.format_user_message_content(QA, {"question": "?"}, suffix="Go.") == "[[ ## question ## ]]\n?\n\nGo."
    assert adapter.format_assistant_message_content(QA, {"answer": "4"}).startswith("[[ ## answer ## ]]\n4")
    assert [message["role"] for message in adapter.format_demos(QA, [DEMO])] == ["user", "assistant"]
    assert adapter.format_conversation_history(Talk, "history", {"history": PAST})[0]["content"].endswith("1+1?")
    assert adapter.parse(QA, "[[ ## answer ## ]]\n4") == {"answer": "4"}


def test_overridden_system_message_keeps_tools_that_are_offered_as_text() -> None:
    class Marked(ChatAdapter):
        def format_system_message(self, signature: Any) -> str:
            return super().format_system_message(signature) + " <system>"

    lm = FakeLM(["No tool fits."], capabilities=Capabilities())
    with context(adapter=Marked()):
        Predict(Both, lm=lm)(question="?", tools=[Tool(len, name="size")])
    assert '"name": "size"' in lm.requests[0].messages[0].text
    assert lm.requests[0].messages[0].text.endswith("<system>")


def test_adapter_of_dspys_base_class_needs_only_its_overrides() -> None:
    class Bare(Adapter):
        def format(self, signature: Any, demos: Any, inputs: Any) -> Any:
            return [{"role": "user", "content": [{"type": "text", "text": inputs["question"]}]}]

        def parse(self, signature: Any, completion: Any) -> dict[str, Any]:
            return {"answer": completion}

    lm = FakeLM(["Oslo"])
    with context(adapter=Bare()):
        assert Predict(QA, lm=lm)(question="Where?").answer == "Oslo"
    assert [message.text for message in lm.requests[0].messages] == ["Where?"]


@KINDS
async def test_overridden_parse_reads_the_plain_answer_that_ends_an_agent(kind: Any) -> None:
    class Starred(JSONAdapter):
        def parse(self, signature: Any, completion: Any) -> dict[str, Any]:
            return {"answer": completion.strip("*")}

    agent = ReAct(QA, tools=[Tool(len, name="size")])
    agent.set_lm(FakeLM(["*Oslo*"]))
    with context(adapter=Starred()):
        result = kind(agent, question="?")
        result = await result if hasattr(result, "__await__") else result
    assert (result.answer, result.termination_reason) == ("Oslo", "no_calls")


def test_parse_error_of_an_overridden_parse_is_asked_again() -> None:
    class Picky(ChatAdapter):
        def parse(self, signature: Any, completion: Any) -> dict[str, Any]:
            if completion != "Oslo":
                raise AdapterParseError("Picky", signature, completion, problems={"answer": "not Oslo"})
            return {"answer": completion}

    with context(adapter=Picky()):
        assert Predict(QA, lm=FakeLM(["Rome", "Oslo"]), max_reasks=1)(question="?").answer == "Oslo"


@pytest.mark.parametrize(
    ("adapter", "text"),
    [
        (ChatAdapter(), '[[ ## question ## ]]\nWhy?\n\n[[ ## answers ## ]]\n["a"]'),
        (XMLAdapter(), '<question>\nWhy?\n</question>\n\n<answers>\n["a"]\n</answers>'),
    ],
)
def test_fields_with_values_have_the_form_of_an_answer(adapter: Adapter, text: str) -> None:
    signature = make_signature("question: str -> answers: list[str]")
    values = {"question": "Why?", "answers": ["a"]}
    fields = {FieldInfoWithName(name, signature.fields[name]): value for name, value in values.items()}
    assert adapter.format_field_with_value(fields) == text


class Node(BaseModel):
    name: str
    parts: list[Node]


class Counted(BaseModel):
    count: int


class Labeled(BaseModel):
    labels: list[str]


@pytest.mark.parametrize(
    ("kind", "text", "value"),
    [
        (
            Node,
            "<name>a</name><parts><name>b</name><parts /></parts>",
            Node(name="a", parts=[Node(name="b", parts=[])]),
        ),
        (Counted | Labeled, "<labels>one</labels>", Labeled(labels=["one"])),
        (dict[str, list[str]], "<tags>a</tags><names/>", {"tags": ["a"], "names": []}),
    ],
)
def test_nested_tags_are_lists_by_their_type_also_empty_ones(kind: Any, text: str, value: Any) -> None:
    signature = make_signature({"notes": (str, InputField()), "found": (kind, OutputField())}, "Find.")
    assert XMLAdapter().parse(signature, f"<found>{text}</found>")["found"] == value
