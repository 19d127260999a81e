"""``Refine``: run a program several times; after each run, a model gives advice to each predictor for the next one."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from sigwire.core.json import dumps
from sigwire.core.record import plain_of
from sigwire.effects.steps import Steps
from sigwire.modules.field_types import dumped_fields, types_of
from sigwire.modules.module import Module
from sigwire.modules.predict import Predict
from sigwire.modules.sampling.best_of_n import BestOfN, SampledRun
from sigwire.settings import context
from sigwire.signatures.signature import SignatureClass, make_signature

__all__ = ["Refine"]

_MOST_CHARACTERS = 20_000
"""Of the run that the adviser reads; a longer one is cut in the middle."""


class Refine(BestOfN):
    """``BestOfN`` with advice for the next run.

    After a run below ``threshold``, one request (of the module's model) reads the steps of the run and its reward, and gives
    advice for each predictor, which is added to the instructions of a copy of the module; the module itself is not changed.
    ``feedback`` of the reward (an object with ``score`` and ``feedback``) is shown to the adviser.

    Cost: at most ``N`` times that of the module and of the reward, and ``N - 1`` requests for advice.

    >>> from sigwire.lm.fake import FakeLM
    >>> lm = FakeLM([{"answer": "It is Paris."}, {"advice": {"self": "Answer with one word."}}, {"answer": "Paris"}])
    >>> one_word = lambda inputs, prediction: float(len(prediction.answer.split()) == 1)
    >>> refine = Refine(Predict("question -> answer", lm=lm), N=2, reward_fn=one_word, threshold=1.0)
    >>> refine(question="Capital of France?").answer
    'Paris'
    """

    def next_program(self, program: Module, found: SampledRun, inputs: Mapping[str, object]) -> Steps[Module]:
        """Return a copy of the module with advice."""
        adviser = Predict(_advising(), lm=_model_of(program))
        names = [name for name, _ in self.module.named_predictors()]
        with context(trace=None):
            given = yield from adviser.call_steps(
                program="\n\n".join(_described(name, part) for name, part in self.module.named_predictors()),
                run=_cut(_shown_run(program, found, inputs)),
                reward=found.reward,
                threshold=self.threshold,
                predictors=names,
            )
        refined = self.module.deepcopy()
        for name, predictor in refined.named_predictors():
            if text := given.advice.get(name, "").strip():
                task = predictor.signature.instructions
                predictor.signature = predictor.signature.with_instructions(f"{task}\n\nAdvice for this call: {text}")
        return refined


@cache
def _advising() -> SignatureClass:
    return make_signature(
        "program, run, reward: float, threshold: float, predictors: list[str] -> advice: dict[str, str]",
        "A program of several predictors was run. Its reward is below the threshold. Find which predictor caused that, and "
        "write advice for the next run on the same inputs: for each predictor by name, what it should do differently, in one "
        'to three concrete sentences. Write "" for a predictor that did well. Do not reveal the expected answer.',
    )


def _model_of(program: Module) -> Any:
    return next((part.lm for part in program.predictors() if part.lm is not None), None)


def _described(name: str, predictor: Any) -> str:
    return f"{name}: {predictor.signature.signature}\n{predictor.signature.instructions}"


def _shown_run(program: Module, found: SampledRun, inputs: Mapping[str, object]) -> str:
    names = {id(part): name for name, part in program.named_predictors()}
    steps = [
        f"{names.get(id(predictor), type(predictor).__name__)}\n"
        f"inputs: {_json(given, predictor)}\noutputs: {_json(outputs, predictor)}"
        for predictor, given, outputs in found.trace
    ]
    return "\n\n".join([f"Inputs of the program: {_json(inputs, program)}", *steps])


def _json(fields: Mapping[str, object], program: object) -> str:
    return dumps(plain_of(dumped_fields(dict(fields.items()), types_of(program))))


def _cut(text: str) -> str:
    half = _MOST_CHARACTERS // 2
    return text if len(text) <= _MOST_CHARACTERS else f"{text[:half]}\n[...]\n{text[-half:]}"
