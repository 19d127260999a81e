"""The limits of media by family of hosts: a table with its sources. Without a row, only declared types are corrected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

__all__ = ["LIMITS", "UNKNOWN", "MediaLimits"]


@dataclass(frozen=True, slots=True)
class MediaLimits:
    """The limits of a family of hosts. ``None`` and empty: no limit is known.

    ``types``: media types of images. ``image_size``: of one image and ``request_size``: of all media of a request, in bytes as
    sent, which is as base64 (4/3 of the file). ``edge``: the longer edge of an image in pixels, ``many_edge`` if a request has
    more than ``many`` images.
    """

    types: frozenset[str] = frozenset()
    image_size: int | None = None
    edge: int | None = None
    many: int | None = None
    many_edge: int | None = None
    request_size: int | None = None

    def edge_for(self, images: int) -> int | None:
        """Return the longest edge of an image in a request with so many images."""
        return self.many_edge if self.many is not None and images > self.many else self.edge


_WEB = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_MIB = 2**20

UNKNOWN = MediaLimits()
# 5 MB as sent: github.com/anthropics/claude-code/issues/14887 ("5242880 bytes"). 8,000 px, 2,000 px with more than 20 images:
# github.com/anomalyco/opencode/issues/12068. Types and 32 MB: docs.claude.com/en/docs/build-with-claude/vision (2026-11).
_ANTHROPIC = MediaLimits(_WEB, 5 * _MIB, 8000, 20, 2000, 32_000_000)
# platform.openai.com/docs/guides/images-vision#image-input-requirements (2026-11).
_OPENAI = MediaLimits(_WEB)
# ai.google.dev/gemini-api/docs/image-understanding (types), firebase.google.com/docs/vertex-ai/input-file-requirements ("the
# maximum total request size is 20 MB"; inline data count as base64) (2026-11).
_GEMINI = MediaLimits(
    frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}), request_size=20_000_000
)
# github.com/ollama/ollama/blob/main/server/routes.go, github.com/ggml-org/llama.cpp/tree/master/tools/mtmd (2026-11); WebP by
# version, so it is sent as it is. No limit but memory.
_LOCAL = MediaLimits(frozenset({"image/png", "image/jpeg", "image/webp"}))

LIMITS: Mapping[str, MediaLimits] = {
    "anthropic": _ANTHROPIC,
    "anthropic-compatible": MediaLimits(_WEB),
    "openai-chat": _OPENAI,
    "openai-responses": _OPENAI,
    "azure": _OPENAI,
    "azure-responses": _OPENAI,
    "gemini": _GEMINI,
    "gemini-chat-completions": _GEMINI,
    "vertex": _GEMINI,
    # docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html: 3.75 MB of the file, 8,000 px (2026-11).
    "bedrock": MediaLimits(_WEB, 5_000_000, 8000),
    # console.groq.com/docs/vision: "a request containing a base64 encoded image is 4MB" (2026-11).
    "groq": MediaLimits(_WEB, request_size=4_000_000),
    # docs.x.ai/docs/guides/image-understanding: 20 MiB, jpg/jpeg or png (2026-11).
    "xai": MediaLimits(frozenset({"image/png", "image/jpeg"}), 20 * _MIB),
    "ollama": _LOCAL,
    "ollama-chat-completions": _LOCAL,
    "llamacpp": _LOCAL,
}
"""By the family of a wire's profile. GIF is sent to Gemini, Ollama and llama.cpp as its first frame."""
