"""The probes of models that decide only: questions of every kind, inputs, the limits that the table promises, errors.

The decoder has checked each answer: a reply that does not fit its questions is an error of a class that decides. So a judge
has to look only whether each question has its distribution.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.response import Response
from sigwire.probes.table import PROBES, Judge, Probe, Sighting

__all__ = ["DECISION_PROBES", "probes_of"]

_TEXT = Message.user("The train from Oslo to Bergen is two hours late.")


def _schema(**members: JsonObject) -> JsonObject:
    return {"type": "object", "properties": {**members}, "required": [*members]}


def _yes_or_no(question: str) -> JsonObject:
    return {"type": "boolean", "description": question}


def _asked(schema: JsonObject, *messages: Message, **rest: Any) -> Request:
    return Request(messages or (_TEXT,), response_format=ResponseFormat(schema), **rest)


def _decides(count: int) -> Judge:
    """Judge whether ``count`` questions have their distributions."""

    def judge(response: Response) -> Sighting:
        found = (response.choices[0].evidence or {}) if response.choices else {}
        return Sighting(len(found) == count, f"{len(found)} distribution{'s' * (len(found) != 1)}")

    return judge


def _probe(feature: str, schema: JsonObject, count: int = 1, *messages: Message, **rest: Any) -> Probe:
    return Probe(feature, _decides(count), _asked(schema, *messages), **rest)


def _like(name: str) -> Probe:
    """Return the probe of text models of this name with a question in place of tools and an answer of text."""
    probe = PROBES[name]
    judge = _decides(1) if probe.error is None else probe.judge
    wanted = ResponseFormat(_BOOL)
    return replace(probe, judge=judge, needs="", request=replace(probe.request, tools=(), response_format=wanted))


def _counts_input(response: Response) -> Sighting:
    known = bool(response.usage.input_tokens)  # some hosts write no token
    return Sighting(known, "input counted" if known else "no count of input tokens")


def _finds_oslo(response: Response) -> Sighting:
    evidence: Any = response.choices[0].evidence
    p: float = evidence["zq_named"]["probabilities"][0]
    return Sighting(p > 0.5, f"p(yes) {p:.2f}")


_BOOL = _schema(zq_named=_yes_or_no("Is Oslo named in the text?"))
_DESCRIBED = _schema(
    zq_late={
        "type": "boolean",
        "description": "Is the train late?",
        "x-criteria": {"true": "by an hour", "false": "less"},
    }
)
_CHOICE = _schema(
    zq_place={
        "enum": ["Oslo", "Lima"],
        "description": "Which place is named?",
        "x-criteria": {"Lima": "the capital of Peru"},
    }
)
_OPTIONAL = _schema(zq_place={"enum": ["Oslo", 7, None], "description": "Which of these is named?"})
_SCORE = _schema(
    zq_delay={
        "type": "number",
        "description": "How late is the train?",
        "x-levels": [{"label": "on time"}, {"label": "late", "description": "by minutes"}, {"label": "hours late"}],
    }
)
_LIST = _schema(
    zq_named={"type": "array", "items": {"enum": ["Oslo", "Bergen", "Lima"]}, "description": "Named places"}
)
_OBJECT = _schema(zq_ticket=_schema(zq_late={"type": "boolean"}, zq_kind={"enum": ["train", "bus"]}))
_MANY = _schema(**{f"zq_{n}": _yes_or_no(f"Is {n} named?") for n in range(400)})
_VALUES = _schema(zq_number={"enum": [f"n{n}" for n in range(255)], "description": "Which number fits?"})
_LEVELS = _schema(
    zq_level={"type": "number", "description": "How late?", "x-levels": [{"label": f"{n} hours"} for n in range(10)]}
)
_WRONG: JsonObject = {"extra_body": {"questions": "none"}}

DECISION_PROBES: Mapping[str, Probe] = {
    "bool": _probe("yes or no", _BOOL),
    "described": _probe("yes or no with described answers", _DESCRIBED),
    "choice": _probe("one of several values", _CHOICE),
    "optional": _probe("values that are no text, and none", _OPTIONAL),
    "score": _probe("a level of a scale", _SCORE),
    "list": _probe("each member of a list", _LIST, 3),
    "object": _probe("outputs inside an output", _OBJECT, 2),
    "usage": Probe("token counts", _counts_input, _asked(_BOOL)),
    "sense": Probe("an obvious answer", _finds_oslo, _asked(_BOOL), is_behaviour=True),
    **{name: _like(name) for name in ("system", "history", "tool_result", "image", "audio", "file")},
    "many": _probe("400 questions in a request", _MANY, 400),
    "values": _probe("255 values of a choice", _VALUES),
    "levels": _probe("10 levels of a scale", _LEVELS),
    "bad_option": replace(_like("bad_option"), request=_asked(_BOOL, options=_WRONG)),
    **{name: _like(name) for name in ("bad_model", "bad_key")},
}
"""The probes of models with ``decides="only"``, in the order in which they are asked."""


def probes_of(capabilities: Capabilities) -> Mapping[str, Probe]:
    """Return the probes that a model of these capabilities can be asked, by name."""
    return DECISION_PROBES if capabilities.decides == "only" else PROBES
