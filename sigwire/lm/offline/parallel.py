"""Several calls at once: a text that names several values for a parameter, or several things to do. Pure.

"The weather in Rome and Oslo" gives two calls that differ in the city. Values of several parameters go together in
the order they are named, when there are as many of each; what is named once holds for all calls. A text of several
clauses that each ask for a call of their own ("..., and then ...") gives those calls.
"""

from __future__ import annotations

import re

from sigwire.core.json import JsonObject
from sigwire.lm.offline.choice import Candidate
from sigwire.lm.offline.words import sentences

__all__ = ["clauses", "spread"]

# "and" begins a clause of its own only before a word that asks for something.
_ASKING = (
    "also|then|finally|next|what|how|who|when|where|which|is|are|can|could|find|calculate|compute|get|give|tell|book|play|order|buy|"
    "search|show|list|convert|determine|estimate|predict|check|send|create|generate|identify|retrieve|analyze|provide|plot|solve|"
    "evaluate|compare|look|fetch|add|remove|update|set|turn|sort|draw|translate|reserve|recommend|simulate"
)
_SPLIT = re.compile(rf"[,;]\s*(?:and\s+)?(?=(?:{_ASKING})\b)|\s+and\s+(?=(?:{_ASKING})\b)|;\s*", re.IGNORECASE)


def spread(candidate: Candidate) -> list[tuple[str, JsonObject]]:
    """The calls that a candidate stands for: one, or one for each of several values."""
    name, filling = candidate.tool.name, candidate.filling
    count = max((len(values) for values in filling.alternatives.values()), default=1)
    if count == 1:
        return [(name, filling.arguments), *((name, {**filling.arguments, **more}) for more in filling.repeats)]
    varied = {slot: values for slot, values in filling.alternatives.items() if len(values) == count}
    return [(name, {**filling.arguments, **{slot: v[i] for slot, v in varied.items()}}) for i in range(count)]


def clauses(text: str) -> list[str]:
    """The parts of a text that may each ask for something.

    >>> clauses("Book a table in Rome and find a hotel near it. It is for two.")
    ['Book a table in Rome', 'find a hotel near it.', 'It is for two.']
    """
    parts = [part.strip() for sentence in sentences(text) for part in _SPLIT.split(sentence)]
    return [part for part in parts if len(part.split()) > 1]
