"""Types that type checkers infer for modules. Checked by mypy and pyright (strict), never run.

A line that must be an error carries both checkers' ignore comments; both report an ignore that is not needed.
"""

from __future__ import annotations

from typing import Any, Literal, assert_type

from sigwire.core.example import Prediction
from sigwire.core.report import CallReport
from sigwire.core.response import Attempt, LMWarning, Repair, Response, Usage
from sigwire.core.tools.calls import ToolCalls
from sigwire.core.tools.tool import Tool
from sigwire.lm.client import LM
from sigwire.lm.fake import FakeLM
from sigwire.lm.preview.model_call import ModelCall
from sigwire.lm.preview.preview import Preview
from sigwire.modules.agents.react import ReAct
from sigwire.modules.agents.run import AgentRun, TerminationReason
from sigwire.modules.chain_of_thought import ChainOfThought, Reasoned
from sigwire.modules.predict import Predict
from sigwire.modules.preview.history import history
from sigwire.modules.preview.whole_program import check, preview_all
from sigwire.signatures import InputField, OutputField, Signature
from sigwire.signatures.types import History


class QA(Signature):
    """Answer the question."""

    question: str = InputField(desc="what is asked")
    passages: int = InputField(default=3)
    answer: str = OutputField()
    score: float = OutputField(desc="how sure")
    tags: list[str] = OutputField()


class Act(Signature):
    """Choose tools."""

    question: str = InputField()
    tools: list[Tool] = InputField()
    calls: ToolCalls = OutputField()


def predict_types() -> None:
    predict = Predict(QA)
    prediction = predict(question="2+2?")
    assert_type(prediction.answer, str)
    assert_type(prediction.score, float)
    assert_type(prediction.tags, list[str])
    assert_type(predict(question="2+2?", passages=2), QA)
    assert_type(prediction.get_lm_usage(), dict[str, Any])
    assert_type(Predict(Act)(question="?", tools=[]).calls, ToolCalls)
    assert_type(predict(question="2+2?", config={"temperature": 0.5}).answer, str)
    assert_type(predict(question="2+2?", demos=[]).answer, str)
    assert_type(predict(question="2+2?", lm=FakeLM("x")).score, float)


def predict_errors() -> None:
    predict = Predict(QA)
    predict(question="?").anser  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
    predict(qestion="?")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    predict()  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    predict(question=3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
    predict(question="?", answer="4")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]


async def awaited_types() -> None:
    assert_type((await Predict(QA).acall(question="?")).score, float)
    assert_type((await ChainOfThought(QA).acall(question="?")).answer, str)
    assert_type((await ReAct(QA, tools=[]).acall(question="?")).tags, list[str])
    await Predict(QA).acall(qestion="?")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]


def string_signatures_are_dynamic() -> None:
    prediction = Predict("question -> answer")(question="?")
    assert_type(prediction, Prediction)
    assert_type(prediction.anything, Any)
    assert_type(Predict(Signature("question -> answer", "Be brief."))(question="?"), Prediction)


def options_are_typed() -> None:
    Predict(QA, temperature=0.5, max_reasks=1, lm=FakeLM("x"))
    Predict(QA, max_reasks="one")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def typed_results_are_predictions() -> list[Prediction]:
    return [Predict(QA)(question="?"), ChainOfThought(QA)(question="?"), ReAct(QA, tools=[])(question="?")]


async def awaited_results_are_predictions() -> Prediction:
    assert_type(typed_results_are_predictions()[0].answer, Any)
    return await Predict(QA).acall(question="?")


class Names(Signature):
    """Outputs with names of methods of a prediction."""

    question: str = InputField()
    keys: int = OutputField()
    values: list[str] = OutputField()
    make: str = OutputField()
    usage: str = OutputField()


def outputs_may_have_the_names_of_methods() -> Prediction:
    result = Predict(Names)(question="?")
    assert_type(result.keys, int)
    assert_type(result.values, list[str])
    assert_type(result.make, str)
    assert_type(result.usage, str)
    return result


def report_types() -> None:
    result = Predict(QA)(question="?")
    report = CallReport.of(result)
    assert_type(report.usage, Usage)
    assert_type(report.cost, float | None)
    assert_type(report.cache, Literal["hit", "miss", "off"])
    assert_type(report.attempts, tuple[Attempt, ...])
    assert_type(report.warnings, tuple[LMWarning, ...])
    assert_type(report.repairs, tuple[Repair, ...])
    assert_type(report.mode, str | None)
    assert_type(report.response, Response | None)


def preview_types() -> None:
    preview = Predict(QA).preview(question="?", config={"temperature": 0.0})
    assert_type(preview, Preview)
    assert_type(preview.json(), bytes)
    assert_type(preview.curl(), str)
    assert_type(int(preview.tokens), int)
    assert_type(preview.price, float | None)
    assert_type(preview.cache, Literal["hit", "miss", "off"])
    assert_type(LM("openai/gpt-5-mini").preview(preview.request), Preview)
    assert_type(history(2), list[ModelCall])
    assert_type(history(2)[0].error, Exception | None)
    assert_type(history(2)[0].cost, float | None)
    assert_type(preview_all(Predict(QA), question="?"), list[Preview])
    assert_type(check(Predict(QA))[0].path, str)


def chain_of_thought_types() -> None:
    reasoned = Reasoned.of(ChainOfThought(QA)(question="?"))
    assert_type(reasoned.reasoning, str)
    assert_type(reasoned.source, Literal["written", "thinking"] | None)
    assert_type(ChainOfThought(QA)(question="?").answer, str)
    ChainOfThought(QA)(question="?").anser  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]


def add(a: int, b: int) -> int:
    return a + b


def react_types() -> None:
    agent = ReAct(QA, tools=[add], max_iters=5, on_tool_error="abort")
    result = agent(question="?")
    assert_type(result.answer, str)
    assert_type(agent(question="?", max_iters=3).score, float)
    assert_type(agent(history=History()).answer, str)
    run = AgentRun.of(result)
    assert_type(run.termination_reason, TerminationReason | None)
    assert_type(run.history, History)
    assert_type(run.steps[0].thought, str)
    assert_type(run.steps[0].results[0].is_error, bool)
    agent(qestion="?")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
    ReAct(QA, on_tool_error="ignore")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
