"""The provider table: every row works, every model meets its rule, and the docs match the table."""

from __future__ import annotations

import ast
import re
import runpy
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from sigwire.errors import ConfigurationError
from sigwire.lm.client import LM
from sigwire.lm.codecs.openai_chat.profiles import COMPATIBLE
from sigwire.lm.codecs.shared.interface import Target, WireProfile
from sigwire.lm.codecs.shared.reasoning import EFFORTS
from sigwire.lm.providers import registry as providers
from sigwire.lm.providers.registry import PROVIDERS, find_provider, register
from sigwire.lm.providers.row import ApiKey, ModelRule, Provider, Wire
from tests.lm.calls import QUESTION

ROOT = Path(__file__).resolve().parents[3]
OVER_HTTP = [row for row in PROVIDERS.values() if not row.backend]


@pytest.fixture(autouse=True)
def rows_put_back(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    rows, prefixes = vars(providers)["_rows"], vars(providers)["_prefixes"]
    before = dict(rows), dict(prefixes)
    yield
    for table, kept in zip((rows, prefixes), before, strict=True):
        table.clear()
        table.update(kept)


# --- rows --------------------------------------------------------------------------------------------------


def test_table_has_the_documented_rows() -> None:
    promised = (
        "openai azure anthropic gemini vertex ollama ollama-cloud foreman groq mistral deepseek openrouter together "
        "fireworks xai cerebras moonshot crusoe vllm llamacpp lmstudio bedrock offline litellm"
    )
    assert set(promised.split()) <= PROVIDERS.keys()


@pytest.mark.parametrize("row", OVER_HTTP, ids=lambda row: row.prefix)
def test_every_wire_of_a_row_loads_and_encodes(row: Provider) -> None:
    for wire in row.wires.values():
        codec, dialect = wire.load()
        assert isinstance(dialect, WireProfile)
        target = Target(row.prefix, "m", dialect, wire.capabilities or row.capabilities)
        assert codec.encode(QUESTION, target).body


@pytest.mark.parametrize("row", OVER_HTTP, ids=lambda row: row.prefix)
def test_base_urls_use_tls_or_loopback(row: Provider) -> None:
    base = row.base_url({"project": "p", "location": "l"}) if callable(row.base_url) else row.base_url
    url = urlsplit(base)
    assert not base or url.scheme == "https" or url.hostname in ("localhost", "127.0.0.1")
    assert base or row.base_variables
    assert row.key == "optional" or row.keys


@pytest.mark.parametrize("row", PROVIDERS.values(), ids=lambda row: row.prefix)
def test_rules_name_existing_wires_capabilities_and_efforts(row: Provider) -> None:
    for rule in row.rules:
        assert {rule.wire, rule.tools_wire} - {None} <= row.wires.keys()
        assert row.capabilities_of(rule.names[0].replace("*", "x"))
        assert set(rule.facts.efforts or ()) <= set(EFFORTS)
        assert all(name == name.lower() for name in rule.names)


@pytest.mark.parametrize("row", PROVIDERS.values(), ids=lambda row: row.prefix)
def test_no_rule_is_shadowed_by_an_earlier_rule(row: Provider) -> None:
    for rule in row.rules:
        examples = [re.sub(r"\[(.).*?\]", r"\1", name).replace("?", "1") for name in rule.names]
        met = [row.rule_for(example.replace("*", "")) for example in examples]
        assert rule in met, rule.names


# --- models ------------------------------------------------------------------------------------------------

# model, wire without and with tools, then facts and abilities that differ
MODELS: list[tuple[str, str, str, Mapping[str, Any]]] = [
    ("openai/gpt-4.1-mini", "chat", "chat", {"thinking": "none", "sampling": "always", "files": True}),
    ("openai/gpt-4o", "chat", "chat", {"thinking": "none", "images": True}),
    ("openai/gpt-3.5-turbo", "chat", "chat", {"json_schema": False, "images": False}),
    ("openai/ft:gpt-4.1:acme::1", "chat", "chat", {"thinking": "none"}),
    ("openai/gpt-5-chat-latest", "chat", "chat", {"thinking": "none", "reasoning": False}),
    ("openai/o3", "chat", "chat", {"sampling": "never", "stop": False, "efforts": ("low", "medium", "high")}),
    ("openai/o3-pro", "responses", "responses", {"reasoning": True}),
    ("openai/gpt-5", "chat", "chat", {"sampling": "never", "efforts": ("minimal", "low", "medium", "high")}),
    ("openai/gpt-5-mini", "chat", "chat", {"sampling": "never", "default_effort": "medium"}),
    ("openai/gpt-5-pro", "responses", "responses", {"efforts": ("high",)}),
    ("openai/gpt-5.1", "chat", "chat", {"sampling": "unless_reasoning", "default_effort": "off"}),
    ("openai/gpt-5.1-codex-max", "responses", "responses", {"reasoning": True}),
    ("openai/gpt-5.2-pro", "responses", "responses", {"reasoning": True}),
    ("openai/gpt-5.4", "chat", "responses", {"tools_with_reasoning": False, "default_effort": "off"}),
    ("openai/gpt-5.4-mini-2026-03-17", "chat", "responses", {"tools_with_reasoning": False}),
    ("openai/gpt-5.5", "chat", "responses", {"default_effort": "medium"}),
    ("openai/gpt-5.6-sol", "chat", "responses", {"cache_breakpoints": True, "sampling": "unless_reasoning"}),
    ("openai/gpt-6", "chat", "responses", {"cache_breakpoints": True}),
    ("openai/gpt-6-astra", "chat", "responses", {"efforts": ("low", "medium", "high", "xhigh"), "sampling": "never"}),
    ("openai/gpt-6.1-sol", "chat", "responses", {"efforts": ("low", "medium", "high", "xhigh")}),
    ("azure/gpt-5.6", "chat", "responses", {"cache_breakpoints": True}),
    ("anthropic/claude-3-5-sonnet-latest", "messages", "messages", {"thinking": "none", "json_schema": False}),
    ("anthropic/claude-sonnet-4-0", "messages", "messages", {"thinking": "budget", "json_schema": False}),
    ("anthropic/claude-haiku-4-5-20251001", "messages", "messages", {"thinking": "budget", "prefill": True}),
    ("anthropic/claude-opus-4-1", "messages", "messages", {"thinking": "budget", "json_schema": True}),
    ("anthropic/claude-sonnet-4-6", "messages", "messages", {"thinking": "effort", "sampling": "unless_reasoning"}),
    ("anthropic/claude-opus-4-7", "messages", "messages", {"later_system": False, "prefill": False}),
    ("anthropic/claude-opus-4-8", "messages", "messages", {"sampling": "never", "later_system": True}),
    ("anthropic/claude-opus-5", "messages", "messages", {"forced_choice": True, "later_system": True}),
    ("anthropic/claude-sonnet-5", "messages", "messages", {"forced_choice": True, "later_system": False}),
    ("anthropic/claude-haiku-5-5", "messages", "messages", {"forced_choice": True, "default_effort": None}),
    ("anthropic/claude-opus-5-5", "messages", "messages", {"forced_choice": False, "default_effort": "high"}),
    ("anthropic/claude-sonnet-5-5", "messages", "messages", {"forced_choice": False, "prefill": False}),
    ("anthropic/claude-fable-5-1", "messages", "messages", {"forced_choice": False, "later_system": True}),
    ("anthropic/claude-mythos-preview", "messages", "messages", {"forced_choice": False, "later_system": False}),
    ("gemini/gemini-2.0-flash", "generate", "generate", {"thinking": "none", "tools_with_json_schema": False}),
    ("gemini/gemini-2.5-pro", "generate", "generate", {"thinking": "budget", "budgets": (128, 32768)}),
    ("gemini/gemini-2.5-flash-lite", "generate", "generate", {"default_effort": "off"}),
    ("gemini/gemini-3-pro-preview", "generate", "generate", {"signed_calls": True, "efforts": ("low", "high")}),
    ("gemini/gemini-3.8-flash", "generate", "generate", {"efforts": ("low", "medium", "high")}),
    ("gemini/gemini-3.7-flash", "generate", "generate", {"tools_with_json_schema": True, "media_in_results": True}),
    ("vertex/gemini-2.5-flash", "generate", "generate", {"builtin_with_functions": False, "media_in_results": False}),
    (
        "vertex/claude-sonnet-4-5@20250929",
        "messages",
        "messages",
        {"thinking": "budget", "json_object": False, "audio": False},
    ),
    (
        "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0",
        "claude",
        "claude",
        {"thinking": "budget", "json_schema": True},
    ),
    ("bedrock/us.anthropic.claude-opus-4-1-20250805-v1:0", "claude", "claude", {"json_schema": False}),
    ("bedrock/anthropic.claude-opus-5", "claude", "claude", {"json_schema": True}),
    ("bedrock/anthropic.claude-3-haiku-20240307-v1:0", "claude", "claude", {"thinking": "none", "images": True}),
    ("bedrock/amazon.nova-pro-v1:0", "nova", "nova", {"thinking": "none", "forced_choice": True}),
    (
        "bedrock/openai.gpt-oss-120b-1:0",
        "without-top-k",
        "without-top-k",
        {"efforts": ("low", "medium", "high"), "images": False},
    ),
    (
        "bedrock/us.meta.llama3-3-70b-instruct-v1:0",
        "without-top-k",
        "without-top-k",
        {"native_tools": True, "forced_choice": False},
    ),
    ("bedrock/meta.llama3-8b-instruct-v1:0", "without-top-k", "without-top-k", {"native_tools": False}),
    ("ollama/gpt-oss:20b", "chat", "chat", {"efforts": ("low", "medium", "high"), "native_tools": True}),
    ("ollama/gpt-oss:120b-cloud", "chat", "chat", {"efforts": ("low", "medium", "high"), "json_schema": False}),
    ("ollama/gemma3:4b", "chat", "chat", {"native_tools": False, "images": True}),
    ("ollama/llama3.2", "chat", "chat", {"native_tools": True, "tool_choice": False, "tools_with_json_schema": False}),
    ("ollama/llama3:8b", "chat", "chat", {"native_tools": False}),
    ("groq/openai/gpt-oss-120b", "chat", "chat", {"json_schema": True, "reasoning": True}),
    ("groq/llama-3.3-70b-versatile", "chat", "chat", {"json_schema": False, "thinking": "none"}),
    ("mistral/magistral-medium-latest", "chat", "chat", {"reasoning": True}),
    ("deepseek/deepseek-v4-flash", "chat", "chat", {"json_schema": False, "forced_choice_with_reasoning": False}),
    ("deepseek/deepseek-chat", "chat", "chat", {"default_effort": None}),
    ("openrouter/anthropic/claude-sonnet-4.5", "chat", "chat", {"cache_breakpoints": True}),
    ("together/meta-llama/Llama-4-Scout-17B-16E-Instruct", "chat", "chat", {"images": True, "thinking": "none"}),
    ("xai/grok-3-mini", "chat", "chat", {"efforts": ("low", "high")}),
    ("xai/grok-4", "chat", "chat", {"stop": False, "reasoning": True}),
    ("vllm/Qwen/Qwen3-32B", "chat", "chat", {"reasoning": True, "tools_with_json_schema": True}),
    ("llamacpp/Qwen3-32B", "chat", "chat", {"json_schema": True, "tools_with_json_schema": False}),
]


@pytest.mark.parametrize(("model", "plain", "tools", "expected"), MODELS, ids=[row[0] for row in MODELS])
def test_model_meets_its_rule(model: str, plain: str, tools: str, expected: Mapping[str, Any]) -> None:
    row, name = find_provider(model)
    facts, able = row.facts_of(name), row.capabilities_of(name)
    assert (row.wire_for(name, tools=False), row.wire_for(name, tools=True)) == (plain, tools)
    assert {key: getattr(facts if hasattr(facts, key) else able, key) for key in expected} == expected


@pytest.mark.parametrize(
    ("alias", "prefix"),
    [
        ("ollama_chat", "ollama"),
        ("together_ai", "together"),
        ("fireworks_ai", "fireworks"),
        ("lm_studio", "lmstudio"),
        ("vertex_ai", "vertex"),
    ],
)
def test_litellm_prefixes_are_aliases_of_rows(alias: str, prefix: str) -> None:
    assert find_provider(f"{alias}/m") == (PROVIDERS[prefix], "m")


def test_prefix_without_a_row_belongs_to_litellm() -> None:
    assert find_provider("sagemaker/some-model") == (PROVIDERS["litellm"], "sagemaker/some-model")
    assert find_provider("litellm/bedrock/x") == (PROVIDERS["litellm"], "bedrock/x")


def test_missing_litellm_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match=r'pip install "sigwire\[litellm\]".*openai') as caught:
        LM("opnai/gpt-5")
    assert "opnai/gpt-5" in str(caught.value)


