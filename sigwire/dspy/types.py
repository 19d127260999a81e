"""DSPy's types of fields: the core's types with DSPy's methods, ``Document``, ``Citations`` and the base ``Type``.

``Type``, ``Document`` and ``Citations`` are pydantic models, and an answer is validated by them. A value that is put into a
text (``f"{image}"``) is its content parts between two marks; ``split_message_content_for_custom_types`` finds them.
"""

from __future__ import annotations

import mimetypes
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, cast

import pydantic

from sigwire.core.json import JsonObject
from sigwire.core.narrow import is_mapping
from sigwire.core.record import FieldValues
from sigwire.core.tools.tool import Tool
from sigwire.dspy.marks import marked, split_message_content_for_custom_types
from sigwire.dspy.type_methods import FieldMethods, MediumMethods, TypeMethods
from sigwire.errors import InputError, warn_user
from sigwire.signatures.annotations import nested_types
from sigwire.signatures.types import history, media, text
from sigwire.signatures.types.base import FieldType

if TYPE_CHECKING:
    from sigwire.core.messages import Message
    from sigwire.core.parts import FilePart
    from sigwire.lm.base import LanguageModel
    from sigwire.signatures.signature import SignatureClass

__all__ = [
    "Audio", "Citations", "CitedText", "Code", "Document", "File", "History", "Image", "Reasoning", "Type",
    "encode_audio", "encode_file_to_dict", "encode_image", "is_reasoning",
    "split_message_content_for_custom_types",
]  # fmt: skip


_Block: TypeAlias = dict[str, Any]


class Image(MediumMethods, media.Image):
    """``sigwire.Image`` with DSPy's methods. ``download`` and ``verify`` have no effect: the provider fetches a URL.

    >>> Image({"url": "https://example.com/cat.png"}).url
    'https://example.com/cat.png'
    """

    __slots__ = ()

    def __init__(
        self, source: object = None, /, *, download: object = None, verify: object = None, **fields: Any
    ) -> None:
        if download:
            warn_user(
                "Image(download=True) has no effect: the provider gets the URL. Image.from_url(url, fetch=True) fetches it."
            )
        if isinstance(source, Mapping):
            source, fields = None, {**cast("FieldValues", source), **fields}
        super().__init__(source, **fields)

    @classmethod
    def from_PIL(cls, pil_image: object) -> Self:  # noqa: N802  (DSPy's name)
        """Return the image of a PIL image."""
        return cls(pil_image)


class Audio(MediumMethods, media.Audio):
    """``sigwire.Audio`` with DSPy's arguments: a dict of fields, an array with ``sampling_rate``, or bytes with a format.

    A URL is not fetched and a path is not read here. Raises ``InputError`` for other sources, and for an option that the
    source has no use for (which is a ``TypeError`` too).

    >>> Audio({"data": "UklGRg==", "audio_format": "mp3"}).audio_format
    'mp3'
    """

    __slots__ = ()

    def __init__(
        self,
        source: object = None,
        /,
        *,
        data: object = None,
        audio_format: str | None = None,
        sampling_rate: int | None = None,
    ) -> None:
        if hasattr(source, "shape"):
            source, sampling_rate = (
                media.Audio.from_array(cast("Iterable[float]", source), sampling_rate or 16_000),
                None,
            )
        if sampling_rate is not None:
            raise _UselessOption("sampling_rate is an option of arrays of samples (making Audio). Leave it out.")
        is_complete = isinstance(source, (media.Audio, Mapping)) or str(source).startswith("data:")
        if is_complete and audio_format is not None:
            raise _UselessOption("The source already carries its format (making Audio). Leave audio_format out.")
        if isinstance(source, Mapping):
            source = media.Audio.read(cast("FieldValues", source))
        if isinstance(source, str) and not is_complete and "." in source:  # base64 text has no dot
            reader = "Audio.from_url(url, fetch=True)" if "://" in source else "Audio.from_path(path)"
            raise InputError(f"{source!r:.80} is a place and not a sound (making Audio). {reader} reads it.")
        super().__init__(source, data=data, audio_format=audio_format)


class _UselessOption(InputError, TypeError):
    """An option that the source of a medium has no use for."""


_BYTES = "application/octet-stream"


