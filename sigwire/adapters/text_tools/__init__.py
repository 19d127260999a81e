"""Tool calls as text: how a model without tools is taught to call, and how calls that any model writes as text are found.

    seed, render     the form that the prompt teaches; instructions, calls and results as text
    grammar          what a dialect is; the dialects stand in one table, the taught form first (``dialects``)
    scanner, outbox  one scan of a text, fed whole or in pieces: position, quotation, reasoning; what goes out when
    cursor, skim     the steps of readers through a text that still grows; where a bracketed value ends
    calls, literals, tag_values   the three readers of values: JSON, Python's literals, text by schema

``read_calls`` reads a whole text, ``TextReader`` a text that arrives in pieces: the same code. Nothing here runs a tool, and
nothing is read where no tools were offered.
"""

from __future__ import annotations

from sigwire.adapters.text_tools.dialects import dialects, register
from sigwire.adapters.text_tools.grammar import Block, Grammar, Offer
from sigwire.adapters.text_tools.reader import Scan, TextReader, read_calls

__all__ = ["Block", "Grammar", "Offer", "Scan", "TextReader", "dialects", "read_calls", "register"]