HOSTS = [
    ("gpu-box", "http://gpu-box:11434"),
    ("gpu-box:9999", "http://gpu-box:9999"),
    (":9999", "http://127.0.0.1:9999"),
    ("0.0.0.0", "http://127.0.0.1:11434"),
    ("0.0.0.0:1234", "http://127.0.0.1:1234"),
    ("http://gpu-box", "http://gpu-box:80"),
    ("https://gpu-box", "https://gpu-box:443"),
    ("https://gpu-box:8443/ollama/", "https://gpu-box:8443/ollama"),
    ("[::1]", "http://[::1]:11434"),
    ("[::1]:5", "http://[::1]:5"),
    ("http://127.0.0.1:11434", "http://127.0.0.1:11434"),
]


@pytest.mark.parametrize(("host", "base"), HOSTS)
def test_ollama_host_becomes_a_base_url(host: str, base: str) -> None:
    tidy = PROVIDERS["ollama"].tidy
    assert tidy(host) == base
    assert tidy(base) == base


# --- rows of one's own -------------------------------------------------------------------------------------


def test_register_adds_a_row_of_three_arguments() -> None:
    register(Provider(prefix="acme", base_url="https://llm.acme.example/v1", keys=(ApiKey("ACME_API_KEY"),)))
    row, name = find_provider("acme/some-model")
    _, dialect = row.wires["chat"].load()
    assert (row.prefix, name, dialect) == ("acme", "some-model", COMPATIBLE)
    assert LM("acme/some-model").capabilities.native_tools


