"""Calls written as text, through adapters and modules: the texts that are read, and the warnings."""

from __future__ import annotations

from typing import Any

import pytest

from sigwire.adapters.base import Adapter
from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.json import JSONAdapter
from sigwire.adapters.text_tools import read_calls
from sigwire.adapters.text_tools.styles import STYLES
from sigwire.adapters.xml import XMLAdapter
from sigwire.core.capabilities import Capabilities
from sigwire.core.messages import Message
from sigwire.core.parts import ImagePart, OpaquePart, TextPart
from sigwire.core.response import Choice, LMWarning, Response, Usage
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.tool import Tool
from sigwire.errors import AdapterParseError, InputError
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.predict import Predict
from sigwire.settings import context
from sigwire.signatures.signature import Signature
from sigwire.signatures.types import History
from tests.adapters.streaming.emitting import read_whole, stream_fields

NATIVE = Capabilities(native_tools=True)
TEXT = Capabilities()
Choose = Signature("question, tools: list[Tool], history: History -> answer, calls: ToolCalls")
HERMES = '<tool_call>\n{"name": "double", "arguments": {"n": 21}}\n</tool_call>'
QWEN = "<tool_call>\n<function=double>\n<parameter=n>\n21\n</parameter>\n</function>\n</tool_call>"
ADAPTERS: list[type[Adapter]] = [ChatAdapter, JSONAdapter, XMLAdapter]


def double(n: int) -> int:
    """Double a number."""
    return 2 * n


DOUBLE = Tool(double)


def normalized(choice: Choice, able: Capabilities = NATIVE, adapter: Adapter | None = None) -> Response:
    plan = (adapter or ChatAdapter()).plan(Choose, able)
    return plan.normalize(Response((choice,)), [DOUBLE])


# --- texts that are read ------------------------------------------------------------------------------------


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize(
    ("text", "dialect"), [(HERMES, "hermes"), (QWEN, "qwen3_coder"), ("[double(n=21)]", "pythonic")]
)
def test_calls_in_text_of_a_native_model_are_read_with_a_warning(
    adapter: type[Adapter], text: str, dialect: str
) -> None:
    response = normalized(Choice(text=f"<think>\nLet me see.\n</think>\n{text}"), adapter=adapter())
    (choice,) = response.choices
    assert [(call.name, call.arguments) for call in choice.tool_calls] == [("double", {"n": 21})]
    assert (choice.text, choice.finish_reason) == ("<think>\nLet me see.\n</think>", "tool_calls")
    message = LMWarning("native_tools", f"the model wrote its calls as text; they were read as {dialect}")
    assert [warning for warning in response.warnings if warning.feature != "structured_output"] == [message]


def test_another_form_than_the_taught_one_gives_a_warning() -> None:
    assert normalized(Choice(text=QWEN), TEXT).warnings == (
        LMWarning("text_tools", "the calls were not written in the form that was taught, but as qwen3_coder"),
    )
    assert normalized(Choice(text=QWEN), TEXT, ChatAdapter(text_tools="qwen3_coder")).warnings == ()


def test_text_with_native_calls_is_text() -> None:
    call = ToolCall("a", "double", {"n": 1})
    choice = Choice(text=HERMES, tool_calls=(call,))
    assert normalized(choice).choices == (choice,)


@pytest.mark.parametrize(
    "part",
    [
        ToolResult("a", "search", "found"),
        OpaquePart("p", {"type": "server_tool_use", "id": "a"}),
        OpaquePart("p", {"type": "web_search_tool_result"}),
        OpaquePart("p", {"type": "web_search_call"}),
    ],
)
def test_text_is_not_read_for_calls_when_the_provider_ran_a_tool(part: Any) -> None:
    choice = Choice.from_parts([part, TextPart(HERMES)])
    assert normalized(choice).choices == (choice,)
    assert (
        normalized(Choice(text=HERMES), Capabilities(native_tools=True, runs_own_tools=True)).choices[0].tool_calls
        == ()
    )


def test_other_items_of_a_provider_hide_no_call() -> None:
    choice = Choice.from_parts([OpaquePart("p", {"type": "reasoning"}), OpaquePart("p", [1]), TextPart(HERMES)])
    assert len(normalized(choice).choices[0].tool_calls) == 1


