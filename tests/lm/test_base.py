"""BaseLM: every way of writing a model, asked every way; history, copies, state."""

from __future__ import annotations

import asyncio
import io
import json
import subprocess
import sys
import threading
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest

from sigwire.core.capabilities import Capabilities
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Choice, Response
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.choice import ToolChoice
from sigwire.errors import ConfigurationError, InputError, LMUnexpectedError, OverrideError, StateError
from sigwire.lm.base import BaseLM
from sigwire.lm.client import LM
from sigwire.observe.callbacks import BaseCallback
from sigwire.settings import context

HELLO = Request((Message.user("hello"),))


class Forward(BaseLM):
    def forward(self, request: Request) -> Any:
        self.seen = request
        return Response((Choice(request.messages[-1].text.upper()),), model="served")


class AForward(BaseLM):
    async def aforward(self, request: Request) -> Any:
        await asyncio.sleep(0)
        return Response((Choice(request.messages[-1].text.upper()),))


class Texted(BaseLM):
    def forward(self, request: Request) -> str:
        return request.messages[-1].text.upper()


class Awaited(BaseLM):
    async def forward(self, request: Request) -> str:
        return request.messages[-1].text.upper()


WAYS = [Forward, AForward, Texted, Awaited]


@pytest.mark.parametrize("way", WAYS)
def test_respond_answers_with_each_form_of_custom_model(way: type[BaseLM]) -> None:
    assert way("m").respond(HELLO).choices[0].text == "HELLO"


@pytest.mark.parametrize("way", WAYS)
async def test_arespond_answers_with_each_form_of_custom_model(way: type[BaseLM]) -> None:
    assert (await way("m").arespond(HELLO)).choices[0].text == "HELLO"


@pytest.mark.parametrize("way", WAYS)
async def test_call_returns_a_list_blocking_in_a_loop_and_awaited(way: type[BaseLM]) -> None:
    assert way("m")("hello") == ["HELLO"]
    assert await way("m").acall("hello") == ["HELLO"]


async def test_arespond_runs_forward_in_a_thread() -> None:
    threads: list[int] = []

    class Slow(BaseLM):
        def forward(self, request: Request) -> str:
            threads.append(threading.get_ident())
            return "done"

    await Slow("m").acall("hello")
    assert threads != [threading.get_ident()]


def test_forward_receives_the_request() -> None:
    lm = Forward("m")
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    request = Request((Message.user("hi"),), (tool,), ToolChoice.named("f"), False, options={"temperature": 0.5})
    assert lm.respond(request).model == "served"
    assert lm.seen == request


def test_call_returns_a_dict_when_a_choice_has_more_than_text() -> None:
    class Rich(BaseLM):
        def forward(self, request: Request) -> Response:
            return Response((Choice("said", (ToolCall("call_7", "f", {"a": 1}),), "thought"),))

    (output,) = Rich("m")("go")
    assert output == {
        "text": "said",
        "reasoning_content": "thought",
        "tool_calls": [{"id": "call_7", "type": "function", "function": {"name": "f", "arguments": '{"a":1}'}}],
    }


@pytest.mark.parametrize("name", ["forward", "aforward"])
def test_forward_in_the_form_of_dspy_is_refused_with_a_hint_to_the_door(name: str) -> None:
    with pytest.raises(OverrideError, match=rf"{name}\(self, request\).*sigwire\.dspy"):
        type("Mine", (BaseLM,), {name: lambda self, prompt=None, messages=None, **kwargs: None})


def test_model_without_forward_raises_with_a_hint() -> None:
    with pytest.raises(ConfigurationError, match="Define forward"):
        BaseLM("m")("hello")


def test_forward_result_of_unknown_form_is_an_error() -> None:
    class Wrong(BaseLM):
        def forward(self, request: Request) -> int:
            return 42

    with pytest.raises(LMUnexpectedError, match=r"Wrong answered with int.*sigwire\.dspy"):
        Wrong("m")("hello")


def test_call_without_prompt_and_messages_is_refused() -> None:
    with pytest.raises(InputError, match="without prompt and messages"):
        Forward("m")()


def test_capabilities_are_the_given_object() -> None:
    given = Capabilities(native_tools=True, json_schema=True)
    assert Forward("m").capabilities == Capabilities()
    assert Forward("m", capabilities=given).capabilities is given
    model = Forward("m")
    assert model.capabilities is model.capabilities  # plans are cached by it


