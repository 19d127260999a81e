"""What Claude models refuse, family by family. A model that no row names takes everything, so that tests may invent names."""

from __future__ import annotations

import re
from dataclasses import dataclass

from sigwire.testing.request_node import RequestNode

__all__ = ["check_model"]


@dataclass(frozen=True, slots=True)
class Family:
    """What a model takes: sampling, a thinking budget, being told not to think, forced tools, prefill, later system turns."""

    samples: bool = False
    budget: bool = False
    rests: bool = True
    forced: bool = True
    prefill: bool = False
    system: bool = False


_ALWAYS_THINKS = Family(rests=False, forced=False, system=True)
# The first pattern that fits the name counts.
FAMILIES: tuple[tuple[str, Family], ...] = (
    (r"claude-(haiku|sonnet|opus)-4-5.*", Family(samples=True, budget=True, prefill=True)),
    (r"claude-(sonnet|opus)-4-6.*", Family(samples=True, budget=True)),
    (r"claude-opus-4-7.*", Family()),
    (r"claude-opus-4-8.*|claude-haiku-5-5.*", Family(system=True)),
    (r"claude-(opus|sonnet)-5-5.*|claude-(fable|mythos)-5.*", _ALWAYS_THINKS),
    (r"claude-(opus|sonnet)-5.*", Family(system=True)),
)


def check_model(body: RequestNode, model: str) -> None:
    """Refuse what the API refuses for the model."""
    if (family := _family(model)) is None:
        return
    for name in ("temperature", "top_k", "top_p"):
        if body.has(name) and not family.samples:
            raise body[name].wrong(f"`{name}` is not supported on this model")
    _check_thinking(body.get("thinking"), family)
    choice = body.get("tool_choice")
    if choice and not family.forced and choice["type"].value in ("any", "tool"):
        raise choice.wrong("tool_choice that forces tool use is not supported on this model")
    _check_turns(body["messages"].items(), family)


def _family(model: str) -> Family | None:
    return next((family for pattern, family in FAMILIES if re.fullmatch(pattern, model)), None)


def _check_thinking(thinking: RequestNode | None, family: Family) -> None:
    kind = thinking["type"].text() if thinking else None
    if thinking and kind == "enabled" and not family.budget:
        raise thinking["type"].wrong("`enabled` is not supported on this model, use `adaptive`")
    if thinking and kind == "disabled" and not family.rests:
        raise thinking["type"].wrong("thinking cannot be disabled on this model")


def _check_turns(messages: list[RequestNode], family: Family) -> None:
    roles = [message["role"].text() for message in messages]
    if "system" in roles and not family.system:
        raise messages[roles.index("system")].wrong("role 'system' is not supported on this model")
    if roles[-1:] == ["assistant"] and not family.prefill:
        raise messages[-1].wrong(
            "This model does not support assistant message prefill. The conversation must end with a user message."
        )
