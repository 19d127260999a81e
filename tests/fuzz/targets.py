"""All targets by name, and the inputs at which one of them once failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tests.fuzz import files, replies, texts
from tests.fuzz.source import Source

__all__ = ["KEPT", "TARGETS"]

TARGETS: Mapping[str, Callable[[Source], None]] = {**files.TARGETS, **replies.TARGETS, **texts.TARGETS}

KEPT: list[tuple[str, bytes, str]] = [
    ("bytes_ollama", b"\x01\0\x06\x01\x1b\0\x01\0\0\x03\0\0\x01\x03\0\0\0\0\x05\0\0\x05\0\x05",
     "the events before a corrupt line were lost"),
    ("chunks_litellm_anthropic", b"+{\xb8md\xaf\xd5\xd8W", "a chunk without JSON was a TypeError"),
    ("json", b"mss\xe3\x0c\xf1n\xf2q\x18", "1e999 was read as infinity, which JSON does not have"),
    ("literals", b"\0\x01\x182", "an integer of 400 digits was no number"),
    ("signature", b"\x01\0\xf5\xa7\x01\0\x99\xf5\xf5", "a digit that begins no name in Python was a field's name"),
    ("signature", b";\x93\x95\n" + b"\xff" * 14 + b"\x95v\x13\n", "a constant that Python does not read was a SyntaxError"),
    ("tag_values", b"\xdd\xe2T\x0e\x9c\xba\xde\xc0\x902", "an integer of 400 digits was no number for a schema"),
]  # fmt: skip
"""Target, input, what was wrong."""
