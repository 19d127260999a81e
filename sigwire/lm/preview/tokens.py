"""Estimates of the input tokens of a request, corrected by earlier calls of its model. Loads nothing over the network.

Characters are counted by class, and each class has a number of characters a token in a family of tokenizers. The ratios were
fitted to prose, code and JSON with two public vocabularies. tiktoken counts in place of the estimate if it is installed and
its vocabulary is on disk already: a missing file would be downloaded.
"""

from __future__ import annotations

import functools
import hashlib
import importlib
import importlib.util
import os
import re
import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sigwire.core.json import dumps
from sigwire.core.messages import AudioPart, FilePart, ImagePart, Message, Part, TextPart, ThinkingPart
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolCall, ToolResult

__all__ = ["TokenEstimate", "estimate_tokens", "tokens_of_messages"]


@dataclass(frozen=True, slots=True)
class TokenEstimate:
    """The input tokens of a request. ``margin``: percent, 0 if the count is exact. ``media``: parts that are not counted.

    >>> str(TokenEstimate(185, 10, "characters", ("1 image",)))
    '≈185 (±10 %) + 1 image'
    >>> str(TokenEstimate(185, 0, "tiktoken")), int(TokenEstimate(185, 0, "tiktoken"))
    ('185', 185)
    """

    count: int
    margin: int
    method: str
    media: tuple[str, ...] = ()

    def __int__(self) -> int:
        return self.count

    @property
    def short(self) -> str:
        """The count without its margin."""
        return f"{'≈' if self.margin else ''}{self.count:,}"

    def __str__(self) -> str:
        return " + ".join([f"{self.short} (±{self.margin} %)" if self.margin else self.short, *self.media])


_MOST_CALLS = 20
_LEAST_CALLS = 3
_MESSAGE, _ANSWER = 4, 3  # tokens around each message, and before the answer (OpenAI's cookbook, "how to count tokens")


def estimate_tokens(model: str, request: Request, calls: Iterable[tuple[Request, int]] = ()) -> TokenEstimate:
    """Return the input tokens of a request to ``model`` (``provider/name``).

    ``calls``: earlier requests to the model and their counted input tokens; the last 20 correct the estimate.

    >>> from sigwire.core.messages import Message
    >>> request = Request((Message.user("What is the capital of France?"),))
    >>> str(estimate_tokens("acme/large", request)), str(estimate_tokens("acme/large", request, [(request, 24)] * 3))
    ('≈13 (±15 %)', '≈24 (±5 %)')
    """
    media = _media(request.messages)
    count = _vocabulary_of(model)
    if count is not None:
        is_exact = not (request.tools or request.response_format or media)
        return TokenEstimate(
            sum(map(count, _texts(request))) + _around(request), 0 if is_exact else 5, "tiktoken", media
        )
    family = _family(model)
    known = [call for call in [*calls][-_MOST_CALLS:] if call[1] > 0 and not _media(call[0].messages)]
    if len(known) < _LEAST_CALLS:
        return TokenEstimate(_guess(request, family), 15, f"characters, {family} ratios", media)
    ratio = sum(tokens for _, tokens in known) / sum(_guess(earlier, family) for earlier, _ in known)
    corrected = round(_guess(request, family) * min(max(ratio, 0.25), 4.0))
    return TokenEstimate(corrected, 5, f"characters, corrected by {len(known)} calls", media)


def tokens_of_messages(model: str, messages: Sequence[Message]) -> int:
    """Return the estimated tokens of messages, without those of media."""
    return int(estimate_tokens(model, Request(tuple(messages)))) - _ANSWER


# --- texts ---------------------------------------------------------------------------------------------


def _texts(request: Request) -> list[str]:
    texts = [text for message in request.messages for part in message.parts for text in _texts_of(part)]
    schemas = [dumps(tool) for tool in request.tools]
    form = request.response_format
    return [*texts, *schemas, *([dumps(form.schema)] if form is not None and form.schema else [])]


def _texts_of(part: Part) -> list[str]:
    if isinstance(part, TextPart | ThinkingPart):
        return [part.text]
    if isinstance(part, ToolCall):
        return [part.name, part.arguments_text]
    if isinstance(part, ToolResult):
        return [part.text]
    return []


_KINDS: Mapping[type, str] = {ImagePart: "image", AudioPart: "audio part", FilePart: "file"}


