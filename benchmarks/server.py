"""The provider of the HTTP jobs: a separate process on loopback, written by hand to be cheap.

    POST /                              a prepared answer
    POST /stream                        2,000 events, each in a separate chunk and write
    POST /fields/chat/completions       OpenAI's shape, streamed: an answer in 2,000 deltas, in the chat adapter's sections
    POST /object/<n>/chat/completions   the same: a JSON object in n deltas
    POST /alone/chat/completions        the same: an answer in 40 deltas, each sent 2 ms after the one before
    POST /predict/chat/completions      OpenAI's shape: the answer of b1's Predict
    POST /count/chat/completions        the same, and the answer is the number in the last "Question <number>?"
    POST /agent/chat/completions        a call of look_up for each of five turns, then one of submit
    GET  /requests                      the number of posted requests

The server searches the bytes of a request and parses no JSON. ``python -m benchmarks.server`` prints its port.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import subprocess
import sys
import urllib.request
from collections.abc import Callable, Generator, Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.stub import sections
from sigwire.core.json import JsonValue

__all__ = ["ANSWER", "EVENT", "EVENTS", "OBJECTS", "TURNS", "WORDS", "answered", "notes", "posted", "serving"]

ROOT = Path(__file__).resolve().parent.parent
EVENTS, TURNS = 2_000, 5
ANSWER = json.dumps(
    {"choices": [{"message": {"role": "assistant", "content": "In 1932. " * 30}}], "usage": {}}
).encode()
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":" bridge"}}]}\n\n'
STREAM_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
REPLY_HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nx-request-id: r\r\ncontent-length: %d\r\n\r\n%b"


# --- the answers ---------------------------------------------------------------------------------------


def reply(body: bytes) -> bytes:
    return REPLY_HEAD % (len(body), body)


def completion(message: Mapping[str, Any], finish_reason: str) -> bytes:
    """Return an answer in the format of OpenAI's chat completions."""
    body = {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1_760_000_000,
        "model": "gpt-4o-mini-2024-07-18",
        "choices": [{"index": 0, "message": {"role": "assistant", **message}, "finish_reason": finish_reason}],
        "usage": {"prompt_tokens": 180, "completion_tokens": 20, "total_tokens": 200},
    }
    return reply(json.dumps(body).encode())


def answer_of(answer: str) -> bytes:
    return completion({"content": sections(answer=answer, confidence="0.9"), "refusal": None}, "stop")


def called(number: int, name: str, **arguments: str) -> bytes:
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return completion({"content": None, "tool_calls": [call]}, "tool_calls")


PREPARED = reply(ANSWER)
BRIDGE = answer_of("1932")
NUMBERED = [answer_of(str(number)) for number in range(1_000)]
AGENT = [*(called(n, "look_up", key=f"key {n}") for n in range(TURNS)), called(TURNS, "submit", answer="1932")]
WORDS = [f" word {number}," for number in range(EVENTS)]
QUESTION = re.compile(rb"Question (\d+)\?")

ANSWERS: Mapping[bytes, Callable[[bytes], bytes]] = {
    b"/": lambda body: PREPARED,
    b"/predict/chat/completions": lambda body: BRIDGE,
    b"/count/chat/completions": lambda body: NUMBERED[int(QUESTION.findall(body)[-1])],
    b"/agent/chat/completions": lambda body: AGENT[body.count(b'"tool_call_id"')],
}


