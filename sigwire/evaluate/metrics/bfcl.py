"""The Berkeley Function Calling Leaderboard: ``load_bfcl`` reads its cases from a checkout, ``bfcl_match`` grades calls.

The data are at https://github.com/ShishirPatil/gorilla (``berkeley-function-call-leaderboard/bfcl_eval/data``, versions 3 and
4): ``BFCL_v4_<category>.json`` has a case a line, ``possible_answer`` beside it the accepted calls. Single-turn categories
only; multi-turn, memory and web search need a simulated environment. A file ``<category>.jsonl`` with ``messages``, ``tools``
and ``ground_truth`` in each line is read as well.

A case becomes an ``Example`` with the inputs ``question`` and ``tools``, and the fields ``id``, ``category``, ``messages``
and ``ground_truth``: ``[{"name", "arguments": {argument: [accepted value, ...]}}]``, ``[]`` if no call is right, ``None`` if
any call of an offered tool is. The types of the schemas are those of Python, Java and JavaScript in the data; here they are
JSON's.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

from sigwire.core.example import Example
from sigwire.core.json import JsonObject, JsonValue, loads
from sigwire.core.narrow import is_array, is_object
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.tool import Tool
from sigwire.errors import ConfigurationError, suggest
from sigwire.evaluate.metrics.reading import read_field
from sigwire.evaluate.metrics.tool_calls import calls_of, score_calls
from sigwire.evaluate.scores import Score

__all__ = ["accepts_arguments", "bfcl_match", "load_bfcl"]


def bfcl_match(example: object, pred: object, trace: object = None) -> Score:
    """Return 1 if the prediction's calls are accepted by ``example.ground_truth``, with feedback for each call otherwise.

    As many calls as expected, in any order; equal names; each argument among the accepted values, and left out only where ""
    is one of these. Texts are equal without case, spaces and the characters ``, . / - _ * ^``. An integer may stand for a
    float, not a float for an integer. ``ground_truth`` is the loader's (see above); the calls are found as in
    ``tool_call_match``.

    >>> from sigwire.core.example import Prediction
    >>> from sigwire.core.tools.calls import ToolCalls
    >>> example = Example(ground_truth=[{"name": "area", "arguments": {"base": [10], "unit": ["cm", ""]}}])
    >>> bfcl_match(example, Prediction(calls=ToolCalls([{"name": "area", "args": {"base": 10}}]))).value
    1.0
    """
    wanted: object = read_field(example, "ground_truth", "bfcl_match")
    calls = calls_of(pred)
    if wanted is None:
        offered = {tool.name for tool in read_field(example, "tools", "bfcl_match")}
        unknown = [call.name for call in calls if call.name not in offered]
        if calls and not unknown:
            return Score(1.0)
        return Score(
            0.0, f"unknown tools: {', '.join(unknown)}" if calls else "expected a call of an offered tool, got no call"
        )
    if not is_array(wanted):
        raise ConfigurationError(f"ground_truth is a list of calls with accepted values, not {wanted!r:.80}.")
    expected = [ToolCall(f"call_{at}", call["name"], call["arguments"]) for at, call in enumerate(wanted)]
    return score_calls(expected, calls, _fits)


def load_bfcl(folder: str | PathLike[str], categories: str | Iterable[str] | None = None) -> list[Example]:
    """Return the cases of the categories, in the order of the files; without ``categories``, all of the folder by name.

    ``folder``: the data, or a checkout of the repository. Categories are named as in the files: "simple_python", "parallel",
    "live_multiple", "irrelevance" ... Raises ``ConfigurationError`` for a category that the folder lacks or that has more
    turns.
    """
    files = _files(Path(folder))
    wanted = list(files) if categories is None else [categories] if isinstance(categories, str) else list(categories)
    return [example for category in wanted for example in _read_category(category, files)]


def accepts_arguments(accepted: Mapping[str, Any], given: Mapping[str, Any]) -> bool:
    """Return True if each argument has an accepted value, and those left out have "" among their values.

    >>> accepts_arguments({"city": ["New York", "NYC"], "days": [1, ""]}, {"city": "new-york"})
    True
    """
    if given.keys() - accepted.keys():
        return False
    return all(
        any(_is_equal(value, given[name]) for value in _values(values)) if name in given else "" in _values(values)
        for name, values in accepted.items()
    )


def _fits(wanted: ToolCall, made: ToolCall) -> bool:
    if wanted.name != made.name or wanted.arguments is None or made.arguments is None:
        return False
    return accepts_arguments(wanted.arguments, made.arguments)


def _values(accepted: object) -> Sequence[Any]:
    """Return the accepted values. Inside objects the data have some values without a list around."""
    return accepted if is_array(accepted) else [accepted]


_IGNORED = re.compile(r"[ ,./\-_*^]")


def _is_equal(accepted: object, given: object) -> bool:
    if isinstance(accepted, str) and isinstance(given, str):
        return _plain_text(accepted) == _plain_text(given)
    if is_object(accepted) and is_object(given):
        return accepts_arguments(accepted, given)
    if is_array(accepted) and is_array(given):
        return len(accepted) == len(given) and all(map(_is_equal, accepted, given))
    return _is_equal_number(accepted, given)


def _is_equal_number(accepted: object, given: object) -> bool:
    """Return True for the same constant, and for equal numbers, if not an int was asked and a float given."""
    if isinstance(accepted, bool) or isinstance(given, bool):
        return accepted is given
    return accepted == given and not (isinstance(accepted, int) and isinstance(given, float))


def _plain_text(text: str) -> str:
    return _IGNORED.sub("", text).lower().replace("'", '"')


# --- files -------------------------------------------------------------------------------------------

_DATA = ("", "bfcl_eval/data", "berkeley-function-call-leaderboard/bfcl_eval/data")
_FILE = re.compile(r"BFCL_v\d+_(\w+)\.json|(\w+)\.jsonl")
_MORE_TURNS = re.compile(r"multi_turn|memory|web_search|format_sensitivity")
_NO_CALL = re.compile(r"irrelevance")
_ANY_CALL = re.compile(r"relevance")


def _files(folder: Path) -> dict[str, Path]:
    """Return the files of the single-turn categories by category, of the newest version."""
    for data in (folder / inner for inner in _DATA):
        found = {match[1] or match[2]: data / match[0] for match in _matches(data)}
        if single := {category: found[category] for category in sorted(found) if not _MORE_TURNS.match(category)}:
            return single
    raise ConfigurationError(
        f"{str(folder)!r} has no files BFCL_v4_<category>.json (loading BFCL). Pass the folder bfcl_eval/data of a checkout."
    )


def _matches(folder: Path) -> list[re.Match[str]]:
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    return [match for match in map(_FILE.fullmatch, names) if match]


def _read_category(category: str, files: Mapping[str, Path]) -> Iterator[Example]:
    if category not in files:
        raise _unknown_category(category, files)
    path = files[category]
    if path.suffix == ".jsonl":
        yield from (_example(case, category) for case in _lines(path))
        return
    answers = path.parent / "possible_answer" / path.name
    accepted = {case["id"]: case["ground_truth"] for case in _lines(answers)} if answers.exists() else {}
    for case in _lines(path):
        tools = [_function(function) for function in case["function"]]
        truth = _ground_truth(case["id"], category, accepted, tools)
        messages = [message for turn in case["question"] for message in turn]
        yield _example({**case, "messages": messages, "tools": tools, "ground_truth": truth}, category)


def _unknown_category(category: str, files: Mapping[str, Path]) -> ConfigurationError:
    reason = "it has more turns, and only single turns are graded" if _MORE_TURNS.match(category) else "no such file"
    return ConfigurationError(
        f"There is no category {category!r} to load: {reason}. {suggest(category, files)}The folder has {', '.join(files)}."
    )


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    return (loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip())


def _ground_truth(
    case: str, category: str, accepted: Mapping[str, Any], tools: Sequence[JsonObject]
) -> list[JsonValue] | None:
    if case in accepted:
        schemas = {tool["name"]: tool["parameters"] for tool in tools}
        calls = [(name, arguments) for call in accepted[case] for name, arguments in call.items()]
        return [{"name": name, "arguments": _typed(values, schemas.get(name))} for name, values in calls]
    if _NO_CALL.search(category):
        return []
    if _ANY_CALL.search(category):
        return None
    raise ConfigurationError(
        f"The case {case!r} has no accepted calls: possible_answer lacks its file or line (loading BFCL)."
    )


def _example(case: Mapping[str, Any], category: str) -> Example:
    messages = case["messages"]
    texts = [message["content"] for message in messages]
    named = [f"{message['role']}: {message['content']}" for message in messages]
    return Example(
        id=case["id"],
        category=category,
        question=texts[0] if len(texts) == 1 else "\n\n".join(named),
        messages=messages,
        tools=[Tool.from_schema(**(tool.get("function") or tool)) for tool in case["tools"]],
        ground_truth=case["ground_truth"],
    ).with_inputs("question", "tools")


# --- schemas and values ------------------------------------------------------------------------------

_TYPES: Mapping[str, str] = {
    **{name: name for name in ("string", "integer", "number", "boolean", "array", "object", "null")},
    **dict.fromkeys(("dict", "HashMap", "Hashtable"), "object"),
    **dict.fromkeys(("float", "double"), "number"),
    **dict.fromkeys(("long", "int", "short", "byte", "Bigint"), "integer"),
    **dict.fromkeys(("tuple", "list", "Array", "ArrayList", "Set", "Queue", "Stack"), "array"),
    **dict.fromkeys(("String", "char"), "string"),
    "Boolean": "boolean",
}
"""JSON's types of the data's; a type that is not here (``any``) allows every value."""


def _function(function: Mapping[str, Any]) -> JsonObject:
    parameters = _schema(function.get("parameters") or {"type": "object"})
    return {"name": function["name"], "description": function.get("description", ""), "parameters": parameters}


def _schema(given: Mapping[str, Any]) -> JsonObject:
    """Return a JSON Schema: types of JSON, no ``optional``, and null allowed where it is the default."""
    schema = {key: value for key, value in given.items() if key not in ("type", "optional")}
    kind = _TYPES.get(str(given.get("type")))
    if kind is not None:
        schema["type"] = [kind, "null"] if given.get("default", kind) is None else kind
    for key, convert in _INNER.items():
        if is_object(inner := schema.get(key)):
            schema[key] = convert(inner)
    if not is_array(schema.get("required", [])):
        del schema["required"]
    if kind == "array" and "enum" in schema:  # an enum of an array's items
        schema["items"] = {"enum": schema.pop("enum"), **schema.get("items", {})}
    return schema


_INNER: Mapping[str, Callable[[dict[str, Any]], JsonObject]] = {
    "properties": lambda properties: {name: _schema(inner) for name, inner in properties.items()},
    "items": _schema,
    "additionalProperties": _schema,
}


def _typed(accepted: Mapping[str, Any], schema: object) -> dict[str, Any]:
    """Return the accepted values by argument, each in its declared type if the data spell it in another one."""
    properties = schema.get("properties") if is_object(schema) else None
    declared: Mapping[str, Any] = properties if is_object(properties) else {}
    return {
        name: [_typed_value(value, declared.get(name, {})) for value in _with_null(_values(values))]
        for name, values in accepted.items()
    }


def _with_null(values: Sequence[Any]) -> Sequence[Any]:
    """Return the values with JSON's null where the data have that of Java or JavaScript."""
    return [*values, None] if "null" in values else values


def _typed_value(value: Any, schema: Mapping[str, Any]) -> Any:
    """Return a value in its declared type; "", the mark of an optional argument, is unchanged."""
    if is_object(value):
        return _typed(value, schema)
    if is_array(value):
        items = schema.get("items", {})
        return [_typed_value(item, items if is_object(items) else {}) for item in value]
    kind = schema.get("type")
    convert = _CONVERSIONS.get(str(kind[0] if is_array(kind) else kind))
    return value if convert is None or value == "" else convert(value)


def _number_of(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return _spelled(value, (int, float))


def _spelled(value: Any, kinds: type | tuple[type, ...]) -> Any:
    """Return the JSON value that a text spells, if it is of one of these classes."""
    if not isinstance(value, str):
        return value
    try:
        read = loads(value.lower())
    except ValueError:
        return value
    return read if isinstance(read, kinds) and (kinds is bool or not isinstance(read, bool)) else value


_CONVERSIONS: Mapping[str, Callable[[Any], Any]] = {
    "number": _number_of,
    "integer": lambda value: _spelled(value, int),
    "boolean": lambda value: _spelled(value, bool),
}
