"""Programs whose agent has a tool ``ask`` that uses an inner predictor, in each way that a function can hold it.

The model is scripted: the agent calls ``ask`` and submits its result; the inner predictor answers "GOOD" if its instructions
have SHOUT or a demo shows GOOD, else "bad".
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any

from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.tool import Tool
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.signatures.signature import make_signature

__all__ = ["HOLDERS", "Team", "ask_of", "inner_of", "inner_predictor", "model", "of_kind", "shout"]


def inner_predictor() -> Predict[..., Any]:
    return Predict(make_signature("topic -> fact", "Say a fact."))


def respond(request: Request) -> Any:
    """Answer as the agent or as the inner predictor."""
    if not request.tools and "fact" in request.messages[0].text and "trajectory" not in request.messages[0].text:
        seen = "\n".join(message.text for message in request.messages)
        return {"fact": "GOOD" if "SHOUT" in seen or "GOOD" in seen else "bad"}
    last = request.messages[-1]
    if last.role == "tool":
        return ToolCall("s", "submit", {"text": last.tool_results[0].text})
    return ToolCall("a", "ask", {"topic": "tea"})


def model() -> FakeLM:
    return FakeLM(respond)


def agent_of(tool: Any) -> ReAct[..., Any]:
    return ReAct("task -> text", tools=tool if isinstance(tool, dict) else [tool])


class Team(Module):
    """The inner predictor is an attribute; the tool is a method of the team."""

    def __init__(self) -> None:
        super().__init__()
        self.inner, self.outer = inner_predictor(), agent_of({"ask": self.research})

    def research(self, topic: str) -> str:
        """Research."""
        return str(self.inner(topic=topic).fact)

    def forward(self, task: str) -> Any:
        return self.outer(task=task)


class Listed(Module):
    """A user's list of plain functions, from which the program makes its agent in each call."""

    def __init__(self) -> None:
        super().__init__()
        self.tools = [ask_of(inner_predictor())]

    def forward(self, task: str) -> Any:
        return self.tools[0](topic=task)


class Inner(Module):
    """A user's program that is not an attribute of the team."""

    def __init__(self) -> None:
        super().__init__()
        self.sub = inner_predictor()

    def research(self, topic: str) -> str:
        """Research."""
        return str(self.sub(topic=topic).fact)


def ask_of(sub: Any) -> Callable[[str], str]:
    def ask(topic: str) -> str:
        """Ask."""
        return str(sub(topic=topic).fact)

    return ask


def logged(function: Callable[..., str]) -> Callable[..., str]:
    @functools.wraps(function)
    def around(*args: Any, **kwargs: Any) -> str:
        return function(*args, **kwargs)

    return around


def _styled(sub: Any, topic: str, *, style: Any = None) -> str:
    return str((style or sub)(topic=topic).fact)


def _closure_over(subs: Any) -> Callable[[str], str]:
    def ask(topic: str) -> str:
        """Ask."""
        (sub,) = subs.values() if isinstance(subs, dict) else subs
        return str(sub(topic=topic).fact)

    return ask


def _same(topic: str) -> str:
    return topic


def _with_default(sub: Any) -> Callable[..., str]:
    def ask(topic: str, part: Any = sub) -> str:
        """Ask."""
        return str(part(topic=topic).fact)

    return ask


SCHEMA = {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]}

HOLDERS: Mapping[str, tuple[Callable[[], Module], str]] = {
    "module": (lambda: agent_of({"ask": inner_predictor()}), "tools['ask']"),
    "partial of a module": (lambda: agent_of({"ask": functools.partial(inner_predictor())}), "tools['ask']"),
    "module with a guard": (
        lambda: agent_of(Tool(inner_predictor(), "ask").then(lambda value: value)),
        "tools['ask']",
    ),
    "method of the team": (Team, "inner"),
    "method of a module": (lambda: agent_of({"ask": Inner().research}), "tools['ask'].sub"),
    "partial, position": (
        lambda: agent_of(Tool(functools.partial(_styled, inner_predictor()), "ask", parameters=SCHEMA)),
        "tools['ask'][0]",
    ),
    "partial, keyword": (
        lambda: agent_of(Tool(functools.partial(_styled, None, style=inner_predictor()), "ask", parameters=SCHEMA)),
        "tools['ask'].style",
    ),
    "closure": (lambda: agent_of(ask_of(inner_predictor())), "tools['ask'].sub"),
    "closure over a list": (lambda: agent_of(_closure_over([inner_predictor()])), "tools['ask'].subs[0]"),
    "closure over a dict": (lambda: agent_of(_closure_over({"k": inner_predictor()})), "tools['ask'].subs['k']"),
    "default": (
        lambda: agent_of(Tool(_with_default(inner_predictor()), "ask", parameters=SCHEMA)),
        "tools['ask'].part",
    ),
    "wraps": (lambda: agent_of({"ask": logged(ask_of(inner_predictor()))}), "tools['ask'].sub"),
    "guard of a tool": (
        lambda: agent_of(Tool(_same, "ask", parameters=SCHEMA).then(ask_of(inner_predictor()))),
        "tools['ask'].guards[0].sub",
    ),
    "list of functions": (Listed, "tools[0].sub"),
}
"""By kind: makes a program, and the name of the inner predictor in it."""


def of_kind(kind: str) -> Any:
    """Return a program with its model."""
    program = HOLDERS[kind][0]()
    program.set_lm(model())
    return program


def inner_of(kind: str, program: Module) -> Any:
    """Return the inner predictor of a program."""
    return dict(program.named_predictors())[HOLDERS[kind][1]]


def shout(kind: str, program: Module) -> None:
    """Give the inner predictor of a program the better instructions."""
    inner = inner_of(kind, program)
    inner.signature = inner.signature.with_instructions("SHOUT.")
