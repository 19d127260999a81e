"""The media that the fake provider refuses."""

from __future__ import annotations

import base64

import pytest

from sigwire.core.messages import Message
from sigwire.core.parts import AudioPart, FilePart, ImagePart, MediaPart
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolResult
from sigwire.testing.media import check_media
from sigwire.testing.wire import Rejected


def data(content: bytes) -> str:
    return base64.b64encode(content).decode()


def gif(width: int) -> ImagePart:
    return ImagePart(data=data(b"GIF89a" + width.to_bytes(2, "little") + b"\x01\x00"), media_type="image/gif")


LARGE = FilePart(data="A" * 33_000_000, media_type="application/pdf")


@pytest.mark.parametrize(
    ("wire", "media", "text"),
    [
        (
            "anthropic",
            [ImagePart(data=data(b"BM"), media_type="image/png")],
            "does not match the provided media type image/png",
        ),
        ("anthropic", [gif(8001)], "max allowed size: 8000 pixels"),
        ("anthropic", [gif(2001)] * 21, "many-image requests: 2000 pixels"),
        ("anthropic", [ImagePart(data="A" * 5_242_884)], "5242884 bytes > 5242880 bytes"),
        ("anthropic", [LARGE], "maximum size"),
        ("openai", [ImagePart(data=data(b"BM"))], "unsupported image"),
        ("azure", [AudioPart(data(b"ID3"), "wav")], "not of valid wav format"),
        ("gemini", [gif(3)], "Unsupported MIME type: image/gif"),
        ("vertex", [LARGE], "payload size"),
        ("ollama", [gif(3)], "Failed to load image"),
    ],
)
def test_media_are_refused_in_turns_and_in_results(wire: str, media: list[MediaPart], text: str) -> None:
    result = Message.tool(ToolResult("a", "look", "", media=tuple(media)))
    for turn in (Message("user", tuple(media)), result):
        with pytest.raises(Rejected, match=text):
            check_media(wire, Request((turn,)))


@pytest.mark.parametrize("wire", ["anthropic", "openai", "openai-responses", "compatible"])
def test_media_within_the_limits_pass(wire: str) -> None:
    media = [gif(2000)] * 21 + [ImagePart(url="https://e.org/a"), ImagePart(data="???", media_type="image/png")]
    check_media(wire, Request((Message("user", tuple(media)),)))
