"""The rules of the house: what importing costs, what the front door shows, what no file may do."""

from __future__ import annotations

import ast
import functools
import importlib
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import sigwire
from tests import rules
from tests.figures import nodes, trees
from tests.language import hits_in

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "sigwire"
FILES = sorted(PACKAGE.rglob("*.py"))


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(tree: ast.Module) -> set[str]:
    """Every module that a file imports, wherever the import stands."""
    names: set[str] = set()
    for node in nodes(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
    return names


def called(tree: ast.Module) -> set[str]:
    """Every plain name that a file calls."""
    return {node.func.id for node in nodes(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}


# --- what importing does ---------------------------------------------------------------------------

# Run in an interpreter of its own, which reports what happened while the statement ran.
AUDIT = """
import json, sys, threading
events = []
sys.addaudithook(lambda event, args: events.append(event))
before = set(sys.modules)
{statement}
import threading
print(json.dumps({{
    "events": sorted(set(events)),
    "modules": sorted(set(sys.modules) - before),
    "threads": threading.active_count(),
}}))
"""
LATE = {
    "aiohttp",
    "asyncio",
    "docstring_parser",
    "http",
    "httptools",
    "httpx",
    "jsonschema",
    "litellm",
    "pydantic",
    "pyreqwest",
    "ssl",
}
FIRST_PREDICT = "import sigwire; sigwire.Predict('question, k: int -> answer, sure: bool')"
REACHING_OUT = {"socket.__new__", "socket.connect", "socket.getaddrinfo", "subprocess.Popen", "os.fork", "os.system"}


@functools.cache
def audit(statement: str) -> dict[str, list[str]]:
    script = AUDIT.format(statement=statement)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT)
    return json.loads(done.stdout)


def test_importing_sigwire_loads_nothing_heavy() -> None:
    seen = audit("import sigwire")
    assert {name.partition(".")[0] for name in seen["modules"]} & LATE == set()
    assert [name for name in seen["modules"] if name.startswith("sigwire.")] == []


def test_first_predict_of_plain_fields_loads_nothing_heavy() -> None:
    seen = audit(FIRST_PREDICT)
    assert {name.partition(".")[0] for name in seen["modules"]} & LATE == set()


@pytest.mark.parametrize(
    "statement",
    [
        "sigwire.Predict('question -> answers: list[str]')",
        "sigwire.Predict(sigwire.Signature({'a': (str, sigwire.InputField()), 'b': (int, sigwire.OutputField())}))",
    ],
)
def test_field_declarations_load_pydantic_and_nothing_else_heavy(statement: str) -> None:
    seen = audit(f"import sigwire; {statement}")
    assert {name.partition(".")[0] for name in seen["modules"]} & LATE == {"pydantic"}


@pytest.mark.parametrize(
    "statement",
    ["import sigwire", "from sigwire import *", FIRST_PREDICT],
)
def test_importing_and_declaring_opens_no_socket_and_starts_no_thread(statement: str) -> None:
    seen = audit(statement)
    assert set(seen["events"]) & REACHING_OUT == set()
    assert seen["threads"] == 1


# --- the front door --------------------------------------------------------------------------------


NO_OPTIONS = {
    "keywords are fields, or metadata of a field": "Example InputField OutputField Prediction",
    "keywords are options of the user's own model": "BaseLM",
    "marks a type, and makes no value": "Injected",
    "values that calls make, and listeners: a check would cost every call, and Python's TypeError names the keyword": (
        "AgentRun ApprovalAsked AskStart BaseCallback BatchRun CallReport Choice Compacted Comparison Completions DataSplit "
        "EvaluationProgress EvaluationResult ExampleDone ExperimentPlan ExperimentProgress ExperimentResult FetchedFile "
        "FieldDelta FieldEnd FieldPartial Finished Fold LMWarning LanguageModel LimitState Loss MapResult Message ModelCall "
        "OptimizationReport PendingCall PointDone PortableHistory Preview ProgramDifference ReActStep Reasoned Reasoning "
        "ReasoningDelta Repair Reproduction Request Response Score SearchProgress TextDelta ToolCall ToolCallDelta "
        "ToolCallEnd ToolCallStart ToolCalls ToolDone ToolResult Usage UsageUpdate Verification Where"
    ),
}
NEEDED: dict[str, tuple[object, ...]] = {
    "BatchLM": ("openai/gpt-4.1", "x.batch"),
    "LM": ("openai/gpt-4.1",), "Predict": ("q -> a",), "ChainOfThought": ("q -> a",), "ReAct": ("q -> a",), "Tool": (len,),
    "Embedder": ("offline/lexical",), "MultiChainComparison": ("q -> a",),
    "CodeAct": ("q -> a",), "ProgramOfThought": ("q -> a",), "RLM": ("q -> a",), "Router": (["openai/gpt-4.1"],),
}  # fmt: skip
EXEMPT = {name for names in NO_OPTIONS.values() for name in names.split()}
CONSTRUCTORS = [
    name
    for name in sigwire.__all__
    if isinstance(cls := getattr(sigwire, name), type) and not issubclass(cls, BaseException) and name not in EXEMPT
]


@pytest.mark.parametrize("name", [*CONSTRUCTORS, "configure"])
def test_constructor_refuses_an_unknown_keyword_by_name(name: str) -> None:
    with sigwire.context(lm=sigwire.FakeLM()), pytest.raises(sigwire.CallerError, match="'nonsense'"):
        getattr(sigwire, name)(*NEEDED.get(name, ()), nonsense=1)


def test_context_refuses_an_unknown_setting_by_name() -> None:
    with pytest.raises(sigwire.CallerError, match="'nonsense'"), sigwire.context(nonsense=1):
        pass


def _by_case(name: str) -> tuple[int, str]:
    """Constants, classes, functions: the order in which ruff sorts ``__all__``."""
    kind = 0 if name.isupper() and name.isidentifier() else 1 if name[:1].isupper() else 2
    return kind, name


# --- what no file may do -----------------------------------------------------------------------------


@pytest.mark.long
def test_every_file_declares_a_sorted_all_whose_names_exist() -> None:
    assert {relative(path): problem for path in FILES if (problem := problem_of_all(path))} == {}


def problem_of_all(path: Path) -> str:
    """Return what is wrong with the ``__all__`` of a file; "" if nothing is."""
    faces = [
        node.value
        for node in trees()[path].body
        if isinstance(node, ast.Assign) and [getattr(target, "id", "") for target in node.targets] == ["__all__"]
    ]
    has_public = any(
        isinstance(node, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef) and not node.name.startswith("_")
        for node in trees()[path].body
    )
    if not faces:
        return "public functions or classes, and no __all__" if has_public else ""
    if isinstance(faces[0], ast.Call):  # sorted(...) of a table: tests/test_names.py
        return ""
    face = ast.literal_eval(faces[0])
    if face != sorted(face, key=_by_case):
        return "not sorted"
    module = importlib.import_module(relative(path).removesuffix(".py").replace("/", ".").removesuffix(".__init__"))
    return ", ".join(f"no {each}" for each in face if not hasattr(module, each))


def test_every_file_opens_with_a_docstring() -> None:
    assert [relative(path) for path in FILES if not ast.get_docstring(trees()[path])] == []


RUNS_TEXT = "sigwire/interpreters/cpython.py"
"""The program that ``SubprocessInterpreter`` starts in a process of its own. No other file imports it."""
PICKLES = {"pickle", "cloudpickle", "dill", "marshal", "shelve"}


@pytest.mark.long
def test_no_file_pickles_imports_the_front_door_or_runs_text() -> None:
    imports = {path: imported(tree) for path, tree in trees().items()}
    packages = {path: {name.partition(".")[0] for name in names} for path, names in imports.items()}
    assert [relative(path) for path, names in packages.items() if names & PICKLES] == []
    # The door has every name of the front door.
    through = [path for path in FILES if "sigwire" in imports[path] and path != PACKAGE / "dspy" / "__init__.py"]
    assert [relative(path) for path in through] == []
    runs_text = [path for path in FILES if called(trees()[path]) & {"eval", "exec", "compile", "__import__"}]
    assert [relative(path) for path in runs_text] == [RUNS_TEXT]


PROJECT_FILES = [
    *FILES,
    *(ROOT / "examples").glob("*.py"),
    *(ROOT / "benchmarks").glob("*.py"),
    *(ROOT / "docs").rglob("*.md"),
    *ROOT.glob("*.md"),
    ROOT / "Makefile",
    ROOT / "pyproject.toml",
]
# "/home/ada" is allowed: the documentation's example of a path that must not reach a model.
MACHINE_PATH = re.compile(r"(?<![\w./])/(?:home/(?!ada\b)\w{3}|Users/\w{3}|root/\w|work/\w|opt/\w)")


def test_no_file_contains_a_path_of_a_machine() -> None:
    found = {relative(path): MACHINE_PATH.findall(path.read_text(encoding="utf-8")) for path in PROJECT_FILES}
    assert {name: paths for name, paths in found.items() if paths} == {}


def test_package_has_the_py_typed_marker() -> None:
    assert (PACKAGE / "py.typed").exists()


# --- the rules of the house (tests/rules.py); tests/test_rules.py breaks each in a made-up package -------

HOMES: dict[str, list[str]] = {
    "sqlite3.connect": ["files/database.py"],
    "fcntl": ["files/lock.py"],
    "os.register_at_fork": ["effects/forks.py"],
    "os.fsync": ["files/lines.py", "files/whole.py"],
    "tempfile.NamedTemporaryFile": [],
    "zlib.compress": ["files/packing.py"],
    "zlib.compressobj": [],
    "zlib.decompress": [],
    # HTTP decodes bodies as they arrive.
    "zlib.decompressobj": ["files/packing.py", "lm/http/compression.py"],
    "queue": ["effects/inbox.py"],
    "time.sleep": ["effects/waiting.py"],
    "bz2": [],
    "gzip": [],
    "lzma": [],
}
"""A module or a name of one, and the files that may use it: one home a fact."""

WIDE: dict[str, str] = {
    "sigwire/evaluate/result.py": "the face of an evaluation: its figures, parts, comparisons, exports and cards",
    "sigwire/lm/http_backend.py": "it drives what the other files of the room decide, for one exchange",
    "sigwire/modules/agents/run_state.py": "the state of a run: each part of the room keeps its own there",
    "sigwire/modules/predict.py": "it reads each choice of a call once: model, adapter, demos, tools, evidence, settings",
}
"""The files that import more than 25 modules of the package, each with the reason."""

WAITS: dict[str, str] = {
    "adapters/prompts/turns.py": "the text of a tool's result",
    "jobs/submissions.py": "a future of a foreign executor, which is done",
    "lm/offline/filling.py": "the arguments of a draft",
    "testing/server.py": "the thread of the server",
}
"""The files with calls that look like untimed waits, each with the reason."""

NAMES_IN_FILES = {"sigwire.lm.router.router.Router": "the class of a Router in saved files, from its first place"}
"""Texts that look like imports and are names in files on disk, each with the reason."""

RULES: dict[str, Callable[[], list[rules.Break]]] = {
    "no circle among siblings": lambda: rules.siblings_have_no_circle(PACKAGE),
    "no circle of modules": lambda: rules.modules_have_no_circle(PACKAGE),
    "imports of a file are few": lambda: rules.imports_are_few(PACKAGE, WIDE),
    "an import as text names a module": lambda: rules.texts_name_modules(PACKAGE, NAMES_IN_FILES),
    "an import as text keeps the layers": lambda: rules.texts_point_down(PACKAGE),
    "a package docstring is a map": lambda: rules.docstrings_are_maps(PACKAGE),
    "CONTRIBUTING lists the layers": lambda: rules.contributing_lists_the_layers(PACKAGE),
    "one home a fact": lambda: rules.facts_have_one_home(PACKAGE, HOMES),
    "class names are unique": lambda: rules.class_names_are_unique(PACKAGE, "dspy"),
    "blocking waits are in slices": lambda: rules.waits_are_in_slices(PACKAGE, WAITS),
    "no layout by hand": lambda: rules.layout_is_not_by_hand(PACKAGE),
}


@pytest.mark.long
@pytest.mark.parametrize("rule", RULES)
def test_house_keeps_the_rule(rule: str) -> None:
    broken = [str(each) for each in RULES[rule]()]
    assert not broken, "\n".join([*broken, f"(The rule: {rule}; CONTRIBUTING.md, Rules of the house.)"])


# --- words --------------------------------------------------------------------------------------------

FOLDERS = ("sigwire", "tests", "benchmarks", "examples", "docs")
LANGUAGE_FOLDERS = sorted({path.parent for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")})


@pytest.mark.long
@pytest.mark.parametrize("folder", LANGUAGE_FOLDERS, ids=relative)
def test_files_of_a_folder_use_the_words_of_the_glossary(folder: Path) -> None:
    assert [str(hit) for path in sorted(folder.glob("*.py")) for hit in hits_in(path)] == []
