"""DSPy's types of fields that the core has no name for: ``Document``, ``Citations`` and the base ``Type``.

Each is a pydantic model: its fields and descriptions reach the prompt as JSON, and an answer is validated by it. ``format``
is for the program: the prompt does not use it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Literal, Self, TypeAlias, cast

import pydantic

from sigwire.signatures.types import media
from sigwire.signatures.types.history import History
from sigwire.signatures.types.media import Audio, Image
from sigwire.signatures.types.text import Code, Reasoning

__all__ = ["Audio", "Citations", "CitedText", "Code", "Document", "File", "History", "Image", "Reasoning", "Type"]


_Block: TypeAlias = dict[str, Any]


class File(media.File):
    """``sigwire.File`` by DSPy's arguments, which may stand without their names.

    >>> File(None, "file-1", "a.pdf").filename
    'a.pdf'
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
        super().__init__(file_data=file_data, file_id=file_id, filename=filename, url=url, media_type=media_type)


class Type(pydantic.BaseModel):
    """Base of types of your own.

    >>> class Event(Type):
    ...     name: str
    ...     def format(self) -> str:
    ...         return f"Event: {self.name}"
    >>> str(Event(name="fair"))
    'Event: fair'
    """

    def format(self) -> Any:
        """Return the value as JSON."""
        return self.model_dump(mode="json")

    @classmethod
    def description(cls) -> str:
        """Return the description of the type."""
        return (cls.__doc__ or "").strip() if cls is not Type else ""

    def __str__(self) -> str:
        shown = self.format()
        return shown if isinstance(shown, str) else super().__str__()


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
    def _read(cls, value: Any) -> Any:
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
    def _read(cls, value: Any) -> Any:
        if isinstance(value, list):
            return {"citations": value}  # pyright: ignore[reportUnknownVariableType]
        is_one = isinstance(value, Mapping) and "cited_text" in value
        return {"citations": [cast("Any", value)]} if is_one else cast("Any", value)

    def format(self) -> list[_Block]:
        """Return the citations as dicts."""
        return [citation.format() for citation in self.citations]

    def __iter__(self) -> Iterator[CitedText]:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        return iter(self.citations)

    def __len__(self) -> int:
        return len(self.citations)

    def __getitem__(self, index: int) -> CitedText:
        return self.citations[index]
