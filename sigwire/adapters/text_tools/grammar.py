"""What a dialect is: a ``Grammar``, the ``ToolCatalog`` it reads for, and the ``CallBlock`` it gives.

A grammar is small: the literals that open a call, and a reader of what follows one. The reader gives ``None`` when this is
only prose about the markup: it must see so from the next few characters, and once it has gone further it answers for the
block, with calls or with calls that carry an error. A reader that lets out text on its way remembers no positions.

Position, quotation and reasoning are the scanner's; readers share the steps of ``cursor`` and the values of ``calls``,
``literals`` and ``tag_values``.
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
    "END_TOKENS",
    "NAMELESS",
    "TRUNCATED",
    "CallBlock",
    "Grammar",
    "Reader",
    "ToolCatalog",
    "broken_call",
    "closes_fence",
    "unknown_call",
]

END_TOKENS = frozenset(
    {
        "<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|endoftext|>", "<|end_of_text|>", "<|end|>", "<|return|>", "<|call|>",
        "<｜end▁of▁sentence｜>", "<|end▁of▁sentence|>", "<end_of_turn>", "<|END_OF_TURN_TOKEN|>", "</s>", "<|user|>",
        "<|observation|>", "[e~[", "<turn|>",
    }
)  # fmt: skip
"""What ends a turn, where a server leaves it in the text."""

_PREFIXES = ("functions.", "default_api.")


@dataclass(frozen=True, slots=True)
class ToolCatalog:
    """The tools that may be called: parameter schemas by name. ``strict`` forgives nothing.

    ``initials`` are the characters that a name may begin with where it stands alone. ``output`` is the name of the output that
    calls fill, where the answer has sections of such names.
    """

    tools: Mapping[str, Mapping[str, Any]]
    strict: bool = False
    initials: str = ""
    output: str = ""

    @classmethod
    def of(cls, tools: Mapping[str, Any] | Collection[str], *, strict: bool = False, output: str = "") -> ToolCatalog:
        """An offer from schemas by name, or from names alone.

        >>> ToolCatalog.of(["ping"]).declared_name("functions.ping")
        'ping'
        """
        given: Mapping[str, Any] = tools if is_mapping(tools) else dict.fromkeys(tools)
        nothing: Mapping[str, Any] = {}
        schemas = {name: schema if is_mapping(schema) else nothing for name, schema in given.items()}
        return cls(schemas, strict, "".join(sorted({name[0] for name in (*schemas, *_PREFIXES) if name})), output)

    def declared_name(self, name: object) -> str | None:
        """The tool of this name, which some dialects write with a prefix; nothing like it will do."""
        if not isinstance(name, str):
            return None
        if name in self.tools:
            return name
        for prefix in _PREFIXES:
            if name.startswith(prefix) and name.removeprefix(prefix) in self.tools:
                return name.removeprefix(prefix)
        return None

    def parameter_schema(self, tool: str, name: str) -> object:
        """The schema of one parameter, if the tool says."""
        properties = self.tools[tool].get("properties") if tool in self.tools else None
        return properties.get(name) if is_mapping(properties) else None


@dataclass(frozen=True, slots=True)
class CallBlock:
    """What was read at an opener, up to where the cursor now stands: calls, in part with errors, and what was forgiven.

    A block without calls is markup all the same, and not part of the text. ``is_marked``: a weak form was followed by a marker,
    so it need not run to the end of the message.
    """

    calls: tuple[ToolCall, ...] = ()
    notes: tuple[str, ...] = ()
    is_marked: bool = False


Reader: TypeAlias = Callable[[Cursor, str, ToolCatalog], Wait[CallBlock | None]]


@dataclass(frozen=True, slots=True)
class Grammar:
    """One way of writing calls as text.

    ``openers``: literals at which a call may begin; the cursor stands after the one that is handed to ``read``.
    ``own_line``: an opener counts only at the start of a line. ``closers``: markers that say no more than that a call is
    over, so one that a reader did not pass is no text. ``stops``: what the tool's side would begin with; after a call the
    text is cut there. A ``weak`` grammar is asked at the start of a line whose first character is one of its openers, or can
    begin a tool's name if it has none; it counts only when its calls run to the end of the message.
    """

    name: str
    openers: tuple[str, ...]
    read: Reader = field(repr=False)
    own_line: bool = False
    closers: tuple[str, ...] = ()
    stops: tuple[str, ...] = ()
    weak: bool = False


NAMELESS = "tool_call"
"""The name of a call whose name cannot be read. No wire accepts an empty name."""

TRUNCATED = "The text ended inside the call"


def broken_call(
    raw: str, what: str, name: str | None = None, code: CallErrorKind = "malformed_json", id: str = ""
) -> ToolCall:
    """A call that cannot be run, with the text it came from and, for the model to read, why.

    >>> broken_call("{", "It was cut off").error.message
    'It was cut off. Write the whole call again.'
    """
    return ToolCall(id, name or NAMELESS, None, raw, CallError(code, f"{what}. Write the whole call again."))


def unknown_call(name: str, arguments: object, catalog: ToolCatalog, id: str = "") -> ToolCall:
    """A call of a tool that is not on offer."""
    names = ", ".join(sorted(catalog.tools))
    error = CallError("unknown_tool", f"There is no tool {name!r}. The tools are: {names}.")
    return ToolCall(id, name, None, arguments if isinstance(arguments, str) else dumps(arguments), error)


def closes_fence(line: str, mark: str) -> bool:
    """Whether a line is a fence's last: its mark alone, or a token that ends the turn after it.

    >>> closes_fence("~~~ ", "~~~"), closes_fence("~~~<|im_end|>", "~~~"), closes_fence("~~~a", "~~~")
    (True, True, False)
    """
    after = line.removeprefix(mark).strip(" \t\r") if line.startswith(mark) else "no mark"
    return not after or after in END_TOKENS
