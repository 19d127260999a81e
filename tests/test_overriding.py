"""Each public method of each public base class: an override is used by every kind of call, or its class is refused."""

from __future__ import annotations

import asyncio
import functools
import inspect
import re
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any, TypeAlias

import pytest

import sigwire
import sigwire.dspy as dspy
from sigwire.core.capabilities import Capabilities
from sigwire.core.messages import Message
from sigwire.core.request import Request
from sigwire.core.response import Usage
from sigwire.core.tools.calls import ToolCall
from sigwire.errors import CallerError, ConfigurationError, OverrideError
from sigwire.modules.module import Module, StepsModule
from sigwire.observe.usage import track_usage

Call: TypeAlias = Callable[[Any], Any]

LMS = [sigwire.BaseLM, sigwire.LM, sigwire.FakeLM, dspy.BaseLM, dspy.LM, dspy.DummyLM]
ADAPTERS = [
    sigwire.Adapter, sigwire.ChatAdapter, sigwire.JSONAdapter, sigwire.XMLAdapter, sigwire.TwoStepAdapter,
    dspy.Adapter, dspy.ChatAdapter, dspy.JSONAdapter, dspy.XMLAdapter, dspy.TwoStepAdapter,
]  # fmt: skip
MODULES = [
    Module, StepsModule, sigwire.Predict, sigwire.ChainOfThought, sigwire.ReAct,
    dspy.Module, dspy.Predict, dspy.ChainOfThought, dspy.ReAct,
]  # fmt: skip
TOOLS = [sigwire.Tool, dspy.Tool]

# Methods that every call uses: the tests below override each of them.
USED = {
    "lm": {  # __call__: of the door
        "__call__",
        "acall",
        "forward",
        "aforward",
        "capabilities",
        "default_capabilities",
        "history_limit",
        "prepare_request",
    },
    "adapter": {
        "fallback",
        "layout",
        "mode",
        "plan",
        "compile",
        "make_plan",
    },  # tests/dspy/test_adapters.py and test_calls.py override those of DSPy
    "module": {"forward", "aforward", "steps"},
    "tool": {"bind", "parameters", "spec"},
}
# Methods that runs of one class use: tests/dspy/test_modules.py and tests/dspy/test_text_loop.py override them.
USED_BY: dict[type, set[str]] = {dspy.Module: {"__call__", "acall"}, dspy.ReAct: {"truncate_trajectory"}}
# Methods of sigwire's own steps, by the classes whose calls use them; a module of the user calls its own.
HOOKS: dict[type, set[str]] = {
    **{
        base: {"decide_call", "plan_for", "prepare_inputs", "settings_of_call"}
        for base in (sigwire.Predict, dspy.Predict)
    },
    **{base: {"prepare_inputs", "run_fields", "turn_steps"} for base in (sigwire.ReAct, dspy.ReAct)},
}
# Methods that only the user calls, or another method of this list: an override is called as any method of Python is.
CALLED_BY_USERS = {
    "lm": {
        "address", "base_url", "check_options", "close", "copy", "dump_state", "get_convo", "health", "history", "masked",
        "history_size", "inspect_history", "load_state", "preview", "remaining", "sibling", "supported_params",
        "check_addresses", "supports_function_calling", "supports_reasoning", "supports_response_schema",
        "targets",  # a router calls it when it is made
        "logprobs_refusal",  # calls with evidence="auto" ask it: tests/modules/test_deciding.py
    },
    "adapter": {
        "__call__", "acall", "format", "format_assistant_message_content", "format_conversation_history", "format_demos",
        "format_field_description", "format_field_structure", "format_system_message", "format_task_description",
        "format_user_message_content", "parse",
        "reading_model",  # calls with evidence ask it: tests/modules/test_deciding.py
    },
    "module": {
        "abatch", "aresume", "aresume_stream", "batch", "dump_state", "export", "get_config", "get_lm", "history",
        "inspect_history", "load", "load_result", "load_state", "map_named_predictors", "named_parameters",
        "named_predictors", "named_sub_modules", "optimization", "parameters", "predictors", "prepare_state", "preview",
        "reset", "reset_copy", "resume", "resume_stream", "save", "session", "set_lm", "show", "update_config",
        "tool_source",  # a tool calls it when it is made: tests/core/tools/test_module_tool.py
        "names_for_search", "request_of",  # conversations that fold, and their summaries, call them: tests/modules/context
        "fields", "get_criteria", "set_criteria",  # tests/dspy/behaviours/decisions.py
        "loop_options",  # saving calls it: tests/dspy/test_text_loop.py
        "takes_text_loop", "use_text_loop",  # streams and loaders of the door do: tests/dspy/test_text_loop.py
    },
    "tool": {
        "from_function", "from_json", "from_langchain", "from_mcp_tool", "from_schema", "of", "show", "then", "to_json",
        "web_search",
        "with_spec",  # the search of tools calls it: tests/modules/agents/test_tool_search.py
    },
}  # fmt: skip
KINDS: list[tuple[str, type]] = [
    *(("lm", base) for base in LMS),
    *(("adapter", base) for base in ADAPTERS),
    *(("module", base) for base in MODULES),
    *(("tool", base) for base in TOOLS),
]


