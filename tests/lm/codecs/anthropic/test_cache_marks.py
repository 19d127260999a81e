"""Messages: the marks of the provider's prompt cache."""

from __future__ import annotations

from typing import Any

import pytest

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.messages import Message
from sigwire.core.parts import OpaquePart, TextPart
from sigwire.core.request import Request
from sigwire.errors import ConfigurationError
from tests.lm.codecs.anthropic.wire import encoded

MARK: JsonObject = {"cache_control": {"type": "ephemeral"}}
HOUR: JsonObject = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
SYSTEM, LONG = Message.system("s" * 2000), Message.system("s" * 4000)
DEMO = (Message.user("q" * 1000), Message.assistant("a" * 1000))
ASKED = Message.user("question")


def marks(request: Request) -> dict[str, Any]:
    """Return the marks by their place: the body, the system text, or the index of a message."""
    body: Any = encoded(request).body
    found = {"body": body.get("cache_control"), "system": _mark_of(body.get("system"))}
    found |= {str(at): _mark_of(message["content"]) for at, message in enumerate(body["messages"])}
    return {place: mark for place, mark in found.items() if mark}


def _mark_of(content: JsonValue) -> JsonValue:
    blocks: list[Any] = content if isinstance(content, list) else []
    assert all("cache_control" not in block for block in blocks[:-1])
    return blocks[-1].get("cache_control") if blocks else None


EPHEMERAL, FOR_AN_HOUR = MARK["cache_control"], HOUR["cache_control"]
PLACES: dict[str, tuple[Request, dict[str, Any]]] = {
    "a lone request": (Request((LONG, ASKED)), {}),
    "instructions": (Request((LONG, ASKED), repeated=(1,)), {"system": EPHEMERAL}),
    "short instructions": (Request((SYSTEM, ASKED), repeated=(1,)), {}),
    "demos": (Request((SYSTEM, *DEMO, ASKED), repeated=(3,)), {"1": EPHEMERAL}),
    "short demos": (Request((Message.system("s"), *DEMO, ASKED), repeated=(3,)), {}),
    "a conversation": (
        Request((LONG, ASKED, Message.assistant("a"), ASKED), repeated=(1, 4)),
        {"system": EPHEMERAL, "body": EPHEMERAL},
    ),
    "a conversation after short instructions": (
        Request((SYSTEM, *DEMO, ASKED), repeated=(1, 4)),
        {"body": EPHEMERAL},
    ),
    "a conversation without instructions": (Request((*DEMO, *DEMO, ASKED), repeated=(0, 5)), {"body": EPHEMERAL}),
    "off": (Request((LONG, ASKED), options={"prompt_cache": False}, repeated=(1, 2)), {}),
    "auto": (Request((LONG, ASKED), options={"prompt_cache": "auto"}, repeated=(1,)), {"system": EPHEMERAL}),
    "asked for, a lone request": (Request((SYSTEM, ASKED), options={"prompt_cache": {}}), {"body": EPHEMERAL}),
    "asked for, a short program": (
        Request((SYSTEM, ASKED), options={"prompt_cache": {"ttl": "1h"}}, repeated=(1, 2)),
        {"system": FOR_AN_HOUR, "body": FOR_AN_HOUR},
    ),
}


@pytest.mark.parametrize(("request_", "wanted"), PLACES.values(), ids=PLACES)
def test_ends_of_what_requests_repeat_are_marked(request_: Request, wanted: dict[str, Any]) -> None:
    assert marks(request_) == wanted


@pytest.mark.parametrize("own", range(6))
def test_request_has_at_most_four_marks_with_those_of_the_caller(own: int) -> None:
    parts = tuple(part for _ in range(own) for part in (TextPart("document"), OpaquePart("anthropic", MARK)))
    request = Request((LONG, Message("user", (*parts, TextPart("q")))), repeated=(1, 2))
    assert str(encoded(request).body).count("cache_control") == max(own, min(own + 2, 4))


@pytest.mark.parametrize("tools", [0, 40])
def test_tools_count_as_the_start_of_the_prompt(tools: int) -> None:
    specs: Any = [{"type": "function", "function": {"name": f"f{n}", "description": "d" * 100}} for n in range(tools)]
    assert marks(Request((SYSTEM, ASKED), tuple(specs), repeated=(1,))) == ({"system": EPHEMERAL} if tools else {})


UNKNOWN: list[JsonObject] = [
    {"prompt_cache": True},
    {"prompt_cache": "always"},
    {"prompt_cache": 1},
    {"prompt_cache": {"ttl": "2h"}},
    {"prompt_cache": {"ttl": None}},
    {"prompt_cache": {"key": 1}},
    {"prompt_cache": {"tll": "1h"}},
    {"cache": {"ttl": "1h"}},
    {"cache": "1h"},
]


@pytest.mark.parametrize("options", UNKNOWN, ids=str)
def test_unknown_prompt_cache_is_refused_with_the_known_forms(options: JsonObject) -> None:
    with pytest.raises(ConfigurationError, match=r'Write prompt_cache="auto", False or \{"ttl": "5m" or "1h"'):
        encoded(Request((ASKED,), options=options))