def test_prose_that_shows_a_call_is_the_answer() -> None:
    text = f"[[ ## answer ## ]]\nWrite it so:\n```\n{HERMES}\n```\nor like `[double(n=1)]`.\n\n[[ ## completed ## ]]"
    plan = ChatAdapter().plan(Choose, NATIVE)
    response = plan.normalize(Response((Choice(text=text),)), [DOUBLE])
    assert response.warnings == ()
    assert HERMES in plan.parse(response.choices[0]).fields["answer"]


def test_arguments_that_are_plain_text_are_typed_by_the_tools_schema() -> None:
    (call,) = normalized(Choice(text=QWEN)).choices[0].tool_calls
    assert call.arguments == {"n": 21}


def test_reasoning_in_the_text_becomes_the_choices_reasoning() -> None:
    text = "<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Paris"
    (choice,) = normalized(Choice(text=text)).choices
    assert (choice.text, choice.reasoning, choice.tool_calls) == ("Paris", "hm", ())


def test_truncated_call_is_removed_with_a_warning() -> None:
    text = HERMES + '<tool_call>{"name": "double", "arguments": {"n": 2'
    response = normalized(Choice(text=text, finish_reason="length"))
    assert [call.arguments for call in response.choices[0].tool_calls] == [{"n": 21}]
    assert "cut off" in response.warnings[-1].detail


# --- a section of calls --------------------------------------------------------------------------------------

CALL = '{"name": "double", "arguments": {"n": 21}}'
DONE = "\n\n[[ ## completed ## ]]"
SECTIONS = [
    f"[{CALL}]", CALL, f"{CALL}\n{CALL}", f'{{"tool_calls": [{CALL.replace("arguments", "args")}]}}', f"```json\n[{CALL}]\n```",
    "[double(n=21)]", "double(n=21)",
]  # fmt: skip


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("end", [DONE, "", "\n\n[[ ## answer ## ]]\nSoon." + DONE])
def test_calls_in_a_section_are_read_whole_and_in_chunks(section: str, end: str) -> None:
    text = f"[[ ## calls ## ]]\n{section}{end}"
    for able in (NATIVE, TEXT):
        plan = ChatAdapter().plan(Choose, able)
        parsed, choice = read_whole(plan, text, (DOUBLE,))
        assert parsed is not None
        assert {(call.name, call.arguments["n"], call.error) for call in choice.tool_calls if call.arguments} == {
            ("double", 21, None)
        }
        assert len(choice.tool_calls) == text.count("double")
        assert (parsed.fields.get("answer"), parsed.repairs) == ("Soon." if "answer" in end else None, ())
        streamed = stream_fields(plan, list(text), (DOUBLE,))
        assert (streamed.calls, streamed.texts) == (
            list(choice.tool_calls),
            {"answer": "Soon."} if "answer" in end else {},
        )


@pytest.mark.parametrize(
    ("section", "code"),
    [
        (f"[{CALL.replace('double', 'triple')}]", "unknown_tool"),
        (f"[{CALL[:-1]}{DONE}", "malformed_json"),
        ('[{"name": "double", "arguments": {"n": ', "malformed_json"),
        ('{"city": "Bern"}', "malformed_json"),
        ('[{"name": "double", "arguments": [21]}]', "not_an_object"),
    ],
)
def test_section_without_a_valid_call_is_an_error_for_the_model(section: str, code: str) -> None:
    (call,) = normalized(Choice(text=f"[[ ## calls ## ]]\n{section}"), TEXT).choices[0].tool_calls
    assert call.error is not None
    assert call.error.code == code


@pytest.mark.parametrize(
    "text",
    [
        f"```\n[[ ## calls ## ]]\n[{CALL}]\n```\nis how it looks.",
        f"> [[ ## calls ## ]]\n> [{CALL}]\nis how it looks.",
        f"<think>\n[[ ## calls ## ]]\n[{CALL}]\n</think>\nNo.",
        f"So: [[ ## calls ## ]] [{CALL}] is how it looks.",
        f"[[ ## call ## ]]\n[{CALL}]\nis how it looks.",
        f"[[ ## calls ## ]]\nsay [{CALL}] and wait.",
        "[[ ## calls ## ]]\n[]\nnothing",
    ],
)
def test_a_section_of_calls_that_is_quoted_thought_or_of_another_name_is_text(text: str) -> None:
    choice = normalized(Choice(text=text), TEXT).choices[0]
    assert (choice.tool_calls, choice.text) == ((), text)
    offered = read_calls(f"[[ ## calls ## ]]\n[{CALL}]\nno one fills it", ["double"])
    assert offered.calls == ()


