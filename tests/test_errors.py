"""The error tree: its drawing in the docstring, its groups, and no secrets in messages."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import sigwire
from sigwire import errors
from sigwire.core.response import Choice
from sigwire.errors import (
    AdapterParseError,
    AgentStopped,
    BudgetSpent,
    CallerError,
    EventLoopError,
    JsonReadError,
    LMError,
    LMNotConfigured,
    MissingState,
    ModelError,
    OverrideError,
    SigwireError,
    ToolSignal,
    is_retryable_lm_error,
)

CLASSES: dict[str, type[BaseException]] = {
    name: thing for name, thing in vars(errors).items() if inspect.isclass(thing) and issubclass(thing, SigwireError)
}
BRANCHES = (CallerError, LMError, ModelError, AgentStopped, ToolSignal)


def drawn() -> dict[str, str | None]:
    """Parent by class, as the module's docstring draws them."""
    parents: dict[str, str | None] = {}
    above: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.match(r"^([ │├└─]*)([A-Z]\w+)(?:  |$)", line)
        if found is None or found[2] not in CLASSES:
            continue
        depth = len(found[1])
        above = [(column, name) for column, name in above if column < depth]
        parents[found[2]] = above[-1][1] if above else None
        above.append((depth, found[2]))
    return parents


def test_docstring_shows_the_class_tree() -> None:
    parents = drawn()
    assert set(parents) == set(CLASSES)
    for name, parent in parents.items():
        assert parent is None or CLASSES[parent] in CLASSES[name].__mro__[1:]
        nearest = [cls.__name__ for cls in CLASSES[name].__bases__ if issubclass(cls, SigwireError)]
        assert parent is None or parent in nearest


def test_every_error_is_public() -> None:
    others = {
        "DemoWarning",
        "ToolWarning",
        "Where",
        "Whose",
        "ends_run",
        "is_interrupt",
        "is_retryable_lm_error",
        "suggest",
        "warn_user",
    }
    assert set(errors.__all__) == set(CLASSES) | others


@pytest.mark.parametrize("name", sorted(set(CLASSES) - {"SigwireError"}))
def test_every_error_belongs_to_one_group(name: str) -> None:
    assert sum(issubclass(CLASSES[name], branch) for branch in BRANCHES) == 1
    assert CLASSES[name].__doc__


def test_caller_errors_are_value_errors() -> None:
    leaves = [cls for cls in CLASSES.values() if issubclass(cls, CallerError) and cls is not CallerError]
    # No value is at fault when an event loop, a class or a budget is.
    assert {cls for cls in leaves if not issubclass(cls, ValueError)} == {BudgetSpent, EventLoopError, OverrideError}
    assert issubclass(EventLoopError, RuntimeError)
    assert issubclass(OverrideError, TypeError)


def empty_corpus() -> object:
    return sigwire.Embeddings([], sigwire.Embedder(lambda texts: [[1.0] for _ in texts]))


def uneven_vectors() -> object:
    pytest.importorskip("numpy")
    return sigwire.Embedder(lambda texts: [[1.0] * (n + 1) for n, _ in enumerate(texts)])(["a", "b"])


def no_run(folder: Path) -> object:
    (folder / "run.jsonl").write_text("{}\n", encoding="utf-8")
    return sigwire.load_records(folder / "run.jsonl")


def busy_session() -> object:
    program = sigwire.Predict("question, history: History -> answer")
    session = sigwire.ChatSession(program)
    program.set_lm(sigwire.FakeLM(lambda request: session(question="nested")))  # type: ignore[arg-type,return-value]
    return session(question="outer")


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("DataError", lambda folder: empty_corpus()),
        ("DataError", lambda folder: uneven_vectors()),
        ("DataError", no_run),
        ("SessionBusy", lambda folder: busy_session()),
    ],
    ids=["empty corpus", "uneven vectors", "file without a run", "busy session"],
)
def test_error_of_data_and_sessions_has_its_kind_and_is_still_a_configuration_error(
    kind: str, make: Any, tmp_path: Path
) -> None:
    with pytest.raises(errors.ConfigurationError) as caught:
        make(tmp_path)
    assert type(caught.value) is CLASSES[kind]
    assert issubclass(errors.DataError, errors.InputError)


LM_ERRORS = sorted((cls for cls in CLASSES.values() if issubclass(cls, LMError)), key=lambda cls: cls.__name__)


@pytest.mark.parametrize("kind", LM_ERRORS, ids=lambda kind: kind.__name__)
def test_lm_error_has_and_shows_its_facts(kind: Any) -> None:
    facts = {
        "model": "a-model", "provider": "openai", "provider_code": "E1", "status": 503, "request_id": "r1", "retry_after": 2.0,
    }  # fmt: skip
    error = kind("It broke.", **facts)
    assert {name: getattr(error, name) for name in facts} == facts
    assert str(error).startswith("It broke. (provider openai, model a-model, status 503")
    assert str(kind()).startswith((kind.__doc__ or "").split("\n")[0])
    assert isinstance(error.code, str)


def test_codes_of_lm_errors_are_unique() -> None:
    codes = [vars(cls)["code"] for cls in LM_ERRORS]
    assert len(set(codes)) == len(codes)


RETRYABLE = {"LMTransportError", "LMTimeoutError", "LMRateLimitError", "LMServerError"}


@pytest.mark.parametrize("kind", LM_ERRORS, ids=lambda kind: kind.__name__)
def test_only_transient_errors_are_retryable(kind: Any) -> None:
    assert is_retryable_lm_error(kind("no")) == (kind.__name__ in RETRYABLE)


@pytest.mark.parametrize("error", [ValueError("no"), KeyboardInterrupt(), ModelError("no")], ids=repr)
def test_other_errors_are_not_retryable(error: BaseException) -> None:
    assert not is_retryable_lm_error(error)


def test_model_error_keeps_the_answer() -> None:
    error = ModelError("Unusable.", choice=Choice("half an ans", finish_reason="length"))
    assert (error.text, error.finish_reason, str(error)) == ("half an ans", "length", "Unusable.")
    assert (ModelError("Unusable.").text, ModelError("Unusable.").finish_reason) == ("", None)


def test_parse_error_shows_fields_and_problems_and_advice() -> None:
    error = AdapterParseError("ChatAdapter", None, "x" * 1_000, parsed_result={"a": 1}, problems={"b": "is missing"})
    assert "b: is missing" in str(error)
    assert "Parsed fields: a" in str(error)
    assert "max_reasks=1" in str(error)
    assert len(str(error)) < 700
    assert error.text == error.lm_response == "x" * 1_000
    assert error.problems == {"b": "is missing"}


def test_parse_error_may_have_a_custom_message() -> None:
    assert str(AdapterParseError("ChatAdapter", None, "text", "Short and plain.")) == "Short and plain."


def test_missing_model_error_has_advice() -> None:
    assert "sigwire.configure(lm=" in str(LMNotConfigured("Predict"))
    assert "for Predict" in str(LMNotConfigured("Predict"))


def test_other_errors_have_their_facts() -> None:
    read = JsonReadError("not JSON", code="truncated", position=7)
    stopped = AgentStopped("no answer", reason="max_iters", steps=(1,), history=[2])
    assert (read.code, read.position) == ("truncated", 7)
    assert (stopped.reason, stopped.steps, stopped.history) == ("max_iters", (1,), [2])
    assert str(MissingState("plain words")) == "plain words"