def test_row_may_hold_codec_profile_and_rules_as_objects() -> None:
    codec, dialect = PROVIDERS["groq"].wires["chat"].load()
    wire = Wire(codec, dialect, path="/elsewhere")
    register(
        Provider(prefix="acme", wires={"chat": wire}, rules=(ModelRule(names=("big*",), capabilities={"audio": True}),))
    )
    row, name = find_provider("acme/Big-1")
    assert row.capabilities_of(name).audio
    assert row.wires["chat"].load()[1].path == "/elsewhere"


def test_register_replaces_a_row_only_with_replace() -> None:
    mine = Provider(prefix="groq", base_url="https://mine.example/v1")
    with pytest.raises(ConfigurationError, match="already"):
        register(mine)
    register(mine, replace=True)
    assert PROVIDERS["groq"] is mine


@pytest.mark.parametrize("prefix", ["", "a/b", "a b"])
def test_register_refuses_an_invalid_prefix(prefix: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot begin a model string"):
        register(Provider(prefix=prefix))


def test_table_is_read_only() -> None:
    with pytest.raises(TypeError):
        PROVIDERS["x"] = PROVIDERS["groq"]  # type: ignore[index]  # pyright: ignore[reportIndexIssue]


# --- no other code compares provider names

# Code that may compare provider names: the wires, the provider table, LiteLLM's table, and the fake provider.
# The forms of calls in text are named after the models that write them.
# The last is the table of names that other packages have for the providers.
TOLD_APART = (
    "adapters/text_tools/", "lm/codecs/", "lm/litellm/", "lm/providers/", "testing/", "lm/policy/money/catalogs.py",
    # Names of the conventions, of the package that is called, ratios of tokens, the state of a local server.
    "observe/tracing/names.py", "observe/tracing/attributes.py", "lm/preview/tokens.py", "lm/preview/preview.py",
    "commands/doctor.py", "retrieval/model.py",
    # The table of the limits of media by family.
    "lm/media/limits.py",
    # The package whose file of windows is read.
    "lm/preview/limits.py",
    # DSPy's citations are native at one provider, by the name of its models.
    "dspy/types.py",
    # DSPy's client of one provider, which has its name.
    "dspy/typesafe.py",
    # DSPy's rule for the reasoning models of two hosts.
    "dspy/models/token_limits.py",
    # Forms of requests of other libraries.
    "modules/exports.py", "modules/module.py",
)  # fmt: skip
PACKAGE = ROOT / "sigwire"
ELSEWHERE = sorted(
    path for path in PACKAGE.rglob("*.py") if not path.relative_to(PACKAGE).as_posix().startswith(TOLD_APART)
)
FAMILIES = {"claude", "gemma", "google", "gpt", "grok", "llama", "mixtral", "openai_chat", "openai_responses", "qwen"}
NAMED = {*PROVIDERS, *(alias for row in PROVIDERS.values() for alias in row.aliases), *FAMILIES}
A_NAME = re.compile(rf"[*^]?({'|'.join(map(re.escape, sorted(NAMED)))})(?:[-/:.*\d].*)?")


def names_in_code(source: str) -> list[str]:
    """Text in code, docstrings left out, that is a provider's or a model family's name or begins with one."""
    tree = ast.parse(source)
    shown = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in shown
    ]
    return [text for text in texts if A_NAME.fullmatch(text) and not text.startswith(_EMBEDDED)]


