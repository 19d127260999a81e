"""Facts about signatures that type checkers must know. Checked by mypy and pyright (strict), never run.

An error comment marks a mistake that checkers must report: both checkers report comments that are not needed.
"""

from __future__ import annotations

from typing import Any, assert_type

from sigwire.core.example import Example, Prediction
from sigwire.modules.predict import Predict
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature, make_signature
from sigwire.signatures.types import Code, History, Image, Reasoning, Tool, ToolCalls


class QA(Signature):
    """Answer the question."""

    question: str = InputField(desc="what to answer")
    k: int = InputField(default=3, ge=1)
    context: list[str] = InputField(default_factory=list)
    answer: str = OutputField(min_length=1)
    score: float | None = OutputField(desc="how sure", ge=0, le=1)


class Careful(QA):
    """Inherits the fields of QA."""

    checked: bool = OutputField()


class Agent(Signature):
    """Use tools."""

    question: str = InputField()
    picture: Image | None = InputField(default=None)
    tools: list[Tool] = InputField()
    history: History = InputField(default_factory=History)
    reasoning: Reasoning = OutputField()
    calls: ToolCalls = OutputField()


class Clashing(Signature):
    """Fields may have the names of methods."""

    items: list[str] = InputField()
    copy: str = InputField()
    response: str = OutputField()
    usage: int = OutputField()
    keys: dict[str, str] = OutputField()


class Java(Code):
    """Java source, in a way that every checker reads."""

    language = "java"


class Translate(Signature):
    """Fields may have the names of what signature classes can do."""

    instructions: str = InputField()
    fields: list[str] = InputField()
    signature: Java = OutputField()
    append: int = OutputField()


# --- outputs ---

predict = Predict(QA)
result = predict(question="2+2?")
assert_type(result.answer, str)
assert_type(result.score, float | None)
assert_type(result.question, str)
assert_type(result.get_lm_usage(), dict[str, Any])
assert_type(result.toDict(), dict[str, Any])
assert_type(result.response, Any)
result.anser  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownMemberType]
number: int = result.answer  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]

assert_type(Predict(Careful)(question="?").checked, bool)
assert_type(Predict(Careful)(question="?").answer, str)
assert_type(Predict(Agent)(question="?", tools=[]).calls, ToolCalls)
assert_type(Predict(Agent)(question="?", tools=[]).reasoning, Reasoning)
assert_type(Predict(Clashing)(items=["a"], copy="b").response, str)
assert_type(Predict(Clashing)(items=["a"], copy="b").keys, dict[str, str])
assert_type(Predict(Translate)(instructions="a", fields=[]).signature, Java)
assert_type(Predict(Translate)(instructions="a", fields=[]).signature.code, str)
assert_type(Predict(Translate)(instructions="a", fields=[]).append, int)
Code["java"].language  # type: ignore[misc]  # mypy allows brackets behind generic classes only


async def asynchronously() -> None:
    assert_type((await predict.acall(question="2+2?")).answer, str)


# --- inputs ---

predict(question="2+2?", k=4, context=["a"])
predict()  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
predict(k=4)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
predict(question=3)  # type: ignore[call-overload]  # pyright: ignore[reportArgumentType]
predict(qestion="2+2?")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
predict(question="2+2?", answer="4")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
predict("2+2?")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]

# --- edits that keep the fields keep the types ---

assert_type(Predict(QA.with_instructions("Be brief."))(question="?").answer, str)
assert_type(Predict(QA.append_instructions("Be brief."))(question="?").answer, str)
assert_type(QA.instructions, str)
assert_type(QA.equals(Careful), bool)

# --- what only the run knows is Any ---

dynamic = Predict("question, k: int -> answer")
assert_type(dynamic(question="?", k=3).answer, Any)
assert_type(Predict(Signature("question -> answer", "Be brief."))(question="?").answer, Any)
edited = Signature("question -> answer").with_instructions("Be brief.").append_instructions("Be kind.")
assert_type(edited, Signature)
assert_type(Predict(edited)(question="?").answer, Any)
assert_type(Predict(Signature("question -> answer").append("more", OutputField(), int))(question="?").more, Any)
for name in Signature("question -> answer").insert(0, "hint", InputField()).delete("hint").output_fields:
    print(name, Signature("a -> b").spec.name, Signature("a -> b").equals(edited), Signature("a -> b").instructions)
assert_type(make_signature("question -> answer").instructions, Any)
assert_type(QA.append("more", OutputField()), Any)

# --- records ---

example = Example(question="2+2?").with_inputs("question")
assert_type(example, Example)
assert_type(example.question, Any)
assert_type(example.inputs(), Example)
assert_type(Prediction(score=1) < 2, bool)
