"""The column "last seen" of docs/providers.md: the latest report of ``sigwire verify`` from a row's own host."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest

from sigwire.lm.providers.registry import PROVIDERS
from sigwire.probes.table import PROBES

tables = import_module("tables")  # docs/ is on the path of tests


@pytest.mark.parametrize(
    ("prefix", "model", "host", "is_seen"),
    [
        ("openai", "openai/gpt-4.1", "api.openai.com", True),
        ("openai", "openai/gpt-4.1", "gateway.example:8443", False),
        ("openai", "openai/gpt-4.1", "api.openai.com.evil.example", False),
        ("openai", "openrouter/openai/gpt-4.1", "api.openai.com", False),
        ("ollama", "ollama_chat/qwen3", "127.0.0.1:11434", True),
        ("azure", "azure/mine", "mine.openai.azure.com", True),
        ("llamacpp", "llamacpp/tiny", "localhost:9931", True),
    ],
)
def test_row_was_seen_if_its_own_host_gave_the_answers(
    prefix: str, model: str, host: str, is_seen: bool, tmp_path: Path
) -> None:
    for number, day in enumerate(["2026-02-03", "2026-03-01", "2025-12-31"]):
        report = {"model": model, "host": host, "day": day}
        (tmp_path / f"{number}.json").write_text(json.dumps(report), encoding="utf-8")
    seen = tables.last_seen(PROVIDERS[prefix], tmp_path)
    assert seen == (f"2026-03-01 (`{model}`)" if is_seen else "never")


def test_reports_of_users_are_whole_and_name_no_path() -> None:
    reports = sorted(tables.SEEN.glob("*.json"))
    assert reports
    for path in reports:
        report = json.loads(path.read_text(encoding="utf-8"))
        assert report["verification"] == 1
        assert {row["probe"] for row in report["rows"]} <= {*PROBES}
        assert "/" not in report["host"]
        prefix = report["model"].partition("/")[0]
        assert tables.last_seen(PROVIDERS[prefix]) != "never"
