"""Calibration of outputs: figures, bins, labels and sources, from the records of a run."""

from __future__ import annotations

import json
import math
from enum import Enum
from pathlib import Path
from random import Random
from typing import Any

import pytest

from sigwire.core.evidence import Evidence, Question
from sigwire.core.example import Example, Prediction
from sigwire.errors import InputError, Unsure
from sigwire.evaluate.calibration import Calibration, LabeledEvidence, calibration_of
from sigwire.evaluate.cell import Cell
from sigwire.evaluate.evaluation import Evaluate, load_records
from sigwire.evaluate.result import EvaluationResult
from tests.evaluate.runs import make_result, scored_cell
from tests.evaluate.schema import VALIDATOR

URGENT = Question("urgent", "bool", (True, False))
QUEUE = Question("queue", "choice", ("billing", "shipping", "other"))
HARM = Question("harm", "score", (0, 1, 2))


class Queue(Enum):
    BILLING = "billing"
    SHIPPING = "shipping"


def of(question: Question, *probabilities: float, source: Any = "logprob") -> Evidence:
    return Evidence.of(question, probabilities, source)


def result_of(rows: list[tuple[Any, Evidence]], field: str = "urgent", path: str | None = None) -> EvaluationResult:
    """Return a result whose examples have a label, and whose records have evidence."""
    cells = [scored_cell(1.0, evidence={path or field: evidence.to_json()}) for _, evidence in rows]
    return make_result(cells, fields=[{"question": f"q{n}", field: label} for n, (label, _) in enumerate(rows)])


def table(seed: int) -> list[LabeledEvidence]:
    source = Random(seed)
    question = (URGENT, QUEUE, HARM)[seed % 3]
    rows: list[LabeledEvidence] = []
    for _ in range(source.randint(1, 60)):
        masses = [source.random() ** 2 for _ in question.values]
        evidence = of(question, *(mass / sum(masses) for mass in masses))
        rows.append(LabeledEvidence(evidence, source.choice(question.values)))
    return rows


def unsure_program(question: str) -> Prediction:
    if question == "q1":
        evidence = {"urgent": of(URGENT, 0.55, 0.45)}
        raise Unsure("unsure about urgent", fields=("urgent",), evidence=evidence, partial=Prediction(urgent=True))
    return Prediction(urgent=True)


def devset() -> list[Example]:
    return [Example(question=f"q{n}", urgent=n < 3).with_inputs("question") for n in range(4)]


def exact(example: Example, prediction: Any) -> float:
    if isinstance(prediction, Unsure):
        return 0.25
    return float(example.urgent == prediction.urgent)


@pytest.mark.parametrize("seed", range(20))
def test_calibration_equals_a_direct_computation(seed: int) -> None:
    rows = table(seed)
    found = calibration_of(rows, "x", bins=5)
    brier = log_loss = right = 0.0
    bins: dict[int, list[tuple[float, float]]] = {}
    for evidence, label in rows:
        for value, p in zip(evidence.values, evidence.probabilities, strict=True):
            brier += (p - (value == label)) ** 2 / len(rows)
        log_loss -= math.log(max(evidence.p(label), 1e-6)) / len(rows)
        is_right = evidence.value == label
        right += is_right / len(rows)
        p, happened = (evidence.p(True), label is True) if evidence.kind == "bool" else (evidence.confidence, is_right)
        bins.setdefault(min(int(p * 5), 4), []).append((p, float(happened)))
    gaps = sum(len(each) * abs(sum(p for p, _ in each) - sum(h for _, h in each)) / len(each) for each in bins.values())
    assert (found.n, found.source) == (len(rows), "logprob")
    assert (found.accuracy, found.brier, found.log_loss, found.ece) == pytest.approx(
        (right, brier, log_loss, gaps / len(rows))
    )
    assert [(each.n, each.low) for each in found.bins] == [(len(bins[at]), at / 5) for at in sorted(bins)]
    assert sum(each.n * abs(each.mean_p - each.share) for each in found.bins) / found.n == pytest.approx(found.ece)
    assert 0 <= found.interval.low <= found.interval.high <= 1


