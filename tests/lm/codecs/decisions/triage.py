"""A schema with every kind of question, its answers, and the body in which each host sends them."""

from __future__ import annotations

import copy
from typing import Any

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Response
from sigwire.lm.codecs.decisions import GEMINI, OPENAI, SYSTEM_ONE, DecisionsProfile, decode, encode
from sigwire.lm.codecs.shared.interface import Target

__all__ = ["ANSWERS", "EVIDENCE", "PROFILES", "SCHEMA", "TEXT", "asked", "body_of", "decoded", "target_of"]

PROFILES: dict[str, DecisionsProfile] = {"openai": OPENAI, "system-one": SYSTEM_ONE, "gemini": GEMINI}

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "urgent": {"type": "boolean", "description": "Must someone act within the hour?"},
        "down": {"type": "boolean", "x-criteria": {"true": "no page loads", "false": "a page loads"}},
        "ticket": {"$ref": "#/$defs/Ticket"},
        "harm": {"type": "number", "x-levels": [{"label": "none"}, {"label": "severe", "description": "a wound"}]},
        "grade": {"type": "integer", "x-levels": [{"label": "low"}, {"label": "mid"}, {"label": "high"}]},
        "tags": {"type": "array", "items": {"$ref": "#/$defs/Tag"}, "x-criteria": {"vip": "pays a lot"}},
        "version": {"const": "v1", "type": "string"},
    },
    "required": ["urgent", "down", "ticket", "harm", "grade", "tags", "version"],
    "$defs": {
        "Tag": {"enum": ["vip", "legal"], "type": "string"},
        "Ticket": {
            "type": "object",
            "properties": {
                "team": {"enum": ["billing", "tech"], "type": "string", "x-criteria": {"billing": "money"}},
                "count": {"anyOf": [{"enum": [1, 2], "type": "integer"}, {"type": "null"}]},
            },
            "required": ["team", "count"],
        },
    },
}
ANSWERS: dict[str, Any] = {
    "urgent": 0.75,
    "down": 0.25,
    "ticket.team": [0.25, 0.75],
    "ticket.count": [0.5, 0.125, 0.375],
    "harm": [0.25, 0.75],
    "grade": [0.125, 0.25, 0.625],
    "tags[vip]": 0.875,
    "tags[legal]": 0.125,
}
"""By path: p(true), or the probabilities in the order of the values."""
TEXT: JsonObject = {
    "urgent": True,
    "down": False,
    "ticket": {"team": "tech", "count": 1},
    "harm": 0.75,
    "grade": 2,
    "tags": ["vip"],
    "version": "v1",
}
_VALUES: dict[str, list[Any]] = {
    "ticket.team": ["billing", "tech"], "ticket.count": [1, 2, None], "harm": [0, 1], "grade": [0, 1, 2],
}  # fmt: skip
EVIDENCE: dict[str, Any] = {
    path: {
        "values": _VALUES.get(path, [True, False]),
        "probabilities": shares if isinstance(shares, list) else [shares, 1 - shares],
    }
    for path, shares in ANSWERS.items()
}
_LABELS: dict[str, list[Any]] = {
    "ticket.team": ["billing", "tech"], "ticket.count": ["1", "2", "null"], "harm": ["none", "severe"],
    "grade": ["low", "mid", "high"],
}  # fmt: skip


def target_of(host: str) -> Target[DecisionsProfile]:
    return Target(host, "m", PROFILES[host])


def asked(schema: JsonObject = SCHEMA, *messages: Message, **rest: Any) -> Request:
    return Request(messages or (Message.user("The shop is down."),), response_format=ResponseFormat(schema), **rest)


def body_of(host: str) -> dict[str, Any]:
    """Return the reply of a host with ``ANSWERS``; a copy."""
    if host == "openai":
        answers: Any = [_listed(path, shares) for path, shares in ANSWERS.items()]
        return {"answers": answers, "model": "gpt-6-luna", "usage": {"input_tokens": 9, "output_tokens": 4}}
    named = {f"q{at}" if host == "gemini" else path: _named(path, ANSWERS[path]) for at, path in enumerate(ANSWERS)}
    if host == "gemini":
        return {"answers": named, "usage": {"total_input_tokens": 9, "total_output_tokens": 4}}
    return {"answers": named, "model": "jev", "usage": {"input_tokens": 9, "output_tokens": 4}}


def _listed(path: str, shares: Any) -> dict[str, Any]:
    if path == "down":  # its values are described
        pairs = [{"value": value, "probability": p} for value, p in ((True, shares), (False, 1 - shares))]
        return {"type": "choice", "name": path, "choice": False, "confidence": 0.75, "probabilities": pairs}
    if not isinstance(shares, list):
        return {"type": "predicate", "name": path, "probability": shares}
    if path in ("harm", "grade"):
        levels = [
            {"value": level, "label": label, "probability": p}
            for level, (label, p) in enumerate(zip(_LABELS[path], shares, strict=True))
        ]
        return {"type": "score", "name": path, "score": _mean(shares), "confidence": 0.5, "probabilities": levels}
    pairs = [{"value": label, "probability": p} for label, p in zip(_LABELS[path], shares, strict=True)]
    best = _LABELS[path][shares.index(max(shares))]
    return {"type": "choice", "name": path, "choice": best, "confidence": 0.5, "probabilities": pairs}


def _named(path: str, shares: Any) -> dict[str, Any]:
    if not isinstance(shares, list):
        return {"type": "noul", "noul": shares}
    if path in ("harm", "grade"):
        by_level = {str(level): p for level, p in enumerate(shares)}
        return {"type": "score", "score": _mean(shares), "confidence": 0.5, "probabilities": by_level}
    by_label = dict(zip(_LABELS[path], shares, strict=True))
    best = _LABELS[path][shares.index(max(shares))]
    return {"type": "choice", "choice": best, "confidence": 0.5, "probabilities": by_label}


def _mean(shares: list[float]) -> float:
    return sum(level * p for level, p in enumerate(shares))


def decoded(host: str, body: Any, schema: JsonObject = SCHEMA) -> Response:
    return decode(copy.deepcopy(body), encode(asked(schema), target_of(host)), target_of(host))
