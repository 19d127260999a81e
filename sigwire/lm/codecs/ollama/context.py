"""``/api/chat``: how much of a prompt the server reads. It opens a small window unless it is asked for a larger one.

window_for(body, target)    the option ``num_ctx`` for a request that may be too long for the usual window
read_less(body, sent)       the warning where the server read far less than it was sent
"""

from __future__ import annotations

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.response import LMWarning
from sigwire.lm.codecs.ollama.tables import OllamaProfile
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.untrusted import objects_of, string_of, value_at

__all__ = ["truncation_warning", "window_for"]

_USUAL_WINDOW = 4096
_ROOM_FOR_AN_ANSWER = 2048
_TOKENS_OF_AN_IMAGE = 1024
_LEAST_BYTES_PER_TOKEN = 3  # English has four and a half, Chinese three: an estimate that errs on the long side
_MOST_BYTES_PER_TOKEN = 16  # of a prompt that was read whole


def window_for(body: JsonObject, target: Target[OllamaProfile]) -> int | None:
    """A power of two that holds the prompt and the answer, so that it seldom changes: a server that is asked for another
    window loads the model again. ``None`` where the usual one will do, where the caller chose, and on hosts that choose.
    """
    if not target.profile.asks_for_window or value_at(body, "options.num_ctx") is not None:
        return None
    tokens = _most_tokens(body) + _room(value_at(body, "options.num_predict"))
    if tokens <= _USUAL_WINDOW:
        return None
    limit = target.capabilities.context_window
    window = 1 << (tokens - 1).bit_length()
    return window if limit is None else min(window, limit)


def _most_tokens(body: JsonObject) -> int:
    messages = objects_of(body.get("messages"))
    images = sum(len(listed) for message in messages if isinstance(listed := message.get("images"), list))
    calls = [value for message in messages for name, value in message.items() if name == "tool_calls"]
    beside = sum(len(dumps(value)) for value in (*calls, body.get("tools"), body.get("format")) if value is not None)
    return (_text_bytes(messages) + beside) // _LEAST_BYTES_PER_TOKEN + images * _TOKENS_OF_AN_IMAGE


def _room(num_predict: JsonValue) -> int:
    return num_predict if isinstance(num_predict, int) and num_predict > 0 else _ROOM_FOR_AN_ANSWER


def _text_bytes(messages: tuple[JsonObject, ...]) -> int:
    texts = (string_of(message, name) or "" for message in messages for name in ("content", "thinking"))
    return sum(len(text) if text.isascii() else len(text.encode("utf-8", "replace")) for text in texts)


def truncation_warning(body: JsonObject, sent: EncodedRequest) -> tuple[LMWarning, ...]:
    """A warning where the count of what was read is too small for the prompt: older servers cut it and say nothing."""
    read, texts = body.get("prompt_eval_count"), _text_bytes(objects_of(sent.body.get("messages")))
    if not isinstance(read, int) or texts < _USUAL_WINDOW or read * _MOST_BYTES_PER_TOKEN >= texts:
        return ()
    detail = (
        f"The server read {read} tokens of a prompt of {texts} bytes: it cut the rest off. Raise the option num_ctx."
    )
    return (LMWarning("context", detail),)
