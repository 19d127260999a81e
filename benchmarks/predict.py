"""One call of Predict in process, two fields in and two out: sync (b1), 64 tasks (b2), with 8 demos (b3)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from pydantic import BaseModel

import sigwire
from benchmarks import peers
from benchmarks.stub import StubLM, sections
from benchmarks.timing import FLOOR, SIGWIRE, Contestant, Job
from sigwire import Example, InputField, OutputField, Signature

__all__ = ["INPUTS", "REPLY", "SYSTEM", "demo_pairs", "floor_call", "floor_reply", "jobs"]

TASKS, CALLS_PER_TASK = 64, 10
CONTEXT = (
    "The harbour bridge was opened in 1932 after eight years of work, and carries rail, road and foot traffic. " * 3
)
INPUTS = {"context": CONTEXT, "question": "When was the bridge opened?"}
REPLY = sections(answer="1932", confidence="0.9")
SYSTEM = "Answer the question from the context. Reply with the sections answer (string) and confidence (number)."
SECTION = re.compile(r"^\[\[ ## (\w+) ## \]\]$", re.MULTILINE)


class Ask(Signature):
    """Answer the question from the context."""

    context: str = InputField()
    question: str = InputField()
    answer: str = OutputField()
    confidence: float = OutputField()


class Reply(BaseModel):
    answer: str
    confidence: float


# --- by hand -----------------------------------------------------------------------------------------


def floor_reply(messages: list[dict[str, str]]) -> str:
    """Return the canned answer: the model of the floor."""
    return REPLY


async def floor_areply(messages: list[dict[str, str]]) -> str:
    return REPLY


def floor_messages(context: str, question: str, demos: Sequence[dict[str, Any]] = ()) -> list[dict[str, str]]:
    messages = [{"role": "system", "content": SYSTEM}]
    for demo in demos:
        messages += demo_pairs(demo)
    ask = f"[[ ## context ## ]]\n{context}\n\n[[ ## question ## ]]\n{question}\n\nReply with answer, then confidence."
    messages.append({"role": "user", "content": ask})
    return messages


def demo_pairs(demo: dict[str, Any]) -> list[dict[str, str]]:
    """Return a demo as two messages."""
    ask = f"[[ ## context ## ]]\n{demo['context']}\n\n[[ ## question ## ]]\n{demo['question']}"
    confidence = json.dumps(demo["confidence"])
    reply = f"[[ ## answer ## ]]\n{demo['answer']}\n\n[[ ## confidence ## ]]\n{confidence}\n\n[[ ## completed ## ]]"
    return [{"role": "user", "content": ask}, {"role": "assistant", "content": reply}]


def floor_read(text: str) -> tuple[str, float]:
    _, _, answer, _, confidence, *_ = SECTION.split(text)
    reply = Reply.model_validate({"answer": answer.strip(), "confidence": confidence.strip()})
    return reply.answer, reply.confidence


def floor_call(demos: Sequence[dict[str, Any]] = ()) -> tuple[str, float]:
    """Make the whole call by hand."""
    return floor_read(floor_reply(floor_messages(INPUTS["context"], INPUTS["question"], demos)))


async def floor_acall() -> tuple[str, float]:
    return floor_read(await floor_areply(floor_messages(INPUTS["context"], INPUTS["question"])))


# --- the jobs ----------------------------------------------------------------------------------------


def jobs() -> Iterator[Job]:
    """Yield b1, b2 and b3."""
    demos = [{**INPUTS, "question": f"Question {n}?", "answer": str(n), "confidence": n / 10} for n in range(8)]
    yield Job(
        "b1",
        "Predict, 2 in 2 out, sync",
        "≤ 10x",
        {FLOOR: checked(floor_call), SIGWIRE: checked(sigwire_call()), **peers.predict(INPUTS, REPLY)},
    )
    loop = asyncio.new_event_loop()
    predict = stub_predict()
    yield Job(
        "b2",
        f"the same, {TASKS} tasks",
        "≤ 11x",
        {FLOOR: tasks(loop, floor_acall), SIGWIRE: tasks(loop, lambda: predict.acall(**INPUTS))},
        per=TASKS * CALLS_PER_TASK,
    )
    loop.close()
    yield Job(
        "b3",
        "b1 with 8 demos",
        "≤ 1.5x",
        {
            FLOOR: checked(lambda: floor_call(demos)),
            SIGWIRE: checked(sigwire_call(demos)),
            **peers.predict(INPUTS, REPLY, demos),
        },
    )


def stub_predict(demos: Sequence[dict[str, Any]] = ()) -> Any:
    """Return a Predict with the stub and demos."""
    predict = sigwire.Predict(Ask)
    predict.lm = StubLM(REPLY)
    predict.demos = [Example(**demo).with_inputs("context", "question") for demo in demos]
    return predict


def sigwire_call(demos: Sequence[dict[str, Any]] = ()) -> Contestant:
    predict = stub_predict(demos)

    def call() -> tuple[str, float]:
        prediction = predict(**INPUTS)
        return prediction.answer, prediction.confidence

    return call


def checked(contestant: Contestant) -> Contestant:
    """Return the contestant after its answer was checked."""
    assert contestant() == ("1932", 0.9)
    return contestant


def tasks(loop: asyncio.AbstractEventLoop, call: Callable[[], Awaitable[object]]) -> Contestant:
    """Return a contestant that runs concurrent tasks of several calls each."""

    async def one() -> None:
        for _ in range(CALLS_PER_TASK):
            await call()

    async def together() -> None:
        await asyncio.gather(*(one() for _ in range(TASKS)))

    return lambda: loop.run_until_complete(together())