def test_model_type_is_refused_with_a_hint_to_the_door() -> None:
    assert Forward("m", model_type="chat").kwargs.keys() == {"temperature", "max_tokens"}
    with pytest.raises(ConfigurationError, match=r"wire='responses'.*sigwire\.dspy\.LM"):
        Forward("m", model_type="responses")


# --- history and callbacks ----------------------------------------------------------------------------


def test_history_entry_has_dspys_keys_and_no_secrets() -> None:
    lm = Forward("m")
    lm("hello", api_key="s3cret", temperature=0.1)
    (entry,) = lm.history
    assert set(entry) == {
        "prompt", "messages", "kwargs", "response", "outputs", "usage", "cost", "timestamp", "uuid", "model",
        "response_model", "model_type",
    }  # fmt: skip
    assert entry["prompt"] == "hello"
    assert entry["kwargs"] == {"temperature": 0.1}
    assert (entry["model"], entry["response_model"], entry["outputs"]) == ("m", "served", ["HELLO"])
    assert lm.history[0] is entry


def test_history_is_bounded_and_can_be_disabled() -> None:
    lm = Forward("m")
    for number in range(lm.history_size + 5):
        lm(str(number))
    assert len(lm.history) == lm.history_size
    assert lm.history[0]["prompt"] == "5"

    class Forgetful(Forward):
        history_size = 0

    forgetful = Forgetful("m")
    forgetful("hello")
    assert len(forgetful.history) == 0


async def test_setting_lets_a_model_keep_more_calls_and_never_fewer() -> None:
    lm = Forward("m")
    with context(max_history_size=60):
        for number in range(55):
            lm(str(number))
        for _ in range(6):
            await lm.acall("awaited")
    assert (len(lm.history), lm.history[0]["prompt"]) == (60, "1")
    lm("outside")
    with context(max_history_size=1):
        lm("fewer")
    assert len(lm.history) == 60

    class Forgetful(Forward):
        history_size = 0

    with context(max_history_size=60):
        (forgetful := Forgetful("m"))("hello")
    assert len(forgetful.history) == 0


def test_history_is_emptied_by_an_empty_list_and_takes_no_other_calls() -> None:
    lm = Forward("m")
    lm("first")
    lm.history = []
    lm("second")
    assert [entry["prompt"] for entry in lm.history] == ["second"]
    assert lm.history.size == Forward.history_size
    with pytest.raises(InputError, match=r"takes no other calls; lm\.history = \[\] empties it"):
        lm.history = [{"prompt": "third"}]


@pytest.mark.parametrize("cls", [LM, Forward])
def test_model_whose_making_failed_has_a_repr(cls: type[BaseLM]) -> None:
    assert repr(cls.__new__(cls)) == f"{cls.__name__}(None)"


def test_inspect_history_prints_the_last_calls() -> None:
    lm, out = Forward("m"), io.StringIO()
    lm("first")
    lm("second")
    lm.inspect_history(n=1, file=out)
    assert "second" in out.getvalue()
    assert "SECOND" in out.getvalue()
    assert "first" not in out.getvalue()


class Listener(BaseCallback):
    def __init__(self) -> None:
        self.seen: list[Any] = []

    def on_lm_start(self, call_id: str, instance: Any, inputs: Any) -> None:
        self.seen.append((instance.model, dict(inputs)))

    def on_lm_end(self, call_id: str, outputs: Any, exception: BaseException | None = None) -> None:
        self.seen.append(outputs.choices[0].text if outputs else exception)


async def test_callbacks_receive_each_call_blocking_and_awaited() -> None:
    listener = Listener()
    lm = Forward("m", callbacks=[listener])
    lm("hi", api_key="s3cret")
    await lm.arespond(HELLO)
    (model, inputs), first, _, second = listener.seen
    assert (model, inputs["prompt"], inputs["messages"]) == ("m", "hi", [{"role": "user", "content": "hi"}])
    assert "s3cret" not in repr({name: value for name, value in inputs.items() if name != "request"})
    assert (first, second) == ("HI", "HELLO")


def test_callbacks_receive_the_error_of_a_failed_call() -> None:
    class Broken(BaseLM):
        def forward(self, request: Request) -> str:
            raise RuntimeError("down")

    listener = Listener()
    with pytest.raises(RuntimeError, match="down"):
        Broken("m", callbacks=[listener])("hi")
    assert isinstance(listener.seen[-1], RuntimeError)