def streamed(texts: Iterable[str]) -> list[bytes]:
    """Return an answer as OpenAI's chat completions stream it: events, each in an HTTP chunk."""
    deltas = [{"role": "assistant", "content": ""}, *({"content": text} for text in texts)]
    events = [_event([{"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}]) for delta in deltas]
    end = _event([{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}])
    counted = _event([], usage={"prompt_tokens": 180, "completion_tokens": 2_000, "total_tokens": 2_180})
    return [b"%x\r\n%b\r\n" % (len(event), event) for event in [*events, end, counted, b"data: [DONE]\n\n"]]


def _event(choices: list[dict[str, Any]], **more: Any) -> bytes:
    event = {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1_760_000_000,
        "model": "gpt-4o-mini-2024-07-18",
        "service_tier": "default",
        "system_fingerprint": "fp_1",
        "choices": choices,
    }
    return b"data: " + json.dumps({**event, **more}).encode() + b"\n\n"


def notes(deltas: int) -> list[JsonValue]:
    """Return the list of an object whose JSON has about ``deltas`` parts of twelve characters."""
    return [
        {"number": number, "title": f"Note {number:05}", "tags": ["a tag", "another"], "done": number % 2 == 0}
        for number in range(deltas // 7)
    ]


def text_deltas(text: str, size: int = 12) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


OBJECTS = (1_000, 4_000)
ALONE = streamed(["[[ ##", " answer", " ## ]]\n", *WORDS[:40], "\n\n[[ ## completed ## ]]"])
PAUSE = 0.002
STREAMS: Mapping[bytes, list[bytes]] = {
    b"/fields/chat/completions": streamed(["[[ ##", " answer", " ## ]]\n", *WORDS, "\n\n[[ ## completed ## ]]"]),
    **{
        b"/object/%d/chat/completions" % size: streamed(text_deltas(json.dumps({"notes": notes(size)})))
        for size in OBJECTS
    },
}


# --- the server ----------------------------------------------------------------------------------------


class Answering(asyncio.Protocol):
    """One connection without pipelining. Answers complete requests only."""

    posted = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport
        self.received = b""

    def data_received(self, data: bytes) -> None:
        self.received += data
        end = self.received.find(b"\r\n\r\n") + 4
        if end < 4:
            return
        head = self.received[:end]
        whole = end + length_of(head)
        if len(self.received) >= whole:
            body, self.received = self.received[end:whole], self.received[whole:]
            method, path, _ = head.split(b" ", 2)
            self.answer(method, path, body)

    def answer(self, method: bytes, path: bytes, body: bytes) -> None:
        if method == b"GET":
            self.transport.write(reply(b"%d" % Answering.posted))
            return
        Answering.posted += 1
        if path == b"/stream":
            self.stream([b"%x\r\n%b\r\n" % (len(EVENT), EVENT)] * EVENTS)
        elif path in STREAMS:
            self.stream(STREAMS[path])
        elif path == b"/alone/chat/completions":
            self.stream_slowly([STREAM_HEAD, *ALONE, b"0\r\n\r\n"])
        else:
            self.transport.write(ANSWERS[path](body))

    def stream(self, chunks: Iterable[bytes]) -> None:
        self.transport.write(STREAM_HEAD)
        for chunk in chunks:
            self.transport.write(chunk)
        self.transport.write(b"0\r\n\r\n")

    def stream_slowly(self, chunks: Iterable[bytes]) -> None:
        loop = asyncio.get_running_loop()
        for number, chunk in enumerate(chunks):
            loop.call_later(number * PAUSE, self.transport.write, chunk)


def length_of(head: bytes) -> int:
    head = head.lower()
    start = head.find(b"content-length:") + 15
    return int(head[start : head.index(b"\r\n", start)]) if start >= 15 else 0


async def serve() -> None:
    server = await asyncio.get_running_loop().create_server(Answering, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


# --- for the jobs --------------------------------------------------------------------------------------


@contextlib.contextmanager
def serving() -> Generator[int]:
    """Start the server in a separate process and yield its port."""
    command = [sys.executable, "-m", "benchmarks.server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.terminate()


def posted(port: int) -> int:
    """Return the number of requests that the server counted."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}/requests") as answer:
        return int(answer.read())


def answered(port: int, contestant: Callable[[], object], expected: object, requests: int) -> Callable[[], object]:
    """Return the contestant after a check of its answer and its number of requests."""
    before = posted(port)
    assert contestant() == expected
    assert posted(port) - before == requests
    return contestant


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve())
