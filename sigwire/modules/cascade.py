"""Cascade: ask a cheap program first, a dear one if the first is unsure, and a person if all are.

    stage 0 ──confidence below its least, or Unsure──▶ stage 1 ──▶ ... ──▶ person, else Unsure
       └─sure: its prediction

The confidence of a stage is the least of its outputs' (``fields``), 0 if one lacks its evidence in a row. Other errors of a
stage are raised: another model for a failed one is ``Router``'s task. A person answers through a function, or through a
journal: the question is an effect that the journal records (``AskApproval``), so that no crash asks twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

from sigwire.core.events import FieldDelta, FieldEnd, FieldPartial
from sigwire.core.evidence import Evidence, least_confidence
from sigwire.core.example import Prediction
from sigwire.core.json import JsonObject
from sigwire.core.narrow import is_items, is_mapping
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.tool import Tool
from sigwire.effects.emitting import Emit
from sigwire.effects.gather import Gather
from sigwire.effects.performing import Frame, current_frame, performed
from sigwire.effects.steps import Steps
from sigwire.errors import ConfigurationError, InputError, StateError, Unsure
from sigwire.journal.errors import ApprovalNeeded, PendingCall
from sigwire.journal.verdicts import CallVerdict
from sigwire.modules.agents.approval.asking import AskApproval
from sigwire.modules.agents.submit import Submit
from sigwire.modules.answer import meta_of
from sigwire.modules.calling import whole_call
from sigwire.modules.field_types import dumped_fields
from sigwire.modules.module import Module, StepsModule
from sigwire.modules.program_stream import event_path_of, is_streamed
from sigwire.modules.tree import Parameter
from sigwire.observe.reports import entries_of_call, label_first
from sigwire.signatures.criteria import deciding_outputs
from sigwire.signatures.signature import SignatureMeta

__all__ = ["Cascade", "Person"]

Person: TypeAlias = "bool | Callable[[ToolCall], object] | None"
"""``True``: a person, through a journal. A function of the call of ``decide`` returns ``True`` (take the outputs), a mapping of
other outputs, ``False`` or a reason (the outputs stay unsure), or ``None`` (a person, through a journal).
``None``: no person."""

_DECIDE = "decide"
_NO_JOURNAL = (
    "A person answers through a journal, and this run has none (asking a person). Call journal.run(cascade, run=...), or pass "
    "person=function."
)


class CascadeLeast(Parameter):
    """The least confidence of each stage: the state of a cascade. ``None``: it always answers. Above 1: it is not asked."""

    def __init__(self, values: Sequence[float | None]) -> None:
        self.values: tuple[float | None, ...] = tuple(values)

    def __repr__(self) -> str:
        return f"CascadeLeast({list(self.values)})"

    def __deepcopy__(self, memo: object) -> CascadeLeast:
        return CascadeLeast(self.values)

    def dump_state(self) -> JsonObject:
        """Return the numbers as JSON."""
        return {"least": list(self.values)}

    def prepare_state(self, state: Mapping[str, Any], *, allow_unsafe_lm_state: bool = False) -> Callable[[], None]:
        """Check a state; return the function that takes it. Raises ``StateError``."""
        try:
            found = _checked_least(state.get("least"), len(self.values), "loading")
        except ConfigurationError as error:
            raise StateError(f"This is no state of a Cascade: {error} Pass what dump_state returned.") from error

        def take() -> None:
            self.values = found

        return take


@dataclass(frozen=True, slots=True)
class _StageOutcome:
    """The outcome of a stage: its prediction, or the error that it is unsure, with its outputs. ``confidence``: of ``path``."""

    prediction: Prediction
    evidence: Mapping[str, Evidence]
    path: str
    confidence: float
    error: Unsure | None = None


class Cascade(StepsModule):
    """Return the answer of the first of several programs that is sure; of a person if none is.

    ``stages``: programs with the outputs of the first; more are allowed. ``least``: the confidence that a stage needs, one
    number for all or one for each; ``None``: it always answers, unless its rules raise ``Unsure``. A stage whose number is
    above 1 is not asked. ``fields``: the paths of the outputs that count, by default all deciding outputs; one without
    evidence in a row has the confidence 0. ``person``: see ``Person``; a person approves the last outputs, edits or denies
    them.

    The result is that of the stage that answered. Its attempts are those of all stages; the first of each later stage has the
    purpose "fallback" and the reason. A prediction of a person has the mode "person" and no evidence. Stages are not streamed:
    the outputs are emitted whole when they are decided.

    Raises ``Unsure`` if no stage is sure and no person answers, ``ApprovalNeeded`` if a person is asked through a journal,
    ``ConfigurationError`` for a stage that needs a confidence and gives no evidence, and what the function ``person`` raises.

    Cost: that of the stages that are asked, one after another.

    >>> from sigwire.lm.fake import FakeLM
    >>> from sigwire.modules.predict import Predict
    >>> cheap, dear = (Predict("ticket -> urgent: bool", lm=FakeLM([{"urgent": each}])) for each in (True, False))
    >>> Cascade([cheap, dear])(ticket="The site is down.").urgent
    True
    """

    def __init__(
        self,
        stages: Sequence[Module],
        *,
        least: float | Sequence[float | None] | None = None,
        fields: Sequence[str] | None = None,
        person: Person = None,
        callbacks: Sequence[object] | None = None,
    ) -> None:
        super().__init__(callbacks)
        self.stages = _checked_stages(stages)
        self.policy = CascadeLeast(_checked_least(least, len(self.stages), "making it"))
        if isinstance(fields, str):
            raise ConfigurationError(f"fields is a list of paths, not a text (making a Cascade). Write [{fields!r}].")
        self.fields = None if fields is None else tuple(fields)
        if not (person is None or isinstance(person, bool) or callable(person)):
            raise ConfigurationError(f"person is True or a function of a call, not {person!r:.80} (making a Cascade).")
        self.person: Person = person or None

    @property
    def least(self) -> tuple[float | None, ...]:
        """The least confidence of each stage; ``None``: it always answers. Settable, also as one number for all."""
        return self.policy.values

    @least.setter
    def least(self, given: float | Sequence[float | None] | None) -> None:
        self.policy.values = _checked_least(given, len(self.stages), "setting least")

    def tool_source(self) -> object:
        """Return what describes the first stage."""
        return self.stages[0].tool_source()

    def steps(self, /, *args: object, **inputs: object) -> Steps[Prediction]:
        """Return the steps of one call, without callbacks and call records."""
        frame = current_frame()
        if self.person is True and not (frame is not None and frame.run):
            raise ConfigurationError(_NO_JOURNAL)
        least, why, last = self.least, "", cast("_StageOutcome | None", None)
        for number, (stage, needed) in enumerate(zip(self.stages, least, strict=True)):
            if needed is not None and needed > 1:
                continue
            outcome = yield from self._asked(number, stage, needed, args, inputs, why)
            if outcome.error is None and (needed is None or outcome.confidence >= needed):
                yield from self._emitted(outcome.prediction)
                return outcome.prediction
            of = f" < {needed:g}" if outcome.error is None and needed is not None else ""
            why = f"unsure: {outcome.path} {outcome.confidence:.2f}{of}" if outcome.path else "unsure"
            last = outcome
        assert last is not None  # ``_checked_least``
        if self.person is None:
            raise last.error or _unsure(self, last, least, "")
        return (yield from self._asked_person(last, least))

    def _asked(
        self,
        number: int,
        stage: Module,
        needed: float | None,
        args: tuple[object, ...],
        inputs: Mapping[str, object],
        why: str,
    ) -> Steps[_StageOutcome]:
        """Ask a stage. The first exchange of a later one has the reason."""
        entries = entries_of_call()
        before = len(entries)
        try:
            # A context of its own, in which nothing is streamed.
            (found,) = yield Gather([_answer(stage, args, inputs)], limit=1)
        finally:
            if why:
                label_first(entries[before:], "fallback", why)
        if isinstance(found, Unsure):
            partial = found.partial if isinstance(found.partial, Prediction) else Prediction()
            return _outcome(partial, found.evidence, found.fields or [*found.evidence], found)
        if not isinstance(found, Prediction):
            raise ConfigurationError(
                f"Stage {number} of the cascade returned a {type(found).__name__}, not a prediction (deciding)."
            )
        meta = meta_of(found)
        evidence = cast("Mapping[str, Evidence]", meta.evidence or {})
        if needed is None:
            return _outcome(found, evidence, [])
        seen = dict.fromkeys((*evidence, *_deciding_paths(meta.signature)))
        paths = self.counted_paths(number, seen)
        missing = [] if meta.evidence is None else [path for path in paths if path not in seen]
        if missing or not paths or meta.evidence is None:
            what = f"of {missing[0]!r}" if missing else "of its outputs"
            known = f" It has evidence of {', '.join(evidence)}." if evidence else ""
            raise ConfigurationError(
                f"Stage {number} of the cascade ({type(stage).__name__}) gives no evidence {what}, and needs a confidence of "
                f'{needed:g} (deciding).{known} Make it with evidence="auto" and return that prediction, or set its least to '
                "None."
            )
        return _outcome(found, evidence, paths)

    def counted_paths(self, number: int, seen: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the paths that count for a stage: ``fields``, else its deciding outputs, and those that were ``seen``.

        An output that lacks its evidence in a row counts with the confidence 0.
        """
        if self.fields is not None:
            return self.fields
        return tuple(dict.fromkeys((*_deciding_paths(_signature_of(self.stages[number])), *seen)))

    def _emitted(self, prediction: Prediction) -> Steps[None]:
        """Emit the outputs whole."""
        if not is_streamed():
            return
        place, declared = event_path_of(self), meta_of(prediction).signature
        facts: dict[str, Any] = {"path": place.path, "turn": place.turn}
        events: list[Any] = []
        names = prediction.__dict__ if declared is None else [spec.name for spec in declared.spec.outputs]
        for name in (each for each in names if each in prediction.__dict__):
            value = prediction.__dict__[name]
            if isinstance(value, str):
                events.append(FieldDelta(name, str.__str__(value), **facts))
            else:
                plain = dumped_fields({name: value}, {} if declared is None else declared.spec.by_name)[name]
                events.append(FieldPartial(name, cast(Any, plain), **facts))
            events.append(FieldEnd(name, **facts))
        yield Emit(*place.stamp(events))

    # --- a person

    def _asked_person(self, last: _StageOutcome, least: Sequence[float | None]) -> Steps[Prediction]:
        signature = _signature_of(self.stages[0]) or cast("SignatureMeta | None", meta_of(last.prediction).signature)
        if signature is None:
            raise ConfigurationError(
                "The cascade has no signature, so a person cannot edit its outputs (asking a person). Begin "
                "with a Predict."
            )
        submit = Submit(signature.spec)
        parameters: JsonObject = {**submit.tool.parameters, "required": []}
        tool = Tool.from_schema(_DECIDE, "Take these outputs, or other ones.", parameters)
        names = [spec.name for spec in signature.spec.outputs]
        known = {name: last.prediction.__dict__[name] for name in names if name in last.prediction.__dict__}
        arguments = cast(JsonObject, dumped_fields(known, signature.spec.by_name))
        verdict = yield from self._verdict(ToolCall(f"call_{_DECIDE}", _DECIDE, arguments), tool)
        if verdict.answer == "deny":
            reason = f" A person did not decide: {verdict.why or 'no reason was given'}."
            raise _unsure(self, last, least, reason)
        given = submit.read(ToolCall("", _DECIDE, {**arguments, **(verdict.arguments or {})}))
        if given.outputs is None:
            raise InputError(
                f"{given.problem.removeprefix('Rejected. ').partition('. Call')[0]} (deciding by a person). "
                "Give values of the declared types."
            )
        fields = dict(last.prediction.__dict__) if verdict.answer == "approve" else {}
        made = Prediction.make(
            {**fields, **given.outputs}, signature=signature, mode="person", made_by=type(self).__name__
        )
        yield from self._emitted(made)
        return made

    def _verdict(self, call: ToolCall, tool: Tool) -> Steps[CallVerdict]:
        asked = _AskPerson(call, tool, cast(Any, self.person))
        frame = current_frame()
        place: Frame | None = None if frame is None else frame.child("person")
        verdict: CallVerdict = yield asked if place is None else performed(asked, place.child("approval"))
        if verdict.answer != "ask":
            return verdict
        if place is None or not place.run:
            raise ConfigurationError(_NO_JOURNAL)
        why = "no stage is sure"
        raise ApprovalNeeded(
            place.run, [PendingCall(f"{place.path}/approval.0", _DECIDE, call.arguments or {}, why, "approval")]
        )