# --- copies and state -----------------------------------------------------------------------------------


def test_copy_has_its_own_options_callbacks_and_history() -> None:
    lm = Forward("m", temperature=0.0, seed=1)
    lm("hello")
    copy = lm.copy(temperature=1.0, seed=None, rollout_id=2, num_retries=7)
    copy.callbacks.append(Listener())
    assert copy.kwargs == {"temperature": 1.0, "max_tokens": None, "rollout_id": 2}
    assert copy.num_retries == 7
    assert lm.kwargs == {"temperature": 0.0, "max_tokens": None, "seed": 1}
    assert (len(copy.history), len(lm.history), lm.callbacks) == (0, 1, [])


SECRETS: dict[str, Any] = {
    "api_key": "CANARY",
    "headers": {"Authorization": "Bearer CANARY"},
    "extra_headers": {"x": "CANARY"},
    "azure_ad_token": "CANARY",
    "aws_secret_access_key": "CANARY",
    "extra_body": {"user": "u", "password": "CANARY"},
    "base_url": "https://me:CANARY@example.com",
    "client": object(),
}


def test_no_secret_reaches_state_or_repr() -> None:
    lm = Forward("m", temperature=0.5, **SECRETS)
    assert "CANARY" not in json.dumps(lm.dump_state())
    assert "CANARY" not in repr(lm)
    assert lm.dump_state()["extra_body"] == {"user": "u"}
    assert lm.dump_state()["max_tokens"] is None


def test_load_state_rebuilds_the_model() -> None:
    lm = LM("offline/lexical", temperature=0.3, max_tokens=7, num_retries=1, seed=4)
    loaded = BaseLM.load_state(json.loads(json.dumps(lm.dump_state())))
    assert isinstance(loaded, LM)
    assert (loaded.model, loaded.kwargs, loaded.num_retries) == (lm.model, lm.kwargs, 1)


def test_load_state_imports_a_foreign_class_only_when_trusted() -> None:
    state = Forward("m", seed=4).dump_state()
    with pytest.raises(StateError, match="allow_unsafe_lm_state=True"):
        BaseLM.load_state(state)
    assert isinstance(Forward.load_state(state), Forward)


class Outer:
    class Inner(BaseLM):
        loaded: ClassVar[list[str]] = []

        @classmethod
        def load_state(cls, state: Mapping[str, object], *, allow_unsafe_lm_state: bool = False) -> BaseLM:
            cls.loaded.append(str(state["model"]))
            return super().load_state(state, allow_unsafe_lm_state=allow_unsafe_lm_state)


def test_load_state_finds_a_class_inside_a_class_and_calls_its_load_state() -> None:
    loaded = BaseLM.load_state(Outer.Inner("m").dump_state(), allow_unsafe_lm_state=True)
    assert isinstance(loaded, Outer.Inner)
    assert Outer.Inner.loaded == ["m"]


@pytest.mark.parametrize("path", ["no.such.module.LM", "tests.lm.test_base.Missing", "f.<locals>.LM"])
def test_load_state_of_a_class_that_cannot_be_found_is_a_state_error(path: str) -> None:
    with pytest.raises(StateError, match="is no language model class"):
        BaseLM.load_state({"model": "m", "class": path}, allow_unsafe_lm_state=True)


ENDPOINTS = "api_base azure_endpoint base_url endpoint host model_list proxies proxy_url server".split()


@pytest.mark.parametrize("model", ["offline/lexical", "openai/gpt-5-mini"])
@pytest.mark.parametrize("option", ENDPOINTS)
def test_load_state_refuses_an_address_that_is_not_trusted(option: str, model: str) -> None:
    state = {**LM(model, seed=4).dump_state(), option: "https://me:pass@attacker.example/v1?key=canary"}
    with pytest.raises(
        StateError, match=rf"{option}='https://attacker.example/v1'.*lm=LM.*allow_unsafe_lm_state"
    ) as caught:
        LM.load_state(state)
    assert "canary" not in str(caught.value)
    assert "me:pass" not in str(caught.value)


def test_load_state_drops_headers_and_keeps_a_trusted_address() -> None:
    state = {**LM("offline/lexical", seed=4).dump_state(), "extra_headers": {"Host": "attacker.example"}}
    loaded = LM.load_state(state)
    assert "attacker" not in repr(loaded)
    assert loaded.kwargs["seed"] == 4
    trusted = LM.load_state(
        {"model": "offline/lexical", "base_url": "https://here.example"}, allow_unsafe_lm_state=True
    )
    assert isinstance(trusted, LM)
    assert trusted.base_url == "https://here.example"


