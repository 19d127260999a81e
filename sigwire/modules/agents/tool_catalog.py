"""``SearchedTools``: the tools of an agent by their words or vectors, as its predictor describes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import sqrt
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from sigwire.core.json import JsonObject, JsonValue
from sigwire.core.tools.texts import ToolText
from sigwire.core.tools.tool import Tool
from sigwire.core.words import WordIndex
from sigwire.errors import ConfigurationError
from sigwire.modules.agents.toolbox import spec_size

if TYPE_CHECKING:
    from sigwire.modules.agents.toolbox import Toolbox

__all__ = ["SearchedTools", "Vectorizer", "catalog_of", "fitting"]

Vectorizer = Callable[[list[str]], Any]
"""A function of texts to their vectors, such as an ``Embedder``."""


class SearchedTools:
    """Tools that a search finds. ``views``: the tools as models see them, by the name that models see.

    >>> tools = [Tool.from_schema("send_mail", "Write to a person."), Tool.from_schema("add", "Sum of numbers.")]
    >>> catalog = SearchedTools(tools)
    >>> catalog.best("I want to write a letter to a friend", 1)
    ['send_mail']
    """

    def __init__(self, views: Sequence[Tool], vectorizer: Vectorizer | None = None) -> None:
        self.views = {view.name: view for view in views}
        self._vectorizer = vectorizer
        self._index = WordIndex[str]()
        for view in views:
            self._index.add(view.name, view.name, view.name, view.description, *_argument_texts(view.parameters))
        self._vectors: list[list[float]] | None = None

    def best(self, query: str, count: int) -> list[str]:
        """Return the names of the ``count`` best tools, the best first. Without vectors only tools that share a word."""
        if self._vectorizer is None:
            return [name for name, _ in self._index.search(query, count)]
        if self._vectors is None:
            texts = [
                "\n".join((view.name, view.description, *_argument_texts(view.parameters)))
                for view in self.views.values()
            ]
            self._vectors = _unit_vectors(self._vectorizer, texts)
        (asked,) = _unit_vectors(self._vectorizer, [query])
        words = dict(self._index.search(query, len(self.views)))
        scores = {
            name: (round(sum(map(float.__mul__, asked, vector)), 6), words.get(name, 0.0))
            for name, vector in zip(self.views, self._vectors, strict=True)
        }
        return sorted(scores, key=lambda name: scores[name], reverse=True)[:count]


def fitting(views: Iterable[Tool], count: int, tokens: int | None) -> list[Tool]:
    """Return the first ``count`` views, fewer if their schemas need more than ``tokens``."""
    found: list[Tool] = []
    left = tokens
    for view in islice(views, count):
        if left is not None and (left := left - spec_size(view)) < 0:
            break
        found.append(view)
    return found


_CATALOGS: WeakKeyDictionary[Toolbox, tuple[dict[str, ToolText], object, SearchedTools]] = WeakKeyDictionary()


def catalog_of(toolbox: Toolbox, texts: Mapping[str, ToolText], vectorizer: Vectorizer | None) -> SearchedTools:
    """Return the catalog of a toolbox with the texts of a predictor. It is made again only after one of them changed."""
    known = _CATALOGS.get(toolbox)
    if known is not None and known[0] == texts and known[1] is vectorizer:
        return known[2]
    found = [tool for tool in toolbox.tools.values() if tool.config is None]
    views = [tool.described(texts[tool.name]) if tool.name in texts else tool for tool in found]
    made = SearchedTools(views, vectorizer)
    _CATALOGS[toolbox] = (dict(texts), vectorizer, made)
    return made


def _argument_texts(schema: JsonValue) -> Iterator[str]:
    """Yield the names, descriptions and choices of the arguments of a schema, at every depth."""
    if not isinstance(schema, dict):
        return
    for name, part in cast("JsonObject", schema.get("properties") or {}).items():
        yield name
        if isinstance(part, dict):
            if isinstance(text := part.get("description"), str):
                yield text
            choices = part.get("enum")
            yield from (choice for choice in (choices if isinstance(choices, list) else ()) if isinstance(choice, str))
            yield from _argument_texts(part)
            yield from _argument_texts(part.get("items"))


def _unit_vectors(vectorizer: Vectorizer, texts: list[str]) -> list[list[float]]:
    made = [[float(value) for value in vector] for vector in vectorizer(texts)]
    if len(made) != len(texts):
        raise ConfigurationError(f"tool_search made {len(made)} vectors of {len(texts)} texts (searching tools).")
    return [[value / (sqrt(sum(each * each for each in vector)) or 1.0) for value in vector] for vector in made]
