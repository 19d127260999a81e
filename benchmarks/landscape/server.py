"""The model over HTTP: OpenAI's chat wire on loopback, in a process of its own.

    POST /v1/chat/completions   an answer
    GET  /counts                the posted requests as JSON: {"task": 0, "writing": 0}

A temperature above 0 makes every repetition of a request a new draw; else the same request has the same answer.
``python -m benchmarks.landscape.server --seed 0`` prints its port.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Generator
from hashlib import blake2b
from pathlib import Path
from typing import Any

from benchmarks.landscape.chance import Chance
from benchmarks.landscape.model import answer
from benchmarks.landscape.reading import prompt_of
from benchmarks.landscape.writer import write

__all__ = ["Landscape", "counts", "serving"]

ROOT = Path(__file__).resolve().parent.parent.parent
HEAD = b"HTTP/1.1 %s\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b"


class Landscape:
    """The model: one answer for one request, and the counts of requests by kind."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.counts = Counter[str](task=0, writing=0)
        self.repeats = Counter[bytes]()

    def complete(self, raw: bytes) -> dict[str, Any]:
        """Return the body of the answer for the body of a request."""
        body = json.loads(raw)
        digest = blake2b(raw, digest_size=16).digest()
        repeat = 0
        if (body.get("temperature") or 0) > 0:
            repeat = self.repeats[digest]
            self.repeats[digest] += 1
        prompt = prompt_of(body)
        self.counts["writing" if prompt is None else "task"] += 1
        choices = list[dict[str, Any]]()
        for index in range(body.get("n") or 1):
            chance = Chance(f"{self.seed}/{digest.hex()}/{repeat}/{index}")
            message = write(body, chance) if prompt is None else answer(prompt, chance)
            reason = "tool_calls" if message.get("tool_calls") else "stop"
            choices.append({"index": index, "message": message, "finish_reason": reason})
        usage = {"prompt_tokens": len(raw) // 4, "completion_tokens": 20, "total_tokens": len(raw) // 4 + 20}
        return {
            "id": f"chatcmpl-{digest.hex()[:12]}",
            "object": "chat.completion",
            "created": 1_760_000_000,
            "model": body["model"],
            "choices": choices,
            "usage": usage,
        }


class Answering(asyncio.Protocol):
    """One connection, kept alive; complete requests only."""

    def __init__(self, landscape: Landscape) -> None:
        self.landscape = landscape
        self.received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport: Any = transport

    def data_received(self, data: bytes) -> None:
        self.received += data
        while (end := self.received.find(b"\r\n\r\n") + 4) >= 4:
            whole = end + _length_of(self.received[:end])
            if len(self.received) < whole:
                return
            head, body = self.received[:end], self.received[end:whole]
            self.received = self.received[whole:]
            self.transport.write(self.reply(head, body))

    def reply(self, head: bytes, body: bytes) -> bytes:
        if head.startswith(b"GET /counts"):
            return _reply(b"200 OK", dict(self.landscape.counts))
        try:
            return _reply(b"200 OK", self.landscape.complete(body))
        except (ValueError, KeyError, TypeError, IndexError) as error:
            return _reply(
                b"400 Bad Request",
                {"error": {"message": f"{type(error).__name__}: {error}", "type": "invalid_request_error"}},
            )


def _reply(status: bytes, value: object) -> bytes:
    body = json.dumps(value).encode()
    return HEAD % (status, len(body), body)


def _length_of(head: bytes) -> int:
    head = head.lower()
    start = head.find(b"content-length:") + 15
    return int(head[start : head.index(b"\r\n", start)]) if start >= 15 else 0


async def serve(seed: int) -> None:
    landscape = Landscape(seed)
    server = await asyncio.get_running_loop().create_server(lambda: Answering(landscape), "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextlib.contextmanager
def serving(seed: int) -> Generator[int]:
    """Start the server in a separate process and yield its port."""
    command = [sys.executable, "-m", "benchmarks.landscape.server", "--seed", str(seed)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as server:
        assert server.stdout is not None
        try:
            yield int(server.stdout.readline())
        finally:
            server.terminate()


def counts(port: int) -> dict[str, int]:
    """Return the numbers of requests that the server answered, by kind."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}/counts") as answer:
        return {name: int(number) for name, number in json.loads(answer.read()).items()}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.landscape.server")
    parser.add_argument("--seed", type=int, default=0)
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(parser.parse_args().seed))
