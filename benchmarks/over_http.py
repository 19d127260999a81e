"""Over HTTP, to a server in another process: Predict (c1), 64 tasks (c2), an agent (d), a thousand examples (i1).

What is timed is this process's CPU. The floor writes its requests and reads its answers by hand, over one plain socket, or
over asyncio's protocols where there are many tasks. Every answer is checked, and the server counts the requests.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing
from typing import Any

import sigwire
from benchmarks import peers
from benchmarks.by_hand import AsyncSender, Sender
from benchmarks.predict import CALLS_PER_TASK, INPUTS, TASKS, Ask, floor_messages, floor_read, tasks
from benchmarks.server import TURNS, answered, serving
from benchmarks.timing import FLOOR, SIGWIRE, Contestant, Job

__all__ = ["MODEL", "jobs", "model"]

MODEL = "gpt-4o-mini"
BRIDGE = ("1932", 0.9)
QUESTIONS = [{**INPUTS, "question": f"Question {number}?"} for number in range(1_000)]


def model(port: int, script: str) -> sigwire.LM:
    """Return an LM of the server that plays a script."""
    return sigwire.LM(
        f"openai/{MODEL}", api_key="sk-benchmark-0123456789", base_url=f"http://127.0.0.1:{port}/{script}"
    )


def predictor(port: int, script: str) -> Any:
    predict = sigwire.Predict(Ask)
    predict.lm = model(port, script)
    return predict


class Client:
    """The server's port, and factories of connections that close at the end."""

    def __init__(self, port: int, loop: asyncio.AbstractEventLoop, opened: ExitStack) -> None:
        self.port, self.loop, self._opened = port, loop, opened

    def sender(self, script: str) -> Sender:
        sender = Sender(self.port, f"/{script}/chat/completions")
        self._opened.callback(sender.close)
        return sender

    def async_sender(self, script: str) -> AsyncSender:
        sender = AsyncSender(self.port, f"/{script}/chat/completions")
        self._opened.callback(lambda: self.loop.run_until_complete(sender.close()))
        return sender

    def predictor(self, script: str) -> Any:
        predict = predictor(self.port, script)
        self._opened.callback(predict.lm.close)
        return predict


def jobs() -> Iterator[Job]:
    """Yield c1, c2, d and i1."""
    with serving() as port, closing(asyncio.new_event_loop()) as loop, ExitStack() as opened:
        client = Client(port, loop, opened)
        yield one_call(client)
        yield many_tasks(client)
        yield agent(client)
        yield from examples(client)


# --- c1, c2: Predict -----------------------------------------------------------------------------------


def written(inputs: Mapping[str, str]) -> bytes:
    """Return the request's body, by hand."""
    return json.dumps({"model": MODEL, "messages": floor_messages(inputs["context"], inputs["question"])}).encode()


def read(body: bytes) -> tuple[str, float]:
    return floor_read(json.loads(body)["choices"][0]["message"]["content"])


def one_call(client: Client) -> Job:
    port, send, predict = client.port, client.sender("predict"), client.predictor("predict")

    def sigwire_call() -> tuple[str, float]:
        prediction = predict(**INPUTS)
        return prediction.answer, prediction.confidence

    contestants = {
        FLOOR: lambda: read(send(written(INPUTS))),
        SIGWIRE: sigwire_call,
        **peers.over_http(port, "predict", INPUTS),
    }
    checked = {name: answered(port, contestant, BRIDGE, 1) for name, contestant in contestants.items()}
    return Job("c1", "Predict over HTTP, sync", "≤ 3x", checked)


def many_tasks(client: Client) -> Job:
    port, send, predict = client.port, client.async_sender("predict"), client.predictor("predict")

    async def by_hand() -> None:
        assert read(await send(written(INPUTS))) == BRIDGE

    async def sigwire_call() -> None:
        prediction = await predict.acall(**INPUTS)
        assert (prediction.answer, prediction.confidence) == BRIDGE

    calls = {FLOOR: by_hand, SIGWIRE: sigwire_call, **peers.awaited_over_http(port, "predict", INPUTS, BRIDGE)}
    number = TASKS * CALLS_PER_TASK
    checked = {name: answered(port, tasks(client.loop, call), None, number) for name, call in calls.items()}
    return Job("c2", f"the same, {TASKS} tasks", "≤ 3x", checked, per=number)


