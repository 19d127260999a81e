"""Typed values in whole runs: evaluations, jobs, sessions, agents, searches, and their files. See ``test_typed_values``."""

from __future__ import annotations

import asyncio
import csv
import datetime
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel, WithJsonSchema

import sigwire
from sigwire import (
    ApprovalNeeded,
    BestOfN,
    BootstrapFewShot,
    Cassette,
    ChatSession,
    ConfigurationError,
    Ensemble,
    Evaluate,
    Example,
    FakeLM,
    History,
    InferRules,
    InputError,
    InputField,
    Job,
    KNNFewShot,
    Module,
    MultiChainComparison,
    OutputField,
    Predict,
    Prediction,
    ReAct,
    Refine,
    Signature,
    Tool,
    ToolCall,
    amap_rows,
    load_records,
    majority,
    map_rows,
)
from sigwire.core.events import Finished
from sigwire.lm.policy.cache.cache import configure_cache
from sigwire.modules.agents.run import ReActStep
from sigwire.testing import FakeProvider
from tests.jobs.engines import InlineExecutor
from tests.test_typed_values import Money, Priced, Unwritten

DAY = datetime.date(2026, 1, 2)


class Order(BaseModel):
    number: str
    placed: datetime.date


class Ordering(Signature):
    """Read the order."""

    text: str = InputField()
    order: Order = OutputField()
    price: Priced = OutputField()


class Shop(Module):
    """A program without a signature, whose predictor declares the outputs."""

    def __init__(self, lm: Any = None) -> None:
        super().__init__()
        self.read = Predict(Ordering, lm=lm)

    def forward(self, text: str) -> Any:
        made = self.read(text=text)
        return Prediction(order=made.order, price=made.price)


ANSWER = {"order": {"number": "A1", "placed": "2026-01-02"}, "price": "5 EUR"}
LM_OF_ORDERS = FakeLM(lambda request: ANSWER)
ORDER = Order(number="A1", placed=DAY)
LABELS = {"order": ORDER, "price": Money(5)}
ROWS = [Example(text=str(number), **LABELS).with_inputs("text") for number in range(3)]


def by_types(example: Any, prediction: Any, trace: object = None) -> bool:
    return bool(
        example.order.placed.year == prediction.order.placed.year and example.price.cents == prediction.price.cents
    )


def evaluated(mode: str, evaluate: Evaluate, program: Any) -> Any:
    """Evaluate in a mode."""
    if mode == "blocking":
        return evaluate(program)
    if mode == "awaited":
        return asyncio.run(evaluate.acall(program))
    *_, last = evaluate.stream(program)
    assert isinstance(last, Finished)
    return last.value


MAKERS: dict[str, Callable[[], Any]] = {
    "predictor": lambda: Predict(Ordering, lm=LM_OF_ORDERS),
    "module": lambda: Shop(LM_OF_ORDERS),
}


@pytest.mark.parametrize("mode", ["blocking", "awaited", "streamed"])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_records_of_a_file_are_scored_again_and_resumed_with_types(
    make: Callable[[], Any], mode: str, tmp_path: Path
) -> None:
    evaluate = Evaluate(devset=ROWS, metric=by_types, progress=False, log=tmp_path / "log.jsonl")
    assert evaluated(mode, evaluate, make()).score == 100
    assert "<Money>" not in (tmp_path / "log.jsonl").read_text()
    loaded = load_records(tmp_path / "log.jsonl", make())
    again = loaded.rescore(lambda example, prediction: by_types(example, prediction) / 2)
    assert (again.score, again.unscored) == (50.0, 0)
    assert [row[:2] for row in loaded.results] == [(each, Prediction(**LABELS)) for each in ROWS]
    resumed = evaluated(mode, evaluate, make())
    assert [each.kept for each in resumed.run.records] == [True] * 3
    assert {type(prediction.order) for _, prediction, _ in resumed.results} == {Order}
    assert resumed.rescore(by_types).score == 100


