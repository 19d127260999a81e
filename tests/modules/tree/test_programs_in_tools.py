"""Modules in the functions of tools are part of the program: names, models, copies, states, program files, places."""

from __future__ import annotations

import asyncio
import copy
import functools
import json
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import sigwire
import sigwire.dspy as dspy
from sigwire.core.example import Example, Prediction
from sigwire.core.tools.tool import Tool
from sigwire.errors import ConfigurationError, LMServerError, MissingState, StateError
from sigwire.evaluate.evaluation import Evaluate
from sigwire.lm.fake import FakeLM
from sigwire.modules.agents.react import ReAct
from sigwire.modules.agents.toolbox import Toolbox
from sigwire.modules.code.code_act import CodeAct
from sigwire.modules.code.rlm import RLM
from sigwire.modules.module import Module
from sigwire.modules.parallel import Parallel
from sigwire.modules.predict import Predict
from sigwire.modules.programs.files import load_program, save_program
from tests.modules.tree.holders import HOLDERS, Listed, Team, ask_of, inner_of, inner_predictor, model, of_kind, shout

EVERY = pytest.mark.parametrize("kind", HOLDERS)


def text(result: Any) -> str:
    return str(getattr(result, "text", result))


async def streamed(program: Any, task: str) -> Any:
    *_, last = [event async for event in program.astream(task=task)]
    return last.value


DRIVERS: dict[str, Callable[[Any], Any]] = {
    "sync": lambda program: program(task="t"),
    "async": lambda program: asyncio.run(program.acall(task="t")),
    "stream": lambda program: list(program.stream(task="t"))[-1].value,
    "astream": lambda program: asyncio.run(streamed(program, "t")),
    "batch": lambda program: program.batch([{"task": "t"}])[0],
    "parallel": lambda program: Parallel(num_threads=1)([(program, Example(task="t").with_inputs("task"))])[0],
    "evaluate": lambda program: evaluated(program),
}
COPIES: dict[str, Callable[[Any], Any]] = {
    "deepcopy": lambda program: program.deepcopy(),
    "copy.deepcopy": copy.deepcopy,
    "in a list": lambda program: copy.deepcopy([program])[0],
    "copy of a copy": lambda program: program.deepcopy().deepcopy(),
}


def evaluated(program: Any) -> Any:
    rows = [Example(task="t", text="GOOD").with_inputs("task")]
    evaluate = Evaluate(devset=rows, metric=lambda example, made, trace=None: text(made) == "GOOD", progress=False)
    return "GOOD" if evaluate(program).score == 100 else "bad"


# --- names, models, copies ------------------------------------------------------------------------------------


@EVERY
def test_inner_predictor_has_a_name(kind: str) -> None:
    program, name = of_kind(kind), HOLDERS[kind][1]
    assert name in dict(program.named_predictors())
    assert f"self.{name}" in dict(program.named_sub_modules())
    names = [name for name, _ in program.named_parameters()]
    assert len(names) == len(set(names))


@EVERY
def test_set_lm_and_get_lm_reach_the_inner_predictor(kind: str) -> None:
    program = of_kind(kind)
    other = model()
    program.set_lm(other)
    assert inner_of(kind, program).lm is other
    assert program.get_lm() is other
    inner_of(kind, program).lm = model()
    if len(program.predictors()) > 1:
        with pytest.raises(ConfigurationError, match="different models"):
            program.get_lm()


@EVERY
@pytest.mark.parametrize("way", COPIES)
def test_copy_and_original_do_not_affect_each_other(kind: str, way: str) -> None:
    program = of_kind(kind)
    made, other = COPIES[way](program), COPIES[way](program)
    shout(kind, made)
    assert [text(each(task="t")) for each in (made, program, other)] == ["GOOD", "bad", "bad"]
    shout(kind, program)
    shout_back = inner_of(kind, made)
    shout_back.signature = shout_back.signature.with_instructions("Say a fact.")
    assert [text(each(task="t")) for each in (made, program, other)] == ["bad", "GOOD", "bad"]
    assert [name for name, _ in made.named_parameters()] == [name for name, _ in program.named_parameters()]
    assert not {id(each) for each in made.predictors()} & {id(each) for each in program.predictors()}


@pytest.mark.parametrize("driver", DRIVERS)
def test_copy_acts_on_its_own_modules_in_every_driver(driver: str) -> None:
    program = of_kind("closure")
    made = program.deepcopy()
    shout("closure", made)
    assert [text(DRIVERS[driver](each)) for each in (made, program)] == ["GOOD", "bad"]


