"""A dialect as data: ``Grammar``, the ``ToolCatalog`` that it reads for, and the ``CallBlock`` that it returns.

A grammar has the literals that open a call, and a reader of the text after an opener. The reader returns ``None`` for prose
about the markup. It must decide so from the next few characters; after that it answers for the block, with calls or with
calls that carry an error. A reader that emits text on its way keeps no positions.

The scanner owns position, quotation and reasoning. Readers share the steps of ``cursor`` and the values of ``json_calls``,
``literals`` and ``parameter_text``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from sigwire.adapters.text_tools.cursor import Cursor, Wait
from sigwire.core.json import dumps
from sigwire.core.narrow import is_mapping
from sigwire.core.tools.calls import CallError, CallErrorKind, ToolCall

__all__ = [
    "END_TOKENS", "NAMELESS", "PREFIXES", "TRUNCATED", "UNCLEAR", "CallBlock", "Grammar", "Reader", "ToolCatalog",
    "broken_call", "closes_fence", "unknown_call"
]  # fmt: skip

END_TOKENS = frozenset(
    {
        "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>", "<|end|>", "<|return|>", "<|call|>",
        "<｜end▁of▁sentence｜>", "<|end▁of▁sentence|>", "<end_of_turn>", "<|END_OF_TURN_TOKEN|>", "</s>", "<|user|>",
        "<|observation|>", "[e~[", "<turn|>", "<|eot|>", "<|eom|>"
    }
)  # fmt: skip
"""Tokens that end a turn. Some servers leave one in the text."""

PREFIXES = ("functions.", "default_api.")
"""Prefixes that some dialects write before the name of a tool."""


@dataclass(frozen=True, slots=True)
class ToolCatalog:
    """The tools that may be called: parameter schemas by name. ``strict`` accepts no repair.

    ``initials``: the characters with which a name can start where it stands alone. ``output``: the name of the output that
    calls fill, if the answer has a section for each output. ``fields``: the tags around outputs, closing by opening tag.
    """

    tools: Mapping[str, Mapping[str, Any]]
    strict: bool = False
    initials: str = ""
    output: str = ""
    fields: Mapping[str, str] = field(default_factory=dict[str, str])

    @classmethod
    def of(
        cls,
        tools: Mapping[str, Any] | Collection[str],
        *,
        strict: bool = False,
        output: str = "",
        fields: Mapping[str, str] | None = None,
    ) -> ToolCatalog:
        """Return a catalog from schemas by name, or from names alone.

        >>> ToolCatalog.of(["ping"]).declared_name("functions.ping")
        'ping'
        """
        given: Mapping[str, Any] = tools if is_mapping(tools) else dict.fromkeys(tools)
        nothing: Mapping[str, Any] = {}
        schemas = {name: schema if is_mapping(schema) else nothing for name, schema in given.items()}
        initials = "".join(sorted({name[0] for name in (*schemas, *PREFIXES) if name}))
        return cls(schemas, strict, initials, output, fields or {})

    def declared_name(self, name: object) -> str | None:
        """Return the tool that a name means, without the prefix of some dialects; ``None`` if no tool has exactly this name."""
        if not isinstance(name, str):
            return None
        if name in self.tools:
            return name
        for prefix in PREFIXES:
            if name.startswith(prefix) and name.removeprefix(prefix) in self.tools:
                return name.removeprefix(prefix)
        return None

    def parameter_schema(self, tool: str, name: str) -> object:
        """Return the schema of one parameter, or ``None`` if the tool has no such schema."""
        properties = self.tools[tool].get("properties") if tool in self.tools else None
        return properties.get(name) if is_mapping(properties) else None


@dataclass(frozen=True, slots=True)
class CallBlock:
    """The calls between an opener and the cursor, some with errors, and notes of the repairs.

    A block without calls is markup and not part of the text. ``is_marked``: a marker followed a weak form, so
    that the form need not be the end of the message.
    """

    calls: tuple[ToolCall, ...] = ()
    notes: tuple[str, ...] = ()
    is_marked: bool = False


Reader: TypeAlias = Callable[[Cursor, str, ToolCatalog], Wait[CallBlock | None]]


@dataclass(frozen=True, slots=True)
class Grammar:
    """One way of writing calls as text.

    ``openers``: literals at which a call can start; ``read`` gets the cursor after the opener. ``own_line``: an opener counts
    only at the start of a line. ``closers``: markers that end a call; a closer that the reader did not pass is no text.
    ``stops``: literals that start a tool's result; after a call the scanner drops the text from there on, else it reads no
    calls in the result. ``other_text``: "before" or "after" the calls, text may be though the tools were offered natively. The
    scanner asks a ``weak`` grammar at a line that starts with one of its openers, and anywhere if the opener is longer than a
    character; without openers, at a line that starts with a tool's name. Its calls count only if nothing follows.
    """

    name: str
    openers: tuple[str, ...]
    read: Reader = field(repr=False)
    own_line: bool = False
    closers: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()
    weak: bool = False
    other_text: str = ""


NAMELESS = "tool_call"
"""The name of a call whose name cannot be read. No wire accepts an empty name."""

TRUNCATED = "The text ended inside the call"

UNCLEAR = "The end of an argument is unclear, because its text holds a tag of this form"


def broken_call(
    raw: str, what: str, name: str | None = None, code: CallErrorKind = "malformed_json", id: str = ""
) -> ToolCall:
    """Return a call that cannot be run, with its source text and an error message for the model.

    >>> broken_call("{", "It was cut off").error.message
    'It was cut off. Write the whole call again.'
    """
    return ToolCall(id, name or NAMELESS, None, raw, CallError(code, f"{what}. Write the whole call again."))


def unknown_call(name: str, arguments: object, catalog: ToolCatalog, id: str = "") -> ToolCall:
    """Return a call of a tool that is not offered."""
    names = ", ".join(sorted(catalog.tools))
    error = CallError("unknown_tool", f"Unknown tool {name[:60]!r}. The tools are: {names}.")
    return ToolCall(id, name, None, arguments if isinstance(arguments, str) else dumps(arguments), error)


def closes_fence(line: str, mark: str) -> bool:
    """Return True if a line closes a fence: its mark alone, or followed by a token that ends the turn.

    >>> closes_fence("~~~ ", "~~~"), closes_fence("~~~<|im_end|>", "~~~"), closes_fence("~~~a", "~~~")
    (True, True, False)
    """
    after = line.removeprefix(mark).strip(" \t\r") if line.startswith(mark) else "no mark"
    return not after or after in END_TOKENS
