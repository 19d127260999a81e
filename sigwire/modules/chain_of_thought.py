"""ChainOfThought: ``Predict`` with an output for the reasoning before the answer. Reasoned: that reasoning, typed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from sigwire.core.example import Prediction
from sigwire.effects.steps import Steps
from sigwire.errors import InputError
from sigwire.lm.secrets import wrap_secrets
from sigwire.modules.answer import meta_of
from sigwire.modules.ask import check_config
from sigwire.modules.predict import P, Predict, PredictorCalls, PredictorClasses, S, signature_of
from sigwire.show.card import BoundedRepr
from sigwire.signatures.declarations import OutputField, added_output
from sigwire.signatures.signature import Signature, SignatureClass, SignatureMeta
from sigwire.signatures.types import Reasoning

__all__ = ["ChainOfThought", "Reasoned"]


class ChainOfThought(PredictorCalls[P, S]):
    """``Predict`` with a first output ``reasoning``, a ``str``. The predictor is the attribute ``predict``.

    The model writes the field. If the call switches the model's own thinking on (``reasoning="low"``) and its provider shows
    it, or if the model thinks and shows it unasked (``lm.capabilities.reasoning_unasked``), the field is not prompted and
    holds the thinking. ``Reasoned.of(result)`` has the reasoning typed, with its source. A
    signature with an output ``reasoning`` is not changed. ``rationale_field`` and ``rationale_field_type`` replace the
    field's declaration and type; a type other than ``Reasoning`` is always prompted.

    >>> from sigwire.lm.fake import FakeLM
    >>> think = ChainOfThought("question -> answer", lm=FakeLM([{"reasoning": "Two and two.", "answer": "4"}]))
    >>> prediction = think(question="2+2?")
    >>> prediction.reasoning, prediction.answer
    ('Two and two.', '4')
    >>> Reasoned.of(prediction).source
    'written'
    """

    predictor_classes: ClassVar[PredictorClasses] = PredictorClasses(Predict, Predict)
    """The class of ``predict`` is ``ask``; a subclass may have another. ``extract`` is unused: no request extracts outputs."""
    _hooks: ClassVar[Sequence[str]] = ("predictor_classes",)

    def __init__(
        self,
        signature: str | Signature | Callable[P, S],
        rationale_field: object = None,
        rationale_field_type: object = Reasoning,
        callbacks: Sequence[object] | None = None,
        **config: Any,
    ) -> None:
        config = dict(wrap_secrets(config))
        super().__init__(callbacks)
        check_config(ChainOfThought, config.keys() - {"evidence", "decisions"}, config.get("lm"))
        with_reasoning = _with_reasoning(signature_of(signature), rationale_field, rationale_field_type)
        self.predict: Predict[..., Any] = type(self).predictor_classes.ask(with_reasoning, **config)

    def steps(self, /, *args: object, **kwargs: object) -> Steps[Prediction]:
        """Return the steps of one call, without callbacks and call records of this module."""
        return self.predict.call_steps(*args, **kwargs)


@dataclass(frozen=True, slots=True)
class Reasoned(BoundedRepr):
    """The reasoning of a result, and its source: ``Reasoned.of(result)``.

    ``source``: "written" in the text of the answer, the provider's "thinking", or ``None`` without reasoning.
    """

    reasoning: str
    source: Literal["written", "thinking"] | None = None

    @classmethod
    def of(cls, result: object) -> Reasoned:
        """Return the reasoning of a prediction. Raises ``InputError`` if it has no such output."""
        name = _reasoning_name(result) if isinstance(result, Prediction) else "reasoning"
        if not isinstance(result, Prediction) or name not in result:
            raise InputError(f"This {type(result).__name__} has no reasoning. Make it with ChainOfThought(signature).")
        text, choice = str(result[name] or ""), meta_of(result).choice
        if not text:
            return cls("")
        return cls(text, "thinking" if choice is not None and text == choice.reasoning else "written")


def _reasoning_name(prediction: Prediction) -> str:
    signature = meta_of(prediction).signature
    field = signature.spec.reasoning_field if signature is not None else None
    return str(field.name) if field else "reasoning"


def _with_reasoning(signature: SignatureMeta, field: object, kind: object) -> SignatureClass:
    """Return the signature with an output ``reasoning``, unless it has one; ``reasoning_`` if an input has that name."""
    outputs = [spec.name for spec in signature.spec.outputs]
    if field is None and "reasoning" in outputs:
        return signature
    described = added_output(field or OutputField(desc="Think step by step before you answer."))
    # Keep the instructions: derived ones would name the field, which thinking models may not see.
    name = "reasoning"
    while name in signature.spec.by_name:
        name += "_"
    return signature.prepend(name, described, kind).with_instructions(signature.instructions)
