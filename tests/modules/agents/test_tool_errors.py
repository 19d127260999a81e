"""Whose problem an error inside a tool is: the model reads about it, or the run ends with it."""

from __future__ import annotations

import asyncio
import inspect
import warnings
from collections import Counter
from collections.abc import Callable
from concurrent.futures import CancelledError
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire import (
    AgentRun,
    ApprovalNeeded,
    CodeAct,
    ConfigurationError,
    Evaluate,
    Example,
    FakeLM,
    Journal,
    LMServerError,
    Predict,
    ReAct,
    RetryTool,
    Tool,
    ToolCall,
    ToolFailed,
    ToolWarning,
)
from sigwire import errors as tree
from sigwire.errors import Refused, SigwireError, Whose, ends_run
from sigwire.interpreters.subprocess_interpreter import SubprocessInterpreter
from sigwire.journal import errors as of_runs
from sigwire.modules.agents.toolbox import Toolbox
from sigwire.modules.code.rlm import RLM
from tests.grids import grid
from tests.modules.agents.test_react import player, say, submit
from tests.modules.code.driving import MODES, called

WHOSE: dict[Whose, str] = {
    "model": "RetryTool ToolFailed ToolSignal",
    "inner model": (
        "AdapterParseError AgentStopped ContentFiltered EmptyResponse JsonReadError MalformedToolCall ModelError "
        "OutputTruncated Refused Unsure ValueReadError"
    ),
    "request": "ContextWindowExceededError LMContentFilteredError",
    "provider": (
        "LMAuthenticationError LMBillingError LMError LMInvalidRequestError LMRateLimitError LMServerError LMTimeoutError "
        "LMTransportError LMUnexpectedError LMUnsupportedModelError"
    ),
    "program": (
        "CallerError ConfigurationError DataError FieldDefinitionError InputError LMNotConfigured MissingState OverrideError "
        "SessionBusy SignatureError StateError ToolDefinitionError UnsupportedFeature UnsupportedOption"
    ),
    "run": "ApprovalNeeded BudgetSpent EventLoopError JournalDivergence RunIsLive ToolInterrupted",
    "author": "SigwireError",
}
SIDE = {name: side for side, names in WHOSE.items() for name in names.split()}
ENDING = ("provider", "program", "run")
CLASSES: dict[str, type[SigwireError]] = {
    name: cls
    for module in (tree, of_runs)
    for name, cls in inspect.getmembers(module, inspect.isclass)
    if issubclass(cls, SigwireError)
}
ARGUMENTS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "AdapterParseError": (("chat", "q -> a", "no fields"), {}),
    "AgentStopped": (("it stopped",), {"reason": "limit"}),
    "ApprovalNeeded": (("", [of_runs.PendingCall("c", "pay", {}, "", "approval")]), {}),
    "JournalDivergence": (("place", {}, {}, "it changed", ""), {}),
    "JsonReadError": (("no JSON",), {"code": "not_json"}),
    "RunIsLive": (("one", None, None), {}),
    "ToolInterrupted": (("one", []), {}),
    "UnsupportedOption": ((), {"provider": "openai", "option": "top_k", "known": ["top_p"]}),
}
AGENTS = ("react", "code_act", "rlm")
CATCHING = "try:\n    ask()\nexcept BaseException as error:\n    submit(a=str(error))"

pytestmark = pytest.mark.filterwarnings("ignore::sigwire.errors.ToolWarning")


def made(name: str) -> SigwireError:
    args, options = ARGUMENTS.get(name, (("it happened",), {}))
    return CLASSES[name](*args, **options)


def raising(error: BaseException) -> Callable[[], str]:
    def ask() -> str:
        raise error

    return ask


