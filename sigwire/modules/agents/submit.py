"""Submit: the tool that a model calls with the final outputs. Its parameters are the signature's outputs.

A call runs no code. The arguments are parsed like any answer, and the problems of each field are returned to the model.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass
from itertools import chain, count, takewhile

from sigwire.adapters.values.codecs import FieldCodec
from sigwire.adapters.values.output_schema import output_schema
from sigwire.core.tools.calls import ToolCall
from sigwire.core.tools.tool import Tool
from sigwire.errors import ValueReadError
from sigwire.signatures.fields import SignatureSpec

__all__ = ["SUBMIT_NAMES", "Submission", "Submit"]

_MOST_UNKNOWN = 8  # names in one rejection
SUBMIT_NAMES = ("submit", "submit_answer", "submit_final_answer")


@dataclass(frozen=True, slots=True)
class Submission:
    """The parsed arguments of a call: the outputs, or a text for the model with their problems."""

    outputs: dict[str, object] | None
    problem: str = ""


class Submit:
    """The submit tool of a signature. Its name is the first of ``submit``, ``submit_answer``, ... that is not ``taken``.

    >>> from sigwire.signatures import Signature
    >>> submit = Submit(Signature("question -> answer: int").spec, taken=["submit"])
    >>> submit.name, submit.read(ToolCall("call_0", "submit_answer", {"answer": 4})).outputs
    ('submit_answer', {'answer': 4})
    >>> submit.read(ToolCall("call_0", "submit_answer", {"result": 4})).problem
    'Rejected. answer: missing; result: not an output field. Call submit_answer again with the output fields: answer.'
    """

    def __init__(self, spec: SignatureSpec, taken: Container[str] = ()) -> None:
        self._spec, self.name = spec, next(name for name in _candidates() if name not in taken)
        self.codecs = {field.name: FieldCodec(field) for field in spec.outputs}
        self.tool = Tool.from_schema(
            self.name, "Submit the final output fields and end the task.", output_schema(spec.outputs), tunable=False
        )

    def __reduce__(self) -> tuple[type[Submit], tuple[object, ...]]:
        earlier = list(takewhile(lambda name: name != self.name, _candidates()))
        return Submit, (self._spec, earlier)  # validators cannot be pickled

    def __deepcopy__(self, memo: object) -> Submit:
        return self  # it has no state

    def read(self, call: ToolCall) -> Submission:
        """Parse the arguments of a call as outputs."""
        if call.error is not None or call.arguments is None:
            return self._rejection([call.error.message if call.error else "the arguments are not an object"])
        outputs: dict[str, object] = {}
        problems: list[str] = []
        for name, codec in self.codecs.items():
            try:
                outputs[name] = codec.load_member(call.arguments, missing="missing").value
            except ValueReadError as error:
                problems.append(f"{name}: {error}")
        unknown = [name for name in call.arguments if name not in self.codecs]
        problems += [f"{name[:60]}: not an output field" for name in unknown[:_MOST_UNKNOWN]]
        return self._rejection(problems) if problems else Submission(outputs)

    def _rejection(self, problems: list[str]) -> Submission:
        names = ", ".join(self.codecs)
        return Submission(
            None, f"Rejected. {'; '.join(problems)}. Call {self.name} again with the output fields: {names}."
        )


def _candidates() -> Iterator[str]:
    return chain(SUBMIT_NAMES, (f"{SUBMIT_NAMES[-1]}_{number}" for number in count(2)))
