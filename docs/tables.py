"""All that is made from tables: stubs and advice from the names of ``sigwire``, and the tables of the pages.

    python docs/tables.py            writes the files
    python docs/tables.py --check    prints the files that are stale; the exit code is then 1

A table of a page stands between ``<!-- name -->`` and ``<!-- end -->``; the text around it is written by hand. Its rows come
from ``sigwire.lm.providers.registry`` (providers), ``sigwire`` (names), the parser of the command line and the nav.
``docs/stubs.py`` makes whole files; ``tests/release/snapshot.py`` makes the public interface as text.
"""

from __future__ import annotations

import argparse
import inspect
import json
import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from types import ModuleType
from typing import cast, get_args
from urllib.parse import urlsplit

from llms import nav, summary
from stubs import FILES, GROUPS

import sigwire
import sigwire.dspy
import sigwire.testing
from sigwire import errors as of_calls
from sigwire.commands.parser import VERBS, command_of
from sigwire.dspy.missing import INSTEAD
from sigwire.errors import SigwireError, Whose, ends_run
from sigwire.journal import errors as of_runs
from sigwire.lm.codecs.shared.interface import ModelFacts
from sigwire.lm.providers.registry import PROVIDERS
from sigwire.lm.providers.row import ModelRule, Provider

__all__ = ["PAGES", "TABLES", "main", "stale", "written"]

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # of a script, only its own folder is on the path
SEEN = ROOT / "docs" / "verified"
"""The reports of ``sigwire verify`` that users sent."""
INTERFACE = ROOT / "tests" / "release" / "api.txt"
OLDEST = (3, 11)
"""The Python of ``INTERFACE``: later versions write some parameters differently."""
PAGES = (
    *FILES,
    *((INTERFACE,) if sys.version_info[:2] == OLDEST else ()),
    *(
        ROOT / name
        for name in (
            "README.md",
            "docs/coming-from-dspy.md",
            "docs/command-line.md",
            "docs/index.md",
            "docs/install.md",
            "docs/names.md",
            "docs/providers.md",
            "docs/react.md",
        )
    ),
    *sorted((ROOT / "docs" / "api").glob("*.md")),
)
END = "<!-- end -->"

SIDES: Mapping[Whose, tuple[str, str, str]] = {
    "model": ("the model's", "arguments that do not fit, a timeout", "the text"),
    "inner model": ("the inner model's", "", "class and first line"),
    "request": ("of what the tool sent", "", "class and first line; it can ask for less"),
    "provider": ("the provider's", "", "nothing"),
    "program": ("the program's", "", "nothing"),
    "run": ("the run's", "a cancellation", "nothing"),
    "author": (
        "the author's of the tool",
        "every other exception",
        "class and first line; a `ToolWarning` for the author",
    ),
}
"""Whose problem an error is, other errors of the row, and what a model reads."""
END_OF_RUN: Mapping[Whose, str] = {
    "provider": "ends with this error",
    "program": "ends with this error",
    "run": "ends or waits",
}

ABILITIES: Mapping[str, str] = {
    "native_tools": "tools",
    "tool_choice": "forced",
    "json_schema": "schema",
    "tools_with_json_schema": "both",
    "images": "images",
    "audio": "audio",
    "files": "files",
}


def main(arguments: Sequence[str]) -> int:
    """Write or check the pages; return the exit code."""
    pages = stale()
    if "--check" in arguments:
        for page in pages:
            print(f"{page.relative_to(ROOT)} is not up to date: run python docs/tables.py")
        return 1 if pages else 0
    for page in pages:
        page.write_text(written(page), encoding="utf-8")
        print(f"wrote {page.relative_to(ROOT)}")
    return 0


def stale() -> list[Path]:
    """Return the files that are not up to date."""
    return [page for page in PAGES if not page.exists() or written(page) != page.read_text(encoding="utf-8")]