class File(MediumMethods, media.File):
    """``sigwire.File`` by DSPy's arguments, which may stand without their names.

    The ``file_data`` of bytes has the type ``application/octet-stream``; a message has the type of the file name.

    >>> file = File(b"%PDF", filename="a.pdf")
    >>> file.file_data, file.part().media_type
    ('data:application/octet-stream;base64,JVBERg==', 'application/pdf')
    """

    __slots__ = ()

    def __init__(
        self,
        file_data: str | bytes | None = None,
        file_id: str | None = None,
        filename: str | None = None,
        url: str | None = None,
        media_type: str | None = None,
    ) -> None:
        if isinstance(file_data, bytes):
            media_type = media_type or _BYTES
        super().__init__(file_data=file_data, file_id=file_id, filename=filename, url=url, media_type=media_type)

    def part(self) -> FilePart:
        """Return the file as a part of a message."""
        part = super().part()
        named = mimetypes.guess_type(part.filename or "")[0] if part.media_type == _BYTES else None
        return replace(part, media_type=named) if named else part

    @classmethod
    def from_path(
        cls, path: str | os.PathLike[str], filename: str | None = None, mime_type: str | None = None, **options: Any
    ) -> Self:
        """Read a file; ``mime_type`` replaces that of its name. Raises ``InputError`` if there is none."""
        made = super().from_path(path, filename=filename, **options)
        return cls(made.part().data, None, made.filename, None, mime_type) if mime_type else made

    @classmethod
    def from_bytes(
        cls, content: bytes, filename: str | None = None, mime_type: str | None = None, **options: Any
    ) -> Self:
        """Return a file made of bytes."""
        return cls(content, filename=filename, **{"media_type": mime_type, **options})

    @classmethod
    def from_file_id(cls, file_id: str, filename: str | None = None, **options: Any) -> Self:
        """Return a file that was uploaded to the provider before."""
        return cls(file_id=file_id, filename=filename, **options)

    def __repr__(self) -> str:
        part, facts = super().part(), {"file_id": self.file_id, "filename": self.filename, "url": self.url}
        data = [f"file_data=<DATA_URI({part.media_type}, {len(part.data)} chars)>"] if part.data else []
        return f"File({', '.join([*data, *(f'{name}={value!r}' for name, value in facts.items() if value)])})"


def encode_image(image: object) -> str:
    """Return the URL or the data URI of an image in any accepted form. Raises ``InputError``."""
    return Image.read(image).url


def encode_audio(audio: object, sampling_rate: int = 16000, format: str = "wav") -> dict[str, str]:
    """Return base64 data and format of a sound in any accepted form, or of samples between -1 and 1."""
    if hasattr(audio, "shape"):
        audio = Audio.from_array(cast("Iterable[float]", audio), sampling_rate)
    made = Audio(audio, audio_format=format) if isinstance(audio, bytes) else Audio.read(audio)
    return {"data": made.data, "audio_format": made.audio_format}


def encode_file_to_dict(file_input: object) -> dict[str, str]:
    """Return the fields of a file of bytes, a data URI, a dict or a ``File``. Raises ``InputError``."""
    if isinstance(file_input, str) and not file_input.startswith("data:"):
        raise InputError(f"{file_input!r} is not a data URI. Read a local file with File.from_path(...).")
    return {name: str(value) for name, value in File.read(file_input).to_json().items() if value}


class Reasoning(FieldMethods, text.Reasoning):
    """``sigwire.Reasoning`` with DSPy's methods; the sum of two is one of them."""

    __slots__ = ()

    def __add__(self, other: str) -> str:
        total = super().__add__(other)
        return type(self)(total) if isinstance(other, text.Reasoning) else total

    @classmethod
    def parse_lm_response(cls, response: str | FieldValues) -> Reasoning | None:
        """Return the reasoning of an output of ``lm(...)``, else ``None``."""
        found = response.get("reasoning_content") if isinstance(response, Mapping) else None
        return None if found is None else cls(str(found))


def is_reasoning(kind: object) -> bool:
    """Return True for the type of reasoning, of the door or of sigwire.

    >>> is_reasoning(Reasoning), is_reasoning(str)
    (True, False)
    """
    return isinstance(kind, type) and issubclass(kind, text.Reasoning)