def agent_of(kind: str, tool: Any, **options: Any) -> Any:
    """Return an agent that calls the tool once, then submits; its code tries to catch every error."""
    code = {"reasoning": "Ask.", "code": CATCHING}
    if kind == "react":
        answers = [ToolCall("c", "ask", {}), ToolCall("s", "submit", {"a": "made up"})]
        return with_lm(ReAct("q -> a", tools=[tool], **options), answers)
    if kind == "code_act":
        return with_lm(CodeAct("q -> a", tools=[tool], **options), [code])
    return with_lm(RLM("q -> a", tools=[tool], **options), [code])


def with_lm(program: Any, answers: Any) -> Any:
    """Return a program whose own predictors have the answers; those in its tools keep their model."""
    set_own_lm(program, FakeLM(answers))
    return program


def set_own_lm(program: Any, lm: FakeLM) -> None:
    for name, predictor in program.named_predictors():
        if "tools[" not in name:
            predictor.lm = lm


def read(result: Any) -> str:
    """Return what the model, or its code, read about the error."""
    return str(result.steps[0].results[-1].text)


# --- the table ------------------------------------------------------------------------------------------------


def test_every_class_of_error_has_a_row() -> None:
    assert {name: cls.whose for name, cls in CLASSES.items()} == SIDE


@grid("name, kind", sorted(SIDE), AGENTS)
def test_class_of_error_decides_whether_the_run_ends(name: str, kind: str) -> None:
    error = made(name)
    assert ends_run(error) == (SIDE[name] in ENDING)
    agent = agent_of(kind, raising(error))
    if name == "ApprovalNeeded":
        with pytest.raises(ApprovalNeeded):
            agent(q="?")
    elif SIDE[name] in ENDING:
        with pytest.raises(type(error)) as found:
            agent(q="?")
        assert found.value is error
        assert error.where is not None
        assert error.where.tool == "ask"
    else:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            text = read(agent(q="?"))
        said = str(error) or name
        assert text == said if SIDE[name] == "model" else text.startswith("The tool failed. ")
        assert [each.category for each in caught] == ([ToolWarning] if SIDE[name] == "author" else [])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("kind", AGENTS)
def test_run_ends_in_every_driver(kind: str, mode: str) -> None:
    error = LMServerError("503")
    with pytest.raises(LMServerError) as found:
        called(mode, agent_of(kind, raising(error)), q="?")
    assert found.value is error
    assert AgentRun.of(error).steps[0].calls


def test_cancelled_future_ends_the_run() -> None:
    with pytest.raises(CancelledError):
        agent_of("react", raising(CancelledError()))(q="?")


def test_outermost_exception_decides() -> None:
    def ask() -> str:
        try:
            raise LMServerError("503")
        except LMServerError as error:
            raise ToolFailed("the expert is away") from error

    assert read(agent_of("react", ask)(q="?")) == "the expert is away"


def test_error_in_a_generator_of_a_tool_ends_the_run() -> None:
    def ask() -> object:
        yield 1
        raise LMServerError("503")

    with pytest.raises(LMServerError):
        agent_of("react", ask)(q="?")


def test_dead_provider_of_an_approval_function_ends_the_run() -> None:
    def judge(call: ToolCall) -> bool:
        raise LMServerError("503")

    with pytest.raises(LMServerError):
        agent_of("react", Tool(raising(KeyError()), approve=judge))(q="?")


@pytest.mark.parametrize("kind", ["code_act", "rlm"])
def test_code_in_a_process_cannot_catch_what_ends_the_run(kind: str) -> None:
    error = LMServerError("503")
    with pytest.raises(LMServerError) as found:
        agent_of(kind, raising(error), interpreter=SubprocessInterpreter())(q="?")
    assert found.value is error


# --- the settings ---------------------------------------------------------------------------------------------

SETTINGS: list[tuple[Any, Exception, str | None]] = [
    ("answer", LMServerError("503"), "The tool failed. LMServerError: 503"),
    ("answer", ConfigurationError("no key"), "The tool failed. ConfigurationError: no key"),
    ("answer", sigwire.BudgetSpent("spent"), None),
    ("abort", KeyError("order"), None),
    ("abort", Refused("no"), None),
    ("abort", RetryTool("again"), "again"),
    (lambda error: f"told: {error}", LMServerError("503"), "told: 503"),
    (lambda error: f"told: {error}", ToolFailed("closed"), "told: closed"),
    (lambda error: None, LMServerError("503"), None),
    (lambda error: None, ValueError("bug"), "The tool failed. ValueError: bug"),
    (lambda error: "told", sigwire.BudgetSpent("spent"), None),
]


