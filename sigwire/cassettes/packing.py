"""The JSON of a line: secrets are masked by their form, and long base64 data is a file of the folder of media.

The name of a file of media is the SHA-256 of its bytes, so equal images are stored once. Pure but for ``unpack``, which reads.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

from sigwire.core.json import JsonValue
from sigwire.core.narrow import is_array, is_object

__all__ = ["MEDIA_NAME", "masked_text", "pack", "unpack"]

_LONG = 4096  # characters of base64 data that stays in the line
_DATA = re.compile(r"(data:[^,]{0,200},)?([A-Za-z0-9+/]+={0,2})")
MEDIA_NAME = re.compile(r"[0-9a-f]{64}(?:\.[a-z0-9]{3,4})?")
_KEPT = re.compile(rf"(data:[^,]{{0,200}},)?media:({MEDIA_NAME.pattern})")
_SUFFIXES: Mapping[bytes, str] = {
    b"\x89PNG": ".png", b"\xff\xd8\xff": ".jpg", b"GIF8": ".gif", b"RIFF": ".riff", b"%PDF": ".pdf", b"ID3": ".mp3",
}  # fmt: skip
_SECRET = re.compile(
    r"\b(?:sk-(?=\D*\d)[\w-]{16,}|xox[a-z]-[\w-]{10,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|AIza[\w-]{30,}|AKIA[0-9A-Z]{16}"
    r"|(?:sk|rk|pk)_(?:live|test)_\w{10,}|hf_\w{20,}|glpat-[\w-]{16,}|npm_\w{20,}|pypi-[\w-]{16,}"
    r"|eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]+)"
    r"|(?<=[Bb]earer )[\w.~+/-]{16,}=*"
    r"|(?<=://)[^/\s:@]*:[^/\s@]+(?=@)"
    r"|(?<=[?&]key=)[\w-]{8,}"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----[\s\S]*?-----END [A-Z ]*PRIVATE KEY-----"
)


def masked_text(text: str) -> str:
    """Return a text with what has the form of a secret masked.

    >>> masked_text("send Bearer abcdefghijklmnop to postgres://me:pass@host/db")
    'send Bearer *** to postgres://***@host/db'
    """
    return _SECRET.sub("***", text)


def pack(value: JsonValue, keep: Callable[[str, bytes], object]) -> JsonValue:
    """Return the JSON to write. ``keep(name, data)`` stores long data.

    >>> pack({"header": "Bearer abcdefghijklmnop", "url": "postgres://me:pass@host/db"}, print)
    {'header': 'Bearer ***', 'url': 'postgres://***@host/db'}
    """
    if isinstance(value, str):
        return _pack_text(value, keep)
    if is_object(value):
        return {name: pack(item, keep) for name, item in value.items()}
    return [pack(item, keep) for item in value] if is_array(value) else value


def _pack_text(text: str, keep: Callable[[str, bytes], object]) -> str:
    found = _DATA.fullmatch(text) if len(text) > _LONG else None
    data = None if found is None else _decoded(found[2])
    if found is None or data is None:
        return masked_text(text)
    suffix = next((suffix for start, suffix in _SUFFIXES.items() if data.startswith(start)), "")
    keep(name := sha256(data).hexdigest() + suffix, data)
    return f"{found[1] or ''}media:{name}"


def _decoded(text: str) -> bytes | None:
    """Return the bytes of long base64 data; ``None`` for a text that its bytes would not give again."""
    if len(text) <= _LONG or len(text) % 4:
        return None
    data = b64decode(text)
    return (
        data if b64encode(data).decode() == text else None
    )  # the last characters may have bits that bytes do not keep


def unpack(value: JsonValue, folder: Path) -> JsonValue:
    """Return the JSON of a line with the data of its media. Raises ``OSError`` for a missing file."""
    if isinstance(value, str):
        found = _KEPT.fullmatch(value)
        return value if found is None else (found[1] or "") + b64encode((folder / found[2]).read_bytes()).decode()
    if is_object(value):
        return {name: unpack(item, folder) for name, item in value.items()}
    return [unpack(item, folder) for item in value] if is_array(value) else value
