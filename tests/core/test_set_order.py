"""Sets in JSON: the same text in every process."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field
from pydantic_core import to_jsonable_python

from sigwire.core.json import dumps
from sigwire.core.set_order import sort_sets


class Box(BaseModel):
    tags: set[str] = Field(serialization_alias="theTags")
    sizes: list[frozenset[int]]


@dataclass
class Shelf:
    name: str
    boxes: list[Box]
    codes: set[int | str] = field(default_factory=set[int | str])


CASES: list[tuple[Any, Any]] = [
    ({"b", "a", "c"}, ["a", "b", "c"]),
    ({10, 9, "x", None, True}, [True, 9, 10, None, "x"]),
    ({frozenset("ba"), frozenset("dc")}, [["a", "b"], ["c", "d"]]),
    ([{"b", "a"}, ("z", "y"), "ba"], [["a", "b"], ["z", "y"], "ba"]),
    ({"k": {"b", "a"}, 3: [2, 1]}, {"k": ["a", "b"], "3": [2, 1]}),
    (
        Shelf("s", [Box(tags={"b", "a"}, sizes=[frozenset({10, 9})])], {"x", 2}),
        {"name": "s", "boxes": [{"theTags": ["a", "b"], "sizes": [[9, 10]]}], "codes": [2, "x"]},
    ),
    ({"a": 1}.keys(), ["a"]),
]


@pytest.mark.parametrize(("value", "written"), CASES, ids=lambda part: str(type(part).__name__))
def test_sets_are_sorted_at_any_depth(value: Any, written: Any) -> None:
    assert sort_sets(value, to_jsonable_python(value, by_alias=True, fallback=list)) == written


@given(st.sets(st.text() | st.integers()))
def test_order_does_not_depend_on_insertion(items: set[str | int]) -> None:
    again: set[str | int] = set()
    for item in sorted(items, key=repr, reverse=True):
        again.add(item)  # where hashes collide, the one that came first stands first
    assert dumps(sort_sets(items, list(items))) == dumps(sort_sets(again, list(again)))


@pytest.mark.parametrize("written", ["text", 3, None, [1], {"a": 1}, [2, 1, 3]])
def test_json_of_another_shape_is_unchanged(written: Any) -> None:
    assert sort_sets({2, 1}, written) == written
    assert sort_sets("x", written) == written


PROGRAM = """
from sigwire import ChatAdapter, Signature, Toolbox, ToolCall
task = Signature("tags: set[str], more: dict[str, frozenset[str]], any: Any -> out: set[str]")
values = {"tags": set("abcdef"), "more": {"k": frozenset("ghijk")}, "any": [set("lmnop")]}
print(ChatAdapter().format(task, values, demos=[{**values, "out": set("qrstu")}]).to_json())
def tags():
    return {"found": set("vwxyz")}
print(Toolbox([tags])([ToolCall("a", "tags", {})]))
"""


def test_prompts_and_tool_results_are_equal_in_every_process() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(printed) == 1
    assert '["a","b","c","d","e","f"]' in printed.pop()
