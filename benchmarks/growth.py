"""Growth of a call's cost with fields (j1), demos (j2), turns of history (j3) and tools (j4), with calls and without."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, create_model

import sigwire
from benchmarks import peers
from benchmarks.predict import INPUTS, REPLY, floor_call, sigwire_call
from benchmarks.stub import StubLM, sections
from benchmarks.timing import FLOOR, SIGWIRE, Contestant, Job
from sigwire import Capabilities, History, InputField, OutputField, Signature, Tool, ToolCall, ToolCalls

__all__ = ["jobs"]

SECTION = re.compile(r"^\[\[ ## (\w+) ## \]\]$", re.MULTILINE)


def jobs() -> Iterator[Job]:
    """Yield j1 to j4, each at several sizes."""
    yield from (fields(count, target) for count, target in ((2, "≤ 10x"), (10, "≤ 6x"), (50, "≤ 4x")))
    yield from (demos(count, target) for count, target in ((0, ""), (8, ""), (64, "≤ 1.2x")))
    yield from (history(count, target) for count, target in ((0, ""), (20, ""), (200, "≤ 1.5x")))
    one = tools(1)
    yield from (
        Job("j4", f"{count} tools (floor: 1 tool)", "≤ 1.3x", {FLOOR: one, SIGWIRE: tools(count)})
        for count in (20, 200)
    )
    yield from (plain_answer(count) for count in (1, 200))


# --- j1: fields --------------------------------------------------------------------------------------


def fields(count: int, target: str) -> Job:
    names_in = [f"given_{n}" for n in range(count // 2)]
    names_out = [f"found_{n}" for n in range(count // 2)]
    inputs = {name: f"the value of {name}" for name in names_in}
    reply = sections(**{name: f"value of {name}" for name in names_out})
    expected = {name: f"value of {name}" for name in names_out}
    system = "Reply with the sections " + ", ".join(names_out)
    fields_out: dict[str, Any] = dict.fromkeys(names_out, (str, ...))
    reply_model: type[BaseModel] = create_model("Reply", **fields_out)

    def floor() -> dict[str, Any]:
        ask = "\n\n".join([f"[[ ## {name} ## ]]\n{value}" for name, value in inputs.items()])
        answer(({"role": "system", "content": system}, {"role": "user", "content": ask}))
        parts = SECTION.split(reply)
        found = {name: parts[at + 1].strip() for at, name in enumerate(parts) if name in expected}
        return vars(reply_model.model_validate(found))

    def answer(messages: tuple[dict[str, str], ...]) -> str:
        return reply

    predict: Any = sigwire.Predict(f"{', '.join(names_in)} -> {', '.join(names_out)}")
    predict.lm = StubLM(reply)
    assert floor() == expected == dict(predict(**inputs).items())
    return Job("j1", f"{count} fields", target, {FLOOR: floor, SIGWIRE: lambda: predict(**inputs)})


# --- j2: demos ---------------------------------------------------------------------------------------


def demos(count: int, target: str) -> Job:
    rows = [{**INPUTS, "question": f"Question {n}?", "answer": str(n), "confidence": n / 100} for n in range(count)]
    contestants = {FLOOR: lambda: floor_call(rows), SIGWIRE: sigwire_call(rows), **peers.predict(INPUTS, REPLY, rows)}
    return Job("j2", f"{count} demos", target, contestants)


# --- j3: history -------------------------------------------------------------------------------------


class Converse(Signature):
    """Go on with the conversation."""

    history: History = InputField()
    question: str = InputField()
    sources: list[str] = InputField()
    answer: str = OutputField()


def history(count: int, target: str) -> Job:
    turns = [{"question": f"Question {n}?", "sources": [f"source {n}"], "answer": f"Answer {n}."} for n in range(count)]
    question, sources = "And now?", ["source"]
    reply = sections(answer="Well.")

    def floor() -> str:
        messages = [{"role": "system", "content": "Go on with the conversation. Reply with the section answer."}]
        for turn in turns:
            ask = f"[[ ## question ## ]]\n{turn['question']}\n\n[[ ## sources ## ]]\n{json.dumps(turn['sources'])}"
            answered = f"[[ ## answer ## ]]\n{turn['answer']}\n\n[[ ## completed ## ]]\n"
            messages.append({"role": "user", "content": ask})
            messages.append({"role": "assistant", "content": answered})
        ask = f"[[ ## question ## ]]\n{question}\n\n[[ ## sources ## ]]\n{json.dumps(sources)}\n\nReply with answer."
        messages.append({"role": "user", "content": ask})
        return SECTION.split(reply)[2].strip()

    predict: Any = sigwire.Predict(Converse)
    predict.lm = StubLM(reply)
    past = History(messages=turns)

    def call() -> str:
        return str(predict(history=past, question=question, sources=sources).answer)

    assert floor() == call() == "Well."
    return Job("j3", f"{count} turns of history", target, {FLOOR: floor, SIGWIRE: call})


# --- j4: tools ---------------------------------------------------------------------------------------


PARAMETERS: dict[str, Any] = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


class Choose(Signature):
    """Choose the calls."""

    request: str = InputField()
    tools: list[Tool] = InputField()
    calls: ToolCalls = OutputField()


def tools(count: int) -> Contestant:
    """Return a Predict call with ``count`` native tools whose answer calls one tool."""
    offered = [Tool.from_schema(f"tool_{n}", f"Does the thing of number {n}.", PARAMETERS) for n in range(count)]
    predict: Any = sigwire.Predict(Choose)
    predict.lm = StubLM(
        calls=[ToolCall("call_0", "tool_0", {"city": "Oslo"})], capabilities=Capabilities(native_tools=True)
    )

    def call() -> Any:
        return predict(request="What about Oslo?", tools=offered).calls

    assert call()[0].arguments == {"city": "Oslo"}
    return call


class Reply(Signature):
    """Answer the request."""

    request: str = InputField()
    tools: list[Tool] = InputField()
    answer: str = OutputField()


def plain_answer(count: int) -> Job:
    """Return the job of an answer in plain text, while tools are offered. The floor reads the section by hand."""
    text = "It is cold in Oslo in January, about four degrees below zero. " * 6
    reply = sections(answer=text)
    offered = [Tool.from_schema(f"tool_{n}", f"Does the thing of number {n}.", PARAMETERS) for n in range(count)]
    predict: Any = sigwire.Predict(Reply)
    predict.lm = StubLM(reply, capabilities=Capabilities(native_tools=True))

    def floor() -> str:
        ask = "[[ ## request ## ]]\nWhat about Oslo?\n\nReply with the section answer."
        messages = [{"role": "system", "content": "Answer the request."}, {"role": "user", "content": ask}]
        assert len(messages) == 2
        return SECTION.split(reply)[2].strip()

    def call() -> str:
        return str(predict(request="What about Oslo?", tools=offered).answer)

    assert floor() == call() == text.strip()
    return Job("j4", f"{count} tools, an answer in plain text", "≤ 12x", {FLOOR: floor, SIGWIRE: call})
