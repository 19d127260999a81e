"""The public names: one table, and what is made from it: stubs, advice, the page of names, help."""

from __future__ import annotations

import ast
import importlib
import os
import pydoc
import re
import shutil
import subprocess
import sys
import traceback
from pathlib import Path
from types import ModuleType

import pytest
import stubs

import sigwire
import sigwire.dspy

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "sigwire"
GROUPS: dict[str, dict[str, str]] = vars(sigwire)["_NAMES"]
NAMES_OF_GROUP = {group: " ".join(modules.values()).split() for group, modules in GROUPS.items()}
MOST_IN_A_GROUP = 40
PACKAGES = pytest.mark.parametrize("package", [sigwire, sigwire.dspy], ids=lambda package: package.__name__)


def homes(package: ModuleType) -> dict[str, str]:
    """Return the module of each name of a package."""
    core: dict[str, str] = vars(sigwire)["_MODULE_OF"]
    if package is sigwire:
        return core
    folders = dict.fromkeys(vars(package)["_FOLDERS"], package.__name__)
    return {**core, **vars(package)["_MODULE_OF"], **folders}


# --- the table ---------------------------------------------------------------------------------------


def test_every_name_is_in_one_group_and_groups_are_small() -> None:
    listed = [name for names in NAMES_OF_GROUP.values() for name in names]
    assert sorted(listed) == sigwire.__all__
    assert {group: len(names) for group, names in NAMES_OF_GROUP.items() if len(names) > MOST_IN_A_GROUP} == {}


@PACKAGES
def test_every_public_name_loads_from_the_module_of_the_table(package: ModuleType) -> None:
    found = homes(package)
    assert sorted(found) == package.__all__ == dir(package)
    for name, module in found.items():
        assert getattr(package, name) is getattr(importlib.import_module(module), name)


def test_rows_of_the_table_name_files_where_the_name_is_defined() -> None:
    # A package that lists names of its files would be a second table. settings and __version__ are defined beside their use.
    packages = {module for module in homes(sigwire).values() if hasattr(importlib.import_module(module), "__path__")}
    assert packages == {"sigwire"}


@PACKAGES
def test_star_import_gives_every_name(package: ModuleType) -> None:
    namespace: dict[str, object] = {}
    exec(f"from {package.__name__} import *", namespace)
    assert {*package.__all__} - namespace.keys() == set()


def test_settings_stays_the_object_when_the_module_of_that_name_is_imported() -> None:
    importlib.import_module("sigwire.settings")
    assert not isinstance(sigwire.settings, ModuleType)
    assert "lm" in sigwire.settings


# --- what is made from it ------------------------------------------------------------------------------


