"""The repr and card of predictors: the signature as a line, demos, options, the model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import islice

from sigwire.core.cards.values import option_parts
from sigwire.core.evidence import DecisionRule
from sigwire.core.narrow import is_mapping
from sigwire.core.record import Record
from sigwire.modules.predict import Predict
from sigwire.show.card import Card
from sigwire.show.cleaning import inline
from sigwire.show.lines import CardLine, ValueLine
from sigwire.show.numbers import count
from sigwire.show.values import call_line, short_repr
from sigwire.signatures.cards.signatures import signature_card

__all__ = ["model_text", "predictor_card", "predictor_line"]

_MOST_DEMOS = 5


def predictor_line(predictor: Predict[..., object]) -> str:
    """Return ``Predict('message -> topic, order', demos=4, temperature=0.2)``."""
    demos = [f"demos={len(predictor.demos)}"] if predictor.demos else []
    demos += [f"evidence={predictor.evidence!r}"] if predictor.evidence else []
    signature = short_repr(predictor.signature.signature, 300)
    return call_line(type(predictor).__name__, [signature, *demos, *option_parts(predictor.config)])


def predictor_card(predictor: Predict[..., object]) -> Card:
    """Return the card of a predictor."""
    options = ", ".join(option_parts(predictor.config))
    rows: list[tuple[str, list[CardLine]]] = [
        ("model", [model_text(predictor.lm)]),
        ("options", [ValueLine(options, is_code=True)] if options else []),
        ("re-asks", [str(predictor.max_reasks)] if predictor.max_reasks else []),
        ("tool texts", [inline(", ".join(predictor.tool_texts))] if predictor.tool_texts else []),
        ("demos", [str(len(predictor.demos))] if predictor.demos else []),
        ("evidence", [predictor.evidence] if predictor.evidence else []),
        ("decisions", [ValueLine(_rule_text(path, rule), is_code=True) for path, rule in predictor.decisions.items()]),
    ]
    children = [signature_card(predictor.signature), *_demo_cards(predictor)]
    shown = [(label, lines) for label, lines in rows if lines]
    return Card(type(predictor).__name__, predictor.signature.signature, shown, children=children)


def _rule_text(path: str, rule: DecisionRule) -> str:
    numbers = ", ".join(f"{name}={short_repr(value)}" for name, value in rule.to_json().items())
    return f"{inline(path, 60)}: {numbers or 'the default rule'}"


def model_text(lm: object) -> str:
    """Return the name of a predictor's model.

    >>> model_text(None)
    'of the settings'
    """
    return "of the settings" if lm is None else inline(getattr(lm, "model", None) or type(lm).__name__)


def _demo_cards(predictor: Predict[..., object]) -> Iterator[Card]:
    if predictor.demos:
        shown = [_demo_row(demo) for demo in islice(predictor.demos, _MOST_DEMOS)]
        yield Card(count(len(predictor.demos), "demo"), rows=[(str(at), [text]) for at, text in enumerate(shown)])


def _demo_row(demo: object) -> ValueLine:
    fields: Mapping[str, object] = demo.__dict__ if isinstance(demo, Record) else demo if is_mapping(demo) else {}
    return ValueLine(", ".join(f"{inline(name, 60)}={short_repr(value)}" for name, value in islice(fields.items(), 20)))
