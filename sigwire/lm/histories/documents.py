"""Documents by the rules of a wire that counts them over the whole request: a name each, and a text beside them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from sigwire.core.messages import Message, Part
from sigwire.core.parts import FilePart, TextPart
from sigwire.core.tools.calls import ToolResult
from sigwire.lm.histories.losses import Loss, Turn

__all__ = ["add_texts", "name_documents"]

_UNNAMED = "document"


def name_documents(turns: Iterable[Turn], losses: list[Loss]) -> list[Turn]:
    """Give each document a name of its own, in order: the names of a conversation do not change when it goes on."""
    names = _Names(losses)
    return [(number, names.in_turn(number, turn)) for number, turn in turns]


class _Names:
    """The names that are taken. Bedrock refuses a request with two equal ones, in whatever turns they are."""

    def __init__(self, losses: list[Loss]) -> None:
        self._taken: set[str] = set()
        self._losses = losses

    def in_turn(self, number: int, turn: Message) -> Message:
        if not any(isinstance(part, FilePart | ToolResult) for part in turn.parts):
            return turn
        parts = tuple([self._part(part, number, place) for place, part in enumerate(turn.parts)])
        return turn if parts == turn.parts else Message(turn.role, parts)

    def _part(self, part: Part, number: int, place: int) -> Part:
        if isinstance(part, FilePart):
            return self._named(part, number, place)
        if isinstance(part, ToolResult) and any(isinstance(inner, FilePart) for inner in part.media):
            return replace(
                part,
                media=tuple(
                    [
                        self._named(inner, number, place) if isinstance(inner, FilePart) else inner
                        for inner in part.media
                    ]
                ),
            )
        return part

    def _named(self, part: FilePart, number: int, place: int) -> FilePart:
        wanted = part.filename or _UNNAMED
        name = next(name for name in _with_numbers(wanted) if name.lower() not in self._taken)
        self._taken.add(name.lower())
        if name == part.filename:
            return part
        why = f"A document was named {name!r}; the provider requires names, and different ones."
        self._losses.append(Loss(number, place, "filename", why, "form" if part.filename else "none"))
        return replace(part, filename=name)


def _with_numbers(name: str) -> Iterator[str]:
    yield name
    for number in range(2, 10_000):
        yield f"{name[:195]}-{number}"


def add_texts(turns: Iterable[Turn], text: str, losses: list[Loss]) -> list[Turn]:
    """Add a text to a user turn with documents if it, and its neighbours of the same role on the wire, have none."""
    fitted: list[Turn] = []
    group: list[Turn] = []
    for turn in turns:
        if turn[1].role == "assistant":
            fitted += [*_with_text(group, text, losses), turn]
            group = []
        else:
            group.append(turn)
    return [*fitted, *_with_text(group, text, losses)]


def _with_text(group: list[Turn], text: str, losses: list[Loss]) -> list[Turn]:
    users = [place for place, (_, turn) in enumerate(group) if turn.role == "user"]
    held = [place for place in users if any(isinstance(part, FilePart) for part in group[place][1].parts)]
    if not held or any(isinstance(part, TextPart) for place in users for part in group[place][1].parts):
        return group
    number, turn = group[held[-1]]
    why = "The provider requires a text beside a document; a short one was added."
    losses.append(Loss(number, None, "text", why, "form"))
    group[held[-1]] = (number, Message("user", (*turn.parts, TextPart(text))))
    return group
