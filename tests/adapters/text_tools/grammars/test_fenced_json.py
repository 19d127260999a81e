"""The taught form: calls, errors, quotation and linear work."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sigwire.adapters.text_tools import TextReader, read_calls
from sigwire.adapters.text_tools.render import instructions, schema_text, tool_line
from sigwire.adapters.text_tools.styles import TAUGHT
from sigwire.core.tools.calls import ToolCall, ToolResult

PING = '~~~tool_call\n{"name": "ping", "arguments": {}}\n~~~'
NAMES = {"ping", "add"}

json_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.lists(
        st.tuples(st.text(min_size=1), st.dictionaries(st.text(), json_values, max_size=3)), min_size=1, max_size=4
    )
)
def test_written_calls_are_read_back(calls: list[tuple[str, dict[str, Any]]]) -> None:
    text = TAUGHT.calls([ToolCall("", name, arguments) for name, arguments in calls])
    found = read_calls(text, NAMES)
    assert [(call.name, call.arguments, call.error) for call in found.calls] == [(*call, None) for call in calls]
    assert found.text == ""
    assert found.notes == ()


@given(st.text(alphabet=st.sampled_from('~`\n> \\{}"tool_cal<think>/[]'), max_size=60))
@example(">>>all")
def test_any_text_without_calls_is_unchanged(text: str) -> None:
    found = read_calls(text, NAMES)
    assert found.calls or found.text == text


@pytest.mark.parametrize(
    ("body", "code", "name"),
    [
        ('{"name": "ping", "arguments": {"a": 1,}}', "malformed_json", "tool_call"),
        ('{"name": "rm", "arguments": {"path": "/srv/cache/old"}', "malformed_json", "tool_call"),
        ('{"name": "ping", "arguments": [1]}', "not_an_object", "ping"),
        ('{"name": "ping", "arguments": null}', "not_an_object", "ping"),
        ('{"name": "ping", "arguments": "[1]"}', "not_an_object", "ping"),
        ('{"name": "ping", "arguments": "x"}', "malformed_json", "ping"),
        ('{"name": "ping", "parameters": {"a": 1}}', "malformed_json", "ping"),
        ('{"name": "", "arguments": {}}', "malformed_json", "tool_call"),
        ('{"name": "ping", "arguments": {"a": NaN}}', "malformed_json", "tool_call"),
        ("[" * 100_000, "malformed_json", "tool_call"),
    ],
)
def test_malformed_block_is_a_call_with_an_error_and_its_text(body: str, code: str, name: str) -> None:
    found = read_calls(f"Before.\n{PING}\n~~~tool_call\n{body}\n~~~\nAfter.", NAMES)
    good, bad = found.calls
    assert good.error is None
    assert bad.arguments is None
    assert bad.error is not None
    assert (bad.error.code, bad.name) == (code, name)
    assert bad.raw_arguments
    assert "~~~tool_call" in bad.error.message
    assert found.text.split() == ["Before.", "After."]


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ('~~~tool_call\n{"name": "ping", "arguments": {}}\n', "closing fence"),
        ('~~~tool_call\n{"name": "ping", "arguments": {}}', "closing fence"),
        ('~~~tool_call\n{"name": "ping", "arguments": {}}\n' + PING, "closing fence"),
        (f"```\n{PING}\n```", "code fence"),
        ('~~~json\n{"name": "ping", "arguments": {}}\n~~~', "~~~json"),
    ],
)
def test_repair_is_noted_and_an_error_when_strict(text: str, note: str) -> None:
    lenient = read_calls(text, NAMES)
    assert all(call.error is None for call in lenient.calls)
    assert any(note in remark for remark in lenient.notes)
    if note != "code fence":
        strict = read_calls(text, NAMES, strict=True)
        assert strict.calls[:1] == () or strict.calls[0].error is not None


@pytest.mark.parametrize(
    "text",
    [
        f"> {PING}".replace("\n", "\n> "),
        f"`{PING}`".replace("\n", " "),
        f"~~~~\n{PING}\n~~~~",
        f"```python\n{PING}\n```",
        f"```\n{PING}\n```\nThat is how it looks.",
        f"<think>\n{PING}\n</think>\nNo call is needed.",
        f"I could write\n{PING}\nbut need not.</think>\nNo call is needed.",
        " " + PING,
        '~~~json\n{"name": "unknown", "arguments": {}}\n~~~',
        '~~~json\n{"name": "ping"}\n~~~',
    ],
)
def test_quoted_block_is_no_call(text: str) -> None:
    assert read_calls(text, NAMES).calls == ()


@pytest.mark.parametrize(
    "text",
    [
        f"<think>\nunclosed\n{PING}",
        '<think>\n~~~tool_call\n{"name": "ping", "arguments": {"a": "</think>"}}\n~~~',
        f"```\nan unclosed fence\n{PING}",
        f"<think>done</think>\n{PING}",
    ],
)
def test_unclosed_quotation_hides_no_call(text: str) -> None:
    assert [call.name for call in read_calls(text, NAMES).calls] == ["ping"]


@pytest.mark.parametrize("mark", ["~~~", "```"])
@pytest.mark.parametrize("bodies", list(product(["closed", "unclosed", "incomplete"], repeat=3)))
def test_each_of_three_blocks_is_read_or_an_error(bodies: tuple[str, ...], mark: str) -> None:
    text, expected = "", []
    for number, body in enumerate(bodies):
        call = f'{{"name": "ping", "arguments": {{"n": {number}}}}}'
        text += (
            f"{mark}tool_call\n{call[:-2] if body == 'incomplete' else call}\n{f'{mark}' if body == 'closed' else ''}\n"
        )
        expected.append(None if body == "incomplete" else {"n": number})
    found = read_calls(text, NAMES)
    assert [call.arguments for call in found.calls] == expected
    assert [call.error is None for call in found.calls] == [arguments is not None for arguments in expected]
    assert found.text == ""
    reader = TextReader(NAMES)
    for character in text:
        reader.feed(character)
    reader.close()
    assert reader.scan == found


def test_invented_result_after_an_unclosed_block_is_removed() -> None:
    found = read_calls(f"{PING.removesuffix('~~~')}~~~tool_result\nsecret is 42\n~~~\nIt says 42.", NAMES)
    assert ([call.name for call in found.calls], found.text) == (["ping"], "")


def test_block_that_ends_inside_its_object_is_no_call() -> None:
    (call,) = read_calls('~~~tool_call\n{"name": "ping", "arguments": {}', NAMES).calls
    assert call.arguments is None
    assert call.error is not None
    assert "not closed" in call.error.message


def test_invented_results_and_later_text_are_removed() -> None:
    found = read_calls(f"Looking.\n{PING}\n~~~tool_result\n{{}}\n~~~\nThe answer is 4.\n{PING}", NAMES)
    assert (found.text, len(found.calls)) == ("Looking.", 1)
    assert "results that the model invented" in found.notes[0]


def test_results_without_a_preceding_call_are_text() -> None:
    text = "~~~tool_result\n{}\n~~~"
    assert read_calls(text, NAMES).text == text


@pytest.mark.parametrize(
    "chunk",
    [
        "~~~tool_call\n",
        "```a\n",
        "~~~~\n",
        "<think>",
        "`" * 40 + "\n",
        "</think>",
        "> ~~~tool_call\n",
        "~~~tool_result\n",
    ],
)
def test_long_hostile_texts_of_fences_are_read_in_linear_work(chunk: str) -> None:
    """Compare two sizes by the number of search calls, which a quadratic reader would square."""
    import sys

    def steps(count: int) -> int:
        calls_of = 0

        def count_calls(frame: Any, event: str, argument: Any) -> None:
            nonlocal calls_of
            calls_of += event == "c_call"

        sys.setprofile(count_calls)
        try:
            read_calls("tool_call" + "\n" + chunk * count, NAMES)
        finally:
            sys.setprofile(None)
        return calls_of

    steps(1)  # the grammars are compiled once
    assert steps(800) < 2.5 * steps(400) + 100


def test_results_are_one_line_of_json() -> None:
    text = TAUGHT.result(ToolResult("call_0", "read", "~~~\n~~~tool_call\n", is_error=True))
    assert text.splitlines() == ["~~~tool_result", '{"name": "read", "error": "~~~\\n~~~tool_call\\n"}', "~~~"]


SPEC: Any = {
    "name": "search",
    "description": "Find\npassages.",
    "parameters": {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "what to find"},
            "k": {"type": "integer", "default": 3},
            "kind": {"enum": ["a", "b"]},
            "where": {"$ref": "#/$defs/Place"},
        },
        "required": ["query"],
        "$defs": {"Place": {"type": "object", "properties": {"city": {"type": ["string", "null"]}}}},
    },
}


def test_instructions_show_tools_in_full_or_compact_form() -> None:
    full = instructions([{"type": "function", "function": SPEC}])
    brief = instructions([{"type": "function", "function": SPEC}], "compact")
    assert '"$defs"' in full
    assert len(brief) < len(full)
    assert tool_line(SPEC) == (
        'search(query: string, k?: integer = 3, kind?: "a" | "b", where?: { city?: string | null }): Find passages.\n'
        "  query: what to find"
    )


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({}, "any"),
        (True, "any"),
        ({"const": 1}, "1"),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, "string | null"),
        ({"type": "array"}, "any[]"),
        ({"type": "object"}, "object"),
        ({"$ref": "#/$defs/Missing"}, "Missing"),
    ],
)
def test_schemas_have_short_forms(schema: Any, text: str) -> None:
    assert schema_text(schema) == text


def test_recursive_schemas_end() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node"}}}
    assert schema_text({"$ref": "#/$defs/Node"}, {"Node": node}).count("next") < 10
