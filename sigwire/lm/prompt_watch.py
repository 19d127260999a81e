"""``PromptWatch``: finds prompts that a server cut, by the input tokens that it counted. ``window_warnings``: before the call.

Ollama cuts a prompt that exceeds its window without an error, oldest turns first, unless the request forbids it
(https://docs.ollama.com/context-length); other servers of the user may. A prompt has two sizes: bytes of UTF-8 without runs of
blanks, and words (letters, digits, or runs of one mark): bytes a token differ between prose and code, tokens a word
between languages. There is a warning only if both sizes call for more tokens than the server counted. With the option
``strict_window`` of a call the warning is an error. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.parts import TextPart
from sigwire.core.request import Request
from sigwire.core.response import Attempt, LMWarning, Response, Usage
from sigwire.errors import ContextWindowExceededError, UnsupportedFeature

if TYPE_CHECKING:
    from sigwire.core.events import StreamEvent

__all__ = ["PromptSize", "PromptTooLong", "PromptWatch", "size_of", "window_warnings"]

_DEFAULT_WINDOW = 4096  # tokens: Ollama's, if a request has no num_ctx
_USUAL_BYTES_A_TOKEN = 4
_MOST_BYTES_A_TOKEN = 6  # of prose in a large vocabulary
_SHARE, _LEARNED_SHARE = 0.6, 0.75  # of the expected tokens: a server that counted fewer did not read all
_LEAST_BYTES, _LEAST_SAMPLES, _MOST_SAMPLES = 1000, 3, 20
_TOKENS_AROUND = (24, 12)  # that a chat template adds to a prompt and to a message, at most
_WORDS = re.compile(r"[A-Za-z]{1,12}|[0-9]{1,3}|([^\sA-Za-z0-9])\1*")


class PromptTooLong(ContextWindowExceededError, UnsupportedFeature):
    """A server would cut the prompt of a call with ``strict_window=True``. Nothing was sent."""


class PromptSize(NamedTuple):
    """The size of a prompt. ``is_plain``: all of it is text, so that the counted tokens are those of ``size``'s bytes."""

    bytes: int
    words: int
    messages: int
    is_plain: bool


def size_of(request: Request) -> PromptSize:
    """Return the size of the texts of a request. Tools, media, calls, results and reasoning are not counted.

    >>> from sigwire.core.messages import Message
    >>> size_of(Request((Message.user("Two  words."),)))
    PromptSize(bytes=10, words=3, messages=1, is_plain=True)
    """
    parts = [part for message in request.messages for part in message.parts]
    texts = [" ".join(part.text.split()) for part in parts if isinstance(part, TextPart)]
    bytes_ = sum(len(text.encode("utf-8", "replace")) for text in texts)
    words = sum(sum(1 for _ in _WORDS.finditer(text)) for text in texts)
    return PromptSize(bytes_, words, len(request.messages), len(texts) == len(parts) and not request.tools)


def window_warnings(texts: int, window: JsonValue, options: Mapping[str, JsonValue]) -> tuple[LMWarning, ...]:
    """Return a warning if texts of so many bytes exceed a window of ``num_ctx`` tokens, at 4 bytes a token.

    Raises ``PromptTooLong`` in place of it if the option ``strict_window`` is set.

    >>> [warning.feature for warning in window_warnings(10_000, 2048, {})], window_warnings(8_000, 2048, {})
    (['context'], ())
    """
    if not isinstance(window, int) or texts <= window * _USUAL_BYTES_A_TOKEN:
        return ()
    detail = f"About {texts // _USUAL_BYTES_A_TOKEN:,} tokens may be cut to a window of {window:,}. Raise the option num_ctx."
    if options.get("strict_window"):
        raise PromptTooLong(f"The prompt is too long (encoding the request): {detail}")
    return (LMWarning("context", detail),)


class _Sample(NamedTuple):
    bytes_a_token: float
    tokens_a_word: float