class _AskPerson(AskApproval):
    """The question to a person, whose function may answer with other outputs.

    A function that fails is an error: a run that ends unsure counts as an abstention.
    """

    __slots__ = ()

    def verdict_of(self, answer: object) -> CallVerdict:
        if is_mapping(answer):
            return CallVerdict("edit", arguments=cast(JsonObject, dict(answer)))
        if answer is not None and not isinstance(answer, bool | str):
            raise ConfigurationError(
                f"person returned {type(answer).__name__} (deciding by a person). Return True, other outputs as a dict, False "
                "or a reason to leave it undecided, or None to wait for a decision."
            )
        return super().verdict_of(answer)

    def verdict_of_error(self, error: Exception) -> CallVerdict:
        raise error


def _answer(stage: Module, args: tuple[object, ...], inputs: Mapping[str, object]) -> Steps[object]:
    """Return what a stage returns, or the error that it is unsure."""
    try:
        return (yield from whole_call(stage, args, inputs))
    except Unsure as error:
        return error


def _outcome(
    prediction: Prediction, evidence: Mapping[str, Evidence], paths: Sequence[str], error: Unsure | None = None
) -> _StageOutcome:
    """Return an outcome with the least confidence of some paths; without paths it is sure, unless it has an error."""
    if not paths:
        return _StageOutcome(prediction, evidence, "", 1.0 if error is None else 0.0, error)
    path, confidence = least_confidence({path: each.confidence for path, each in evidence.items()}, paths)
    return _StageOutcome(prediction, evidence, path, confidence, error)


