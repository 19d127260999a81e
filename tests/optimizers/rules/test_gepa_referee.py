"""The ``gepa`` package as a referee: on the same scores and proposals, greedy GEPA accepts and rejects the same children."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from sigwire.core.example import Example
from sigwire.lm.fake import FakeLM
from sigwire.modules.predict import Predict
from sigwire.optimizers.engine.search import Rows
from sigwire.optimizers.events import Dropped, Kept
from sigwire.optimizers.judge import ScoreTable
from sigwire.optimizers.reflective.evolution import Evolution
from sigwire.optimizers.reflective.pareto import leads, undominated
from sigwire.optimizers.rules.gepa import GEPA
from tests.optimizers.stub import share

START = "Give a score."
TRAIN = [Example(question=f"train {n}").with_inputs("question") for n in range(30)]
VAL = [Example(question=f"val {n}").with_inputs("question") for n in range(12)]


def score(text: str, question: str, seed: int) -> float:
    """Return a recorded score: texts differ in quality, and each score is a quarter."""
    wanted = 0.2 + 0.6 * share(f"{seed}/{text}")
    return round(4 * min(1.0, wanted + 0.6 * (share(f"{seed}/{text}/{question}") - 0.5))) / 4


class Proposer:
    """Proposes a text that depends on the parent and the number of its children."""

    def __init__(self) -> None:
        self.children = Counter[str]()
        self.proposed: list[str] = []

    def __call__(self, candidate: Any, reflective_dataset: Any, components_to_update: Any) -> dict[str, str]:
        (text,) = candidate.values()
        self.children[text] += 1
        self.proposed.append(f"{text} {self.children[text]}")
        return dict.fromkeys(components_to_update, self.proposed[-1])


def own_decisions(seed: int) -> tuple[list[tuple[str, bool]], list[list[int]]]:
    """Return the proposals of sigwire with their fates, and the minibatches."""

    def respond(request: Any) -> Any:
        text = next(line for line in request.messages[0].text.splitlines()[::-1] if line.startswith(START))
        question = request.messages[-1].text.split("\n")[1]
        return {"value": score(text, question, seed)}

    decisions: list[tuple[str, bool]] = []

    def listen(event: Any) -> None:
        if isinstance(event, (Kept, Dropped)):
            decisions.append((event.candidate.texts["self.instructions"], isinstance(event, Kept)))

    student = Predict("question -> value: float", lm=FakeLM(respond))
    student.signature = student.signature.with_instructions(START)
    optimizer = GEPA(
        lambda example, prediction: prediction.value,
        max_metric_calls=400,
        instruction_proposer=Proposer(),
        candidate_selection_strategy="current_best",
        strategy="greedy",
        seed=seed,
        on_event=listen,
        num_threads=1,
    )
    optimizer.compile(student, trainset=TRAIN, valset=VAL)
    rows = Rows.of(TRAIN, VAL, [])
    task = optimizer._task(student, student, rows, ScoreTable())
    search = Evolution(task, optimizer.evolution_plan(len(TRAIN), len(VAL), 1))
    return decisions, [[rows.train.index(row) for row in search._batch(turn)] for turn in range(200)]


def referee_decisions(seed: int, batches: list[list[int]]) -> list[tuple[str, bool]]:
    """Return the proposals of the ``gepa`` package with their fates."""
    gepa = pytest.importorskip("gepa")
    from gepa.core.adapter import EvaluationBatch

    proposer = Proposer()

    class Adapter:
        propose_new_texts = None

        def evaluate(self, batch: Any, candidate: Any, capture_traces: bool = False) -> Any:
            scores = [score(candidate["self"], question, seed) for question in batch]
            return EvaluationBatch(outputs=scores, scores=scores, trajectories=list(batch) if capture_traces else None)

        def make_reflective_dataset(self, candidate: Any, eval_batch: Any, components_to_update: Any) -> Any:
            return {name: [{"Feedback": "low"}] for name in components_to_update}

    class Sampler:
        turn = -1

        def next_minibatch_ids(self, loader: Any, state: Any) -> list[int]:
            self.turn += 1
            return batches[self.turn]

    result = gepa.optimize(
        seed_candidate={"self": START},
        trainset=[str(each.question) for each in TRAIN],
        valset=[str(each.question) for each in VAL],
        adapter=Adapter(),
        batch_sampler=Sampler(),
        candidate_selection_strategy="current_best",
        custom_candidate_proposer=proposer,
        max_metric_calls=400,
        logger=type("Silent", (), {"log": lambda self, message: None})(),
        track_best_outputs=False,
    )
    accepted = {candidate["self"] for candidate in result.candidates}
    return [(text, text in accepted) for text in proposer.proposed]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.long
def test_greedy_search_accepts_what_the_referee_accepts(seed: int) -> None:
    own, batches = own_decisions(seed)
    referee = referee_decisions(seed, batches)
    common = min(len(own), len(referee))
    assert common >= 15
    assert own[:common] == referee[:common]
    assert 0 < sum(kept for _, kept in own) < len(own)


@pytest.mark.parametrize("seed", range(20))
def test_front_is_that_of_the_referee(seed: int) -> None:
    utils = pytest.importorskip("gepa.gepa_utils")
    scores = {
        str(number): {f"r{row}": round(share(f"{seed}/{number}/{row}") * 3) / 3 for row in range(10)}
        for number in range(6)
    }
    fronts = leads(scores, [f"r{row}" for row in range(10)])
    means = {digest: sum(found.values()) for digest, found in scores.items()}
    front = {row: {int(each) for each in found} for row, found in fronts.items()}
    referee = utils.find_dominator_programs(front, [means[str(number)] for number in range(6)])
    assert sorted(map(int, undominated(fronts, means))) == sorted(referee)
