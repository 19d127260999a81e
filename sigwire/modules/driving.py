"""Run a program for its requests: its questions to models are previewed in place of sent. No tool runs.

Code of the program between two questions runs, in this context. A thread that the program starts without the context is not
seen; a model that the program calls itself, outside of a predictor, refuses.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NoReturn, Protocol, TypeAlias, cast

from sigwire.core.response import LMWarning, Response
from sigwire.effects.performing import Frame, performing
from sigwire.effects.steps import Steps, run
from sigwire.errors import BudgetSpent, ConfigurationError
from sigwire.lm.policy.money.budget import Budget
from sigwire.lm.preview.preview import AskedEvidence, Preview, preview_of
from sigwire.modules.ask import Ask
from sigwire.modules.planned_folds import planned_folds, planning
from sigwire.modules.tree.walk import Predictor
from sigwire.observe.place import running
from sigwire.settings import context

__all__ = ["PathsOf", "PreviewedProgram", "drive_program", "first_preview"]

PathsOf: TypeAlias = "Callable[[Any], Mapping[int, str]]"
"""Returns the paths of the modules inside a module, by id."""


class PreviewedProgram(Protocol):
    """The part of a module that a preview uses."""

    def call_steps(self, /, *args: object, **kwargs: object) -> Steps[Any]: ...

    def deepcopy(self) -> Any: ...

    def set_lm(self, lm: Any) -> None: ...

    def predictors(self) -> list[Any]: ...


class _PreviewMade(BaseException):
    """Ends the program at its first question. No ``except Exception`` of the program catches it."""

    def __init__(self, preview: Preview) -> None:
        self.preview = preview
        super().__init__("a preview was made")


def first_preview(
    program: PreviewedProgram, paths_of: PathsOf, args: tuple[object, ...], kwargs: dict[str, object]
) -> Preview:
    """Return the preview of the first question of a call. Raises ``ConfigurationError`` if the call asks no model."""

    def stop(ask: Ask, preview: Preview) -> NoReturn:
        raise _PreviewMade(preview)

    try:
        drive_program(program, paths_of, args, kwargs, stop)
    except _PreviewMade as made:
        return made.preview
    raise ConfigurationError(
        f"{type(program).__name__} asked no model with these inputs (making a preview). Preview a predictor of it."
    )


def drive_program(
    program: PreviewedProgram,
    paths_of: PathsOf,
    args: tuple[object, ...],
    kwargs: dict[str, object],
    answer: Callable[[Ask, Preview], Response],
) -> Any:
    """Run a call whose questions ``answer`` answers; tools return a made-up result."""
    program, kwargs, lm = _with_options(program, kwargs)
    paths = paths_of(program)

    def perform(effect: Any, frame: Frame) -> Steps[Any]:
        if isinstance(effect, Ask):
            return answer(effect, _preview_of_ask(effect, paths))
        if effect.kind == "tool":
            effect = effect.load(effect.dump(effect.settle({"result": "made up by the preview"})))
        return (yield effect)

    settings: dict[str, Any] = {
        "callbacks": [],
        "track_usage": False,
        "max_history_size": 0,
        **({} if lm is None else {"lm": lm}),
    }
    try:
        # The budget refuses the calls that no predictor makes.
        with context(**settings), performing(Frame(perform)), Budget(tokens=1), planning():
            return run(program.call_steps(*args, **kwargs))
    except BudgetSpent as error:
        raise ConfigurationError(
            f"{type(program).__name__} calls a model itself, outside of a predictor, and nothing was sent (making a preview). "
            "Preview that request by lm.preview(request)."
        ) from error


def _preview_of_ask(ask: Ask, paths: Mapping[int, str]) -> Preview:
    lm: Any = ask.lm
    made = lm.preview(ask.request) if hasattr(lm, "preview") else preview_of(lm, ask.request)
    deciding = getattr(ask.reader_factory, "deciding", None)
    evidence = None if deciding is None else AskedEvidence(deciding.source, deciding.paths)
    made = replace(cast(Preview, made), path=paths.get(id(ask.asker)), turn=running.get().turn, evidence=evidence)
    if planned := planned_folds.get():
        fold = planned.pop()
        text = (
            f"the call folds its conversation first: turns 0 to {fold.upto - 1} are left out, {fold.tokens_before:,} → "
            f"{fold.tokens_after:,} tokens. The preview shows the request without the fold."
        )
        made = replace(made, warnings=(*made.warnings, LMWarning("compaction", text)))
    return made


# --- lm=, demos= and config= of a program that does not take them -----------------------------------------

_OPTIONS = ("lm", "demos", "config")


def _with_options(
    program: PreviewedProgram, kwargs: dict[str, object]
) -> tuple[PreviewedProgram, dict[str, object], object]:
    """Return the program with the options in a copy, the inputs, and the model. A predictor takes the options itself."""
    options = {} if isinstance(program, Predictor) else _options_of(program, kwargs)
    if not options:
        return program, kwargs, None
    changed, lm = program.deepcopy(), options.get("lm")
    if lm is not None:
        changed.set_lm(lm)
    predictors: list[Any] = changed.predictors()
    for predictor in predictors:
        predictor.config = {**predictor.config, **cast("Mapping[str, object]", options.get("config") or {})}
    if "demos" in options and predictors:
        predictors[0].demos = options["demos"]
    return changed, {name: value for name, value in kwargs.items() if name not in options}, lm


def _options_of(program: PreviewedProgram, kwargs: Mapping[str, object]) -> dict[str, object]:
    """Return the given options that are no parameters of the program."""
    given = {name: kwargs[name] for name in _OPTIONS if name in kwargs}
    if not given:
        return given
    import inspect

    entry = getattr(program, "forward", None) or getattr(program, "aforward", None)
    known = set(inspect.signature(entry).parameters) if entry is not None else set[str]()
    return {name: value for name, value in given.items() if name not in known}