def _deciding_paths(signature: object) -> list[str]:
    return [each.path for each in deciding_outputs(signature.spec)] if isinstance(signature, SignatureMeta) else []


def _unsure(cascade: Cascade, last: _StageOutcome, least: Sequence[float | None], why: str) -> Unsure:
    needed = next((each for each in reversed(least) if each is not None and each <= 1), None)
    of = f", least {needed:g}" if needed is not None and last.error is None else ""
    what = last.path or "its outputs"
    return Unsure(
        f"{type(cascade).__name__} is unsure about {what}: {last.confidence:.2f}{of} (deciding).{why} Use .partial, add a "
        "stage whose least is None, or person=.",
        fields=(last.path,) if last.path else (),
        evidence=last.evidence,
        partial=last.prediction,
    )


def _checked_stages(stages: object) -> list[Module]:
    found: list[Any] = list(stages) if is_items(stages) else []
    if not found or not all(isinstance(stage, Module) for stage in found):
        raise ConfigurationError("A Cascade has a list of one or more modules as stages (making it).")
    first, *later = (_signature_of(stage) for stage in found)
    for number, other in enumerate(later, 1):
        outputs = set[str]() if first is None else {spec.name for spec in first.spec.outputs}
        if other is not None and (missing := sorted(outputs - {spec.name for spec in other.spec.outputs})):
            raise ConfigurationError(
                f"Stage {number} of the cascade has no output {missing[0]!r}, which the first has (making it). Use one "
                "signature."
            )
    return found


def _signature_of(stage: Module) -> SignatureMeta | None:
    source = stage.tool_source()
    return source if isinstance(source, SignatureMeta) else None


def _checked_least(given: object, count: int, doing: str) -> tuple[float | None, ...]:
    values = list(given) if is_items(given) else [given] * count
    if len(values) != count:
        raise ConfigurationError(
            f"least has {len(values)} numbers for {count} stages ({doing}). Give one for each stage, or one for all."
        )
    for value in values:
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float) or not value >= 0):
            raise ConfigurationError(f"least is a confidence from 0 to 1, or None, not {value!r:.80} ({doing}).")
    if all(isinstance(value, int | float) and value > 1 for value in values):
        raise ConfigurationError(f"No stage is asked: each least is above 1 ({doing}). Confidences are from 0 to 1.")
    return tuple(values)  # type: ignore[arg-type]