class Code(FieldMethods, text.Code):
    """``sigwire.Code`` with DSPy's methods; the constructor removes every fence, as for text of a model.

    >>> Code("Here:\\n```python\\nprint(1)\\n```").code, Code["java"].description()
    ('print(1)', 'Source code as text. Programming language: java')
    """

    __slots__ = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        closed = _FENCED.sub(r"\1\n```", self.code)
        object.__setattr__(self, "code", text.Code.__class_getitem__(self.language).read(closed).code)

    def __class_getitem__(cls, language: str) -> type[Code]:
        return _code_in(str(language).lower())

    @classmethod
    def description(cls) -> str:
        """Return the description of the type for a model."""
        return f"Source code as text. Programming language: {cls.language}"

    def __reduce__(self) -> tuple[object, ...]:
        return _code, (self.language, self.code)

    __eq__ = text.Code.__eq__
    __hash__ = text.Code.__hash__


# A fenced block whose closing fence stands behind the last line of the code.
_FENCED = re.compile(r"^(```[^\n`]*\n(?:(?!```).)*[^\n`])```$", re.MULTILINE | re.DOTALL)


@cache
def _code_in(language: str) -> type[Code]:
    if language == Code.language:
        return Code
    return type("Code", (Code,), {"__slots__": (), "language": language, "__module__": __name__})


def _code(language: str, code: str) -> Code:
    return _code_in(language)(code)


class _Turns(list[object]):
    """The turns of a history, which a program may lengthen."""

    def append(self, turn: object) -> None:
        self.extend([turn])

    def extend(self, turns: Iterable[object]) -> None:
        super().extend(history.History(cast("Iterable[Message]", turns)).messages)


class History(FieldMethods, history.History):
    """``sigwire.History`` whose list ``messages`` may be lengthened in place, as programs of DSPy do.

    >>> turns = History(messages=[{"question": "Hi", "answer": "Hello"}])
    >>> turns.messages.append({"question": "Well?", "answer": "Yes"})
    >>> len(turns), turns.messages[0] == {"question": "Hi", "answer": "Hello"}
    (2, True)
    """

    __slots__ = ()
    messages: list[Any]  # type: ignore[assignment]  # pyright: ignore[reportIncompatibleVariableOverride]

    def __init__(self, messages: Iterable[FieldValues | Message] = ()) -> None:
        super().__init__(messages)
        object.__setattr__(self, "messages", _Turns(self.messages))

    def __eq__(self, other: object) -> bool:
        return tuple(self.messages) == tuple(other.messages) if isinstance(other, history.History) else NotImplemented

    __hash__ = history.History.__hash__


class Type(TypeMethods, pydantic.BaseModel):
    """Base of types of your own.

    >>> class Event(Type):
    ...     name: str
    ...     def format(self) -> str:
    ...         return f"Event: {self.name}"
    >>> str(Event(name="fair"))
    'Event: fair'
    """

    _also: ClassVar[tuple[type, ...]] = (FieldType, Tool)

    def format(self) -> Any:
        """Return the value as JSON."""
        return self.model_dump(mode="json")

    @classmethod
    def description(cls) -> str:
        """Return the description of the type."""
        return (cls.__doc__ or "").strip() if cls is not Type else ""

    def __str__(self) -> str:
        shown = self.format()
        if isinstance(shown, list):
            return marked(cast("list[JsonObject]", shown))
        return shown if isinstance(shown, str) else super().__str__()


_PARTS = ("text", "image_url", "input_audio", "file")


def has_own_format(annotation: object) -> bool:
    """Return True if a type expression has a subclass of ``Type`` that overrides ``format``.

    >>> has_own_format(list[Type]), has_own_format(list[Document])
    (False, True)
    """
    kinds = (kind for kind in nested_types(annotation) if isinstance(kind, type) and issubclass(kind, Type))
    return any(kind.format is not Type.format for kind in kinds)


