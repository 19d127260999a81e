"""A transport that edits the replies of a batch API: results that are damaged, missing, foreign or gone."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from sigwire.lm.http.messages import HttpReply, HttpRequest
from sigwire.lm.http.transport import HttpTransport

Edit = Callable[[HttpRequest, HttpReply], HttpReply]
_RESULTS = re.compile(r"/results$|/content$|/v1beta/batches/[^/:?]+$")


class EditingTransport(HttpTransport):
    """Replaces each reply by that of ``edit``; a request for which ``refuse`` has a reply is not sent. Both may change."""

    def __init__(self) -> None:
        super().__init__()
        self.edit: Edit | None = None
        self.refuse: Callable[[HttpRequest], HttpReply | None] = lambda request: None
        self.sent: list[HttpRequest] = []

    def send(self, request: HttpRequest) -> HttpReply:
        self.sent.append(request)
        if (refusal := self.refuse(request)) is not None:
            return refusal
        reply = super().send(request)
        return reply if self.edit is None else self.edit(request, reply)


def has_results(request: HttpRequest) -> bool:
    """Return True for the calls that return results: a file of lines, or the state of a batch of Gemini."""
    return request.method == "GET" and _RESULTS.search(request.url) is not None


def edit_results(change: Callable[[list[bytes]], list[bytes]]) -> Edit:
    """Return the edit that changes the results of each batch, as a list of JSON texts. Unchanged texts stay as they are."""

    def edit(request: HttpRequest, reply: HttpReply) -> HttpReply:
        if not has_results(request) or reply.status != 200:
            return reply
        if "/v1beta/" not in request.url:
            return HttpReply(200, reply.headers, b"\n".join(change(reply.body.splitlines())))
        body: dict[str, Any] = json.loads(reply.body)
        if "output" not in body["metadata"]:
            return reply
        lines = body["metadata"]["output"]["inlinedResponses"]["inlinedResponses"]
        texts = change([json.dumps(line).encode() for line in lines])
        body["metadata"]["output"]["inlinedResponses"]["inlinedResponses"] = "LINES"
        text = json.dumps(body).encode().replace(b'"LINES"', b"[" + b",".join(texts) + b"]")
        return HttpReply(200, reply.headers, text)

    return edit


def on_line(answer: str, change: Callable[[bytes], list[bytes]]) -> Edit:
    """Return the edit that changes the lines with an answer."""

    def change_all(lines: list[bytes]) -> list[bytes]:
        return [new for line in lines for new in (change(line) if answer.encode() in line else [line])]

    return edit_results(change_all)