def written(page: Path) -> str:
    """Return the text of a file as it should be: a made file, or a page with new tables."""
    if make := {**FILES, INTERFACE: interface}.get(page):
        return make()
    text = page.read_text(encoding="utf-8")
    for name, make in TABLES.items():
        before, mark, rest = text.partition(f"<!-- {name} -->\n")
        if mark:
            text = f"{before}{mark}{make()}\n{rest[rest.index(END) :]}"
    return text


# --- the tables ----------------------------------------------------------------------------------------------------


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))


def interface() -> str:
    """Return the public interface, a line for each name and each member."""
    from tests.release.snapshot import lines

    return "\n".join(lines()) + "\n"


def situations() -> str:
    """Return the table of sigwire and its peers in the same situations."""
    from benchmarks.beside.table import stored
    from benchmarks.beside.table import table as outcomes

    return outcomes(stored())


def tool_errors() -> str:
    """Return the table of errors inside a tool: whose problem they are, what the model reads, and what the run does."""
    classes = {
        cls: None
        for module in (of_calls, of_runs)
        for _, cls in inspect.getmembers(module, inspect.isclass)
        if issubclass(cls, SigwireError) and cls is not SigwireError and "whose" in cls.__dict__
    }
    rows: list[list[str]] = []
    for side in cast("tuple[Whose, ...]", get_args(Whose)):
        whose, others, reads = SIDES[side]
        found = [cls for cls in classes if cls.whose == side]
        ends = any(ends_run(cls.__new__(cls)) for cls in found)
        names = [codes(sorted(cls.__name__ for cls in found)), others]
        rows.append([", ".join(filter(None, names)), whose, reads, END_OF_RUN[side] if ends else "goes on"])
    return table(("the error inside a tool", "whose problem", "the model reads", "the run"), rows)


def models() -> str:
    """Return the table of the front page: the start of model strings, and their keys."""
    rows = ([f'`LM("{row.prefix}/...")`', keys_of(row), address_of(row)] for row in over_http())
    return table(("model", "key", "address"), rows)


def addresses() -> str:
    rows = (
        [
            codes((row.prefix, *row.aliases)),
            address_of(row),
            codes(row.base_variables),
            keys_of(row),
            ", ".join(f"{name} (`{wire.codec}`)" for name, wire in row.wires.items()),
            last_seen(row),
        ]
        for row in over_http()
    )
    return table(("prefix", "address", "another one", "key", "wires", "last seen"), rows)


def last_seen(row: Provider, reports: Path = SEEN) -> str:
    """Return day and model of the latest report of a verification for a row, "never" without one.

    A row was never seen by a test: no test calls a provider. A report from another address, such as a gateway, is of no row.
    """
    found = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(reports.glob("*.json"))]
    days = [(each["day"], each["model"]) for each in found if _is_of(each, row)]
    return "{} (`{}`)".format(*max(days)) if days else "never"


def _is_of(report: Mapping[str, str], row: Provider) -> bool:
    host = urlsplit(f"//{report['host']}").hostname or ""
    is_own = not row.own_hosts or any(host == own or host.endswith(f".{own}") for own in row.own_hosts)
    return is_own and report["model"].partition("/")[0] in (row.prefix, *row.aliases)


def abilities() -> str:
    rows = ([f"`{row.prefix}`", *(_ability(row, name) for name in ABILITIES)] for row in PROVIDERS.values())
    return table(("prefix", *ABILITIES.values()), rows)


def _ability(row: Provider, name: str) -> str:
    if not getattr(row.capabilities, name):
        return ""
    return "on demand" if name == "json_schema" and row.capabilities.schema_on_demand else "yes"


def rules() -> str:
    """Return the table of model rules; providers with the same rules share their lines."""
    ruled = sorted((row for row in PROVIDERS.values() if row.rules), key=lambda row: _first_with(row.rules))
    rows = (
        [prefixes, codes(rule.names), "; ".join(differences(rule))]
        for same, group in groupby(ruled, key=lambda row: row.rules)
        for prefixes in [codes(row.prefix for row in group)]
        for rule in same
    )
    return table(("prefix", "models", "differ in"), rows)


