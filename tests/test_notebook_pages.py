"""Notebooks as a browser shows them: rendered by nbconvert in JupyterLab's template, opened in headless Chromium.

Values of a notebook give no element, script or request, and text keeps its contrast on light and dark pages. Pictures of the
pages are written to the folder that ``SIGWIRE_PICTURES`` names.
"""

from __future__ import annotations

import json
import os
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from docs.pictures import browser, chromium
from tests.show.test_contrast import contrast
from tests.test_notebooks import notebooks, run

nbconvert = pytest.importorskip("nbconvert", reason="nbconvert renders the notebooks as pages")
nbformat = pytest.importorskip("nbformat")

THEMES = ("light", "dark")

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("default"),
    pytest.mark.skipif(browser() is None, reason="no Chromium: install Debian's package chromium to open the pages"),
]


def rendered(notebook: Any, theme: str) -> str:
    """Return a notebook as a page of JupyterLab, without the scripts that the template loads from the web."""
    exporter = nbconvert.HTMLExporter(
        template_name="lab", theme=theme, mathjax_url="", require_js_url="", mermaid_js_url="", jquery_url=""
    )
    body, _ = exporter.from_notebook_node(notebook)
    return str(body)


def opened(html: str, folder: Path) -> str:
    """Return the document of a page after its scripts ran."""
    page = folder / "page.html"
    page.write_text(html, encoding="utf-8")
    return chromium(page.as_uri(), folder / "profile", "--dump-dom", "--virtual-time-budget=3000")


# --- the pages ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", THEMES)
@pytest.mark.parametrize("name", ["evaluate_and_compare", "optimize", "signatures_and_tools"])
def test_executed_notebook_is_a_page_with_cards(name: str, theme: str, tmp_path: Path) -> None:
    page = tmp_path / f"{name}-{theme}.html"
    page.write_text(rendered(notebooks()[name], theme), encoding="utf-8")
    picture = Path(os.environ.get("SIGWIRE_PICTURES", tmp_path)) / f"{page.stem}.png"
    chromium(page.as_uri(), tmp_path / "profile", f"--screenshot={picture}", "--window-size=1000,4200")
    assert picture.stat().st_size > 50_000
    assert page.read_text(encoding="utf-8").count('<div class="sigwire">') >= 2


# --- hostile values ------------------------------------------------------------------------------------

HOSTILE = """
url = {url!r}
hostile = (
    f"<img src={{url}}/img onerror=\\"document.title='owned'\\"><iframe src={{url}}/iframe></iframe>"
    f"</script><script>document.title='owned';fetch('{{url}}/fetch')</script>"
    f"</style><style>p{{{{background:url({{url}}/css)!important}}}}</style><link rel=stylesheet href={{url}}/link><p>x</p>"
    f"</code></dd></details></div><a href=javascript:document.title='owned'>x</a> ![x]({{url}}/markdown)"
    "\\x1b[31m \\u202e \\ud800"
)
"""
"""Defines ``hostile``, a text that changes the title or asks the server at ``url`` if a page takes it for HTML."""

CELLS = """
import sigwire
from sigwire import Example, FakeLM, InputField, OutputField, Predict, ReAct, Signature, ToolCall
row = Example(question=hostile, answer=hostile).with_inputs("question")
row
---
ask = Predict("question -> answer", lm=FakeLM(lambda request: {"answer": hostile}))
ask(question=hostile)
---
Signature("question -> answer", hostile.replace("\\ud800", ""))  # a docstring of Python holds no lone surrogate
---
def note(text: str) -> str:
    return hostile

agent = ReAct("question -> answer", tools=[note])
agent.set_lm(FakeLM([ToolCall("a", "note", {"text": hostile}), ToolCall("b", "submit", {"answer": hostile})]))
agent(question=hostile)
---
evaluate = sigwire.Evaluate(devset=[row.copy(id=hostile)], metric=lambda example, prediction: False)
evaluate(ask)
"""


@dataclass
class Visited:
    """A server on this machine, and the paths that were asked of it."""

    url: str
    paths: list[str] = field(default_factory=list[str])


@pytest.fixture
def visited() -> Iterator[Visited]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.paths.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    seen = Visited(f"http://127.0.0.1:{server.server_port}")
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield seen
    server.shutdown()
    thread.join()
    server.server_close()