@pytest.mark.parametrize("kind", ["react", "code_act", "rlm"])
def test_tools_of_every_agent_are_entered(kind: str) -> None:
    ask = ask_of(inner_predictor())
    code = {"reasoning": "", "code": "submit(text=ask(topic='tea'))"}
    make: dict[str, Callable[[], Any]] = {
        "react": lambda: ReAct("task -> text", tools=[ask]),
        "code_act": lambda: CodeAct("task -> text", tools=[ask]),
        "rlm": lambda: RLM("task -> text", tools=[ask]),
    }
    program = make[kind]()
    program.set_lm(model())
    if kind != "react":
        for name, predictor in program.named_predictors():
            if "tools[" not in name:
                predictor.lm = FakeLM([code] * 2)
    made = program.deepcopy()
    inner = dict(made.named_predictors())["tools['ask'].sub"]
    inner.signature = inner.signature.with_instructions("SHOUT.")
    assert [each(task="t").text for each in (made, program)] == ["GOOD", "bad"]


def test_agent_in_a_tool_has_the_names_of_all_its_predictors() -> None:
    inner = ReAct("topic -> fact", tools=[ask_of(inner_predictor())])
    deep = ReAct("task -> text", tools={"ask": inner.__call__})
    names = [name for name, _ in deep.named_predictors()]
    assert names == [
        "react", "extract.predict", "tools['ask'].react", "tools['ask'].extract.predict", "tools['ask'].tools['ask'].sub",
    ]  # fmt: skip


def test_team_stays_one_team() -> None:
    team = Team()
    made = team.deepcopy()
    research = made.outer.toolbox.tools["ask"]
    assert research.handler.__self__ is made
    assert research.description == team.outer.toolbox.tools["ask"].description
    alone = team.outer.deepcopy()
    owner = alone.toolbox.tools["ask"].handler.__self__
    assert owner is not team
    assert owner.outer is alone
    assert [name for name, _ in alone.named_predictors()] == ["react", "extract.predict", "tools['ask'].inner"]


def test_agent_that_calls_itself_is_copied_once() -> None:
    def ask(topic: str) -> str:
        """Ask."""
        return str(agent(task=topic).text)

    agent: Any = ReAct("task -> text", tools=[ask])
    made = agent.deepcopy()
    (cell,) = made.toolbox.tools["ask"].handler.__closure__
    assert cell.cell_contents is made
    assert [name for name, _ in made.named_predictors()] == ["react", "extract.predict"]


def test_tools_without_modules_are_shared() -> None:
    def double(n: int) -> int:
        """Double."""
        return 2 * n

    agent = ReAct("task -> text", tools=[double, ask_of(inner_predictor())])
    made = agent.deepcopy()
    assert made.toolbox.tools["double"] is agent.toolbox.tools["double"]
    assert made.toolbox.tools["ask"] is not agent.toolbox.tools["ask"]
    assert made.toolbox.tools["ask"] is made._offered[1]
    assert made.tools["submit"] is agent.tools["submit"]
    plain = ReAct("task -> text", tools=[double])
    assert plain.deepcopy().toolbox is plain.toolbox


def test_part_that_an_attribute_reaches_keeps_its_name() -> None:
    class Late(Module):
        def __init__(self) -> None:
            super().__init__()
            sub = inner_predictor()
            self.agent = ReAct("task -> text", tools=[ask_of(sub)])
            self.deep = Module()
            self.deep.inside = [sub]  # type: ignore[attr-defined]

    names = [name for name, _ in Late().named_predictors()]
    assert names == ["agent.react", "agent.extract.predict", "deep.inside[0]"]
    assert "self.deep.inside[0]" in dict(Late().named_sub_modules())


def test_names_are_unique() -> None:
    def ask(topic: str, sub: Any) -> str:
        """Ask."""
        return topic

    class Own(Module):
        def __init__(self) -> None:
            super().__init__()
            self.sub = inner_predictor()

        def forward(self, sub: Any) -> Prediction:
            return Prediction(text=str(sub))

    class Both(Module):
        def __init__(self) -> None:
            super().__init__()
            self.tools = {"ask": partial(ask, sub=inner_predictor())}
            self.toolbox = Toolbox({"ask": partial(ask, sub=inner_predictor())})
            self.box = Toolbox({"ask": ask_of(inner_predictor())})
            self.kit = {"k": [Tool(partial(Own(), sub=inner_predictor()), "own", parameters={"type": "object"})]}

    program = Both()
    names = [name for name, _ in program.named_predictors()]
    assert names == [
        "tools['ask'].sub", "tools['ask'].sub~2", "box.tools['ask'].sub", "kit['k'][0].sub", "kit['k'][0].sub~2",
    ]  # fmt: skip
    paths = {name.removeprefix("self.") for name, _ in program.named_sub_modules(Predict)}
    assert paths == set(names)