# --- d: an agent ---------------------------------------------------------------------------------------


def look_up(key: str) -> dict[str, Any]:
    """Look a fact up.

    Args:
        key: What to look for.
    """
    return {"key": key, "fact": "The harbour bridge was opened in 1932.", "found": True}


PARAMETERS = {"type": "object", "properties": {"key": {"type": "string"}}, "required": ["key"]}
OUTPUTS = {"type": "object", "properties": {"answer": {"type": "string"}}, "required": ["answer"]}
OFFERED = [
    {"type": "function", "function": {"name": "look_up", "description": "Look a fact up.", "parameters": PARAMETERS}},
    {"type": "function", "function": {"name": "submit", "description": "Give the answer.", "parameters": OUTPUTS}},
]


def agent_by_hand(send: Callable[[bytes], bytes]) -> tuple[str, int]:
    """Run the loop by hand: ask, run the called tool, append the result, until submit."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "Answer the question. Use the tools, then call submit."},
        {"role": "user", "content": INPUTS["question"]},
    ]
    for turn in range(TURNS + 1):
        body = json.dumps({"model": MODEL, "messages": messages, "tools": OFFERED}).encode()
        message = json.loads(send(body))["choices"][0]["message"]
        (call,) = message["tool_calls"]
        arguments = json.loads(call["function"]["arguments"])
        if call["function"]["name"] == "submit":
            return arguments["answer"], turn
        result = json.dumps(look_up(arguments["key"]))
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    raise AssertionError("the agent never came to an end")


def agent(client: Client) -> Job:
    send = client.sender("agent")
    react: Any = sigwire.ReAct("question -> answer", tools=[look_up])
    react.set_lm(model(client.port, "agent"))

    def sigwire_call() -> tuple[str, int]:
        prediction = react(question=INPUTS["question"])
        return prediction.answer, sum(len(step.calls) for step in prediction.steps) - 1

    contestants: Mapping[str, Contestant] = {FLOOR: lambda: agent_by_hand(send), SIGWIRE: sigwire_call}
    checked = {
        name: answered(client.port, contestant, ("1932", TURNS), TURNS + 1) for name, contestant in contestants.items()
    }
    return Job("d", f"ReAct, {TURNS} native tool turns and submit, over HTTP", "≤ 3x", checked, unit="ms")


# --- i1: many examples ---------------------------------------------------------------------------------


def examples(client: Client) -> Iterator[Job]:
    send, predict, number = client.async_sender("count"), client.predictor("count"), len(QUESTIONS)

    async def by_hand() -> int:
        results = [("", 0.0)] * number
        places = iter(range(number))

        async def work() -> None:
            for place in places:
                results[place] = read(await send(written(QUESTIONS[place])))

        await asyncio.gather(*(work() for _ in range(TASKS)))
        return right(results)

    async def awaited() -> int:
        return right([(p.answer, p.confidence) for p in await predict.abatch(QUESTIONS, num_threads=TASKS)])

    def blocked() -> int:
        return right([(p.answer, p.confidence) for p in predict.batch(QUESTIONS, num_threads=8)])

    floor = answered(client.port, lambda: client.loop.run_until_complete(by_hand()), number, number)
    for what, call in (
        (f"abatch, {TASKS} tasks", lambda: client.loop.run_until_complete(awaited())),
        ("batch, 8 threads", blocked),
    ):
        checked = answered(client.port, call, number, number)
        yield Job("i1", f"{number:,} examples over HTTP, {what}", "≤ 4x", {FLOOR: floor, SIGWIRE: checked}, unit="ms")


def right(results: Sequence[tuple[str, float]]) -> int:
    """Count the right results: each answer is the number of its question."""
    return sum(result == (str(number), 0.9) for number, result in enumerate(results))