NO_DOCSTRINGS: Mapping[str, str] = {
    "ProgramEvent": "The union of the events of a program's stream.",
    "__version__": "The version of the package.",
}


def names() -> str:
    """Return a table for each group of public names."""
    listed = {group: sorted(" ".join(modules.values()).split()) for group, modules in GROUPS.items()}
    rows = {group: [(f"`{name}`", meaning_of(name)) for name in found] for group, found in listed.items()}
    return "\n\n".join(f"## {group}\n\n{table(('name', 'meaning'), found)}" for group, found in rows.items())


def meaning_of(name: str) -> str:
    """Return the first sentence of a name's docstring."""
    text = " ".join((inspect.getdoc(getattr(sigwire, name)) or "").split("\n\n")[0].split())
    sentence = re.split(r"(?<=[.])\s+(?=[A-Z`])", text)[0]
    return NO_DOCSTRINGS.get(name, sentence).replace("``", "`").replace("|", "\\|")


ROOMS: Mapping[str, str] = {
    "effects": "settings",
    "durable": "journal",
    "cassettes": "journal",
    "probes": "lm",
    "mcp": "core",
    "media": "signatures",
    "jobs": "evaluate",
    "interpreters": "modules",
}
"""The API pages of rooms without a page of their own."""
API_ROOMS = tuple(
    sorted(path.stem for path in (ROOT / "docs" / "api").glob("*.md") if path.stem not in ("index", "testing", "dspy"))
)


def reference(room: str) -> str:
    """Return an entry for each public name that a room defines."""
    modules = cast(Mapping[str, str], vars(sigwire)["_MODULE_OF"])
    rooms = {name: module.split(".")[1] for name, module in modules.items() if module != "sigwire"}
    return entries(f"{modules[name]}.{name}" for name in rooms if ROOMS.get(rooms[name], rooms[name]) == room)


def reference_of(package: ModuleType) -> str:
    """Return an entry for each name that a package has and ``sigwire`` has not."""
    core = {name: getattr(sigwire, name) for name in sigwire.__all__}
    values = [(name, getattr(package, name)) for name in package.__all__]
    own = [(name, value) for name, value in values if value is not core.get(name)]
    named = {name: getattr(value, "__module__", "") for name, value in own if not isinstance(value, ModuleType)}
    # An alias is described where it is defined.
    modules = cast(Mapping[str, str], vars(package).get("_MODULE_OF", {}))
    named = {name: modules.get(name, module) for name, module in named.items()}
    return entries(
        f"{module if module.startswith('sigwire') else package.__name__}.{name}" for name, module in named.items()
    )


def entries(names: Iterable[str]) -> str:
    return "\n\n".join(f"::: {name}" for name in sorted(names, key=lambda name: name.rpartition(".")[2].lower()))


EXTRAS: Mapping[str, str] = {
    "all": "every extra but LiteLLM",
    "bedrock": "signatures of AWS for Amazon Bedrock ([Models and providers](providers.md#on-a-cloud))",
    "code": "the sandbox for code of models ([Programs that write code](code.md))",
    "data": "Parquet files ([Data](data.md))",
    "langchain": "tools of LangChain ([Tools](tools.md#tools-of-other-libraries))",
    "litellm": "hosts without a row in the [table of providers](providers.md#the-table)",
    "numpy": "vectors of texts, and the search in them ([Retrieval](retrieval.md))",
    "media": "images converted and scaled to the limits of a provider ([Media](media.md))",
    "mcp": "tools of MCP servers ([Tools](tools.md#tools-of-other-libraries))",
    "optuna": "`MIPROv2`, `BootstrapFewShotWithOptuna` ([Optimizers](optimizers.md))",
    "otel": "spans and metrics for OpenTelemetry; SDK and exporter are yours",
    "prices": "prices of models ([Prices and budgets](budgets.md))",
    "rich": "coloured output in a terminal",
    "socks": "SOCKS proxies",
}
"""The purpose of each extra for users."""
FOR_THIS_PROJECT = {"demo", "dev", "docs", "test"}


