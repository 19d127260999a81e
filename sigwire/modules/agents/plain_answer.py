"""The end of a run whose model answers in plain text: outputs in the adapter's layout, as JSON, or the single text output."""

from __future__ import annotations

from collections.abc import Sequence

from sigwire.adapters.plan import Plan
from sigwire.adapters.prompts.layout import Layout
from sigwire.adapters.values.lead_in import lead_in_end
from sigwire.core.capabilities import Capabilities
from sigwire.core.response import Choice
from sigwire.errors import ModelError
from sigwire.modules.agents.run import Termination
from sigwire.modules.predict import default_adapter
from sigwire.settings import current
from sigwire.signatures.fields import FieldSpec
from sigwire.signatures.signature import SignatureMeta

__all__ = ["plain_end", "plan_of_task"]


def plan_of_task(task: SignatureMeta) -> Plan:
    """Return the plan by which a plain answer to the task is read: that of a model without tools."""
    adapter = current().adapter or default_adapter()
    return adapter.plan(task, Capabilities())


def plain_end(task: SignatureMeta, outputs: Sequence[FieldSpec], choice: Choice) -> Termination:
    """Return the end of a run after a plain answer.

    >>> from sigwire.signatures import Signature
    >>> task = Signature("question -> answer")
    >>> plain_end(task, task.spec.outputs, Choice("It is 42.")).outputs
    {'answer': 'It is 42.'}
    """
    return Termination(
        "no_calls", _outputs(plan_of_task(task), outputs, choice), why="the model answered in plain text"
    )


def _outputs(plan: Plan, outputs: Sequence[FieldSpec], choice: Choice) -> dict[str, object] | None:
    if _has_layout(plan.layout, choice.text):
        return _parsed_fields(plan, choice)
    is_object = choice.text.startswith("{", lead_in_end(choice.text))
    if is_object and (fields := _parsed_fields(plan, choice)) is not None:
        return fields
    if len(outputs) != 1 or outputs[0].annotation is not str or not choice.text.strip():
        return None
    try:
        return {outputs[0].name: outputs[0].adapter.validate_python(choice.text.strip())}
    except ValueError:  # the text violates the constraints of the field
        return None


def _has_layout(layout: Layout, text: str) -> bool:
    """Return True if a text has outputs in an adapter's layout, anywhere in the text."""
    marks = (layout.text_before(name).strip() for name in layout.codecs)
    return layout.starts_outputs(text.lstrip()) or any(mark in text for mark in marks)


def _parsed_fields(plan: Plan, choice: Choice) -> dict[str, object] | None:
    try:
        return plan.parse(choice).fields
    except ModelError:
        return None