def notebook_of(*cells: str) -> Any:
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in cells])


class Tags(HTMLParser):
    """The tags of a document with their attributes, and the title."""

    def __init__(self, document: str) -> None:
        super().__init__()
        self.found: list[tuple[str, Mapping[str, str | None]]] = []
        self.title = re.findall(r"<title>(.*?)</title>", document, re.DOTALL)[0]
        self.feed(document)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def named(self, *names: str) -> list[tuple[str, Mapping[str, str | None]]]:
        return [each for each in self.found if each[0] in names]


def test_hostile_values_give_no_element_script_or_request(visited: Visited, tmp_path: Path) -> None:
    executed = run(notebook_of(HOSTILE.format(url=visited.url), *CELLS.split("---")), tmp_path)
    shown = [output.data.get("text/html", "") for cell in executed.cells[1:] for output in cell.outputs]
    assert len(shown) == 5
    assert all("onerror" in html for html in shown), "each card shows the hostile text"
    template = Tags(opened(rendered(notebook_of(), "light"), tmp_path))
    for theme in THEMES:
        document = opened(rendered(executed, theme), tmp_path)
        tags = Tags(document)
        assert tags.title == template.title
        for kind in ("script", "img", "iframe", "link", "object", "embed"):
            assert len(tags.named(kind)) == len(template.named(kind)), kind
        assert [each for each in tags.named("a") if (each[1].get("href") or "").startswith("javascript")] == []
        assert [name for _, names in tags.found for name in names if name.startswith("on")] == []
        assert "\x1b" not in document
        assert "\u202e" not in document
    assert visited.paths == []


def test_same_text_as_html_changes_the_title_and_reaches_the_server(visited: Visited, tmp_path: Path) -> None:
    """The check of the check: a page that takes the hostile text for HTML is noticed."""
    raw = "from IPython.display import HTML\nHTML(hostile.encode(errors='replace').decode())"
    executed = run(notebook_of(HOSTILE.format(url=visited.url), raw), tmp_path)
    assert Tags(opened(rendered(executed, "light"), tmp_path)).title == "owned"
    assert {"/img", "/iframe", "/fetch", "/css", "/link"} <= set(visited.paths)


# --- contrast ---------------------------------------------------------------------------------------------

PROBE = """<script>
const colours = []
for (const tone of ["right", "wrong", "attention", "call"]) {
  const card = document.querySelector(".sigwire")
  const text = card.appendChild(document.createElement("span"))
  text.className = tone
  let ground = card
  while (getComputedStyle(ground).backgroundColor === "rgba(0, 0, 0, 0)" && ground.parentElement) ground = ground.parentElement
  colours.push([tone, getComputedStyle(card).color, getComputedStyle(text).color, getComputedStyle(ground).backgroundColor])
}
document.title = JSON.stringify(colours)
</script></body>"""


@pytest.mark.parametrize("theme", THEMES)
def test_four_hues_have_contrast_on_a_page(theme: str, tmp_path: Path) -> None:
    html = rendered(notebooks()["signatures_and_tools"], theme).replace("</body>", PROBE)
    measured = json.loads(Tags(opened(html, tmp_path)).title)
    assert len({hue for _, _, hue, _ in measured}) == 4
    assert all(hue != plain for _, plain, hue, _ in measured)
    ratios = {tone: contrast(channels(hue), channels(ground)) for tone, _, hue, ground in measured}
    assert {tone: round(ratio, 1) for tone, ratio in ratios.items() if ratio < 4.5} == {}


def channels(colour: str) -> tuple[float, ...]:
    """Return red, green and blue from 0 to 1 of a computed colour; an opaque one only.

    >>> channels("rgb(255, 0, 51)"), channels("color(srgb 0.5 0 1)")
    ((1.0, 0.0, 0.2), (0.5, 0.0, 1.0))
    """
    numbers = [float(number) for number in re.findall(r"[\d.]+", colour.removeprefix("color(srgb"))]
    scale = 1.0 if colour.startswith("color(") else 255.0
    assert len(numbers) == 3 or numbers[3] > 0.8, colour
    return tuple(number / scale for number in numbers[:3])