def formatted(value: object) -> object:
    """Return a value as data whose texts hold what ``format`` returns; content parts that no model takes are data."""
    if isinstance(value, Type):
        shown = value.format()
        if not isinstance(shown, list):
            return shown
        blocks = cast("list[_Block]", shown)
        return marked(blocks) if all(block.get("type") in _PARTS for block in blocks) else value.model_dump(mode="json")
    if isinstance(value, pydantic.BaseModel):
        return {name: formatted(getattr(value, name)) for name in type(value).model_fields}
    if is_mapping(value):
        return {name: formatted(item) for name, item in value.items()}
    return [formatted(item) for item in cast("list[object]", value)] if isinstance(value, (list, tuple)) else value


class Document(Type):
    """A text to answer from, with its title and context; made of a text or by its fields.

    >>> Document("Water boils at 100 °C.", title="Physics").title
    'Physics'
    >>> Document.model_validate("Tea is a drink.").data
    'Tea is a drink.'
    """

    data: str
    title: str | None = None
    media_type: Literal["text/plain", "application/pdf"] = "text/plain"
    context: str | None = None

    def __init__(self, data: str | None = None, /, **fields: Any) -> None:
        super().__init__(**(fields if data is None else {"data": data, **fields}))

    @pydantic.model_validator(mode="before")
    @classmethod
    def _read(cls, value: object) -> object:
        return {"data": value} if isinstance(value, str) else value

    def format(self) -> list[_Block]:
        """Return the document as a content block of Anthropic."""
        kind = "base64" if self.media_type == "application/pdf" else "text"
        source = {"type": kind, "media_type": self.media_type, "data": self.data}
        named = {name: value for name, value in (("title", self.title), ("context", self.context)) if value}
        return [{"type": "document", "source": source, "citations": {"enabled": True}, **named}]

    def __str__(self) -> str:
        title = f"'{self.title}': " if self.title else ""
        return f"Document({title}{len(self.data)} chars)"


class CitedText(Type):
    """A quotation and where it stands."""

    type: str = "char_location"
    cited_text: str
    document_index: int
    document_title: str | None = None
    start_char_index: int
    end_char_index: int
    supported_text: str | None = None

    def format(self) -> _Block:
        """Return the fields; titles and supported texts only where they are set."""
        return {
            name: value
            for name, value in self.model_dump().items()
            if value or name not in ("document_title", "supported_text")
        }


class Citations(Type):
    """The citations of an answer: a list by index, length and iteration.

    >>> cited = {"cited_text": "Tea", "document_index": 0, "start_char_index": 0, "end_char_index": 3}
    >>> Citations.from_dict_list([cited])[0].cited_text, len(Citations.model_validate([cited]))
    ('Tea', 1)
    """

    Citation: ClassVar[type[CitedText]] = CitedText
    citations: list[CitedText]

    @classmethod
    def from_dict_list(cls, citations_dicts: Iterable[Mapping[str, Any]]) -> Self:
        """Return the citations of dicts."""
        return cls.model_validate({"citations": list(citations_dicts)})

    @pydantic.model_validator(mode="before")
    @classmethod
    def _read(cls, value: object) -> object:
        if isinstance(value, list):
            return {"citations": value}  # pyright: ignore[reportUnknownVariableType]
        is_one = is_mapping(value) and "cited_text" in value
        return {"citations": [value]} if is_one else value

    @classmethod
    def description(cls) -> str:
        """Return the description of the type."""
        return "Citations: quoted text, and the place in a document where it stands."

    @classmethod
    def is_streamable(cls) -> bool:
        """Return True."""
        return True

    @classmethod
    def parse_lm_response(cls, response: str | FieldValues) -> Citations | None:
        """Return the citations of an output of ``lm(...)``, else ``None``."""
        found = response.get("citations") if isinstance(response, Mapping) else None
        return cls.model_validate(found) if found else None

    @classmethod
    def adapt_to_native_lm_feature(
        cls, signature: SignatureClass, field_name: str, lm: LanguageModel, lm_kwargs: FieldValues
    ) -> SignatureClass:
        """Return the signature without the field for a model of Anthropic, which cites natively."""
        return signature.delete(field_name) if lm.model.startswith("anthropic/") else signature

    def format(self) -> list[_Block]:
        """Return the citations as dicts."""
        return [citation.format() for citation in self.citations]

    def __iter__(self) -> Iterator[CitedText]:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return iter(self.citations)

    def __len__(self) -> int:
        return len(self.citations)

    def __getitem__(self, index: int) -> CitedText:
        return self.citations[index]
