"""A provider on this machine that takes so many requests a second, with hints as providers give them."""

from __future__ import annotations

import asyncio
import json
import random
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Literal

Hint = Literal["none", "one", "exact", "headers"]


@dataclass
class RateLimitedServer:
    """Answers OpenAI chat requests: ``rate`` a second, ``burst`` at once, after ``seconds``; others get a 429.

    ``hint``: the ``retry-after`` of a refusal is missing, always 1, or exact; or every reply has ``x-ratelimit`` headers.
    """

    rate: float
    burst: int = 1
    seconds: float = 0.05
    hint: Hint = "none"
    answered: Counter[str] = field(default_factory=Counter)
    refused: int = 0

    def __enter__(self) -> RateLimitedServer:
        started = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._level, self._at = float(self.burst), time.monotonic()

        def serve() -> None:
            async def start() -> None:
                self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, backlog=1024)
                self.port = self._server.sockets[0].getsockname()[1]
                started.set()

            self._loop.run_until_complete(start())
            self._loop.run_forever()

        self._thread = threading.Thread(target=serve, daemon=True)
        self._thread.start()
        assert started.wait(60)
        self.started = time.monotonic()
        return self

    def __exit__(self, *args: object) -> None:
        async def stop() -> None:
            self._server.close()
            tasks = asyncio.all_tasks() - {asyncio.current_task()}
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(stop(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(60)
        self._loop.close()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def ideal(self, calls: int) -> float:
        """Return the seconds that the limit allows for so many calls."""
        return (calls - self.burst) / self.rate + self.seconds

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
                body = json.loads(await reader.readexactly(int(fields[b"content-length"])))
                status, headers, reply = self._admit(body["messages"][-1]["content"])
                if status == 200:
                    await asyncio.sleep(self.seconds * (0.7 + 0.6 * random.random()))
                    self.answered[body["messages"][-1]["content"]] += 1
                data = json.dumps(reply).encode()
                headers = {"content-type": "application/json", "content-length": str(len(data)), **headers}
                lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
                writer.write(f"HTTP/1.1 {status} X\r\n{lines}\r\n".encode() + data)
        except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
            pass
        finally:
            writer.close()

    def _admit(self, text: str) -> tuple[int, dict[str, str], object]:
        now = time.monotonic()
        self._level = min(self.burst, self._level + (now - self._at) * self.rate)
        self._at = now
        headers: dict[str, str] = {}
        taken = self._level >= 1
        self._level -= taken
        if self.hint == "headers":
            headers = {
                "x-ratelimit-limit-requests": str(self.burst),
                "x-ratelimit-remaining-requests": str(int(self._level)),
                "x-ratelimit-reset-requests": f"{int((self.burst - int(self._level)) / self.rate * 1000)}ms",
            }
        if taken:
            message = {"role": "assistant", "content": text}
            return 200, headers, {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}], "usage": {}}
        self.refused += 1
        hints = {"one": "1", "exact": f"{(1 - self._level) / self.rate:.3f}"}
        if self.hint in hints:
            headers["retry-after"] = hints[self.hint]
        return 429, headers, {"error": {"message": "too many requests", "code": "rate_limit_exceeded"}}
