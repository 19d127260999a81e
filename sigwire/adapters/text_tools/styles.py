"""Forms of calls and results for a model that accepts no list of tools: the taught form, and those of model families.

A ``CallStyle`` writes what the dialect of the same name reads: the taught form, the calls of a past turn, the results of
tools. ``STYLES`` is the table. A model follows the form of its training more reliably than a new form.

JSON calls and results are one line each, so that no text inside them can look like a marker. If an argument holds a tag of
its own form, the arguments are one JSON object, which those dialects read as well. Ids are not written: models imitate
them, and the order carries the same information.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sigwire.adapters.text_tools.markers import CALL_END, CALL_FENCE, FENCE, RESULT_FENCE, SECTION_END
from sigwire.core.narrow import is_mapping, is_sequence
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.errors import InputError

__all__ = ["STYLES", "TAUGHT", "CallStyle", "style_named", "write_json"]

_WriteCall: TypeAlias = Callable[[str, Any], str]


@dataclass(frozen=True, slots=True)
class CallStyle:
    """One form of calls and results.

    ``lead`` and ``several`` instruct the model, ``empty`` shows a call without arguments; ``results`` names the results.
    ``dialects``: further names under which the scanner finds this form.
    """

    name: str
    calls: Callable[[Sequence[ToolCall]], str] = field(repr=False)
    result: Callable[[ToolResult], str] = field(repr=False)
    results: str
    lead: str = "To call a tool, write exactly this form:"
    several: str = "For several calls, repeat the form."
    empty: str = "If a tool has no parameters, write {}."
    dialects: tuple[str, ...] = ()

    def form(self) -> str:
        """Return the form with placeholders, as the prompt teaches it."""
        return self.calls([ToolCall("", "tool_name", {"argument": "value"})])


def write_json(value: object) -> str:
    """Return a value as JSON on one line."""
    return json.dumps(value, ensure_ascii=False)


def _arguments_of(call: ToolCall) -> Any:
    """Return the arguments, or the text that the model wrote instead."""
    return call.arguments if call.arguments is not None else call.raw_arguments or ""


def _write_result(result: ToolResult) -> str:
    return write_json({"name": result.name, "error" if result.is_error else "result": result.content})


def _each_call(write: _WriteCall, between: str = "\n") -> Callable[[Sequence[ToolCall]], str]:
    return lambda calls: between.join(write(call.name, _arguments_of(call)) for call in calls)


def _result_between(before: str, after: str) -> Callable[[ToolResult], str]:
    return lambda result: f"{before}{_write_result(result)}{after}"


def _write_object(name: str, arguments: Any, key: str = "arguments") -> str:
    return write_json({"name": name, key: arguments})


def _object_between(before: str, after: str) -> _WriteCall:
    return lambda name, arguments: f"{before}{_write_object(name, arguments)}{after}"


def _list_between(before: str, write: _WriteCall = _write_object) -> Callable[[Sequence[ToolCall]], str]:
    return lambda calls: f"{before}[{', '.join(write(call.name, _arguments_of(call)) for call in calls)}]"


_KEY = re.compile(r"[\w.\-]+")


def _tagged_arguments(
    call: tuple[str, str], parameter: tuple[str, str], marks: Sequence[str], gap: str = "\n"
) -> _WriteCall:
    """Return a writer of calls with a tag for each argument. ``{}`` stands for the name; no value may hold ``marks``."""

    def write(name: str, arguments: Any) -> str:
        opening, closing = call[0].format(name), call[1]
        if not is_mapping(arguments) or any(_needs_json(key, value, marks) for key, value in arguments.items()):
            # Readers count closing tags, so that a text shows none.
            body = [arguments if isinstance(arguments, str) else write_json(arguments).replace("</", "<\\/")]
        else:
            body = [parameter[0].format(key) + _text_of(value) + parameter[1] for key, value in arguments.items()]
        return gap.join([opening, *body, closing])

    return write


def _text_of(value: object) -> str:
    return value if isinstance(value, str) else write_json(value)


def _needs_json(key: str, value: object, marks: Sequence[str]) -> bool:
    text = _text_of(value)
    return _KEY.fullmatch(key) is None or text.startswith("<![CDATA[") or any(mark in text for mark in marks)


_QWEN = _tagged_arguments(
    ("<tool_call>\n<function={}>", "</function>\n</tool_call>"),
    ("<parameter={}>\n", "\n</parameter>"),
    ("</parameter>", "<parameter=", "</function>", "</tool_call>", "</seed:tool_call>", "\r"),
)
_GLM = _tagged_arguments(
    ("<tool_call>{}", "</tool_call>"),
    ("<arg_key>{}</arg_key>\n<arg_value>", "</arg_value>"),
    ("</arg_value>", "<arg_key>", "</tool_call>"),
)
_INVOKE_MARKS = ("</parameter>", "<parameter name=", "</invoke>", "</minimax:tool_call>", "</function_calls>")
_INVOKE = _tagged_arguments(
    ('<invoke name="{}">', "</invoke>"), ('<parameter name="{}">', "</parameter>"), _INVOKE_MARKS
)  # fmt: skip


_STEP = _tagged_arguments(
    ('<｜tool_call_begin｜>function<｜tool_sep｜><steptml:invoke name="{}">', "</steptml:invoke><｜tool_call_end｜>"),
    ('<steptml:parameter name="{}">', "</steptml:parameter>"),
    ("</steptml:parameter>", "<steptml:parameter name=", "</steptml:invoke>", *CALL_END, *SECTION_END),
)


def _calls_between(before: str, after: str, write: _WriteCall = _INVOKE) -> Callable[[Sequence[ToolCall]], str]:
    return lambda calls: "\n".join([before, *(write(call.name, _arguments_of(call)) for call in calls), after])


def _write_python_call(name: str, arguments: Any) -> str:
    if not is_mapping(arguments):
        return f"{name}({arguments})"
    return f"{name}({', '.join(f'{key}={_write_literal(value)}' for key, value in arguments.items())})"


def _write_literal(value: object) -> str:
    if is_sequence(value):
        return f"[{', '.join(map(_write_literal, value))}]"
    if is_mapping(value):
        return f"{{{', '.join(f'{write_json(key)}: {_write_literal(item)}' for key, item in value.items())}}}"
    return str(value) if value is None or isinstance(value, bool) else write_json(value)


_RESPONSE = _result_between("<tool_response>\n", "\n</tool_response>")
_RESPONSES = "<tool_response> blocks"
_PLAIN_RESULTS = "JSON objects with the tool's name"
_NO_BRACKETS = "If a tool has no parameters, write empty parentheses."
_LIST = "For several calls, write several objects in the list."
_LINES = "Write each call on its own line."
_PYTHON = "Name all arguments; write values as Python literals."
_NO_TAGS = "If a tool has no parameters, omit the argument tags."

TAUGHT = CallStyle(
    "fenced",
    _each_call(_object_between(f"{CALL_FENCE}\n", f"\n{FENCE}"), "\n\n"),
    _result_between(f"{RESULT_FENCE}\n", f"\n{FENCE}"),
    f"{RESULT_FENCE} blocks",
    "To call a tool, write a block in exactly this form, each fence on its own line:",
    "Write one call per block, as one valid JSON object. For several calls, write several blocks.",
)
"""The project's own form, and the default."""

