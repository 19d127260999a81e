"""``CodeResult``: the result of one run of code."""

from __future__ import annotations

from dataclasses import dataclass, field

from sigwire.core.json import JsonValue, Value

__all__ = ["CodeResult"]


@dataclass(frozen=True, slots=True)
class CodeResult(Value):
    """The result of one run of code.

    ``value`` of the last expression, or the one of ``EndCode``: JSON; an object without a JSON form is its ``repr``.
    ``output``: the printed text. ``error``: the traceback as Python shows it, with lines of the code only; "" if there is none.
    ``calls``: host calls that were made. ``seconds`` of execution, without the time of host calls.
    ``is_lost``: whether the variables of the session are lost.

    >>> CodeResult(value=42, output="n = 42\\n").to_json()
    {'value': 42, 'output': 'n = 42\\n'}
    """

    value: JsonValue = None
    output: str = ""
    error: str = ""
    calls: int = 0
    seconds: float = field(default=0.0, compare=False)
    is_lost: bool = False