def subclass(base: type, **methods: Any) -> Any:
    return type("Mine", (base,), {"__module__": "mine", **methods})


def public_methods(base: type) -> list[str]:
    """The methods and properties of a class that a subclass can override; slots are no methods."""
    found: list[str] = []
    for name in (*(name for name in dir(base) if not name.startswith("_")), "__call__"):
        value = inspect.getattr_static(base, name, None)
        if isinstance(value, (classmethod, staticmethod, property)) or inspect.isfunction(value):
            found.append(name)
    return found


def test_each_public_method_is_used_by_calls_or_refused() -> None:
    open_ends: list[str] = []
    for kind, base in KINDS:
        for name in public_methods(base):
            try:
                subclass(base, **{name: inspect.getattr_static(base, name)})
            except OverrideError:
                continue
            if name not in USED[kind] | CALLED_BY_USERS[kind] | HOOKS.get(base, set()) | USED_BY.get(base, set()):
                open_ends.append(f"{base.__module__}.{base.__name__}.{name}")
    assert open_ends == []


REFUSED: list[tuple[type, str]] = [
    (sigwire.BaseLM, "respond"),
    (sigwire.LM, "astream"),
    (sigwire.LM, "acall"),
    (sigwire.FakeLM, "__call__"),
    (sigwire.LM, "capabilities"),
    (sigwire.LM, "base_url"),
    (dspy.LM, "supports_function_calling"),
    (sigwire.FakeLM, "steps"),
    (sigwire.ChatAdapter, "format"),
    (sigwire.JSONAdapter, "parse"),
    (sigwire.XMLAdapter, "normalize"),
    (sigwire.ChatAdapter, "format_demos"),
    (sigwire.ChatAdapter, "__call__"),
    (dspy.TwoStepAdapter, "format_system_message"),
    (Module, "__call__"),
    (dspy.Predict, "acall"),
    (sigwire.Predict, "stream"),
    (sigwire.ReAct, "tools"),
    (sigwire.Tool, "acall"),
    (dspy.Tool, "args"),
]


@pytest.mark.parametrize(("base", "name"), REFUSED)
def test_method_that_calls_bypass_is_refused_when_the_class_is_made(base: type, name: str) -> None:
    with pytest.raises(TypeError, match=rf"Mine overrides '{name}'.*Instead, ") as caught:
        subclass(base, **{name: lambda self: None})
    assert isinstance(caught.value, CallerError)


def test_override_by_a_mixin_is_refused() -> None:
    mixin = type("Mixin", (), {"respond": lambda self, request: request})
    with pytest.raises(OverrideError, match="'respond' of BaseLM"):
        type("Mine", (mixin, sigwire.LM), {})


def test_module_with_steps_and_forward_is_refused() -> None:
    with pytest.raises(OverrideError, match="steps and forward"):
        subclass(sigwire.Predict, steps=lambda self: None, forward=lambda self: None)


# --- hooks ----------------------------------------------------------------------------------------------

