"""``preview_all`` and ``check``: all requests of a program with made-up answers, and what a model does not take of it."""

from __future__ import annotations

import datetime
import enum
from typing import Annotated, Any, Literal

import pydantic
import pytest

from sigwire import (
    LM,
    Audio,
    ChainOfThought,
    ConfigurationError,
    Evaluate,
    Example,
    FakeLM,
    Image,
    InputError,
    InputField,
    Module,
    OutputField,
    Predict,
    ReAct,
    Signature,
    check,
    context,
    preview_all,
)  # fmt: skip
from sigwire.lm.fake import FakeLM as Fake
from sigwire.modules.preview.made_up import made_up_inputs
from sigwire.signatures.signature import make_signature

ran: list[str] = []


def delete(path: str) -> str:
    """Delete a file."""
    ran.append(path)
    return "deleted"


class Support(Module):
    def __init__(self) -> None:
        self.sort = Predict("message -> kind: Literal['order', 'refund'], urgent: bool")
        self.act = ReAct("message, kind -> answer", tools=[delete], max_iters=3)

    def forward(self, message: str) -> Any:
        return self.act(message=message, kind=self.sort(message=message).kind)


def test_preview_all_shows_each_request_and_runs_no_tool(sockets: list[str]) -> None:
    lm = LM("openai/gpt-4.1-mini")
    previews = preview_all(Support(), message="Please delete the file notes.txt", lm=lm)
    assert [(each.path, each.turn) for each in previews[:2]] == [("sort", None), ("act.react", 0)]
    assert all(each.wire is not None for each in previews)
    assert (ran, sockets) == ([], [])


def test_preview_all_takes_the_inputs_of_an_example() -> None:
    example = Example(message="hi", kind="order").with_inputs("message")
    with context(lm=LM("openai/gpt-4.1-mini")):
        assert preview_all(Support(), example)[0].path == "sort"
        assert preview_all(Support(), {"message": "hi"})[0].path == "sort"


def test_preview_all_ends_where_the_program_cannot_go_on() -> None:
    class Fails(Support):
        def forward(self, message: str) -> Any:
            super().forward(message)
            raise LookupError(message)

    with context(lm=LM("openai/gpt-4.1-mini")):
        assert len(preview_all(Fails(), message="hi")) >= 2
        with pytest.raises(InputError):
            preview_all(Predict("q -> a"), message="hi")


def test_preview_all_ends_a_program_that_asks_without_end() -> None:
    class Endless(Module):
        def __init__(self) -> None:
            self.ask = Predict("q -> a")

        def forward(self, q: str) -> Any:
            while True:
                self.ask(q=q)

    with context(lm=LM("openai/gpt-4.1-mini")):
        assert len(preview_all(Endless(), q="1")) == 100


def test_preview_asks_no_model_that_the_program_calls_itself() -> None:
    lm = FakeLM(["a"])

    class Direct(Module):
        def forward(self, q: str) -> Any:
            return lm(q)

    with pytest.raises(ConfigurationError, match=r"calls a model itself.*lm\.preview"):
        Direct().preview(q="1")
    assert lm.requests == []


def test_preview_of_a_program_that_asks_nothing_is_refused() -> None:
    class Quiet(Module):
        def forward(self, q: str) -> str:
            return q

    with pytest.raises(ConfigurationError, match="Quiet asked no model"):
        Quiet().preview(q="1")


@pytest.mark.parametrize("options", [{"lm": LM("anthropic/claude-haiku-4-5")}, {"config": {"temperature": 0.25}}])
@pytest.mark.parametrize("make", [lambda: Predict("q -> a"), lambda: ChainOfThought("q -> a"), lambda: ReAct("q -> a")])
def test_preview_takes_options_of_the_call(make: Any, options: dict[str, Any]) -> None:
    program = make()
    program.set_lm(LM("openai/gpt-4.1-mini"))
    preview = program.preview(q="1", demos=[{"q": "canary", "a": "b"}], **options)
    assert "canary" in preview.json().decode()
    assert preview.model == (options["lm"].model if "lm" in options else "openai/gpt-4.1-mini")
    assert preview.request.options.get("temperature") == options.get("config", {}).get("temperature")
    assert program.predictors()[0].demos == []
    assert program.get_lm().model == "openai/gpt-4.1-mini"