_EMBEDDED = tuple(f"offline/{name}" for name in PROVIDERS["offline"].models)  # the model that comes along may be named


@pytest.mark.parametrize(
    ("model", "prefix"),
    [
        ("gpt-4o", "openai"),
        ("claude-sonnet-4-5", "anthropic"),
        ("gemini-2.5-pro", "gemini"),
        ("deepseek-chat", "deepseek"),
    ],
)
def test_bare_name_has_its_only_provider(model: str, prefix: str) -> None:
    row, name = find_provider(model)
    assert (row.prefix, name) == (prefix, model)


@pytest.mark.parametrize(
    ("model", "problem"),
    [
        ("llama-3.1-8b", "together, fireworks, cerebras, crusoe have one of that name"),
        ("my-model", r"making an LM\). Write provider/"),
    ],
)
def test_bare_name_that_no_row_or_several_list_is_refused(model: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem):
        find_provider(model)


@pytest.mark.long
def test_no_other_code_names_a_provider() -> None:
    found = {path.relative_to(PACKAGE): names_in_code(path.read_text(encoding="utf-8")) for path in ELSEWHERE}
    assert len(found) > 90
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "code",
    [
        'if provider == "anthropic": pass',
        'model.startswith("gpt-5")',
        '"claude" in model',
        'TABLE = {"together_ai": 1}',
        'match row.prefix:\n    case "gemini": pass',
        'fnmatch(model, "*gpt-4*")',
    ],
)
def test_provider_name_in_code_is_detected(code: str) -> None:
    assert names_in_code(code) != []


