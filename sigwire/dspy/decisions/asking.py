"""How a call of the door's ``Predict`` gets evidence.

A model that decides is asked the questions, and a client of decisions (``TypeSafe``, or an object with
``supports_decision_requests``) about DSPy's state: fitted numbers hold for equal requests only. A model of texts writes the
probabilities in the place of the value, as in DSPy, unless ``evidence=`` names a source.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import AfterValidator, ConfigDict, with_config
from typing_extensions import TypedDict

from sigwire.adapters.evidence import LabelReading
from sigwire.core.evidence import normalized
from sigwire.core.json import JsonObject
from sigwire.core.record import UNSET
from sigwire.dspy.decisions.fields import check_fields, configured_signature, outputs_of, with_output
from sigwire.dspy.decisions.values import Probability, dspy_label
from sigwire.errors import InputError, warn_user
from sigwire.modules.deciding import Deciding, check_evidence, check_rules, prepare
from sigwire.modules.predict import CallParts, Predict
from sigwire.modules.tree import plain_records
from sigwire.signatures.annotations import nested_types
from sigwire.signatures.criteria import DecidingOutput, deciding_outputs

if TYPE_CHECKING:
    from sigwire.adapters.plan import ParsedChoice, Plan
    from sigwire.core.response import Choice
    from sigwire.lm.base import LanguageModel
    from sigwire.signatures.fields import FieldSpec
    from sigwire.signatures.signature import SignatureClass

__all__ = ["StatedInPlace", "decided_call", "declared_outputs"]


def _is_declared(spec: FieldSpec) -> bool:
    """Return True if an output is declared as a decision: by its type, or by a class among the metadata of its type."""
    kinds = (*nested_types(spec.annotation), *spec.metadata)
    return any(getattr(each, "decided_type", None) is not None for each in kinds)


@lru_cache(maxsize=512)
def declared_outputs(signature: SignatureClass) -> frozenset[str]:
    """Return the names of the outputs that are declared as decisions. Those inside of another output are a warning."""
    found = {spec.name for spec in signature.spec.outputs if _is_declared(spec)}
    if nested := sorted(found - outputs_of(signature).keys()):
        warn_user(
            f"{signature.__name__} has decisions inside of {', '.join(nested)}: the model writes value and confidence itself, "
            "and no threshold applies. Declare them as outputs."
        )
    return frozenset(found & outputs_of(signature).keys())


def decided_call(
    predict: Predict[..., Any], fields: Any, lm: LanguageModel, parts: CallParts
) -> tuple[Deciding | None, CallParts] | None:
    """Return how a call gets its evidence, and the parts of its request; ``None`` if it has no decision of DSPy's kind.

    ``fields``: the configurations of the predictor.
    """
    signature = parts.signature
    declared, is_client = declared_outputs(signature), getattr(lm, "supports_decision_requests", False) is True
    options = dict(parts.options or {})
    given = check_evidence(options.pop("evidence", predict.evidence), "calling Predict")
    is_in_place = given is None and lm.capabilities.decides == "no"
    if not fields and not declared and not is_client and not (predict.decisions and is_in_place):
        return None
    if signature is not predict.signature:
        _check_answer_space(predict.signature, signature, fields)
    rules = {**check_fields(signature, fields), **predict.decisions}
    asked = configured_signature(signature, fields)
    if not is_in_place:
        deciding, asked, changed = prepare(type(predict).__name__, asked, lm, given or "auto", rules, options)
        options = changed or {}
        if deciding is not None:
            deciding.signature = signature
            deciding.outputs = _with_classes(deciding.outputs, signature)
        if is_client:
            options["extra_body"] = {**options.get("extra_body", {}), "state": _state(parts)}
        return deciding, parts._replace(signature=asked, options=options or None)
    check_rules(rules, deciding_outputs(signature.spec), type(predict).__name__)
    names = declared | rules.keys()
    outputs = tuple(each for name, each in outputs_of(signature).items() if name in names)
    for output in outputs:
        asked = with_output(asked, output.path, _statement(output), desc=_instructions(asked, output.path))
    if parts.demos:  # a label is no distribution
        shown = json.dumps(_plain(parts.demos, signature), ensure_ascii=False)
        asked = asked.with_instructions(
            f"{asked.instructions}\n\nExamples, with labels in place of probabilities:\n{shown}"
        )
    deciding = StatedInPlace("stated", outputs, rules, signature)
    return deciding, CallParts(asked, options or None, parts.inputs, [])


def _with_classes(outputs: Sequence[DecidingOutput], signature: SignatureClass) -> tuple[DecidingOutput, ...]:
    """Return outputs with the classes of their values: criteria of a configuration replaced the type."""
    classes = {name: each.made_by for name, each in outputs_of(signature).items()}
    return tuple(replace(each, made_by=classes.get(each.path)) for each in outputs)


def _check_answer_space(own: SignatureClass, given: SignatureClass, names: Mapping[str, object]) -> None:
    before, after = outputs_of(own), outputs_of(given)
    for name in names:
        one, other = before.get(name), after.get(name)
        if one is None or other is None or _space(one) != _space(other):
            raise InputError(
                f"The signature of the call must preserve the answer space of {name!r}, which has a configuration (calling "
                "Predict). Keep its values and criteria, or make another Predict."
            )


def _space(output: DecidingOutput) -> Any:
    texts = () if output.criteria is None else (output.criteria.levels, tuple(output.criteria.texts.items()))
    typed: list[Any] = [(type(value), value) for value in output.values]
    return output.kind, typed, texts


def _plain(records: Any, signature: SignatureClass) -> list[JsonObject]:
    names = {spec.name for spec in signature.spec.fields}
    found: Any = plain_records("demos", records, signature.spec)
    return [{name: value for name, value in record.items() if name in names} for record in found]


def _state(parts: CallParts) -> JsonObject:
    """Return DSPy's state of a call, for a client of decisions."""
    spec = parts.signature.spec
    described = [
        f"{number}. `{each.name}` ({getattr(each.annotation, '__name__', each.annotation)}): {each.description}".rstrip()
        for number, each in enumerate(spec.inputs, 1)
    ]
    state: JsonObject = {
        "instructions": parts.signature.instructions,
        "input_fields": "\n".join(described),
        "inputs": _plain([parts.inputs], parts.signature)[0],
    }
    return {**state, "demos": [*_plain(parts.demos, parts.signature)]} if parts.demos else state


