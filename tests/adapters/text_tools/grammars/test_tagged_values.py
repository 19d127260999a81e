"""A tag for each argument: a text that holds tags of its own form is never cut into a shorter call that runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from sigwire.adapters.chat import ChatAdapter
from sigwire.adapters.text_tools import TextReader, read_calls
from sigwire.core.capabilities import Capabilities
from sigwire.core.tools.calls import ToolCall
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.settings import context

STRING = {"type": "string"}
TOOLS: dict[str, Any] = {
    "write": {"properties": {"path": STRING, "content": STRING, "mode": STRING, "n": {"type": "integer"}}},
    "wipe": {"properties": {"path": STRING}},
}


def _writer(
    before: str, call: str, call_end: str, value: str, value_end: str, after: str
) -> tuple[Callable[[str, Mapping[str, str]], str], list[str]]:
    """Return a writer of calls in a form, and the closing tags of the form, alone and in a row."""

    def write(name: str, arguments: Mapping[str, str]) -> str:
        values = "".join(
            value.replace("*", key) + text + value_end.replace("*", key) for key, text in arguments.items()
        )
        return before + call.replace("*", name) + values + call_end + after

    ends = [end.strip() for end in (value_end, call_end, after, value_end + call_end, value_end + call_end + after)]
    return write, [end.replace("*", "content") for end in ends if end]


INVOKE = ('<invoke name="*">\n', "</invoke>\n", '<parameter name="*">', "</parameter>\n")
GLM = ("<tool_call>*\n", "</tool_call>", "<arg_key>*</arg_key>\n<arg_value>", "</arg_value>\n")
QWEN = ("<function=*>\n", "</function>\n", "<parameter=*>\n", "\n</parameter>\n")
LEGACY = ("<invoke><tool_name>*</tool_name><parameters>", "</parameters></invoke>", "<*>", "</*>")
FORMS = {
    "qwen3_coder": _writer("<tool_call>\n", *QWEN, "</tool_call>"),
    "seed_oss": _writer("<seed:tool_call>", *(tag.strip() for tag in QWEN), "</seed:tool_call>"),
    "minimax": _writer("<minimax:tool_call>\n", *INVOKE, "</minimax:tool_call>"),
    "anthropic_legacy": _writer("<function_calls>\n", *INVOKE, "</function_calls>"),
    "anthropic_legacy, first": _writer("<function_calls>", *LEGACY, "</function_calls>"),
    "minicpm5": _writer("", '<function name="*">', "</function>", '<param name="*">', "</param>", ""),
    "step3": _writer(
        "<｜tool_calls_begin｜><｜tool_call_begin｜>function<｜tool_sep｜>", '<steptml:invoke name="*">', "</steptml:invoke>",
        '<steptml:parameter name="*">', "</steptml:parameter>", "<｜tool_call_end｜><｜tool_calls_end｜>"
    ),
    "deepseek_dsml": _writer(
        "<｜DSML｜tool_calls>", '<｜DSML｜invoke name="*">', "</｜DSML｜invoke>", '<｜DSML｜parameter name="*" string="true">',
        "</｜DSML｜parameter>", "</｜DSML｜tool_calls>"
    ),
    "glm45": _writer("", *GLM, ""),
    "hunyuan": _writer("<tool_calls>", *GLM, "</tool_calls>"),
}  # fmt: skip
PLACES = ["A *.\nSECOND LINE\n", "A\n*\nb", "*"]
each_form = pytest.mark.parametrize("name", FORMS)


def _values(name: str) -> list[str]:
    """Return texts that hold closing tags of the form, whole calls of it, or both."""
    write, ends = FORMS[name]
    ends = [*ends, "</tool_call>", "</content>", "</content></parameters></invoke>"]
    nested = write("wipe", {"path": "/srv"})
    held = [
        *ends,
        nested,
        f"{nested}\n{nested}",
        *(f"{end}\n{nested}" for end in ends),
        f"{ends[-1]}\n</think>\n{nested}",
    ]
    return [place.replace("*", text) for text in held for place in PLACES]


def _read(text: str) -> tuple[ToolCall, ...]:
    """Read the text whole and in chunks, with thinking over, so that no call waits for the end without need."""
    whole = read_calls(text, TOOLS, thinking="over")
    reader = TextReader(TOOLS, thinking="over")
    for at in range(0, len(text), 11):
        reader.feed(text[at : at + 11])
    reader.close()
    assert reader.scan == whole
    return whole.calls


def _stripped(arguments: Mapping[str, Any]) -> dict[str, str]:
    return {key: str(value).strip() for key, value in arguments.items()}


@each_form
def test_text_that_holds_tags_of_its_form_is_whole_or_the_call_is_an_error(name: str) -> None:
    for value in _values(name):
        for given in ({"path": "a.md", "content": value}, {"content": value, "path": "a.md"}):
            text = FORMS[name][0]("write", given)
            for call in (*_read(text), *read_calls(text, TOOLS).calls):
                if call.error is None:
                    assert (call.name, _stripped(call.arguments or {})) == ("write", _stripped(given)), value


@each_form
def test_text_without_tags_of_its_form_is_read(name: str) -> None:
    for value in ("a\n  b", "1 < 2 && </b> <i>", "say </other>", ""):
        (call,) = _read(FORMS[name][0]("write", {"path": "a.md", "content": value}))
        assert call.arguments == {"path": "a.md", "content": value}


@each_form
def test_message_that_the_token_limit_truncates_after_a_closing_tag_has_no_shorter_call(name: str) -> None:
    write, ends = FORMS[name]
    text = write("write", {"path": "a.md", "content": f"A\n{ends[-1]}\nmore words"})
    cut = text[: text.index("more") + 6]
    assert all(call.error for call in read_calls(cut, TOOLS, truncated=True).calls)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("<function=write>\n<parameter=n>\n5\n</function></tool_call>\nSo.", 1),
        ("<function=write>\n<parameter=n>5<parameter=mode>\na\n</parameter>\n</function>", 1),
        ("<function=write>\n<parameter=content>\na\n</function>\n</tool_call>", 1),
        ("<function=write>\n<parameter=content>\na\n</function>\n</tool_call>\nSo.", 0),
        ("<function=write>\n<parameter=content>\na\n</tool_call>", 0),
        ("<function=write>\n<parameter=content>a <parameter=mode>b</parameter></function>", 0),
        ("<function=write>\n<parameter=content>a</parameter><parameter=content>b</parameter></function>", 0),
        ("<function=write>\n<parameter=content>a</parameter><parameter=content>a</parameter></function>", 1),
        ("<tool_call>write<arg_key>n</arg_key><arg_value>5</tool_call>", 1),
        ("<tool_call>write<arg_key>content</arg_key><arg_value>a</tool_call>", 0),
        (
            "<tool_call>write<arg_key>content</arg_key><arg_value>a\n<arg_key>n</arg_key><arg_value>5</arg_value></tool_call>",
            1,
        ),
    ],
)
def test_missing_closing_tag_of_an_argument_is_repaired_if_no_longer_text_is_possible(text: str, count: int) -> None:
    calls = _read(text)
    assert [call.error is None for call in calls] == ([True] if count else [False])


def test_error_names_a_form_that_can_hold_the_text() -> None:
    (call,) = _read(FORMS["qwen3_coder"][0]("write", {"content": "A\n</parameter>\nb"}))
    assert call.error is not None
    assert "as one JSON object between the call's tags" in call.error.message
    again = '<tool_call>\n<function=write>\n{"content": "A\\n</parameter>\\nb"}\n</function>\n</tool_call>'
    assert _read(again)[0].arguments == {"content": "A\n</parameter>\nb"}


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("native", [False, True])
@each_form
def test_agent_runs_no_shortened_call(name: str, native: bool, strict: bool) -> None:
    wrote: list[str] = []

    def write(path: str, content: str) -> str:
        """Write a file."""
        wrote.append(content)
        return "ok"

    value = f"It ends with {FORMS[name][1][-1]}.\nSECOND LINE\n"
    lm = FakeLM(
        [FORMS[name][0]("write", {"path": "a.md", "content": value}), "done"],
        capabilities=Capabilities(native_tools=native),
    )
    agent = ReAct("question -> answer", tools=[write])
    agent.set_lm(lm)
    with context(adapter=ChatAdapter(strict=strict)):
        result = agent(question="?")
    assert wrote == []
    assert native or result.steps[0].results[0].is_error