METHOD_HOOKS: list[tuple[type, str, str]] = [
    (sigwire.BaseLM, "default_capabilities", "default_capabilities(self)"),
    (sigwire.BaseLM, "history_limit", "history_limit(self, configured)"),
    (sigwire.LM, "prepare_request", "prepare_request(self, request)"),
    (dspy.LM, "history_limit", "history_limit(self, configured)"),
    (dspy.LM, "prepare_request", "prepare_request(self, request)"),
    (sigwire.Predict, "prepare_inputs", "prepare_inputs(self, reader, given, *, check_types=True)"),
    (sigwire.Predict, "plan_for", "plan_for(self, signature, lm, values, options)"),
    (sigwire.Predict, "settings_of_call", "settings_of_call(self)"),
    (sigwire.ReAct, "prepare_inputs", "prepare_inputs(self, reader, given, *, check_types=True)"),
    (sigwire.ReAct, "run_fields", "run_fields(self, run)"),
    (sigwire.ReAct, "turn_steps", "turn_steps(self, state, limit)"),
    (sigwire.RLM, "prepare_inputs", "prepare_inputs(self, reader, given, *, check_types=True)"),
    (sigwire.ProgramOfThought, "prepare_inputs", "prepare_inputs(self, reader, given, *, check_types=True)"),
    (sigwire.BestOfN, "next_program", "next_program(self, program, found, inputs)"),
    (sigwire.GEPA, "evolution_plan", "evolution_plan(self, train, val, predictors)"),
    (sigwire.Optimizer, "row_sets", "row_sets(self, trainset, valset, given)"),
    (sigwire.COPRO, "check_options", "check_options(self, student, options)"),
    (dspy.Predict, "plan_for", "plan_for(self, signature, lm, values, options)"),
    (dspy.Predict, "settings_of_call", "settings_of_call(self)"),
    (dspy.ReAct, "run_fields", "run_fields(self, run)"),
]
VALUE_HOOKS: list[tuple[type, str]] = [
    (sigwire.BaseLM, "entries"),
    (sigwire.BaseLM, "fixed_methods"),
    (dspy.LM, "entries"),
    (sigwire.LM, "open_options"),
    (sigwire.ChainOfThought, "predictor_classes"),
    (sigwire.ReAct, "predictor_classes"),
    (sigwire.ReAct, "takes_plain_text"),
    (sigwire.ProgramOfThought, "predictor_classes"),
    (sigwire.RLM, "session_classes"),
    (sigwire.Embeddings, "files"),
    (sigwire.Adapter, "fixed_methods"),
    (Module, "fixed_methods"),
]


def wrong_methods() -> list[Any]:
    """Return members with the name of a hook that no call can use."""

    async def awaited(self: Any, *args: Any, **kwargs: Any) -> None: ...

    helper: Any = lambda self, a, b, c, d, e, f: None  # noqa: E731
    return [helper, staticmethod(helper), classmethod(helper), property(helper), awaited, ["a"], None]


@pytest.mark.parametrize(("base", "name", "form"), METHOD_HOOKS)
def test_method_with_the_name_of_a_hook_and_another_form_is_refused_with_the_form(
    base: type, name: str, form: str
) -> None:
    text = (
        rf"Mine overrides the hook '{name}' of \w+, .*creating the class.*Write {re.escape(form)}, or rename yours\.$"
    )
    for wrong in wrong_methods():
        with pytest.raises(OverrideError, match=text):
            subclass(base, **{name: wrong})
        with pytest.raises(OverrideError, match=text):
            type("Mine", (type("Mixin", (), {name: wrong}), base), {"__module__": "mine"})


@pytest.mark.parametrize(("base", "name", "form"), METHOD_HOOKS)
def test_method_that_takes_the_arguments_of_a_hook_is_accepted(base: type, name: str, form: str) -> None:
    any_arguments: Any = lambda *args, **kwargs: None  # noqa: E731
    kept = inspect.getattr_static(base, name)
    for right in (
        any_arguments,
        staticmethod(any_arguments),
        classmethod(any_arguments),
        functools.partialmethod(kept),
        kept,
    ):
        assert subclass(base, **{name: right})