@pytest.mark.long
def test_overconfident_probabilities_have_a_larger_error_than_honest_ones() -> None:
    source, honest, sharp = Random(1), list[LabeledEvidence](), list[LabeledEvidence]()
    for _ in range(5_000):
        p = source.random()
        label, cubed = source.random() < p, p**3 / (p**3 + (1 - p) ** 3)
        honest.append(LabeledEvidence(of(URGENT, p, 1 - p), label))
        sharp.append(LabeledEvidence(of(URGENT, cubed, 1 - cubed), label))
    assert calibration_of(honest).ece <= 0.02 < 0.05 < calibration_of(sharp).ece


@pytest.mark.long
def test_interval_covers_the_error_of_most_samples() -> None:
    source, covered = Random(3), 0
    for _ in range(40):
        rows = [LabeledEvidence(of(URGENT, 0.9, 0.1), source.random() < 0.7) for _ in range(100)]
        found = calibration_of(rows).interval
        covered += found.low <= 0.2 <= found.high
    assert covered >= 34


@pytest.mark.parametrize(("rows", "samples"), [(60, 8), pytest.param(200, 24, marks=pytest.mark.long)])
def test_interval_of_honest_probabilities_begins_at_zero(rows: int, samples: int) -> None:
    from_zero = 0
    for seed in range(samples):
        source = Random(seed)
        shares = [source.random() for _ in range(rows)]
        drawn = [LabeledEvidence(of(URGENT, p, 1 - p), source.random() < p) for p in shares]
        found = calibration_of(drawn)
        from_zero += found.interval.low == 0.0 < found.ece
        assert found.ece in found.interval
    assert from_zero >= 0.95 * samples - 3 * math.sqrt(0.95 * 0.05 * samples)
    assert calibration_of([LabeledEvidence(of(URGENT, 0.9, 0.1), n % 2 == 0) for n in range(rows)]).interval.low > 0.1


@pytest.mark.parametrize(
    ("label", "evidence"),
    [(Queue.BILLING, of(QUEUE, 0.8, 0.1, 0.1)), ("billing", of(QUEUE, 0.8, 0.1, 0.1)), (1.4, of(HARM, 0.1, 0.8, 0.1))],
)
def test_label_is_a_member_a_text_or_the_nearest_level(label: object, evidence: Evidence) -> None:
    assert calibration_of([LabeledEvidence(evidence, label)]).accuracy == 1.0


def test_label_that_is_no_value_is_refused() -> None:
    with pytest.raises(InputError, match=r"'refund' is no value of 'queue'.*'billing', 'shipping', 'other'"):
        calibration_of([LabeledEvidence(of(QUEUE, 0.8, 0.1, 0.1), "refund")], "queue")


def test_result_reads_evidence_from_records_and_labels_from_examples() -> None:
    result = result_of([(True, of(URGENT, 0.9, 0.1)), (False, of(URGENT, 0.9, 0.1)), (None, of(URGENT, 0.1, 0.9))][:2])
    assert str(result.calibration("urgent")) == "calibration urgent: ECE 0.40, Brier 0.82 (logprob, 2 rows)"
    assert result.calibration("urgent", bins=1).bins[0].n == 2


def test_label_is_a_field_of_another_name_or_a_function() -> None:
    result = result_of([(True, of(URGENT, 0.9, 0.1))], "gold", "urgent")
    by_name, by_function = (
        result.calibration("urgent", label="gold"),
        result.calibration("urgent", label=lambda e: e.gold),
    )
    assert by_name == by_function
    with pytest.raises(InputError, match=r"No example has a label 'urgent'.*label="):
        result.calibration("urgent")