@grid("case, is_of_tool, kind", range(len(SETTINGS)), [False, True], AGENTS)
def test_setting_decides_of_agent_and_of_tool(case: int, kind: str, is_of_tool: bool) -> None:
    setting, error, text = SETTINGS[case]
    if is_of_tool:  # the tool's setting counts, whatever the agent's is
        agent = agent_of(kind, Tool(raising(error), on_error=setting), on_tool_error="abort")
    else:
        agent = agent_of(kind, raising(error), on_tool_error=setting)
    if text is None:
        with pytest.raises(type(error)) as found:
            agent(q="?")
        assert found.value is error
    else:
        assert read(agent(q="?")) == text


@pytest.mark.parametrize("mode", MODES)
def test_function_of_the_setting_may_be_async(mode: str) -> None:
    async def told(error: Exception) -> str:
        await asyncio.sleep(0)
        return f"told: {error}"

    assert (
        read(called(mode, agent_of("react", raising(LMServerError("503")), on_tool_error=told), q="?")) == "told: 503"
    )


@pytest.mark.parametrize("mode", MODES)
def test_function_of_the_setting_may_raise(mode: str) -> None:
    def told(error: Exception) -> str:
        raise LookupError("of the setting") from error

    with pytest.raises(LookupError, match="of the setting"):
        called(mode, agent_of("react", raising(KeyError()), on_tool_error=told), q="?")


def test_function_of_the_setting_returns_a_text() -> None:
    with pytest.raises(ConfigurationError, match="on_error returned int, not text"):
        agent_of("react", raising(KeyError()), on_tool_error=lambda error: 3)(q="?")


@pytest.mark.parametrize("kind", AGENTS)
def test_other_settings_are_refused(kind: str) -> None:
    with pytest.raises(ConfigurationError, match="on_error is 'raise'"):
        agent_of(kind, raising(KeyError()), on_tool_error="raise")
    with pytest.raises(ConfigurationError, match=r"on_error is 3 .the tool 'ask'"):
        Tool(raising(KeyError()), on_error=3)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_setting_of_a_tool_is_in_its_json_unless_it_is_code() -> None:
    tool = Tool(raising(KeyError()), on_error="abort")
    assert Tool.from_json(tool.to_json(), tool.handler) == tool
    assert "on_error" not in Tool(raising(KeyError()), on_error=str).to_json()


# --- programs in tools ----------------------------------------------------------------------------------------


class Pair(sigwire.Module):
    """Two predictors, the second of which has a dead provider."""

    def __init__(self) -> None:
        super().__init__()
        self.first = with_lm(Predict("q -> a"), lambda request: {"a": "1"})
        self.second = with_lm(Predict("q -> a"), lambda request: LMServerError("503"))

    def forward(self, q: str) -> sigwire.Prediction:
        return self.second(q=self.first(q=q).a)


class Team(sigwire.Module):
    """An agent whose tool is a program."""

    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.agent = agent_of("react", lambda: None) if inner is None else agent_of("react", asking(inner))

    def forward(self, q: str) -> sigwire.Prediction:
        return self.agent(q=q)


def asking(inner: Any) -> Callable[[], str]:
    def ask() -> str:
        return str(inner(q="?").a)

    return ask


def test_place_of_an_error_has_the_inner_path_the_turn_and_the_tool() -> None:
    with pytest.raises(LMServerError) as found:
        Team(Pair())(q="?")
    where = found.value.where
    assert where is not None
    assert (where.path, where.turn, where.tool) == ("agent.tools['ask'].inner.second", 0, "ask")
    assert where.module.startswith("Predict")


