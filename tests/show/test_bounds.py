"""Bounds of ``repr``, one line for each element of a list in IPython, and code of a call as code."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire import (
    AgentRun,
    ApprovalAsked,
    AskStart,
    Audio,
    BatchRun,
    CacheHealth,
    Calibration,
    CallReport,
    Certificate,
    Choice,
    Code,
    CodeAct,
    Compacted,
    Completions,
    Criteria,
    DataSplit,
    DecisionRule,
    EvaluationResult,
    Evidence,
    Example,
    Examples,
    Experiment,
    ExperimentPlan,
    ExperimentProgress,
    ExperimentResult,
    FakeLM,
    FetchedFile,
    FieldDelta,
    FieldEnd,
    FieldPartial,
    File,
    Finished,
    Fold,
    History,
    Image,
    InputError,
    Job,
    LMWarning,
    Loss,
    Memory,
    Message,
    PendingCall,
    PointDone,
    Predict,
    Prediction,
    ReActStep,
    Reasoned,
    ReasoningDelta,
    Repair,
    Reproduction,
    Request,
    Response,
    ResponseFormat,
    Score,
    Skills,
    TextDelta,
    ToolCall,
    ToolCallDelta,
    ToolCallEnd,
    ToolCalls,
    ToolCallStart,
    ToolChoice,
    ToolDone,
    ToolResult,
    ToolText,
    Usage,
    UsageUpdate,
    WebSearch,
)
from sigwire.evaluate.calibration import CalibrationBin
from sigwire.evaluate.statistics import Interval
from sigwire.experiments.planning import PlannedPoint
from sigwire.experiments.point import MeasuredPoint, Point
from sigwire.lm.preview.cache_health import CacheBreak
from sigwire.modules.batch import FailedExample
from sigwire.modules.context.compaction import Draft
from sigwire.modules.memory import Note
from sigwire.modules.skills import Skill
from sigwire.optimizers.engine.plan import Amount
from sigwire.show.card import HasCard

LONG = "x" * 3_000_000
CALL = ToolCall("1", "search", {"query": LONG})
CODE = "total = 1\nfor each in range(3):\n    total += each\nprint(total)"
MEASURED = EvaluationResult.make("m", [], [], [], header={}, metric_names=["m"])


MANY_SKILLS = Skills(Path(__file__).parent)
MANY_SKILLS.skills = {f"skill-{n}": Skill(f"skill-{n}", LONG, Path(LONG)) for n in range(1_000)}
POINT = Point({"program": LONG}, LONG, 0)
ROWS = tuple(Example(question=f"{n}", answer="a").with_inputs("question") for n in range(3))
GRID: dict[str, Any] = {
    "programs": Predict("question -> answer"),
    "datasets": DataSplit((), (), ROWS),
    "metric": sigwire.answer_exact_match,
}

PARTS = {
    "Example": Example(text=LONG, count=5).with_inputs("text"),
    "Example of many fields": Example(**{f"field_{n}": n for n in range(1_000)}),
    "Prediction": Prediction(text=LONG),
    "Completions": Completions([{"text": LONG}]),
    "Examples": Examples([Example(text=LONG)] * 3),
    "DataSplit": DataSplit((Example(text=LONG),) * 3, (), (), 0),
    "Code": Code(LONG),
    "Reasoned": Reasoned(LONG, "written"),
    "Audio": Audio(data="UklG" * 750_000, audio_format="wav"),
    "File": File(LONG.encode()),
    "Image": Image(b"GIF89a" + LONG.encode()),
    "FetchedFile": FetchedFile(LONG.encode(), "text/plain", LONG),
    "History": History([{"text": LONG}]),
    "Message": Message.user(LONG),
    "Request": Request((Message.user(LONG),)),
    "Choice": Choice(LONG),
    "Response": Response((Choice(LONG),)),
    "LMWarning": LMWarning("x", LONG),
    "Loss": Loss(0, None, "text", LONG, "form"),
    "Repair": Repair("x", LONG),
    "Score": Score(0.5, LONG),
    "ToolCall": CALL,
    "ToolCalls": ToolCalls([CALL] * 3, text=LONG),
    "ToolCalls of many": ToolCalls([ToolCall(str(n), "search", {"n": n}) for n in range(1_000)]),
    "ToolResult": ToolResult("1", "search", LONG),
    "ToolText": ToolText(LONG, {"query": LONG}),
    "ToolChoice": ToolChoice("required", (LONG,) * 3),
    "WebSearch": WebSearch((LONG,)),
    "ResponseFormat": ResponseFormat({"description": LONG}),
    "ReActStep": ReActStep(LONG, (CALL,), (ToolResult("1", "search", LONG),), Usage()),
    "AgentRun": AgentRun((ReActStep(LONG),), History([{"text": LONG}]), "submit"),
    "BatchRun": BatchRun({0: LONG}, (FailedExample(1, {"text": LONG}, InputError(LONG)),)),
    "PendingCall": PendingCall("1", "search", {"query": LONG}, "crash"),
    "Job": Job(program={"text": LONG}, lm="offline/lexical", metric="module:metric"),
    "CallReport": CallReport("module", LONG, LONG, error=LONG),
    "ApprovalAsked": ApprovalAsked(id="1", name="search", arguments={"query": LONG}, why=LONG),
    "AskStart": AskStart(model=LONG),
    "FieldDelta": FieldDelta(field="text", text=LONG),
    "FieldEnd": FieldEnd(field=LONG),
    "FieldPartial": FieldPartial(field="text", value=[LONG]),
    "Finished": Finished(LONG),
    "ReasoningDelta": ReasoningDelta(text=LONG),
    "TextDelta": TextDelta(text=LONG),
    "ToolCallDelta": ToolCallDelta(index=0, arguments=LONG),
    "ToolCallEnd": ToolCallEnd(index=0, call=CALL),
    "ToolCallStart": ToolCallStart(index=0, id="1", name=LONG),
    "ToolDone": ToolDone(result=ToolResult("1", "search", LONG)),
    "UsageUpdate": UsageUpdate(path=LONG, usage=Usage()),
    "Fold": Fold(1, summary=LONG),
    "Draft": Draft(History([{"text": LONG}] * 900), Fold(1, summary=LONG), 9, tuple(range(900)), lambda fold: 1),
    "Memory": Memory(LONG, scope=LONG),
    "Note": Note("1", LONG, LONG, 0.0),
    "Skill": Skill("refunds", LONG, Path(LONG)),
    "Skills": MANY_SKILLS,
    "Compacted": Compacted(fold=Fold(1, summary=LONG)),
    "CacheHealth": CacheHealth(1, breaks=(CacheBreak(0, LONG, "edited"),)),
    "Calibration": Calibration(
        LONG, 9, "logprob", 0.1, 0.1, 0.1, 0.1, Interval(0.1, 0.2), (CalibrationBin(0.0, 0.1, 9, 0.05, 0.1),) * 300
    ),
    "Certificate": Certificate(0.1, 0.9, 9, 9, 0.0, 0.1, by_stage=(1,) * 10_000, least=(0.5,) * 10_000),
    "Criteria": Criteria({True: LONG}),
    "Criteria of levels": Criteria(LONG, ("severe", LONG)),
    "DecisionRule": DecisionRule(weights={LONG: 2.0}),
    "Evidence": Evidence("stated", "choice", (LONG, "b"), (0.9, 0.1), LONG, 0.9),
    "Experiment": Experiment(**GRID, models={f"{n}{LONG[:9_000]}": FakeLM() for n in range(40)}),
    "ExperimentPlan": ExperimentPlan(
        (PlannedPoint(POINT, 1, Amount(1, 1, 1), None, None, (LONG,)),) * 40, warnings=(LONG,)
    ),
    "ExperimentResult": ExperimentResult({LONG: (LONG,)}, (0,), (MeasuredPoint(POINT, MEASURED),), metrics=(LONG,)),
    "ExperimentProgress": ExperimentProgress(1, 2, LONG, None, None, 1.0),
    "PointDone": PointDone(MeasuredPoint(POINT, MEASURED, folder=Path(LONG)), 1, 1),
    "Reproduction": Reproduction((LONG,), (LONG,), (LONG,)),
}
# Classes of numbers and options, of programs and services, and ``Reasoning``, which is a ``str``.
OTHERS = set(
    """
