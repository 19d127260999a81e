"""Submit: the tool with which a model hands in the final outputs. Its parameters are the signature's outputs.

Nothing runs when it is called: the arguments are read like any answer, and what does not fit goes back by field.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from typing import Any

from sigwire.adapters.json import output_schema
from sigwire.adapters.values.codecs import FieldCodec
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.tool import Tool
from sigwire.errors import ValueReadError
from sigwire.signatures.fields import SignatureSpec

__all__ = ["Submission", "Submit"]

_NAMES = ("submit", "submit_answer", "submit_final_answer")


@dataclass(frozen=True, slots=True)
class Submission:
    """Arguments that were read: the outputs, or what is wrong with them, for the model to read."""

    outputs: dict[str, Any] | None
    problem: str = ""


class Submit:
    """The submit tool of a signature. Its name is the first of ``submit``, ``submit_answer``, ... that no other tool has.

    >>> from sigwire.signatures import Signature
    >>> submit = Submit(Signature("question -> answer: int").spec, taken=["submit"])
    >>> submit.name, submit.read(ToolCall("call_0", "submit_answer", {"answer": 4})).outputs
    ('submit_answer', {'answer': 4})
    >>> submit.read(ToolCall("call_0", "submit_answer", {"result": 4})).problem
    'Rejected. answer: missing; result: not an output field. Call submit_answer again with the output fields: answer.'
    """

    def __init__(self, spec: SignatureSpec, taken: Container[str] = ()) -> None:
        self.name = next(name for name in _candidates() if name not in taken)
        self.codecs = {field.name: FieldCodec(field) for field in spec.outputs}
        self.tool = Tool.from_schema(
            self.name, "Submit the final output fields and end the task.", output_schema(spec.outputs)
        )

    def read(self, call: ToolCall) -> Submission:
        """Read a call's arguments as outputs."""
        if call.error is not None or call.arguments is None:
            return self._refused([call.error.message if call.error else "the arguments are not an object"])
        outputs: dict[str, Any] = {}
        problems = [f"{name}: not an output field" for name in call.arguments if name not in self.codecs]
        missing: list[str] = []
        for name, codec in self.codecs.items():
            if name not in call.arguments:
                if codec.field.required:
                    missing.append(f"{name}: missing")
                else:
                    outputs[name] = codec.field.default_value() if codec.field.has_default else None
                continue
            try:
                outputs[name] = codec.load(call.arguments[name]).value
            except ValueReadError as fault:
                missing.append(f"{name}: {fault}")
        problems = missing + problems
        return self._refused(problems) if problems else Submission(outputs)

    def _refused(self, problems: list[str]) -> Submission:
        names = ", ".join(self.codecs)
        return Submission(
            None, f"Rejected. {'; '.join(problems)}. Call {self.name} again with the output fields: {names}."
        )


def _candidates() -> Any:
    yield from _NAMES
    number = 2
    while True:
        yield f"{_NAMES[-1]}_{number}"
        number += 1
