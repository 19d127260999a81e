"""Write llms.txt, llms-full.txt and each page as Markdown into a built site, and take decisions out of its search.

python docs/llms.py site
"""

import inspect
import json
import pkgutil
import re
import sys
from pathlib import Path
from types import UnionType

import sigwire

DOCS = Path(__file__).resolve().parent
CONFIG = (DOCS.parent / "mkdocs.yml").read_text(encoding="utf-8")


def main(site: Path) -> None:
    """Write the files into the folder of a built site."""
    url, about = (re.findall(rf"^{key}: (.+)$", CONFIG, re.MULTILINE)[0] for key in ("site_url", "site_description"))
    groups = nav()
    every = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    rest = sorted(every - {path for pages in groups.values() for _, path in pages})
    groups["Optional"] = [((DOCS / path).read_text(encoding="utf-8").partition("\n")[0][2:], path) for path in rest]
    listed, full = [f"# sigwire\n\n> {about}"], ""
    for group, pages in groups.items():
        listed += [f"\n## {group}\n", *(f"- [{title}]({url}{path}): {summary(path)}" for title, path in pages)]
        for _, path in pages:
            text = re.sub(r"^::: (\S+)$", described, (DOCS / path).read_text(encoding="utf-8"), flags=re.MULTILINE)
            (site / path).parent.mkdir(parents=True, exist_ok=True)
            (site / path).write_text(text, encoding="utf-8")
            full += f"{text}\n" if group != "Optional" else ""
    (site / "llms.txt").write_text("\n".join(listed) + "\n", encoding="utf-8")
    (site / "llms-full.txt").write_text(full, encoding="utf-8")


def unlist_decisions(site: Path) -> None:
    """Take the single decisions out of the search: they answer no question of a user."""
    index = site / "search.json"
    found = json.loads(index.read_text(encoding="utf-8"))
    found["items"] = [each for each in found["items"] if not each["location"].startswith("decisions/0")]
    index.write_text(json.dumps(found, separators=(",", ":")), encoding="utf-8")


def nav() -> dict[str, list[tuple[str, str]]]:
    """Return the pages of each group of the nav: title and path below docs/."""
    group, groups = "", dict[str, list[tuple[str, str]]]()
    for indent, title, path in re.findall(r"^( *)- (.+?):(?: ([^:\s]+\.md))?$", CONFIG.split("\nnav:\n")[1], re.M):
        group = title if len(indent) == 2 else group
        groups.setdefault(group, []).extend([(title, path)] if path else [])
    return groups


def summary(path: str) -> str:
    """Return the first sentence of a page, without headings and links."""
    text = re.sub(r"^#.*\n+|\*\*", "", (DOCS / path).read_text(encoding="utf-8"), flags=re.MULTILINE)
    return re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", re.split(r"(?<=\.)\s|\n\n", text)[0]).replace("\n", " ")


def described(entry: re.Match[str]) -> str:
    """Return the heading, the signature and the docstring of the name of an API entry."""
    module, _, name = entry[1].rpartition(".")
    value = pkgutil.resolve_name(f"{module}:{name}")
    module = "sigwire" if getattr(sigwire, name, None) is value else module
    called = f"\n\n    {name}{inspect.signature(value)}" if inspect.isfunction(value) else ""
    return f"## {module}.{name}{called}\n\n{value if isinstance(value, UnionType) else inspect.getdoc(value)}"


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    unlist_decisions(Path(sys.argv[1]))