def extras() -> str:
    """Return the table of the extras of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names = sorted(set(project["optional-dependencies"]) - FOR_THIS_PROJECT)
    return table(("install", "for"), ([f'`pip install "sigwire[{name}]"`', EXTRAS[name]] for name in names))


def missing() -> str:
    """Return the table of DSPy's names that the door lacks on purpose."""
    rows = groupby(INSTEAD, key=INSTEAD.__getitem__)
    return table(("DSPy", "instead"), ([codes(f"dspy.{name}" for name in names), text] for text, names in rows))


def arguments_of(verb: str) -> str:
    """Return the table of the arguments of a verb of the command line."""
    made = argparse.ArgumentParser()
    command_of(verb).add(made)
    rows = [(action, (action.help or "") % vars(action)) for action in made._actions[1:]]  # pyright: ignore[reportPrivateUsage]
    return table(("argument", "meaning"), ([f"`{written_argument(action)}`", text] for action, text in rows))


def written_argument(action: argparse.Action) -> str:
    """Return an argument as it is written: ``--log FILE``."""
    choices = "|".join(map(str, action.choices or ()))
    value = action.metavar or choices or action.dest
    if not action.option_strings:
        return str(value)
    given = action.option_strings[0]
    return given if action.nargs == 0 else f"{given} {str(value) if action.metavar or choices else str(value).upper()}"


def pages() -> str:
    """Return the list of the pages in the order of the nav, each with its first sentence."""
    groups = {
        group: [f"- [{title}]({path}): {summary(path)}" for title, path in listed if _is_first(path)]
        for group, listed in nav().items()
    }
    return "\n\n".join("\n".join([f"### {group}\n", *listed]) for group, listed in groups.items())


def _is_first(path: str) -> bool:
    """Return True for a page that stands alone, and for the first page of a folder."""
    return "/" not in path or path.endswith(("index.md", "README.md"))


TABLES: Mapping[str, Callable[[], str]] = {
    **{f"api {room}": partial(reference, room) for room in API_ROOMS},
    "api dspy": partial(reference_of, sigwire.dspy),
    "api testing": partial(reference_of, sigwire.testing),
    **{f"sigwire {verb.replace('_', '-')}": partial(arguments_of, verb) for verb in VERBS},
    "abilities": abilities,
    "situations": situations,
    "extras": extras,
    "missing": missing,
    "models": models,
    "names": names,
    "pages": pages,
    "rows": addresses,
    "rules": rules,
    "tool errors": tool_errors,
}


# --- cells ---------------------------------------------------------------------------------------------------------


def over_http() -> list[Provider]:
    return [row for row in PROVIDERS.values() if not row.backend]


def codes(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def keys_of(row: Provider) -> str:
    return codes(key.variable for key in row.keys) + (" (optional)" if row.key == "optional" else "")


def address_of(row: Provider) -> str:
    filled = {name: f"{{{name}}}" for name in row.variables}
    base = row.base_url(filled) if callable(row.base_url) else row.base_url
    return f"`{base}`" if base else "yours"


def differences(rule: ModelRule) -> list[str]:
    """Return the facts of a rule that differ from the rest of its row."""
    usual = ModelFacts()
    texts = [f"{name}: {'yes' if value else 'no'}" for name, value in rule.capabilities.items()]
    texts += [
        f"{name}: {_words(value)}"
        for name in ModelFacts.__slots__
        if (value := getattr(rule.facts, name)) != getattr(usual, name)
    ]
    texts += [f"over {rule.wire}"] if rule.wire else []
    return texts + ([f"tools over {rule.tools_wire}"] if rule.tools_wire else [])


def _words(value: object) -> str:
    return ", ".join(map(str, cast("tuple[object, ...]", value))) if isinstance(value, tuple) else str(value)


def _first_with(rules: tuple[ModelRule, ...]) -> int:
    return next(number for number, row in enumerate(PROVIDERS.values()) if row.rules == rules)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
