"""``lm.preview``: command, secrets, tokens, price, cache, warnings and errors of a request before it is sent."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from sigwire.core.messages import Message
from sigwire.core.parts import ImagePart, TextPart
from sigwire.core.request import Request
from sigwire.core.response import Usage
from sigwire.errors import ConfigurationError, UnsupportedOption
from sigwire.lm.client import LM
from sigwire.lm.fake import FakeLM
from sigwire.lm.policy.cache.cache import configure_cache
from sigwire.lm.policy.money.prices import Price
from sigwire.lm.preview import tokens
from sigwire.lm.preview.preview import Preview
from sigwire.testing import FakeProvider
from tests.lm.calls import HELLO, TOOL, forget_keys

CANARY = "-".join(("canary", "7Kq", "secret"))
NASTY = 'it\'s "$HOME" `id` $(id) \\ \u202e\x1b[31m\n%s é 日本'


def asking(text: str, **options: Any) -> Request:
    return Request((Message.user(text),), options=options)


# --- the command -----------------------------------------------------------------------------------------


def run_in_shell(command: str, tmp_path: Path, **environment: str) -> tuple[list[str], str]:
    """Return the arguments and the input that the shell gives to ``curl``."""
    fake = tmp_path / "curl"
    fake.write_text('#!/bin/sh\nfor each in "$@"; do printf "%s\\0" "$each"; done > "$OUT.args"\ncat > "$OUT.in"\n')
    fake.chmod(0o755)
    out = tmp_path / "out"
    environment |= {"PATH": f"{tmp_path}:/usr/bin:/bin", "OUT": str(out), "HOME": "/nowhere"}
    script = tmp_path / "script"
    script.write_text(command, encoding="utf-8")
    subprocess.run(["sh", str(script)], check=True, env=environment, stdin=subprocess.DEVNULL)
    return Path(f"{out}.args").read_text().split("\0")[:-1], Path(f"{out}.in").read_text()


def test_curl_command_is_read_by_a_shell_as_the_request(tmp_path: Path) -> None:
    preview = LM("openai/gpt-4.1-mini", cache=False).preview(asking(NASTY))
    command = preview.curl()
    assert command.replace("\n", "").isprintable()
    (_, post, url, *options), _ = run_in_shell(command, tmp_path, OPENAI_API_KEY="sk $x")
    assert (post, url) == ("POST", "https://api.openai.com/v1/chat/completions")
    assert "authorization: Bearer sk $x" in options
    assert json.loads(options[options.index("--data-raw") + 1]) == json.loads(preview.json())


def test_long_body_of_a_curl_command_is_no_argument(tmp_path: Path) -> None:
    preview = LM("openai/gpt-4.1-mini", cache=False).preview(asking("'$HOME`\n" * 20_000))
    arguments, body = run_in_shell(preview.curl(), tmp_path, OPENAI_API_KEY="k")
    assert max(map(len, arguments)) < 1000
    assert json.loads(body) == json.loads(preview.json())


def test_curl_command_names_no_variable_of_the_row_at_a_foreign_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-environment")
    elsewhere = LM("openai/gpt-4.1-mini", base_url="https://llm.example/v1").preview(HELLO)
    given = LM("openai/gpt-4.1-mini", base_url="https://llm.example/v1", api_key="k").preview(HELLO)
    assert "authorization" not in elsewhere.curl()
    assert '"$API_KEY"' in given.curl()


@pytest.mark.parametrize("lm", [FakeLM(["a"]), LM("offline/lexical")])
def test_model_without_a_wire_has_its_canonical_request_as_preview(lm: Any) -> None:
    preview = lm.preview(HELLO)
    assert preview.wire is None
    assert Request.from_json(json.loads(preview.json())) == preview.request
    with pytest.raises(ConfigurationError, match=r"no command.*Read preview\.request"):
        preview.curl()


# --- secrets ---------------------------------------------------------------------------------------------

DOORS: Mapping[str, dict[str, Any]] = {
    "api_key": {"api_key": CANARY},
    "headers": {"headers": {"Authorization": f"Bearer {CANARY}", "x-gateway": CANARY}},
    "extra_body": {"extra_body": {"upstream": [{"token": CANARY}]}},
    "extra_headers": {"extra_headers": {"x-upstream": CANARY}},
    "base_url": {"base_url": f"https://me:{CANARY}@llm.example/v1?api_key={CANARY}"},
    "environment": {},
}


@pytest.mark.parametrize("model", ["openai/gpt-4.1", "anthropic/claude-haiku-4-5", "gemini/gemini-2.5-flash"])
@pytest.mark.parametrize("door", DOORS)
def test_preview_shows_no_secret(model: str, door: str, monkeypatch: pytest.MonkeyPatch) -> None:
    forget_keys(monkeypatch)
    if door == "environment":
        for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"):
            monkeypatch.setenv(name, CANARY)
    preview = LM(model, **DOORS[door]).preview(HELLO)
    out = io.StringIO()
    preview.show(out)
    shown = [repr(preview), str(preview.wire), preview.curl(), out.getvalue(), preview._repr_html_()]
    assert [text for text in shown if CANARY in text] == []


def test_function_that_returns_a_key_is_not_called() -> None:
    def key() -> str:
        raise AssertionError

    assert "env:OPENAI_API_KEY" in str(LM("openai/gpt-4.1", api_key=key).preview(HELLO).wire)


@pytest.mark.long
def test_litellm_preview_has_the_arguments_without_the_key() -> None:
    if importlib.util.find_spec("litellm") is None:
        pytest.skip("LiteLLM is not installed")
    preview = LM("litellm/bedrock/anthropic.claude-3-haiku-20240307-v1:0", api_key=CANARY, temperature=0.5).preview(
        HELLO
    )
    assert preview.wire is not None
    assert preview.wire["method"] == "litellm.completion"
    assert preview.wire["body"]["temperature"] == 0.5
    assert preview.wire["body"]["messages"] == [{"role": "user", "content": "hello"}]
    assert CANARY not in f"{preview!r} {preview.wire} {preview.json()!r}"


# --- what the provider would not take --------------------------------------------------------------------


def test_request_that_cannot_be_encoded_has_its_error_in_the_preview() -> None:
    preview = LM("openai/gpt-4.1").preview(asking("hi", top_k=3))
    assert [type(error) for error in preview.errors] == [UnsupportedOption]
    assert preview.wire is None
    with pytest.raises(UnsupportedOption, match="top_k"):
        preview.json()
    with pytest.raises(UnsupportedOption, match="top_k"):
        preview.curl()
    assert "1 error" in repr(preview)


def test_features_that_the_encoder_drops_are_warnings_of_the_preview() -> None:
    lm = LM("anthropic/claude-haiku-4-5", cache=False)
    request = Request(HELLO.messages, (TOOL,), options={"n": 2})
    assert lm.preview(request).repeat == 2
    with FakeProvider(["a", "a"]) as provider:
        sent = lm.copy(base_url=provider.url("anthropic"), api_key="k").respond(request)
    assert lm.preview(request).warnings == sent.warnings


def test_method_of_a_subclass_that_may_change_the_request_is_a_warning() -> None:
    class Polite(LM):
        def forward(self, request: Request) -> Any:
            return super().forward(request)

    assert [each.feature for each in Polite("openai/gpt-4.1").preview(HELLO).warnings] == ["override"]
    assert LM("openai/gpt-4.1").preview(HELLO).warnings == ()


# --- tokens, price, cache --------------------------------------------------------------------------------


def test_tokens_are_corrected_by_the_calls_that_the_provider_counted() -> None:
    lm = FakeLM(lambda _: "a", usage=Usage(input_tokens=20, output_tokens=1))
    before = lm.preview(HELLO).tokens
    for _ in range(3):
        lm.respond(HELLO)
    after = lm.preview(HELLO).tokens
    assert (before.margin, after.margin) == (15, 5)
    assert after.count == 20 > before.count
    assert "3 calls" in after.method


def test_images_are_named_beside_the_tokens() -> None:
    image = ImagePart(url="https://example.com/cat.png")
    request = Request((Message("user", (TextPart("Look."), image, image)),))
    assert str(LM("openai/gpt-4.1").preview(request).tokens).endswith("+ 2 images")


def test_vocabulary_that_is_not_on_disk_is_not_downloaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sockets: list[str]
) -> None:
    pytest.importorskip("tiktoken")
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    address, _ = tokens._VOCABULARIES["o200k_base"]
    (tmp_path / hashlib.sha1(address.encode()).hexdigest()).write_bytes(b"torn")
    preview = LM("openai/gpt-4o").preview(HELLO)
    assert str(preview.tokens).startswith("≈")
    assert sockets == []
    assert len(list(tmp_path.iterdir())) == 1


def test_vocabulary_on_disk_counts_exactly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sockets: list[str]) -> None:
    pytest.importorskip("tiktoken")
    rows = [f"{encoded} {rank}" for rank, encoded in enumerate(_single_bytes())]
    data = "\n".join(rows).encode()
    address = tokens._VOCABULARIES["o200k_base"][0]
    monkeypatch.setitem(tokens._VOCABULARIES, "o200k_base", (address, hashlib.sha256(data).hexdigest()))  # type: ignore[misc]
    (tmp_path / hashlib.sha1(address.encode()).hexdigest()).write_bytes(data)
    assert tokens._is_on_disk(tmp_path, *tokens._VOCABULARIES["o200k_base"])
    assert not tokens._is_on_disk(tmp_path / "none", *tokens._VOCABULARIES["o200k_base"])
    assert sockets == []


def _single_bytes() -> Iterator[str]:
    import base64

    return (base64.b64encode(bytes([value])).decode() for value in range(256))


def test_price_that_is_missing_is_unknown_and_not_zero() -> None:
    unknown = LM("openai/no-such-model-7", base_url="https://llm.example/v1", api_key="k").preview(HELLO)
    assert unknown.price is None
    assert unknown.ceiling is None
    assert "cost unknown" in card_text(unknown)


def test_price_has_a_ceiling_with_the_option_max_tokens() -> None:
    lm = LM("openai/gpt-4.1", price=Price(input=1.0, output=10.0))
    preview = lm.preview(asking("hello " * 200, max_tokens=1000))
    assert preview.price == int(preview.tokens) / 1e6
    assert preview.ceiling == pytest.approx(preview.price + 0.01)
    assert "≈$0.000" in repr(preview)
    assert "≤$0.0" in card_text(preview)


def test_repr_of_a_preview_loads_no_price_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sigwire.lm.policy.money.catalogs.load", lambda: pytest.fail("loaded"))
    monkeypatch.setattr("sigwire.lm.policy.money.catalogs.is_loaded", lambda: False)
    preview = LM("openai/gpt-4.1").preview(HELLO)
    assert repr(preview) == f"Preview(openai/gpt-4.1, {preview.tokens.short} tokens in)"
    assert len(repr(preview)) < 500
    preview._repr_html_()


def test_preview_reads_the_cache_and_counts_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    configure_cache(enable_disk_cache=False)
    try:
        with FakeProvider(["a"]) as provider:
            lm = LM("openai/gpt-4.1", base_url=provider.url("openai"), api_key="k")
            assert lm.preview(HELLO).cache == "miss"
            lm.respond(HELLO)
            from sigwire.lm.policy.cache.cache import cache

            before = cache.stats()
            assert lm.preview(HELLO).cache == "hit"
            assert lm.preview(asking("hello", fresh=True)).cache == "miss"
            assert lm.preview(asking("hello", cache=False)).cache == "off"
            assert cache.stats() == before
    finally:
        monkeypatch.setenv("SIGWIRE_CACHE", "off")
        configure_cache(enable_disk_cache=False, enable_memory_cache=False)


def card_text(preview: Preview) -> str:
    out = io.StringIO()
    preview.show(out, 200)
    return out.getvalue()
