"""Calibrate: planted thresholds, weights and cuts; null data; one call a row; certificates of cascades and predictors."""

from __future__ import annotations

import math
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from random import Random
from typing import Annotated, Any, Literal

import pytest

from sigwire.core.evidence import DecisionRule
from sigwire.core.example import Example
from sigwire.core.response import Choice
from sigwire.errors import ConfigurationError, OutputTruncated, Unsure
from sigwire.evaluate.scores import MetricError
from sigwire.lm.policy.money.budget import Budget
from sigwire.modules.cascade import Cascade
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.optimizers.certificate import NEVER, fewest_rows
from sigwire.optimizers.operators.deciding import Observed, ObservedOutput, alternatives, numbers_of
from sigwire.optimizers.reports.report import OptimizationReport
from sigwire.optimizers.rules.calibrate import Calibrate
from sigwire.signatures.criteria import Criteria
from sigwire.signatures.declarations import InputField, OutputField
from sigwire.signatures.signature import Signature
from tests.modules.deciding import choice, deciding_model

QUEUES = ("a", "b", "c", "d")


class Urgent(Signature):
    """Sort a ticket."""

    ticket: str = InputField()
    urgent: bool = OutputField()


class Queued(Signature):
    """Sort a ticket."""

    ticket: str = InputField()
    queue: Literal["a", "b", "c", "d"] = OutputField()


class Harmful(Signature):
    """Grade a ticket."""

    ticket: str = InputField()
    harm: Annotated[int, Criteria("0", "1", "2", "3", "4", "5")] = OutputField()


def rows(count: int, label: Callable[[int], Any], name: str = "urgent") -> list[Example]:
    return [Example(ticket=f"row {n}", **{name: label(n)}).with_inputs("ticket") for n in range(count)]


def p_of(row: int, seed: object = 0) -> float:
    return Random(f"{seed}/{row}").random()


def urgent_answer(row: int, seed: object = 0) -> Choice:
    p = p_of(row, seed)
    return choice(urgent={True: p, False: 1 - p})


def is_urgent(row: int, seed: object = 0) -> bool:
    return Random(f"{seed}/label/{row}").random() < p_of(row, seed)


def costs(example: Example, prediction: Any) -> float:
    """A false alarm costs ten times a miss: the best threshold is 10/11 for honest probabilities."""
    if example.urgent == prediction.urgent:
        return 1.0
    return 0.0 if prediction.urgent else 0.9


def exact(example: Example, prediction: Any) -> float:
    return float(all(prediction[name] == example[name] for name in example.labels()))


def planted(example: Example, prediction: Any) -> float:
    return float(prediction.urgent == (p_of(int(example.ticket[4:])) >= 0.83))


def compiled(student: Any, metric: Any, examples: list[Example], **options: Any) -> Any:
    compile_options = {name: options.pop(name) for name in ("valset", "testset") if name in options}
    optimizer = Calibrate(metric, progress=False, **{"num_threads": 2, **options})
    return optimizer.compile(student, trainset=examples, **compile_options)


# --- to a metric


def test_threshold_is_found_with_one_call_a_row() -> None:
    lm = deciding_model(urgent_answer)
    student = Predict(Urgent, lm=lm)
    best = compiled(student, planted, rows(120, is_urgent), max_candidates=200)
    assert best.decisions["urgent"].threshold == pytest.approx(0.83, abs=0.03)
    assert len(lm.requests) == 120
    assert student.decisions == {}
    report = OptimizationReport.of(best)
    assert report.winner.summary.startswith("self.decisions.urgent threshold=0.8")
    assert OptimizationReport.from_json(report.to_json()).winner == report.winner


@pytest.mark.long
def test_threshold_of_unequal_costs_is_within_two_percent_of_the_best() -> None:
    train, fresh = rows(400, is_urgent), [(p_of(n), is_urgent(n)) for n in range(1_000, 6_000)]
    best = compiled(Predict(Urgent, lm=deciding_model(urgent_answer)), costs, train, max_candidates=200)

    def mean(threshold: float) -> float:
        scores = [1.0 if (p >= threshold) == urgent else 0.0 if p >= threshold else 0.9 for p, urgent in fresh]
        return math.fsum(scores) / len(scores)

    assert mean(best.decisions["urgent"].threshold) >= 0.98 * max(mean(at / 50) for at in range(51))


def queue_answer(row: int) -> Choice:
    source = Random(f"queue/{row}")
    masses = [source.random() for _ in QUEUES]
    return choice(queue=dict(zip(QUEUES, (mass / sum(masses) for mass in masses), strict=True)))


