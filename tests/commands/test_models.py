"""``sigwire models``: providers, keys by name, models with abilities and prices."""

from __future__ import annotations

import json
import sys

import pytest

from sigwire.cli import main


def test_models_lists_every_provider_with_its_keys_by_name(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setenv("OLLAMA_HOST", "http://me:sk-canary@gpu-box:11434")
    assert main(["models"]) == 0
    out = capsys.readouterr().out
    rows = {line.split()[0]: line for line in out.splitlines()}
    assert "OPENAI_API_KEY set" in rows["openai"]
    assert "ANTHROPIC_API_KEY not set" in rows["anthropic"]
    assert "that of OLLAMA_HOST" in rows["ollama"]
    assert "in this process" in rows["offline"]
    assert "sk-canary" not in out


def test_models_of_a_pattern_have_abilities_and_prices(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("genai_prices")
    assert main(["models", "openai/gpt-5*", "--json"]) == 0
    rows = {row["model"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["openai/gpt-5-mini"]["$/M out"] > rows["openai/gpt-5-mini"]["$/M in"] > 0
    assert "native_tools" in rows["openai/gpt-5-mini"]["can"]
    assert all(name.startswith("openai/gpt-5") for name in rows)


def test_model_without_a_price_is_listed_with_the_price_unknown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", "openai/none-such"]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[-2:] == ["-", "-"]


def test_models_without_the_prices_extra_names_the_install_line(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sigwire.lm.policy.money.catalogs.load", lambda: None)
    assert main(["models", "offline/lexical"]) == 0
    assert "pip install 'sigwire[prices]'" in capsys.readouterr().out


@pytest.mark.parametrize("pattern", ["none*", "none/*", "openai/none*"])
def test_pattern_that_fits_nothing_is_status_2(pattern: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["models", pattern]) == 2
    assert pattern in capsys.readouterr().err


@pytest.mark.parametrize("pattern", ["*", "offline/lexical"])
@pytest.mark.parametrize("columns", [40, 80, 160])
def test_models_fit_the_terminal_and_lose_nothing(
    columns: int, pattern: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["models", pattern]) == 0
    whole = capsys.readouterr().out
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["models", pattern]) == 0
    shown = capsys.readouterr().out
    assert max(map(len, shown.splitlines())) <= columns, shown
    letters = "".join(shown.split())
    words = {word for line in whole.splitlines()[1:] for word in line.split() if len(word) < 16}
    assert {word for word in words if word not in letters} == set()