Adapter BaseCallback BaseLM BatchLM BestOfN BetterTogether BootstrapFewShot BootstrapFewShotWithOptuna
BootstrapFewShotWithRandomSearch BootstrapRS Budget Calibrate Cascade Compaction COPRO Capabilities
Cassette ChainOfThought ChatAdapter ChatSession CodeAct CodeLimits Comparison CompleteAndGrounded Embedder Embeddings
EmbeddingsWithScores Ensemble Evaluate EvaluationProgress EvaluationResult ExampleDone FakeLM FetchPolicy GEPA Health
InferRules Injected JSONAdapter Journal KNN KNNFewShot LM LabeledFewShot LanguageModel Limit LimitState MIPROv2 MapResult
ModelCall Module MontyInterpreter MultiChainComparison OptimizationReport Optimizer Parallel PortableHistory Predict Preview
Price ProgramDifference ProgramOfThought RLM ReAct Refine Reasoning RetryPolicy Router SIMBA SearchProgress SemanticF1
Signature SubprocessInterpreter Timeout Tool Toolbox TwoStepAdapter Usage Verification Where XMLAdapter
""".split()
)


@pytest.mark.parametrize("shown", PARTS.values(), ids=PARTS)
def test_repr_of_any_size_has_at_most_500_characters(shown: object) -> None:
    assert len(repr(shown)) <= 500
    is_report = isinstance(shown, Code | Reproduction | ExperimentPlan)  # ``str`` is the code, or the report
    assert len(str(shown)) <= 500 or is_report


def test_bounds_are_tested_for_every_public_class_with_texts() -> None:
    public = {name for name in sigwire.__all__ if isinstance(getattr(sigwire, name), type)}
    errors = {name for name in public if issubclass(getattr(sigwire, name), BaseException)}
    assert {name.partition(" ")[0] for name in PARTS} - {"Draft", "Note", "Skill"} == public - errors - OTHERS


@pytest.mark.parametrize(
    ("shown", "line"),
    [
        (ToolCall("1", "add", {"a": [1, "two"]}), "ToolCall(id='1', name='add', arguments={'a': [1, 'two']}, "
         "raw_arguments=None, error=None, provider_data=None)"),
        (Message.user("Hi\n"), "Message(role='user', parts=(TextPart(text='Hi\\n'),))"),
        (Finished("x" * 400), f"Finished(value='{'x' * 400}', path='self')"),
    ],
)  # fmt: skip
def test_repr_of_a_short_value_is_that_of_dataclasses(shown: object, line: str) -> None:
    assert repr(shown) == line


def test_short_records_and_calls_have_the_repr_of_dataclasses() -> None:
    example = Example(question="q" * 300, k=3)
    assert eval(repr(example), {"Example": Example}) == example
    calls = ToolCalls([ToolCall("call_0", "add", {"a": 1})], text="Adding.")
    assert repr(calls) == f"ToolCalls([{calls[0]!r}], text='Adding.')"
    assert eval(repr(calls), {"ToolCalls": ToolCalls, "ToolCall": ToolCall}) == calls


@pytest.mark.parametrize("shown", [Prediction(answer="4"), ToolCalls([ToolCall("1", "add", {"a": 1})])])
def test_elements_of_a_list_are_lines_in_ipython_and_alone_a_card(shown: HasCard) -> None:
    pretty: Any = pytest.importorskip("IPython.lib.pretty").pretty
    out = io.StringIO()
    shown.show(file=out, width=80)
    assert pretty(shown) == out.getvalue().rstrip("\n") != repr(shown)
    for container in ([shown, shown], (shown,), {"first": shown}):
        assert "".join(pretty(container).split()) == "".join(repr(container).split())


def test_code_of_a_call_is_shown_as_lines_of_code() -> None:
    lm = FakeLM([{"reasoning": "sum", "code": CODE}, {"reasoning": "done", "code": "submit(answer='4')"}])
    agent = CodeAct("question -> answer", tools=[])
    agent.set_lm(lm)
    result = agent(question="1 + 0 + 1 + 2?")
    out = io.StringIO()
    result.show(file=out, width=60)
    lines = out.getvalue().splitlines()
    first = lines.index("    python")
    assert lines[first + 1 : first + 6] == [*(f"      {line}" for line in CODE.splitlines()), "      → 4"]
    assert "python(code=\"submit(answer='4')\")" in out.getvalue()
    assert f"<b>python</b></code><br><code>{CODE}</code>" in result._repr_html_()