def right_queue(row: int) -> str:
    source = Random(f"queue/{row}")
    masses = [source.random() for _ in QUEUES]
    weighted = [mass * weight for mass, weight in zip(masses, (1.0, 3.0, 0.5, 1.5), strict=True)]
    return QUEUES[weighted.index(max(weighted))]


KINDS: dict[str, tuple[Any, ...]] = {"bool": (True, False), "choice": QUEUES, "score": (0, 1, 2, 3)}


@pytest.mark.parametrize("kind", KINDS)
def test_decisions_by_ascending_numbers_equal_those_of_each_rule_alone(
    kind: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, applied = Random(kind), list[DecisionRule]()
    output = ObservedOutput("self.decisions.x", "x", kind, KINDS[kind], False, DecisionRule())
    for row in range(30):
        masses = [source.choice((0.0, 1.0, 1.0, 2.0, 3.0)) + (value == row % 2) for value in range(len(KINDS[kind]))]
        answered = source.choice(KINDS[kind])
        output.rows[str(row)] = [Observed(tuple(mass / sum(masses) for mass in masses), answered)] * (1 + row % 2)
    rules = [
        [each.rule for each in alternatives(output, DecisionRule(least=least), number, 40)]
        for number in range(numbers_of(output))
        for least in (0.0, 0.4, 0.7)
    ]
    alone = {
        (row, at): [output.decided(row, rule) for rule in rules[at]] for row in output.rows for at in range(len(rules))
    }
    whole = ObservedOutput.decided

    def counted(self: ObservedOutput, row: str, rule: DecisionRule) -> tuple[Any, ...]:
        applied.append(rule)
        return whole(self, row, rule)

    monkeypatch.setattr(ObservedOutput, "decided", counted)
    assert {(row, at): output.decided_by(row, rules[at]) for row, at in alone} == alone
    assert len({decided for found in alone.values() for decided in found}) > 3
    assert len(applied) < sum(map(len, alone.values()))
    assert output.decided_by("0", []) == []


def test_row_is_scored_once_for_equal_decisions_of_all_outputs() -> None:
    class Both(Signature):
        """Sort a ticket."""

        ticket: str = InputField()
        urgent: bool = OutputField()
        spam: bool = OutputField()

    def answer(row: int) -> Choice:
        urgent, spam = p_of(row), p_of(row, "spam")
        return choice(urgent={True: urgent, False: 1 - urgent}, spam={True: spam, False: 1 - spam})

    scored: list[tuple[str, bool, bool]] = []

    def metric(example: Example, prediction: Any) -> float:
        scored.append((example.ticket, prediction.urgent, prediction.spam))
        wanted = p_of(int(example.ticket[4:]), "spam") >= 0.7
        return (planted(example, prediction) + float(prediction.spam == wanted)) / 2

    data = rows(60, is_urgent)
    best = compiled(Predict(Both, lm=deciding_model(answer)), metric, data[:40], valset=data[40:], num_threads=1)
    assert set(best.decisions) == {"urgent", "spam"}
    trained = [each for each in scored if int(each[0][4:]) < 40]
    assert len(trained) == len(set(trained))


# Few rows leave gaps around the planted numbers.
PLANTED = [(120, 0.92), pytest.param(1_000, 0.98, marks=pytest.mark.long)]


@pytest.mark.parametrize(("count", "share"), PLANTED)
def test_weights_are_found(count: int, share: float) -> None:
    lm = deciding_model(queue_answer)
    best = compiled(Predict(Queued, lm=lm), exact, rows(count, right_queue, "queue"))
    fresh = [best(ticket=f"row {n}").queue == right_queue(n) for n in range(count, 2 * count)]
    assert sum(fresh) / len(fresh) >= share
    assert len(lm.requests) == count + len(fresh)


def harm_answer(row: int) -> Choice:
    source = Random(f"harm/{row}")
    mean = source.uniform(0, 5)
    low = min(int(mean), 4)
    return choice(
        harm={level: (1 - (mean - low)) * (level == low) + (mean - low) * (level == low + 1) for level in range(6)}
    )


def right_harm(row: int) -> int:
    mean = Random(f"harm/{row}").uniform(0, 5)
    return sum(mean >= cut for cut in (0.3, 1.0, 2.8, 3.5, 4.8))


@pytest.mark.parametrize(("count", "share"), PLANTED)
def test_cuts_are_found(count: int, share: float) -> None:
    best = compiled(Predict(Harmful, lm=deciding_model(harm_answer)), exact, rows(count, right_harm, "harm"))
    fresh = [best(ticket=f"row {n}").harm == right_harm(n) for n in range(count, 2 * count)]
    assert sum(fresh) / len(fresh) >= share
    assert len(best.decisions["harm"].cuts) == 5


@pytest.mark.long
def test_student_is_kept_on_data_without_a_signal() -> None:
    kept = 0
    for seed in range(100):
        student = Predict(Urgent, lm=deciding_model(lambda row, seed=seed: urgent_answer(row, seed)))  # type: ignore[misc]
        data = rows(60, lambda row, seed=seed: Random(f"{seed}/coin/{row}").random() < 0.5)  # type: ignore[misc]
        kept += not compiled(student, exact, data, seed=seed).decisions
    assert kept >= 90


def test_student_that_nothing_beats_is_kept() -> None:
    student = Predict(Urgent, lm=deciding_model(urgent_answer))
    best = compiled(student, lambda example, prediction: 1.0, rows(20, is_urgent))
    assert best.decisions == {}
    assert best.optimization.winner == best.optimization.baseline


@pytest.mark.long
def test_search_is_equal_for_any_number_of_threads() -> None:
    found = [
        compiled(
            Predict(Queued, lm=deciding_model(queue_answer)), exact, rows(60, right_queue, "queue"), num_threads=threads
        )
        for threads in (1, 8)
    ]
    assert found[0].decisions == found[1].decisions != {}
    assert found[0].optimization.scores == found[1].optimization.scores


def test_resumed_search_pays_nothing_again(tmp_path: Path) -> None:
    lm = deciding_model(urgent_answer)
    options: dict[str, Any] = {"journal": tmp_path / "search.jsonl"}
    first = compiled(Predict(Urgent, lm=lm), planted, rows(60, is_urgent), **options)
    again = compiled(Predict(Urgent, lm=lm), planted, rows(60, is_urgent), **options)
    assert first.decisions == again.decisions
    assert len(lm.requests) == 60


def test_spent_budget_returns_what_was_fitted_until_then() -> None:
    lm = deciding_model(urgent_answer)
    best = compiled(Predict(Urgent, lm=lm), planted, rows(60, is_urgent), budget=Budget(calls=20))
    assert best.optimization.reason == "budget"
    assert len(lm.requests) <= 20 + 2


def test_only_named_fields_are_fitted() -> None:
    class Both(Signature):
        """Sort a ticket."""

        ticket: str = InputField()
        urgent: bool = OutputField()
        spam: bool = OutputField()

    def answer(row: int) -> Choice:
        return choice(urgent={True: p_of(row), False: 1 - p_of(row)}, spam={True: p_of(row), False: 1 - p_of(row)})

    def metric(example: Example, prediction: Any) -> float:
        wanted = p_of(int(example.ticket[4:])) >= 0.83
        return float(prediction.urgent == wanted) / 2 + float(prediction.spam == wanted) / 2

    lm = deciding_model(answer)
    one = compiled(Predict(Both, lm=lm), metric, rows(80, is_urgent), fields=["spam"])
    both = compiled(Predict(Both, lm=lm), metric, rows(80, is_urgent))
    assert (list(one.decisions), list(both.decisions)) == (["spam"], ["urgent", "spam"])
    with pytest.raises(ConfigurationError, match=r"evidence of 'spma'.*Known fields: urgent, spam.*Did you mean spam"):
        compiled(Predict(Both, lm=lm), metric, rows(80, is_urgent), fields=["spma"])


def test_program_of_several_calls_is_fitted_without_further_calls() -> None:
    class Confirm(Module):
        def __init__(self, lm: Any) -> None:
            super().__init__()
            self.first, self.second = Predict(Urgent, lm=lm), Predict(Urgent, lm=lm)

        def forward(self, ticket: str) -> Any:
            first = self.first(ticket=ticket)
            return self.second(ticket=ticket) if first.urgent else first

    lm = deciding_model(urgent_answer)
    best = compiled(Confirm(lm), planted, rows(60, is_urgent), max_candidates=8, strategy="greedy")
    assert best.first.decisions["urgent"].threshold > 0.6
    assert len(lm.requests) <= 120


def test_abstained_outputs_are_failures_unless_the_metric_takes_unsure_ones() -> None:
    student = Predict(Urgent, lm=deciding_model(urgent_answer))
    student.decisions["urgent"] = DecisionRule(least=0.7)
    seen: list[Any] = []

    def lenient(example: Example, prediction: Any) -> float:
        seen.append(prediction)
        return 0.5 if isinstance(prediction, Unsure) else planted(example, prediction)

    compiled(student, planted, rows(40, is_urgent))
    assert not seen
    lenient.accepts_unsure = True  # type: ignore[attr-defined]
    best = compiled(student, lenient, rows(40, is_urgent))
    assert any(isinstance(each, Unsure) for each in seen)
    assert best.decisions["urgent"].least == 0.7


def test_program_without_evidence_is_refused_after_one_row() -> None:
    lm = deciding_model(lambda row: choice(urgent=True))
    with pytest.raises(ConfigurationError, match=r"No run has evidence of any output.*evidence=\"auto\""):
        compiled(Predict(Urgent, lm=lm), exact, rows(20, is_urgent), valset=rows(24, is_urgent)[20:])
    assert len(lm.requests) <= 3  # two rows of the validation set, and the first to train on


def test_plan_counts_a_call_for_each_row() -> None:
    plan = Calibrate(exact).plan(Predict(Urgent, lm=deciding_model(urgent_answer)), rows(40, is_urgent))
    assert plan.calls.min <= 40 <= plan.calls.max


# --- to a bound


def sure_answer(row: int, seed: object, low: float = 0.5) -> Choice:
    """An honest model: its most probable value is right with its probability. It is unsure about a third of the rows."""
    source = Random(f"{seed}/{row}")
    sure = source.uniform(0.97, 1.0) if source.random() < 0.67 else source.uniform(low, max(low, 0.8))
    is_right = Random(f"{seed}/{row}/right").random() < sure
    truth = row % 2 == 0
    return choice(urgent={truth is is_right: sure, truth is not is_right: 1 - sure})


def tickets(count: int) -> list[Example]:
    return rows(count, lambda row: row % 2 == 0)


def cascade(**options: Any) -> Cascade:
    """A cheap stage that is often unsure, and a dear one that is right in 97 of 100 rows."""
    stages = [
        Predict(Urgent, lm=deciding_model(lambda row: sure_answer(row, "cheap"), "fake/cheap")),
        Predict(Urgent, lm=deciding_model(lambda row: sure_answer(row, "dear", 0.95), "fake/dear")),
    ]
    return Cascade(stages, **options)


def test_cascade_gets_a_certificate_with_one_call_of_each_stage_a_row() -> None:
    student = cascade()
    best = compiled(student, exact, tickets(200), risk=0.1)
    certificate = best.optimization.certificate
    assert [len(each.lm.requests) for each in student.predictors()] == [200, 200]
    assert best.least == certificate.least
    assert (certificate.risk, certificate.confidence, certificate.rows) == (0.1, 0.9, 100)
    assert certificate.p_value <= 0.1
    assert certificate.answered == sum(certificate.by_stage)
    assert certificate.coverage > 0.7
    assert "Certified: loss of answered rows at most 0.1 with confidence 0.9" in best.optimization.headline
    best.optimization.show(file=(shown := StringIO()))
    assert "stage 0: " in shown.getvalue()
    again = OptimizationReport.from_json(best.optimization.to_json())
    assert again.certificate == certificate


@pytest.mark.long
def test_certificate_holds_on_fresh_rows() -> None:
    best = compiled(cascade(), exact, tickets(200), risk=0.1)
    wrong = answered = 0
    for row in range(1_000, 1_200):
        try:
            result = best(ticket=f"row {row}")
        except Unsure:
            continue
        answered += 1
        wrong += result.urgent != (row % 2 == 0)
    assert wrong / answered <= 0.1


def test_certificate_is_equal_for_any_number_of_threads() -> None:
    found = [
        compiled(cascade(), exact, tickets(120), risk=0.12, num_threads=n).optimization.certificate for n in (1, 8)
    ]
    assert found[0] == found[1] is not None


class Sorted(Signature):
    """Sort a ticket."""

    ticket: str = InputField()
    urgent: bool = OutputField()
    queue: Literal["a", "b"] = OutputField()


def forgetful(name: str, forgotten: int) -> Predict[..., Any]:
    """Return a predictor without evidence of ``queue`` in each so many rows, in which ``urgent`` is wrong and sure."""

    def answer(row: int) -> Choice:
        if row % forgotten == 0:
            return choice(urgent={row % 2 == 1: 0.99, row % 2 == 0: 0.01}, queue="a")
        return choice(urgent={row % 2 == 0: 0.95, row % 2 == 1: 0.05}, queue={"a": 0.9 + row % 10 / 100, "b": 0.1})

    return Predict(Sorted, lm=deciding_model(answer, f"fake/{name}"))


@pytest.mark.parametrize("form", ["all outputs", "fields of the cascade", "predictor"])
def test_certificate_counts_the_rows_that_the_program_answers_with_its_numbers(form: str) -> None:
    examples = tickets(140)
    fields = ["queue"] if form == "fields of the cascade" else None
    one = forgetful("cheap", 3)
    student: Any = one if form == "predictor" else Cascade([one, forgetful("dear", 20)], fields=fields)
    best = compiled(student, exact, examples[:70], valset=examples[70:], risk=0.12)
    certificate = best.optimization.certificate
    answered: list[float] = []
    for example in examples[70:]:
        try:
            result = best(ticket=example.ticket)
        except Unsure:
            continue
        answered.append(exact(example, result))
    assert certificate.answered == len(answered) >= 40
    assert certificate.loss == pytest.approx(1 - sum(answered) / len(answered))


def test_bound_of_a_cascade_counts_the_fields_of_the_cascade() -> None:
    with pytest.raises(ConfigurationError, match=r"Give fields= to the Cascade"):
        compiled(cascade(), exact, tickets(60), risk=0.1, fields=["urgent"])


def test_predictor_gets_one_least_confidence_for_its_fields() -> None:
    lm = deciding_model(lambda row: sure_answer(row, "cheap"))
    best = compiled(Predict(Urgent, lm=lm), exact, tickets(200), risk=0.1)
    certificate = best.optimization.certificate
    assert best.decisions["urgent"].least == certificate.least[0]
    assert len(lm.requests) == 200


def test_cascade_without_a_certificate_is_the_student_with_the_reason() -> None:
    useless = Predict(Urgent, lm=deciding_model(lambda row: choice(urgent={True: 0.9, False: 0.1})))
    best = compiled(Cascade([useless], least=0.5), exact, tickets(120), risk=0.1)
    assert best.optimization.certificate is None
    assert best.least == (0.5,)
    assert "There is no certificate of risk 0.1: no policy keeps the risk" in best.optimization.warnings[0]


def test_too_few_rows_are_refused_before_any_call() -> None:
    student = cascade()
    with pytest.raises(
        ConfigurationError, match=rf"needs {fewest_rows(0.05, 0.9)} rows that test it, and there are 20"
    ):
        compiled(student, exact, tickets(40), risk=0.05)
    assert not any(each.lm.requests for each in student.predictors())


@pytest.mark.long
def test_validation_rows_are_those_that_test_the_path() -> None:
    best = compiled(cascade(), exact, tickets(200), risk=0.1, valset=rows(300, lambda row: row % 2 == 0)[200:])
    assert best.optimization.certificate.rows == 100


def test_rows_that_chose_a_number_may_not_test_the_bound() -> None:
    student, examples = cascade(), tickets(100)
    with pytest.raises(ConfigurationError, match=r"40 of 60 validation rows are training rows too.*leave valset= out"):
        compiled(student, exact, examples[:80], valset=examples[40:], risk=0.1)
    assert not any(each.lm.requests for each in student.predictors())


def test_stage_that_is_seldom_unsure_keeps_a_least_confidence_of_its_answers() -> None:
    def answer(row: int) -> Choice:
        sure = 0.8 if row % 50 == 0 else 0.99
        return choice(urgent={row % 2 == 0: sure, row % 2 == 1: 1 - sure})

    picky = Predict(Urgent, lm=deciding_model(answer))
    picky.decisions["urgent"] = DecisionRule(least=0.9)
    dear = Predict(Urgent, lm=deciding_model(lambda row: choice(urgent={row % 2 == 0: 0.97, row % 2 == 1: 0.03})))
    best = compiled(Cascade([picky, dear]), exact, tickets(100), risk=0.1, valset=tickets(160)[100:])
    assert best.least[0] == pytest.approx(0.99)
    assert best.optimization.certificate.by_stage == (58, 0)


def test_metric_outside_zero_to_one_is_refused() -> None:
    with pytest.raises(MetricError, match="needs a metric from 0 to 1, and it returned 3"):
        compiled(cascade(), lambda example, prediction: 3.0, tickets(60), risk=0.1)


def test_program_that_is_no_cascade_is_refused() -> None:
    class Desk(Module):
        def __init__(self) -> None:
            super().__init__()
            self.sort = cascade()

    with pytest.raises(ConfigurationError, match="takes a Cascade or a Predict, not Desk"):
        compiled(Desk(), exact, tickets(60), risk=0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"risk": 0}, "risk"),
        ({"risk": 1.5}, "risk"),
        ({"fields": "urgent"}, "fields"),
        ({"max_candidates": 0}, "max_cand"),
    ],
)
def test_wrong_options_are_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Calibrate(exact, **options)


