"""Metrics of tool calls: the calls of a prediction against those that its example expects, with feedback per call.

``calls_of`` reads the calls of a prediction: all steps of an agent's run, without its submit call, or the ``ToolCalls`` of a
``Predict``. ``pair_calls`` pairs expected with made calls, in any order as many as can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Literal, TypeAlias, cast

from sigwire.core.json import JsonObject
from sigwire.core.narrow import is_items
from sigwire.core.record import Record, list_fields
from sigwire.core.tools.calls import ToolCall, ToolCalls
from sigwire.errors import ConfigurationError, InputError
from sigwire.evaluate.metrics.answers import ScoreMetric
from sigwire.evaluate.metrics.reading import read_field
from sigwire.evaluate.metrics.structured import differences
from sigwire.evaluate.scores import Score
from sigwire.modules.agents.run import AgentRun

__all__ = ["ArgumentRule", "calls_of", "pair_calls", "score_calls", "tool_call_match"]

ArgumentRule: TypeAlias = "Literal['exact', 'subset', 'ignore'] | Callable[[JsonObject, JsonObject], bool]"
"""How arguments are compared; a function gets the expected arguments and the made ones."""
_Fits: TypeAlias = Callable[[ToolCall, ToolCall], bool]


def tool_call_match(
    names: bool = True,
    arguments: ArgumentRule = "exact",
    order: bool = False,
    *,
    field: str | None = None,
    expected: str = "tool_calls",
) -> ScoreMetric:
    """Return a metric: 1 if the prediction's calls are the expected ones, each once, and there is no further call.

    ``names=False`` compares arguments only. ``arguments``: "exact" (equal as JSON), "subset" (a call may have further
    arguments), "ignore", or a function of the expected and the made arguments. ``order=True``: the calls are in the expected
    order; else in any order. ``expected`` names the field of the example: ``ToolCalls``, or a list of calls or of ``{"name",
    "args"}`` dicts, empty if no call is right. ``field`` names the output with the calls; by default all calls of the
    prediction count (see ``calls_of``). The feedback lists missing, wrong and needless calls; subscores are ``precision`` and
    ``recall`` of the calls.

    >>> from sigwire.core.example import Example, Prediction
    >>> example = Example(tool_calls=[{"name": "search", "args": {"q": "tea"}}])
    >>> made = Prediction(tool_calls=ToolCalls([{"name": "lookup", "args": {"q": "tea"}}]))
    >>> tool_call_match()(example, made).feedback
    "expected search(q='tea'), got lookup(q='tea')"
    """
    fits = _fits(names, _argument_rule(arguments))

    def tool_call_match_metric(example: object, pred: object, trace: object = None) -> Score:
        wanted = _read_calls(read_field(example, expected, "tool_call_match"), f"example.{expected}")
        return score_calls(wanted, calls_of(pred, field), fits, order=order)

    tool_call_match_metric.__name__ = "tool_call_match"
    return tool_call_match_metric


def calls_of(prediction: object, field: str | None = None) -> Sequence[ToolCall]:
    """Return the tool calls of a prediction: of its ``field``, of all steps of an agent, or of every ``ToolCalls`` output.

    The submit call of an agent is left out. Raises ``InputError`` for a prediction without such a field.

    >>> from sigwire.core.example import Prediction
    >>> calls_of(Prediction(answer="4", tool_calls=ToolCalls([{"name": "add"}])))[0].name
    'add'
    """
    if field is not None:
        return _read_calls(read_field(prediction, field, "of tool calls"), field)
    if isinstance(prediction, ToolCalls):
        return prediction
    run = _run_of(prediction)
    return _calls_of_outputs(prediction) if run is None else _calls_of_run(run)


def score_calls(wanted: Sequence[ToolCall], made: Sequence[ToolCall], fits: _Fits, *, order: bool = False) -> Score:
    """Return the score of made calls: 1 if ``fits`` pairs each with an expected one, and feedback otherwise."""
    pairs = pair_calls(wanted, made, fits, order=order)
    is_match = len(pairs) == len(wanted) == len(made)
    subscores = {
        "precision": len(pairs) / len(made) if made else float(not wanted),
        "recall": len(pairs) / len(wanted) if wanted else float(not made),
    }
    if is_match:
        return Score(1.0, "", subscores)
    return Score(0.0, "; ".join(_feedback(wanted, made, pairs, fits)), subscores)


def pair_calls(
    wanted: Sequence[ToolCall], made: Sequence[ToolCall], fits: _Fits, *, order: bool = False
) -> Mapping[int, int]:
    """Return the positions of expected calls with those of the made calls that fit: as many pairs as possible.

    >>> add, sub = ToolCall("a", "add", {}), ToolCall("b", "sub", {})
    >>> def same_name(wanted: ToolCall, made: ToolCall) -> bool:
    ...     return wanted.name == made.name
    >>> pair_calls([add, sub], [sub, add], same_name), pair_calls([add, sub], [sub, add], same_name, order=True)
    ({0: 1, 1: 0}, {0: 1})
    """
    table = [[at for at, call in enumerate(made) if fits(each, call)] for each in wanted]
    return _pairs_in_order(table, len(made)) if order else _pairs(table)


def _pairs(table: Sequence[Sequence[int]]) -> dict[int, int]:
    """Return a largest matching (H. W. Kuhn, Naval Research Logistics Quarterly 2, 1955): augmenting paths."""
    taken: dict[int, int] = {}  # made -> wanted

    def find(wanted: int, tried: set[int]) -> bool:
        for made in table[wanted]:
            if made not in tried:
                tried.add(made)
                if made not in taken or find(taken[made], tried):
                    taken[made] = wanted
                    return True
        return False

    for wanted in range(len(table)):
        find(wanted, set())
    return dict(sorted((wanted, made) for made, wanted in taken.items()))


def _pairs_in_order(table: Sequence[Sequence[int]], made: int) -> dict[int, int]:
    """Return a longest common subsequence: pairs whose positions rise on both sides."""
    best: list[tuple[tuple[int, int], ...]] = [()] * (made + 1)  # by the number of made calls that may be used
    for wanted, fitting in enumerate(table):
        before, best = best, best[:1]
        for at in range(made):
            paired = (*before[at], (wanted, at)) if at in fitting else ()
            best.append(max((before[at + 1], best[at], paired), key=len))
    return dict(best[made])


# --- how calls are compared --------------------------------------------------------------------------


def _argument_rule(rule: object) -> Callable[[JsonObject, JsonObject], bool]:
    if callable(rule):
        return cast("Callable[[JsonObject, JsonObject], bool]", rule)
    if not isinstance(rule, str) or rule not in _ARGUMENT_RULES:
        known = ", ".join(map(repr, _ARGUMENT_RULES))
        raise ConfigurationError(f"arguments is one of {known}, or a function of two dicts, not {rule!r:.80}.")
    return _ARGUMENT_RULES[rule]


def _is_subset(wanted: JsonObject, made: JsonObject) -> bool:
    return wanted.keys() <= made.keys() and _is_same(wanted, {name: made[name] for name in wanted})


def _is_same(wanted: JsonObject, made: JsonObject) -> bool:
    return next(differences(wanted, made), None) is None


_ARGUMENT_RULES: Mapping[str, Callable[[JsonObject, JsonObject], bool]] = {
    "exact": _is_same,
    "subset": _is_subset,
    "ignore": lambda wanted, made: True,
}


def _fits(names: bool, rule: Callable[[JsonObject, JsonObject], bool]) -> _Fits:
    def fits(wanted: ToolCall, made: ToolCall) -> bool:
        if (names and wanted.name != made.name) or wanted.arguments is None:
            return False
        if made.arguments is None:  # the model's text was no object
            return rule is _ARGUMENT_RULES["ignore"]
        return bool(rule(wanted.arguments, made.arguments))

    return fits


# --- reading and showing calls -----------------------------------------------------------------------


def _run_of(prediction: object) -> AgentRun | None:
    try:
        return AgentRun.of(prediction)
    except InputError:
        return None


def _calls_of_run(run: AgentRun) -> list[ToolCall]:
    """Return the calls of all steps. The submit tool is "submit", or has a longer name if a tool of the user is."""
    last = run.steps[-1].results if run.steps and run.termination_reason == "submit" else ()
    submit = next((each.name for each in last if each.name.startswith("submit") and not each.is_error), "submit")
    return [call for step in run.steps for call in step.calls if call.name != submit]


def _calls_of_outputs(prediction: object) -> list[ToolCall]:
    if not isinstance(prediction, Record):
        raise InputError(f"Tool calls are read from a prediction, not from {type(prediction).__name__}.")
    found = [value for value in prediction.__dict__.values() if isinstance(value, ToolCalls)]
    if not found:
        raise InputError(
            f"The prediction has no output of type ToolCalls; {list_fields(prediction)}. Pass the name of the field with calls."
        )
    return [call for calls in found for call in calls]


def _read_calls(given: object, where: str) -> Sequence[ToolCall]:
    if given is None or isinstance(given, ToolCalls):
        return given or ()
    if not is_items(given):
        raise InputError(f"{where} has tool calls: ToolCalls or a list of calls, not {given!r:.80}.")
    return ToolCalls(given)


def _feedback(
    wanted: Sequence[ToolCall], made: Sequence[ToolCall], pairs: Mapping[int, int], fits: _Fits
) -> Iterator[str]:
    """Yield a sentence for each call that is missing, wrong or needless, or for a wrong order."""
    if len(wanted) == len(made) == len(pair_calls(wanted, made, fits)):
        yield f"expected the order {_names(wanted)}, got {_names(made)}"
        return
    missing = [call for at, call in enumerate(wanted) if at not in pairs]
    needless = [call for at, call in enumerate(made) if at not in pairs.values()]
    if not wanted or not made:
        yield f"expected {_all_shown(missing)}, got {_all_shown(needless)}"
        return
    yield from _differences(missing, needless)


def _differences(missing: Sequence[ToolCall], needless: list[ToolCall]) -> Iterator[str]:
    """Yield a sentence for each missing call, with the call made in its place, and for the needless ones."""
    for call in missing:
        instead = _instead(call, missing, needless)
        if instead is None:
            yield f"missing {_shown(call)}"
        else:
            needless.remove(instead)
            yield f"expected {_shown(call)}, got {_shown(instead)}"
    yield from (f"needless {_shown(call)}" for call in needless)


def _instead(call: ToolCall, missing: Sequence[ToolCall], needless: Sequence[ToolCall]) -> ToolCall | None:
    """Return the call that was probably made instead of one: of the same name, or of a name that no other one misses."""
    names = {each.name for each in missing}
    others = (each for each in needless if each.name not in names)
    return next((each for each in needless if each.name == call.name), None) or next(others, None)


def _all_shown(calls: Iterable[ToolCall]) -> str:
    return " and ".join(map(_shown, calls)) or "no call"


def _names(calls: Iterable[ToolCall]) -> str:
    return ", ".join(call.name for call in calls)


def _shown(call: ToolCall) -> str:
    if call.arguments is None:
        return f"{call.name}({call.raw_arguments or ''!s:.80}), whose arguments are not a JSON object"
    arguments = ", ".join(f"{name}={value!r:.60}" for name, value in call.arguments.items())
    error = f" ({call.error.message})" if call.error is not None else ""
    return f"{call.name}({arguments:.300}){error}"