@pytest.mark.parametrize("folder", ["adapters/text_tools/**/*.py", "lm/litellm/*.py"])
def test_code_with_name_tables_compares_no_names(folder: str) -> None:
    compared = {
        value.value
        for path in PACKAGE.glob(folder)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Compare | ast.MatchValue)
        for value in ast.walk(node)
        if isinstance(value, ast.Constant)
    }
    assert compared
    assert compared & NAMED <= {"litellm", "openai"}  # the packages whose exceptions the bridge reads


# --- the docs -------------------------------------------------------------------------------------------------


def test_pages_match_the_table() -> None:
    tables = runpy.run_path(str(ROOT / "docs" / "tables.py"))
    pages = "".join(page.read_text(encoding="utf-8") for page in tables["PAGES"])
    assert all(f"<!-- {name} -->" in pages for name in tables["TABLES"])
    assert tables["stale"]() == [], "run python docs/tables.py"


def test_registered_row_makes_the_pages_stale(capsys: pytest.CaptureFixture[str]) -> None:
    register(Provider(prefix="acme", base_url="https://llm.acme.example/v1", keys=(ApiKey("ACME_API_KEY"),)))
    tables = runpy.run_path(str(ROOT / "docs" / "tables.py"))
    assert '| `LM("acme/...")` | `ACME_API_KEY` | `https://llm.acme.example/v1` |' in tables["models"]()
    assert (
        "| `acme` | `https://llm.acme.example/v1` |  | `ACME_API_KEY` | chat (`openai_chat`) | never |"
        in tables["addresses"]()
    )
    assert tables["main"](["--check"]) == 1
    assert "run python docs/tables.py" in capsys.readouterr().out
