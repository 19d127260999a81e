"""The lenient JSON parser: every repair listed, nothing completed, one error class, linear time."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.adapters.values.json_text import MAX_DEPTH, read_json, unwrap_candidates
from sigwire.core.json import JsonValue
from sigwire.errors import JsonReadError

REPAIRED: list[tuple[str, JsonValue, list[str]]] = [
    ("[1, 2,]", [1, 2], ["trailing comma"]),
    ('{"a": 1,}', {"a": 1}, ["trailing comma"]),
    ("{'a': 'it\\'s'}", {"a": "it's"}, ["single quotes (2 times)", "escaped single quote"]),
    ('{a: 1, b-c: 2, $d: 3, 4: 5}', {"a": 1, "b-c": 2, "$d": 3, "4": 5}, ["unquoted key (4 times)"]),
    ("[True, False, None]", [True, False, None], ["Python literal (3 times)"]),
    ('[1, // one\n 2, # two\n 3 /* three */]', [1, 2, 3], ["comment (3 times)"]),
    ('{"a": "x\ny\tz"}', {"a": "x\ny\tz"}, ["line break or control character in a string (2 times)"]),
    ('["\\d+", "C:\\users"]', ["\\d+", "C:\\users"], ["unknown escape, kept as it is written (2 times)"]),
    ("[+1, .5, 5., 007]", [1, 0.5, 5.0, 7], ["odd spelling of a number (4 times)"]),
    ('{"a": 1, "a": 2,}', {"a": 2}, ["a key came twice, the last one counts", "trailing comma"]),
    ("```json\n[1]\n```", [1], ["a code fence was taken off"]),
    ("```\n[1]", [1], ["a code fence was taken off"]),
    ("Here you are:\n```json\n[1]\n```\nBye.", [1], [
        "a code fence was taken off", "text before the JSON was left out", "text after the JSON was left out"]),
    ('```json\n{"a": "```py\nx\n```"}\n```', {"a": "```py\nx\n```"}, [
        "a code fence was taken off", "line break or control character in a string (2 times)"]),
    ("The answer: [1].", [1], ["text before the JSON was left out", "text after the JSON was left out"]),
    ('Take {x | x > 0}: {"a": 1}', {"a": 1}, ["text before the JSON was left out"]),
    ('Not {a: this}.\n{"a": 1}', {"a": 1}, ["text before the JSON was left out"]),
    ('[1] [1]', [1], ["text after the JSON was left out"]),
    ("\ufeff[1]", [1], ["not strict JSON: "]),
    ("'a'", "a", ["single quotes"]),
    ("```\n5\n```", 5, ["a code fence was taken off"]),
]  # fmt: skip


@pytest.mark.parametrize(("text", "value", "whats"), REPAIRED)
def test_known_json_faults_are_repaired_and_listed(text: str, value: JsonValue, whats: list[str]) -> None:
    found, repairs = read_json(text)
    assert found == value
    assert len(repairs) == len(whats)
    assert all(repair.what.startswith(what) for repair, what in zip(repairs, whats, strict=True))
    assert all(repair.field is None for repair in repairs)


@pytest.mark.parametrize("text", [case[0] for case in REPAIRED])
def test_strict_json_refuses_repairs(text: str) -> None:
    with pytest.raises(JsonReadError) as caught:
        read_json(text, strict=True)
    assert caught.value.code == "not_json"


REFUSED = [
    ("", "not_json"),
    ("Just prose.", "malformed"),
    ("5 apples", "not_json"),
    ("- 5", "malformed"),
    ("[NaN]", "malformed"),
    ("[-Infinity]", "malformed"),
    ("[undefined]", "malformed"),
    ("{kind: red}", "malformed"),
    ('{"a" 1}', "malformed"),
    ('["a" "b"]', "malformed"),
    ('["he said "hi" to me"]', "malformed"),
    ('[1] or [2]', "ambiguous"),
    ('```json\n{"a": 1}\n```\nor\n```json\n{"a": 2}\n```', "ambiguous"),
    ("[" * 300 + "]" * 300 + ",", "too_deep"),
    ("[" * 100_000, "too_deep"),
    ("[" + "9" * 5000 + ",]", "number"),
    ('{"a": 1e999}', "number"),
    ("[" + "9" * 200_000 + "x]", "malformed"),  # one pass; trying every way to cut the digits would take half an hour
]  # fmt: skip


@pytest.mark.parametrize(("text", "code"), REFUSED)
def test_ambiguous_or_broken_json_is_refused_with_a_code(text: str, code: str) -> None:
    with pytest.raises(JsonReadError) as caught:
        read_json(text)
    assert caught.value.code == code


WHOLE = '{"a": [1, true, {"b": "x\\ny", "c": null}], "d": -1.5e3, "e": {}, "f": []}'


@pytest.mark.parametrize("before", ["", "Sure:\n", "```json\n"])
def test_truncated_structure_is_refused(before: str) -> None:
    for end in range(1, len(WHOLE)):
        with pytest.raises(JsonReadError) as caught:
            read_json(before + WHOLE[:end], kind="object")
        assert caught.value.code in ("truncated", "not_json"), end
        assert caught.value.code == "truncated" or end < 5, end


def test_complete_value_inside_a_truncated_structure_is_refused() -> None:
    for text in ('{"command": "rm -rf /srv/cache/old", "sure": {"a": 1}', 'x\n{"a":\n{"b": 1},\n"c'):
        with pytest.raises(JsonReadError) as caught:
            read_json(text)
        assert caught.value.code == "truncated"


def test_kind_selects_the_structure_in_prose() -> None:
    text = 'As [1] shows: {"a": 1}'
    assert read_json(text, kind="object")[0] == {"a": 1}
    assert read_json(text, kind="array")[0] == [1]


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(json_values, st.booleans(), st.sampled_from([None, 0, 2]))
def test_strict_json_is_read_like_the_standard_library(value: JsonValue, ascii_only: bool, indent: int | None) -> None:
    assert read_json(json.dumps(value, ensure_ascii=ascii_only, indent=indent), strict=True) == (value, ())


@given(json_values.filter(lambda value: isinstance(value, (dict, list))))
def test_lenient_parser_agrees_with_the_standard_library(value: JsonValue) -> None:
    text = json.dumps(value)
    found, repairs = read_json(f"Result:\n{text}")
    assert (found, len(repairs)) == (value, 1)


@given(json_values.filter(lambda value: isinstance(value, (dict, list))))
def test_python_literals_are_read_as_their_values(value: JsonValue) -> None:
    assert read_json(_python(value) + "//", kind=None)[0] == value


def _python(value: Any) -> str:
    """As ``repr``, but strings with JSON's escapes, which Python's are not."""
    if isinstance(value, dict):
        return "{" + "".join(f"{_python(key)}: {_python(item)}, " for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + "".join(_python(item) + ", " for item in value) + "]"
    return "'" + json.dumps(value)[1:-1].replace("'", "\\'") + "'" if isinstance(value, str) else repr(value)


SOUP = st.lists(
    st.sampled_from(['{', '}', '[', ']', '"', "'", ":", ",", "\\", "\\u", "\\ud800", "1", "-", ".", "e", "true", "None", "NaN",
                     "//", "/*", "#", "```", "```json\n", "\n", " ", "a", "x: ", "\ud800", "\x00", "\ufeff"]),
    max_size=24,
).map("".join)  # fmt: skip


@given(SOUP | st.text())
def test_any_text_gives_a_value_or_a_json_read_error(text: str) -> None:
    assert _outcome(text) == _outcome(text)


def _outcome(text: str) -> str:
    try:
        return repr(read_json(text))
    except JsonReadError as fault:
        known = fault.code in ("not_json", "malformed", "truncated", "too_deep", "number", "ambiguous")
        return f"{fault}" if known and 0 <= fault.position <= len(text) else pytest.fail(f"{fault.code}: {fault}")


@given(SOUP)
def test_every_text_but_strict_json_has_a_repair(text: str) -> None:
    try:
        value, repairs = read_json(text)
    except JsonReadError:
        return
    try:
        assert read_json(text, strict=True) == (value, ())
    except JsonReadError:
        assert repairs


# --- the work is linear ------------------------------------------------------------------------------

LONG: dict[str, Callable[[int], str]] = {
    "open brackets": lambda n: "[" * n,
    "open braces": lambda n: '{"a":' * n,
    "braces in prose": lambda n: "x {a: b} " * n,
    "braces on lines": lambda n: "{a: b}\n" * n,
    "fences": lambda n: "```json\n{a: b}\n" * n,
    "items with faults": lambda n: "[" + "'a', " * n + "]",
    "comments": lambda n: "[" + "/* x */ 1, // y\n" * n + "]",
    "unclosed comment": lambda n: "[1, /*" + "*" * n,
    "escapes": lambda n: "['" + "\\d" * n + "']",
    "raw lines": lambda n: '["' + "x\n" * n + '"]',
    "unclosed string": lambda n: '["' + "x" * n,
    "blanks after a brace": lambda n: "{" + " " * n + "x",
    "a long word": lambda n: "{" + "a" * n,
    "quotes": lambda n: "'" * n,
    "arrays one after the other": lambda n: "[1]" * n + ",",
}  # fmt: skip


@pytest.mark.parametrize("name", LONG)
def test_number_of_steps_is_linear_in_the_text(name: str) -> None:
    small, large = (_steps(LONG[name](n)) for n in (1_000, 4_000))
    assert large <= 4.4 * small + 200


def _steps(text: str) -> int:
    """Function calls, Python's and C's, that reading a text makes."""
    count = 0

    def counted(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    gc.disable()  # what a collection calls is no step of the reader
    sys.setprofile(counted)
    try:
        _outcome(text)
    finally:
        sys.setprofile(before)
        gc.enable()
    return count


def test_very_long_texts_are_read() -> None:
    text = "x" * 1_000_000
    assert read_json(f"['{text}']")[0] == [text]
    for broken in ('["' + text, "[" * 1_000_000, "{" * 1_000_000, text, "```\n" * 250_000, "'" * 1_000_000):
        with pytest.raises(JsonReadError):
            read_json(broken)


def test_depth_is_bounded_in_the_lenient_parser() -> None:
    assert read_json("[" * MAX_DEPTH + "1," + "]" * MAX_DEPTH)[0] is not None
    with pytest.raises(JsonReadError, match="nested too deeply"):
        read_json("[" * (MAX_DEPTH + 1) + "1," + "]" * (MAX_DEPTH + 1))


# --- one level down -------------------------------------------------------------------------------------

WRAPPERS: list[tuple[JsonValue, list[JsonValue]]] = [
    ({"json": {"a": 1}}, [{"a": 1}]),
    ({"json": '{"a": 1}'}, [{"a": 1}]),
    ({"answer": [1]}, [[1]]),
    ({"name": "f", "arguments": {"a": 1}}, [{"a": 1}]),
    ({"type": "function", "parameters": {"a": 1}}, [{"a": 1}]),
    ({"type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}}, [{"a": 1}]),
    ('{"a": 1}', [{"a": 1}]),
    ("just text", []),
    ({"a": 1, "b": {}}, []),
    ({"a": 5}, []),
    ({"name": "x", "age": 3}, []),
    ([{"a": 1}], []),
    (None, []),
]


@pytest.mark.parametrize(("value", "inner"), WRAPPERS)
def test_one_level_of_wrappers_is_unwrapped(value: JsonValue, inner: list[JsonValue]) -> None:
    assert [found for found, _ in unwrap_candidates(value)] == inner
    assert all(what for _, what in unwrap_candidates(value))
