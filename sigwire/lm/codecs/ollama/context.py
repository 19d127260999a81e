"""``/api/chat``: the context window. The server opens a small window unless a request asks for a larger one."""

from __future__ import annotations

from sigwire.core.json import JsonObject, JsonValue, dumps
from sigwire.core.request import Request
from sigwire.core.response import LMWarning
from sigwire.lm.codecs.ollama.tables import OllamaProfile
from sigwire.lm.codecs.shared.interface import Target
from sigwire.lm.codecs.shared.untrusted import object_of, objects_of, string_of, value_at
from sigwire.lm.prompt_watch import window_warnings

__all__ = ["context_warnings", "length_request", "read_length", "window_for"]

_DEFAULT_WINDOW = 4096
_DEFAULT_ANSWER_TOKENS = 2048
_TOKENS_PER_IMAGE = 1024
_MIN_BYTES_PER_TOKEN = 3  # Chinese; English has 4.5. The estimate is an upper bound


def window_for(body: JsonObject, target: Target[OllamaProfile]) -> int | None:
    """Return the window in tokens: a power of two, because the server reloads the model at each change of the window.

    None if the default window is enough, if the caller set a window, or if the host chooses the window.
    """
    tokens = _max_tokens(body) + _answer_tokens(value_at(body, "options.num_predict"))
    is_given = not target.profile.asks_for_window or value_at(body, "options.num_ctx") is not None
    if is_given or tokens <= _DEFAULT_WINDOW:
        return None
    window = 1 << (tokens - 1).bit_length()
    return min(window, target.capabilities.context_window or window)


def length_request(request: Request, body: JsonObject) -> tuple[str, JsonObject] | None:
    """Return path and body of the question for the model's context length; ``None`` if the request has no window, or one that
    the caller chose."""
    chosen = value_at(body, "options.num_ctx")
    given = request.options.get("num_ctx"), value_at(request.options.get("extra_body"), "options.num_ctx")
    return None if chosen is None or chosen in given else ("/api/show", {"model": body["model"]})


def read_length(body: JsonValue) -> int | None:
    """Return the context length in a reply of ``/api/show``.

    >>> read_length({"model_info": {"general.architecture": "qwen3", "qwen3.context_length": 40960}})
    40960
    """
    info = object_of(value_at(body, "model_info"))
    length = info.get(f"{info.get('general.architecture')}.context_length")
    return length if type(length) is int and length > 0 else None


def _max_tokens(body: JsonObject) -> int:
    messages = objects_of(body.get("messages"))
    images = sum(len(listed) for message in messages if isinstance(listed := message.get("images"), list))
    calls = [value for message in messages for name, value in message.items() if name == "tool_calls"]
    json = sum(len(dumps(value)) for value in (*calls, body.get("tools"), body.get("format")) if value is not None)
    return (_text_bytes(messages) + json) // _MIN_BYTES_PER_TOKEN + images * _TOKENS_PER_IMAGE


def _answer_tokens(num_predict: JsonValue) -> int:
    return num_predict if isinstance(num_predict, int) and num_predict > 0 else _DEFAULT_ANSWER_TOKENS


def _text_bytes(messages: tuple[JsonObject, ...]) -> int:
    texts = (string_of(message, name) or "" for message in messages for name in ("content", "thinking"))
    return sum(len(text) if text.isascii() else len(text.encode("utf-8", "replace")) for text in texts)


def context_warnings(body: JsonObject, request: Request) -> tuple[LMWarning, ...]:
    """Return a warning if the prompt may exceed the window of the request: older servers truncate it without an error."""
    size = _text_bytes(objects_of(body.get("messages")))
    return window_warnings(size, value_at(body, "options.num_ctx"), request.options)
