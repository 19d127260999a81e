"""``CallVerdict``: whether a tool call that asks for approval runs; ``read_verdict`` reads the decision of a caller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

from sigwire.core.json import JsonObject, Value, dumps, loads
from sigwire.core.narrow import is_mapping
from sigwire.core.tools.tool import Tool
from sigwire.errors import InputError

__all__ = ["CallVerdict", "VerdictAnswer", "check_edit", "read_checked_verdict", "read_verdict"]

VerdictAnswer: TypeAlias = Literal["approve", "deny", "edit", "ask"]


@dataclass(frozen=True, slots=True)
class CallVerdict(Value):
    """The answer to a call that asks for approval; "ask" if a person must decide.

    ``why``: the reason of a denial, or of the question. ``arguments``: those of an edited call.
    """

    answer: VerdictAnswer
    why: str = ""
    arguments: JsonObject | None = None


def read_verdict(id: str, decision: object) -> CallVerdict:
    """Return the verdict of ``"approve"``, ``"deny"``, ``{"deny": "why"}`` or ``{"edit": {arguments}}``.

    Raises ``InputError`` for anything else.

    >>> read_verdict("call_0", {"deny": "too much"})
    CallVerdict(answer='deny', why='too much', arguments=None)
    """
    if decision == "approve":
        return CallVerdict("approve")
    if decision == "deny":
        return CallVerdict("deny")
    if is_mapping(decision) and len(decision) == 1:
        why, arguments = decision.get("deny"), decision.get("edit")
        if isinstance(why, str):
            return CallVerdict("deny", why)
        if is_mapping(arguments):
            return CallVerdict("edit", arguments=_as_json(id, dict(arguments)))
    raise InputError(
        f'A decision is "approve", {{"deny": "why"}} or {{"edit": {{arguments}}}}, not {decision!r:.80} (deciding about {id}).'
    )


def check_edit(id: str, name: str, bind: Callable[[JsonObject], object], verdict: CallVerdict) -> CallVerdict:
    """Return the verdict. Raises ``InputError`` if ``bind``, of the tool ``name``, refuses the arguments of an edit."""
    if verdict.arguments is not None:
        try:
            bind(verdict.arguments)
        except Exception as error:  # the validators of users' types may raise anything
            raise InputError(f"{name} refuses the edited arguments: {error} (deciding about {id}).") from error
    return verdict


def read_checked_verdict(id: str, decision: object, name: str, schema: Any) -> CallVerdict:
    """``read_verdict``, also checked by the JSON Schema of the tool that the caller of this function does not have.

    ``None``: a file of an earlier version has no schema; the tool checks the edit when its call is made.
    """
    verdict = read_verdict(id, decision)
    return verdict if schema is None else check_edit(id, name, partial(_bind, name, schema), verdict)


def _bind(name: str, schema: Any, arguments: JsonObject) -> object:
    return Tool.from_schema(name, "", schema).bind(arguments)


def _as_json(id: str, arguments: dict[str, object]) -> JsonObject:
    try:
        read: JsonObject = loads(dumps(arguments))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"The arguments of an edit are no JSON: {error} (deciding about {id}).") from error
    return read