def _instructions(signature: SignatureClass, name: str) -> str:
    spec = signature.spec.by_name[name]
    output = outputs_of(signature).get(name)
    texts = {} if output is None or output.criteria is None else dict(output.criteria.texts)
    if output is not None and output.kind == "score" and output.criteria is not None:
        texts = {str(at): text or label for at, (label, text) in enumerate(output.criteria.levels)}
    listed = "; ".join(f"{label}: {text}" for label, text in texts.items())
    is_bool = output is not None and output.kind == "bool"
    ask = "noul is the probability that it is true." if is_bool else "Probabilities sum to 1."
    return " ".join(part for part in (spec.description, f"({listed})" if listed else "", ask) if part)


# --- probabilities in the place of a value


def _has_mass(given: Any) -> Any:
    if not sum(given.values()):
        raise ValueError("all probabilities are 0")
    return given


@lru_cache(maxsize=256)
def _statement(output: DecidingOutput) -> Any:
    """Return the type in which a model of texts writes the probabilities of an output."""
    closed, typed_dict = with_config(ConfigDict(extra="forbid")), cast("Any", TypedDict)
    if output.kind == "bool":
        return closed(typed_dict("ProbabilityOfTrue", {"noul": Probability}))
    shares: Any = typed_dict("Probabilities", dict.fromkeys(_labels(output), Probability))
    members = {"probabilities": Annotated[closed(shares), AfterValidator(_has_mass)], "confidence": Probability}
    return closed(typed_dict("Distribution", members))


def _labels(output: DecidingOutput) -> list[str]:
    return [str(value) if output.kind == "score" else dspy_label(value) for value in output.values]


@dataclass(slots=True, eq=False)
class StatedInPlace(Deciding):
    """Evidence that a model of texts writes in the place of values: ``{"noul": 0.7}``, or probabilities by label."""

    def readings(
        self,
        plan: Plan,
        choice: Choice,
        outcomes: Sequence[ParsedChoice],
        outputs: Mapping[str, tuple[DecidingOutput, Any]],
    ) -> dict[str, LabelReading]:
        """Return the distributions that were written."""
        return {path: _reading(output, written) for path, (output, written) in outputs.items()}

    def finish_row(self, row: dict[str, Any]) -> None:
        """Decide the fields of one of several answers."""
        nothing = cast("Any", None)
        row.update(self.decide(nothing, nothing, (), row).fields)


def _reading(output: DecidingOutput, written: Any) -> LabelReading:
    if output.kind == "bool":
        return LabelReading((written["noul"], 1 - written["noul"]))
    masses = [written["probabilities"][label] for label in _labels(output)]
    shares = normalized(masses)
    assert shares is not None, "the type of the statement has checked it"
    most = output.values[masses.index(max(masses))] if output.kind == "choice" else UNSET
    return LabelReading(shares, answered=most, confidence=written["confidence"])