@pytest.mark.parametrize("mode", MODES)
def test_error_passes_two_agents(mode: str) -> None:
    inner = agent_of("react", asking(Pair()))
    outer = agent_of("react", asking(inner))
    with pytest.raises(LMServerError) as found:
        called(mode, outer, q="?")
    assert found.value.where is not None
    assert found.value.where.path == "tools['ask'].inner.tools['ask'].inner.second"
    assert len(AgentRun.of(found.value).attempts) >= 2


def dead(request: Any) -> Exception:
    return LMServerError("503")


@pytest.mark.parametrize("kind", AGENTS)
def test_evaluation_counts_the_same_failures_as_without_an_agent(kind: str) -> None:
    flat = with_lm(Predict("q -> a"), dead)
    agent = agent_of(kind, asking(flat))
    answers = {
        "react": lambda request: ToolCall("c", "ask", {}),
        "code_act": lambda request: {"reasoning": "", "code": CATCHING},
        "rlm": lambda request: {"reasoning": "", "code": CATCHING},
    }
    set_own_lm(agent, FakeLM(answers[kind]))
    rows = [Example(q=str(number), a="42").with_inputs("q") for number in range(3)]
    evaluate = Evaluate(devset=rows, metric=lambda example, prediction, trace=None: 0.0, progress=False)
    assert evaluate(agent).failures == evaluate(flat).failures == Counter({"LMServerError": 3})


# --- several calls of a turn ----------------------------------------------------------------------------------


def turn_of(*names: str) -> FakeLM:
    return player([say(*((name, {}) for name in names)), submit(a="made up")])


@pytest.mark.parametrize("mode", MODES)
def test_first_error_in_call_order_is_raised_and_results_are_kept(mode: str) -> None:
    async def late() -> str:
        await asyncio.sleep(0.005)
        raise LMServerError("late")

    async def early() -> str:
        raise LMServerError("early")

    def good() -> str:
        return "kept"

    def pay() -> str:
        return "paid"

    agent: Any = ReAct("q -> a", tools=[late, early, good, Tool(pay, approve=True)])
    agent.set_lm(turn_of("pay", "late", "early", "good"))
    with pytest.raises(LMServerError, match="late") as found:
        called(mode, agent, q="?")
    (step,) = AgentRun.of(found.value).steps
    assert [result.text for result in step.results if not result.is_error] == ["kept"]
    assert step.error == "interrupted"


# --- recorded runs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["run", "arun"])
def test_next_run_pays_only_what_is_missing(tmp_path: Path, mode: str) -> None:
    is_dead, paid = [True], Counter[str]()

    def of(name: str) -> FakeLM:
        def answer(request: Any) -> object:
            if name == "second" and is_dead:
                return LMServerError("503")
            paid[name] += 1
            return {"a": name}

        return FakeLM(answer)

    pair = Pair()
    pair.first.set_lm(of("first"))
    pair.second.set_lm(of("second"))

    def good() -> str:
        paid["good"] += 1
        return "kept"

    agent: Any = ReAct("q -> a", tools=[asking(pair), good])
    set_own_lm(agent, turn_of("ask", "good"))

    def go(journal: Journal) -> Any:
        return journal.run(agent, "one", q="?") if mode == "run" else asyncio.run(journal.arun(agent, "one", q="?"))

    with Journal(tmp_path / "runs") as journal:
        with pytest.raises(LMServerError):
            go(journal)
        assert paid == {"first": 1, "good": 1}
        is_dead.clear()
        result = go(journal)
    assert [each.text for each in result.steps[0].results] == ["second", "kept"]
    assert paid == {"first": 1, "good": 1, "second": 1}


def test_toolbox_has_the_setting() -> None:
    call = ToolCall("c", "ask", {})
    ask = raising(LMServerError("503"))
    with pytest.raises(LMServerError):
        Toolbox([ask])([call])
    assert Toolbox([ask], on_error="answer")([call])[0].text == "The tool failed. LMServerError: 503"
