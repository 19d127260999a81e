"""What OpenAI's reasoning models refuse, family by family.

A model that no row names takes everything, so that tests may invent names. Where a model reasons, sampling is refused; from
GPT-5.4 on, chat completions takes no tools beside reasoning, which the Responses endpoint does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from sigwire.testing.answers import Fault
from sigwire.testing.request_node import RequestNode
from sigwire.testing.wire import Rejected

__all__ = ["check_chat_model", "check_responses_model"]

EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


@dataclass(frozen=True, slots=True)
class Family:
    """``efforts`` from the lowest to the highest; ``usual`` counts where a request has none.

    ``tools`` on chat completions: always, unless an effort is sent, or only without any reasoning.
    """

    lowest: str
    highest: str
    usual: str = "medium"
    stop: bool = False
    tools: Literal["always", "unless sent", "without"] = "always"
    without: frozenset[str] = frozenset()

    @property
    def efforts(self) -> tuple[str, ...]:
        """What a request may send."""
        span = EFFORTS[EFFORTS.index(self.lowest) : EFFORTS.index(self.highest) + 1]
        return tuple(effort for effort in span if effort not in self.without)


_NOT_MINIMAL = frozenset({"minimal"})
# The first pattern that fits the name counts.
FAMILIES: tuple[tuple[str, Family | None], ...] = (
    (r"gpt-5(\.\d)?-chat.*", None),
    (r"o1(-.*)?", Family("low", "high", stop=True)),
    (r"o[34](-.*)?", Family("low", "high")),
    (r"gpt-5(-.*)?", Family("minimal", "high")),
    (r"gpt-5\.1(-.*)?", Family("none", "high", "none", without=_NOT_MINIMAL)),
    (r"gpt-5\.[23](-.*)?", Family("none", "xhigh", "none", without=_NOT_MINIMAL)),
    (r"gpt-5\.4(-.*)?", Family("none", "xhigh", "none", tools="unless sent", without=_NOT_MINIMAL)),
    (r"gpt-5\.5(-.*)?", Family("none", "xhigh", tools="unless sent", without=_NOT_MINIMAL)),
    (r"gpt-6-astra(-.*)?|gpt-6\.1-sol(-.*)?", Family("low", "max", tools="without")),
    (r"gpt-5\.[6-9](-.*)?|gpt-6(\.\d)?(-.*)?", Family("none", "max", tools="without", without=_NOT_MINIMAL)),
)
# What may be sent all the same, because it changes nothing.
_SAMPLING: Mapping[str, Any] = {
    "temperature": 1, "top_p": 1, "frequency_penalty": 0, "presence_penalty": 0, "logprobs": False, "top_logprobs": 0,
    "logit_bias": None,
}  # fmt: skip


def check_chat_model(body: RequestNode, model: str) -> None:
    """Refuse what chat completions refuses for the model."""
    if (family := _family(model)) is None:
        return
    sent = body.get("reasoning_effort")
    effort = _effort(family, sent)
    if body.has("max_tokens"):
        raise _unsupported("max_tokens", "Use 'max_completion_tokens' instead.")
    if body.has("stop") and not family.stop:
        raise _unsupported("stop")
    if body.has("tools") and effort != "none" and (family.tools == "without" or (sent and family.tools != "always")):
        text = f"Function tools with reasoning_effort are not supported for {model} in /v1/chat/completions."
        raise Rejected(Fault("bad_request", f"{text} Please use /v1/responses instead.", param="reasoning_effort"))
    _check_sampling(body, effort)


def check_responses_model(body: RequestNode, model: str) -> None:
    """Refuse what the Responses endpoint refuses for the model."""
    if (family := _family(model)) is None:
        return
    reasoning = body.get("reasoning")
    _check_sampling(body, _effort(family, reasoning.get("effort") if reasoning else None))


def _family(model: str) -> Family | None:
    return next((family for pattern, family in FAMILIES if re.fullmatch(pattern, model)), None)


def _effort(family: Family, sent: RequestNode | None) -> str:
    effort = sent.text() if sent else family.usual
    if effort not in family.efforts:
        known = ", ".join(f"'{known}'" for known in family.efforts)
        text = f"Unsupported value: 'reasoning_effort' does not support '{effort}' with this model."
        fault = Fault("bad_request", f"{text} Supported values are: {known}.", code="unsupported_value")
        raise Rejected(fault)
    return effort


def _check_sampling(body: RequestNode, effort: str) -> None:
    for name, usual in _SAMPLING.items() if effort != "none" else ():
        if (node := body.get(name)) is None or node.value == usual:
            continue
        if name != "temperature":
            raise _unsupported(name)
        text = f"Unsupported value: 'temperature' does not support {node.value} with this model."
        fault = Fault("bad_request", f"{text} Only the default (1) value is supported.", code="unsupported_value")
        raise Rejected(fault)


def _unsupported(name: str, instead: str = "") -> Rejected:
    text = f"Unsupported parameter: '{name}' is not supported with this model. {instead}".rstrip()
    return Rejected(Fault("bad_request", text, code="unsupported_parameter", param=name))
