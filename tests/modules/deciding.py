"""Models that decide: scripted answers with probabilities, for the tests of cascades and calibration."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from sigwire.core.evidence import label_of
from sigwire.core.request import Request
from sigwire.core.response import Choice, Usage
from sigwire.lm.fake import FakeLM

__all__ = ["choice", "deciding_model", "row_of"]

Distribution = Mapping[Any, float]


def choice(**outputs: Distribution | object) -> Choice:
    """Return an answer in the chat layout. A distribution is evidence; the most probable value is written."""
    evidence: dict[str, Any] = {}
    lines: list[str] = []
    for name, given in outputs.items():
        value = given
        if isinstance(given, Mapping):
            value = max(given, key=lambda each, found=given: found[each])  # type: ignore[misc]
            evidence[name] = {"values": [*given], "probabilities": [*given.values()]}
        lines.append(f"[[ ## {name} ## ]]\n{label_of(value)}\n")
    return Choice("\n".join([*lines, "[[ ## completed ## ]]"]), evidence=evidence or None)


def row_of(request: Request) -> int:
    """Return the number of the row that a request asks about: its input is ``row <number>``."""
    found = re.findall(r"row (\d+)", str(request.messages[-1]))
    return int(found[-1])


def deciding_model(answer: Callable[[int], Choice], name: str = "fake/deciding") -> FakeLM:
    """Return a model that answers by the number of the row; each answer costs a request of 10 tokens."""
    return FakeLM(lambda request: answer(row_of(request)), model=name, usage=Usage(8, 2))
