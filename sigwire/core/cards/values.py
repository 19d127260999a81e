"""Values, media, JSON, tokens and money, as lines and texts of a card. Nothing here is shown whole if it is large."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeVar

from sigwire.core.narrow import is_items, is_mapping
from sigwire.core.parts import AudioPart, FilePart, ImagePart
from sigwire.core.report import CallReport
from sigwire.core.response import Attempt, Usage, cost_of_attempts, known_cost_of
from sigwire.show.cleaning import MOST_IN_VALUE, cut
from sigwire.show.lines import CardLine, PictureLine, ValueLine
from sigwire.show.numbers import count, money_text, seconds_text
from sigwire.show.pictures import size_text
from sigwire.show.values import short_repr

__all__ = [
    "call_facts", "json_line", "media_line", "option_parts", "report_facts", "usage_parts", "value_line",
]  # fmt: skip


T = TypeVar("T")


def value_line(value: object) -> CardLine:
    """Return the value of a field: text without quotes, media by type and size, other values as Python writes them.

    >>> value_line(5), value_line("five")
    (ValueLine(text='5', tone='', is_code=True), ValueLine(text='five', tone='', is_code=False))
    """
    if isinstance(value, str):
        return ValueLine(value)
    make: Callable[[object], object] | None = getattr(type(value), "part", None)
    part = make(value) if callable(make) else None
    return media_line(part) or ValueLine(short_repr(value, MOST_IN_VALUE), is_code=True)


def media_line(part: object) -> CardLine | None:
    """Return the line of an image, sound or document; ``None`` for other parts. A URL is a text: nothing is fetched.

    >>> media_line(ImagePart(url="https://example.com/cat.png"))
    ValueLine(text='image at https://example.com/cat.png', tone='', is_code=False)
    """
    if isinstance(part, ImagePart):
        if part.data is not None:
            return PictureLine(part.media_type or "image", part.data)
        return ValueLine(f"image {_place(part.url, part.file_id)}")
    if isinstance(part, AudioPart):
        return ValueLine(f"audio/{part.format[:20]} · {_size(part.data)}")
    if isinstance(part, FilePart):
        name = part.filename or part.media_type or "file"
        return ValueLine(f"{name[:160]} · {_size(part.data) if part.data else _place(part.url, part.file_id)}")
    return None


def _place(url: str | None, file_id: str | None) -> str:
    return f"at {url[:1_000]}" if url else f"with the id {(file_id or '')[:160]}"


def _size(data: str) -> str:
    return size_text(len(data) * 3 // 4)


def json_line(value: object) -> ValueLine:
    """Return JSON data as text, indented if it is long. Long texts and lists are cut.

    >>> json_line({"a": [1]}).text
    '{"a": [1]}'
    """
    bounded = _BoundedJson().copy(value, 0)
    text = json.dumps(bounded, ensure_ascii=False, default=short_repr)
    if len(text) > 80:
        text = json.dumps(bounded, ensure_ascii=False, default=short_repr, indent=1)
    return ValueLine(text, is_code=True)


class _BoundedJson:
    """Copies JSON data up to a number of characters in all; the rest is left out."""

    def __init__(self) -> None:
        self._room = MOST_IN_VALUE

    def copy(self, value: object, depth: int) -> object:
        """Return a copy of the value without the parts that do not fit."""
        self._room -= 4
        if self._room <= 0 or depth > _MOST_DEPTH:
            return "…"
        if isinstance(value, str):
            text = cut(value, self._room)
            self._room -= len(text)
            return text
        if is_mapping(value):
            return {self.copy(str(name), 0): self.copy(item, depth + 1) for name, item in self._fitting(value.items())}
        if is_items(value):
            return [self.copy(item, depth + 1) for item in self._fitting(value)]
        return value

    def _fitting(self, items: Iterable[T]) -> Iterator[T]:
        for item in items:
            yield item
            if self._room <= 0:
                return


_MOST_DEPTH = 20


_COUNTS = {
    "input_tokens": "in", "output_tokens": "out", "cached_tokens": "cached", "cache_write_tokens": "cache written",
    "reasoning_tokens": "reasoning",
}  # fmt: skip


def usage_parts(usage: Usage) -> list[str]:
    """Return the known counts of a usage, and its cost if it is known.

    >>> usage_parts(Usage(input_tokens=1_850, output_tokens=29, cost=0.0002))
    ['1,850 in', '29 out', '$0.0002']
    """
    known = [f"{number:,} {word}" for name, word in _COUNTS.items() if (number := getattr(usage, name)) is not None]
    return known if usage.cost is None else [*known, money_text(usage.cost)]


def call_facts(attempts: tuple[Attempt, ...], usage: Usage) -> list[str]:
    """Return tokens, cost and number of requests. The price of a model counts only if it is loaded.

    >>> call_facts((Attempt(cost=0.06), Attempt(usage=Usage(input_tokens=3), model="no/price")), Usage(input_tokens=9))
    ['9 in', '≥ $0.06', '2 requests']
    """
    counts = usage_parts(Usage(usage.input_tokens, usage.output_tokens))
    requests = [count(len(attempts), "request")] if attempts else []
    if not attempts:
        return [*counts, money_text(usage.cost)]
    known, is_whole = known_cost_of(attempts, may_import=False)
    money = money_text(known) if is_whole else f"≥ {money_text(known)}" if known else money_text(None)
    return [*counts, money, *requests]


def report_facts(report: CallReport) -> list[str]:
    """Return requests, tokens, cost and time of a call. The price of a model counts only if it is loaded."""
    attempts, usage = report.attempts, report.usage
    tokens = (usage.input_tokens or 0) + (usage.output_tokens or 0)
    known = usage.input_tokens is not None or usage.output_tokens is not None
    cost = cost_of_attempts(attempts, may_import=False) if attempts else None
    return [
        count(len(attempts), "request"),
        *([f"{tokens:,} tokens"] if known else []),
        *([money_text(cost)] if cost is not None else []),
        seconds_text(report.seconds),
    ]


_HIDDEN = ("api_key", "extra_body", "extra_headers", "headers")


def option_parts(options: Mapping[str, object]) -> list[str]:
    """Return request options as ``name=value``. Headers and bodies may hold keys: their values are left out.

    >>> option_parts({"temperature": 0.2, "extra_headers": {"Authorization": "..."}})
    ['temperature=0.2', 'extra_headers=…']
    """
    return [f"{name}={'…' if name in _HIDDEN else short_repr(value)}" for name, value in options.items()]
