"""The names of spans, metrics and events, compared with those of the conventions."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

import sigwire.observe.tracing as room
from sigwire.observe.tracing import names
from sigwire.observe.tracing.metrics import AGENT_SECONDS, CALL_SECONDS, TOKENS

PAGE = (Path(__file__).parents[1] / "data" / "gen_ai_names.md").read_text(encoding="utf-8")
SECTIONS: Mapping[str, list[list[str]]] = {
    title: [line.split() for line in body.splitlines() if line.startswith("    ")]
    for title, body in re.findall(r"^## (.+)\n((?:(?!## ).*\n)+)", PAGE, re.MULTILINE)
}
FIRST = {title: {words[0] for words in lines} for title, lines in SECTIONS.items()}
USED = {name: value for name, value in vars(names).items() if name.isupper() and isinstance(value, str)}
OPERATIONS = {"CHAT", "EXECUTE_TOOL", "INVOKE_AGENT", "INVOKE_WORKFLOW"}


def test_each_name_is_in_the_conventions_or_begins_with_sigwire() -> None:
    assert {USED[name] for name in OPERATIONS} <= FIRST["Operations"]
    general = FIRST["Attributes of the general conventions"]
    others = {value for name, value in USED.items() if name not in OPERATIONS and not value.startswith("sigwire.")}
    assert others <= FIRST["Attributes"] | general | FIRST["Events"] | FIRST["Metrics"]


def test_no_name_is_superseded_and_names_are_used_once() -> None:
    assert not FIRST["Superseded"] & set(USED.values())
    assert len(set(USED.values())) == len(USED)


def test_every_name_of_another_spelling_is_one_of_a_provider_in_the_conventions() -> None:
    assert set(names.PROVIDER_NAMES.values()) <= FIRST["Providers"]


def test_buckets_are_those_of_the_helper() -> None:
    bounds = {words[0]: [float(word) for word in words[1:]] for words in SECTIONS["Metrics"]}
    assert bounds == {
        names.OPERATION_DURATION: pytest.approx(list(CALL_SECONDS)),
        names.EXECUTE_TOOL_DURATION: pytest.approx(list(CALL_SECONDS)),
        names.INVOKE_AGENT_DURATION: pytest.approx(list(AGENT_SECONDS)),
        names.TOKEN_USAGE: pytest.approx(list(TOKENS)),
    }


def test_no_other_file_of_tracing_writes_names() -> None:
    for path in Path(str(room.__file__)).parent.glob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        documents = {id(node.body[0].value) for node in ast.walk(tree) if _has_docstring(node)}  # type: ignore[attr-defined]
        texts = [node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
        written = [text.value for text in texts if id(text) not in documents and str(text.value).startswith("gen_ai.")]
        assert path.name == "names.py" or written == []


def test_page_has_every_name_and_no_other() -> None:
    page = (Path(__file__).parents[3] / "docs" / "tracing.md").read_text(encoding="utf-8")
    written = set(re.findall(r"`((?:gen_ai|error|exception|server)\.[\w.]+|sigwire\.[\w.]+)`", page))
    ours = {value for value in USED.values() if "." in value}
    assert ours - written == set()
    assert {name for name in written - ours if not name.startswith("sigwire.")} == set()


def _has_docstring(node: ast.AST) -> bool:
    is_scope = isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef)
    return is_scope and ast.get_docstring(node) is not None  # type: ignore[arg-type]


def test_superseded_names_are_those_of_the_installed_conventions() -> None:
    installed = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    known = {value for name, value in vars(installed).items() if name.startswith("GEN_AI") and isinstance(value, str)}
    assert known - FIRST["Attributes"] == FIRST["Superseded"]
