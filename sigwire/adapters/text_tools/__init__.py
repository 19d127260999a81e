"""Tools for models that have none: calls and results as text.

seed     the form the prompt teaches, and its reader      render   instructions, calls and results as text
scanner  finds calls in a text; grammars are its table    read_calls: the one entry for adapters

Nothing here runs a tool, and nothing is read where no tools were offered.
"""

from __future__ import annotations

from collections.abc import Collection

from sigwire.adapters.text_tools.scanner import Grammar, Scan, Scanner
from sigwire.adapters.text_tools.seed import SEED

__all__ = ["GRAMMARS", "Grammar", "Scan", "read_calls"]

GRAMMARS: tuple[Grammar, ...] = (SEED,)
"""Every form that is read, the taught one first."""

_SCANNER = Scanner(GRAMMARS)


def read_calls(text: str, names: Collection[str], *, strict: bool = False) -> Scan:
    """The calls in a model's text, and the text without them. ``names`` are the offered tools; without any, no calls.

    >>> found = read_calls('Sure.\\n~~~tool_call\\n{"name": "ping", "arguments": {}}\\n~~~', {"ping"})
    >>> found.text, found.calls[0].name, found.dialect
    ('Sure.', 'ping', 'seed')
    """
    return _SCANNER.scan(text, names, strict=strict) if names else Scan(text)
