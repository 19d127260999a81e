"""What a docstring says of a function and of its parameters, whichever of the common styles it is written in.

The reading is ``docstring-parser``'s. This file decides the style by the first section it sees (so that one grammar is
tried, not four), and mends beforehand what would make the library lose every description: parameter types, which the
type hints give better, and lines without a colon among Google's arguments.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ParsedDocstring", "read_docstring"]


@dataclass(frozen=True, slots=True)
class ParsedDocstring:
    """A function's description, and its parameters' by name."""

    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])


def read_docstring(text: str | None) -> ParsedDocstring:
    """Read a docstring in Google, NumPy, reST or Epydoc style. The description is what stands before the first section.

    A text in no style at all is a description as it is, and so is one that the library cannot read.

    >>> read_docstring("Add.\\n\\nArgs:\\n    a: The first.")
    FunctionText(description='Add.', parameters={'a': 'The first.'})
    """
    if not text:
        return ParsedDocstring()
    text = inspect.cleandoc(text)
    style = next((name for name, pattern in _STYLES.items() if pattern.search(text)), None)
    if style is None:
        return ParsedDocstring(text)
    try:
        parsed = _parser(style)(_MENDERS[style](text))
    except Exception:  # not only its ParseError: on odd text the library trips over itself (IndexError)
        return ParsedDocstring(text)
    described = {
        name.strip().lstrip("*"): " ".join(parameter.description.split())
        for parameter in parsed.params
        if parameter.description
        for name in parameter.arg_name.split(",")  # NumPy's "x, y : float"
    }
    return ParsedDocstring((parsed.description or "").strip(), described)


# --- styles, by the sections they write ------------------------------------------------------------

_UNDERLINED = r"^(?:(?:Other )?Parameters|Returns|Yields|Raises|DemoWriter?)[ ]*\n-{3,}[ ]*$"
_ARGUMENTS = r"(?:Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters):[ ]*$"
_TITLED = rf"^(?:{_ARGUMENTS}|(?:Returns|Yields|Raises|DemoWriter?):[ ]*$)"
_STYLES: Mapping[str, re.Pattern[str]] = {
    "NUMPYDOC": re.compile(_UNDERLINED, re.MULTILINE),
    "GOOGLE": re.compile(_TITLED, re.MULTILINE),
    "REST": re.compile(r"^:(?:param|parameter|arg|argument|key|keyword|returns?|raises?)\b[^:\n]*:", re.MULTILINE),
    "EPYDOC": re.compile(r"^@(?:param|return|raise)\b", re.MULTILINE),
}


def _parser(style: str) -> Callable[[str], Any]:
    if style not in _parsers:
        import docstring_parser

        _parsers[style] = (
            _google_parser() if style == "GOOGLE" else _plain_parser(docstring_parser.DocstringStyle[style])
        )
    return _parsers[style]


_parsers: dict[str, Callable[[str], Any]] = {}


def _plain_parser(style: Any) -> Callable[[str], Any]:
    import docstring_parser

    return lambda text: docstring_parser.parse(text, style=style)


def _google_parser() -> Callable[[str], Any]:
    """The library's, with the sections of keyword arguments that it does not know by itself."""
    from docstring_parser.google import DEFAULT_SECTIONS, GoogleParser, Section, SectionType

    titles = ("Keyword Args", "Keyword Arguments", "Other Parameters")
    more = [Section(title, "param", SectionType.MULTIPLE) for title in titles]
    return GoogleParser([*DEFAULT_SECTIONS, *more]).parse


# --- mending ----------------------------------------------------------------------------------------

# "name (type): ..." where the type has a colon of its own, as in Literal["a: b"].
_GOOGLE_TYPE = re.compile(r"^([ ]+\*{0,2}\w+)[ ]*\([^\n]*?:[^\n]*?\):", re.MULTILINE)
_GOOGLE_SECTION = re.compile(rf"^{_ARGUMENTS}\n((?:[ ]+[^\n]*\n?|[ ]*\n)+)", re.MULTILINE)
_REST_TYPE = re.compile(r"^:(param|parameter|arg|argument|key|keyword)[ ]+[^:\n]*?(\*{0,2}\w+)[ ]*:", re.MULTILINE)


def _mend_google(text: str) -> str:
    return _GOOGLE_SECTION.sub(_join_stray_lines, _GOOGLE_TYPE.sub(r"\1:", text))


def _join_stray_lines(section: re.Match[str]) -> str:
    """A line among the arguments that begins none goes to the argument before it."""
    title, *lines = section[0].split("\n")
    indent = next((len(line) - len(line.lstrip()) for line in lines if line.strip()), 0)
    stray = re.compile(rf"[ ]{{{indent}}}(?=\S)(?!\*{{0,2}}\w+[ ]*(?:\([^\n]*\))?:)")
    return "\n".join([title, *(f"    {line}" if stray.match(line) else line for line in lines)])


def _mend_rest(text: str) -> str:
    return _REST_TYPE.sub(r":\1 \2:", text)


def _as_it_is(text: str) -> str:
    return text


_MENDERS: Mapping[str, Callable[[str], str]] = {
    "NUMPYDOC": _as_it_is, "GOOGLE": _mend_google, "REST": _mend_rest, "EPYDOC": _as_it_is,
}  # fmt: skip