def test_load_state_takes_the_address_that_the_model_has_here(monkeypatch: pytest.MonkeyPatch) -> None:
    state = LM("openai/gpt-5-mini", base_url="https://gpu-box.example/v1").dump_state()
    assert LM.load_state({**state, "base_url": "https://api.openai.com/v1/"})
    monkeypatch.setenv("OPENAI_BASE_URL", "https://gpu-box.example/v1")
    loaded = LM.load_state(state)
    assert isinstance(loaded, LM)
    assert loaded.address == "https://gpu-box.example/v1"


def test_dump_state_keeps_an_address_without_its_password() -> None:
    state = LM("openai/gpt-5-mini", base_url="https://me:pass@gpu-box.example/v1").dump_state()
    assert state["base_url"] == "https://gpu-box.example/v1"
    assert BaseLM("m", api_base="https://me:pass@gpu-box.example/v1").dump_state()["api_base"] == state["base_url"]


def test_load_state_ignores_keys_of_objects() -> None:
    state = {**LM("offline/lexical").dump_state(), "callbacks": ["x"], "capabilities": {"native_tools": False}}
    for trusted in (True, False):
        loaded = LM.load_state(state, allow_unsafe_lm_state=trusted)
        assert loaded.callbacks == []
        assert loaded.capabilities.native_tools


NO_MODELS: list[dict[str, Any]] = [
    {},
    {"model": 3},
    {"model": "m", "class": "os.path.join"},
    {"model": "offline/lexical", "self": 1},
    {"model": "offline/lexical", "transport": "http://proxy"},
    {"model": "offline/lexical", "retry": {"retries": 5}},
    {"model": "offline/lexical", "retry": "often"},
    {"model": "offline/lexical", "num_retries": "3"},
    {"model": "offline/lexical", "timeout": "soon"},
    {"model": "offline/lexical", "base_url": 5},
    {"model": "offline/lexical", "headers": [1]},
    {"model": "offline/lexical", "wire": 5},
    {"model": "offline/lexical", "api_key": 5},
    {"model": "offline/lexical", "temprature": 5},
    {"model": "offline/lexical", "cache": {"ttl": "1h"}},
    {"model": "m", "class": 5},
    {"model": "m", "class": "no.such.module.Class"},
]


@pytest.mark.parametrize("state", NO_MODELS)
def test_load_state_refuses_a_state_that_fits_no_model(state: dict[str, Any]) -> None:
    with pytest.raises(StateError):
        BaseLM.load_state(state, allow_unsafe_lm_state=True)


def test_load_state_accepts_what_dspy_saves() -> None:
    state = {
        "model": "offline/lexical", "model_type": "chat", "cache": True, "num_retries": 3, "temperature": None,
        "max_tokens": 100, "finetuning_model": None, "launch_kwargs": {}, "train_kwargs": {},
    }  # fmt: skip
    assert BaseLM.load_state(state).kwargs == {"temperature": None, "max_tokens": 100}


def test_call_accepts_message_values() -> None:
    call = ToolCall("call_0", "f", {"a": 1})
    lm = Forward("m")
    lm(messages=[Message.assistant("", [call]), {"role": "user", "content": "go"}])
    assert lm.seen.messages == (Message.assistant("", [call]), Message.user("go"))


@pytest.mark.parametrize(
    ("name", "home"),
    [
        ("", "sigwire.lm.client"),
        pytest.param("sigwire.lm.client.LM", "sigwire.lm.client", marks=pytest.mark.long),
        pytest.param("sigwire.dspy.lm.LM", "sigwire.dspy.lm", marks=pytest.mark.long),
        ("dspy.clients.lm.LM", "sigwire.dspy.lm"),
    ],
)
def test_state_loads_its_class_in_a_process_that_has_imported_only_the_base(name: str, home: str) -> None:
    program = (
        "import sys; from sigwire.lm.base import BaseLM; "
        f"lm = BaseLM.load_state({{'class': {name!r}, 'model': 'openai/gpt-4o'}}); "
        "print(type(lm).__module__, 'sigwire.dspy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [home, str(home.startswith("sigwire.dspy"))]
