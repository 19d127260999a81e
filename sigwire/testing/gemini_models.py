"""What Gemini models refuse, by their version, and which tools do not go together."""

from __future__ import annotations

import re

from sigwire.testing.answers import Fault
from sigwire.testing.request_node import RequestNode
from sigwire.testing.wire import Rejected

__all__ = ["check_model"]

OLD = re.compile(r"gemini-[12]\b.*")  # before version 3, which brought much of this


def check_model(body: RequestNode, config: RequestNode, model: str) -> None:
    """Refuse what the API refuses for the model."""
    tools = body.get("tools")
    kinds = {kind for tool in tools.items() for kind in tool.fields()} if tools else set[str]()
    old = OLD.fullmatch(model) is not None
    mime = config.get("responseMimeType")
    if old and "functionDeclarations" in kinds and mime and mime.value == "application/json":
        raise mime.wrong("Function calling with a response mime type: 'application/json' is unsupported")
    calling = body.get("toolConfig")
    if len(kinds) > 1 and (old or not (calling and calling.has("includeServerSideToolInvocations"))):
        raise Rejected(Fault("bad_request", "Tool call context circulation is not enabled."))
    if thinking := config.get("thinkingConfig"):
        _check_thinking(thinking, model, old)


def _check_thinking(thinking: RequestNode, model: str, old: bool) -> None:
    level, budget = thinking.get("thinkingLevel"), thinking.get("thinkingBudget")
    if level and old:
        raise level.wrong("Thinking level is not supported for this model.")
    if budget and budget.value == 0 and model.startswith("gemini-2.5-pro"):
        raise budget.wrong("Budget 0 is invalid. This model only works in thinking mode.")
