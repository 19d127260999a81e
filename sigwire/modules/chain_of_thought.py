"""ChainOfThought: ``Predict`` with an output for the reasoning before the answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from sigwire.core.example import Prediction
from sigwire.effects.steps import Steps
from sigwire.lm.secrets import wrap_secrets
from sigwire.modules.ask import check_config
from sigwire.modules.predict import P, Predict, PredictorCalls, S, signature_of
from sigwire.signatures.declarations import OutputField
from sigwire.signatures.signature import Signature, SignatureClass, SignatureMeta
from sigwire.signatures.types import Reasoning

__all__ = ["ChainOfThought"]


class ChainOfThought(PredictorCalls[P, S]):
    """``Predict`` with a first output ``reasoning``, a ``str``. The predictor is the attribute ``predict``.

    A model that reasons natively does not get the field in its prompt: the field has the native reasoning, ``""`` if the
    provider hides it. A signature with an output ``reasoning`` is not changed. ``rationale_field`` and
    ``rationale_field_type`` replace the field's declaration and type; with the type ``str`` every model writes the field.
    Type checkers see the signature's own outputs: declare ``reasoning: str`` in the signature to have the field checked.

    >>> from sigwire.lm.fake import FakeLM
    >>> think = ChainOfThought("question -> answer", lm=FakeLM([{"reasoning": "Two and two.", "answer": "4"}]))
    >>> prediction = think(question="2+2?")
    >>> prediction.reasoning, prediction.answer
    ('Two and two.', '4')
    """

    _predict_class: ClassVar[type[Predict[..., Any]]] = Predict

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
        check_config(ChainOfThought, config, config.get("lm"))
        with_reasoning = _with_reasoning(signature_of(signature), rationale_field, rationale_field_type)
        self.predict: Predict[..., Any] = self._predict_class(with_reasoning, **config)

    def steps(self, *args: object, **kwargs: object) -> Steps[Prediction]:
        """Return the steps of one call, without callbacks and call records of this module."""
        return self.predict.call_steps(*args, **kwargs)


def _with_reasoning(signature: SignatureMeta, field: object, kind: object) -> SignatureClass:
    """Return the signature with an output ``reasoning``, unless it has one."""
    outputs = [spec.name for spec in signature.spec.outputs]
    if field is None and "reasoning" in outputs:
        return signature
    described = field or OutputField(desc="Think step by step before you answer.")
    # Keep the instructions: derived ones would name the field, which native reasoners do not see.
    return signature.prepend("reasoning", described, kind).with_instructions(signature.instructions)
