"""Plans: order of messages, finish reasons, re-asking, and caches."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from sigwire.adapters.base import Adapter
from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.xml import XMLAdapter
from sigwire.core.capabilities import Capabilities
from sigwire.core.example import Example
from sigwire.core.messages import Message
from sigwire.core.parts import ImagePart, TextPart
from sigwire.core.response import Choice, Response
from sigwire.errors import (
    AdapterParseError,
    ContentFiltered,
    DemoWarning,
    EmptyResponse,
    InputError,
    MalformedToolCall,
    ModelError,
    OutputTruncated,
    Refused,
)
from sigwire.lm.fake import FakeLM
from sigwire.modules.predict import Predict
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature
from sigwire.signatures.types import History, Image, Reasoning

QA = Signature("question, k: int -> answer, score: float", "Answer.")
Talk = Signature("question, history: History -> answer", "Answer.")
ADAPTERS: list[Adapter] = [ChatAdapter(), JSONAdapter(), XMLAdapter()]
each_adapter = pytest.mark.parametrize("adapter", ADAPTERS, ids=lambda adapter: type(adapter).__name__)
ASK = {"question": "Q?", "k": 3}
DEMO = {"question": "old?", "k": 1, "answer": "yes", "score": 0.5}


@each_adapter
def test_plan_is_compiled_once_for_a_signature_and_a_model(adapter: Adapter) -> None:
    assert adapter.plan(QA, Capabilities()) is adapter.plan(QA, Capabilities())
    assert adapter.plan(QA, Capabilities()) is not adapter.plan(QA, Capabilities(native_tools=True))
    other = QA.with_instructions("Otherwise.")
    assert "Otherwise." in adapter.plan(other).format(ASK).messages[0].text


@each_adapter
def test_system_message_has_fields_form_and_task(adapter: Adapter) -> None:
    class Limits(Signature):
        """Judge the text."""

        text: str = InputField(desc="what to judge")
        score: int = OutputField(desc="how good", ge=0, le=9)

    system = adapter.format(Limits, {"text": "x"}).messages[0].text
    for words in ("what to judge", "how good", "at least 0", "at most 9", "Judge the text."):
        assert words in system
    assert system.index("what to judge") < system.index("how good") < system.index("Judge the text.")


@each_adapter
def test_messages_are_system_demos_history_inputs(adapter: Adapter) -> None:
    history = History([{"question": "before?", "answer": "B"}, Message.user("by hand")])
    request = adapter.format(Talk, {"question": "now?"}, [{"question": "demo?", "answer": "D"}], history=history)
    assert [message.role for message in request.messages] == [
        "system",
        "user",
        "assistant",
        "user",
        "assistant",
        "user",
        "user",
    ]
    found = ["demo?", "D", "before?", "B", "by hand", "now?"]
    assert all(text in message.text for text, message in zip(found, request.messages[1:], strict=True))


@each_adapter
def test_only_the_last_user_message_has_the_reminder(adapter: Adapter) -> None:
    history = History([{"question": "before?", "answer": "B"}])
    request = adapter.format(Talk, {"question": "now?"}, [{"question": "demo?", "answer": "D"}], history=history)
    assert ["Reply with" in message.text for message in request.messages if message.role == "user"] == [
        False,
        False,
        True,
    ]


@each_adapter
def test_format_does_not_change_its_arguments(adapter: Adapter) -> None:
    inputs, demos, options = dict(ASK), [dict(DEMO)], {"temperature": 0.5, "tool_choice": "auto"}
    adapter.plan(QA).format(inputs, demos, options)
    assert (inputs, demos, options) == (ASK, [DEMO], {"temperature": 0.5, "tool_choice": "auto"})


@each_adapter
def test_equal_inputs_give_equal_requests(adapter: Adapter) -> None:
    plan = adapter.plan(QA)
    first = plan.format(ASK, [DEMO])
    plan.format({"question": "other", "k": 1}, [{**DEMO, "answer": "no"}, DEMO])
    assert plan.format(ASK, [DEMO]) == first == adapter.compile(QA, Capabilities()).format(ASK, [DEMO])


def test_input_without_a_value_has_no_section() -> None:
    assert "## k ##" not in ChatAdapter().plan(QA).format({"question": "Q?"}).messages[1].text


def test_adapter_fills_in_defaults_of_inputs() -> None:
    signature = Signature({"question": InputField(), "k": (int, InputField(default=7)), "answer": OutputField()})
    assert "[[ ## k ## ]]\n7" in ChatAdapter().format(signature, {"question": "Q?"}).messages[1].text


def test_media_are_placed_at_their_field() -> None:
    signature = Signature("before, picture: Image, after -> answer")
    picture = Image("https://example.org/a.png")
    user = ChatAdapter().format(signature, {"before": "B", "picture": picture, "after": "A"}).messages[1]
    first, image, last = user.parts
    assert image == ImagePart(url="https://example.org/a.png")
    assert isinstance(first, TextPart)
    assert isinstance(last, TextPart)
    assert first.text == "[[ ## before ## ]]\nB\n\n[[ ## picture ## ]]\n"
    assert last.text.startswith("\n\n[[ ## after ## ]]\nA\n\nReply with")


# --- demos -----------------------------------------------------------------------------------------------


@each_adapter
def test_system_message_states_how_many_exchanges_are_examples(adapter: Adapter) -> None:
    one, two, none = (adapter.format(QA, ASK, [DEMO] * count + [{}]) for count in (1, 2, 0))
    assert "The first exchange is an example of the task, not part of the conversation." in one.messages[0].text
    assert "The first 2 exchanges are examples of the task, not part of the conversation." in two.messages[0].text
    assert none.messages == adapter.format(QA, ASK).messages
    assert "example" not in none.messages[0].text


@each_adapter
def test_incomplete_demos_come_first_and_are_marked(adapter: Adapter) -> None:
    partial = {"question": "part?", "answer": "p"}
    request = adapter.format(QA, ASK, [DEMO, partial])
    assert "Example (some fields omitted):" in request.messages[1].text
    assert "part?" in request.messages[1].text
    assert "old?" in request.messages[3].text


def test_demos_without_inputs_or_outputs_are_omitted() -> None:
    assert len(ChatAdapter().format(QA, ASK, [{"question": "q"}, {"answer": "a"}, {}]).messages) == 2


MISSPELT: list[tuple[dict[str, Any], str]] = [
    ({"qestion": "q", "k": 1, "answer": "a", "score": 1.0}, r"unknown 'qestion' \(did you mean 'question'\?\)"),
    (
        {"question": "q", "k": 1, "anwser": "a", "scores": 1.0},
        r"'anwser' \(did you mean 'answer'\?\), 'scores' \(did you",
    ),
    ({"text": "q", "answer": ["a"]}, r"unknown 'text'\. The fields are: question, k, answer, score\."),
]


@pytest.mark.parametrize(("demo", "message"), MISSPELT)
@pytest.mark.parametrize("layout", ["turns", "system"])
@pytest.mark.parametrize("kind", [ChatAdapter, JSONAdapter, XMLAdapter])
def test_misspelt_demo_field_is_a_warning_once_and_an_error_if_strict(
    kind: Any, layout: str, demo: dict[str, Any], message: str
) -> None:
    adapter = kind(demos=layout)
    with pytest.warns(DemoWarning, match=message) as caught:
        adapter.format(QA, ASK, [demo, dict(demo), DEMO])
    assert [warning.filename for warning in caught] == [__file__]
    adapter.format(QA, ASK, [dict(demo)])  # the suite turns warnings into errors
    with pytest.raises(InputError, match=message):
        kind(demos=layout, strict=True).format(QA, ASK, [demo])


UNCHECKED: list[dict[str, Any]] = [
    {**DEMO, "augmented": True, "quesiton": "extra"},
    {"question": "q", "answer": "a", "source": "page 3"},
    {"question": "q"},
    {},
]


@pytest.mark.parametrize("demo", UNCHECKED)
def test_other_unknown_fields_and_incomplete_demos_are_no_warning(demo: dict[str, Any]) -> None:
    ChatAdapter(strict=True).format(QA, ASK, [demo, Example(**demo)])


def test_demo_may_have_fields_that_the_model_does_not_see() -> None:
    class Thinks(Signature):
        question: str = InputField()
        reasoning: Reasoning = OutputField()
        answer: str = OutputField()

    demo = {"question": "q", "reasoning": "r"}
    ChatAdapter(strict=True).format(Thinks, {"question": "?"}, [demo], capabilities=Capabilities(reasoning=True))


async def test_warning_of_a_demo_names_the_line_of_the_call() -> None:
    predict = Predict("question -> answer", lm=FakeLM([{"answer": "a"}] * 2))
    for demo in ({"qestion": "q", "answer": "a"}, {"question": "q", "anser": "a"}):
        with pytest.warns(DemoWarning) as caught:
            await predict.acall(question="?", demos=[demo])
        assert [warning.filename for warning in caught] == [__file__]


def test_demos_are_written_into_the_system_message_by_option() -> None:
    request = ChatAdapter(demos="system").format(QA, ASK, [DEMO])
    assert len(request.messages) == 2
    assert "Example:\n\n[[ ## question ## ]]\nold?" in request.messages[0].text
    assert "The examples above show the task. They are not part of the conversation." in request.messages[0].text
    assert "old?" not in request.messages[1].text


def test_demo_is_written_again_when_changed() -> None:
    plan = ChatAdapter().plan(QA)
    plain, example = dict(DEMO), Example(**DEMO)
    nested = Signature("question -> names: list[str]")
    names = {"question": "q", "names": ["a"]}
    other = ChatAdapter().plan(nested)
    plan.format(ASK, [plain, example])
    other.format({"question": "Q?"}, [names])
    plain["answer"] = example.answer = "changed"
    names["names"].append("b")  # type: ignore[attr-defined]
    request = plan.format(ASK, [plain, example])
    assert [m.text.count("changed") for m in request.messages if m.role == "assistant"] == [1, 1]
    assert '"b"' in other.format({"question": "Q?"}, [names]).messages[2].text


def test_demo_is_written_again_when_its_list_changes() -> None:
    plan = ChatAdapter().plan(Signature("question -> names: list[str]"))
    demo = Example(question="q", names=None)
    plan.format({"question": "Q?"}, [demo])
    demo.names = ["a"]
    plan.format({"question": "Q?"}, [demo])
    demo.names.append("b")
    assert '["a","b"]' in plan.format({"question": "Q?"}, [demo]).messages[2].text


@pytest.mark.parametrize("order", [(2, 1, 0), (0, 1), (0, 1, 2, 0)])
def test_demos_are_written_again_when_the_list_has_changed(order: tuple[int, ...]) -> None:
    plan = ChatAdapter().plan(QA)
    demos = [Example(question=f"q{n}", answer=f"a{n}") for n in range(3)]
    plan.format(ASK, demos)
    demos = [demos[n] for n in order]
    asked = [message.text for message in plan.format(ASK, demos).messages[1:-1:2]]
    assert [text[-2:] for text in asked] == [demo.question for demo in demos]


def test_demo_is_written_once_when_unchanged() -> None:
    plan = ChatAdapter().plan(QA)
    demos = [DEMO, Example(**DEMO)]
    first, again = plan.format(ASK, demos), plan.format(ASK, demos)
    assert [a is b for a, b in zip(first.messages, again.messages, strict=True)] == [True] * 5 + [False]


# --- history ---------------------------------------------------------------------------------------------


def test_turns_are_written_once() -> None:
    plan = ChatAdapter().plan(Talk)
    history = History([{"question": "1", "answer": "1"}])
    first = plan.format({"question": "2", "history": history})
    longer = plan.format({"question": "3", "history": history.append(question="2", answer="2")})
    assert longer.messages[1] is first.messages[1]


def test_turn_without_any_field_is_an_input_error() -> None:
    with pytest.raises(InputError, match="answer, history, question"):
        ChatAdapter().format(Talk, {"question": "Q?"}, history=History([{"querstion": "x"}]))


def test_history_accepts_a_list_of_openai_messages() -> None:
    turns = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    request = ChatAdapter().format(Talk, {"question": "Q?"}, history=turns)
    assert request.messages[1:3] == (Message.user("Hi"), Message.assistant("Hello"))


# --- why the model stopped -------------------------------------------------------------------------------

STOPS: list[tuple[Choice, type[ModelError]]] = [
    (Choice(text="[[ ## answer ## ]]\nx\n[[ ## score ## ]]\n1", finish_reason="length"), OutputTruncated),
    (Choice(text="[[ ## answer ## ]]\nx\n[[ ## score ## ]]\n1", finish_reason="content_filter"), ContentFiltered),
    (Choice(refusal="I will not.", finish_reason="content_filter"), Refused),
    (Choice(refusal="I will not."), Refused),
    (Choice(), EmptyResponse),
    (Choice(text=" \n"), EmptyResponse),
    (Choice(finish_reason="error"), MalformedToolCall),
    (Choice(text="[[ ## answer ## ]]\nx"), AdapterParseError),
]


@each_adapter
@pytest.mark.parametrize(("choice", "error"), STOPS)
def test_each_finish_reason_has_its_error(adapter: Adapter, choice: Choice, error: type[ModelError]) -> None:
    with pytest.raises(ModelError) as caught:
        adapter.plan(QA).parse(choice)
    assert type(caught.value) is error
    assert caught.value.choice is choice


def test_parse_error_has_parsed_fields_and_problems() -> None:
    with pytest.raises(AdapterParseError) as caught:
        ChatAdapter().parse(QA, "[[ ## answer ## ]]\nyes\n[[ ## score ## ]]\nhigh")
    error = caught.value
    assert error.adapter_name == "ChatAdapter"
    assert error.parsed_result == {"answer": "yes"}
    assert list(error.problems) == ["score"]
    assert error.lm_response.startswith("[[ ## answer")


@each_adapter
def test_reasoning_before_the_answer_is_removed_with_a_repair(adapter: Adapter) -> None:
    plan = adapter.plan(QA)
    draft, answer = (
        plan.layout.write({"answer": "draft", "score": 0.0}),
        plan.layout.write({"answer": "yes", "score": 1.0}),
    )
    parsed = plan.parse(Choice(text=f"<think>\n{draft}\n</think>\n\n{answer}"))
    assert parsed.fields == {"answer": "yes", "score": 1.0}
    assert "reasoning" in parsed.repairs[0].what


@each_adapter
def test_thinking_without_opening_tag_is_removed_with_its_draft(adapter: Adapter) -> None:
    plan = adapter.plan(QA)
    draft, answer = (
        plan.layout.write({"answer": "draft", "score": 0.0}),
        plan.layout.write({"answer": "yes", "score": 1.0}),
    )
    assert plan.parse(Choice(text=f"Hm.\n{draft}\n</think>\n{answer}")).fields == {"answer": "yes", "score": 1.0}
    with pytest.raises(AdapterParseError):
        plan.parse(Choice(text=f"<think>\n{draft}\n</think>\nI do not know."))


@each_adapter
def test_thinking_tags_inside_a_value_are_kept(adapter: Adapter) -> None:
    plan = adapter.plan(QA)
    values = {"answer": "write </think> or </thinking>", "score": 1.0}
    for text in (plan.layout.write(values), "Sure.\n" + plan.layout.write(values)):
        assert plan.parse(Choice(text=text)).fields == values


@each_adapter
def test_strict_adapter_refuses_repairs(adapter: Adapter) -> None:
    plan = adapter.plan(QA)
    text = "Sure, here it is:\n" + plan.layout.write({"answer": "yes", "score": 1.0})
    assert plan.parse(Choice(text=text)).repairs
    with pytest.raises(AdapterParseError):
        type(adapter)(strict=True).plan(QA).parse(Choice(text=text))


@each_adapter
def test_reask_sends_the_exact_errors(adapter: Adapter) -> None:
    plan = adapter.plan(QA)
    request = plan.format(ASK, options={"temperature": 0.5})
    choice = Choice(text=plan.layout.write({"answer": "yes"}))
    with pytest.raises(AdapterParseError) as caught:
        plan.parse(choice)
    again = plan.reask(request, choice, caught.value)
    assert again.messages[: len(request.messages)] == request.messages
    said, complaint = again.messages[len(request.messages) :]
    assert said == Message.assistant(choice.text)
    assert "- score: the field is missing" in complaint.text
    assert again.options == request.options


def test_reask_of_an_empty_answer_sends_no_empty_message() -> None:
    plan = ChatAdapter().plan(QA)
    request = plan.format(ASK)
    again = plan.reask(request, Choice(), EmptyResponse("It was empty.", choice=Choice()))
    assert [message.role for message in again.messages] == ["system", "user", "user"]
    assert "It was empty." in again.messages[-1].text


# --- reasoning that the model does by itself ---------------------------------------------------------------


def test_native_reasoning_is_read_from_the_choice_and_not_prompted() -> None:
    signature = Signature("question -> thoughts: Reasoning, answer")
    thinking = ChatAdapter().plan(signature, Capabilities(reasoning=True))
    asked = ChatAdapter().plan(signature)
    assert "thoughts" not in thinking.format({"question": "Q?"}).messages[1].text
    assert "thoughts" in asked.format({"question": "Q?"}).messages[1].text
    fields = thinking.parse(Choice(text="[[ ## answer ## ]]\n4", reasoning="hm")).fields
    assert fields["answer"] == "4"
    assert isinstance(fields["thoughts"], Reasoning)
    assert str(fields["thoughts"]) == "hm"


def test_response_has_the_warnings_of_the_plan() -> None:
    plan = JSONAdapter().plan(QA, Capabilities())
    response = plan.normalize(Response((Choice(text="{}"),)))
    assert plan.mode == "prompt"
    assert [warning.feature for warning in response.warnings] == ["structured_output"]


def _pickled(adapter: Adapter) -> Any:
    return pickle.loads(pickle.dumps(adapter))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, _pickled])
@each_adapter
def test_copied_adapter_compiles_new_plans(adapter: Adapter, copied: Any) -> None:
    plan = adapter.plan(QA)
    twin = copied(adapter)
    assert twin == adapter
    assert twin.plan(QA) is not plan
    assert twin.format(QA, ASK) == adapter.format(QA, ASK)
    assert adapter.plan(QA) is plan


def test_base_adapter_is_abstract() -> None:
    with pytest.raises(TypeError):
        Adapter()  # type: ignore[abstract]


@each_adapter
def test_plan_shows_its_setup(adapter: Adapter) -> None:
    capabilities = Capabilities(reasoning=True)
    plan = adapter.plan(
        Signature("question -> reasoning: Reasoning, answer", "", custom_types={"Reasoning": Reasoning}), capabilities
    )
    setup, parts = plan.setup, plan.parts
    assert plan.capabilities == capabilities
    assert (plan.warnings, plan.written) == (setup.warnings, setup.written)
    assert (plan.thinking, plan.thoughts) == (parts.thinking, parts.thoughts)
    assert [field.name for field in plan.thinking] == ["reasoning"]
    assert ("<think>", "</think>") in plan.thoughts
