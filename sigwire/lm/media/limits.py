"""The limits of media by family of hosts: a table with its sources. Without a row, only declared types are corrected."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

__all__ = ["LIMITS", "UNKNOWN", "MediaLimits", "limits_name"]


@dataclass(frozen=True, slots=True)
class MediaLimits:
    """The limits of a family of hosts. ``None`` and empty: no limit is known.

    ``types``: media types of images. ``image_size``: of one image and ``request_size``: of all media of a request, in bytes as
    sent, which is as base64 (4/3 of the file). ``edge``: the longer edge of an image in pixels, ``many_edge`` if a request has
    more than ``many`` images. ``images`` and ``documents``: the most of a request. ``source``: the page that states them.
    """

    types: frozenset[str] = frozenset()
    image_size: int | None = None
    edge: int | None = None
    many: int | None = None
    many_edge: int | None = None
    request_size: int | None = None
    images: int | None = None
    documents: int | None = None
    source: str = ""

    def edge_for(self, images: int) -> int | None:
        """Return the longest edge of an image in a request with so many images."""
        return self.many_edge if self.many is not None and images > self.many else self.edge


_WEB = frozenset({"image/png", "image/jpeg", "image/gif", "image/webp"})
_MIB = 2**20

UNKNOWN = MediaLimits()
_ANTHROPIC = MediaLimits(
    _WEB, 5 * _MIB, 8000, 20, 2000, 32_000_000, source="https://platform.claude.com/docs/en/build-with-claude/vision"
)
_OPENAI = MediaLimits(_WEB, source="https://platform.openai.com/docs/guides/images-vision#image-input-requirements")
# Inline data count as base64. Types: ai.google.dev/gemini-api/docs/image-understanding.
_GEMINI = MediaLimits(
    frozenset({"image/png", "image/jpeg", "image/webp", "image/heic", "image/heif"}),
    request_size=20_000_000,
    source="https://firebase.google.com/docs/vertex-ai/input-file-requirements",
)
# WebP by version, so it is sent as it is. No limit but memory.
_OLLAMA = MediaLimits(
    frozenset({"image/png", "image/jpeg", "image/webp"}),
    source="https://github.com/ollama/ollama/blob/main/server/routes.go",
)

# 3.75 MB of the file.
_BEDROCK = MediaLimits(
    _WEB,
    5_000_000,
    8000,
    images=20,
    documents=5,
    source="https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html",
)

LIMITS: Mapping[str, MediaLimits] = {
    "anthropic": _ANTHROPIC,
    "anthropic-compatible": MediaLimits(_WEB, source=_ANTHROPIC.source),
    "openai-chat": _OPENAI,
    "openai-responses": _OPENAI,
    "azure": _OPENAI,
    "azure-responses": _OPENAI,
    "gemini": _GEMINI,
    "gemini-chat-completions": _GEMINI,
    "vertex": _GEMINI,
    "bedrock": _BEDROCK,
    # With more than 20 images of 2,000 pixels each, against the page: aws-solutions-library-samples, issue 994 of
    # accelerated-intelligent-document-processing-on-aws.
    "bedrock/claude": replace(_BEDROCK, images=None, many=20, many_edge=2000),
    "claude": _ANTHROPIC,
    "groq": MediaLimits(_WEB, request_size=4_000_000, images=5, source="https://console.groq.com/docs/vision"),
    "xai": MediaLimits(
        frozenset({"image/png", "image/jpeg"}),
        20 * _MIB,
        source="https://docs.x.ai/developers/model-capabilities/images/understanding",
    ),
    "ollama": _OLLAMA,
    "ollama-chat-completions": _OLLAMA,
    "llamacpp": replace(_OLLAMA, source="https://github.com/ggml-org/llama.cpp/tree/master/tools/mtmd"),
}
"""By the family of a wire's profile, with that of the model behind a slash, or by that of the model.

GIF is sent to Gemini, Ollama and llama.cpp as its first frame.
"""


def limits_name(host: str, model_family: str) -> str:
    """Return the name of the row that holds: of the model at the host, of the host, or of the model; else the host's.

    >>> limits_name("bedrock", "claude"), limits_name("bedrock", ""), limits_name("openrouter", "claude")
    ('bedrock/claude', 'bedrock', 'claude')
    """
    return next((name for name in (f"{host}/{model_family}", host, model_family) if name in LIMITS), host)
