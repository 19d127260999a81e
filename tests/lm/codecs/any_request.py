"""Any request, supported by a wire or not: the input of the property tests of every codec.

The tests of each codec define which parts a turn may hold and which options exist (``requests_of``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from sigwire.core.json import JsonObject
from sigwire.core.messages import Message, Part
from sigwire.core.parts import AudioPart, FilePart, ImagePart
from sigwire.core.request import Request, ResponseFormat
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.choice import ToolChoice
from sigwire.errors import CallerError
from sigwire.lm.codecs.shared.interface import Codec, EncodedRequest, Target

SCHEMA: JsonObject = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}

json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3),
    max_leaves=6,
)
objects: st.SearchStrategy[Any] = st.dictionaries(st.text(max_size=5), json_values, max_size=3)
names = st.text(min_size=1, max_size=140)  # longer than any provider takes
wild_text = st.text(st.characters(), max_size=12)  # lone surrogates included
places = st.none() | st.text()
images = st.builds(ImagePart, places, places, st.none() | st.just("image/png"))
audio = st.builds(AudioPart, st.text(), st.sampled_from(["wav", "mp3", "flac"]))
files = st.builds(FilePart, places, places, media_type=st.sampled_from(["text/plain", None]))

functions: st.SearchStrategy[tuple[JsonObject, ...]] = st.lists(names, max_size=3, unique=True).map(
    lambda names: tuple({"type": "function", "function": {"name": name, "parameters": SCHEMA}} for name in names)
)
USUAL_OPTIONS: Mapping[str, st.SearchStrategy[Any]] = {
    "temperature": st.floats(0, 2),
    "n": st.integers(1, 3),
    "reasoning": st.sampled_from(["off", "high", "max", {"budget": 7}]),
    "extra_body": objects,
}


def calls_with(marks: st.SearchStrategy[Any]) -> st.SearchStrategy[ToolCall]:
    """Calls, good and torn, with any of these marks of a provider."""
    return st.builds(ToolCall.read, st.text(max_size=5), names, objects | st.text(max_size=9), provider_data=marks)


def results_with(parts: st.SearchStrategy[Any] | None = None, most: int = 1) -> st.SearchStrategy[ToolResult]:
    """Results of any kind, with or without calls; ``parts`` are what may come beside their text."""
    beside = st.just(()) if parts is None else st.lists(parts, max_size=most).map(tuple)
    return st.builds(ToolResult, st.text(max_size=5), names, wild_text | json_values, st.booleans(), beside)


def requests_of(
    parts_of: Mapping[str, st.SearchStrategy[Part]],
    options: Mapping[str, st.SearchStrategy[Any]],
    *,
    tools: st.SearchStrategy[tuple[JsonObject, ...]] = functions,
    formats: tuple[ResponseFormat, ...] = (ResponseFormat(), ResponseFormat(SCHEMA, "x y")),
) -> st.SearchStrategy[Request]:
    """Any turns in any order, whose parts are of these; any tools, choice of them, form and options."""
    messages = st.sampled_from(sorted(parts_of)).flatmap(
        lambda role: st.builds(Message, st.just(role), st.lists(parts_of[role], max_size=4).map(tuple))
    )
    return st.builds(
        Request,
        st.lists(messages, max_size=5).map(tuple),
        tools,
        st.sampled_from([None, ToolChoice.AUTO, ToolChoice.REQUIRED, ToolChoice.NONE]),
        st.sampled_from([None, True, False]),
        st.sampled_from([None, *formats]),
        st.fixed_dictionaries({}, optional={**USUAL_OPTIONS, **options}),
    )


def attempt(codec: Codec[Any], request: Request, to: Target[Any]) -> EncodedRequest | str:
    """Return the encoded request, or the text of the error."""
    try:
        return codec.encode(request, to)
    except CallerError as error:
        return str(error)
