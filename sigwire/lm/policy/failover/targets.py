"""``RouteTarget``: a model of a route in one form, whatever class it has, and what it cannot take as far as is known.

``targets_of`` makes the targets of a model: a model with ``targets()`` gives its own, any object with ``respond`` and
``arespond`` is one. This file knows no class of models.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol, TypeAlias, cast

from sigwire.core.capabilities import Capabilities
from sigwire.core.parts import AudioPart, FilePart, ImagePart
from sigwire.core.request import Request
from sigwire.core.response import LMWarning, Response
from sigwire.core.tools.calls import ToolResult
from sigwire.effects.emitting import Emit
from sigwire.effects.steps import FunctionEffect, Steps
from sigwire.errors import ConfigurationError, UnsupportedOption
from sigwire.lm.policy.call import Haste, TargetKey

__all__ = ["RouteTarget", "RoutedModel", "asks_to_reason", "misfit", "targets_of", "unknown_options"]


class RoutedModel(Protocol):
    """The part of a model that a route reads."""

    @property
    def model(self) -> str: ...
    @property
    def capabilities(self) -> Capabilities: ...


_AskSteps: TypeAlias = Callable[[Request, bool, Haste], Steps[Response]]


def _holds_nothing(request: Request) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class RouteTarget:
    """A model of a route.

    ``ask`` answers a request, streamed or whole, without the log of the model. ``holds``: whether the cache has the answer.
    ``key``: that of the process-wide health, ``None`` for a model whose health belongs to its router. ``warnings``: those of
    each answer.
    """

    lm: RoutedModel
    ask: _AskSteps
    holds: Callable[[Request], bool] = _holds_nothing
    key: TargetKey | None = None
    warnings: tuple[LMWarning, ...] = ()


def targets_of(lm: object) -> Sequence[RouteTarget]:
    """Return the targets of a model, several if it is a router. Raises ``ConfigurationError`` for any other object."""
    if isinstance(lm, type) or not hasattr(lm, "respond") or not hasattr(lm, "arespond"):
        raise ConfigurationError(
            f"A target is a model or the name of one, not {type(lm).__name__} (making a router). Write 'provider/model', or "
            "give an object with respond, arespond, model and capabilities."
        )
    targets: Callable[[], Sequence[RouteTarget]] | None = getattr(lm, "targets", None)
    if targets is not None:
        return targets()
    model = cast("_Answering", lm)
    return (RouteTarget(model, partial(_ask_any, model)),)


class _Answering(RoutedModel, Protocol):
    def respond(self, request: Request) -> Response: ...
    async def arespond(self, request: Request) -> Response: ...


def _ask_any(lm: _Answering, request: Request, streamed: bool, haste: Haste) -> Steps[Response]:
    """Ask a model that has no steps. A streamed call emits the events of the whole answer at its end."""
    response: Response = yield FunctionEffect(partial(lm.respond, request), partial(lm.arespond, request))
    if streamed:
        from sigwire.core.events import events_of  # only streams need events

        yield Emit(*events_of(response))
    return response


def unknown_options(lm: object, options: Iterable[str]) -> tuple[str, ...]:
    """Return the options that a model does not know; none for a model without ``check_options``."""
    check: Callable[[Iterable[str]], None] | None = getattr(lm, "check_options", None)
    unknown: list[str] = []
    if check is None:
        return ()
    for name in options:
        try:
            check([name])
        except UnsupportedOption:
            unknown.append(name)
    return tuple(unknown)


def asks_to_reason(lm: object, request: Request) -> bool:
    """Return True if a request or the options of the model ask for reasoning."""
    options: Mapping[str, object] = {**getattr(lm, "kwargs", {}), **request.options}
    return any(options.get(name) is not None for name in ("reasoning", "reasoning_effort", "thinking"))


# --- what a target cannot take


def misfit(target: RouteTarget, request: Request) -> str | None:
    """Return the part of a request that a model does not take, by its capabilities; ``None`` if it takes all.

    >>> from sigwire.core.messages import Message
    >>> class Small:
    ...     model, capabilities = "small", Capabilities(context_window=1000)
    >>> target = RouteTarget(Small(), lambda request, streamed, haste: iter(()))
    >>> misfit(target, Request((Message.user("word " * 2000),)))
    'context: at least 1,954 tokens for a window of 1,000'
    """
    able = target.lm.capabilities
    if request.tools:
        if not able.native_tools:
            return "tools"
        if request.response_format is not None and not able.tools_with_json_schema:
            return "tools with JSON"
    media = next((name for name, ability in _media(request) if not getattr(able, ability)), None)
    return media if media is not None or able.context_window is None else _overflow(request, able.context_window)


_MEDIA: Mapping[type[object], tuple[str, str]] = {
    ImagePart: ("image", "images"),
    AudioPart: ("audio", "audio"),
    FilePart: ("file", "files"),
}


def _media(request: Request) -> Iterable[tuple[str, str]]:
    for message in request.messages:
        for part in message.parts:
            inside = part.media if isinstance(part, ToolResult) else (part,)
            yield from (_MEDIA[type(each)] for each in inside if type(each) in _MEDIA)


def _overflow(request: Request, window: int) -> str | None:
    from sigwire.lm.policy.money.estimates import input_bound  # only known windows need an estimate

    # Half of the upper bound is 6 bytes a token: a request that may fit is sent, and the provider decides.
    least = input_bound(request) // 2
    return f"context: at least {least:,} tokens for a window of {window:,}" if least > window else None
