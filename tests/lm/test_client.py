"""LM: from a model string to answers, with the model's options under the request's."""

from __future__ import annotations

import pytest

from sigwire.core.capabilities import Capabilities
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.errors import ConfigurationError
from sigwire.lm.client import LM
from sigwire.lm.offline import Lexical
from sigwire.lm.providers import PROVIDERS, find_provider


@pytest.mark.parametrize("model", ["", "lexical", "nowhere/model", "offline/", "offline/gpt"])
def test_an_unknown_model_names_the_known_ones(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)  # as if LiteLLM were not installed
    with pytest.raises(ConfigurationError, match="offline/lexical"):
        LM(model)


def test_a_model_that_is_no_string_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="not int"):
        LM(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", PROVIDERS["offline"].models)
def test_every_embedded_model_answers(name: str) -> None:
    row, found = find_provider(f"offline/{name}")
    assert (row.prefix, found) == ("offline", name)
    assert LM(f"offline/{name}").respond(Request((Message.user("hello"),))).choices


def test_options_of_the_model_go_along_and_those_of_the_request_win(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Request] = []

    def answer(self: Lexical, request: Request) -> Response:
        seen.append(request)
        return Response()

    monkeypatch.setattr(Lexical, "answer", answer)
    lm = LM("offline/lexical", temperature=0.2, seed=5)
    lm.respond(Request(options={"temperature": 0.9}))
    assert seen[0].options == {"temperature": 0.9, "seed": 5}


async def test_asking_and_awaiting_give_the_same() -> None:
    lm = LM("offline/lexical")
    request = Request((Message.user("hello"),), options={"n": 2})
    assert lm.respond(request) == await lm.arespond(request)
    assert len(lm.respond(request).choices) == 2


def test_capabilities_can_be_replaced() -> None:
    plain = Capabilities()
    assert LM("offline/lexical").capabilities.native_tools
    assert LM("offline/lexical", capabilities=plain).capabilities is plain


def test_a_copy_with_another_model_is_looked_up_again() -> None:
    with pytest.raises(ConfigurationError, match="no model 'other'"):
        LM("offline/lexical").copy(model="offline/other")