def test_compiled_program_in_a_tool_stays_hidden() -> None:
    class Inner(Module):
        def __init__(self) -> None:
            super().__init__()
            self.sub = inner_predictor()
            self._compiled = True

        def research(self, topic: str) -> str:
            """Research."""
            return topic

    inner = Inner()
    agent = ReAct("task -> text", tools=[inner.research])
    assert [name for name, _ in agent.named_parameters()] == ["react", "extract.predict"]
    assert "self.tools['research']" in dict(agent.named_sub_modules(skip_compiled=True))
    assert "self.tools['research'].sub" not in dict(agent.named_sub_modules(skip_compiled=True))
    assert "self.tools['research'].sub" in dict(agent.named_sub_modules())
    made = agent.deepcopy()
    assert made.toolbox.tools["research"].handler.__self__ is not inner


def test_functions_that_are_no_tools_are_shared() -> None:
    class Judged(Module):
        def __init__(self) -> None:
            super().__init__()
            self.reward = ask_of(inner_predictor())
            self.functions = [self.reward]

    program = Judged()
    assert program.named_parameters() == []
    assert program.deepcopy().reward is program.reward


def test_door_resets_and_maps_predictors() -> None:
    class Student(dspy.Module):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            self.own = dspy.Predict("a -> b")
            self.agent = dspy.ReAct("task -> text", tools=[ask_of(inner_predictor())])

    student = Student()
    inner = dict(student.named_predictors())["agent.tools['ask'].sub"]
    inner.demos = [{"topic": "a", "fact": "b"}]
    made = student.reset_copy()
    assert dict(made.named_predictors())["agent.tools['ask'].sub"].demos == []
    assert len(inner.demos) == 1
    student.map_named_predictors(lambda predictor: predictor.deepcopy())
    assert dict(student.named_predictors())["agent.tools['ask'].sub"] is inner


# --- states and files -----------------------------------------------------------------------------------------


@EVERY
def test_state_has_the_inner_predictor(kind: str, tmp_path: Path) -> None:
    program = of_kind(kind)
    shout(kind, program)
    with pytest.warns(UserWarning, match="plain load refuses"):  # its model is a FakeLM
        program.save(tmp_path / "state.json")
    loaded = of_kind(kind)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded.load(tmp_path / "state.json", lm=model())
    assert text(loaded(task="t")) == "GOOD"


@EVERY
def test_state_of_an_earlier_version_keeps_what_tools_hold(kind: str) -> None:
    program, name = of_kind(kind), HOLDERS[kind][1]
    state = program.dump_state()
    del state[name]
    shout(kind, program)
    if not name.startswith("tools["):
        with pytest.raises(MissingState, match=name):
            program.load_state(state)
        return
    with pytest.warns(UserWarning, match="what its tools hold is kept") as seen:
        program.load_state(state, lm=model())
    assert len(seen) == 1
    assert text(program(task="t")) == "GOOD"
    with pytest.raises(StateError, match="does not have"):
        program.load_state({**program.dump_state(), "tools['ask'].other": {}})


def test_missing_attribute_named_tools_is_an_error() -> None:
    class Tools(Module):
        def __init__(self) -> None:
            super().__init__()
            self.tools = {"ask": inner_predictor()}

    with pytest.raises(MissingState):
        Tools().load_state({})


def test_file_of_dspy_keeps_what_tools_hold(tmp_path: Path) -> None:
    agent = dspy.ReAct("task -> text", tools=[ask_of(inner_predictor())])
    state = {name: part for name, part in agent.dump_state().items() if "tools[" not in name}
    path = tmp_path / "program.json"
    path.write_text(json.dumps({**state, "metadata": {"dependency_versions": {}}}))
    with pytest.warns(UserWarning, match=r"tools\['ask'\].sub"):
        agent.load(path)


def test_program_file_has_the_state_of_what_tools_hold_and_loads_into_copies(tmp_path: Path) -> None:
    ask = ask_of(inner_predictor())
    agent = ReAct("task -> text", tools=[ask])
    inner = dict(agent.named_predictors())["tools['ask'].sub"]
    inner.signature = inner.signature.with_instructions("SHOUT.")
    path = tmp_path / "agent.json"
    save_program(agent, path)
    given = ask_of(inner_predictor())
    loaded: Any = load_program(path, functions=[given])
    other: Any = load_program(path, functions=[given])
    for each in (loaded, other):
        each.set_lm(model())
        assert each(task="t").text == "GOOD"
    sub = dict(other.named_predictors())["tools['ask'].sub"]
    sub.signature = sub.signature.with_instructions("Say a fact.")
    assert loaded(task="t").text == "GOOD"
    assert ReAct("task -> text", tools=[given]).predictors()[-1].signature.instructions == "Say a fact."


