"""LM: from a model string to answers, with the model's options under the request's."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest

from sigwire.core.capabilities import Capabilities
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.errors import ConfigurationError, UnsupportedOption
from sigwire.lm.client import LM
from sigwire.lm.codecs.shared.interface import WireProfile
from sigwire.lm.offline import Lexical
from sigwire.lm.option_aliases import COMMON_OPTIONS, OPTION_NAMES
from sigwire.lm.providers.registry import PROVIDERS, Provider, Wire, find_provider, register
from sigwire.modules.predict import Predict
from sigwire.testing import FakeProvider
from tests.lm.calls import HELLO
from tests.lm.replies import Double


@pytest.mark.parametrize("model", ["", "lexical", "nowhere/model", "offline/", "offline/gpt"])
def test_unknown_model_error_lists_known_providers(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # as if LiteLLM were not installed
    with pytest.raises(ConfigurationError, match="offline/lexical"):
        LM(model)


def test_misspelled_provider_error_suggests_the_similar_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigurationError, match="Did you mean 'openai/gpt-5'"):
        LM("opnai/gpt-5")


def test_model_must_be_a_string() -> None:
    with pytest.raises(ConfigurationError, match="not int"):
        LM(3)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "what"),
    [
        ({"base_url": print}, "base_url is an address"),
        ({"api_base": 8080}, "base_url is an address"),
        ({"timeout": "60"}, "timeout is a number of seconds"),
        ({"timeout": 0}, "timeout is a number of seconds above 0, or a Timeout, not 0"),
        ({"timeout": True}, "timeout is a number"),
        ({"timeout": float("nan")}, "timeout is a number"),
        ({"headers": "x-team: a"}, "headers is a mapping"),
        ({"headers": {"x-team": 1}}, "headers is a mapping of names and values, both texts"),
        ({"wire": 2}, "wire is the name"),
        ({"api_key": 5}, "api_key is a text or a function"),
        ({"transport": "http://proxy"}, "transport is an object"),
        ({"retry": {"retries": 5}}, "retry is a RetryPolicy"),
        ({"capabilities": {"native_tools": True}}, "capabilities is a Capabilities"),
        ({"num_retries": "a"}, "num_retries is a number"),
        ({"num_retries": -1}, "num_retries is a number"),
        ({"callbacks": "abc"}, "callbacks is a list"),
        ({"cache": 1}, "cache is True, False or"),
        ({"cache": {"ttl": "1h"}}, "cache is True, False or.*prompt_cache="),
        ({"cache": "1h"}, "cache is True, False or.*prompt_cache="),
        ({"fresh": 1}, "fresh is True or False"),
        ({"rollout_id": [1]}, "rollout_id is a number or a text"),
    ],
)
def test_constructor_refuses_invalid_connection_options(given: dict[str, Any], what: str) -> None:
    with pytest.raises(ConfigurationError, match=what):
        LM("openai/gpt-5-mini", **given)


# --- options ---------------------------------------------------------------------------------------

MODELS = {
    "openai/gpt-4.1": {}, "openai/gpt-5.4": {"wire": "responses"}, "anthropic/claude-sonnet-4-5": {}, "groq/llama-3": {},
    "gemini/gemini-2.5-flash": {}, "vertex/gemini-2.5-flash": {}, "ollama/qwen3": {}, "offline/lexical": {}, "sagemaker/m": {},
}  # fmt: skip


@pytest.mark.parametrize("model", MODELS)
def test_constructor_refuses_an_unknown_option_with_the_nearest_name(model: str) -> None:
    with pytest.raises(
        UnsupportedOption, match=r"'temprature' \(making an LM\)\. Did you mean temperature\?.*extra_body"
    ):
        LM(model, temprature=0.5, **MODELS[model])
    with pytest.raises(UnsupportedOption, match=r"'timeout'.*an argument of the model: LM\(\.\.\., timeout=\.\.\.\)"):
        LM("openai/gpt-5-mini").check_options(["timeout"], "making Predict")
    with pytest.raises(UnsupportedOption, match=r"'num_retry'.*Did you mean num_retries"):
        LM(model, num_retry=2, **MODELS[model])
    if model != "sagemaker/m":  # LiteLLM takes any option
        with pytest.raises(UnsupportedOption, match=r"'finetuning_model'.*Use one of .*temperature"):
            LM(model, finetuning_model="m", **MODELS[model])
    with pytest.raises(UnsupportedOption, match=r"'ca'.*HttpTransport\(ca="):
        LM(model, ca="my.pem", **MODELS[model])
    with pytest.raises(UnsupportedOption, match=r"'temprature' \(copying an LM\)"):
        LM(model, **MODELS[model]).copy(temprature=0.5)


@pytest.mark.long
def test_model_behind_litellm_takes_options_that_litellm_or_its_upstream_knows() -> None:
    pytest.importorskip("litellm", reason="LiteLLM is not installed")
    lm = LM("sagemaker/m", aws_region_name="eu-west-1", temperature=0.5).copy(anything=1)
    sent = lm.prepare_request(HELLO.with_options({**lm.kwargs, "top_k": 4})).options
    assert sent["extra_body"] == {"aws_region_name": "eu-west-1", "anything": 1}
    assert (sent["top_k"], sent["temperature"]) == (4, 0.5)
    with pytest.raises(UnsupportedOption, match="Did you mean temperature"):
        lm.prepare_request(HELLO.with_options({"temprature": 1}))


@pytest.mark.parametrize("model", ["openai/some-model", "vllm/some-model", "openrouter/a/b"])
def test_host_knows_the_options_of_open_models(model: str) -> None:
    double = Double()
    lm = LM(model, api_key="k", base_url="http://localhost:8000/v1", transport=double, cache=False, min_p=0.1, top_k=4)
    lm("hello")
    assert json.loads(double.requests[0].body).items() >= {"min_p": 0.1, "top_k": 4}.items()


def test_option_of_other_hosts_is_refused_before_anything_is_sent() -> None:
    double = Double()
    with pytest.raises(UnsupportedOption, match="openai has no option 'min_p'"):
        LM("openai/gpt-4.1", api_key="k", transport=double, min_p=0.1)("hello")
    with pytest.raises(UnsupportedOption, match="groq has no option 'logit_bias'"):
        LM("groq/llama-3", api_key="k", transport=double, logit_bias={})
    assert double.requests == []


@pytest.mark.parametrize("change", [{"num_retries": "a"}, {"num_retries": -1}, {"retry": "often"}, {"timeout": "soon"}])
def test_copy_checks_the_kinds_of_its_changes(change: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        LM("openai/gpt-4.1").copy(**change)


def test_copy_for_another_provider_refuses_options_that_its_wires_lack() -> None:
    with pytest.raises(UnsupportedOption, match=r"openai has no option 'num_ctx' \(copying an LM\)"):
        LM("ollama/qwen3", num_ctx=4096).copy(model="openai/gpt-4.1")


def test_constructor_refuses_an_option_of_another_wire() -> None:
    assert LM("ollama/qwen3", num_ctx=4096).kwargs["num_ctx"] == 4096
    with pytest.raises(UnsupportedOption, match="openai has no option 'num_ctx'"):
        LM("openai/gpt-4.1", num_ctx=4096)
    with pytest.raises(UnsupportedOption, match="mistral has no option 'user'"):
        LM("mistral/large", user="u")


def test_common_options_load_no_codec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Wire, "load", None)
    assert LM("ollama/qwen3", **dict.fromkeys(COMMON_OPTIONS - {"cache"}, None)).model == "ollama/qwen3"


def test_options_of_a_codec_without_a_table_are_not_checked() -> None:
    register(Provider(prefix="tableless", base_url="https://x/v1", wires={"w": Wire(object(), WireProfile)}))  # type: ignore[arg-type]
    assert LM("tableless/m", speed=9).kwargs["speed"] == 9


def test_names_of_options_are_those_of_the_tables() -> None:
    wires = [wire for row in PROVIDERS.values() if not row.backend for wire in row.wires.values()]
    tables = [names for wire in wires if (names := wire.option_names()) is not None]
    extra = {
        "cache",
        "extra_body",
        "extra_headers",
        "fresh",
        "max_completion_tokens",
        "max_output_tokens",
        "reasoning_effort",
        "rollout_id",
        "strict_history",
        "strict_window",
        "thinking",
    }
    assert {"cache", "prediction", "prompt_cache"}.union(extra, *tables) == OPTION_NAMES
    of_texts = [
        frozenset(wire.option_names() or ()) for wire in wires if wire.codec != "decisions"
    ]  # deciders have few
    assert extra | {"cache", "prompt_cache"} | frozenset.intersection(*filter(None, of_texts)) == COMMON_OPTIONS


@pytest.mark.parametrize("name", PROVIDERS["offline"].models)
def test_every_embedded_model_answers_a_prompt(name: str) -> None:
    row, found = find_provider(f"offline/{name}")
    assert (row.prefix, found) == ("offline", name)
    assert LM(f"offline/{name}").respond(Request((Message.user("hello"),))).choices


def test_request_options_override_model_options(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Request] = []

    def answer(self: Lexical, request: Request) -> Response:
        seen.append(request)
        return Response()

    monkeypatch.setattr(Lexical, "answer", answer)
    lm = LM("offline/lexical", temperature=0.2, seed=5)
    lm.respond(Request(options={"temperature": 0.9}))
    assert seen[0].options == {"temperature": 0.9, "seed": 5}


async def test_respond_and_arespond_return_equal_responses() -> None:
    lm = LM("offline/lexical")
    request = Request((Message.user("hello"),), options={"n": 2})
    assert lm.respond(request) == await lm.arespond(request)
    assert len(lm.respond(request).choices) == 2


def test_capabilities_argument_replaces_those_of_the_table() -> None:
    plain = Capabilities()
    assert LM("offline/lexical").capabilities.native_tools
    assert LM("offline/lexical", capabilities=plain).capabilities is plain


def test_copy_looks_up_another_model_in_the_table() -> None:
    with pytest.raises(ConfigurationError, match="no model 'other'"):
        LM("offline/lexical").copy(model="offline/other")


# --- pickles and copies ------------------------------------------------------------------------------------


def reference() -> str:
    """A key by reference."""
    return "sk-by-reference"


SECRET: list[tuple[dict[str, Any], tuple[str, ...]]] = [
    ({"api_key": "sk-hush"}, ("api_key",)),
    ({"headers": {"Authorization": "Bearer hush", "x-team": "a"}}, ("headers",)),
    ({"base_url": "https://me:hush@llm.example/v1"}, ("base_url",)),
    ({"extra_body": {"token": "hush", "user": "u"}}, ("extra_body",)),
    ({"api_key": "sk-hush", "extra_headers": {"x-key": "hush"}}, ("extra_headers", "api_key")),
]


@pytest.mark.parametrize(("options", "lost"), SECRET, ids=[str(lost) for _, lost in SECRET])
async def test_unpickled_model_without_its_secrets_raises_when_called(
    options: dict[str, Any], lost: tuple[str, ...]
) -> None:
    lm = LM("openai/gpt-5-mini", temperature=0.5, **options)
    data = pickle.dumps(lm)
    assert b"hush" not in data
    again = pickle.loads(data)
    assert (again.model, again.kwargs["temperature"]) == ("openai/gpt-5-mini", 0.5)
    for ask in (again, pickle.loads(pickle.dumps(again)), again.copy(temperature=1.0)):
        with pytest.raises(
            ConfigurationError, match=rf"without {', '.join(lost)} .*pickles hold no secrets.*lm\.copy\({lost[0]}="
        ):
            ask("hello")
        with pytest.raises(ConfigurationError, match="hold no secrets"):
            await ask.acall("hello")
    assert "was removed" not in str(again.copy(**options))
    assert again.copy(**options)._removed == ()


def test_copies_keep_secrets_and_pickles_keep_key_functions() -> None:
    lm = LM("openai/gpt-5-mini", api_key="sk-hush", extra_body={"token": "hush"})
    for same in (copy.copy(lm), copy.deepcopy(lm), lm.copy(), copy.deepcopy({"lm": lm})["lm"]):
        assert (same._connection.api_key, same.kwargs["extra_body"]) == ("sk-hush", {"token": "hush"})
        assert same._removed == ()
    assert copy.deepcopy(lm).kwargs is not lm.kwargs
    plain = pickle.loads(pickle.dumps(LM("openai/gpt-5-mini", api_key=reference, headers={"x-team": "a"})))
    assert (plain._connection.api_key, plain._connection.headers, plain._removed) == (reference, {"x-team": "a"}, ())


def test_pickled_program_holds_no_secrets() -> None:
    program = Predict("question -> answer")
    program.set_lm(LM("openai/gpt-5-mini", api_key="sk-hush"))
    assert b"sk-hush" not in pickle.dumps(program.lm)


def test_copy_for_another_provider_drops_key_headers_and_base_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", "of-groq-1234")
    lm = LM("openai/gpt-5-mini", api_key="of-openai-1234", headers={"x-team": "a"}, timeout=5, temperature=0.5, seed=1)
    with FakeProvider(["one", "two", "three"]) as server:
        at_openai = lm.copy(base_url=server.url("openai"))
        at_openai.respond(Request((Message.user("hello"),)))
        other = at_openai.copy(model="groq/llama-3.3-70b-versatile")
        assert (other.base_url, other.timeout, other.kwargs["seed"]) == (None, 5, 1)
        assert other._connection.api_key is None
        other.copy(base_url=server.url("openai"), api_key="of-groq-1234").respond(Request((Message.user("hello"),)))
        at_openai.copy(model="openai/gpt-4o").respond(Request((Message.user("hello"),)))
        sent = [(request.headers.get("authorization"), request.headers.get("x-team")) for request in server.requests]
    assert len(sent) == 3
    assert sent[0] == sent[2] != sent[1]
    assert (sent[0][1], sent[1][1]) == ("a", None)


def test_copy_behind_litellm_drops_the_key_of_another_provider() -> None:
    lm = LM("sagemaker/some-model", api_key="of-sagemaker")
    assert lm.copy(model="sagemaker/another")._connection.api_key == "of-sagemaker"
    assert lm.copy(model="cohere/command")._connection.api_key is None
