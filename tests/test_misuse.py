"""Misuse at the edges of the library: an error has what happened, where in parentheses, and what to do next."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import sigwire
import sigwire.dspy
from sigwire.errors import CallerError
from sigwire.observe.tracing.instrument import instrument
from sigwire.optimizers.candidate import Candidate
from sigwire.optimizers.errors import RuleError
from sigwire.optimizers.optimizer import Optimizer
from sigwire.optimizers.rule import Report, checked_rule
from sigwire.optimizers.task import Task

THREE_PARTS = re.compile(r"[^()].* \((?:[^()]|\([^()]*\))+\)\.? .+", re.DOTALL)


def model() -> sigwire.FakeLM:
    return sigwire.FakeLM(lambda request: {"answer": "4"})


def predict(**inputs: object) -> object:
    return sigwire.Predict("question, tools: list[Tool] -> answer", lm=model())(**inputs)


def named(name: str) -> object:
    """Return an attribute of sigwire that type checkers do not know."""
    return getattr(sigwire, name)


ANY: Any = sigwire
TICKET: Any = sigwire.Signature("question -> answer")
ROW = sigwire.Example(question="2+2?", answer="4").with_inputs("question")


def told(message: object) -> object:
    return ANY.LM("offline/lexical")(messages=[message])


MISUSES: dict[str, tuple[Callable[[], object], str]] = {
    "module that is not imported": (lambda: named("commands_"), "dir(sigwire)"),
    "misspelt name": (lambda: named("Predct"), "Did you mean Predict?"),
    "misspelt name of the door": (lambda: getattr(sigwire.dspy, "BootstrapFewShots"), "Did you mean BootstrapFewShot?"),  # noqa: B009
    "name of the door": (lambda: named("streamify"), "It is in sigwire.dspy"),
    "adapter by name": (lambda: ANY.configure(adapter="json"), "Write adapter=sigwire.JSONAdapter()."),
    "model by name": (lambda: ANY.configure(lm="openai/x"), "Write lm=sigwire.LM('openai/x')."),
    "class of an adapter": (lambda: ANY.configure(adapter=sigwire.JSONAdapter), "Write adapter=JSONAdapter(...)."),
    "setting of another type": (lambda: ANY.configure(num_threads="8"), "num_threads"),
    "unknown setting": (lambda: ANY.configure(adaptr=None), "Did you mean adapter?"),
    "beginning of an option": (lambda: ANY.Tool(len, desc="x"), "Did you mean description?"),
    "misspelt input": (lambda: predict(qestion="2+2?", tools=[]), "Did you mean question?"),
    "input besides a misspelt one": (lambda: predict(question="2+2?", tool=[]), "Did you mean tools?"),
    "tracer by name": (lambda: ANY_INSTRUMENT("x"), "TracerProvider"),
    "meter by number": (lambda: ANY_INSTRUMENT(meter_provider=3), "MeterProvider"),
    "logs by name": (lambda: ANY_INSTRUMENT(logger_provider="x"), "LoggerProvider"),
    "redact by name": (lambda: ANY_INSTRUMENT(redact="x"), "function of (kind, value)"),
    "closed server of an agent": (lambda: ANY.ReAct("question -> answer", tools=sigwire.mcp_tools("x")), "as tools:"),
    "closed server of a toolbox": (lambda: ANY.Toolbox(sigwire.mcp_tools("x")), "as tools:"),
    "closed server of a call": (lambda: predict(question="", tools=sigwire.mcp_tools("x")), "as tools:"),
    "misspelt model of a provider": (lambda: ANY.LM("offline/lexicl"), "Did you mean offline/lexical?"),
    "misspelt wire": (lambda: ANY.LM("openai/gpt-5-mini", wire="responsess"), "Did you mean responses?"),
    "misspelt role": (lambda: told({"role": "usr", "content": "x"}), "Did you mean user?"),
    "misspelt part": (lambda: told({"role": "user", "content": [{"type": "txt"}]}), "Did you mean text?"),
    "misspelt field to change": (lambda: TICKET.with_updated_fields("anwer", desc="x"), "Did you mean answer?"),
    "misspelt field of an instance": (lambda: TICKET(question="x", anwer="y"), "Did you mean answer?"),
    "misspelt cluster": (lambda: ANY.Evaluate(devset=[ROW], metric=right, cluster="questio"), "Did you mean question?"),
    "misspelt part of an image": (lambda: ANY.Image.read({"ur": "x"}), "Did you mean url?"),
    "misspelt form of an export": (lambda: ANY.Predict(TICKET).export("opena"), "Did you mean openai?"),
    "misspelt column": (
        lambda: ANY.load_examples([{"questio": 1}], fields={"q": "question"}),
        "Did you mean questio?",
    ),
    "tools by number": (lambda: ANY.ReAct("question -> answer", tools=3), "tools=[function]"),
    "tools by name": (lambda: predict(question="", tools="search"), "tools=[function]"),
    "rule without a generator": (lambda: compiled(NoRule(metric=right)), "Write a generator"),
    "rule that yields text": (lambda: compiled(TextRule(metric=right)), "yield from measure"),
    "rule without a candidate": (lambda: compiled(NoCandidate(metric=right)), "task.baseline"),
    "plan of a rule that yields text": (lambda: planned(TextRule(metric=right)), "yield from measure"),
    **{
        f"{kind.__name__} of {name}": (partial(kind, source), f"{kind.__name__}.from_path(")
        for kind in (sigwire.Audio, sigwire.File, sigwire.Image)
        for name, source in {"a number": 5, "a path": Path("a.bin"), "nothing": None}.items()
    },
    "File of the name of a file": (lambda: sigwire.File("a.pdf"), "File.from_path("),
    "File of two sources": (lambda: sigwire.File(b"%PDF-", file_id="file-1"), "exactly one source, got 2"),
}
ANY_INSTRUMENT: Any = instrument


class TextRule(Optimizer):
    """An optimizer whose rule yields a text."""

    def rule(self, task: Task, options: Any) -> Any:
        yield "a better prompt"
        return task.baseline


class NoRule(Optimizer):
    """An optimizer whose rule is a function."""

    def rule(self, task: Task, options: Any) -> Any:
        return None


class NoCandidate(Optimizer):
    """An optimizer whose rule forgets its candidate."""

    def rule(self, task: Task, options: Any) -> Any:
        yield from ()


def right(example: object, prediction: object) -> float:
    return 1.0


def compiled(optimizer: Any) -> object:
    return optimizer.compile(sigwire.Predict("question -> answer", lm=model()), trainset=examples())


def planned(optimizer: Any) -> object:
    return optimizer.plan(sigwire.Predict("question -> answer", lm=model()), examples())


def examples() -> list[sigwire.Example]:
    return [sigwire.Example(question=f"{n}+1?", answer="4").with_inputs("question") for n in range(4)]


@pytest.mark.parametrize("misuse", MISUSES)
def test_error_of_a_misuse_has_three_parts(misuse: str) -> None:
    call, advice = MISUSES[misuse]
    with pytest.raises((CallerError, AttributeError)) as caught:
        call()
    text = str(caught.value)
    assert advice in text
    assert THREE_PARTS.fullmatch(text), text


@pytest.mark.parametrize("optimizer", [NoRule, TextRule, NoCandidate])
def test_rule_that_does_not_search_is_a_rule_error(optimizer: Any) -> None:
    with pytest.raises(RuleError, match=f"{optimizer.__name__}.rule") as caught:
        compiled(optimizer(metric=right))
    assert isinstance(caught.value, TypeError)


def test_errors_of_effects_and_their_answers_reach_the_rule() -> None:
    seen: list[object] = []

    def rule() -> Any:
        seen.append((yield Report(ANY_EVENT)))
        try:
            yield Report(ANY_EVENT)
        except sigwire.BudgetSpent as error:
            seen.append(error)
        return Candidate()

    steps = checked_rule("Careful", rule())
    next(steps)
    steps.send("answer")
    spent = sigwire.BudgetSpent("spent")
    with pytest.raises(StopIteration) as ended:
        steps.throw(spent)
    assert (seen, ended.value.value) == (["answer", spent], Candidate())


ANY_EVENT: Any = object()


def test_file_is_made_of_the_sources_of_the_other_media() -> None:
    content = b"%PDF-1.7"
    made = sigwire.File(content)
    assert made.part().media_type == "application/pdf"
    assert made == sigwire.File(bytearray(content)) == sigwire.File(made.file_data) == sigwire.File(made)
    assert sigwire.File("https://example.com/a.pdf").url == "https://example.com/a.pdf"
    assert sigwire.File(content, filename="a.pdf").part().filename == "a.pdf"
