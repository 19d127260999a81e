"""Ensemble: several programs asked at once, and one answer of all. ``majority``: the most frequent one."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any

from sigwire.core.evidence import share_of_values
from sigwire.core.example import Completions, Prediction
from sigwire.core.json import dumps
from sigwire.core.record import to_plain
from sigwire.effects.gather import Gather
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError, InputError
from sigwire.evaluate.metrics.text import normalize_text
from sigwire.keywords import ChecksKeywords
from sigwire.modules.answer import meta_of
from sigwire.modules.calling import whole_call
from sigwire.modules.field_types import NO_TYPES, FieldTypes, dumped_fields, types_of
from sigwire.modules.module import Module, StepsModule
from sigwire.optimizers.teleprompter import Teleprompter
from sigwire.settings import current

__all__ = ["Ensemble", "EnsembledProgram", "majority"]

ReduceFunction = Callable[[list[Any]], Any]


class Ensemble(Teleprompter, ChecksKeywords):
    """Make one program of several: each call asks all of them, or ``size`` of them, and ``reduce_fn`` makes one answer.

    Without ``reduce_fn`` the answers are returned as a list. The members of a call depend on its inputs only, so equal calls
    ask equal members; ``deterministic`` is accepted and changes nothing. The state of the program has that of all members.

    Cost: each call makes the requests of its members, at once.

    >>> from sigwire.lm.fake import FakeLM
    >>> from sigwire.modules.predict import Predict
    >>> members = [Predict("question -> answer", lm=FakeLM([{"answer": each}])) for each in ("4", "5", "4")]
    >>> Ensemble(reduce_fn=majority).compile(members)(question="2+2?").answer
    '4'
    """

    def __init__(
        self, *, reduce_fn: ReduceFunction | None = None, size: int | None = None, deterministic: bool = False
    ) -> None:
        if size is not None and size < 1:
            raise ConfigurationError(f"size is a number of programs, above 0, not {size} (making an Ensemble).")
        self.reduce_fn, self.size, self.deterministic = reduce_fn, size, deterministic

    def compile(self, programs: Sequence[Module]) -> EnsembledProgram:  # type: ignore[override]  # pyright: ignore[reportIncompatibleMethodOverride]
        """Return the program. Raises ``InputError`` for fewer programs than ``size``."""
        if not programs or len(programs) < (self.size or 0):
            raise InputError(f"Ensemble needs {self.size or 'one'} or more programs, not {len(programs)} (compiling).")
        return EnsembledProgram(programs, self.reduce_fn, self.size)


class EnsembledProgram(StepsModule):
    """Several programs as one; see ``Ensemble``. Members are not streamed: their events would be of several answers."""

    def __init__(
        self, programs: Sequence[Module], reduce_fn: ReduceFunction | None = None, size: int | None = None
    ) -> None:
        super().__init__()
        self.programs = list(programs)
        self.reduce_fn, self.size = reduce_fn, size

    def steps(self, *args: object, **inputs: object) -> Steps[Any]:
        """Return the steps of one call."""
        members = self.programs
        if self.size is not None and self.size < len(members):
            plain = [*args, dumped_fields(inputs, types_of(members[0]))]
            mark = sha256(dumps(to_plain(plain)).encode(errors="surrogatepass")).hexdigest()
            members = random.Random(mark).sample(members, self.size)
        answers: list[Any] = yield Gather(
            [whole_call(each, args, inputs) for each in members], limit=min(len(members), current().num_threads)
        )
        return answers if self.reduce_fn is None else self.reduce_fn(answers)


def majority(
    predictions: Prediction | Completions | Sequence[Any],
    normalize: Callable[[str], str | None] | None = None,
    field: str | None = None,
) -> Prediction:
    """Return the prediction with the most frequent value of a field, by default the last; the first one of equally frequent.

    ``predictions``: a list of them, or one prediction with several completions. ``normalize`` makes values comparable, by
    default by ``normalize_text``; a value for which it returns ``None`` or "" does not count.

    >>> majority([Prediction(answer="a"), Prediction(answer="b"), Prediction(answer="The B.")]).answer
    'b'
    """
    found: list[Any] = list(predictions.completions if isinstance(predictions, Prediction) else predictions)
    if not found:
        raise InputError("majority needs one or more predictions.")
    name = field or list(found[0].keys())[-1]
    clean: Callable[[str], str | None] = normalize or _plain
    types = _declared([predictions, *found])
    values = [clean(_text(each[name], name, types)) for each in found]
    distinct = list(dict.fromkeys(filter(None, values))) or values[:1]
    shares = share_of_values(filter(None, values), distinct)
    best = distinct[shares.index(max(shares))]  # of equally frequent ones that which came first
    chosen = found[values.index(best)]
    return chosen if isinstance(chosen, Prediction) else Prediction(chosen)


def _declared(found: Sequence[Any]) -> FieldTypes:
    """Return the fields of the first signature that made one of the predictions."""
    made = (meta_of(each).signature for each in found if isinstance(each, Prediction))
    return next((signature.spec.by_name for signature in made if signature is not None), NO_TYPES)


def _text(value: object, name: str, types: FieldTypes) -> str:
    plain = value if isinstance(value, str) else dumped_fields({name: value}, types)[name]
    return plain if isinstance(plain, str) else dumps(to_plain(plain))


def _plain(text: str) -> str:
    return normalize_text(text) or text.strip().lower()  # "A" may be a choice, and not an article
