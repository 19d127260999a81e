"""1,000 examples over HTTP: an evaluation above its calls (n1, n2), and beside a plain socket (n3); its fingerprint (n4).

The floor of n1 and n2 is a ``batch`` of the same calls. That of n3 writes its requests and reads its answers by hand; its
``Evaluate`` chooses the number of threads. Where DSPy is installed, n3 times its ``Evaluate`` as well.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import sigwire
from benchmarks import peers
from benchmarks.by_hand import Sender
from benchmarks.over_http import model, read, right, written
from benchmarks.predict import INPUTS
from benchmarks.server import answered, serving
from benchmarks.timing import FLOOR, SIGWIRE, Job
from sigwire.evaluate.fingerprint.identity import run_fingerprint

__all__ = ["jobs", "over_http"]

EXAMPLES = 1_000
THREADS = 8


def jobs() -> Iterator[Job]:
    """Yield n4."""
    predictors = [sigwire.Predict("context, question -> answer, confidence: float") for _ in range(20)]

    class Program(sigwire.Module):
        def __init__(self) -> None:
            self.parts = predictors

        def forward(self, question: str) -> object:
            return self.parts[0](question=question)

    program, lm = Program(), sigwire.LM("offline/lexical")
    contestants: dict[str, Callable[[], int]] = {
        FLOOR: lambda: len(json.dumps(program.dump_state())) and 1,
        SIGWIRE: lambda: len(run_fingerprint(program, lm, None, {"exact": exact})["metrics"]),  # type: ignore[arg-type]
    }
    yield Job("n4", "fingerprint of 20 predictors, once a run; floor: their state as JSON", "≤ 5 ms", contestants, "ms")


def over_http() -> Iterator[Job]:
    """Yield n1, n2 and n3."""
    with serving() as port, tempfile.TemporaryDirectory() as folder:
        lm = model(port, "count")
        predict: Any = sigwire.Predict("context, question -> answer, confidence: float")
        predict.lm = lm
        devset = [
            sigwire.Example({**INPUTS, "question": f"Question {number}?"}, label=str(number)).with_inputs(*INPUTS)
            for number in range(EXAMPLES)
        ]
        evaluate = sigwire.Evaluate(
            devset=devset, metric=exact, num_threads=THREADS, display_progress=False, resume=False
        )

        def plain() -> int:
            predictions = predict.batch([example.inputs() for example in devset], num_threads=THREADS)
            return sum(map(exact, devset, predictions))

        def evaluated(**options: Any) -> int:
            return round(evaluate(predict, **options).score / 100 * EXAMPLES)

        logged = partial(evaluated, log=Path(folder) / "records.jsonl")
        for name, contestant, what in (("n1", evaluated, ""), ("n2", logged, ", with a log")):
            contestants: dict[str, Callable[[], int]] = {FLOOR: plain, SIGWIRE: contestant}
            checked = {key: answered(port, each, EXAMPLES, EXAMPLES) for key, each in contestants.items()}
            yield Job(
                name, f"evaluate {EXAMPLES:,} examples over HTTP{what}; floor: `batch`", "≤ + 300 ms", checked, "ms",
                most_rounds=5,
            )  # fmt: skip
        yield socket_job(port, predict, devset)
        lm.close()


def socket_job(port: int, predict: Any, devset: Sequence[sigwire.Example]) -> Job:
    evaluate = sigwire.Evaluate(devset=devset, metric=exact, display_progress=False)

    def by_hand() -> int:
        with closing(Sender(port, "/count/chat/completions")) as send:
            return right([read(send(written({**INPUTS, "question": row.question}))) for row in devset])

    contestants: dict[str, Callable[[], int]] = {
        FLOOR: by_hand,
        SIGWIRE: lambda: round(evaluate(predict).score / 100 * EXAMPLES),
        **peers.evaluated_over_http(f"http://127.0.0.1:{port}/count", [row.toDict() for row in devset]),
    }
    checked = {name: answered(port, each, EXAMPLES, EXAMPLES) for name, each in contestants.items()}
    what = f"evaluate {EXAMPLES:,} examples over HTTP, default threads; floor: a plain socket"
    return Job("n3", what, "≤ 300 ms", checked, "ms", most_rounds=5)


def exact(example: sigwire.Example, prediction: sigwire.Prediction, trace: object = None) -> bool:
    return bool(prediction.answer == example.label)