# --- places ---------------------------------------------------------------------------------------------------


def test_events_errors_and_traces_name_the_inner_predictor() -> None:
    program = of_kind("closure")
    paths = [event.path for event in program.stream(task="t") if hasattr(event, "path")]
    assert "tools['ask'].sub" in paths
    inner_of("closure", program).lm = FakeLM(lambda request: LMServerError("503"))
    with pytest.raises(LMServerError) as found:
        program(task="t")
    assert found.value.where is not None
    assert (found.value.where.path, found.value.where.tool) == ("tools['ask'].sub", "ask")
    assert "tools['ask'].sub" in repr(program)


# --- shared modules are named -----------------------------------------------------------------------------------


SUB = inner_predictor()
SUBS = {"k": SUB}
SUB_TOOL = Tool(ask_of(SUB))


def by_name(topic: str) -> str:
    return str(SUB(topic=topic).fact)


def nested(topic: str) -> str:
    return "".join(str(SUBS["k"](topic=each).fact) for each in (topic,))


def through_a_function(topic: str) -> str:
    return by_name(topic)


def by_tool(topic: str) -> str:
    return str(SUB_TOOL(topic=topic))


class Desk:
    """An object that is no module."""

    def __init__(self) -> None:
        self.sub = inner_predictor()

    def ask(self, topic: str) -> str:
        """Ask."""
        return str(self.sub(topic=topic).fact)

    def __call__(self, topic: str) -> str:
        return topic


DESK = Desk()


def of_desk(topic: str) -> str:
    return DESK.ask(topic)


def attribute_of_that_name(topic: Any) -> str:
    return str(topic.SUB)


def other_attribute(topic: str) -> str:
    return str(DESK.__class__) + topic


GLOBAL = "the tool {!r} uses the module {!r} by a global name; copies share it. Pass Tool(sub) or a closure."
OBJECT = "the tool {!r} uses the module {!r} of the object {}; copies share it. Pass Tool(sub) or a closure."
SAID: dict[str, tuple[Any, str]] = {
    "global": (by_name, GLOBAL.format("by_name", "SUB")),
    "nested code": (nested, GLOBAL.format("nested", "SUBS")),
    "function of the file": (through_a_function, GLOBAL.format("through_a_function", "SUB")),
    "tool": (by_tool, GLOBAL.format("by_tool", "SUB_TOOL")),
    "global object": (of_desk, GLOBAL.format("of_desk", "DESK.sub")),
    "method of an object": (Desk().ask, OBJECT.format("ask", "sub", "Desk")),
    "callable object": (Desk(), OBJECT.format("Desk", "sub", "Desk")),
    "cache": (functools.cache(ask_of(SUB)), OBJECT.format("ask", "sub", "_lru_cache_wrapper")),
    "object in a closure": (ask_of(Desk()), OBJECT.format("ask", "sub", "Desk")),
}
SILENT: dict[str, Any] = {
    "closure": ask_of(SUB),
    "default": _default if (_default := partial(attribute_of_that_name)) else None,
    "no module": len,
    "other attribute": other_attribute,
}


def findings(program: Any) -> list[str]:
    return [each.what for each in sigwire.check(program, model()) if each.feature == "copies"]


@pytest.mark.parametrize("kind", SAID)
def test_module_that_copies_share_is_named(kind: str) -> None:
    function, expected = SAID[kind]
    agent = ReAct("task -> text", tools=[function])
    assert findings(agent) == [expected]
    assert [each.level for each in sigwire.check(agent, model(), strict=True) if each.feature == "copies"] == ["error"]


@pytest.mark.parametrize("kind", HOLDERS)
def test_nothing_is_named_if_the_program_holds_its_modules(kind: str) -> None:
    assert findings(of_kind(kind)) == []


@pytest.mark.parametrize("kind", SILENT)
def test_nothing_is_named_if_no_module_is_shared(kind: str) -> None:
    assert findings(ReAct("task -> text", tools=[Tool(SILENT[kind], "ask", "Ask.", {"type": "object"})])) == []


def test_functions_in_an_attribute_named_tools_are_named() -> None:
    program = Listed()
    program.tools.append(by_name)
    assert findings(program) == [GLOBAL.format("by_name", "SUB")]


def test_finding_has_the_path_of_the_agent() -> None:
    class Around(Module):
        def __init__(self) -> None:
            super().__init__()
            self.agent = ReAct("task -> text", tools=[by_name])

    (found,) = [each for each in sigwire.check(Around(), model()) if each.feature == "copies"]
    assert (found.path, found.level) == ("agent", "warning")