@pytest.mark.long
def test_failed_stage_counts_as_a_wrong_answer_and_unsure_as_none() -> None:
    def fails(row: int) -> Any:
        return OutputTruncated("cut") if row % 3 == 0 else sure_answer(row, "cheap", 0.99)

    shaky = Predict(Urgent, lm=deciding_model(fails))
    picky = Predict(Urgent, lm=deciding_model(lambda row: sure_answer(row, "picky")))
    picky.decisions["urgent"] = DecisionRule(least=0.95)
    dear = Predict(Urgent, lm=deciding_model(lambda row: sure_answer(row, "dear", 0.98)))
    best = compiled(Cascade([shaky, picky, dear]), exact, tickets(240), risk=0.1)
    certificate = best.optimization.certificate
    assert certificate.least[0] == NEVER  # a third of its answers fails
    assert certificate.by_stage[0] == 0 < certificate.by_stage[2]


@pytest.mark.long
def test_stage_without_evidence_answers_always_or_never() -> None:
    plain = Predict(Urgent, lm=deciding_model(lambda row: choice(urgent=row % 2 == 0)))
    best = compiled(Cascade([cascade().stages[0], plain]), exact, tickets(200), risk=0.1)
    assert best.least[1] is None
    assert best.optimization.certificate.coverage == 1.0


