"""Tokens of turns, estimated, and windows of models: from tables, and from the text of a refusal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import accumulate
from typing import Any

from sigwire.core.capabilities import Capabilities
from sigwire.core.fold import Fold
from sigwire.core.messages import Message
from sigwire.core.response import Usage
from sigwire.errors import warn_user
from sigwire.lm.preview.limits import input_limit
from sigwire.lm.preview.tokens import tokens_of_messages
from sigwire.modules.turn_text import as_text
from sigwire.signatures.types.history import AnyTurn, History
from sigwire.signatures.types.views import folded_start

__all__ = ["ConversationSizes", "priced_window", "tokens_of", "window_in_text", "window_of_tables"]


def tokens_of(model: str, turns: Iterable[AnyTurn]) -> list[int]:
    """Return the estimated tokens of each turn, without media."""
    return [
        tokens_of_messages(model, [turn if isinstance(turn, Message) else Message.user(as_text([turn]))])
        for turn in turns
    ]


class ConversationSizes:
    """Tokens of the requests of one conversation, by fold. ``total``: those of the present view, ``fixed``: those around it.

    ``added``: the tokens of tools that a fold adds.

    The estimate is scaled so that the present view has ``total`` tokens.
    """

    def __init__(self, model: str, history: History, fixed: int, total: int, added: int = 0) -> None:
        self._model, self._turns, self._fixed, self._added = model, history.messages, fixed, added
        self._sums = list(accumulate(tokens_of(model, history.messages), initial=0))
        self._present = history.folds[-1] if history.folds else Fold(0)
        present = fixed + self._after(self._present)
        self._scale = min(max(total / max(present, 1), 0.25), 8.0)

    def tokens(self, fold: Fold) -> int:
        """Return the tokens of a request with a fold."""
        is_another = (fold.upto, fold.cleared) != (self._present.upto, self._present.cleared)
        return round(self._scale * (self._fixed + self._after(fold) + is_another * self._added))

    def _after(self, fold: Fold) -> int:
        start = sum(tokens_of(self._model, folded_start(self._turns, fold))) if fold.upto or fold.cleared else 0
        return start + self._sums[-1] - self._sums[max(fold.upto, fold.cleared)]


def window_of_tables(model: str, capabilities: Capabilities) -> int | None:
    """Return the input tokens of a model by its capabilities or a table; ``None`` if none knows the model."""
    return _window(model, capabilities.context_window)


@lru_cache(256)
def _window(model: str, own: int | None) -> int | None:
    found = input_limit(model, Capabilities(context_window=own))
    return None if found is None else found.tokens


_WINDOWS = (  # of the texts of refusals: the window is the group
    r"maximum context length(?: is| of|:) (\d+)",  # OpenAI, vLLM, DeepSeek, OpenRouter, Fireworks
    r"(?:prompt|request|input) is too long:? \d+ tokens? ?> ?(\d+)",  # Anthropic
    r"exceed context limit: \d+ \+ \d+ > (\d+)",  # Anthropic, with max_tokens
    r"exceeds the maximum number of tokens allowed \(?(\d+)",  # Gemini
    r"maximum prompt length is (\d+)",  # xAI
    r"available context size \(?(\d+)",  # llama-server
    r"for model with (\d+) maximum context length",  # Mistral
    r"model's context length \((\d+) tokens\)",  # SGLang
    r"maximum model length of (\d+)",  # vLLM
    r"current length is \d+ while limit is (\d+)",  # Cerebras
    r"exceeded model token limit: (\d+)",  # Moonshot
    r"prompt token count of \d+ exceeds the limit of (\d+)",  # GitHub Copilot
    r"range of input length should be \[\d+, ?(\d+)\]",  # DashScope
    r"total number of tokens[^\d]{0,40}? cannot exceed (\d+)",  # Cohere
    r"n_ctx \(?(\d+)",  # LM Studio
    r"context (?:length|window|size)(?! by)[^\d]{0,30}?(\d+) tokens",
    r"must be <= (\d+)",  # Text Generation Inference
)


def window_in_text(text: str) -> int | None:
    """Return the tokens of the window that the text of a refusal names; ``None`` if it names none.

    >>> window_in_text("prompt is too long: 210000 tokens > 200000 maximum"), window_in_text("too long")
    (200000, None)
    """
    plain = re.sub(r"(?<=\d)[,_](?=\d{3})", "", text)
    found = next((match for form in _WINDOWS if (match := re.search(form, plain, re.IGNORECASE))), None)
    return None if found is None or not int(found[1]) else int(found[1])


_unpriced: set[str] = set()


def priced_window(model: str, price: float, own: Any) -> int | None:
    """Return the tokens that cost ``price`` dollars as uncached input; ``None`` with a warning once if no price is known."""
    from sigwire.lm.policy.money.prices import cost_of  # few conversations have a limit of money

    million = cost_of(model, Usage(input_tokens=1_000_000, output_tokens=0), own)
    if million is None:
        if model not in _unpriced:
            _unpriced.add(model)
            warn_user(f"No price of {model} is known, so Compaction(price=) has no effect. Write LM(..., price=...).")
        return None
    return int(price / float(million.money) * 1_000_000) if million.money else None