@pytest.mark.parametrize(("base", "name"), VALUE_HOOKS)
def test_value_with_the_name_of_a_hook_and_another_type_is_refused(base: type, name: str) -> None:
    for wrong in (["a"], "a", 3, lambda self: None):
        with pytest.raises(OverrideError, match=rf"Mine overrides the hook '{name}' of .*Write {name} = "):
            subclass(base, **{name: wrong})


@pytest.mark.parametrize("base", [sigwire.LM, dspy.LM])
def test_hooks_of_a_request_and_of_a_history_are_used_by_each_call(base: Any) -> None:
    class Mine(base):  # type: ignore[misc]
        def prepare_request(self, request: Request) -> Request:
            seen.append(request)
            return request

        def history_limit(self, configured: int) -> int:
            return 1

    seen: list[Request] = []
    lm = Mine("offline/lexical")
    lm("one")
    asyncio.run(lm.acall("two"))
    list(lm.stream(Request((Message.user("three"),))))
    assert (len(seen), len(lm.history)) == (3, 1)


@pytest.mark.parametrize("base", [sigwire.ChatAdapter, dspy.ChatAdapter])
def test_fallback_of_an_adapter_is_used_by_each_call(base: Any) -> None:
    class Mine(base):  # type: ignore[misc]
        def fallback(self) -> sigwire.Adapter:
            return sigwire.JSONAdapter()

    predict = (dspy if base is dspy.ChatAdapter else sigwire).Predict("question -> answer: int")
    with sigwire.context(adapter=Mine(), lm=sigwire.FakeLM(["nonsense", '{"answer": 4}'] * 2)):
        assert predict(question="?").answer == asyncio.run(predict.acall(question="?")).answer == 4


def test_attributes_of_an_instance_with_the_names_of_hooks_are_its_own() -> None:
    class Counting(sigwire.BaseLM):
        def __init__(self, model: str) -> None:
            super().__init__(model)
            self.entries: Any = []

        def forward(self, request: Any) -> str:
            return "four"

    lm = Counting("m")
    assert lm("hi") == ["four"]
    assert len(sigwire.Router([lm]).targets()) == 1
    assert lm.entries == []
    bare = sigwire.BaseLM("m")
    bare.entries = []  # type: ignore[misc,assignment]
    with pytest.raises(ConfigurationError, match="Define forward"):
        bare("hi")


@pytest.mark.parametrize(
    "base",
    [Module, sigwire.ChainOfThought, sigwire.MultiChainComparison, sigwire.BestOfN, dspy.Module, dspy.ChainOfThought],
)
def test_module_that_reads_no_inputs_lacks_their_hook(base: type) -> None:
    assert not hasattr(base, "prepare_inputs")
    assert subclass(base, prepare_inputs=lambda self, text: text)


def test_inputs_of_modules_that_run_code_go_through_their_hook() -> None:
    pytest.importorskip("pydantic_monty")
    for base, code in ((sigwire.RLM, "code"), (sigwire.ProgramOfThought, "generated_code")):
        seen: list[str] = []
        module = overriding(base, "prepare_inputs", seen)(QA)
        module.set_lm(sigwire.FakeLM([{"reasoning": "So.", code: "submit(answer='Oslo')"}]))
        assert module(question="?").answer == "Oslo"
        assert seen == ["prepare_inputs"]


# --- every kind of call --------------------------------------------------------------------------------

QA = "question -> answer"


async def _astreamed(module: Any, **inputs: Any) -> Any:
    events = [event async for event in module.astream(**inputs)]
    return events[-1].value


async def _awaited(module: Any, **inputs: Any) -> Any:
    return await module.acall(**inputs)


def _streamed(module: Any, **inputs: Any) -> Any:
    return [*module.stream(**inputs)][-1].value


async def _abatched(module: Any, **inputs: Any) -> Any:
    return (await module.abatch([inputs]))[0]


CALLS: Mapping[str, Callable[..., Any]] = {
    "sync": lambda module, **inputs: module(**inputs),
    "async": _awaited,
    "stream": _streamed,
    "astream": _astreamed,
    "batch": lambda module, **inputs: module.batch([inputs])[0],
    "abatch": _abatched,
}


