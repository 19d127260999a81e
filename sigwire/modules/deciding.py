"""Evidence of a call: the source of distributions, and the values that rules decide from them.

``prepare`` chooses the source and changes signature and options before anything is sent. ``Deciding.decide`` reads the
distributions of an answer and sets the decided values. A call without evidence loads none of this.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, cast, get_args

from sigwire.adapters.evidence import LabelReading, read_logprobs, read_stated, stated_name, stated_signature
from sigwire.core.evidence import (
    DEFAULT_RULE,
    DecisionRule,
    Evidence,
    EvidenceSource,
    index_of,
    read_evidence,
    share_of_values,
)
from sigwire.core.example import Prediction
from sigwire.core.messages import Message
from sigwire.core.narrow import is_array, is_mapping
from sigwire.core.record import UNSET, Meta, new_record
from sigwire.core.request import Request
from sigwire.core.response import Choice, LMWarning, Repair
from sigwire.errors import (
    AdapterParseError,
    ConfigurationError,
    ModelError,
    StateError,
    UnsupportedFeature,
    Unsure,
    suggest,
)
from sigwire.observe.usage import record_warnings
from sigwire.signatures.criteria import DecidingOutput, deciding_outputs, or_none

if TYPE_CHECKING:
    from sigwire.adapters.plan import ParsedChoice, Plan
    from sigwire.core.events import ProgramEvent
    from sigwire.lm.base import LanguageModel
    from sigwire.modules.program_stream import EventReader
    from sigwire.signatures.signature import SignatureClass

__all__ = [
    "Decided",
    "Deciding",
    "DecisionRules",
    "EvidenceOption",
    "check_decisions",
    "check_evidence",
    "check_rules",
    "decided_prediction",
    "load_decisions",
    "measured_only",
    "prepare",
]  # fmt: skip

DecisionRules: TypeAlias = dict[str, DecisionRule]
EvidenceOption: TypeAlias = Literal["auto", "measured", "logprob", "sampled", "stated"] | None
_OPTIONS: tuple[object, ...] = ("auto", *get_args(EvidenceSource))
_Rows: TypeAlias = Sequence[Mapping[str, Any]]


def check_evidence(given: object, where: str = "making a Predict") -> Any:
    """Return the option ``evidence``. Raises ``ConfigurationError`` for another value than a source, "auto" or ``None``."""
    if given is not None and given not in _OPTIONS:
        hint = suggest(given, map(str, _OPTIONS)) if isinstance(given, str) else ""
        known = ", ".join(f'"{each}"' for each in _OPTIONS)
        raise ConfigurationError(f"evidence={given!r:.60} is no source ({where}). {hint}Use {known}, or None.")
    return given


def check_decisions(given: object, where: str) -> DecisionRules:
    """Return the rules by path. Raises ``ConfigurationError`` for another form; ``check_rules`` checks each rule."""
    if not is_mapping(given):
        raise ConfigurationError(
            f"decisions are rules by path, not {type(given).__name__} ({where}). Write "
            'decisions={"urgent": DecisionRule(threshold=0.8)}.'
        )
    return cast(DecisionRules, dict(given))


class Decided(NamedTuple):
    """The outcome of deciding: the fields with decided values, their evidence, and what had to be left out or changed."""

    fields: dict[str, Any]
    evidence: dict[str, Evidence]
    warnings: tuple[LMWarning, ...] = ()
    repairs: tuple[Repair, ...] = ()
    unsure: tuple[str, ...] = ()


@dataclass(slots=True, eq=False)
class Deciding:
    """How one call gets its evidence. ``signature``: the caller's; ``stated``: the name of the output for probabilities."""

    source: EvidenceSource
    outputs: tuple[DecidingOutput, ...]
    rules: Mapping[str, DecisionRule]
    signature: SignatureClass
    stated: str = ""
    warnings: tuple[LMWarning, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    holder: _Holder | None = None

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of the outputs."""
        return tuple(output.path for output in self.outputs)

    def check_plan(self, plan: Plan) -> None:
        """Raise ``UnsupportedFeature`` if the layout has no place for stated probabilities."""
        if self.stated and plan.setup.layout.free:
            raise UnsupportedFeature(
                f"{type(plan.setup.adapter).__name__} asks for plain text, which has no place for probabilities (choosing "
                'evidence). Use evidence="sampled", or another adapter.'
            )

    def first_options(self, plan: Plan, options: dict[str, Any] | None) -> dict[str, Any] | None:
        """Return the options of the first request. Raises ``UnsupportedFeature`` as ``check_plan`` does."""
        self.check_plan(plan)
        return options if plan.setup.layout.free or not self.options else {**(options or {}), **self.options}

    def second_request(self, request: Request) -> Request:
        """Return the second request of an adapter, which extracts the fields, with the options of the source."""
        return request.with_options({**request.options, **self.options}) if self.options else request

    def without_rules(self) -> Deciding:
        """Return a copy that decides by the default rules: for the second request of an adapter."""
        return replace(self, rules={}, warnings=(), holder=None)

    def forgive(self, failure: ModelError) -> dict[str, Any] | None:
        """Return the fields of an answer whose only problem is the output for probabilities; ``None`` for other failures."""
        if not self.stated or not isinstance(failure, AdapterParseError) or failure.problems.keys() != {self.stated}:
            return None
        return dict(failure.parsed_result or {})

    def held(self, reader: EventReader) -> EventReader:
        """Return the reader of a streamed response without the events of deciding outputs."""
        self.holder = _Holder(reader, frozenset(output.steps[0] for output in self.outputs) | {self.stated})
        return self.holder

    def released(self, plan: Plan, fields: Mapping[str, Any], choice: int) -> list[ProgramEvent]:
        """Return the events of the decided outputs, which were held back."""
        holder, self.holder = self.holder, None
        return [] if holder is None else holder.release(plan, fields, choice)

    def decide(self, plan: Plan, choice: Choice, outcomes: Sequence[ParsedChoice], first: Mapping[str, Any]) -> Decided:
        """Return the decided fields of an answer. ``outcomes``: all parsed choices; ``first``: the fields of ``choice``."""
        present = [(output, _value_at(first, output)) for output in self.outputs]
        outputs = {output.path: (output, value) for output, value in present if value is not _MISSING}
        readings = self.readings(plan, choice, outcomes, outputs)
        warnings, repairs, evidence = list(self.warnings), list[Repair](), dict[str, Evidence]()
        for path, (output, _) in outputs.items():
            if (reading := readings.get(path)) is None:
                continue
            if reading.problem:
                warnings.append(LMWarning("evidence", f"{path} has no evidence: {reading.problem}"))
                continue
            if reading.coverage < 0.5:
                detail = f"{path}: labels cover {reading.coverage:.2f} of the probability"
                warnings.append(LMWarning("evidence", detail))
            if reading.repair:
                repairs.append(Repair(path, reading.repair))
            evidence[path] = Evidence.of(
                output,
                reading.probabilities,
                self.source,
                self.rules.get(path, DEFAULT_RULE),
                answered=reading.answered,
                own_confidence=reading.confidence,
                coverage=reading.coverage,
                samples=_count(outcomes, output) if self.source == "sampled" else None,
            )
        return self._applied(first, evidence, tuple(warnings), tuple(repairs))

    def decide_again(self, fields: Mapping[str, Any], evidence: Mapping[str, Evidence]) -> Decided:
        """Return the fields that the rules decide from known evidence."""
        by_path = {output.path: output for output in self.outputs}
        made = {
            path: each.decided(self.rules.get(path, DEFAULT_RULE), is_mean=by_path[path].is_mean)
            for path, each in evidence.items()
        }
        return self._applied(fields, made, self.warnings, ())

    def readings(
        self,
        plan: Plan,
        choice: Choice,
        outcomes: Sequence[ParsedChoice],
        outputs: Mapping[str, tuple[DecidingOutput, Any]],
    ) -> dict[str, LabelReading]:
        """Return the distribution of each output in an answer, by path. ``outputs``: with the values that were written."""
        if self.source == "measured":
            return _measured(choice, [output for output, _ in outputs.values()])
        if self.source == "logprob":
            values = {path: value for path, (_, value) in outputs.items()}
            found = read_logprobs(plan, choice, [output for output, _ in outputs.values()], values)
        elif self.source == "stated":
            stated = outcomes[0].fields.get(self.stated)
            found = {path: read_stated(stated, output) for path, (output, _) in outputs.items()}
        else:
            rows = [outcome.fields for outcome in outcomes]
            found = {path: _sampled(rows, output) for path, (output, _) in outputs.items()}
        return {path: reading._replace(answered=outputs[path][1]) for path, reading in found.items()}

    def finish_row(self, row: dict[str, Any]) -> None:
        """Change the fields of one of several answers, in place, to what the caller reads."""
        row.pop(self.stated, None)

    def _applied(
        self,
        first: Mapping[str, Any],
        evidence: Mapping[str, Evidence],
        warnings: tuple[LMWarning, ...],
        repairs: tuple[Repair, ...],
    ) -> Decided:
        fields = {name: value for name, value in first.items() if name != self.stated}
        unsure: list[str] = []
        lists: dict[tuple[str, ...], list[DecidingOutput]] = {}
        for output in self.outputs:
            rule = self.rules.get(output.path, DEFAULT_RULE)
            found = evidence.get(output.path)
            is_unsure = (0.0 if found is None else found.confidence) < rule.least
            if is_unsure and not output.allows_none:
                unsure.append(output.path)
            if found is None and (not is_unsure or _at(fields, output.steps) is _MISSING):
                continue
            if output.member is not UNSET:
                lists.setdefault(output.steps, []).append(output)
                continue
            if found is not None:
                _set(fields, output.steps, output.value_of(found, rule))
            elif output.allows_none:
                _set(fields, output.steps, None)
        for steps, members in lists.items():
            _set(fields, steps, self._list(fields, steps, members, evidence))
        return Decided(fields, dict(evidence), warnings, repairs, tuple(unsure))

    def _list(
        self,
        fields: Mapping[str, Any],
        steps: tuple[str, ...],
        members: Sequence[DecidingOutput],
        evidence: Mapping[str, Evidence],
    ) -> list[Any] | None:
        """Return the members of a list that are decided to be in it, in declared order; ``None`` if it abstains."""
        written = _at(fields, steps)
        counted = {index_of(output.siblings, output.member): output for output in members}
        decided: list[Any] = []
        for at, member in enumerate(members[0].siblings):
            output = counted.get(at)
            found = None if output is None else evidence.get(output.path)
            rule = DEFAULT_RULE if output is None else self.rules.get(output.path, DEFAULT_RULE)
            if output is not None and output.allows_none and (0.0 if found is None else found.confidence) < rule.least:
                return None
            if found is None:
                is_in = is_array(written) and index_of(written, member) is not None
            else:
                is_in = bool(found.decided(replace(rule, least=0.0)).value)
            if is_in:
                decided.append(member)
        return decided


def decided_prediction(
    deciding: Deciding, plan: Plan, written: Prediction, outcomes: Sequence[ParsedChoice], rows: list[dict[str, Any]]
) -> Prediction:
    """Return a prediction with decided values. ``written``: of the first of ``outcomes``; ``rows``: the fields of each.

    Raises ``Unsure`` for outputs without enough confidence that do not allow ``None``.
    """
    meta: Meta = written._meta  # pyright: ignore[reportPrivateUsage]
    first, choice = outcomes[0], cast("Choice", meta.choice)
    if first.evidence is not None:
        decided = deciding.decide_again(rows[0], first.evidence)
    else:
        decided = deciding.decide(plan, choice, outcomes, rows[0])
    for row in rows:
        deciding.finish_row(row)
    record_warnings(*decided.warnings)
    response = None if meta.response is None else meta.response.with_warnings(*decided.warnings)
    made = replace(
        meta,
        signature=deciding.signature,
        response=response,
        repairs=(*meta.repairs, *decided.repairs),
        evidence=decided.evidence,
    )
    prediction = new_record(type(written), decided.fields, None, made)
    if decided.unsure:
        raise _unsure_error(meta.made_by, decided, deciding, prediction, choice)
    return prediction


def _unsure_error(name: str, decided: Decided, deciding: Deciding, partial: Prediction, choice: Choice) -> Unsure:
    shown = [
        f"{path}: {f'{known.confidence:.2g}' if (known := decided.evidence.get(path)) else 'no evidence'}, "
        f"least {deciding.rules[path].least:g}"
        for path in decided.unsure
    ]
    output = next(each for each in deciding.outputs if each.path == decided.unsure[0])
    kind = "bool" if output.kind == "bool" and output.member is UNSET else "its type"
    return Unsure(
        f"{name} is unsure about {'; '.join(shown)} (deciding). Use .partial, ask another model with Cascade, or declare "
        f"{kind} | None.",
        fields=decided.unsure,
        evidence=decided.evidence,
        partial=partial,
        choice=choice,
        attempts=tuple(partial._meta.attempts),  # pyright: ignore[reportPrivateUsage]
    )


# --- before the request ------------------------------------------------------------------------------


def prepare(
    owner: str,
    signature: SignatureClass,
    lm: LanguageModel,
    given: EvidenceOption,
    rules: Mapping[str, DecisionRule],
    options: Mapping[str, Any] | None,
) -> tuple[Deciding | None, SignatureClass, dict[str, Any] | None]:
    """Return how a call gets evidence, and the signature and the options of its request.

    Raises ``ConfigurationError`` for rules that fit no output or that get no evidence, and ``UnsupportedFeature`` if the model
    lacks the named source. ``None`` if nothing asks for evidence.
    """
    outputs = deciding_outputs(signature.spec)
    rules = check_decisions(rules, f"calling {owner}")
    check_rules(rules, outputs, owner)
    asked = dict(options or {})
    source = _source(lm, given, asked, bool(rules)) if outputs else None
    if source is None:
        if rules:
            raise ConfigurationError(
                f"{owner} has a rule for {min(rules)}, and nothing gives evidence (calling {lm.model}). "
                'Set evidence="auto", or remove the rule from decisions.'
            )
        return None, signature, dict(options) if options else None
    deciding = Deciding(source, outputs, rules, signature)
    if any(output.made_by is not None for output in outputs):
        signature = _asked_signature(signature, outputs)
    defaults: Mapping[str, Any] = getattr(lm, "kwargs", None) or {}
    if source == "logprob":
        top = asked.get("top_logprobs") or defaults.get("top_logprobs") or 20
        deciding.options = {"logprobs": True, "top_logprobs": top}
    elif source == "sampled":
        count = asked.get("n") or defaults.get("n") or 5
        if not isinstance(count, int) or count < 2:
            raise ConfigurationError(f'n={count!r:.20} gives no frequencies (evidence="sampled"). Set n to 2 or more.')
        asked["n"] = count
        if asked.get("temperature", defaults.get("temperature")) == 0:
            deciding.warnings = (
                LMWarning("evidence", "answers of temperature 0 are equal, so their frequencies measure nothing"),
            )
    elif source == "stated":
        deciding.stated, signature = stated_name(signature), stated_signature(signature, outputs)
    elif any(model.capabilities.decides == "also" for model in _models_of(lm)):
        deciding.options = {"evidence": True}
    return deciding, signature, asked


@lru_cache(maxsize=256)
def _asked_signature(signature: SignatureClass, outputs: tuple[DecidingOutput, ...]) -> SignatureClass:
    """Return the signature with the types that are asked in place of classes whose values hold their evidence."""
    for output in outputs:
        if output.made_by is not None:
            kind = output.made_by.decided_type
            signature = signature.with_updated_fields(output.path, or_none(kind) if output.allows_none else kind)
    return signature


def measured_only(signature: SignatureClass) -> Deciding:
    """Return how a call that asks for no evidence keeps that of a backend that gives it unasked."""
    return Deciding("measured", deciding_outputs(signature.spec), {}, signature)


def check_rules(rules: Mapping[str, object], outputs: Iterable[DecidingOutput], owner: str) -> None:
    """Raise ``ConfigurationError``, naming the path, for a rule that fits no output."""
    by_path = {output.path: output for output in outputs}
    for path, rule in rules.items():
        if path not in by_path:
            known = ", ".join(by_path) or "none"
            raise ConfigurationError(
                f"{owner} has no deciding output {path!r} (reading decisions). {suggest(str(path), by_path)}They are: {known}."
            )
        if not isinstance(rule, DecisionRule):
            raise ConfigurationError(
                f"decisions[{path!r}] is a DecisionRule, not {type(rule).__name__} (reading decisions). "
                "Write DecisionRule(threshold=0.8)."
            )
        rule.check(by_path[path])


def _source(
    lm: LanguageModel, given: EvidenceOption, options: Mapping[str, Any], has_rules: bool
) -> EvidenceSource | None:
    """Return the source of a call: one that each model has which the request may be sent to."""
    decides = lm.capabilities.decides
    if given is None:
        return "measured" if decides == "only" or (has_rules and decides == "also") else None
    # A request for texts is not sent to a model that decides only. What a text model answers for one that decides has no
    # evidence, and a warning.
    models = [model for model in _models_of(lm) if model.capabilities.decides != "only"] if decides == "no" else [lm]
    if given != "auto":
        for model in models:
            if problem := _problem(model, given, options):
                raise _refused(model, *problem)
        return given
    if decides != "no":
        return "measured"
    return "stated" if any(_no_logprobs(model, options, is_guess=True) for model in models) else "logprob"


def _models_of(lm: LanguageModel) -> list[LanguageModel]:
    """Return the models that may answer a call: a model and its fallbacks, or the targets of a router."""
    targets: Any = getattr(lm, "targets", None)
    return [lm] if targets is None else [target.lm for target in targets()]


def _problem(lm: LanguageModel, source: str, options: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return what a model lacks for a source, and what to do; ``None`` if it has the source."""
    decides = lm.capabilities.decides
    if source == "measured":
        instead = 'Use evidence="auto", or a model that decides.'
        return ("answers with texts only", instead) if decides == "no" else None
    if decides == "only":
        return "answers with distributions only", 'Use evidence="measured".'
    if source == "logprob" and (why := _no_logprobs(lm, options, is_guess=False)):
        return f"gives no logprobs: {why}", 'Use evidence="stated", or "sampled".'
    return None


def _refused(lm: LanguageModel, what: str, instead: str) -> UnsupportedFeature:
    return UnsupportedFeature(f"{lm.model} {what.rstrip('.')} (choosing evidence). {instead}")


def _no_logprobs(lm: LanguageModel, options: Mapping[str, Any], *, is_guess: bool) -> str | None:
    """Return why a model gives no log probabilities; ``None`` if it gives them. ``is_guess``: without its word, it does not."""
    find: Any = getattr(lm, "logprobs_refusal", None)
    if find is None:
        return "it is no LM of sigwire" if is_guess else None
    refusal: str | None = find(Request((Message.user("?"),), options={**options, "logprobs": True, "top_logprobs": 1}))
    return refusal


def load_decisions(
    state: Mapping[str, object], signature: SignatureClass
) -> tuple[EvidenceOption, dict[str, DecisionRule]]:
    """Decode the source of evidence and the rules. Raises ``StateError`` for other data, ``ConfigurationError`` for paths."""
    saved: object = state.get("decisions") or {}
    if not is_mapping(saved):
        raise StateError("decisions are an object of rules by path.")
    rules = {path: DecisionRule.from_json(rule) for path, rule in saved.items()}
    check_rules(rules, deciding_outputs(signature.spec), "the saved predictor")
    return check_evidence(state.get("evidence"), "loading a predictor"), rules


# --- values ------------------------------------------------------------------------------------------

_MISSING = object()


def _at(row: Any, steps: Sequence[str]) -> Any:
    for step in steps:
        if isinstance(row, Mapping):
            row = cast("Mapping[str, Any]", row).get(step, _MISSING)
        else:
            row = getattr(row, step, _MISSING)
        if row is _MISSING:
            return _MISSING
    return row


def _value_at(row: Any, output: DecidingOutput) -> Any:
    """Return the value of an output, of a member whether the list has it; ``_MISSING`` if the answer lacks its place."""
    found = _at(row, output.steps)
    if output.member is UNSET or found is _MISSING:
        return found
    return is_array(found) and index_of(found, output.member) is not None


def _set(fields: dict[str, Any], steps: Sequence[str], value: Any) -> None:
    name, *rest = steps
    fields[name] = _with(fields[name], rest, value) if rest else value


def _with(owner: Any, steps: Sequence[str], value: Any) -> Any:
    """Return a copy of a model, dataclass or dict with another value at a place inside."""
    name, *rest = steps
    before: Any = owner[name] if is_mapping(owner) else getattr(owner, name)
    if rest:
        value = _with(before, rest, value)
    if value is before or (type(value) is type(before) and value == before):
        return owner
    if is_mapping(owner):
        return {**owner, name: value}
    if hasattr(owner, "model_copy"):
        return owner.model_copy(update={name: value})
    return dataclasses.replace(owner, **{name: value})


def _measured(choice: Choice, outputs: Iterable[DecidingOutput]) -> dict[str, LabelReading]:
    readings: dict[str, LabelReading] = {}
    for output in outputs:
        key = ".".join(output.keys) + output.path.removeprefix(".".join(output.steps))
        data: Any = (choice.evidence or {}).get(key)
        found = read_evidence(data, output)
        if found is None and is_mapping(data) and data.get("refused"):
            continue  # the wire warned of it
        if found is None:
            readings[output.path] = LabelReading(problem="the answer has no numbers for it")
        else:
            readings[output.path] = LabelReading(
                found.probabilities, answered=found.answered, confidence=found.confidence
            )
    return readings


def _votes(rows: _Rows, output: DecidingOutput) -> list[Any]:
    values = [value for row in rows if (value := _value_at(row, output)) is not _MISSING]
    if not output.is_mean:
        return values
    return [
        min(max(int(value + 0.5), 0), len(output.values) - 1) for value in values
    ]  # a level that the model wrote as a mean


def _sampled(rows: _Rows, output: DecidingOutput) -> LabelReading:
    shares = share_of_values(_votes(rows, output), output.values)
    return LabelReading(shares) if any(shares) else LabelReading(problem="no answer has a value of it")


def _count(outcomes: Sequence[ParsedChoice], output: DecidingOutput) -> int:
    return sum(
        index_of(output.values, each) is not None for each in _votes([outcome.fields for outcome in outcomes], output)
    )


# --- streams -----------------------------------------------------------------------------------------


class _Holder:
    """A reader of a streamed response that keeps the events of some fields back."""

    def __init__(self, reader: EventReader, names: frozenset[str]) -> None:
        self._reader, self._names = reader, names
        self._place: tuple[str, int | None] | None = None

    def feed(self, event: Any) -> Iterable[ProgramEvent]:
        return self._without(self._reader.feed(event))

    def close(self) -> Iterable[ProgramEvent]:
        return self._without(self._reader.close())

    def _without(self, events: Iterable[ProgramEvent]) -> list[ProgramEvent]:
        kept: list[ProgramEvent] = []
        for event in events:
            if getattr(event, "field", None) in self._names:
                self._place = event.path, getattr(event, "turn", None)
            else:
                kept.append(event)
        return kept

    def release(self, plan: Plan, fields: Mapping[str, Any], choice: int) -> list[ProgramEvent]:
        """Return the events of the values that were decided."""
        from sigwire.adapters.field_events import FieldEvents
        from sigwire.adapters.streaming.text_fields import emit_value

        if self._place is None:
            return []
        events = FieldEvents(*self._place, choice)
        for name, codec in plan.setup.written.outputs:
            if name in self._names and name in fields:
                emit_value(codec, fields[name], events)
        return events.take()
