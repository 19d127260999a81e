"""``Ask``: the effect of asking a model, and what every asking leaves behind (usage, module histories)."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.errors import ConfigurationError, LMNotConfigured
from sigwire.observe.usage import record_usage
from sigwire.settings import current

if TYPE_CHECKING:
    from sigwire.lm.base import LanguageModel
    from sigwire.lm.history import CallLog

__all__ = ["Ask", "choose_lm", "remembering"]


class Ask:
    """An effect: ask a model. Its value is the ``Response``.

    >>> from sigwire.lm.fake import FakeLM
    >>> from sigwire.core.messages import Message
    >>> Ask(FakeLM(["Hello!"]), Request((Message.user("Hi"),))).run().choices[0].text
    'Hello!'
    """

    __slots__ = ("lm", "request")

    def __init__(self, lm: LanguageModel, request: Request) -> None:
        self.lm = lm
        self.request = request

    def run(self) -> Response:
        """Ask and wait, blocking."""
        return self._done(self.lm.respond(self.request))

    async def arun(self) -> Response:
        """Ask and await."""
        return self._done(await self.lm.arespond(self.request))

    def _done(self, response: Response) -> Response:
        record_usage(self.lm.model, response.usage)
        if logs := _logs.get():
            from sigwire.lm.history import Exchange

            exchange = Exchange(self.lm.model, "chat", self.request, response)
            for log in logs:
                log.add(exchange)
        return response


# The histories of the modules whose calls are under way, outermost first; empty unless histories are switched on.
_logs: ContextVar[tuple[CallLog, ...]] = ContextVar("sigwire_module_logs", default=())


@contextmanager
def remembering(log: CallLog | None) -> Generator[None]:
    """What is asked inside is added to ``log``; ``None`` adds nothing."""
    before = _logs.get()
    if log is not None and all(log is not other for other in before):
        _logs.set((*before, log))
    try:
        yield
    finally:
        _logs.set(before)


def choose_lm(lm: Any, where: object) -> LanguageModel:
    """The given model, else the one in the settings. Raises ``ConfigurationError`` for what is no model.

    >>> choose_lm("openai/gpt-5-mini", "Predict")
    Traceback (most recent call last):
        ...
    sigwire.errors.ConfigurationError: Predict needs a language model, not the text 'openai/gpt-5-mini'. Write ...
    """
    if lm is None:
        lm = current().lm
        if lm is None:
            raise LMNotConfigured(str(where))
    if isinstance(lm, type):
        raise ConfigurationError(
            f"{where} needs a language model, not the class {lm.__name__}. Write {lm.__name__}(...)."
        )
    if hasattr(lm, "respond"):
        return lm  # type: ignore[no-any-return]  # the protocol is checked by its one decisive member
    if isinstance(lm, str):
        raise ConfigurationError(f"{where} needs a language model, not the text {lm!r}. Write sigwire.LM({lm!r}).")
    raise ConfigurationError(
        f"{where} needs a language model, not {type(lm).__name__}: it has no respond(request). "
        "Subclass sigwire.BaseLM, or give the class respond, arespond, model and capabilities."
    )