async def call(way: str, module: Any, **inputs: Any) -> Any:
    """Call a module in one of the six ways."""
    result = CALLS[way](module, **inputs)
    return await result if inspect.isawaitable(result) else result


def overriding(base: type, name: str, seen: list[str]) -> Any:
    """A subclass whose method notes its name and calls ``super()``."""

    def blocking(self: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(name)
        return getattr(super(made, self), name)(*args, **kwargs)

    async def awaited(self: Any, *args: Any, **kwargs: Any) -> Any:
        seen.append(name)
        return await getattr(super(made, self), name)(*args, **kwargs)

    def read(self: Any) -> Any:
        seen.append(name)
        return getattr(super(made, self), name)

    is_property = isinstance(inspect.getattr_static(base, name), property)
    made = subclass(
        base, **{name: property(read) if is_property else awaited if name in ("acall", "aforward") else blocking}
    )
    return made


class DoorFake(sigwire.FakeLM, dspy.BaseLM):
    """A scripted model of the door."""


def fields(request: Any) -> dict[str, str]:
    return {"answer": "Oslo", "reasoning": "A capital."}


MODELS: list[tuple[type, Callable[[Any], Any]]] = [
    (sigwire.LM, lambda made: made("offline/lexical")),
    (sigwire.FakeLM, lambda made: made(fields, usage=Usage(3, 4))),
    (dspy.LM, lambda made: made("offline/lexical")),
    (dspy.DummyLM, lambda made: made([{"answer": "Oslo"}] * 9)),
]
DOOR = {dspy.LM, dspy.DummyLM}
ENTRIES = ["forward", "aforward"]
DOOR_ENTRIES = ["__call__", "acall", *ENTRIES]


@pytest.mark.parametrize(
    ("base", "make", "name"),
    [(base, make, name) for base, make in MODELS for name in (DOOR_ENTRIES if base in DOOR else ENTRIES)],
)
async def test_overridden_entry_of_a_model_is_used_by_every_call(base: type, make: Call, name: str) -> None:
    for way in CALLS:
        seen: list[str] = []
        lm = make(overriding(base, name, seen))
        result = await call(way, sigwire.Predict(QA, lm=lm), question="The capital of Norway is Oslo?")
        assert isinstance(result.answer, str)
        assert (way, seen, len(lm.history)) == (way, [name], 1)


@pytest.mark.parametrize(("base", "name"), [*product([sigwire.FakeLM], ENTRIES), *product([DoorFake], DOOR_ENTRIES)])
async def test_overridden_entry_of_a_model_is_used_by_direct_calls_and_by_agents(base: type, name: str) -> None:
    seen: list[str] = []
    lm = overriding(base, name, seen)([ToolCall("a", "submit", {"answer": "Oslo"}), "one", "two"])
    agent = sigwire.ReAct(QA, tools={"double": lambda n: 2 * n})
    agent.set_lm(lm)
    assert agent(question="?").answer == "Oslo"
    assert (lm("hi"), await lm.acall("hi")) == (["one"], ["two"])
    assert seen == [name] * 3
    assert len(lm.history) == 3


async def test_overridden_call_keeps_the_response_of_the_model() -> None:
    for way in CALLS:
        lm = overriding(DoorFake, "__call__", [])(fields, usage=Usage(3, 4))
        with track_usage() as tracker:
            result = await call(way, sigwire.Predict(QA, lm=lm), question="?")
        assert (way, result.usage) == (way, Usage(3, 4))
        assert len(tracker.usage_data["fake"]) == 1


def test_overridden_call_may_ask_twice_and_change_the_answer() -> None:
    class Twice(DoorFake):
        def __call__(self, *args: Any, **kwargs: Any) -> list[Any]:
            first, second = super().__call__(*args, **kwargs), super().__call__(*args, **kwargs)
            return [first[0].replace("one", second[0])]

    lm = Twice(["[[ ## answer ## ]]\none", "two"], usage=Usage(3, 4))
    result = sigwire.Predict(QA, lm=lm)(question="?")
    assert (result.answer, result.usage) == ("two", Usage(6, 8))


def test_inner_entry_is_used_inside_the_outer_entry() -> None:
    seen: list[str] = []

    class Both(dspy.BaseLM):
        def __call__(self, *args: Any, **kwargs: Any) -> list[Any]:
            seen.append("call")
            return super().__call__(*args, **kwargs)

        def forward(self, prompt: Any = None, messages: Any = None, **kwargs: Any) -> Any:
            seen.append("forward")
            return ["[[ ## answer ## ]]\nOslo"]

    assert sigwire.Predict(QA, lm=Both("m"))(question="?").answer == "Oslo"
    assert seen == ["call", "forward"]


@pytest.mark.parametrize("base", [sigwire.BaseLM, sigwire.LM, dspy.BaseLM])
async def test_async_forward_is_awaited(base: type) -> None:
    async def forward(self: Any, *args: Any, **kwargs: Any) -> Any:
        return "[[ ## answer ## ]]\nOslo"

    predict = sigwire.Predict(QA, lm=subclass(base, forward=forward)("offline/lexical"))
    answers = {way: (await call(way, predict, question="?")).answer for way in CALLS}
    assert answers == dict.fromkeys(CALLS, "Oslo")


@pytest.mark.parametrize("base", [sigwire.BaseLM, dspy.BaseLM])
async def test_overridden_capabilities_are_used_by_every_call(base: type) -> None:
    lm = subclass(
        base, capabilities=property(lambda self: Capabilities(json_object=True)),
        forward=lambda self, *args, **kwargs: '{"answer": "Oslo"}',
    )("m")  # fmt: skip
    with sigwire.context(adapter=sigwire.JSONAdapter()):
        modes = {way: (await call(way, sigwire.Predict(QA, lm=lm), question="?")).mode for way in CALLS}
    assert modes == dict.fromkeys(CALLS, "native_json")


@pytest.mark.parametrize("base", [sigwire.BaseLM, dspy.BaseLM])
async def test_overridden_default_capabilities_are_used_by_every_call(base: type) -> None:
    lm = subclass(
        base, default_capabilities=lambda self: Capabilities(json_object=True),
        forward=lambda self, *args, **kwargs: '{"answer": "Oslo"}',
    )("m")  # fmt: skip
    with sigwire.context(adapter=sigwire.JSONAdapter()):
        modes = {way: (await call(way, sigwire.Predict(QA, lm=lm), question="?")).mode for way in CALLS}
    assert modes == dict.fromkeys(CALLS, "native_json")


def test_supported_params_of_a_dspy_model_decide_its_json_mode() -> None:
    lm = subclass(dspy.BaseLM, supported_params={"response_format"})("m")
    assert lm.capabilities.json_object


# --- adapters, modules, tools ------------------------------------------------------------------------------


def adapter_of(base: type, name: str, seen: list[str]) -> Any:
    made = overriding(base, name, seen)
    return made(sigwire.FakeLM(fields)) if issubclass(base, sigwire.TwoStepAdapter) else made()


@pytest.mark.parametrize("base", [base for base in ADAPTERS if not inspect.isabstract(base)])
async def test_overridden_method_of_an_adapter_is_used_by_every_call(base: type) -> None:
    lm = sigwire.FakeLM(fields, adapter=object.__new__(base))
    for way, name in product(("sync", "async", "stream"), USED["adapter"]):
        seen: list[str] = []
        with sigwire.context(adapter=adapter_of(base, name, seen)):
            assert (await call(way, sigwire.Predict(QA, lm=lm), question="?")).answer == "Oslo"
        assert set(seen) == {name}


class Outer(Module):
    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def forward(self, question: str) -> Any:
        return self.inner(question=question)


@pytest.mark.parametrize("name", sorted(USED["module"]))
@pytest.mark.parametrize("base", [base for base in MODULES if hasattr(base, "steps") and base is not StepsModule])
async def test_overridden_entry_of_a_module_is_used_by_every_call(base: type, name: str) -> None:
    seen: list[str] = []
    module = overriding(base, name, seen)(QA)
    module.set_lm(sigwire.FakeLM(fields))
    for way, program in product(CALLS, (module, Outer(module))):
        assert (await call(way, program, question="?")).answer == "Oslo"
    assert seen == [name] * 2 * len(CALLS)


@pytest.mark.parametrize(
    ("base", "name"),
    [(base, name) for base, names in HOOKS.items() for name in sorted(names) if base.__name__ in ("Predict", "ReAct")],
)
async def test_overridden_hook_of_a_module_is_used_by_every_call(base: type, name: str) -> None:
    seen: list[str] = []
    made = overriding(base, name, seen)
    module = made(QA, tools=[len]) if issubclass(base, sigwire.ReAct) else made(QA)
    module.set_lm(sigwire.FakeLM(fields))
    for way in CALLS:
        assert (await call(way, module, question="?")).answer == "Oslo"
    assert seen == [name] * len(CALLS)


@pytest.mark.parametrize("name", sorted(USED["tool"]))
@pytest.mark.parametrize("base", TOOLS)
async def test_overridden_method_of_a_tool_is_used_by_every_run(base: type, name: str) -> None:
    for way in CALLS:
        seen: list[str] = []
        tool = overriding(base, name, seen)(lambda n: 2 * n, name="double", description="Double.")
        agent = sigwire.ReAct(QA, tools=[tool])
        agent.set_lm(sigwire.FakeLM([ToolCall("a", "double", {"n": 2}), ToolCall("b", "submit", {"answer": "4"})]))
        assert (await call(way, agent, question="?")).answer == "4"
        assert name in seen


# --- arguments of the wrong object ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [sigwire.Predict, sigwire.ChainOfThought, sigwire.ReAct, dspy.ReAct])
def test_adapter_of_a_module_is_refused_with_the_setting_to_use(kind: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"configure\(adapter=\.\.\.\)"):
        kind(QA, adapter=sigwire.ChatAdapter())


def test_adapter_in_the_config_of_a_call_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"configure\(adapter=\.\.\.\)"):
        sigwire.Predict(QA, lm=sigwire.FakeLM(fields))(question="?", config={"adapter": sigwire.ChatAdapter()})


