"""Secrets are recognized by their name, at any depth."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sigwire.lm.secrets import SecretUrl, is_secret, mask_secrets, redact, redact_url, storable_options

SECRET = """api_key apiKey API-KEY headers extra_headers Authorization azure_ad_token aws_secret_access_key password
cookie""".split()
OPEN = "temperature max_tokens max_completion_tokens top_p seed stop logit_bias tokenizer monkey keyboard".split()


@pytest.mark.parametrize("name", SECRET)
def test_names_with_a_secret_word_are_secret(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", OPEN)
def test_other_names_are_not_secret(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.parametrize(
    "value",
    [
        "sk-abc",
        "Bearer abc",
        "https://me:pass@host/",
        "https://host/v1?api_key=abc&v=2",
        "https://host/v1?v=2&sig=abc",
        "Endpoint=host;AccountKey=abc",
    ],
)
def test_values_that_look_like_secrets_are_secret(value: str) -> None:
    assert storable_options({"custom": value}) == {}
    assert mask_secrets({"custom": value}) == {"custom": "***"}
    assert storable_options({"custom": ["a", [value]]}) == {"custom": ["a", []]}
    assert mask_secrets({"custom": ["a", (value,)]}) == {"custom": ["a", ["***"]]}


@pytest.mark.parametrize(
    "value", ["https://host/v1?monkey", "Answer with key = value", "a token", "https://host/?key="]
)
def test_text_about_keys_is_not_secret(value: str) -> None:
    assert storable_options({"custom": value}) == mask_secrets({"custom": value}) == {"custom": value}


nested = st.recursive(
    st.just("CANARY"),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
)


@given(st.sampled_from(SECRET), nested, st.sampled_from(["options", "extra_body"]))
def test_secrets_are_masked_and_not_stored(name: str, value: object, outer: str) -> None:
    options = {outer: {"inner": {name: value}, "list": [{name: value}]}, name: value}
    assert "CANARY" not in json.dumps(storable_options(options))
    assert "CANARY" not in repr(mask_secrets(options))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("me:pass@llm.example/v1", "llm.example/v1"),
        ("//me:pass@llm.example/v1", "//llm.example/v1"),
        ("https://pass@llm.example:80/v1?key=k#x", "https://llm.example:80/v1"),
        ("https://me:p/a?s#s@llm.example/v1", "https://llm.example/v1"),
        ("https://me:p@ss@llm.example", "https://llm.example"),
        ("http://localhost:80/v1/@me", "http://localhost:80/v1/@me"),
        ("http://[::1]:80/v1/@me?to=a:b@c", "http://[::1]:80/v1/@me"),
        ("localhost:80/v1?to=a:b@c", "localhost:80/v1"),
        ("llm.example", "llm.example"),
        ("", ""),
    ],
)
def test_url_is_shown_without_user_and_query(url: str, shown: str) -> None:
    assert redact_url(url) == shown


def test_password_of_any_form_is_masked() -> None:
    for url in ("me:%s@h/v1", "//me:%s@h", "https://%s@h:80", "https://me:%s/?#@h", "https://h:80/v1?key=%s"):
        secret = SecretUrl(url % "passw0rd")
        assert redact(f"refused: {secret}", secret).count("passw0rd") == 0, url


def test_options_with_keys_that_are_no_texts_are_shown_and_not_stored() -> None:
    options = {"extra_body": {"logit_bias": {50256: -100}}}
    assert mask_secrets(options) == options
    assert storable_options(options) == {}
