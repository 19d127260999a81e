"""Instructions as a base text and items: items are added without rewriting what is there, and equal ones are added once.

Whole rewrites lose details (Zhang et al. 2025, *Agentic Context Engineering*); the instruction stays one plain string.
"""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["HEADING", "items_of", "normal_form", "with_items"]

HEADING = "Rules:"


def items_of(text: str) -> tuple[str, list[str]]:
    """Return the base text and the items of an instruction.

    >>> items_of("Answer.\\n\\nRules:\\n- Be brief.")
    ('Answer.', ['Be brief.'])
    """
    base, mark, rest = text.partition(f"\n\n{HEADING}\n- ")
    return base, rest.split("\n- ") if mark else []


def with_items(text: str, items: Iterable[object], most: int = 40) -> str:
    """Return an instruction with more items, without repetitions, up to ``most`` in all.

    >>> with_items(with_items("Answer.", ["Be brief."]), ["- be brief", "Use ISO dates."])
    'Answer.\\n\\nRules:\\n- Be brief.\\n- Use ISO dates.'
    """
    base, found = items_of(text)
    known = {normal_form(each): each for each in found}
    for item in items:
        line = " ".join(str(item).split()).lstrip("-*•0123456789.) ")
        if normal_form(line) and len(known) < most:
            known.setdefault(normal_form(line), line)
    return "\n- ".join([f"{base}\n\n{HEADING}", *known.values()]) if known else base


def normal_form(item: str) -> str:
    """Return the letters and digits of an item in lower case.

    >>> normal_form("- Be brief!")
    'bebrief'
    """
    return "".join(filter(str.isalnum, item.casefold()))