def test_label_of_a_path_is_read_by_attributes_and_items() -> None:
    evidence = of(URGENT, 0.9, 0.1)
    nested = result_of([({"urgent": True}, evidence)], "ticket", "ticket.urgent")
    assert nested.calibration("ticket.urgent").accuracy == 1.0
    listed = result_of([(["billing", "spam"], evidence), ([], evidence)], "tags", "tags[billing]")
    assert listed.calibration("tags[billing]").accuracy == 0.5


def test_rows_of_several_sources_are_refused_unless_one_is_named() -> None:
    result = result_of([(True, of(URGENT, 0.9, 0.1)), (True, of(URGENT, 0.6, 0.4, source="stated"))])
    with pytest.raises(InputError, match=r"several sources: logprob, stated.*source='logprob'"):
        result.calibration("urgent")
    assert result.calibration("urgent", source="stated").bins[0].mean_p == 0.6
    with pytest.raises(InputError, match="from the source 'sampled'"):
        result.calibration("urgent", source="sampled")


def test_missing_evidence_is_refused_with_the_known_paths() -> None:
    result = result_of([(True, of(URGENT, 0.9, 0.1))])
    with pytest.raises(InputError, match=r"No record has evidence of 'urgency'.*Did you mean urgent.*paths: urgent"):
        result.calibration("urgency")
    with pytest.raises(InputError, match="Evaluate Predict"):
        make_result([1.0]).calibration("urgent")


def test_evidence_of_a_record_is_in_its_file_and_may_be_absent(tmp_path: Path) -> None:
    def always_unsure(question: str) -> Prediction:
        evidence = {"urgent": of(URGENT, 0.55, 0.45)}
        raise Unsure("unsure about urgent", fields=("urgent",), evidence=evidence, partial=Prediction(urgent=True))

    result = Evaluate(devset=devset(), metric=exact, progress=False, log=(path := tmp_path / "run.jsonl"))(
        always_unsure
    )
    for line in path.read_text(encoding="utf-8").splitlines():
        VALIDATOR.validate(json.loads(line))
    loaded = load_records(path)
    assert loaded.calibration("urgent") == result.calibration("urgent")
    assert loaded.calibration("urgent").n == 4
    assert Cell.from_json({"score": 1.0}).evidence == {}
    assert "evidence" not in Cell(1.0).to_json()


def test_page_and_card_have_each_calibrated_output(tmp_path: Path) -> None:
    result = result_of([(True, of(URGENT, 0.9, 0.1)), (False, of(URGENT, 0.2, 0.8))])
    result.to_html(path := tmp_path / "run.html")
    text = path.read_text(encoding="utf-8")
    assert "calibration urgent: ECE 0.15, Brier 0.05 (logprob, 2 rows)" in text
    assert "1 value: logprob 0.90, observed 1.00" in text
    assert "Observed score over logprob probability" in text
    assert "ECE 0.15, Brier 0.05 (logprob, 2 rows)" in result.to_markdown()
    assert "calibration" not in make_result([1.0]).to_markdown()


def test_calibration_is_json_and_back() -> None:
    found = calibration_of(table(1), "queue")
    assert Calibration.from_json(json.loads(json.dumps(found.to_json()))) == found


def test_coverage_is_the_share_of_rows_that_did_not_end_unsure() -> None:
    result = Evaluate(devset=devset(), metric=exact, progress=False)(unsure_program)
    assert (result.coverage, result.score, result.answered_score) == (0.75, 50.0, 66.67)
    assert result.failures == {"Unsure": 1}
    assert result.records[1].cell.evidence["urgent"]["probabilities"] == [0.55, 0.45]
    assert "75% answered, 66.67 of 100 on them" in result.to_markdown()
    assert make_result([1.0, 0.0]).coverage == 1.0


def test_metric_that_accepts_unsure_scores_the_error() -> None:
    def lenient(example: Example, prediction: Any) -> float:
        return exact(example, prediction)

    lenient.accepts_unsure = True  # type: ignore[attr-defined]
    result = Evaluate(devset=devset(), metric=lenient, progress=False)(unsure_program)
    assert (result.score, result.coverage) == (56.25, 0.75)
