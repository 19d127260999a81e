"""The readers of values: Python's literals, text by schema, and the end of a bracketed value."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.adapters.text_tools import read_calls
from sigwire.adapters.text_tools.cursor import Cursor, run_complete
from sigwire.adapters.text_tools.grammar import ToolCatalog
from sigwire.adapters.text_tools.grammars.literals import LiteralError, read_arguments, read_bare_object, read_literal
from sigwire.adapters.text_tools.grammars.parameter_text import read_value
from sigwire.adapters.text_tools.grammars.pythonic import read_call
from sigwire.adapters.text_tools.scan.brackets import BARE, JSON, PYTHON, read_span
from sigwire.adapters.text_tools.styles import STYLES, CallStyle, style_named
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import InputError

scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text()
literals: Any = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3), max_leaves=8
)


@given(literals)
def test_literals_that_python_writes_are_read_back(value: Any) -> None:
    assert read_literal(repr(value)) == value


@given(st.text())
def test_any_text_is_a_literal_or_a_literal_error(text: str) -> None:
    with contextlib.suppress(LiteralError):
        read_literal(text)


@given(st.dictionaries(st.from_regex(r"[a-z_]\w{0,8}", fullmatch=True), literals, max_size=4))
def test_keyword_arguments_are_read_back(arguments: dict[str, Any]) -> None:
    text = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    assert read_arguments(text) == arguments
    call = read_call(f"add({text})", ToolCatalog.of(["add"]))
    assert call is not None
    assert call.arguments == arguments


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'a\\'b'", "a'b"), ('"a\\nb"', "a\nb"), ("'a\nb'", "a\nb"), ("'''a\n'b''c'''", "a\n'b''c"), ("r'a\\b'", "a\\b"),
        ("'\\x41\\u0042\\U00000043\\104'", "ABCD"), ("'\\q'", "\\q"), ("'a\\\nb'", "ab"), ("u'a'", "a"), ('""', ""),
        ("'\\ud83d\\ude00'", "😀"), ("'\\ud83d x'", "\ud83d x"),
        ("1_000", 1000), ("-1.5e3", -1500.0), (".5", 0.5), ("1.", 1.0), ("(1, 2)", [1, 2]), ("(1,)", [1]), ("(1)", 1),
        ("true", True), ("null", None), ("{'a': [None, {'b': False}]}", {"a": [None, {"b": False}]}), ("[1, 2,]", [1, 2]),
        ("<escape>it's <b> \"x\"<escape>", "it's <b> \"x\""), ("{a: <|\"|>x<|\"|>, b-c: 2}", {"a": "x", "b-c": 2}),
    ],
)  # fmt: skip
def test_literal_has_its_value(text: str, value: Any) -> None:
    assert read_literal(text) == value


@pytest.mark.parametrize(
    "text",
    [
        "", "x", "f'x'", "b'x'", "1 + 1", "os.system('x')", "__import__('os')", "[1, 2", "{1: 2}", "{'a'}", "'open", "1e999",
        "0x10", "1__x", "[1 2]", "lambda: 1", "'a' 'b'", "9" * 5000, "[" * 50_000, "{a: " * 50_000, "...", "-", "'\\",
    ],
)  # fmt: skip
def test_text_that_is_no_literal_is_refused(text: str) -> None:
    with pytest.raises(LiteralError):
        read_literal(text)


@pytest.mark.parametrize("text", ["1", "a=1, 2", "x for x in y", "*args", "**{'a': 1}", "a=1 b=2", "a=1, a=2", "a=b"])
def test_arguments_without_names_or_values_are_refused(text: str) -> None:
    with pytest.raises(LiteralError):
        read_arguments(text)


@pytest.mark.parametrize("text", ["[1]", "1", "{a}"])
def test_literal_that_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(LiteralError):
        read_bare_object(text)


@pytest.mark.parametrize(
    ("text", "schema", "value"),
    [
        ("12345", {"type": "string"}, "12345"), ("null", {"type": "string"}, "null"),
        ('{"a": 1}', {"type": "string"}, '{"a": 1}'),
        ("5", {"type": "integer"}, 5), ("5.0", {"type": "integer"}, 5.0), ("5.5", {"type": "integer"}, "5.5"),
        ("5", {"type": "number"}, 5), ("True", {"type": "boolean"}, True), ("true", {"type": "boolean"}, True),
        ("yes", {"type": "boolean"}, "yes"), ("1", {"type": "boolean"}, "1"), ("null", {"type": ["string", "null"]}, None),
        ("None", {"anyOf": [{"type": "integer"}, {"type": "null"}]}, None), ("None", {"type": "integer"}, "None"),
        ("['a', 'b']", {"type": "array"}, ["a", "b"]), ('{"a": 1,}', {"type": "object"}, {"a": 1}),
        ("{a: 1}", {"type": "object"}, {"a": 1}), ("x", {"type": ["integer", "string"]}, "x"),
        ("7", {"type": ["integer", "string"]}, 7), ("2", {"enum": [1, 2]}, 2), ("2", {"enum": ["1", "2"]}, "2"),
        ("3", {"const": 3}, 3), ("3", {}, "3"), ("3", None, "3"), (" 3\n", {"type": "integer"}, 3),
        ("3", {"$ref": "#/$defs/N"}, 3), ("3", {"$ref": "#/$defs/Missing"}, "3"), ("[1]", {"items": {}}, [1]),
        ('{"a": 1}', {"properties": {}}, {"a": 1}), ("[" * 9000, {"type": "array"}, "[" * 9000),
    ],
)  # fmt: skip
def test_text_is_typed_by_the_schema(text: str, schema: Any, value: Any) -> None:
    read = read_value(text, schema, {"$defs": {"N": {"type": "integer"}}})
    assert (read, type(read)) == (value, type(value))


def test_recursive_schema_of_a_parameter_ends() -> None:
    assert read_value("1", {"$ref": "#/$defs/A"}, {"$defs": {"A": {"anyOf": [{"$ref": "#/$defs/A"}]}}}) == "1"


@pytest.mark.parametrize(
    ("text", "notation", "end", "missing", "cut"),
    [
        ('{"a": "}"} x', JSON, 10, "", False),
        ("{'a': [1, {}]}", JSON, 14, "", False),
        ('{"a": 1</t>', JSON, 7, "}", False),
        ('[{"a": 1', JSON, 8, "}]", True),
        ('{"a": "x', JSON, 8, "}", True),
        ("{]", JSON, 1, "}", False),
        ("[f(a='''x'y''', b=\"]\")] z", PYTHON, 23, "", False),
        ("{a:<escape>}<escape>}", BARE, 21, "", False),
    ],
)
def test_bracketed_value_ends_with_its_brackets(text: str, notation: Any, end: int, missing: str, cut: bool) -> None:
    span = run_complete(read_span(Cursor(text, closed=True), notation))
    assert (span.end, span.missing, span.truncated) == (end, missing, cut)


def test_infinity_is_no_number() -> None:
    assert math.isinf(float("1e999"))
    assert read_value("1e999", {"type": "number"}) == "1e999"


# --- styles write what the dialects read ------------------------------------------------------------------------

json_values: Any = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)
marks = st.sampled_from(
    ["</parameter>", "<parameter=a>", "</tool_call>", "</arg_value>", "\n", "\r\n", "]]>", "<![CDATA[", "~~~", "```", "'", '"',
     "\\", ")]", "}", "[/TOOL_CALLS]", " ", "</invoke>", "\u2028", "é"]
)  # fmt: skip
arguments = st.fixed_dictionaries(
    {
        "text": st.lists(marks | st.text(max_size=4), max_size=5).map("".join),
        "data": st.dictionaries(st.text(), json_values),
    },
    optional={"count": st.integers(-(10**9), 10**9), "flag": st.booleans(), "maybe": st.none() | st.booleans()},
)
SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"}, "data": {"type": "object"}, "count": {"type": "integer"}, "flag": {"type": "boolean"},
        "maybe": {"type": ["boolean", "null"]},
    },
}  # fmt: skip


@pytest.mark.parametrize("style", STYLES.values(), ids=list(STYLES))
@given(calls=st.lists(st.tuples(st.sampled_from(["save", "ping"]), arguments | st.just({})), min_size=1, max_size=3))
def test_calls_of_a_style_are_read_back(style: CallStyle, calls: list[tuple[str, dict[str, Any]]]) -> None:
    text = style.calls([ToolCall("", name, given) for name, given in calls])
    found = read_calls(f"One moment.\n{text}", {"save": SCHEMA, "ping": SCHEMA}, strict=True)
    assert [(call.name, call.arguments, call.error) for call in found.calls] == [(*call, None) for call in calls]
    assert (found.text, found.notes) == ("One moment.", ())
    assert found.dialect in (style.name, *style.dialects)


@pytest.mark.parametrize("style", STYLES.values(), ids=list(STYLES))
def test_results_of_a_style_are_no_call(style: CallStyle) -> None:
    contents: list[Any] = ["ok", '{"name": "ping", "arguments": {}}', {"name": "ping", "arguments": {}}]
    for content in contents:
        text = style.result(ToolResult("call_0", "ping", content))
        assert "ping" in text
        assert read_calls(text, ["ping"]).calls == ()


@pytest.mark.parametrize("style", STYLES.values(), ids=list(STYLES))
def test_style_writes_an_unreadable_call_verbatim(style: CallStyle) -> None:
    assert '"a": ' in style.calls([ToolCall("", "ping", None, '{"a": ')]).replace("\\", "")


def test_unknown_style_is_refused_with_the_names() -> None:
    with pytest.raises(
        InputError, match=r"'herms' \(the option text_tools\)\. Choose one of anthropic_legacy, fenced, gemma"
    ):
        style_named("herms")
