"""``SearchOptions``, the options of every optimizer, and their checks."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from sigwire.core.example import Example
from sigwire.core.narrow import is_items
from sigwire.errors import ConfigurationError, suggest
from sigwire.lm.policy.money.budget import Budget
from sigwire.optimizers.events import SearchEvent
from sigwire.optimizers.judge import Strategy
from sigwire.optimizers.objectives import are_objectives
from sigwire.optimizers.operators.labels import Labels, read_choices
from sigwire.optimizers.progress import ProgressMode

if TYPE_CHECKING:
    from sigwire.jobs.submissions import ExecutorLike

__all__ = ["FAMILIES", "TUNES", "SearchOptions", "check_search_options", "fixed_passages", "labels_of"]

TUNES = frozenset({"instructions", "demos", "fields", "tools"})
"""The families of texts that change by default, and demos."""
FAMILIES = TUNES | {"tool_names", "decisions"}


class SearchOptions(TypedDict, total=False):
    """Options of every optimizer, by keyword.

    ``seed`` (0): the same seed and the same answers give the same program for any number of threads. ``budget``: a number of
    calls to models, or a ``Budget``; when it is spent, the best candidate until then is returned. ``journal``: a file from
    which the same call resumes after it was killed. ``confidence`` (0.9): how sure a candidate must be better than the student
    to be kept; ``strategy="greedy"`` keeps the highest mean. ``if_worse``: "keep_student" (default) or "return", for a winner
    that is not shown to be better. ``errors``: "raise" (default) or "score", for exceptions of the metric and the program.
    ``hold_out`` (0.0): the share of the validation rows, or of the training rows without them, that no candidate is chosen by;
    it measures the gain as a ``testset`` does. ``tune``: what may change, of "instructions", "demos", "fields", "tools",
    "tool_names" and "decisions" (the numbers of ``Calibrate``). ``timeout``: seconds of a run.
    ``on_event``: called with each event of the search. ``executor``: runs programs on the processes of a PEP 3148 executor, or
    of the one that a function makes, ``num_threads`` at once in each; see ``Evaluate``. ``reuse`` (True): a question that the
    search asked before for the same row, repetition and place is not asked again, also for another candidate; ``False`` asks
    always, as do runs on an executor. ``progress`` ("auto"): a line in a terminal, one output in a notebook, else a log line
    for each trial; "line", "log", False or a function, which gets a ``SearchProgress`` after each run. ``objectives``: "score"
    (the headline), metrics and subscores by name, "cost", "tokens", "calls" and "seconds", which are better if smaller; the
    headline decides what ``compile`` returns, and ``report.front`` has the candidates that none beats in all. ``must_hold``:
    validation examples, or a function of one, on which no program may be returned that is worse than the student: a row with a
    lower score runs twice more, and the median decides. ``fixed_texts``: passages that stay in each text that
    has them; a proposal without one is refused before a run. ``choices``: models, adapters and options of requests by label,
    such as ``{"model": {"mini": lm}, "temperature": [0, 1]}``, of ``MIPROv2``, ``BootstrapFewShotWithOptuna`` and ``GEPA``.
    """

    seed: int
    budget: Budget | int | None
    journal: str | os.PathLike[str] | None
    confidence: float
    strategy: Strategy
    if_worse: str
    hold_out: float
    errors: str
    tune: Collection[str]
    timeout: float | None
    on_event: Callable[[SearchEvent], object] | None
    executor: ExecutorLike | None
    reuse: bool
    progress: ProgressMode
    objectives: Sequence[str]
    must_hold: Sequence[Example] | Callable[[Example], object]
    fixed_texts: Sequence[str]
    choices: Mapping[str, Mapping[str, Any] | Sequence[Any]]


def _are_rows(given: object) -> bool:
    rows = given if is_items(given) else ()
    return callable(given) or (bool(rows) and all(isinstance(each, Example) for each in rows))


def _are_passages(given: object) -> bool:
    return is_items(given) and all(isinstance(each, str) and each.strip() for each in given)


_CHECKS: Mapping[str, tuple[Callable[[Any], bool], str]] = {
    "seed": (lambda given: isinstance(given, int), "a whole number"),
    "confidence": (lambda given: 0.5 <= given < 1, "a number from 0.5 to 1"),
    "strategy": (lambda given: given in ("paired", "greedy"), '"paired" or "greedy"'),
    "if_worse": (lambda given: given in ("keep_student", "return"), '"keep_student" or "return"'),
    "hold_out": (lambda given: 0 <= given < 1, "a share from 0 to below 1"),
    "errors": (lambda given: given in ("raise", "score"), '"raise" or "score"'),
    "tune": (lambda given: not isinstance(given, str) and set(given) <= FAMILIES, f"some of {sorted(FAMILIES)}"),
    "objectives": (are_objectives, 'distinct names, such as ("score", "tokens")'),
    "fixed_texts": (_are_passages, "a list of passages of the program's texts"),
    "must_hold": (_are_rows, "a list of validation examples, or a function of one"),
    "timeout": (lambda given: given is None or given > 0, "seconds, above 0"),
    "executor": (
        lambda given: given is None or callable(given) or hasattr(given, "submit"),
        "a PEP 3148 executor or a function that makes one",
    ),
    "on_event": (lambda given: given is None or callable(given), "a function of an event"),
    "reuse": (lambda given: isinstance(given, bool), "True or False"),
    "progress": (
        lambda given: given is None or isinstance(given, (bool, str)) or callable(given),
        "a mode, True, False or a function",
    ),
}


def check_search_options(owner: str, search: SearchOptions, parameters: Collection[str]) -> None:
    """Raise ``ConfigurationError`` for an unknown option and for a wrong value. ``parameters``: those of the constructor."""
    known = SearchOptions.__annotations__
    for option, given in search.items():
        if option not in known:
            own = {*parameters} - {"self", "search"}
            hint = suggest(option, own | known.keys())
            raise ConfigurationError(
                f"{owner} has no option {option!r} (making it). {hint}Its options are {', '.join(sorted(own))}, and those "
                f"of every optimizer: {', '.join(sorted(known))}."
            )
        fits, wanted = _CHECKS.get(option, (_anything, ""))
        if not _fits(fits, given):
            raise ConfigurationError(f"{option} is {wanted}, not {given!r:.80} (making {owner}).")


def labels_of(owner: str, search: SearchOptions, *, draws: bool) -> Labels:
    """Return the choices of a search. Raises ``ConfigurationError`` if its optimizer does not draw labels."""
    given = search.get("choices") or {}
    if given and not draws:
        raise ConfigurationError(
            f"{owner} has no choices (making it). MIPROv2, BootstrapFewShotWithOptuna and GEPA choose models, adapters and "
            "options."
        )
    return read_choices(given)


def fixed_passages(passages: Sequence[str], texts: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the passages that each text of the student has. Raises ``ConfigurationError`` for one that no text has."""
    for passage in passages:
        if not any(passage in text for text in texts.values()):
            raise ConfigurationError(
                f"No text of the program has the fixed passage {passage!r:.200} (compiling). Write it as the program has it, "
                "or put it into an instruction."
            )
    found = {slot: tuple(each for each in passages if each in text) for slot, text in texts.items()}
    return {slot: kept for slot, kept in found.items() if kept}


def _anything(given: object) -> bool:
    return True


def _fits(check: Callable[[Any], bool], given: object) -> bool:
    try:
        return check(given)
    except TypeError:  # not comparable with a number
        return False