def test_section_without_a_call_is_reasked_only_when_the_answer_is_missing() -> None:
    plan = ChatAdapter().plan(Choose, TEXT)
    parsed, _ = read_whole(plan, f"[[ ## answer ## ]]\nBern\n\n[[ ## calls ## ]]\nnone{DONE}", (DOUBLE,))
    assert parsed is not None
    assert [(repair.field, repair.what) for repair in parsed.repairs] == [
        ("calls", "no tool call could be read in the section; it was left out")
    ]
    with pytest.raises(AdapterParseError, match="this section contains no valid tool call") as caught:
        plan.parse(Choice(text=f"[[ ## calls ## ]]\nplease double 21{DONE}"))
    assert caught.value.problems.keys() == {"answer", "calls"}
    write_json, _ = read_whole(plan, f"[[ ## calls ## ]]\n{HERMES}{DONE}", (DOUBLE,))
    assert write_json is not None
    assert write_json.repairs == ()


# --- calls alone -----------------------------------------------------------------------------


@pytest.mark.parametrize("able", [NATIVE, TEXT], ids=["native", "text"])
def test_calls_with_other_text_are_text_when_calls_alone_is_set(able: Capabilities) -> None:
    adapter = ChatAdapter(calls_alone=True)
    for text in (f"For example:\n{HERMES}", f"{HERMES}\nshows it.", '{"name": "double", "arguments": {"n": 1}} or so'):
        choice = normalized(Choice(text=text), able, adapter).choices[0]
        assert (choice.tool_calls, choice.text) == ((), text)
    assert len(normalized(Choice(text=f"<think>so</think>\n{HERMES}\n"), able, adapter).choices[0].tool_calls) == 1


def test_instructions_demand_calls_alone() -> None:
    taught, plain = (
        ChatAdapter(calls_alone=alone).format(Choose, {"question": "Q?", "tools": [DOUBLE]}, capabilities=TEXT)
        for alone in (True, False)
    )
    assert "write no other text" in taught.messages[0].text
    assert "write no other text" not in plain.messages[0].text


# --- the form of a model family -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", STYLES)
@pytest.mark.parametrize("adapter", ADAPTERS)
def test_style_teaches_its_form_and_writes_calls_and_results(adapter: type[Adapter], name: str) -> None:
    style = STYLES[name]
    calls = [ToolCall("a", "double", {"n": 1}), ToolCall("b", "double", {"n": 2})]
    results = [ToolResult("a", "double", 2), ToolResult("b", "double", "no", is_error=True)]
    history = History([Message("assistant", (TextPart("Both."), *calls)), Message.tool(*results)])
    request = adapter(text_tools=name).format(
        Choose, {"question": "Q?", "tools": [DOUBLE]}, history=history, capabilities=TEXT
    )
    system, assistant, answered, _ = request.messages
    assert style.form() in system.text
    assert style.results in system.text
    assert assistant.text == f"Both.\n\n{style.calls(calls)}"
    assert answered.text == "\n\n".join(map(style.result, results))
    assert ("~~~" in system.text) == (name == "fenced")


def test_media_in_results_keeps_its_place_in_every_style() -> None:
    picture = ImagePart(url="https://example.org/a.png")
    results = Message.tool(ToolResult("a", "double", 2, media=(picture,)), ToolResult("b", "double", 4))
    request = ChatAdapter(text_tools="hermes").format(
        Choose, {"question": "Q?", "tools": [DOUBLE]}, history=History([results]), capabilities=TEXT
    )
    first, image, second = request.messages[1].parts
    assert image == picture
    assert [isinstance(part, TextPart) and "<tool_response>" in part.text for part in (first, second)] == [True, True]


def test_unknown_text_form_is_refused_by_the_adapter() -> None:
    with pytest.raises(
        InputError, match=r"no text form of tools called 'hermès' .the option text_tools.. Choose one of"
    ):
        ChatAdapter(text_tools="hermès")


def test_the_former_name_of_the_taught_form_is_refused_with_the_present_name() -> None:
    with pytest.raises(InputError, match='"seed" is now "fenced"'):
        ChatAdapter(text_tools="seed")


