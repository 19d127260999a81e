"""The table of dialects, in the order in which the scanner asks them, and ``register``."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from sigwire.adapters.text_tools.grammar import Grammar
from sigwire.adapters.text_tools.grammars.bare_json import BARE_JSON
from sigwire.adapters.text_tools.grammars.fenced_json import FENCED_JSON
from sigwire.adapters.text_tools.grammars.gemma import GEMMA
from sigwire.adapters.text_tools.grammars.harmony import HARMONY
from sigwire.adapters.text_tools.grammars.named_json import NAMED_JSON
from sigwire.adapters.text_tools.grammars.output_section import OUTPUT_SECTION
from sigwire.adapters.text_tools.grammars.pythonic import PYTHONIC
from sigwire.adapters.text_tools.grammars.tagged_json import TAGGED_JSON
from sigwire.adapters.text_tools.grammars.tagged_values import TAGGED_VALUES
from sigwire.adapters.text_tools.scan.compiled import NO_FIELDS, CompiledGrammars
from sigwire.errors import InputError

__all__ = ["BUILT_IN", "current_scanner", "dialects", "register"]

BUILT_IN: tuple[Grammar, ...] = (
    FENCED_JSON,
    *TAGGED_JSON,
    *NAMED_JSON,
    *TAGGED_VALUES,
    *PYTHONIC,
    *GEMMA,
    HARMONY,
    OUTPUT_SECTION,
    *BARE_JSON,
)

_registered: tuple[Grammar, ...] = ()


def dialects() -> tuple[Grammar, ...]:
    """Return the grammars that texts are read by: registered ones first, then the built-in ones."""
    return (*_registered, *BUILT_IN)


def current_scanner(fields: Mapping[str, str] = NO_FIELDS) -> CompiledGrammars:
    """Return the compiled table for these tags around outputs. A registration compiles a new one."""
    return _compile(_registered, tuple(fields.items()))


@lru_cache(maxsize=64)
def _compile(registered: tuple[Grammar, ...], fields: tuple[tuple[str, str], ...]) -> CompiledGrammars:
    return CompiledGrammars((*registered, *BUILT_IN), dict(fields))


def register(grammar: Grammar) -> None:
    """Read one more dialect from now on. It is asked before the built-in ones; it replaces a registered one of the same name.

    Raises ``InputError`` for the name of a built-in dialect, and for a marked grammar without openers.

    >>> from sigwire.adapters.text_tools.grammars.tagged_json import tagged_json
    >>> register(tagged_json("mine", ["<call>"], ["</call>"]))
    >>> dialects()[0].name
    'mine'
    """
    global _registered
    if any(built_in.name == grammar.name for built_in in BUILT_IN):
        raise InputError(f"The dialect {grammar.name!r} is built in. Give yours another name.")
    if not grammar.openers and not grammar.weak:
        raise InputError(f"The grammar {grammar.name!r} has no openers: name the markers at which its calls begin.")
    _registered = (grammar, *(other for other in _registered if other.name != grammar.name))
