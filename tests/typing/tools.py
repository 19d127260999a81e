"""Types that type checkers infer for tools. Checked by mypy and pyright (strict), never run."""

from __future__ import annotations

from functools import partial
from typing import assert_type

from sigwire import RLM, ChainOfThought, CodeAct, History, Injected, Predict, ReAct, Toolbox, WebSearch
from sigwire.core.tools.tool import Tool

SCHEMA = {  # no annotation: checkers see a dict of texts, dicts and lists, and must take it as it stands
    "type": "object",
    "properties": {"from": {"type": "string"}},
    "required": ["from"],
    "additionalProperties": False,
}

assert_type(Tool.from_schema("find", "Find.", SCHEMA), Tool)
assert_type(Tool(name="find", description="Find.", parameters=SCHEMA), Tool)
Tool.from_schema("find", "Find.", [1])  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]

expert = Predict("question -> answer")
agent = ReAct("question -> answer", tools=[expert, ChainOfThought("question -> answer"), WebSearch(), len])
ReAct("question -> answer", tools=[expert, agent])
ReAct("question -> answer", tools={"ask": expert, "search": agent})
ReAct("question -> answer", tools={"terse": partial(expert, style="terse")})
ReAct("question -> answer", tools=[expert, partial(expert, style="terse"), Tool(agent)])
CodeAct("question -> answer", tools=[expert, agent])
RLM("question -> answer", tools=[expert, agent])
Toolbox([expert, agent])
assert_type(Tool(expert, timeout=3.0), Tool)
assert_type(Tool(agent, name="ask"), Tool)
ReAct("question -> answer", tools=[3])  # type: ignore[list-item]  # pyright: ignore[reportArgumentType]


class User:
    name: str


def refund(order: int, user: Injected[User], note: Injected[str] | None = None) -> str:
    assert_type(user, User)
    assert_type(note, str | None)
    return user.name


refund(1, User())
refund(1, "ada")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
ReAct("question -> answer", tools=[refund])
assert_type(Tool(refund).then(str.upper), Tool)
Tool(refund).then(3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
assert_type(History().without_tools(), History)
RLM("log -> cause")(log="text", history=History())
