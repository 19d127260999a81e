"""Docstrings of every style, the awkward ones too: no description of a parameter gets lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.core.tools.docstring import ParsedDocstring, read_docstring

GOOGLE = """Find orders.

Newest first,
over two lines.

Args:
    customer (str): The customer's name,
        over two lines.
    *args: The rest.
    **options: More: things.
    limit (int, optional): How many. Defaults to 5.
    note: See https://example.org/a:b for more.

Returns:
    list: of things

Raises:
    KeyError: never
"""

NUMPY = """Find orders.

Newest first.

Parameters
----------
customer : str
    The name,
    over two lines.
limit : int, optional
    How many.
x, y : float
    Coordinates.
*args
    Rest.
plain
    No type.

Returns
-------
list
    Things.
"""

REST = """Find orders.

:param customer: The name
    over two lines
:param int limit: How many: five
:param str | None since: A date.
:type customer: str
:keyword b: The b.
:returns: things
:raises KeyError: never
"""

CASES: list[tuple[str, str, dict[str, str]]] = [
    (
        GOOGLE,
        "Find orders.\n\nNewest first,\nover two lines.",
        {
            "customer": "The customer's name, over two lines.",
            "args": "The rest.",
            "options": "More: things.",
            "limit": "How many. Defaults to 5.",
            "note": "See https://example.org/a:b for more.",
        },
    ),
    (
        NUMPY,
        "Find orders.\n\nNewest first.",
        {
            "customer": "The name, over two lines.",
            "limit": "How many.",
            "x": "Coordinates.",
            "y": "Coordinates.",
            "args": "Rest.",
            "plain": "No type.",
        },
    ),
    (
        REST,
        "Find orders.",
        {"customer": "The name over two lines", "limit": "How many: five", "since": "A date.", "b": "The b."},
    ),
    ("Go.\n\n@param a: The a.\n@return: x", "Go.", {"a": "The a."}),
    ("Go.\n\nKeyword Args:\n    a: The a.", "Go.", {"a": "The a."}),
    ("Go.\n\nArgs:\n    a: The a.\n\nKeyword Arguments:\n    b: The b.", "Go.", {"a": "The a.", "b": "The b."}),
    ('Go.\n\nArgs:\n    a (Literal["x: y"]): The a.\n    b: The b.', "Go.", {"a": "The a.", "b": "The b."}),
    ("Go.\n\nArgs:\n    a (dict[str, list[int]]): The a.", "Go.", {"a": "The a."}),
    ("Go.\n\nArgs:\n  a: The a.\n  b: The b\n    goes on.", "Go.", {"a": "The a.", "b": "The b goes on."}),
    ("Go.\nArgs:\n    a: The a.", "Go.", {"a": "The a."}),
    (
        "Go.\n\nArgs:\n    a: The a.\n    and a stray line\n    b: The b.",
        "Go.",
        {"a": "The a. and a stray line", "b": "The b."},
    ),
    ("Go.\n\nArgs:\n    a: One.\n\n        Two.\n    b: The b.", "Go.", {"a": "One. Two.", "b": "The b."}),
    ("Go.\n\nArguments:\n    a: The a.", "Go.", {"a": "The a."}),
    ("Go.\n\n    Args:\n        a: The a.", "Go.", {"a": "The a."}),
    ("Go.\n\nReturns:\n    int: a number", "Go.", {}),
    ("Go.\n\n:returns: a number", "Go.", {}),
    ("Just words: no sections.\n\nAnd more.", "Just words: no sections.\n\nAnd more.", {}),
    ("A url: http://example.org/:param", "A url: http://example.org/:param", {}),
    ("    Indented.\n    Twice.", "Indented.\nTwice.", {}),
    ("", "", {}),
]


@pytest.mark.parametrize(("text", "description", "parameters"), CASES, ids=lambda case: repr(case)[:30])
def test_every_docstring_style_is_parsed(text: str, description: str, parameters: dict[str, str]) -> None:
    assert read_docstring(text) == ParsedDocstring(description, parameters)


def test_missing_docstring_is_empty() -> None:
    assert read_docstring(None) == ParsedDocstring()


def test_empty_descriptions_are_omitted() -> None:
    assert read_docstring("Go.\n\nArgs:\n    a:\n    b: The b.").parameters == {"b": "The b."}


lines = st.sampled_from(
    ["Args:", "Parameters", "----------", "Returns:", ":param a: b", ":param", "@param a: b", "    a: b", "    a (x: b",
     "    ):", "  a", "", "words", "    :", "Args:Args:", ":param a", "Raises:", "    **"]
)  # fmt: skip


@given(st.lists(lines, max_size=8).map("\n".join))
def test_any_docstring_is_parsed_without_an_error(text: str) -> None:
    read = read_docstring(text)
    assert all(read.parameters.values())
