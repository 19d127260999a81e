"""``Predict.fields``: by output a threshold, cuts or weights, and instructions and criteria, as rules and types of the core."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sigwire.core.evidence import DecisionRule, label_of
from sigwire.core.json import JsonObject
from sigwire.core.narrow import is_mapping, is_sequence
from sigwire.core.record import UNSET
from sigwire.dspy.decisions.values import asked_type, dspy_label, json_text
from sigwire.errors import ConfigurationError
from sigwire.signatures.criteria import DecidingOutput, deciding_outputs, or_none
from sigwire.signatures.declarations import OutputField
from sigwire.signatures.signature import SignatureClass

__all__ = [
    "FieldConfigs", "check_fields", "configured_signature", "criteria_of_output", "field_of", "outputs_of", "with_output",
]  # fmt: skip

FieldConfigs = Mapping[str, Mapping[str, Any]]
_NUMBERS = {"bool": "threshold", "choice": "weights", "score": "cuts"}


def outputs_of(signature: SignatureClass) -> dict[str, DecidingOutput]:
    """Return the outputs of a signature that may have a configuration, by name.

    >>> from sigwire.signatures.signature import Signature
    >>> [*outputs_of(Signature("text -> flag: bool, why: str"))]
    ['flag']
    """
    return {
        each.path: each for each in deciding_outputs(signature.spec) if len(each.steps) == 1 and each.member is UNSET
    }


def check_fields(signature: SignatureClass, fields: object) -> dict[str, DecisionRule]:
    """Return the rule of each configured output. Raises ``ConfigurationError``, which is a ``ValueError``, for a misfit.

    >>> from sigwire.signatures.signature import Signature
    >>> check_fields(Signature("text -> flag: bool"), {"flag": {"threshold": 0.8}})["flag"].threshold
    0.8
    """
    if not is_mapping(fields):
        raise _wrong("fields", f"are a mapping of configurations by output, not a {type(fields).__name__}")
    outputs = outputs_of(signature)
    rules: dict[str, DecisionRule] = {}
    for name, config in fields.items():
        if (output := outputs.get(name)) is None:
            raise _wrong(f"fields[{name!r}]", f"is of no deciding output. They are: {', '.join(outputs) or 'none'}")
        if not is_mapping(config):
            raise _wrong(f"fields[{name!r}]", f"is a mapping, not a {type(config).__name__}")
        if unknown := config.keys() - {number := _NUMBERS[output.kind], "instructions", "criteria"}:
            raise _wrong(
                f"fields[{name!r}]", f"has no {min(map(str, unknown))!r}, but {number}, instructions and criteria"
            )
        if "instructions" in config:
            json_text(f"instructions of {name!r}", config["instructions"])
        if "criteria" in config:
            _check_criteria(output, config["criteria"])
        rules[name] = _rule(output, config)
        rules[name].check(output)
    return rules


def _wrong(what: str, why: str) -> ConfigurationError:
    return ConfigurationError(f"{what} {why} (reading Predict.fields). Correct it.")


def _rule(output: DecidingOutput, config: Mapping[str, Any]) -> DecisionRule:
    where = f"fields[{output.path!r}]"
    if output.kind == "bool":
        return DecisionRule(threshold=config.get("threshold", 0.5))
    if output.kind == "score":
        given: Any = config.get("cuts", ())
        if not is_sequence(given):
            raise _wrong(where, f"has a list of cuts, not a {type(given).__name__}")
        cuts: list[Any] = list(given)
        rule, most = DecisionRule(cuts=tuple(cuts)), len(output.values) - 1
        if "cuts" in config and (len(cuts) != most or any(not 0 < cut < most for cut in cuts)):
            raise _wrong(where, f"has {most} cuts between 0 and {most}, not {cuts}")
        return rule
    weights, labels = config.get("weights", {}), {dspy_label(value): label_of(value) for value in output.values}
    if not is_mapping(weights) or not weights.keys() <= labels.keys():
        raise _wrong(where, f"has weights by label, and the labels are {', '.join(labels)}")
    return DecisionRule(weights={labels[label]: weight for label, weight in weights.items()})


def _check_criteria(output: DecidingOutput, given: Any) -> None:
    what = f"criteria of {output.path!r}"
    json_text(what, given)
    if output.kind == "score":
        fits = is_sequence(given) and len(given) == len(output.values) and None not in given
        hint = f"are a list of {len(output.values)} descriptions"
    elif output.kind == "bool":
        fits = given is None or (is_mapping(given) and given.keys() <= {"true", "false"})
        hint = 'are descriptions of "true" and "false"'
    else:
        labels = [dspy_label(value) for value in output.values]
        fits = is_mapping(given) and set[Any](given) == {*labels}
        hint = f"are descriptions of {', '.join(labels)}"
    if not fits:
        raise _wrong(what, hint)
    for each in (given.values() if is_mapping(given) else given) or ():
        json_text(what, each)


def criteria_of_output(output: DecidingOutput, config: Mapping[str, Any]) -> Any:
    """Return DSPy's criteria of an output: those of its configuration, else those of its type."""
    if "criteria" in config:
        return config["criteria"]
    if output.made_by is not None and (own := output.made_by.criteria()) is not None:
        return {label: text or None for label, text in own.items()} if output.kind == "choice" else own
    texts = {} if output.criteria is None else output.criteria.texts
    if output.kind == "score":
        assert output.criteria is not None, "a score has levels"
        return [text or label for label, text in output.criteria.levels]
    found = {label_of(v) if output.kind == "bool" else dspy_label(v): texts.get(label_of(v)) for v in output.values}
    described = {label: text for label, text in found.items() if text}
    return found if output.kind == "choice" else described or None


