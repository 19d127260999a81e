"""Read the descriptions of a function and its parameters from a docstring of any common style.

``docstring-parser`` parses. This file detects the style by its section titles (so that one grammar is tried, not four), and
removes constructs that make the library lose all descriptions: parameter types, which type hints have, and lines without
a colon among Google's arguments.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from docstring_parser import Docstring

__all__ = ["ParsedDocstring", "read_docstring"]

_Parser: TypeAlias = "Callable[[str], Docstring]"


@dataclass(frozen=True, slots=True)
class ParsedDocstring:
    """The description of a function, and of its parameters by name."""

    description: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict[str, str])


def read_docstring(text: str | None) -> ParsedDocstring:
    """Parse a docstring in Google, NumPy, reST or Epydoc style. The description is the text before the first section.

    A text of no known style, or one that the library cannot parse, is the description.

    >>> read_docstring("Add.\\n\\nArgs:\\n    a: The first.")
    ParsedDocstring(description='Add.', parameters={'a': 'The first.'})
    """
    if not text:
        return ParsedDocstring()
    text = inspect.cleandoc(text)
    style = next((name for name, pattern in _STYLES.items() if pattern.search(text)), None)
    if style is None:
        return ParsedDocstring(text)
    try:
        parsed = _parser(style)(_CLEANERS.get(style, str)(text))
    except Exception:  # on unusual text the library raises other errors than ParseError (IndexError)
        return ParsedDocstring(text)
    described = {
        name.strip().lstrip("*"): " ".join(parameter.description.split())
        for parameter in parsed.params
        if parameter.description
        for name in parameter.arg_name.split(",")  # NumPy's "x, y : float"
    }
    return ParsedDocstring((parsed.description or "").strip(), described)


_UNDERLINED = r"^(?:(?:Other )?Parameters|Returns|Yields|Raises|Examples?)[ ]*\n-{3,}[ ]*$"
_ARGUMENTS = r"(?:Args|Arguments|Parameters|Params|Keyword Args|Keyword Arguments|Other Parameters):[ ]*$"
_TITLED = rf"^(?:{_ARGUMENTS}|(?:Returns|Yields|Raises|Examples?):[ ]*$)"
_STYLES: Mapping[str, re.Pattern[str]] = {
    "NUMPYDOC": re.compile(_UNDERLINED, re.MULTILINE),
    "GOOGLE": re.compile(_TITLED, re.MULTILINE),
    "REST": re.compile(r"^:(?:param|parameter|arg|argument|key|keyword|returns?|raises?)\b[^:\n]*:", re.MULTILINE),
    "EPYDOC": re.compile(r"^@(?:param|return|raise)\b", re.MULTILINE),
}


@functools.cache
def _parser(style: str) -> _Parser:
    """Return the library's parser of a style; Google's with more sections for keyword arguments."""
    import docstring_parser
    from docstring_parser.google import DEFAULT_SECTIONS, GoogleParser, Section, SectionType

    if style != "GOOGLE":
        return functools.partial(docstring_parser.parse, style=docstring_parser.DocstringStyle[style])

    titles = ("Keyword Args", "Keyword Arguments", "Other Parameters")
    more = [Section(title, "param", SectionType.MULTIPLE) for title in titles]
    return GoogleParser([*DEFAULT_SECTIONS, *more]).parse


# "name (type): ..." with a colon in the type, as in Literal["a: b"].
_GOOGLE_TYPE = re.compile(r"^([ ]+\*{0,2}\w+)[ ]*\([^\n]*?:[^\n]*?\):", re.MULTILINE)
_GOOGLE_SECTION = re.compile(rf"^{_ARGUMENTS}\n((?:[ ]+[^\n]*\n?|[ ]*\n)+)", re.MULTILINE)
_REST_TYPE = re.compile(r"^:(param|parameter|arg|argument|key|keyword)[ ]+[^:\n]*?(\*{0,2}\w+)[ ]*:", re.MULTILINE)


def _join_stray_lines(section: re.Match[str]) -> str:
    """Indent lines among the arguments that start no argument, so that they belong to the argument before."""
    title, *lines = section[0].split("\n")
    indent = next((len(line) - len(line.lstrip()) for line in lines if line.strip()), 0)
    stray = re.compile(rf"[ ]{{{indent}}}(?=\S)(?!\*{{0,2}}\w+[ ]*(?:\([^\n]*\))?:)")
    return "\n".join([title, *(f"    {line}" if stray.match(line) else line for line in lines)])


_CLEANERS: Mapping[str, Callable[[str], str]] = {
    "GOOGLE": lambda text: _GOOGLE_SECTION.sub(_join_stray_lines, _GOOGLE_TYPE.sub(r"\1:", text)),
    "REST": lambda text: _REST_TYPE.sub(r":\1 \2:", text),
}