@pytest.mark.parametrize("name", STYLES)
async def test_agent_uses_every_form_sync_and_async(name: str) -> None:
    style = STYLES[name]
    answers = [
        "Let me see.\n" + style.calls([ToolCall("", "double", {"n": 21})]),
        style.calls([ToolCall("", "submit", {"answer": 42})]),
    ]
    for sync in (True, False):
        lm = FakeLM(answers, capabilities=TEXT)
        agent = ReAct("question -> answer: int", tools=[double])
        agent.set_lm(lm)
        with context(adapter=ChatAdapter(text_tools=name)):
            result = agent(question="21?") if sync else await agent.acall(question="21?")
        assert (result.answer, result.termination_reason, result.warnings) == (42, "submit", ())
        assert result.steps[0].results[0].content == 42
        assert style.result(ToolResult("", "double", 42)) in lm.requests[1].messages[-1].text


# --- re-asking --------------------------------------------------------------------------------------------


WRONG = [
    (ToolCall("a", "double", {"n": "many"}), "schema_mismatch", "n: "),
    (ToolCall("a", "treble", {"n": 1}), "unknown_tool", "Unknown tool 'treble'"),
    (ToolCall.read("a", "double", '{"n": '), "malformed_json", "not valid JSON"),
]


@pytest.mark.parametrize(("wrong", "code", "message"), WRONG)
async def test_wrong_call_is_answered_by_an_error_result_of_its_id(wrong: ToolCall, code: str, message: str) -> None:
    for sync in (True, False):
        lm = FakeLM([wrong, ToolCall("b", "double", {"n": 2})], usage=Usage(10, 5))
        predict = Predict("q, tools: list[Tool] -> calls: ToolCalls", lm=lm, max_reasks=1)
        result = predict(q="?", tools=[double]) if sync else await predict.acall(q="?", tools=[double])
        assert [call.arguments for call in result.calls] == [{"n": 2}]
        assistant, answer = lm.requests[1].messages[-2:]
        assert assistant.tool_calls[0].id == "a"
        (sent,) = answer.tool_results
        assert (sent.id, sent.is_error) == ("a", True)
        assert message in str(sent.content)
        assert [(attempt.purpose, attempt.usage.total_tokens) for attempt in result.attempts] == [
            ("ask", 15),
            ("repair", 15),
        ]
        assert result.usage.total_tokens == 30


@pytest.mark.parametrize(("wrong", "code", "message"), WRONG)
def test_reasks_are_bounded_and_the_last_error_is_raised(wrong: ToolCall, code: str, message: str) -> None:
    lm = FakeLM([wrong] * 3)
    result = Predict("q, tools: list[Tool] -> calls: ToolCalls", lm=lm, max_reasks=2)(q="?", tools=[double])
    assert len(lm.requests) == 3
    assert result.calls[0].error.code == code
    assert result.calls[0].arguments == wrong.arguments


def test_wrong_calls_are_returned_without_reasks() -> None:
    lm = FakeLM([ToolCall("a", "double", {"n": "many"})])
    result = Predict("q, tools: list[Tool] -> calls: ToolCalls", lm=lm)(q="?", tools=[double])
    assert (result.calls[0].error, len(lm.requests)) == (None, 1)


@pytest.mark.parametrize(
    "wrong", [HERMES.replace("21", '"many"'), HERMES.replace("21", ""), HERMES.replace("double", "treble")]
)
def test_wrong_call_in_text_is_reasked_in_the_same_form(wrong: str) -> None:
    lm = FakeLM([wrong, HERMES], capabilities=TEXT)
    with context(adapter=ChatAdapter(text_tools="hermes")):
        result = Predict("q, tools: list[Tool] -> calls: ToolCalls", lm=lm, max_reasks=1)(q="?", tools=[double])
    assert result.calls[0].arguments == {"n": 21}
    assistant, answer = lm.requests[1].messages[-2:]
    assert assistant.text.startswith("<tool_call>")
    assert (answer.role, answer.text.startswith("<tool_response>")) == ("user", True)
    assert '"error"' in answer.text


# --- streaming ----------------------------------------------------------------------------------------


def test_text_reader_of_a_plan_reads_as_the_plan_does() -> None:
    plan = ChatAdapter(calls_alone=True).plan(Choose, NATIVE)
    reader = plan.text_reader([DOUBLE], taken=["call_0"])
    assert reader is not None
    for character in QWEN:
        reader.feed(character)
    reader.close()
    assert [(call.id, call.arguments) for call in reader.scan.calls] == [("call_1", {"n": 21})]
    assert plan.text_reader([]) is None
    assert ChatAdapter().plan(Choose, Capabilities(runs_own_tools=True)).text_reader([DOUBLE]) is None
    assert ChatAdapter().plan(Signature("q -> a")).text_reader([DOUBLE]) is None
