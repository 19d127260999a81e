"""Several calls at once: a question that names several values for one parameter asks as many times. Pure.

"The weather in Rome and Oslo" gives two calls that differ in the city. Values of several parameters go together in the order they are
named, when there are as many of each; what is named once holds for all calls.
"""

from __future__ import annotations

from collections.abc import Sequence

from sigwire.core.json import JsonObject
from sigwire.lm.offline.choice import Candidate
from sigwire.lm.offline.reading import Step

__all__ = ["spread"]


def spread(candidate: Candidate, text: str, steps: Sequence[Step]) -> list[tuple[str, JsonObject]]:
    """The calls that a candidate stands for: one, or one for each of several values."""
    return [(candidate.tool.name, candidate.filling.arguments)]
