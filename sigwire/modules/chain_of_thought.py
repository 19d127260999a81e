"""ChainOfThought: the same question, with room to think before the answer."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, ParamSpec, TypeVar, overload

from sigwire.core.example import Prediction
from sigwire.effects.steps import Steps
from sigwire.modules.module import StepsModule
from sigwire.modules.predict import Predict
from sigwire.signatures.declarations import OutputField
from sigwire.signatures.parser import caller_scope
from sigwire.signatures.signature import Signature, SignatureMeta, ensure_signature
from sigwire.signatures.types import Reasoning

if TYPE_CHECKING:
    from sigwire.lm.base import LanguageModel

__all__ = ["ChainOfThought"]

P = ParamSpec("P")
S = TypeVar("S")


class ChainOfThought(StepsModule, Generic[P, S]):
    """``Predict`` with a first output ``reasoning``, a ``str``. The predictor is the attribute ``predict``.

    A model that reasons natively is not asked to think twice: the field then holds what it thought, ``""`` where the
    provider keeps that to itself. A signature that has an output ``reasoning`` keeps it as it is. ``rationale_field``
    and ``rationale_field_type`` replace the field's declaration and type; with the type ``str`` every model writes it
    out. Type checkers see the signature's own outputs: declare ``reasoning: str`` there to have it checked too.

    >>> from sigwire.lm.fake import FakeLM
    >>> think = ChainOfThought("question -> answer", lm=FakeLM([{"reasoning": "Two and two.", "answer": "4"}]))
    >>> prediction = think(question="2+2?")
    >>> prediction.reasoning, prediction.answer
    ('Two and two.', '4')
    """

    _predict_class: ClassVar[type[Predict[..., Any]]] = Predict

    @overload
    def __init__(
        self: ChainOfThought[..., Prediction],
        signature: str | Signature,
        rationale_field: Any = None,
        rationale_field_type: Any = Reasoning,
        callbacks: Sequence[Any] | None = None,
        **config: Any,
    ) -> None: ...
    @overload
    def __init__(
        self,
        signature: Callable[P, S],
        rationale_field: Any = None,
        rationale_field_type: Any = Reasoning,
        callbacks: Sequence[Any] | None = None,
        **config: Any,
    ) -> None: ...
    def __init__(
        self,
        signature: Any,
        rationale_field: Any = None,
        rationale_field_type: Any = Reasoning,
        callbacks: Sequence[Any] | None = None,
        **config: Any,
    ) -> None:
        super().__init__(callbacks)
        scope = None if isinstance(signature, SignatureMeta) else caller_scope()
        self.predict: Predict[..., Any] = self._predict_class(
            _thinking(ensure_signature(signature, scope=scope), rationale_field, rationale_field_type), **config
        )

    if TYPE_CHECKING:

        @overload
        def __call__(self, *args: P.args, **kwargs: P.kwargs) -> S: ...
        @overload
        def __call__(self, *, config: Mapping[str, Any], **inputs: Any) -> S: ...
        @overload
        def __call__(self, *, demos: Sequence[Any], **inputs: Any) -> S: ...
        @overload
        def __call__(self, *, lm: LanguageModel, **inputs: Any) -> S: ...
        def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

        @overload
        async def acall(self, *args: P.args, **kwargs: P.kwargs) -> S: ...
        @overload
        async def acall(self, *, config: Mapping[str, Any], **inputs: Any) -> S: ...
        @overload
        async def acall(self, *, demos: Sequence[Any], **inputs: Any) -> S: ...
        @overload
        async def acall(self, *, lm: LanguageModel, **inputs: Any) -> S: ...
        async def acall(self, *args: Any, **kwargs: Any) -> Any: ...

    def steps(self, *args: Any, **kwargs: Any) -> Steps[Prediction]:
        """One call as a program."""
        return self.predict.call_steps(*args, **kwargs)


def _thinking(signature: Any, field: Any, kind: Any) -> Any:
    """The signature with an output for the reasoning, unless it has one."""
    outputs = [spec.name for spec in signature.spec.outputs]
    if field is None and "reasoning" in outputs:
        return signature
    described = field or OutputField(desc="Think step by step before you answer.")
    # The instructions stay: ones made up from the field names would name a field that some models are not shown.
    return signature.prepend("reasoning", described, kind).with_instructions(signature.instructions)
