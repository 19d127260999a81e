"""The content of the probes: tools, schemas, media, prompts. Pure.

An answer must decide: no prompt with a schema mentions JSON, and no prompt with a forced tool asks for that tool, so a
model that is not forced does something else.
"""

from __future__ import annotations

import struct
from base64 import b64encode
from functools import cache

from sigwire.core.json import JsonObject
from sigwire.core.messages import AudioPart, FilePart, ImagePart, Message
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.tool import Tool

__all__ = [
    "CLOCK", "DIGIT", "ENUM", "HELD", "LONG", "NESTED", "RESULT", "SCHEMA", "TOOLS", "TWO_PLACES", "WEATHER", "document",
    "hello", "silence", "weather",
]  # fmt: skip


def _object(**properties: JsonObject) -> JsonObject:
    return {
        "type": "object",
        "properties": {**properties},
        "required": [*properties],
        "additionalProperties": False,
    }


def get_weather(city: str) -> str:
    """Return the weather of a city."""
    return f"rain in {city}, 7 degrees"


def get_time(zone: str) -> str:
    """Return the time of day in a time zone."""
    return f"12:00 in {zone}"


WEATHER, CLOCK = get_weather.__name__, get_time.__name__
HELD = (Tool(get_weather), Tool(get_time))
TOOLS = tuple(tool.spec for tool in HELD)
SCHEMA = _object(zq_word={"type": "string"}, zq_count={"type": "integer"})
ENUM = _object(zq_colour={"type": "string", "enum": ["vermilion", "teal"]})
NESTED = _object(zq_items={"type": "array", "items": _object(zq_name={"type": "string"}, zq_sure={"type": "boolean"})})

hello = Message.user("Greet me in a short sentence.")
weather = Message.user("What is the weather in Oslo? Call the tool for it.")
TWO_PLACES = Message.user("What is the weather in Oslo and in Lima? Call the tool for both cities now, in one turn.")
_CALL = ToolCall("call_sigwire1", WEATHER, {"city": "Oslo"})
RESULT = (
    weather,
    Message.assistant(tool_calls=(_CALL,)),
    Message.tool(ToolResult(_CALL.id, WEATHER, "rain, 7 degrees")),
)
LONG = Message.system(
    "The rules of the shop. " + " ".join(f"Rule {n}: article {n} costs {n} crowns." for n in range(220))
)


# --- media

_PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAHAAAACQCAAAAAD1z7AVAAAAZElEQVR4nO3NgQkAIAgAMP9/uk6IMCJte2AxLguhUCgUCguEcZhQKBQKhRXDLKFQKBQKfwxX"
    "gVAoFAqFHcPdQCgUCoXCDmE2EAqFQqFQKBQKhUKhUCgUCoXCLuFpQqFQKBQ+GE7nJc7+k3cD+gAAAABJRU5ErkJggg=="
)
DIGIT = ImagePart(data=_PNG, media_type="image/png")
"""A black 7 on white, 112 by 144 pixels."""


@cache
def silence() -> AudioPart:
    """Return half a second of silence: WAV, 8,000 samples a second."""
    samples = b"\x80" * 4000
    head = b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8) + b"data" + struct.pack("<I", len(samples))
    return AudioPart(b64encode(b"RIFF" + struct.pack("<I", len(head) + len(samples)) + head + samples).decode(), "wav")


@cache
def document() -> FilePart:
    """Return a PDF of one page with the word "Oslo"."""
    text = b"BT /F1 24 Tf 20 40 Td (Oslo) Tj ET"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(text), text),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    body, places = b"%PDF-1.4\n", list[int]()
    for number, content in enumerate(objects, 1):
        places.append(len(body))
        body += b"%d 0 obj%s endobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    end = b"xref\n0 6\n0000000000 65535 f \n%strailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (
        table,
        len(body),
    )
    return FilePart(b64encode(body + end).decode(), filename="place.pdf", media_type="application/pdf")
