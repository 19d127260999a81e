"""``to_provider``: a history in the form that one model accepts, before anything is sent."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal, NamedTuple

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.errors import ConfigurationError
from sigwire.lm.base import LanguageModel
from sigwire.lm.client import LM
from sigwire.lm.codecs.shared.history import has_media
from sigwire.lm.codecs.shared.interface import Target, WireProfile
from sigwire.lm.histories.conversion import ConvertedHistory, convert_history
from sigwire.lm.histories.losses import Loss, Losses, refuse_losses
from sigwire.lm.histories.rules import HistoryRules
from sigwire.lm.media.limits import limits_name

__all__ = ["PortableHistory", "to_provider"]


class PortableHistory(NamedTuple):
    """A history in the form that one model accepts, and every change of it; ``losses`` is empty if nothing changed."""

    messages: tuple[Message, ...]
    losses: Losses = ()


def to_provider(
    history: Sequence[Message],
    target: str | LanguageModel,
    *,
    strict: bool = False,
    keep_thinking: Literal["text"] | None = None,
) -> PortableHistory:
    """Return the history in the form that a model accepts, and every change as a ``Loss``. Nothing is sent.

    ``target``: a model, or its name ``provider/model``. ``strict``: lost content raises. ``keep_thinking="text"``: thinking
    that the provider refuses becomes text. A call conserves what the provider takes back: text, calls, results, media of the
    kinds that it accepts, and thinking of the same provider. Calls encode their history by the same rules, but refuse media
    with ``UnsupportedFeature`` in place of a note; with the option ``strict_history=True`` lost content is refused as well.

    A second call with the result changes nothing: ``to_provider(to_provider(h, m).messages, m).losses == ()``.

    Raises ``HistoryLoss`` if ``strict`` is set and content would be lost, ``UnsupportedMedia`` for an image that exceeds the
    limits of the provider and cannot be converted, ``InputError`` for a part that its turn cannot hold
    (a call in a user turn), and ``ConfigurationError`` for an unknown provider and for a model without a wire.

    >>> from sigwire.core.parts import TextPart, ThinkingPart
    >>> thought = ThinkingPart("Hm.", signature="U2ln", provider="anthropic")
    >>> history = [Message.user("Hi"), Message("assistant", (thought, TextPart("Hello!"))), Message.user("And now?")]
    >>> messages, losses = to_provider(history, "openai/gpt-4.1-mini")
    >>> messages[1].text, [(loss.message, loss.part, loss.what, loss.severity) for loss in losses]
    ('Hello!', [(1, 0, 'thinking', 'content')])
    >>> to_provider(history, "anthropic/claude-haiku-4-5").losses
    ()
    """
    rules = _rules_of(target, history)
    rules = replace(rules, thinking_as_text=True) if keep_thinking == "text" else rules
    converted = convert_history(history, rules)
    if strict:
        refuse_losses(converted.losses)
    if has_media(converted.messages):
        return _with_fitted_media(converted, limits_name(rules.family, rules.model_family))
    return PortableHistory(converted.messages, converted.losses)


def _with_fitted_media(converted: ConvertedHistory, family: str) -> PortableHistory:
    """Return the history with media within the limits of the provider. A call changes them in the same way."""
    from sigwire.lm.media.fitting import fit_turns  # lazy: most histories have no media

    losses = list(converted.losses)
    turns = fit_turns(converted.messages, family)
    for number, before, (after, warnings) in zip(converted.numbers, converted.messages, turns, strict=True):
        losses += [Loss(number, None, "media", warning.detail, "form") for warning in warnings]
        if after is not before and not warnings:
            losses.append(Loss(number, None, "media", "The name of a format was corrected.", "none"))
    return PortableHistory(tuple([message for message, _ in turns]), tuple(losses))


def _rules_of(target: str | LanguageModel, history: Sequence[Message]) -> HistoryRules:
    model = LM(target) if isinstance(target, str) else target
    backend = getattr(model, "_backend", None)
    find: Callable[[Request], Target[WireProfile]] | None = getattr(backend, "target_of", None)
    if find is None:
        raise ConfigurationError(
            f"{type(model).__name__} {model.model!r} has no wire of its own (converting a history). Give the model of one "
            "provider, such as 'openai/gpt-5-mini' or a target of the router."
        )
    found = find(Request(tools=_tools_of(history)))
    refused = frozenset[str]() if found.capabilities.images else {"image"}
    return replace(found.history_rules, media=found.profile.media - refused)


def _tools_of(history: Sequence[Message]) -> tuple[JsonObject, ...]:
    """Return a tool if the history has calls: some models have another wire for requests with tools."""
    return (_A_TOOL,) if any(message.tool_calls for message in history) else ()


_A_TOOL: JsonObject = {"type": "function", "function": {"name": "f"}}