def _media(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return the number of parts of each kind that are not text: "2 images"."""
    parts = [part for message in messages for part in message.parts]
    parts += [item for part in parts if isinstance(part, ToolResult) for item in part.media]
    counts = Counter(_KINDS[type(part)] for part in parts if type(part) in _KINDS)
    return tuple(f"{count} {name}{'s' if count > 1 else ''}" for name, count in counts.items())


# --- the estimate --------------------------------------------------------------------------------------

_ASCII = {
    "letters": string.ascii_letters.encode(), "digits": string.digits.encode(), "marks": string.punctuation.encode(),
}  # fmt: skip
_CLASSES: Mapping[str, re.Pattern[str]] = {
    "lines": re.compile(r"\n\s*"),
    "latin": re.compile(r"[\u00a1-\u024f]+"),
    "han": re.compile(r"[\u3000-\u9fff\uff00-\uffef]+"),
    "hangul": re.compile(r"[\uac00-\ud7a3]+"),
    "other": re.compile(r"[\u0250-\u2fff\ua000-\uabff\ud7a4-\ufeff\U00010000-\U0010ffff]+"),
}
_RATIOS: Mapping[str, Mapping[str, float]] = {  # characters a token; a run of blanks after a line end counts as one
    "openai": {
        "letters": 4.2, "digits": 2.2, "marks": 1.75, "lines": 1.5, "latin": 1.8, "han": 1.2, "hangul": 1.4, "other": 2.4,
    },
    "anthropic": {
        "letters": 3.8, "digits": 2.0, "marks": 1.6, "lines": 1.2, "latin": 1.6, "han": 0.95, "hangul": 0.9, "other": 1.4,
    },
    "gemini": {
        "letters": 4.2, "digits": 1.0, "marks": 1.75, "lines": 1.5, "latin": 1.8, "han": 1.4, "hangul": 1.4, "other": 2.4,
    },
}  # fmt: skip
_FAMILIES: Mapping[str, str] = {"claude": "anthropic", "gemini": "gemini", "gemma": "gemini"}


def _family(model: str) -> str:
    name = model.lower()
    return next((family for word, family in _FAMILIES.items() if word in name), "openai")


def _guess(request: Request, family: str) -> int:
    ratios, texts = _RATIOS[family], _texts(request)
    tokens = sum(_count(text, name) / ratios[name] for text in texts for name in _classes_of(text))
    return round(tokens) + _around(request)


def _around(request: Request) -> int:
    return _MESSAGE * len(request.messages) + _ANSWER


def _classes_of(text: str) -> Iterable[str]:
    return (*_ASCII, "lines") if text.isascii() else (*_ASCII, *_CLASSES)


def _count(text: str, name: str) -> int:
    if name in _ASCII:
        data = text.encode("utf-8", "surrogatepass")
        return len(data) - len(data.translate(None, _ASCII[name]))
    return len(text) - len(_CLASSES[name].sub("", text)) if name != "lines" else len(_CLASSES[name].findall(text))


# --- tiktoken ------------------------------------------------------------------------------------------

_VOCABULARIES: Mapping[str, tuple[str, str]] = {  # the address that names the file, and the SHA-256 of its content
    "o200k_base": (
        "https://openaipublic.blob.core.windows.net/encodings/o200k_base.tiktoken",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
    ),
    "cl100k_base": (
        "https://openaipublic.blob.core.windows.net/encodings/cl100k_base.tiktoken",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    ),
}
_OPENAI = frozenset({"openai", "azure"})


def _vocabulary_of(model: str) -> Callable[[str], int] | None:
    """Return the function that counts tokens as the model does; ``None`` without tiktoken or its vocabulary on disk."""
    provider, _, name = model.partition("/")
    folder = os.environ.get("TIKTOKEN_CACHE_DIR", "")
    return _counter(name, folder) if provider in _OPENAI and folder and name else None


@functools.lru_cache(64)
def _counter(name: str, folder: str) -> Callable[[str], int] | None:
    if importlib.util.find_spec("tiktoken") is None:
        return None
    tiktoken: Any = importlib.import_module("tiktoken")
    try:
        encoding = tiktoken.encoding_name_for_model(name)
    except KeyError:
        return None
    if encoding not in _VOCABULARIES or not _is_on_disk(Path(folder), *_VOCABULARIES[encoding]):
        return None
    encode = tiktoken.get_encoding(encoding).encode_ordinary
    return lambda text: len(encode(text))


def _is_on_disk(folder: Path, address: str, digest: str) -> bool:
    """Return True if tiktoken would read the vocabulary from its folder. It replaces a file of other content by a download."""
    try:
        data = (folder / hashlib.sha1(address.encode(), usedforsecurity=False).hexdigest()).read_bytes()
    except OSError:
        return False
    return hashlib.sha256(data).hexdigest() == digest
