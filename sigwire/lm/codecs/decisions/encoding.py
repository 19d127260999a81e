"""Decision endpoints: Request -> body. The conversation as items, text or blocks; the questions; what the host refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import count
from typing import Any, TypeAlias

from sigwire.core.json import JsonObject, JsonValue, dumps, loads
from sigwire.core.messages import Message, Part
from sigwire.core.parts import AudioPart, FilePart, ImagePart, TextPart
from sigwire.core.request import Request
from sigwire.core.tools.calls import ToolCall, ToolResult
from sigwire.core.tools.names import NameMap
from sigwire.errors import UnsupportedFeature
from sigwire.lm.codecs.decisions.profiles import DecisionsProfile
from sigwire.lm.codecs.decisions.questions import AskedQuestion, read_questions
from sigwire.lm.codecs.decisions.tables import OPTIONS
from sigwire.lm.codecs.shared.assembly import assemble, prepare, requested_choices
from sigwire.lm.codecs.shared.history import error_text
from sigwire.lm.codecs.shared.interface import EncodedRequest, Target
from sigwire.lm.codecs.shared.media import (
    data_url,
    encode_by_table,
    require_media,
    require_source,
    split_data_url,
    text_of_file,
)
from sigwire.lm.codecs.shared.options import place_options, require_feature, unsupported_feature
from sigwire.lm.codecs.shared.tools import object_arguments

__all__ = ["encode"]

_Target: TypeAlias = Target[DecisionsProfile]


def encode(request: Request, target: _Target, *, stream: bool = False) -> EncodedRequest:
    """Encode a request as questions about its messages. The host does not stream, so ``stream`` changes nothing.

    Raises ``UnsupportedFeature``, ``UnsupportedOption`` or ``InputError``; nothing was sent then.

    >>> from sigwire.core.request import ResponseFormat
    >>> schema = {"type": "object", "properties": {"urgent": {"type": "boolean"}}, "required": ["urgent"]}
    >>> request = Request((Message.user("The shop is down."),), response_format=ResponseFormat(schema))
    >>> sent = encode(request, Target("openai", "m", DecisionsProfile()))
    >>> sent.path, sent.body["questions"]
    ('/decisions', [{'type': 'predicate', 'name': 'urgent', 'instructions': 'Urgent?'}])
    """
    profile = target.profile
    require_feature(not request.tools, "tools", target, "Offer them to another model, and let this one decide.")
    instead = "A distribution has all answers: leave n out."
    require_feature(requested_choices(request) == 1, "several choices of one request", target, instead)
    wanted = request.response_format
    if wanted is None or wanted.schema is None:
        raise unsupported_feature(
            "a request without questions", target, "Give response_format=ResponseFormat(schema): its outputs are asked."
        )
    questions = _questions_of(dumps(wanted.schema), target)
    ready = prepare(request, target)
    options, warnings = place_options(request.options, {**OPTIONS, **profile.options}, target)
    body: JsonObject = {
        "model": target.model,
        _INPUT_NAMES[profile.input]: _INPUTS[profile.input](ready.history.messages, ready.names, target),
        "questions": _encode_questions([each for each in questions if each.is_asked], profile),
        **options,
        **_cache_key(request, profile),
    }
    sent = assemble(ready, profile.path, body, (*ready.history.warnings, *warnings), repeats=False)
    return sent._replace(questions=questions)


def _cache_key(request: Request, profile: DecisionsProfile) -> JsonObject:
    given = request.options.get("prompt_cache")
    return (
        {"prompt_cache_key": given["key"]}
        if profile.takes_cache_key and isinstance(given, dict) and "key" in given
        else {}
    )


# --- questions


@lru_cache(maxsize=256)  # by the text of the schema, which a caller may change in place
def _questions_of(text: str, target: _Target) -> tuple[AskedQuestion, ...]:
    """Return the questions of a schema as the host writes them. Raises ``UnsupportedFeature`` for those that it refuses."""
    numbers = count()
    found = tuple(
        _as_written(each, next(numbers), target.profile) if each.is_asked else each
        for each in read_questions(loads(text), target.label)
    )
    _check_limits([each for each in found if each.is_asked], target)
    return found


def _as_written(question: AskedQuestion, number: int, profile: DecisionsProfile) -> AskedQuestion:
    pairs = zip(question.values, question.texts, strict=True)
    choices = tuple(value if profile.typed_bools and isinstance(value, bool) else text for value, text in pairs)
    is_choice = question.kind == "bool" and not profile.bool_criteria and any(question.descriptions)
    keys: Sequence[object] = choices
    if question.kind == "score":  # labels in a question, numbers in its answer
        keys = question.values if profile.form == "listed" else [str(level) for level in question.values]
    return replace(
        question,
        name=f"q{number}" if profile.ids else question.path,
        form="choice" if is_choice else question.kind,
        choices=choices,
        places={(type(key), key): at for at, key in enumerate(keys)},
    )


def _check_limits(asked: Sequence[AskedQuestion], target: _Target) -> None:
    profile = target.profile
    if not asked:
        raise unsupported_feature(
            "a request without questions", target, "Its outputs are constants; add one to decide."
        )
    if profile.most_questions is not None and len(asked) > profile.most_questions:
        raise _too_many(f"{len(asked)} questions", profile.most_questions, target)
    for each in asked:
        number = len(each.values)
        if each.kind == "score" and number > profile.most_levels:
            raise _too_many(f"{number} levels of the output {each.path!r}", profile.most_levels, target)
        if each.kind == "choice" and number > profile.most_choices:
            raise _too_many(f"{number} values of the output {each.path!r}", profile.most_choices, target)
        texts = each.choices
        if profile.plain_labels and each.kind == "choice":
            _check_labels(each.texts, each, target)
        if len(set(texts)) < len(texts):
            twice = next(text for text in texts if texts.count(text) > 1)
            raise UnsupportedFeature(
                f"Two values of the output {each.path!r} have the text {twice!r}, and {target.label} distinguishes values by "
                "their text (nothing was sent). Rename one of the values."
            )


def _check_labels(texts: Iterable[str], question: AskedQuestion, target: _Target) -> None:
    """Check that each value is a text without control characters, and without blanks around it."""
    if (
        wrong := next((text for text in texts if not text or text != text.strip() or not text.isprintable()), None)
    ) is None:
        return
    raise UnsupportedFeature(
        f"{target.label} takes no value {wrong!r:.80} of the output {question.path!r}: it is empty, or has blanks around it or "
        "control characters (nothing was sent). Rename the value."
    )


def _too_many(what: str, most: int, target: _Target) -> UnsupportedFeature:
    return UnsupportedFeature(
        f"{what} are too many: {target.label} takes {most} (nothing was sent). Ask in several requests."
    )


def _encode_questions(asked: Iterable[AskedQuestion], profile: DecisionsProfile) -> JsonValue:
    if profile.form == "listed":
        return [_listed_question(each, profile) for each in asked]
    return {each.name: _named_question(each, profile) for each in asked}


def _listed_question(question: AskedQuestion, profile: DecisionsProfile) -> JsonObject:
    form = question.form
    wire: JsonObject = {"type": profile.kinds[form], "name": question.name, "instructions": question.instructions}
    if form == "bool":
        return wire
    key = "value" if form == "choice" else "label"
    described = zip(question.choices, question.descriptions, strict=True)
    listed: list[JsonValue] = [
        {key: value, "description": meaning} if meaning else {key: value} for value, meaning in described
    ]
    wire["choices" if form == "choice" else "levels"] = listed
    return wire


def _named_question(question: AskedQuestion, profile: DecisionsProfile) -> JsonObject:
    wire: JsonObject = {"type": profile.kinds[question.kind], "instructions": question.instructions}
    if question.kind == "bool":
        named = zip(profile.bool_criteria, question.descriptions, strict=True)
        criteria: JsonValue = {name: meaning for name, meaning in named if meaning}
    elif question.kind == "choice":
        described = zip(question.texts, question.descriptions, strict=True)
        criteria = {text: meaning or profile.undescribed for text, meaning in described}
    else:
        levels = zip(question.texts, question.descriptions, strict=True)
        criteria = [f"{text}: {meaning}" if meaning else text for text, meaning in levels]
    return {**wire, "criteria": criteria} if criteria else wire


# --- input


def _items(messages: Iterable[Message], names: NameMap, target: _Target) -> JsonValue:
    return [item for message in messages for item in _items_of(message, names, target)]


def _items_of(message: Message, names: NameMap, target: _Target) -> Iterator[JsonObject]:
    content: list[Part] = []
    items: list[JsonObject] = []
    for part in message.parts:
        if isinstance(part, ToolCall):
            call: JsonObject = {"call_id": part.id, "name": names.encode(part.name)}
            items.append({"type": "function_call", **call, "arguments": dumps(object_arguments(part))})
        elif isinstance(part, ToolResult):
            items.append({"type": "function_call_output", "call_id": part.id, "output": _output(part, target)})
        else:
            content.append(part)
    if content:
        yield {"role": message.role, "content": _content(content, message.role, target)}
    yield from items


def _content(parts: list[Part], role: str, target: _Target) -> JsonValue:
    if role != "user" or (len(parts) == 1 and isinstance(parts[0], TextPart)):
        return "\n\n".join(_text_of(part, target) for part in parts)
    return [encode_by_table(_ITEM_PARTS, part, target) for part in parts]


def _output(result: ToolResult, target: _Target) -> JsonValue:
    text = error_text(result)
    if not result.media:
        return text
    parts = (*((TextPart(text),) if text else ()), *result.media)
    return [encode_by_table(_ITEM_PARTS, part, target) for part in parts]


def _text_of(part: Part, target: _Target) -> str:
    if isinstance(part, TextPart):
        return part.text
    if isinstance(part, FilePart):
        return _file_text(part, target)
    raise unsupported_feature(f"a part of kind {part.kind!r} in this place", target, "Leave it out or send it as text.")


def _file_text(part: FilePart, target: _Target) -> str:
    text = text_of_file(part)
    if text is None:
        raise unsupported_feature("documents that are not text", target, "Send the text, or use another model.")
    return text


def _item_image(part: ImagePart, target: _Target) -> JsonObject:
    require_media("image", target.profile.media, target)
    require_source(part, target)
    detail: JsonObject = {"detail": part.detail} if part.detail else {}
    url = part.url or data_url(part.data, part.media_type or "image/png")
    return {"type": "input_image", "image_url": url, **detail}


_PartEncoder: TypeAlias = Callable[[Any, _Target], JsonObject]
_ITEM_PARTS: Mapping[type, _PartEncoder] = {
    TextPart: lambda part, target: {"type": "input_text", "text": part.text},
    FilePart: lambda part, target: {"type": "input_text", "text": _file_text(part, target)},
    ImagePart: _item_image,
}


def _text(messages: Iterable[Message], names: NameMap, target: _Target) -> JsonValue:
    """Return the text of the turns: of a single one alone, of several with their roles."""
    return _joined(_blocks(messages, names, target))


def _blocks_or_text(messages: Iterable[Message], names: NameMap, target: _Target) -> JsonValue:
    blocks = _blocks(messages, names, target)
    if any(block["type"] != "text" for block in blocks):
        return [*blocks]
    return _joined(blocks)


def _joined(blocks: Iterable[JsonObject]) -> str:
    return "\n\n".join(str(block["text"]) for block in blocks)


def _blocks(messages: Iterable[Message], names: NameMap, target: _Target) -> list[JsonObject]:
    turns = tuple(messages)
    blocks: list[JsonObject] = []
    for message in turns:
        mark = f"{message.role.capitalize()}: " if len(turns) > 1 else ""
        for part in message.parts:
            block = _block(part, names, target)
            if block["type"] == "text":
                block, mark = {**block, "text": f"{mark}{block['text']}"}, ""
            blocks.append(block)
    return blocks


def _block(part: Part, names: NameMap, target: _Target) -> JsonObject:
    if (encode_media := _MEDIA_BLOCKS.get(type(part))) is not None:
        return encode_media(part, target)
    if isinstance(part, ToolCall):
        return {"type": "text", "text": f"{names.encode(part.name)}({dumps(object_arguments(part))})"}
    if isinstance(part, ToolResult):
        for media in part.media:
            raise unsupported_feature(f"a result with a part of kind {media.kind!r}", target, "Send its text only.")
        return {"type": "text", "text": f"{names.encode(part.name)} -> {error_text(part)}"}
    return {"type": "text", "text": _text_of(part, target)}


def _image_block(part: ImagePart, target: _Target) -> JsonObject:
    require_media("image", target.profile.media, target)
    require_source(part, target)
    return _media_block("image", part.url, part.data, part.media_type, "image/png")


def _audio_block(part: AudioPart, target: _Target) -> JsonObject:
    require_media("audio", target.profile.media, target)
    return {"type": "audio", "data": part.data, "mime_type": f"audio/{part.format}"}


def _file_block(part: FilePart, target: _Target) -> JsonObject:
    """Return the text of a file of text, else a document."""
    if (text := text_of_file(part)) is not None or "file" not in target.profile.media or part.file_id is not None:
        return {"type": "text", "text": _file_text(part, target) if text is None else text}
    return _media_block("document", part.url, part.data, part.media_type, "application/pdf")


def _media_block(block: str, url: str | None, data: str | None, media_type: str | None, usual: str) -> JsonObject:
    kind, inline = split_data_url(url) if url is not None else (None, None)
    if url is not None and inline is None:
        return {"type": block, "uri": url, **({"mime_type": media_type} if media_type else {})}
    return {"type": block, "data": inline or data, "mime_type": kind or media_type or usual}


_MEDIA_BLOCKS: Mapping[type, _PartEncoder] = {ImagePart: _image_block, AudioPart: _audio_block, FilePart: _file_block}


_INPUT_NAMES: Mapping[str, str] = {"items": "input", "text": "state", "blocks": "input"}
_INPUTS: Mapping[str, Callable[[Iterable[Message], NameMap, _Target], JsonValue]] = {
    "items": _items, "text": _text, "blocks": _blocks_or_text,
}  # fmt: skip