NAMES_OF_HOOKS = ["run_fields", "turn_steps", "takes_plain_text", "prepare_inputs", "predictor_classes"]


@pytest.mark.parametrize("base", [sigwire.ReAct, dspy.ReAct])
@pytest.mark.parametrize("name", NAMES_OF_HOOKS)
async def test_attribute_of_an_agent_with_the_name_of_a_hook_is_its_own(base: Any, name: str) -> None:
    agent = base("question -> answer", tools=[pow])
    setattr(agent, name, {"tokens": 3})
    agent.set_lm(sigwire.FakeLM([ToolCall("end", "submit", {"answer": "4"})] * 3))
    assert agent(question="2 + 2?").answer == "4"
    assert (await agent.acall(question="2 + 2?")).answer == "4"
    assert [*agent.stream(question="2 + 2?")][-1].value.answer == "4"
    assert getattr(agent, name) == {"tokens": 3}


@pytest.mark.parametrize("name", ["prepare_inputs", "plan_for", "settings_of_call"])
def test_attribute_of_a_predictor_with_the_name_of_a_hook_is_its_own(name: str) -> None:
    for base in (sigwire.Predict, dspy.Predict):
        predict = base("question -> answer")
        setattr(predict, name, [3])
        predict.set_lm(sigwire.FakeLM([{"answer": "4"}]))
        assert (predict(question="2 + 2?").answer, getattr(predict, name)) == ("4", [3])


def test_attribute_of_a_sampling_module_or_an_optimizer_with_the_name_of_a_hook_is_its_own() -> None:
    predict = sigwire.Predict("question -> answer")
    predict.set_lm(sigwire.FakeLM([{"answer": "4"}] * 9))
    refine: Any = sigwire.Refine(predict, 1, lambda inputs, prediction: 1.0, 1.0)
    refine.next_program = 3
    assert refine(question="2 + 2?").answer == "4"
    optimizer: Any = sigwire.LabeledFewShot(k=1)
    optimizer.row_sets, optimizer.check_options = 3, {}
    rows = [sigwire.Example(question="1 + 1?", answer="2").with_inputs("question")]
    assert len(optimizer.compile(predict, trainset=rows).demos) == 1