def configured_signature(signature: SignatureClass, fields: FieldConfigs) -> SignatureClass:
    """Return the signature with the instructions and the criteria of the configurations.

    >>> from sigwire.signatures.signature import Signature
    >>> changed = configured_signature(Signature("text -> flag: bool"), {"flag": {"instructions": "Is it relevant?"}})
    >>> changed.spec.outputs[0].description
    'Is it relevant?'
    """
    outputs = outputs_of(signature)
    for name, config in fields.items():
        output, changes = outputs[name], dict[str, Any]()
        if config.get("instructions") is not None:
            given = config["instructions"]
            changes["desc"] = given if isinstance(given, str) else json_text(f"instructions of {name!r}", given)
        if "criteria" in config:
            kind = asked_type(output.kind, output.values, config["criteria"], output.is_mean)
            signature = with_output(signature, name, or_none(kind) if output.allows_none else kind, **changes)
        elif changes:
            signature = signature.with_updated_fields(name, **changes)
    return signature


def with_output(signature: SignatureClass, name: str, kind: Any, **changes: Any) -> SignatureClass:
    """Return the signature with another type of an output; what its old type had around it goes."""
    place = [spec.name for spec in signature.spec.outputs].index(name)
    spec = signature.spec.by_name[name]
    options = {"desc": spec.description} if spec.description else {}
    if spec.default is not UNSET:
        options["default"] = spec.default
    return signature.insert(place, name, OutputField(**{**options, **changes}), kind)


def field_of(rule: DecisionRule, output: DecidingOutput) -> JsonObject:
    """Return the numbers of a rule as DSPy's configuration.

    >>> field_of(DecisionRule(weights={"b": 2}), DecidingOutput("kind", "choice", ("a", "b")))
    {'weights': {'a': 1.0, 'b': 2}}
    """
    if output.kind == "bool":
        return {"threshold": rule.threshold}
    if output.kind == "score":
        return {"cuts": [*(rule.cuts or (level + 0.5 for level in range(len(output.values) - 1)))]}
    return {"weights": {dspy_label(v): w for v, w in zip(output.values, rule.weights_of(output.values), strict=True)}}
