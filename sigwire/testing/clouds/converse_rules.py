"""Rules of Converse over a whole request: documents, images, points of the prompt cache, fields of one vendor's models."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from sigwire.core.messages import Message
from sigwire.core.parts import FilePart, ImagePart, TextPart
from sigwire.core.tools.calls import ToolResult
from sigwire.testing.answers import Fault
from sigwire.testing.request_node import RequestNode
from sigwire.testing.wire import Rejected

__all__ = ["check_documents", "check_extra_fields"]

# https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Message.html; texts from
# https://github.com/aws-samples/generative-ai-use-cases/issues/1685 and https://github.com/run-llama/llama_index/issues/18789
_DOCUMENTS, _IMAGES = 5, 20
_CACHES = re.compile(r"claude-(3-5-haiku|3-7|\w+-[4-9])|nova")
# The fields of additionalModelRequestFields: https://docs.aws.amazon.com/bedrock/latest/userguide/model-parameters.html
_EXTRA: Mapping[str, frozenset[str]] = {
    "claude": frozenset({"anthropic_beta", "anthropic_version", "thinking", "top_k", "output_config"}),
    "nova": frozenset({"inferenceConfig", "reasoningConfig"}),
    "meta.llama": frozenset(),
    "amazon.titan": frozenset(),
}


def check_documents(messages: Sequence[Message], model: str, node: RequestNode) -> None:
    """Refuse documents and images that the service refuses, in whatever turns they are."""
    held = [(turn, part) for turn in messages for part in turn.parts]
    inner = [(turn, each) for turn, part in held if isinstance(part, ToolResult) for each in part.media]
    names = [part.filename for _, part in (*held, *inner) if isinstance(part, FilePart)]
    if len(names) > _DOCUMENTS:
        raise node.wrong(f"You can't include more than {_DOCUMENTS} documents in a request.")
    if len(set(names)) < len(names):
        raise node.wrong("Messages can't contain duplicate document names. Rename the document and retry your request.")
    for turn, part in held:
        if isinstance(part, FilePart) and not any(isinstance(other, TextPart) for other in turn.parts):
            raise node.wrong("If you include a document, you must also include a text block.")
    images = sum(isinstance(part, ImagePart) for _, part in (*held, *inner))
    if images > _IMAGES and "claude" not in model:
        raise node.wrong(f"You can't include more than {_IMAGES} images in a request.")


def check_extra_fields(body: RequestNode, model: str) -> None:
    """Refuse the fields of another vendor's models, and cache points of models without a prompt cache."""
    extra = body.get("additionalModelRequestFields")
    known = next((names for vendor, names in _EXTRA.items() if vendor in model), None)
    unknown = [name for name in extra.fields() if name not in known] if extra and known is not None else []
    if unknown:
        raise body.wrong(
            f"Malformed input request: #: extraneous key [{unknown[0]}] is not permitted, please reformat."
        )
    turns = body["messages"].items()
    blocks = [
        *(body["system"].items() if body.has("system") else ()),
        *(b for turn in turns for b in turn["content"].items()),
    ]
    if any(block.has("cachePoint") for block in blocks) and not _CACHES.search(model):
        text = "You invoked an unsupported model or your request did not allow prompt caching."
        raise Rejected(Fault("permission", text))