STYLES: Mapping[str, CallStyle] = {
    style.name: style
    for style in (
        TAUGHT,
        CallStyle(
            "anthropic_legacy",
            _calls_between("<function_calls>", "</function_calls>"),
            _result_between("<function_results>\n", "\n</function_results>"),
            "<function_results> blocks",
            several="For several calls, write several invoke elements.",
            empty=_NO_TAGS,
            dialects=("minimax",),
        ),
        CallStyle(
            "gemma",
            _calls_between("```tool_code", "```", _write_python_call),
            _result_between("```tool_output\n", "\n```"),
            "tool_output blocks",
            empty=_NO_BRACKETS,
            several=f"{_LINES} {_PYTHON}",
        ),
        CallStyle("glm45", _each_call(_GLM), _RESPONSE, _RESPONSES, empty=_NO_TAGS),
        CallStyle("granite", _list_between("<|tool_call|>"), _RESPONSE, _RESPONSES, several=_LIST),
        CallStyle("hermes", _each_call(_object_between("<tool_call>\n", "\n</tool_call>")), _RESPONSE, _RESPONSES),
        CallStyle(
            "hunyuan",
            _calls_between("<tool_calls>", "</tool_calls>", _GLM),
            _RESPONSE,
            _RESPONSES,
            empty=_NO_TAGS,
            several="For several calls, write several tool_call elements.",
            dialects=("glm45",),
        ),
        CallStyle(
            "llama3_json",
            _each_call(lambda name, arguments: _write_object(name, arguments, "parameters")),
            _write_result,
            _PLAIN_RESULTS,
            several=f"{_LINES} Write nothing after the calls.",
            dialects=("bare_json",),
        ),
        CallStyle(
            "minimax",
            _calls_between("<minimax:tool_call>", "</minimax:tool_call>"),
            _RESPONSE,
            _RESPONSES,
            several="For several calls, write several invoke elements.",
            empty=_NO_TAGS,
        ),
        CallStyle(
            "mistral",
            _list_between("[TOOL_CALLS] "),
            _result_between("[TOOL_RESULTS] ", " [/TOOL_RESULTS]"),
            "[TOOL_RESULTS]",
            several=_LIST,
            dialects=("mistral_old", "mistral_v11"),
        ),
        CallStyle("phi4", _list_between("functools"), _write_result, _PLAIN_RESULTS, several=_LIST),
        CallStyle(
            "pythonic",
            _list_between("", _write_python_call),
            _write_result,
            _PLAIN_RESULTS,
            empty=_NO_BRACKETS,
            several=f"Write all calls in one list. {_PYTHON} Write nothing after it.",
        ),
        CallStyle("qwen3_coder", _each_call(_QWEN), _RESPONSE, _RESPONSES, empty=_NO_TAGS),
        CallStyle(
            "step3",
            _calls_between("<｜tool_calls_begin｜>", "<｜tool_calls_end｜>", _STEP),
            _RESPONSE,
            _RESPONSES,
            several="Write all calls between the same two outer markers.",
            empty=_NO_TAGS,
        ),
        CallStyle(
            "xlam",
            _list_between(""),
            _write_result,
            _PLAIN_RESULTS,
            dialects=("bare_json",),
            several=f"{_LIST} Write nothing after it.",
        ),
    )
}
"""Every style by the name of its dialect."""


def style_named(name: str) -> CallStyle:
    """Return a style by its name. Raises ``InputError`` for an unknown name.

    >>> style_named("hermes").calls([ToolCall("", "ping", {})])
    '<tool_call>\\n{"name": "ping", "arguments": {}}\\n</tool_call>'
    """
    style = STYLES.get(name)
    if style is None:
        choice = 'The form "seed" is now "fenced".' if name == "seed" else f"Choose one of {', '.join(sorted(STYLES))}."
        raise InputError(f"There is no text form of tools called {name!r} (the option text_tools). {choice}")
    return style
