"""Turns by the rules of a wire: the place of system turns, neighbours of one role, the first user turn, media of results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from sigwire.core.messages import Message, Part, Role
from sigwire.core.parts import TextPart
from sigwire.core.tools.calls import ToolResult
from sigwire.lm.histories.losses import Loss, Turn
from sigwire.lm.histories.media import media_kind

__all__ = ["merge_roles", "move_media", "move_system", "place_system", "start_with_user"]


def move_media(turns: Iterable[Turn], losses: list[Loss]) -> list[Turn]:
    """Move the media of results to one user turn behind them; each result's text names its media."""
    moved: list[Turn] = []
    for number, turn in turns:
        held = [result for result in turn.tool_results if result.media]
        if not held:
            moved.append((number, turn))
            continue
        media = tuple(part for result in held for part in result.media if not isinstance(part, TextPart))
        moved.append((number, Message("tool", tuple(map(_without_media, turn.parts)))))
        moved += [(number, Message("user", media))] if media else []
        why = "Results are text only here; their media follow in a user turn."
        losses.append(Loss(number, None, "result_media", why, "form" if media else "none"))
    return moved


def _without_media(result: Part) -> Part:
    if not isinstance(result, ToolResult) or not result.media:
        return result
    texts = [
        part.text if isinstance(part, TextPart) else f"[{media_kind(part)} attached below]" for part in result.media
    ]
    return replace(result, content="\n".join(filter(None, (result.text, *texts))), media=())


def move_system(turns: list[Turn], losses: list[Loss]) -> list[Turn]:
    """Gather system turns in front, as one."""
    system = [turn for turn in turns if turn[1].role == "system"]
    if not system or (len(system) == 1 and turns[0] is system[0]):
        return turns
    losses += _system_losses(turns, system)
    first = system[0][1] if len(system) == 1 else _merge_system([turn for _, turn in system])
    return [(system[0][0], first), *(turn for turn in turns if turn[1].role != "system")]


def _system_losses(turns: list[Turn], system: list[Turn]) -> list[Loss]:
    front = turns[: len(system)]
    if front == system:
        return [Loss(number, None, "system", "System turns became one.", "none") for number, _ in system[1:]]
    why = "A later system turn was moved to the front, its only place on this wire."
    return [Loss(turn[0], None, "system", why, "form") for turn in system if turn not in front]


def _merge_system(turns: Sequence[Message]) -> Message:
    if all(isinstance(part, TextPart) for turn in turns for part in turn.parts):
        return Message.system("\n\n".join(turn.text for turn in turns))
    return Message("system", tuple(part for turn in turns for part in turn.parts))


def place_system(turns: list[Turn], losses: list[Loss]) -> list[Turn]:
    """Put system turns inside the conversation behind the user's turns; those behind the assistant's go to the front."""
    front, placed = list[Turn](), list[Turn]()
    waiting: list[tuple[Turn, int]] = []
    for turn in turns:
        if turn[1].role == "system":
            waiting.append((turn, len(placed)))
            continue
        if not placed or turn[1].role == "assistant":
            _put_system(waiting, front, placed, losses)
            waiting.clear()
        placed.append(turn)
    _put_system(waiting, front, placed, losses)
    return [*front, *placed]


def _put_system(waiting: list[tuple[Turn, int]], front: list[Turn], placed: list[Turn], losses: list[Loss]) -> None:
    is_front = not placed or placed[-1][1].role == "assistant"
    why = (
        "A system turn behind the assistant's was moved to the front."
        if is_front
        else "A system turn was moved behind the user's turns, to its place here."
    )
    losses += [
        Loss(turn[0], None, "system", why, "form")
        for turn, place in waiting
        if place < len(placed) or (is_front and placed)
    ]
    (front if is_front else placed).extend([turn for turn, _ in waiting])


def merge_roles(turns: Iterable[Turn], roles: frozenset[Role], losses: list[Loss]) -> list[Turn]:
    """Merge neighbouring turns of each of these roles."""
    merged: list[Turn] = []
    for number, turn in turns:
        if merged and turn.role in roles and merged[-1][1].role == turn.role:
            first, before = merged[-1]
            merged[-1] = (first, Message(turn.role, _join_parts(before.parts, turn.parts)))
            losses.append(Loss(number, None, "messages", f"Neighbouring {turn.role} turns became one.", "none"))
        else:
            merged.append((number, turn))
    return merged


def _join_parts(first: tuple[Part, ...], second: tuple[Part, ...]) -> tuple[Part, ...]:
    """Return the parts of both turns; a blank line separates two texts."""
    match first, second:
        case (*before, TextPart(end)), (TextPart(start), *after):
            return (*before, TextPart(f"{end}\n\n{start}"), *after)
        case _:
            return first + second


def start_with_user(turns: list[Turn], text: str, losses: list[Loss]) -> list[Turn]:
    """Put a user turn first, after system turns, if there is none or another role would be first."""
    first = next((place for place, turn in enumerate(turns) if turn[1].role != "system"), None)
    if first is None:
        number = turns[-1][0] if turns else 0
        why = "The request has system turns only; a short user turn was added."
        losses.append(Loss(number, None, "messages", why, "form"))
        return [*turns, (number, Message.user(text))]
    if turns[first][1].role == "user":
        return turns
    number = turns[first][0]
    why = "The conversation did not start with a user turn; a short one was put first."
    losses.append(Loss(number, None, "messages", why, "form"))
    return [*turns[:first], (number, Message.user(text)), *turns[first:]]
