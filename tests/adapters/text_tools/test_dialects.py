"""The dialects as a table: one form of each, repairs, errors, and a custom dialect."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest

from sigwire.adapters.text_tools import (
    CallBlock,
    Grammar,
    ScanResult,
    ToolCatalog,
    dialects,
    read_calls,
    register,
    registry,
)
from sigwire.adapters.text_tools.cursor import Cursor, Wait
from sigwire.adapters.text_tools.grammars.tagged_json import read_named_call, tagged_json
from sigwire.adapters.text_tools.json_calls import ClosingMarkers
from sigwire.errors import InputError

TOOLS: dict[str, Any] = {
    "add": {"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}},
    "say": {"type": "object", "properties": {"text": {"type": "string"}}},
}
OBJECT = '{"name": "add", "arguments": {"a": 1, "b": 2}}'
PARAMETERS = '{"name": "add", "parameters": {"a": 1, "b": 2}}'
PAIR = '{"a": 1, "b": 2}'
XML = '<invoke name="add">\n<parameter name="a">1</parameter>\n<parameter name="b">2</parameter>\n</invoke>'
STEP = XML.replace("invoke", "steptml:invoke").replace("parameter", "steptml:parameter")

FORMS = [
    ("fenced", f"~~~tool_call\n{OBJECT}\n~~~"),
    ("fenced", f"```tool_call\n{OBJECT}\n```"),
    ("hermes", f"<tool_call>\n{OBJECT}\n</tool_call>"),
    ("hermes", f'<tool_call>\n{{"type": "function", "function": {OBJECT}}}\n</tool_call>'),
    ("granite", f"<|tool_call|> [{OBJECT}]"),
    ("granite", f"<function_call> {OBJECT}"),
    ("phi4", f"functools[{OBJECT}]"),
    ("internlm", f"<|action_start|><|plugin|>{PARAMETERS}<|action_end|>"),
    ("jamba", f"<tool_calls>[{OBJECT}]</tool_calls>"),
    ("nemotron", f"<TOOLCALL>[{OBJECT}]</TOOLCALL>"),
    ("command_r", f"<|START_ACTION|>[{OBJECT.replace('name', 'tool_name')}]<|END_ACTION|>"),
    ("command_r", f"Action:\n```json\n[{OBJECT.replace('name', 'tool_name')}]\n```"),
    ("apertus", f'<|tools_prefix|>[{{"add": {PAIR}}}]<|tools_suffix|>'),
    ("mistral_old", f"[TOOL_CALLS] [{OBJECT}]"),
    ("mistral_v11", f"[TOOL_CALLS]add[CALL_ID]abc[ARGS]{PAIR}"),
    ("mistral_v11", f"TOOL_CALLS]add[ARGS]{PAIR}"),
    ("deepseek_v3", f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>add\n```json\n{PAIR}\n```<｜tool▁call▁end｜>"),
    ("deepseek_v31", f"<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>add<｜tool▁sep｜>{PAIR}<｜tool▁call▁end｜>"
                     "<｜tool▁calls▁end｜>"),
    ("deepseek_v31", f"<|tool_call_begin|>add<|tool_sep|>{PAIR}<|tool_call_end|>"),
    ("kimi_k2", f"<|tool_call_begin|>functions.add:0<|tool_call_argument_begin|>{PAIR}<|tool_call_end|>"),
    ("functionary", f"<function=add>{PAIR}</function>"),
    ("functionary", f"add\n{PAIR}"),
    ("functionary", f">>>add\n{PAIR}"),
    ("functionary", f"add[ARGS]{PAIR}"),
    ("qwen3_coder", "<tool_call>\n<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=b>\n2\n</parameter>\n"
                    "</function>\n</tool_call>"),
    ("qwen3_coder", "<seed:tool_call><function=add><parameter=a>1</parameter><parameter=b>2</parameter></function>"
                    "</seed:tool_call>"),
    ("glm45", "<tool_call>add\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n<arg_key>b</arg_key>"
              "<arg_value>2</arg_value></tool_call>"),
    ("glm45", "<tool_calls>\n<tool_call>add<tool_sep>\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n<arg_key>b</arg_key>\n"
              "<arg_value>2</arg_value>\n</tool_call>\n</tool_calls>"),
    ("hermes", f"<tool_calls>\n<tool_call>\n{OBJECT}\n</tool_call>\n</tool_calls>"),
    ("qwen3_coder", "<tool_calls><tool_call><function=add><parameter=a>1</parameter><parameter=b>2</parameter></function>"
                    "</tool_call></tool_calls>"),
    ("step3", f"<｜tool_calls_begin｜>\n<｜tool_call_begin｜>function<｜tool_sep｜>{STEP}<｜tool_call_end｜>\n"
              "<｜tool_calls_end｜>"),
    ("step3", f"<|tool_call_begin|>function<|tool_sep|>\n{STEP}"),
    ("step3", STEP),
    ("minimax", f"<minimax:tool_call>\n{XML}\n</minimax:tool_call>"),
    ("anthropic_legacy", f"<function_calls>\n{XML}\n</function_calls>"),
    ("anthropic_legacy", "<function_calls><invoke><tool_name>add</tool_name><parameters><a>1</a><b>2</b></parameters>"
                         "</invoke></function_calls>"),
    ("minicpm5", '<function name="add"><param name="a">1</param><param name="b"><![CDATA[2]]></param></function>'),
    ("deepseek_dsml", '<｜DSML｜tool_calls><｜DSML｜invoke name="add"><｜DSML｜parameter name="a" string="false">1'
                      '</｜DSML｜parameter><｜DSML｜parameter name="b" string="false">2</｜DSML｜parameter></｜DSML｜invoke>'
                      "</｜DSML｜tool_calls>"),
    ("llama4_pythonic", "<|python_start|>[add(a=1, b=2)]<|python_end|>"),
    ("lfm2", "<|tool_call_start|>[add(a=1, b=2)]<|tool_call_end|>"),
    ("llama3_json", f"<|python_tag|>{PARAMETERS}<|eom_id|>"),
    ("llama3_json", "<|python_tag|>add.call(a=1, b=2)"),
    ("gemma", "```tool_code\nprint(default_api.add(a=1, b=2))\n```"),
    ("gemma", "<start_function_call>call:add{a:1,b:2}<end_function_call>"),
    ("gemma", "<|tool_call>call:add{a:1,b:2}<tool_call|>"),
    ("harmony", f"<|channel|>commentary to=functions.add <|constrain|>json<|message|>{PAIR}<|call|>"),
    ("harmony", f"<|start|>assistant to=functions.add<|channel|>commentary<|message|>{PAIR}<|call|>"),
    ("bare_json", OBJECT),
    ("bare_json", f"[{OBJECT}]"),
    ("bare_json", f"```json\n{OBJECT}\n```"),
    ("bare_json", f"~~~json\n{OBJECT}\n~~~"),
    ("pythonic", "[add(a=1, b=2)]"),
]  # fmt: skip


@pytest.mark.parametrize(("dialect", "form"), FORMS)
def test_form_is_read_alone_after_prose_and_after_thinking(dialect: str, form: str) -> None:
    for before, after in product(["", "One moment.\n", "<think>\nadd?\n</think>\n"], ["", "\n", "<|im_end|>"]):
        found = read_calls(before + form + after, TOOLS)
        assert [(call.name, call.arguments, call.error) for call in found.calls] == [("add", {"a": 1, "b": 2}, None)]
        assert (found.dialect, found.text) == (dialect, before.strip())


@pytest.mark.parametrize(("dialect", "form"), FORMS)
def test_form_is_no_call_when_quoted_or_thought(dialect: str, form: str) -> None:
    quotations = [
        "> " + form.replace("\n", "\n> ") + "\nis how it looks.",
        f"~~~~\n{form}\n~~~~\nis how it looks.",
        f"````text\n{form}\n````\nis how it looks.",
        f"<think>I could write\n{form}\nbut need not.</think>No.",
        f"I could write\n{form}\nbut need not.</think>No.",
    ]
    if "\n" not in form and "`" not in form:
        quotations.append(f"It is `{form}`")
    for text in quotations:
        found = read_calls(text, TOOLS)
        assert (found.calls, found.text) == ((), text)


@pytest.mark.parametrize(("dialect", "form"), FORMS)
def test_form_of_an_unknown_tool_is_no_call(dialect: str, form: str) -> None:
    if dialect != "fenced":  # the form that the prompt teaches passes unknown names on, for the loop to answer
        assert all(call.error for call in read_calls(form, {"ad": {}, "Add": {}, "add_": {}}).calls)


@pytest.mark.parametrize(("dialect", "form"), FORMS)
def test_truncated_form_is_no_call_with_fewer_arguments(dialect: str, form: str) -> None:
    for cut in range(len(form)):
        for call in read_calls(form[:cut], TOOLS).calls:
            assert call.arguments in (None, {"a": 1, "b": 2}), form[:cut]


@pytest.mark.parametrize(("dialect", "form"), FORMS)
def test_form_is_read_twice(dialect: str, form: str) -> None:
    if dialect in ("bare_json", "pythonic", "functionary") and form[0] in "[a>~":
        return  # one list, or one line, is the whole message
    found = read_calls(f"{form}\n{form}", TOOLS)
    assert [call.arguments for call in found.calls] == [{"a": 1, "b": 2}] * 2
    assert found.text == ""


@pytest.mark.parametrize(
    ("text", "code", "name"),
    [
        ('<tool_call>{"name": "sub", "arguments": {}}</tool_call>', "unknown_tool", "sub"),
        ('<tool_call>{"arguments": {}}</tool_call>', "malformed_json", "tool_call"),
        ('<tool_call>{"name": "add", "arguments": [1]}</tool_call>', "not_an_object", "add"),
        ('<tool_call>{"name": "add", "arguments": "one"}</tool_call>', "malformed_json", "add"),
        ('<tool_call>{"name": "add", "arguments": {"a": 1, "a": 2}}</tool_call>', "malformed_json", "add"),
        ('<tool_call>{"name": "add", "arguments": {"a": 1e999}}</tool_call>', "malformed_json", "add"),
        ('<tool_call>{"name": "add", "arguments": {"a": }}</tool_call>', "malformed_json", "add"),
        ('<tool_call>{"name": "add", "arguments": {"a": 1', "malformed_json", "add"),
        ("<tool_call><function=add><parameter=a>1</parameter>", "malformed_json", "add"),
        ("<tool_call>add<arg_key>a</arg_key><arg_value>1", "malformed_json", "add"),
        ("<|python_start|>[add(a=__import__('os'))]<|python_end|>", "malformed_json", "add"),
        ("<|python_start|>[add(a=f'{1}')]<|python_end|>", "malformed_json", "add"),
        ("<|tool_call>call:add{a:rm -rf}<tool_call|>", "malformed_json", "add"),
        ("<|channel|>commentary to=functions.add<|message|>one<|call|>", "malformed_json", "add"),
        ("<|channel|>commentary to=functions.add<|message|>", "malformed_json", "add"),
        ("[add(a=1), add(a=x)]", "malformed_json", "add"),
    ],
)
def test_unreadable_call_has_an_error_for_the_model(text: str, code: str, name: str) -> None:
    call = read_calls(text, TOOLS).calls[-1]
    assert call.arguments is None
    assert call.error is not None
    assert (call.error.code, call.name) == (code, name)
    assert call.error.message.endswith(("again.", "say."))


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ('<tool_call>{"name": "add", "arguments": {"a": 1,}}</tool_call>', "trailing comma"),
        ('<tool_call>{"name": "add", "arguments": {"a": 1}</tool_call>', "bracket was added"),
        ('<tool_call>{"name": "add", "arguments": {"a": 1}}}</tool_call>', "bracket too many"),
        ('<tool_call>{"name": "add", "arguments": {"a": 1}}', "closing marker"),
        ('{"name": "add", "arguments": {"a": 1}}</tool_call>', "opening marker"),
        (
            "<tool_call><function=add><parameter=a>1<parameter=b>2</parameter></function></tool_call>",
            "argument was missing",
        ),
    ],
)
def test_repair_of_a_dialect_is_noted_and_an_error_when_strict(text: str, note: str) -> None:
    lenient, strict = read_calls(text, TOOLS), read_calls(text, TOOLS, strict=True)
    assert lenient.calls[0].error is None
    assert any(note in what for what in lenient.notes)
    assert strict.calls[0].error is not None
    assert note in strict.calls[0].error.message


def test_ids_of_the_model_are_kept_unless_taken() -> None:
    text = f"[TOOL_CALLS]add[CALL_ID]abc[ARGS]{PAIR}[TOOL_CALLS]add[CALL_ID]abc[ARGS]{PAIR}"
    assert [call.id for call in read_calls(text, TOOLS).calls] == ["abc", "call_0"]
    assert [call.id for call in read_calls(text, TOOLS, taken=["abc", "call_0"]).calls] == ["call_1", "call_2"]


def test_a_marked_call_makes_weak_ones_text() -> None:
    found = read_calls(f"<tool_call>{OBJECT}</tool_call>\n{OBJECT}", TOOLS)
    assert (len(found.calls), found.text) == (1, OBJECT)


def test_results_that_the_model_invents_are_removed() -> None:
    found = read_calls(f"<tool_call>{OBJECT}</tool_call>\n<tool_response>3</tool_response>\nIt is 3.", TOOLS)
    assert (len(found.calls), found.text) == (1, "")
    assert "results that the model invented" in found.notes[0]


def test_marks_around_an_answer_are_removed() -> None:
    assert read_calls("<|START_RESPONSE|>Hello<|END_RESPONSE|>", TOOLS).text == "Hello"
    found = read_calls("<|channel|>analysis<|message|>hm<|end|><|start|>assistant<|channel|>final<|message|>Hi", TOOLS)
    assert (found.text, found.reasoning, found.dialect) == ("Hi", "hm", None)


def test_strings_of_a_json_answer_are_quotation() -> None:
    text = '{"answer": "<tool_call>say</tool_call>", "more": ["[TOOL_CALLS]say{}"]}'
    assert read_calls(text, TOOLS).calls == ()
    assert len(read_calls(f"{text}\n<tool_call>say</tool_call>", TOOLS).calls) == 1


@pytest.mark.parametrize("marker", ["<tool_call>", "[TOOL_CALLS]", "<|python_start|>", "functools"])
def test_a_marker_after_a_backslash_is_text(marker: str) -> None:
    text = f"\\{marker}[{OBJECT}]"
    assert read_calls(text, TOOLS).calls == ()
    assert read_calls(text, TOOLS).text == text


@pytest.mark.parametrize("text", ["Sure. {}", "{}\nDone.", "{}", "<think>hm</think>\n{}", "hm</think>\n{}\n"])
def test_calls_with_other_text_are_text_when_whole_message_is_set(text: str) -> None:
    message = text.format(f"<tool_call>{OBJECT}</tool_call>")
    found = read_calls(message, TOOLS, whole_message=True)
    if text in ("Sure. {}", "{}\nDone."):
        assert (found.calls, found.text) == ((), message)
    else:
        assert len(found.calls) == 1


# --- a custom dialect ----------------------------------------------------------------------------


@pytest.fixture
def clean_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_registered", registry._registered)


def at_sign(cursor: Cursor, opener: str, catalog: ToolCatalog) -> Wait[CallBlock | None]:
    """``@@NAME {...}``."""
    for name in catalog.tools:
        if (yield from cursor.accept(name)):
            yield from cursor.skip_space()
            if (yield from cursor.peek()) == "{":
                return (yield from read_named_call(cursor, name, catalog, ClosingMarkers()))
    return None


@pytest.mark.usefixtures("clean_registry")
def test_registered_dialect_is_read_and_can_be_replaced() -> None:
    text = f"See @@add, as in `@@add {PAIR}`.\n@@add {PAIR}"
    assert read_calls(text, TOOLS).calls == ()
    register(Grammar("at", ("@@",), at_sign))
    found = read_calls(text, TOOLS)
    assert [call.arguments for call in found.calls] == [{"a": 1, "b": 2}]
    assert (found.dialect, found.text) == ("at", f"See @@add, as in `@@add {PAIR}`.")
    register(tagged_json("at", ["@@"]))
    assert read_calls(text, TOOLS).calls == ()
    assert [grammar.name for grammar in dialects()].count("at") == 1


@pytest.mark.usefixtures("clean_registry")
def test_registered_dialect_needs_a_new_name_and_openers() -> None:
    with pytest.raises(InputError, match="'hermes' is built in"):
        register(tagged_json("hermes", ["<call>"]))
    with pytest.raises(InputError, match="no openers"):
        register(Grammar("mine", (), at_sign))


def test_results_of_a_custom_dialect_are_not_read_for_calls() -> None:
    mine = [tagged_json("mine", ["<call>"], ["</call>"], stops=["<came>"])]
    call = f"<call>{OBJECT}</call>"
    invented, repeated = f"{call}\n<came>3\n{call}", f"<came>3\n{call}"
    found = read_calls(invented, TOOLS, grammars=mine)
    assert ([one.arguments for one in found.calls], found.text) == ([{"a": 1, "b": 2}], "")
    assert read_calls(repeated, TOOLS, grammars=mine) == ScanResult(repeated)


def test_only_the_given_dialects_are_read() -> None:
    hermes = [grammar for grammar in dialects() if grammar.name == "hermes"]
    assert len(read_calls(f"<tool_call>{OBJECT}</tool_call>", TOOLS, grammars=hermes).calls) == 1
    assert read_calls(f"[TOOL_CALLS] [{OBJECT}]", TOOLS, grammars=hermes).calls == ()
