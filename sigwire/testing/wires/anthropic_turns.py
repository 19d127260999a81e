"""Messages wire of the fake provider: the rules of turns and calls."""

from __future__ import annotations

from collections.abc import Mapping

from sigwire.core.messages import Part, Role
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.testing.request_node import InvalidValue, RequestNode

__all__ = ["ROLES", "missing_results_error", "new_calls", "results_of", "turns_of"]

ROLES: Mapping[str, Role] = {"system": "system", "user": "user", "assistant": "assistant"}


def turns_of(nodes: list[RequestNode]) -> list[tuple[str, list[RequestNode]]]:
    """Return the turns: adjacent messages of one role are one turn."""
    turns: list[tuple[str, list[RequestNode]]] = []
    for node in nodes:
        node.fields({"role", "content"})
        role = node["role"].text(set(ROLES))
        if turns and turns[-1][0] == role:
            turns[-1][1].append(node["content"])
        else:
            turns.append((role, [node["content"]]))
    return turns


def results_of(
    contents: list[RequestNode], parts: tuple[Part, ...], calls: Mapping[str, str]
) -> tuple[ToolResult, ...]:
    """Check the results at the start of a turn: one for each call of the previous turn, and no other."""
    results = tuple(part for part in parts if isinstance(part, ToolResult))
    place = contents[0]
    answered = [result.id for result in results]
    if strange := [id for id in answered if id not in calls]:
        raise place.wrong(
            f"unexpected `tool_use_id` found in `tool_result` blocks: {strange[0]}. Each `tool_result` block must have a "
            "corresponding `tool_use` block in the previous message."
        )
    if twice := [id for id in answered if answered.count(id) > 1]:
        raise place.wrong(
            f"each tool_use must have a single result. Found multiple `tool_result` blocks with id: {twice[0]}"
        )
    opening = {result.id for result in parts[: len(results)] if isinstance(result, ToolResult)}
    if missing := {id: name for id, name in calls.items() if id not in opening}:
        raise missing_results_error(place, missing)
    return tuple(ToolResult(r.id, calls[r.id], r.content, r.is_error, r.media) for r in results)


def missing_results_error(place: RequestNode, calls: Mapping[str, str]) -> InvalidValue:
    return place.wrong(
        f"`tool_use` ids were found without `tool_result` blocks immediately after: {', '.join(calls)}. Each `tool_use` block "
        "must have a corresponding `tool_result` block in the next message."
    )


def new_calls(place: RequestNode, parts: tuple[Part, ...], seen: set[str]) -> dict[str, str]:
    calls: dict[str, str] = {}
    for part in parts:
        if isinstance(part, ToolCall):
            if part.id in seen:
                raise place.wrong("`tool_use` ids must be unique")
            seen.add(part.id)
            calls[part.id] = part.name
    return calls
