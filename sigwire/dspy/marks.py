"""Values of types inside a text: their content parts as JSON between two marks, as DSPy writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import TypeAlias, cast

from sigwire.adapters.values.json_text import read_json
from sigwire.core.json import JsonObject
from sigwire.signatures.types import media

__all__ = ["content_parts", "marked", "split_message_content_for_custom_types"]

_Block: TypeAlias = dict[str, object]
_START, _END = "<<CUSTOM-TYPE-START-IDENTIFIER>>", "<<CUSTOM-TYPE-END-IDENTIFIER>>"


def content_parts(medium: object) -> list[JsonObject]:
    """Return an image, a sound or a file as OpenAI content parts.

    >>> content_parts(media.Audio(data=b"RIFF", audio_format="wav"))
    [{'type': 'input_audio', 'input_audio': {'data': 'UklGRg==', 'format': 'wav'}}]
    """
    if isinstance(medium, media.Image):
        detail = {"detail": medium.detail} if medium.detail else {}
        return [{"type": "image_url", "image_url": {"url": medium.url, **detail}}]
    if isinstance(medium, media.Audio):
        return [{"type": "input_audio", "input_audio": {"data": medium.data, "format": medium.audio_format}}]
    facts = cast("media.File", medium).to_json()
    return [{"type": "file", "file": {name: value for name, value in facts.items() if name != "url"}}]


def marked(blocks: Sequence[JsonObject]) -> str:
    """Return content parts as a text between the marks.

    >>> marked([])
    '<<CUSTOM-TYPE-START-IDENTIFIER>>[]<<CUSTOM-TYPE-END-IDENTIFIER>>'
    """
    return f"{_START}{json.dumps(blocks, ensure_ascii=False)}{_END}"


def split_message_content_for_custom_types(messages: Iterable[_Block]) -> list[_Block]:
    """Return messages in which the marked values of user texts are content parts.

    >>> image = marked([{"type": "image_url", "image_url": {"url": "https://a.b/c"}}])
    >>> (message,) = split_message_content_for_custom_types([{"role": "user", "content": f"See {image}"}])
    >>> [part["type"] for part in message["content"]]
    ['text', 'image_url']
    """
    return [
        {**data, "content": _split_content(str(data["content"]))} if _is_marked(data) else data for data in messages
    ]


def _is_marked(message: _Block) -> bool:
    return message["role"] == "user" and isinstance(message["content"], str) and _START in message["content"]


def _split_content(content: str) -> list[_Block]:
    found = re.split(f"{_START}(.*?){_END}", content, flags=re.DOTALL)
    parts: list[list[_Block]] = [
        _blocks_of(part) if at % 2 else [{"type": "text", "text": part}] for at, part in enumerate(found)
    ]
    return [block for blocks in parts for block in blocks if block.get("text") != ""]


def _blocks_of(marked: str) -> list[_Block]:
    """Return the blocks of a marked text; inside JSON it was encoded twice."""
    for candidate in (marked, marked.replace('\\"', '"')):
        try:
            return cast("list[_Block]", read_json(candidate)[0])
        except ValueError:
            continue
    return [{"type": "text", "text": marked}]