def test_no_person_is_asked_during_a_search() -> None:
    asked: list[Any] = []
    student = cascade(person=asked.append)
    student.predictors()[1].decisions["urgent"] = DecisionRule(least=0.97)  # unsure about some rows
    best = compiled(student, exact, tickets(200), risk=0.1)
    assert not asked
    assert best.person is not None


# --- folds


def leaning(row: int) -> Choice:
    """Answer 0.9 for even rows and 0.7 for odd ones, which are not urgent; row 98 is urgent all the same, at 0.3."""
    p = 0.3 if row == 98 else 0.7 if row % 2 else 0.9
    return choice(urgent={True: p, False: 1 - p})


def is_even(row: int) -> bool:
    return row % 2 == 0


def test_folds_fit_all_rows_without_a_validation_set() -> None:
    lm = deciding_model(leaning)
    best = compiled(Predict(Urgent, lm=lm), exact, rows(12, is_even), folds=3)
    assert best.decisions["urgent"].threshold == pytest.approx(0.8)
    assert len(lm.requests) == 12


def test_gain_of_one_row_does_not_hold_on_folds() -> None:
    examples = [Example(ticket=f"row {n}", urgent=True).with_inputs("ticket") for n in (*range(0, 40, 2), 98)]
    assert compiled(Predict(Urgent, lm=deciding_model(leaning)), exact, examples, folds=5).decisions == {}
    train, val = examples[::2], examples[1::2]
    fitted = compiled(Predict(Urgent, lm=deciding_model(leaning)), exact, train, valset=val, if_worse="return")
    assert fitted.decisions["urgent"].threshold < 0.3


def test_equal_rows_count_as_often_as_they_are_given_in_folds() -> None:
    examples = rows(2, is_even)  # each alone would be a fold, and none would hold
    assert compiled(Predict(Urgent, lm=deciding_model(leaning)), exact, examples, folds=5).decisions == {}
    lm = deciding_model(leaning)
    best = compiled(Predict(Urgent, lm=lm), exact, examples * 5, folds=5)
    assert best.decisions["urgent"].threshold == pytest.approx(0.8)
    assert len(lm.requests) == 2


def test_threshold_may_be_zero() -> None:
    lm = deciding_model(lambda row: choice(urgent={True: 0.0, False: 1.0}))
    best = compiled(Predict(Urgent, lm=lm), exact, rows(8, lambda row: True), folds=4)
    assert best.decisions["urgent"].threshold == 0.0


@pytest.mark.parametrize("options", [{"folds": 1}, {"folds": 3, "risk": 0.1}])
def test_folds_are_two_or_more_and_no_bound(options: Any) -> None:
    with pytest.raises(ConfigurationError, match=r"folds=\d is 2 or more, without risk= \(making"):
        Calibrate(exact, **options)