def test_metric_that_meets_plain_values_names_the_program(tmp_path: Path) -> None:
    evaluate = Evaluate(devset=ROWS, metric=by_types, progress=False, log=tmp_path / "log.jsonl")
    evaluate(Predict(Ordering, lm=LM_OF_ORDERS))
    plain = load_records(tmp_path / "log.jsonl")
    assert plain.results[0][1].order == ANSWER["order"]
    with pytest.raises(ConfigurationError, match=r"load_records\(path, program\)"):
        plain.rescore(by_types)
    assert load_records(tmp_path / "log.jsonl", Ordering).rescore(by_types).score == 100


def test_file_of_before_the_marks_is_read_with_types(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    header = {
        "type": "run", "format": 1, "program": {"class": "app.Shop"}, "devset": {"n": 1, "ids": None},
        "metrics": ["by_types"], "repeat": 1, "reduce": "mean",
    }  # fmt: skip
    record = {
        "type": "record", "id": "1", "index": 0, "repeat": 1, "inputs": {"text": "a"}, "labels": ANSWER,
        "score": 1.0, "outputs": {**ANSWER, "price": "5 EUR"}, "started": "2026-01-02T00:00:00Z",
    }  # fmt: skip
    log.write_text(f"{json.dumps(header)}\n{json.dumps(record)}\n")
    assert load_records(log, Ordering).rescore(by_types).score == 100


class Odd(Module):
    """A program with a value that has no JSON form, and one that no signature declares."""

    def forward(self, text: str) -> Any:
        return Prediction(answer=text, thing=Unwritten(), day=DAY)


def test_value_without_a_json_form_is_named_by_a_row_without_a_score(tmp_path: Path) -> None:
    rows = [Example(text="a").with_inputs("text")]
    log = tmp_path / "log.jsonl"
    paid = Evaluate(devset=rows, metric=lambda e, p: p.thing is not None, progress=False, log=log)(Odd())
    assert paid.score == 100
    loaded = load_records(log, Odd())
    assert loaded.rescore(lambda e, p: p.answer == "a").score == 100
    for metric in (lambda e, p: p.thing == 1, lambda e, p: bool(p.thing), lambda e, p: "x" in str(p.thing)):
        again = loaded.rescore(metric)
        assert again.unscored == 1
        assert again.records[0].outputs["answer"] == "a"
        assert "field 'thing' has no JSON form" in again.records[0].cell.failure.message
    assert loaded.results[0][1].day == "2026-01-02"


def test_rows_of_json_data_keep_it_when_they_are_scored_again(tmp_path: Path) -> None:
    rows = [Example(text="a", order=ANSWER["order"], price="5 EUR").with_inputs("text")]

    def by_data(example: Any, prediction: Any) -> bool:
        return bool(example.order["number"] == prediction.order.number and example.price == "5 EUR")

    log = tmp_path / "log.jsonl"
    assert (
        Evaluate(devset=rows, metric=by_data, progress=False, log=log)(Predict(Ordering, lm=LM_OF_ORDERS)).score == 100
    )
    assert load_records(log, Ordering).rescore(by_data).score == 100


class Paying(Signature):
    """Pay."""

    price: Priced = InputField()
    day: datetime.date = InputField()
    total: Annotated[Priced, WithJsonSchema({"type": "string"})] = OutputField()


def test_run_of_an_agent_is_typed_when_it_is_resumed(tmp_path: Path) -> None:
    agent = ReAct(Paying, [], lm=FakeLM(lambda request: {"total": "3 EUR"}))
    rows = [Example(price=Money(3), day=DAY).with_inputs("price", "day")]

    def by_steps(example: Any, prediction: Any) -> bool:
        return isinstance(prediction.history, History) and all(isinstance(step, ReActStep) for step in prediction.steps)

    evaluate = Evaluate(devset=rows, metric=by_steps, progress=False, log=tmp_path / "log.jsonl")
    assert evaluate(agent).score == 100
    assert load_records(tmp_path / "log.jsonl", agent).rescore(by_steps).score == 100
    assert evaluate(agent).rescore(by_steps).score == 100


# --- what people read ----------------------------------------------------------------------------------


def _written_by(name: str) -> Callable[[Any, Path], str]:
    def write(result: Any, path: Path) -> str:
        getattr(result, name)(path)
        return path.read_text()

    return write


REPORTS: dict[str, Callable[[Any, Path], str]] = {
    "rows": lambda result, path: json.dumps(result.rows()),
    "csv": _written_by("to_csv"),
    "lines": _written_by("to_jsonl"),
    "page": _written_by("to_html"),
    "csv of fields": _written_by("save_as_csv"),
    "json of fields": _written_by("save_as_json"),
    "inspect": lambda result, path: Path(result.to_inspect(path.with_suffix(".json"))).read_text(),
}


@pytest.mark.parametrize("is_loaded", [False, True], ids=["new", "loaded"])
@pytest.mark.parametrize("report", REPORTS)
def test_report_shows_the_json_of_the_declared_type(report: str, is_loaded: bool, tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    result = Evaluate(devset=ROWS, metric=by_types, progress=False, log=log)(Shop(LM_OF_ORDERS))
    text = REPORTS[report](load_records(log, Shop()) if is_loaded else result, tmp_path / "report")
    assert "5 EUR" in text
    assert "<Money" not in text


def test_flat_columns_are_those_of_example_and_prediction(tmp_path: Path) -> None:
    result = Evaluate(devset=ROWS[:1], metric=by_types, progress=False)(Shop(LM_OF_ORDERS))
    result.save_as_csv(tmp_path / "a.csv")
    (row,) = csv.DictReader(io.StringIO((tmp_path / "a.csv").read_text()))
    assert list(row) == ["text", "example_order", "example_price", "pred_order", "pred_price", "by_types"]


# --- jobs ----------------------------------------------------------------------------------------------


class Costs(Signature):
    """Double the price."""

    price: Priced = InputField()
    day: datetime.date = InputField()
    twice: Priced = OutputField()


class Doubler(Module):
    """A program that asks no model and takes typed values only."""

    signature = Costs

    def forward(self, price: Any, day: Any) -> Any:
        return Prediction(twice=Money(2 * price.cents), later=day.replace(year=2030))


def doubled(example: Any, prediction: Any) -> bool:
    return bool(prediction.twice.cents == 2 * example.price.cents)


PRICES = [Example(price=Money(number), day=DAY).with_inputs("price", "day") for number in range(3)]


@pytest.mark.parametrize("mode", ["blocking", "awaited"])
def test_rows_of_a_job_travel_with_types_and_have_ids_of_their_own(mode: str, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    job = Job.of(Doubler(), doubled)
    if mode == "blocking":
        result = map_rows(job, PRICES, out, executor=InlineExecutor())
    else:
        result = asyncio.run(amap_rows(job, PRICES, out, executor=InlineExecutor()))
    assert (result.rows, dict(result.failures)) == (3, {})
    loaded = load_records(out, Doubler())
    assert len({record.id.partition("-")[0] for record in loaded.records}) == 3
    assert loaded.rescore(doubled).score == 100
    assert {row.price.cents: made.twice.cents for row, made, _ in loaded.results} == {0: 0, 1: 2, 2: 4}


def test_job_by_its_path_reads_the_types_of_the_program_that_it_names(tmp_path: Path) -> None:
    job = Job(program="tests.test_typed_runs:DOUBLER", metric="tests.test_typed_runs:doubled")
    result = map_rows(job, PRICES, tmp_path / "out.jsonl", executor=InlineExecutor())
    assert (result.rows, dict(result.failures)) == (3, {})


DOUBLER = Doubler()


def test_evaluation_on_an_executor_equals_the_one_in_this_process(tmp_path: Path) -> None:
    found = {}
    for name, pool in (("here", None), ("there", InlineExecutor())):
        log = tmp_path / name
        result = Evaluate(devset=PRICES, metric=doubled, progress=False, log=log, executor=pool)(Doubler())
        assert [(made.twice, score) for _, made, score in result.results] == [(Money(2 * n), 1) for n in range(3)]
        found[name] = [(r.inputs, r.outputs, r.forms, r.cell.forms) for r in load_records(log).records]
    assert found["here"] == found["there"]


# --- requests and answers are recorded below the types -----------------------------------------------------


@pytest.mark.parametrize("mode", ["blocking", "awaited", "streamed"])
def test_cassettes_and_caches_hold_the_text_of_answers_so_values_keep_their_types(mode: str, tmp_path: Path) -> None:
    configure_cache(disk_cache_dir=tmp_path / "cache")

    def ask(lm: Any) -> Any:
        program = Predict(Ordering, lm=lm)
        if mode == "blocking":
            return program(text="a")
        if mode == "awaited":
            return asyncio.run(program.acall(text="a"))
        *_, last = program.stream(text="a")
        return last.value

    text = "[[ ## order ## ]]\n" + json.dumps(ANSWER["order"]) + "\n\n[[ ## price ## ]]\n5 EUR\n\n[[ ## completed ## ]]"
    with FakeProvider([text], key="k") as provider:
        lm = sigwire.LM("openai/gpt-4o-mini", base_url=provider.url("openai"), api_key="k")
        with Cassette(tmp_path / "c.jsonl", "record"):
            first = ask(lm)
        assert "5 EUR" in (tmp_path / "c.jsonl").read_text()
        found = [first, ask(lm)]
    with Cassette(tmp_path / "c.jsonl", "replay"):
        found.append(ask(lm))
    assert [(each.order, each.price) for each in found] == [(ORDER, Money(5))] * 3


# --- conversations and agents ----------------------------------------------------------------------------


class Asking(Signature):
    """Answer."""

    price: Priced = InputField()
    past: History = InputField()
    total: Priced = OutputField()


def test_session_is_continued_from_json_with_types() -> None:
    lm = FakeLM(lambda request: {"total": "7 EUR"})
    chat = ChatSession(Predict(Asking, lm=lm))
    chat(price=Money(3))
    data = json.loads(json.dumps(chat.to_json()))
    other = ChatSession(Predict(Asking, lm=lm), data)
    assert other.conversation == chat.conversation
    assert other.conversation.messages[0]["total"] == Money(7)
    assert (other(price=Money(4)).total, chat(price=Money(4)).total) == (Money(7), Money(7))
    assert lm.requests[-1].messages == lm.requests[-2].messages


def _agent() -> ReAct[Any, Any]:
    def pay(cents: int) -> str:
        """Pay."""
        return f"paid {cents}"

    answers = [ToolCall("p", "pay", {"cents": 3}), ToolCall("s", "submit", {"total": "3 EUR"})]
    return ReAct(Paying, [Tool(pay, approve=True)], lm=FakeLM(answers))


def test_agent_that_waits_is_resumed_from_json_with_types() -> None:
    agent = _agent()
    with pytest.raises(ApprovalNeeded) as raised:
        agent(price=Money(3), day=DAY)
    state = json.loads(json.dumps(raised.value.state))
    assert (state["inputs"], "Money" in json.dumps(state)) == ({"price": "3 EUR", "day": "2026-01-02"}, False)
    result = agent.resume(state, {"p": "approve"})
    assert result.total == Money(3)
    assert dict(result.history.messages[0]) == {"price": Money(3), "day": DAY}
    assert json.loads(json.dumps(result.to_json()))["fields"]["total"] == "3 EUR"


def test_history_with_outputs_is_given_to_an_agent_as_text() -> None:
    agent = ReAct(Paying, [], lm=FakeLM(lambda request: {"total": "3 EUR"}))
    history = History([{"price": Money(1), "day": DAY, "total": Money(1)}])
    assert agent(price=Money(3), day=DAY, history=history).total == Money(3)
    assert any("1 EUR" in message.text for message in agent.react.lm.requests[-1].messages)


# --- searches --------------------------------------------------------------------------------------------


def test_bootstrapped_demos_have_types_and_are_saved_with_the_serializers_of_the_user(tmp_path: Path) -> None:
    program = BootstrapFewShot(by_types, max_bootstrapped_demos=2).compile(
        Predict(Ordering, lm=LM_OF_ORDERS), trainset=ROWS
    )
    assert {(demo.price, demo.order.placed) for demo in program.demos} == {(Money(5), DAY)}
    program.set_lm(None)
    demos = json.loads(json.dumps(program.dump_state()["demos"]))
    assert {(demo["price"], demo["order"]["placed"]) for demo in demos} == {("5 EUR", "2026-01-02")}
    program.save(tmp_path / "p.json")
    loaded = Predict(Ordering)
    loaded.load(tmp_path / "p.json")
    assert [(demo["price"], demo["order"]) for demo in loaded.demos] == [
        (each.price, each.order) for each in program.demos
    ]
    lm = FakeLM(lambda request: ANSWER)
    for each in (program, loaded):
        each(text="b", lm=lm)
    assert lm.requests[0].messages == lm.requests[1].messages


def test_writing_model_reads_rows_in_the_json_of_declared_types() -> None:
    writer = FakeLM(lambda request: {"rules": ["Be exact."]})
    InferRules(metric=by_types, prompt_model=writer, max_bootstrapped_demos=1).compile(
        Predict(Ordering, lm=LM_OF_ORDERS), trainset=ROWS * 2
    )
    texts = [message.text for request in writer.requests for message in request.messages]
    assert any("5 EUR" in text for text in texts)
    assert not any("Money" in text for text in texts)


def test_ensemble_and_majority_take_values_that_only_their_field_writes() -> None:
    members = [Predict(Costs, lm=FakeLM([{"twice": price}] * 2)) for price in ("4 EUR", "5 EUR", "4 EUR")]
    ensemble = Ensemble(reduce_fn=majority).compile(members)
    assert ensemble(price=Money(2), day=DAY).twice == Money(4)
    some = Ensemble(size=2).compile(members)
    assert len(some(price=Money(2), day=DAY)) == 2


def test_nearest_demos_compare_the_json_of_declared_types() -> None:
    rows = [Example(price=Money(n), day=DAY, twice=Money(2 * n)).with_inputs("price", "day") for n in (1, 20, 300)]
    lm = FakeLM(lambda request: {"twice": "600 EUR"})
    program = KNNFewShot(1, trainset=rows).compile(Predict(Costs, lm=lm))
    program(price=Money(300), day=DAY)
    assert "300 EUR" in str(lm.requests[-1].messages)
    assert "20 EUR" not in str(lm.requests[-1].messages)


def test_samplers_show_the_json_of_declared_types() -> None:
    lm = FakeLM(lambda request: {"rationale": "r", "twice": "4 EUR"})
    compare = MultiChainComparison(Costs, M=2, lm=lm)
    answers = [{"reasoning": "a", "twice": Money(4)}, {"reasoning": "b", "twice": Money(5)}]
    assert compare(answers, price=Money(2), day=DAY).twice == Money(4)
    assert "twice: 5 EUR" in str(lm.requests[-1].messages)
    seen: list[str] = []

    def answer(request: Any) -> Any:
        text = str(request.messages)
        seen.append(text)
        return {"advice": {"self": "Double it."}} if "reward" in text else {"twice": "4 EUR"}

    refine = Refine(Predict(Costs, lm=FakeLM(answer)), N=2, reward_fn=lambda inputs, made: 0.0, threshold=1.0)
    assert refine(price=Money(2), day=DAY).twice == Money(4)
    assert any("reward" in text and "2 EUR" in text for text in seen)
    best = BestOfN(Predict(Costs, lm=FakeLM(answer)), 2, lambda inputs, made: 1.0, 1.0)
    assert best(price=Money(2), day=DAY).twice == Money(4)


def test_input_without_a_json_form_is_refused_before_anything_is_sent(tmp_path: Path) -> None:
    rows = [Example(thing=Unwritten()).with_inputs("thing")]
    with pytest.raises(InputError, match=r"field 'thing'"):
        map_rows(Job(program="tests.test_typed_runs:DOUBLER"), rows, tmp_path / "o", executor=InlineExecutor())
