"""Pages in headless Chromium, driven by the DevTools protocol: scripts run, keys are pressed, messages of the console kept."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
import pytest

__all__ = ["OUTSIDE", "SMALLEST_TEXT", "Tab", "open_tab", "resize"]

_SWITCHES = [
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-extensions", "--remote-debugging-port=0",
]  # fmt: skip

SMALLEST_TEXT = """Math.min(...[...document.querySelectorAll('main *')]
  .filter(each => [...each.childNodes].some(node => node.nodeType === 3 && node.data.trim()))
  .map(each => parseFloat(getComputedStyle(each).fontSize)))"""
"""The size in pixels of the smallest text."""
OUTSIDE = """[...document.querySelectorAll('tr.detail *, svg text')].filter(each => {
  const box = each.getBoundingClientRect();
  return box.width && (box.left < -1 || box.right > document.documentElement.clientWidth + 1);
}).map(each => each.outerHTML.slice(0, 200))"""
"""Parts of opened rows and labels of drawings that are not in the view."""


class Tab:
    """A page in a browser. ``problems``: errors of the script, messages of the console, and requests but that of the page."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._numbers = socket, count(1)
        self.problems: list[str] = []
        self._session = ""

    async def open(self, url: str) -> None:
        """Load a page."""
        target = await self._send("Target.createTarget", url="about:blank")
        attached = await self._send("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self._send(f"{domain}.enable")
        await self._send("Page.navigate", url=url)
        await self.run(
            "new Promise(done => document.readyState === 'complete' ? done() : addEventListener('load', done))"
        )

    async def run(self, script: str) -> Any:
        """Return the value of an expression in the page."""
        found = await self._send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def press(self, key: str) -> None:
        """Press a key."""
        text = {"Enter": "\r"}.get(key, key if len(key) == 1 else "")
        await self._send("Input.dispatchKeyEvent", type="keyDown", key=key, text=text)
        await self._send("Input.dispatchKeyEvent", type="keyUp", key=key)

    async def _send(self, method: str, **params: Any) -> Any:
        number = next(self._numbers)
        session = {"sessionId": self._session} if self._session else {}
        await self._socket.send_json({"id": number, "method": method, "params": params, **session})
        while True:
            message = json.loads((await self._socket.receive(timeout=30)).data)
            if message.get("id") == number:
                assert "error" not in message, message
                return message["result"]
            self._keep(message)

    def _keep(self, message: dict[str, Any]) -> None:
        method = message.get("method")
        if method in ("Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"):
            self.problems.append(json.dumps(message["params"]))
        if method == "Network.requestWillBeSent" and message["params"].get("type") != "Document":
            self.problems.append(message["params"]["request"]["url"])


async def resize(tab: Tab, width: int) -> None:
    """Give the page another width."""
    await tab._send("Emulation.setDeviceMetricsOverride", width=width, height=800, deviceScaleFactor=1, mobile=False)


@asynccontextmanager
async def open_tab(url: str, folder: Path) -> AsyncGenerator[Tab]:
    """Open a page in a browser of its own. Skips the test if there is no Chromium."""
    browser = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if browser is None:
        pytest.skip("there is no Chromium")
    process = await asyncio.create_subprocess_exec(
        browser, *_SWITCHES, f"--user-data-dir={folder / 'profile'}", stderr=asyncio.subprocess.PIPE
    )
    try:
        async with (
            aiohttp.ClientSession() as client,
            client.ws_connect(await _address(process), max_msg_size=0) as socket,
        ):
            tab = Tab(socket)
            await tab.open(url)
            yield tab
            await socket.send_json({"id": 0, "method": "Browser.close", "params": {}})
            async with asyncio.timeout(20):
                await process.wait()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async with asyncio.timeout(60):
        async for line in process.stderr:
            if found := re.search(rb"ws://\S+", line):
                return found[0].decode()
    raise AssertionError("Chromium ended before it was ready")
