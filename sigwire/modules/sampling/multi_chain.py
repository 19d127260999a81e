"""``MultiChainComparison``: one answer from several answers with their reasoning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from sigwire.core.example import Completions, Prediction
from sigwire.core.json import dumps
from sigwire.effects.steps import Steps
from sigwire.errors import InputError
from sigwire.keywords import check_whole
from sigwire.modules.module import StepsModule
from sigwire.modules.predict import Predict, signature_of
from sigwire.signatures.declarations import InputField, OutputField, added_output
from sigwire.signatures.fields import FieldSpec
from sigwire.signatures.signature import Signature

__all__ = ["MultiChainComparison"]

_REASONS = ("rationale", "reasoning")


class MultiChainComparison(StepsModule):
    """Compare ``M`` answers with their reasoning, and write one answer: a first output ``rationale``, then the outputs.

    A call takes the ``completions`` (predictions or mappings with ``reasoning`` or ``rationale`` and the outputs; or one
    prediction with ``M`` completions), and the inputs of the signature by name. Attribute for optimizers: ``predict``.

    Cost: one request.

    >>> from sigwire.lm.fake import FakeLM
    >>> compare = MultiChainComparison("question -> answer", M=2, lm=FakeLM([{"rationale": "The sky.", "answer": "blue"}]))
    >>> answers = [{"reasoning": "At noon.", "answer": "blue"}, {"reasoning": "At dusk.", "answer": "red"}]
    >>> compare(answers, question="What colour is the sky?").answer
    'blue'
    """

    _collects: ClassVar[bool] = False

    def __init__(
        self,
        signature: str | Signature,
        M: int = 3,  # noqa: N803
        temperature: float | None = None,
        *,
        callbacks: Sequence[object] | None = None,
        **config: Any,
    ) -> None:
        super().__init__(callbacks)
        check_whole("M", M, "making a MultiChainComparison", of="answers", least=1, most=1_000)
        asked = signature_of(signature)
        self.M = M
        self._outputs = asked.spec.outputs
        for number in range(1, M + 1):
            asked = asked.append(
                f"reasoning_attempt_{number}", InputField(desc="the reasoning and answer of a student")
            )
        reason = added_output(OutputField(desc="Compare the attempts, then reason to the right answer."))
        if temperature is not None:
            config["temperature"] = temperature
        self.predict: Predict[..., Any] = Predict(asked.prepend("rationale", reason, str), **config)

    def steps(
        self, completions: Prediction | Completions | Iterable[Mapping[str, Any]], **inputs: object
    ) -> Steps[Prediction]:
        """Return the steps of one call, without callbacks and call records of this module."""
        found: list[Any] = list(completions.completions if isinstance(completions, Prediction) else completions)
        if len(found) != self.M:
            raise InputError(
                f"MultiChainComparison(M={self.M}) compares {self.M} answers, not {len(found)} (reading completions)."
            )
        attempts = {f"reasoning_attempt_{number}": self._attempt(each) for number, each in enumerate(found, 1)}
        prediction: Prediction = yield from self.predict.call_steps(**inputs, **attempts)
        return prediction

    def tool_source(self) -> None:
        """Return ``None``: a call takes completions, which no model can give."""

    def _attempt(self, completion: Mapping[str, Any]) -> str:
        """Return the reasoning and the outputs of an answer as text, whole."""
        reason = next((str(completion[name]) for name in _REASONS if name in completion), "")
        outputs = [
            f"{spec.name}: {_text(completion[spec.name], spec)}" for spec in self._outputs if spec.name in completion
        ]
        return "\n".join([*([reason.strip()] if reason.strip() else []), *outputs])


def _text(value: object, spec: FieldSpec) -> str:
    plain = value if isinstance(value, str) else spec.dump(value)
    return plain if isinstance(plain, str) else dumps(plain)