def test_preview_of_a_program_whose_input_is_named_lm() -> None:
    class Names(Module):
        def __init__(self) -> None:
            self.ask = Predict("q -> a")

        def forward(self, lm: str) -> Any:
            return self.ask(q=lm)

    with context(lm=LM("openai/gpt-4.1-mini")):
        assert "canary" in Names().preview(lm="canary").json().decode()


def test_preview_informs_no_callback_and_records_no_call() -> None:
    from sigwire import BaseCallback, track_usage

    class Listener(BaseCallback):
        def on_module_start(self, call_id: str, instance: Any, inputs: Any) -> None:
            raise AssertionError

        def on_lm_start(self, call_id: str, instance: Any, inputs: Any) -> None:
            raise AssertionError

    lm = FakeLM(["a"])
    with context(lm=lm, callbacks=[Listener()], max_history_size=5), track_usage() as usage:
        program = Support()
        program.preview(message="hi")
    assert (lm.requests, list(lm.history), list(program.history), dict(usage.attempts)) == ([], [], [], {})


# --- check -----------------------------------------------------------------------------------------------


class Colour(enum.Enum):
    RED = "red"


class Item(pydantic.BaseModel):
    name: Annotated[str, pydantic.Field(min_length=12)]
    count: Annotated[int, pydantic.Field(gt=4)]
    sizes: list[float]


class Everything(Signature):
    """Sort."""

    item: Item = InputField()
    items: dict[str, Item] = InputField()
    colour: Colour = InputField()
    day: datetime.date = InputField()
    pair: tuple[int, str] = InputField()
    maybe: int | None = InputField()
    kind: Literal["a", "b"] = InputField()
    picture: Image = InputField()
    sound: Audio = InputField()
    answer: str = OutputField()


def test_made_up_inputs_fit_their_types() -> None:
    inputs = made_up_inputs(Everything.spec)
    assert inputs.keys() == {field.name for field in Everything.spec.inputs}
    assert isinstance(inputs["item"], Item)
    assert (inputs["colour"], inputs["day"]) == (Colour.RED, datetime.date(2026, 1, 1))
    assert inputs["pair"] == (1, "made up")


def test_made_up_inputs_omit_history_tools_and_defaults() -> None:
    signature = make_signature("q, history: sigwire.History, tools: list[sigwire.Tool] -> a")
    assert made_up_inputs(signature.spec) == {"q": "made up"}


def test_check_finds_nothing_in_a_program_that_the_model_takes() -> None:
    assert check(Support(), LM("openai/gpt-4.1")) == []


def test_check_names_path_problem_and_fix_of_each_predictor(sockets: list[str]) -> None:
    program = Support()
    program.sort.config["top_k"] = 3
    program.act.react.config["seed"] = 1
    by_path = {finding.path: finding for finding in check(program, LM("anthropic/claude-haiku-4-5"))}
    assert by_path.keys() == {"act"}
    findings = check(program, LM("openai/gpt-4.1"))
    assert [(each.path, "top_k" in each.what, "extra_body" in each.fix) for each in findings] == [("sort", True, True)]
    assert sockets == []


def test_check_finds_demos_with_unknown_fields() -> None:
    program = Support()
    program.sort.demos = [{"mesage": "x", "kind": "order", "urgent": True}]
    (finding,) = check(program, LM("openai/gpt-4.1"))
    assert finding.path == "sort"
    assert "message" in str(finding)


def test_check_finds_media_that_the_model_does_not_take() -> None:
    class Listen(Signature):
        """Answer about a sound."""

        sound: Audio = InputField()
        answer: str = OutputField()

    (finding,) = check(Predict(Listen), LM("anthropic/claude-haiku-4-5"))
    assert "audio" in str(finding).lower()


def test_check_needs_a_model() -> None:
    with context(lm=None), pytest.raises(ConfigurationError, match="check"):
        check(Predict("q -> a"))
    assert check(Predict("q -> a", lm=Fake([]))) == []


def test_preview_works_inside_an_evaluation() -> None:
    lm = FakeLM(lambda _: {"a": "1"})
    predict = Predict("q -> a", lm=lm)

    def metric(example: Any, pred: Any) -> bool:
        return b'"user"' in predict.preview(q=example.q).json()

    devset = [Example(q="1").with_inputs("q")]
    result = Evaluate(devset=devset, metric=metric, display_progress=False)(predict)
    assert (result.score, len(lm.requests)) == (100.0, 1)
