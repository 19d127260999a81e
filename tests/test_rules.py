"""Each rule of the house, broken once in a made-up package and kept in a sound one."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from tests import figures, rules

PYPROJECT = """
[[tool.importlinter.contracts]]
type = "layers"
layers = ["(shop.cli)", "shop.orders | shop.stock", "shop.core"]
[[tool.importlinter.contracts]]
type = "layers"
containers = ["shop.orders"]
layers = ["book", "line"]
"""
CONTRIBUTING = "# Working on shop\n\nThe rooms:\n\n    cli → (orders | stock) → core\n\nThat is all.\n"
SOUND = {
    "../pyproject.toml": PYPROJECT,
    "../CONTRIBUTING.md": CONTRIBUTING,
    "__init__.py": '"""A shop.\n\ncli    the commands   orders  of customers\nstock  the shelves    core    values\n"""',
    "cli.py": "from shop.orders import book",
    "orders/__init__.py": '"""Orders: ``book`` (all orders) and ``line`` (a row of one)."""',
    "orders/book.py": "from shop.orders.line import Line",
    "orders/line.py": "import zlib\nfrom shop.core import Value\nclass Line: BUILDER = 'shop.core:line'\nzlib.compress(b'')",
    "stock.py": "import os\nos.register_at_fork(print)",
    "core.py": "class Value: pass\ndef line_card(): a.result(1)\ndef line_text(): pass\nTABLE = {\n  1:  2}  # fmt: skip",
}  # fmt: skip
HOMES = {"zlib.compress": ["orders/line.py"], "os.register_at_fork": ["stock.py"], "sqlite3.connect": []}

RULES: dict[str, Callable[[Path], list[rules.Break]]] = {
    "siblings": rules.siblings_have_no_circle,
    "modules": rules.modules_have_no_circle,
    "imports": lambda package: rules.imports_are_few(package, {}),
    "texts": rules.texts_name_modules,
    "text layers": rules.texts_point_down,
    "docstrings": rules.docstrings_are_maps,
    "layers": rules.contributing_lists_the_layers,
    "homes": lambda package: rules.facts_have_one_home(package, HOMES),
    "classes": lambda package: rules.class_names_are_unique(package, "orders"),
    "layout": rules.layout_is_not_by_hand,
    "waits": lambda package: rules.waits_are_in_slices(package, {"core.py": "a name"}),
}

PARTS = {f"m{n}.py": "" for n in range(26)}
IMPORTS = "".join(f"import shop.m{n}\n" for n in range(26))
ORDERS = '"""Orders.\n\nbook   all orders\nline   rows\n"""'

# rule, the files of the sound package that are changed, the place of the break, words of its text
PLANTED: list[tuple[str, dict[str, str], str, str]] = [
    ("siblings", {"core.py": "def late():\n    from shop.orders.line import Line"}, "shop", "orders/line.py -> shop/core.py"),
    ("siblings", {"orders/line.py": "def late():\n    import shop.orders.book"}, "shop/orders", "book, line"),
    ("siblings", {"orders/line.py": "def late():\n    import shop.orders.book"}, "shop/orders", "orders/line.py -> shop"),
    ("modules", {"orders/line.py": "if TYPE_CHECKING:\n    import shop.orders.book"}, "shop/orders/book.py", "orders.line"),
    ("imports", {"cli.py": IMPORTS, **PARTS}, "shop/cli.py", "imports 26 modules"),
    ("texts", {"stock.py": "BUILDER = 'shop.core:card'"}, "shop/stock.py", "'shop.core:card' in line 1 names no module"),
    ("texts", {"stock.py": "BUILDER = 'shop.core:lin'"}, "shop/stock.py", "names no module"),
    ("texts", {"stock.py": "LINE = 'shop.orders.rows.Line'"}, "shop/stock.py", "'shop.orders.rows.Line' in line 1 names no"),
    ("texts", {"stock.py": "import_module(f'shop.rows.{name}')"}, "shop/stock.py", "'shop.rows.' in line 1 names no module"),
    ("text layers", {"core.py": "LINE = 'shop.orders.line:Line'"}, "shop/core.py", "an import that points upwards"),
    ("text layers", {"core.py": "LINE = 'shop.orders.line.Line'"}, "shop/core.py", "upwards"),
    ("text layers", {"stock.py": "def late(): importlib.import_module('shop.cli')"}, "shop/stock.py", "upwards"),
    ("text layers", {"stock.py": "LINE = 'shop.orders.line:Line'"}, "shop/stock.py", "sideways"),
    ("text layers", {"orders/line.py": "class Line: pass\nBOOK = 'shop.orders.book:Line'"}, "shop/orders/line.py", "upwards"),
    ("docstrings", {"orders/index.py": ""}, "shop/orders/__init__.py", "does not name index"),
    ("docstrings", {"orders/__init__.py": '"""The book, a line."""'}, "shop/orders/__init__.py", "not name book, line"),
    ("docstrings", {"orders/__init__.py": ORDERS.replace("line", "line, index")}, "shop/orders/__init__.py", "names index"),
    ("docstrings", {"orders/old/__init__.py": ""}, "shop/orders/__init__.py", "does not name old"),
    ("layers", {"../CONTRIBUTING.md": CONTRIBUTING.replace(" | stock", "")}, "CONTRIBUTING.md", "cli → orders | stock → core"),
    ("layers", {"../CONTRIBUTING.md": "    cli → core → (orders | stock)"}, "CONTRIBUTING.md", "differs"),
    ("layers", {"__init__.py": '"""``cli orders stock core``"""', "shipping.py": ""}, "shop/shipping", "in no layer"),
    ("homes", {"cli.py": "import zlib as z\nz.compress(b'')"}, "shop/cli.py", "whose home is shop/orders/line.py"),
    ("homes", {"cli.py": "from zlib import compress"}, "shop/cli.py", "zlib.compress"),
    ("homes", {"core.py": "def late():\n    import sqlite3\n    sqlite3.connect('')"}, "shop/core.py", "sqlite3.connect"),
    ("homes", {"stock.py": ""}, "shop/stock.py", "does not use it"),
    ("classes", {"stock.py": "class _Value: pass"}, "shop/stock.py", "Value is also in shop/core.py"),
    ("waits", {"cli.py": "def f(thread):\n    thread.join()"}, "shop/cli.py", "an untimed wait in line 2"),
    ("waits", {"cli.py": "lock.acquire()"}, "shop/cli.py", "an untimed wait"),
    ("waits", {"cli.py": "done.wait()"}, "shop/cli.py", "an untimed wait"),
    ("waits", {"cli.py": "x = future.result(timeout=60)"}, "shop/cli.py", "an untimed wait"),
    ("waits", {"core.py": "', '.join([])\na.result(0)\nasync def f():\n    await b.wait()"}, "shop/core.py", "a row in"),
    ("layout", {"stock.py": "def f():\n    x =  1  # fmt: skip"}, "shop/stock.py", "in line 2"),
    ("layout", {"stock.py": "class A:\n    ROWS = [1,\n  2]  # fmt: skip"}, "shop/stock.py", "in line 3"),
    ("layout", {"stock.py": "from a import (b,\n  c)  # fmt: skip"}, "shop/stock.py", "in line 2"),
    ("layout", {"stock.py": "A = [x for x in\n  y]  # fmt: skip"}, "shop/stock.py", "in line 2"),
    ("layout", {"stock.py": "# fmt: off\nA = [1,\n  2]"}, "shop/stock.py", "in line 1"),
]  # fmt: skip


def shop(folder: Path, changes: dict[str, str]) -> Path:
    """Write the sound package with some files changed; return its folder."""
    for name, text in {**SOUND, **changes}.items():
        path = folder / "shop" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return folder / "shop"


@pytest.mark.parametrize("rule", RULES)
def test_rule_is_kept_by_a_sound_package(rule: str, tmp_path: Path) -> None:
    assert RULES[rule](shop(tmp_path, {})) == []


@pytest.mark.parametrize(("rule", "changes", "place", "words"), PLANTED)
def test_broken_rule_names_the_place(
    rule: str, changes: dict[str, str], place: str, words: str, tmp_path: Path
) -> None:
    (found,) = RULES[rule](shop(tmp_path, changes))
    assert found.place == place
    assert words in str(found)
    assert found.advice


def test_every_rule_has_a_planted_break() -> None:
    assert {rule for rule, *_ in PLANTED} == RULES.keys()


def test_imports_of_type_checkers_make_no_circle_of_siblings(tmp_path: Path) -> None:
    package = shop(
        tmp_path, {"orders/line.py": "if TYPE_CHECKING:\n    import shop.orders.book\nelse:\n    import shop.core"}
    )
    assert figures.sibling_circles(package) == []
    assert figures.imports_by_module(package)["shop.orders.line"] == {"shop.core"}


def test_wide_file_has_a_row_with_its_reason_while_it_is_wide(tmp_path: Path) -> None:
    package = shop(tmp_path, {"cli.py": IMPORTS, **PARTS})
    assert rules.imports_are_few(package, {"shop/cli.py": "the commands"}) == []
    (found,) = rules.imports_are_few(package, {"shop/cli.py": ""})
    assert "Write the reason" in str(found)
    (found,) = rules.imports_are_few(package, {"shop/cli.py": "the commands", "shop/core.py": "values"})
    assert str(found) == "shop/core.py: imports 0 modules and has a row in WIDE. Remove the row."


def test_name_of_a_class_in_files_is_no_import(tmp_path: Path) -> None:
    package = shop(tmp_path, {"stock.py": "OLD = 'shop.orders.rows.Line'"})
    assert rules.texts_name_modules(package, {"shop.orders.rows.Line"}) == []


def test_class_of_the_door_may_have_the_name_of_a_class(tmp_path: Path) -> None:
    assert rules.class_names_are_unique(shop(tmp_path, {"orders/book.py": "class Value: pass"}), "orders") == []


def test_texts_that_name_no_module_are_free(tmp_path: Path) -> None:
    text = "LOG = 'shop.cli'\nKEY = 'shop.example.id'\ndef f():\n    'shop.orders.nothing'\nprint('See shop.orders.nothing.')"
    assert figures.hidden_imports(shop(tmp_path, {"stock.py": text})) == [
        figures.HiddenImport("shop.orders.line", "shop/orders/line.py", 3, "shop.core:line", "shop.core")
    ]


BIG = "\n".join(
    [
        "def branchy(a):",
        *(f"    if a == {n}:\n        return {n}" for n in range(11)),
        "    return a",
        "ROWS = [",
        *(f"    {n}," for n in range(600)),
        "]",
    ]
)


def test_size_breaks_no_rule(tmp_path: Path) -> None:
    names = [f"part_{n}" for n in range(16)]
    package = shop(
        tmp_path,
        {
            "stock.py": f"import os\nos.register_at_fork(print)\n{BIG}",
            **{f"orders/{name}.py": f"class {name.title()}: pass" for name in names},
            "orders/__init__.py": '"""Orders.\n\nbook, line  rows\n'
            + "".join(f"{name}  a part\n" for name in names)
            + '"""',
        },
    )
    assert max(figures.line_counts(package).values()) > 600
    assert figures.files_by_folder(package)["shop/orders"] == 19
    assert figures.complex_functions(package=package)[0] == {"shop/stock.py:3 branchy": 12}
    assert {rule: breaks for rule in RULES if (breaks := RULES[rule](package))} == {}


def test_tokens_count_code_and_no_layout(tmp_path: Path) -> None:
    plain = shop(tmp_path / "plain", {"core.py": "A = f(1, 2)"})
    spaced = shop(tmp_path / "spaced", {"core.py": '"""Values."""\n# a comment\nA = f(\n    1, 2\n)\n'})
    assert figures.token_count(plain) == figures.token_count(spaced)
    longer = shop(tmp_path / "longer", {"core.py": "A = f(1, 2, 3)"})
    assert figures.token_count(longer) == figures.token_count(plain) + 2


def test_figures_count_callers_words_and_switches(tmp_path: Path) -> None:
    package = shop(
        tmp_path, {"stock.py": "# Shop\ndef f():\n    x =  core(1)  # fmt: skip\n\n# shop\n", "cli.py": "core.core()"}
    )
    assert figures.callers_of("core", package=package) == ["shop/stock.py"]
    assert figures.lines_with("SHOP", package, but="orders") == {"shop/__init__.py": 1, "shop/stock.py": 2}
    assert figures.formatter_switches(package) == (1, 1)
    assert figures.code_lines(package) == 13