@pytest.mark.parametrize("path", stubs.FILES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_made_file_is_that_of_the_tables(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == stubs.FILES[path](), "run python docs/tables.py"


@PACKAGES
def test_stub_has_the_names_that_load_from_the_modules_where_they_are(package: ModuleType) -> None:
    tree = ast.parse(stub_of(package).read_text(encoding="utf-8"))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.name: node.module for node in imports for alias in node.names}
    seen |= {ast.unparse(node.target): package.__name__ for node in tree.body if isinstance(node, ast.AnnAssign)}
    (face,) = [node.value for node in tree.body if isinstance(node, ast.Assign)]
    assert seen == homes(package)
    assert sorted(ast.literal_eval(face)) == package.__all__


def test_stub_of_sigwire_has_the_groups_as_comments() -> None:
    text = stub_of(sigwire).read_text(encoding="utf-8")
    assert re.findall(r"\n\n# (.+)\n", text) == [*GROUPS]


@PACKAGES
def test_ruff_would_change_nothing_in_a_stub(package: ModuleType) -> None:
    pytest.importorskip("ruff")
    for command in (["format", "--check"], ["check"]):
        done = subprocess.run(
            [sys.executable, "-m", "ruff", *command, str(stub_of(package))], cwd=ROOT, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout


def stub_of(package: ModuleType) -> Path:
    return Path(str(package.__file__)).with_suffix(".pyi")


def test_page_of_names_and_help_show_the_groups() -> None:
    page = (ROOT / "docs" / "names.md").read_text(encoding="utf-8")
    sections = dict(re.findall(r"^## (.+)\n\n((?:\|.*\n)+)", page, re.MULTILINE))
    shown = pydoc.plain(pydoc.render_doc(sigwire))
    for group, names in NAMES_OF_GROUP.items():
        assert re.findall(r"^\| `(\w+)` \|", sections[group], re.MULTILINE) == sorted(names)
        paragraph = shown.partition(f"\n    {group}\n")[2].partition("\n    \n")[0]
        assert re.findall(r"\w+", paragraph.partition("\n\n")[0]) == names
    assert [*sections] == [*GROUPS]


# --- unknown names ---------------------------------------------------------------------------------------


def test_unknown_name_is_an_attribute_error_with_advice() -> None:
    with pytest.raises(AttributeError, match=r"\(.+\)\. Did you mean Predict\? dir\(sigwire\) lists them\.$"):
        _ = sigwire.Predictor  # type: ignore[attr-defined]


def test_error_names_the_door_for_names_that_only_the_door_has() -> None:
    only = {*sigwire.dspy.__all__} - {*sigwire.__all__}
    of_both = {name for name in only if (PACKAGE / name).exists()}  # modules of sigwire, if they are imported
    assert of_both == {"adapters", "evaluate", "signatures"}
    for name in only - of_both:
        with pytest.raises(AttributeError, match=rf"no public name '{name}' \(.+\)\. It is in sigwire\.dspy: import"):
            getattr(sigwire, name)


@pytest.mark.parametrize("name", ["dspy", "testing"])
def test_error_names_the_import_of_a_module(name: str) -> None:
    program = f"import sigwire\ntry: sigwire.{name}\nexcept AttributeError as error: print(error)"
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    text = f"The module sigwire.{name} is not imported yet (reading an attribute). Write import sigwire.{name}.\n"
    assert done.stdout == text


@pytest.mark.parametrize("name", ["foo.bar", "modules.predict", "no name", "", "."])
def test_name_that_is_no_identifier_is_absent(name: str) -> None:
    assert not hasattr(sigwire, name)


@PACKAGES
def test_error_of_an_unknown_name_suggests_one_once(package: ModuleType) -> None:
    with pytest.raises(AttributeError) as caught:  # one text for notebooks, and no second one by Python
        _ = package.Predct
    shown = "".join(traceback.format_exception(caught.value))
    assert shown.count("Did you mean") == shown.count("Did you mean Predict? ") == 1


# --- packages with names of their own ----------------------------------------------------------------

SHORT_PATHS = {
    "sigwire.evaluate.metrics": "EM F1 Agreement SemanticF1 contains f1_score json_match majority_judge tool_call_match",
    "sigwire.interpreters": "CodeLimits MontyInterpreter SubprocessInterpreter",
    "sigwire.modules.code": "CodeAct ProgramOfThought RLM",
}


@pytest.mark.parametrize("path", SHORT_PATHS)
def test_package_gives_names_of_its_files(path: str) -> None:
    package = importlib.import_module(path)
    assert {*SHORT_PATHS[path].split()} <= {*package.__all__}
    for name in package.__all__:
        assert getattr(package, name) is getattr(sigwire, name, getattr(package, name))


# --- a new name ------------------------------------------------------------------------------------------

METRIC = '''

def starts_with(field: str) -> Callable[..., bool]:
    """Return a metric: True if the prediction's text starts with the example's."""
    return lambda example, prediction, trace=None: str(prediction[field]).startswith(example[field])
'''
COPIED = ("sigwire", "docs", "tests", "benchmarks", "README.md", "mkdocs.yml", "pyproject.toml")
USE = "import sigwire, sigwire.dspy as dspy; print(sigwire.starts_with is dspy.starts_with, sigwire.starts_with('a'))"


@pytest.mark.long
def test_new_metric_is_a_function_and_one_word_of_the_table(tmp_path: Path) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, tmp_path)
    answers = tmp_path / "sigwire" / "evaluate" / "metrics" / "answers.py"
    text = answers.read_text(encoding="utf-8")
    answers.write_text(text.replace('"contains", ', '"contains", "starts_with", ') + METRIC, encoding="utf-8")
    front = tmp_path / "sigwire" / "__init__.py"
    text = front.read_text(encoding="utf-8")
    front.write_text(text.replace("contains within", "contains starts_with within"), encoding="utf-8")

    assert run(tmp_path, "docs/tables.py", "--check").returncode == 1
    wrote = run(tmp_path, "docs/tables.py")
    assert wrote.returncode == 0, wrote.stderr
    made = {line.removeprefix("wrote ") for line in wrote.stdout.splitlines()}
    stubs = {"sigwire/__init__.pyi", "sigwire/dspy/__init__.pyi", "sigwire/evaluate/metrics/__init__.pyi"}
    stubs_and_pages = {*stubs, "docs/names.md", "docs/api/evaluate.md"}
    assert made - {"tests/release/api.txt"} == stubs_and_pages
    assert run(tmp_path, "docs/tables.py", "--check").returncode == 0
    assert run(tmp_path, "-c", USE).stdout.startswith("True <function")
    tests = run(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long", "tests/test_names.py")
    assert tests.returncode == 0, tests.stdout


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python in a copy of the project, whose package comes first."""
    environment = {**os.environ, "PYTHONPATH": str(folder)}
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True)