class PromptWatch:
    """Compares the prompts of one model with the tokens that its server counted.

    A prompt with fewer bytes than the window has tokens was surely read whole. The last 20 of these with 1,000 bytes or more
    teach bytes a token and tokens a word; until there are 3, a token has 6 bytes. A missing count means nothing: a server that
    finds the prompt in its cache may count none. Threads may share a watch.

    >>> from sigwire.core.messages import Message
    >>> request = Request((Message.user("One of many words. " * 1000),))
    >>> PromptWatch().warning(request, Usage(input_tokens=4500)) is None
    True
    >>> PromptWatch().warning(request, Usage(input_tokens=1500)).detail
    'The server counted 1,500 tokens of a prompt of 18,999 bytes, and cut it. Raise the option num_ctx, ...
    """

    def __init__(self) -> None:
        self._samples: tuple[_Sample, ...] = ()

    def watch(
        self,
        request: Request,
        log: Sequence[Attempt],
        body: JsonObject,
        response: Response,
        ends: Sequence[StreamEvent],
    ) -> tuple[Response, Sequence[StreamEvent]]:
        """Return an answer and the last events of its stream, with a warning if the prompt was cut.

        ``log``: the exchanges of the call; ``body`` was sent.

        Raises ``ContextWindowExceededError`` in place of the warning if the option ``strict_window`` is set.
        """
        options = body.get("options")
        window = options.get("num_ctx") if isinstance(options, dict) else None
        found = self.warning(request, response.usage, window if isinstance(window, int) else None)
        if found is None:
            return response, ends
        if request.options.get("strict_window"):
            raise _error(found, response, log)
        return response.with_warnings(found), [*_with_warning(ends, found)] if ends else ends

    def warning(self, request: Request, usage: Usage, window: int | None = None) -> LMWarning | None:
        """Return the warning of an answer, or ``None``; learn from an answer that was surely whole."""
        counted, written = usage.input_tokens, usage.output_tokens or 0
        if not counted:
            return None
        if window is not None and counted + written >= window - 1:
            return _warning(f"Prompt and answer fill the window of {window:,} tokens: the prompt may be cut.")
        size = size_of(request)
        if size.bytes <= (window or _DEFAULT_WINDOW):
            self._learn(size, counted)
            return None
        if counted >= self._least_tokens(size):
            return None
        return _warning(f"The server counted {counted:,} tokens of a prompt of {size.bytes:,} bytes, and cut it.")

    def _learn(self, size: PromptSize, counted: int) -> None:
        whole, each = _TOKENS_AROUND
        tokens = counted - whole - each * size.messages
        if size.is_plain and size.bytes >= _LEAST_BYTES and tokens > 0:
            sample = _Sample(size.bytes / tokens, tokens / size.words)
            self._samples = (*self._samples, sample)[-_MOST_SAMPLES:]

    def _least_tokens(self, size: PromptSize) -> float:
        samples = self._samples
        if len(samples) < _LEAST_SAMPLES:
            return _SHARE * min(size.bytes / _MOST_BYTES_A_TOKEN, size.words)
        by_bytes = size.bytes / max(sample.bytes_a_token for sample in samples)
        by_words = size.words * min(sample.tokens_a_word for sample in samples)
        return _LEARNED_SHARE * min(by_bytes, by_words)


def _warning(what: str) -> LMWarning:
    return LMWarning("context", f"{what} Raise the option num_ctx, or the window with which the server was started.")


def _error(warning: LMWarning, response: Response, log: Sequence[Attempt]) -> ContextWindowExceededError:
    error = ContextWindowExceededError(f"The answer is to a part of the prompt. {warning.detail}", model=response.model)
    error.attempts = (*log[:-1], *[replace(each, error=error.code) for each in log[-1:]])
    return error


def _with_warning(ends: Sequence[StreamEvent], warning: LMWarning) -> Iterable[StreamEvent]:
    from sigwire.core.events import ResponseEnd  # only streams need events

    return (replace(end, warnings=(*end.warnings, warning)) if isinstance(end, ResponseEnd) else end for end in ends)
