"""Texts in chunks: the text emitted at once, the text held, no revoked event; and hostile texts."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.adapters.text_tools import ScanResult, TextReader, ToolCatalog, dialects, read_calls
from sigwire.adapters.text_tools.scan.marks import ECHOES
from sigwire.core.events import ReasoningDelta, TextDelta, ToolCallEnd

TOOLS: dict[str, Any] = {"ping": {"properties": {"a": {"type": "string"}, "n": {"type": "integer"}}}, "add": {}}
CALL = '<tool_call>{"name": "ping", "arguments": {"a": "x"}}</tool_call>'


def steps(text: str, **options: Any) -> list[str]:
    """Return the output of each character, calls as their names in brackets; the last item is the output of the end."""
    reader = TextReader(TOOLS, **options)
    return ["".join(map(shown, reader.feed(character))) for character in text] + ["".join(map(shown, reader.close()))]


def shown(event: TextDelta | ReasoningDelta | ToolCallEnd) -> str:
    return f"({event.call.name})" if isinstance(event, ToolCallEnd) else event.text


def scan(chunks: Any, **options: Any) -> ScanResult:
    reader = TextReader(TOOLS, **options)
    for chunk in chunks:
        reader.feed(chunk)
    reader.close()
    return reader.scan


@pytest.mark.parametrize(
    "text",
    [
        "It is mild; 3 of 3 done. (See [the list] and *this*.)",
        "Let me explain: a - b, x = y {z}",
        "```python\nresults = get(1)\nfor x in results:\n    print(x)\n```",
        "> quoted words\n\nand others",
        '{"answer": "a long text that is an answer", "n": [1, 2]}',
        "Use `x = 1` and `y`, then go on",
        "[[ ## answer ## ]]\nParis\n",
    ],
)
def test_reader_emits_prose_without_delay(text: str) -> None:
    """Only a few characters are held at any time: space, and text that can still become a mark."""
    out, waiting = "", 0
    for number, emitted in enumerate(steps(text), 1):
        out += emitted
        waiting = max(waiting, min(number, len(text)) - len(out))
    assert out == text
    assert waiting <= 10


def test_reader_holds_a_possible_marker() -> None:
    assert steps("x <tool_b") == ["x", "", "", "", "", "", "", "", " <tool_b", ""]


def test_reader_emits_a_call_at_its_end_without_markup() -> None:
    emitted = steps(f"Hi {CALL} there", thinking="over")
    assert "".join(emitted) == "Hi(ping) there"
    assert emitted.index("(ping)") == len(f"Hi {CALL}") - 1


def test_calls_wait_for_the_end_while_thinking_is_unknown() -> None:
    emitted = steps(f"Hi {CALL}")
    assert (emitted[-1], "".join(emitted)) == ("(ping)", "Hi(ping)")


def test_calls_are_emitted_at_once_after_a_thinking_block() -> None:
    text = f"<think>hm</think>{CALL}"
    assert steps(text)[len(text) - 1] == "(ping)"


def test_call_in_a_thought_is_text_only_when_the_thought_ends() -> None:
    assert "".join(steps(f"<think>{CALL} no</think>ok")) == f"<think>{CALL} no</think>ok"
    assert "".join(steps(f"{CALL} no</think>ok")) == f"{CALL} no</think>ok"
    assert "".join(steps(f"<think>so {CALL}")) == "<think>so(ping)"
    assert scan([f"so {CALL}"], thinking="open").calls[0].name == "ping"
    assert scan([f"so {CALL}</think>"], thinking="open").calls == ()


def test_thinking_tags_inside_a_call_end_no_thought() -> None:
    text = '<think>\n<tool_call>{"name": "ping", "arguments": {"a": "</think>"}}</tool_call>'
    assert [call.arguments for call in scan(text).calls] == [{"a": "</think>"}]


def test_broken_call_in_a_thought_stops_at_the_end_of_the_thought() -> None:
    for before in ("<think>", ""):
        text = f'{before}maybe <tool_call>{{"name": "pi</think>{CALL}'
        assert [call.arguments for call in scan(text).calls] == [{"a": "x"}]


def test_weak_call_waits_and_is_text_when_text_follows() -> None:
    call = '{"name": "ping", "arguments": {"a": "x"}}'
    emitted = steps(f"Sure.\n{call}\nDone.")
    assert "".join(emitted) == f"Sure.\n{call}\nDone."
    assert emitted[6:48] == [""] * 42
    assert "".join(steps(f"Sure.\n{call}")) == "Sure.(ping)"


@pytest.mark.parametrize(
    "answer", ['{"name": "Alice", "age": 3}', '{"city": 1}', "[1, 2]", "{x}", "[add(x) for x in y]"]
)
def test_reader_emits_json_that_is_no_call_without_delay(answer: str) -> None:
    emitted = steps(f"{answer} {'and so on ' * 3}")
    assert any(emitted[: len(answer) + 1])


def test_reader_emits_the_reasoning_of_a_dialect_as_reasoning() -> None:
    reader = TextReader(TOOLS)
    events = [
        event
        for c in "<|channel|>analysis<|message|>hm<|end|><|channel|>final<|message|>Hi"
        for event in reader.feed(c)
    ]
    events += reader.close()
    assert "".join(event.text for event in events if isinstance(event, ReasoningDelta)) == "hm"
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Hi"


def test_calls_get_free_ids_in_order() -> None:
    reader = TextReader(TOOLS, thinking="over", taken=["call_0"])
    ends = [event for event in [*reader.feed(f"{CALL}\n{CALL}"), *reader.close()] if isinstance(event, ToolCallEnd)]
    assert [(event.index, event.call.id) for event in ends] == [(0, "call_1"), (1, "call_2")]


def test_everything_is_text_without_tools() -> None:
    reader = TextReader([])
    assert [event.text for event in reader.feed(CALL) if isinstance(event, TextDelta)] == [CALL]
    assert reader.close() == []
    assert reader.scan == ScanResult(CALL)


def test_reader_drops_text_after_invented_results() -> None:
    text = f"{CALL}\n<tool_response>1</tool_response>\nIt is 1. {CALL}"
    assert "".join(steps(text, thinking="over")) == "(ping)"


# --- any text ---------------------------------------------------------------------------------------------

MARKS = sorted({opener for grammar in dialects() for opener in (*grammar.openers, *grammar.closers, *grammar.stops)})
RESULTS = sorted({mark for opener, closers in ECHOES.items() for mark in (opener, *closers)})
PAYLOADS = [
    '{"name": "ping", "arguments": {"a": "x"}}', '{"name": "ping", "arguments": {"a": "', '[{"name": "ping"', "ping", "ping\n",
    '{"a": "x"}', "{", "}", "[", "]", "(", ")", '"', "'", "\\", "`", "```", "```json\n", "~~~", "\n", "\n\n", " ", ">", "=",
    "ping(a='x')", "[ping(a='x')]", "[ping(a=", "<parameter=a>", "</parameter>", "<parameter name=\"a\">", '"ping">',
    "<arg_key>a</arg_key><arg_value>x</arg_value>", "call:ping{a:<escape>x<escape>}", "functions.ping:0",
    "<|tool_call_argument_begin|>", "<|message|>", "commentary to=functions.ping", "final", "<think>", "</think>", "[/THINK]",
    "<｜tool▁sep｜>", "function<｜tool▁sep｜>ping\n```json\n", "<tool_name>ping</tool_name>", "<parameters>", "[ARGS]",
    f"{CALL}\n", "~~~tool_call\n{\"name\": \"ping\"}\n~~~\n", "[[ ## a ## ]]", "[[##completed##]]", "<a>",
    "</a>", "“", "”", "<|im_end|>", "</s>", "> ", "Action:", "print(", "\ud83d", "é", "\x00", "_", "x", "1e999", ".call",
    "\r\n",
]  # fmt: skip
soups = st.lists(st.sampled_from(MARKS) | st.sampled_from(RESULTS) | st.sampled_from(PAYLOADS), max_size=14).map(
    "".join
)


@given(
    soups,
    st.sampled_from(["unknown", "open", "over"]),
    st.booleans(),
    st.sampled_from([False, True, "families", "fences"]),
    st.booleans(),
    st.data(),
)
def test_any_mix_of_marks_is_read_the_same_at_every_cut(
    text: str, thinking: Any, strict: bool, alone: Any, truncated: bool, data: st.DataObject
) -> None:
    catalog = ToolCatalog.of(TOOLS, strict=strict, output="calls", fields={"<a>": "</a>"})
    options: dict[str, Any] = {"thinking": thinking, "whole_message": alone}
    cut = data.draw(st.integers(0, len(text)))
    whole = read_calls(text, catalog, truncated=truncated, **options)
    for chunks in ([text], text, [text[:cut], text[cut:]]):
        reader = TextReader(catalog, **options)
        for chunk in chunks:
            reader.feed(chunk)
        reader.close(truncated=truncated)
        assert reader.scan == whole


@given(soups)
def test_calls_in_any_mix_of_marks_are_declared_or_have_errors(text: str) -> None:
    found = read_calls(text, TOOLS)
    for call in found.calls:
        assert (call.arguments is None) == (call.error is not None)
        assert call.error or call.name in TOOLS or '"name"' in text
    assert found.calls or found.notes == ()


@given(st.text(max_size=40), st.sampled_from(MARKS), st.text(max_size=40))
def test_any_text_around_a_marker_raises_no_exception(before: str, mark: str, after: str) -> None:
    text = before + mark + after
    assert scan(text) == scan([text])


@given(st.text(max_size=80))
def test_text_without_marks_is_unchanged(text: str) -> None:
    if not any(mark in text for mark in ("<", "[", "{", "|", "to=", "TOOL", "functools")):
        assert scan(text).text == text


def test_header_has_one_limit_for_whole_and_cut_texts() -> None:
    for length in (100, 199, 200, 201, 1500):
        text = f"<|channel|>{'9' * length} to=functions.ping<|message|>{{}}<|call|>"
        assert scan(text) == scan([text]), length


# --- bounded ------------------------------------------------------------------------------------------------

HOSTILE = [
    *(mark + end for mark in MARKS[::3] for end in ("", "\n", "ping\n")),
    '<tool_call>{"name": "ping", "arguments": {"a": "', "<tool_call>{'a': '", "<tool_call>[{", "[" * 8, "{" * 8,
    '\n{"name": "ping"',
    '\n{"name": "ping", "arguments": {"a": "x"}}', "\n[ping(a=", "\n[ping(a='", "<function=ping><parameter=a>",
    "<tool_call>ping<arg_key>a</arg_key><arg_value>", "<function_calls><invoke><tool_name>ping</tool_name><parameters><a>",
    "<|tool_call>call:ping{a:<escape>", "<|channel|>commentary to=functions.ping<|message|>", "<|channel|>final<|message|>",
    "```json\n", "\n```json\n{}\n```\n", "\n```tool_code\nping()\n", "~~~~\n", "`" * 12 + "\n", "`<tool_call>", "<think>",
    "</think>", "<think><tool_call>{", "\n> ~~~tool_call", "<|im_end|>", '\\"', "\n" + " " * 12, "~~~tool_call\n",
]  # fmt: skip


def work(text: str, size: int) -> int:
    """Count the calls of functions during a scan. A quadratic reader would square the count."""
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    chunks = [text[at : at + size] for at in range(0, len(text), size)]
    sys.setprofile(count)
    try:
        scan(chunks)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize(
    ("head", "tail"),
    [
        ("", ""),
        pytest.param("<think>", "x", marks=pytest.mark.long),
        pytest.param("", "</think>", marks=pytest.mark.long),
    ],
)
@pytest.mark.long
def test_hostile_texts_are_read_in_linear_work(head: str, tail: str) -> None:
    scan("<")  # the grammars are compiled once
    for chunk in HOSTILE:
        for size in (100_000, 5):
            small, large = (work(head + chunk * count + tail, size) for count in (30, 60))
            assert large < 2.6 * small + 300, (chunk, size, small, large)


@pytest.mark.parametrize("opening", ['{"a": ', "[", "{a: {", "[ping(a=["])
@pytest.mark.parametrize("before", ["<tool_call>", "<|python_start|>", "<|tool_call>call:ping", ""])
def test_depth_of_nesting_is_bounded(before: str, opening: str) -> None:
    for call in scan([before + opening * 50_000]).calls:
        assert call.arguments is None


def test_reader_drops_text_after_its_emission() -> None:
    reader = TextReader(TOOLS)
    for _ in range(400):
        reader.feed("Some words, a `code` and 1 < 2.\n")
    assert len(reader._scanner.cursor.text) < 10_000
