"""Models that decide: scripted answers with probabilities; and code in a process of its own. For tests of evidence."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from sigwire.core.capabilities import Capabilities
from sigwire.core.evidence import label_of
from sigwire.core.json import dumps
from sigwire.core.request import Request
from sigwire.core.response import Choice, Usage
from sigwire.lm.fake import Answer, FakeLM

__all__ = ["choice", "deciding_model", "in_a_process", "row_of"]

_DECIDES = Capabilities(decides="only")
Distribution = Mapping[Any, float]


def choice(**outputs: Distribution | object) -> Choice:
    """Return an answer in JSON. A distribution is evidence; the most probable value is written."""
    evidence: dict[str, Any] = {}
    fields: dict[str, Any] = {}
    for name, given in outputs.items():
        fields[name] = given
        if isinstance(given, Mapping):
            fields[name] = max(given, key=lambda each, found=given: found[each])
            evidence[name] = {"values": [*given], "probabilities": [*given.values()]}
    return Choice(dumps(fields), evidence=evidence or None)


def row_of(request: Request) -> int:
    """Return the number of the row that a request asks about: its input is ``row <number>``."""
    found = re.findall(r"row (\d+)", str(request.messages[-1]))
    return int(found[-1])


def deciding_model(
    answer: Callable[[int], Choice | Exception], name: str = "fake/deciding", cost: float | None = None
) -> FakeLM:
    """Return a model that answers by the number of the row; each answer costs a request of 10 tokens, ``cost`` dollars."""

    def respond(request: Request) -> Answer:
        made = answer(row_of(request))
        if isinstance(made, Choice) and "[[ ##" in request.messages[0].text:  # the chat layout is asked for
            fields = json.loads(made.text).items()
            text = "".join(f"[[ ## {name} ## ]]\n{label_of(value)}\n\n" for name, value in fields)
            return replace(made, text=f"{text}[[ ## completed ## ]]")
        return made

    return FakeLM(respond, model=name, usage=Usage(8, 2, cost=cost), capabilities=_DECIDES)


def in_a_process(code: Callable[[], None]) -> int:
    """Run a function in a process of its own; return the signal that ended it."""
    child = os.fork()
    if child == 0:
        try:
            code()
        finally:
            os._exit(0)
    return os.WTERMSIG(os.waitpid(child, 0)[1])
