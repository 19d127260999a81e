"""All specimens, and a page of them."""

from __future__ import annotations

import html
import io
from collections.abc import Callable, Iterator, Mapping

from sigwire.show.card import HasCard
from tests.show.gallery.material import MATERIALS, Material
from tests.show.gallery.programs import PROGRAMS, agent_prediction
from tests.show.gallery.searches import SEARCHES
from tests.show.gallery.values import VALUES

__all__ = ["SPECIMENS", "gallery_page"]

SPECIMENS: Mapping[str, Callable[[Material], HasCard]] = {
    **{cls.__name__: make for table in (VALUES, PROGRAMS, SEARCHES) for cls, make in table.items()},
    "Prediction of an agent": agent_prediction,
}
"""A function for each shown class, which makes an object of given material."""


def gallery_page() -> str:
    """Return the gallery as an HTML page: each class, each kind of material, as HTML and as text."""
    return f"{_HEAD}{''.join(_sections())}</body></html>\n"


_HEAD = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Cards of sigwire</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; img-src data:">
<meta name="color-scheme" content="light dark"></head><body>
"""


def _sections() -> Iterator[str]:
    for name, make in sorted(SPECIMENS.items()):
        yield f"<h2>{name}</h2>"
        for kind, material in MATERIALS.items():
            shown = make(material)
            text = io.StringIO()
            type(shown).show(shown, text, width=80)
            page: str = type(shown)._repr_html_(shown)  # pyright: ignore[reportPrivateUsage]
            plain = html.escape(f"{shown!r:.500}\n\n{text.getvalue()}")
            yield f"<h3>{name}, {kind}</h3>{page}<details><summary>as text</summary><pre>{plain}</pre></details>"
