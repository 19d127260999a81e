"""``preview_all``: every request of a program, as far as made-up answers lead; ``check``: what a model will not take of it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any, NoReturn

from sigwire.core.example import Example
from sigwire.core.paths import name_of
from sigwire.core.request import Request
from sigwire.core.response import Response
from sigwire.errors import ConfigurationError, DemoWarning, SigwireError
from sigwire.lm.base import LanguageModel
from sigwire.lm.policy.failover.targets import misfit, targets_of
from sigwire.lm.preview.preview import Preview, preview_of
from sigwire.modules.ask import Ask, resolve_lm
from sigwire.modules.driving import drive_program
from sigwire.modules.module import Module, module_paths
from sigwire.modules.preview.findings import CheckedModel, Finding, finding_of_text, findings_of
from sigwire.modules.preview.made_up import made_up_inputs
from sigwire.modules.tree.sharing import shared_modules

__all__ = ["check", "first_previews", "preview_all"]

_MOST = 100


class _EnoughPreviews(BaseException):
    """Ends a program that asks without end."""


def preview_all(
    program: Module, example: Example | Mapping[str, object] | None = None, **inputs: object
) -> list[Preview]:
    """Return the previews of all requests of a call, in order; nothing is sent and no tool runs.

    The offline model makes the answers up, so a later request shows its form, and not the values of a real run. The list ends
    where the program cannot go on with made-up values. Raises the error of the call if it ends before the first request.

    >>> from sigwire.modules.predict import Predict
    >>> class Twice(Module):
    ...     def __init__(self):
    ...         self.draft, self.final = Predict("topic -> text"), Predict("text -> summary")
    ...
    ...     def forward(self, topic):
    ...         return self.final(text=self.draft(topic=topic).text)
    >>> from sigwire.lm.client import LM
    >>> [preview.path for preview in preview_all(Twice(), topic="rain", lm=LM("openai/gpt-5-mini"))]
    ['draft', 'final']
    """
    from sigwire.lm.offline import connect  # only made-up answers need it

    backend, previews = connect("lexical"), list[Preview]()

    def answer(ask: Ask, preview: Preview) -> Response:
        previews.append(preview)
        if len(previews) >= _MOST:
            raise _EnoughPreviews
        return backend.answer(ask.request)

    given = Example.items(Example.inputs(example)) if isinstance(example, Example) else (example or {}).items()
    try:
        drive_program(program, module_paths, (), {**dict(given), **inputs}, answer)
    except _EnoughPreviews:
        pass
    except Exception:
        if not previews:
            raise
    return previews


def check(
    program: Module, lm: LanguageModel | None = None, *, strict: bool = False, allow: Collection[str] = ()
) -> list[Finding]:
    """Return what ``lm`` (by default the model of the predictors or of the settings) will not take of a program.

    Each predictor and agent is previewed with made-up inputs, for each target of a router: options, schemas, tools and media
    that the wire refuses, drops or approximates; demos with unknown fields; the window of the model, its prices, and the open
    budgets; modules that copies share, because a tool uses them and does not hold them ("copies"). ``strict``: warnings are
    errors. ``allow``: the features of findings to leave out, such as ``["truncation"]``.
    Sends nothing and needs no key; may import genai-prices. Raises ``LMNotConfigured`` without a model.

    >>> from sigwire.lm.client import LM
    >>> from sigwire.modules.predict import Predict
    >>> for finding in check(Predict("question -> answer", top_k=3), LM("openai/gpt-4.1")):
    ...     print(finding.level, finding)
    error self: openai has no option 'top_k' (encoding the request). ...
    """
    resolve_lm(lm if lm is not None else next(iter(_models(program)), None), "check")
    findings = [finding for path, part in _asking_parts(program) for finding in _findings(path, part, lm)]
    findings += [
        Finding(name_of(path) or "self", text, "", "warning", "copies", "", "the functions of the tools")
        for path, text in shared_modules(program)
    ]
    if strict:
        findings = [replace(each, level="error") if each.level == "warning" else each for each in findings]
    return list(dict.fromkeys(finding for finding in findings if finding.feature not in allow))


def first_previews(program: Module, *rows: Example) -> list[Preview]:
    """Return the preview of the first request of each predictor and agent, row by row. No code of the program runs.

    An input that a row does not have is made up. Parts that cannot be asked without a model are left out.

    >>> from sigwire.lm.client import LM
    >>> from sigwire.modules.predict import Predict
    >>> program = Predict("question -> answer", lm=LM("openai/gpt-5-mini"))
    >>> [preview.path for preview in first_previews(program, Example(question="2+2?"))]
    ['self']
    """
    found = list[Preview]()
    parts = [
        (path, part, {field.name for field in part.signature.spec.inputs}) for path, part in _asking_parts(program)
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for row in rows:
            for path, part, names in parts:
                inputs = {name: value for name, value in row.items() if name in names}
                with suppress(SigwireError):
                    found.append(replace(_first_ask(part, inputs)[1], path=path))
    return found


def _models(program: Module) -> Iterable[Any]:
    return [predictor.lm for predictor in program.predictors() if predictor.lm is not None]


def _asking_parts(program: Module) -> Iterator[tuple[str, Any]]:
    """Yield the agents and predictors with their paths. The predictors of an agent are asked by the agent."""
    paths, inside = module_paths(program), set[int]()
    for _, part in program.named_sub_modules():
        if hasattr(part, "toolbox") and hasattr(part, "signature"):
            inside |= {id(predictor) for predictor in part.predictors()}
            yield paths[id(part)], part
    predictors: list[tuple[str, Any]] = program.named_predictors()
    yield from ((path, predictor) for path, predictor in predictors if id(predictor) not in inside)


class _AskMade(BaseException):
    """Ends a part of a program at its first question. No ``except Exception`` of the program catches it."""

    def __init__(self, ask: Ask, preview: Preview) -> None:
        self.ask, self.preview = ask, preview
        super().__init__("a question was made")


def _findings(path: str, part: Any, lm: LanguageModel | None) -> Iterator[Finding]:
    model = "" if lm is None else lm.model
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            ask, preview = _first_ask(part, {} if lm is None else {"lm": lm})
        except SigwireError as error:
            yield finding_of_text(path, str(error), "error", "request", model)
            return
    yield from _findings_of_targets(path, ask, preview)
    demos = [str(each.message) for each in caught if issubclass(each.category, DemoWarning)]
    yield from (finding_of_text(path, text, "warning", "demos", model) for text in demos)


def _no_paths(part: object) -> Mapping[int, str]:
    """Return no path: that of the part is known."""
    return {}


def _first_ask(part: Any, given: dict[str, object]) -> tuple[Ask, Preview]:
    def stop(ask: Ask, preview: Preview) -> NoReturn:
        raise _AskMade(ask, preview)

    try:
        drive_program(part, _no_paths, (), {**made_up_inputs(part.signature.spec, given), **given}, stop)
    except _AskMade as made:
        return made.ask, made.preview
    raise ConfigurationError(f"{type(part).__name__} asked no model with made-up inputs (checking it). Preview it.")


def _findings_of_targets(path: str, ask: Ask, preview: Preview) -> Iterator[Finding]:
    """Yield the findings of each model that the question may go to. The request is planned for the first."""
    targets = targets_of(ask.lm)
    for target in targets:
        lm = target.lm if len(targets) > 1 else ask.lm
        preview = preview if len(targets) == 1 else _preview_of(lm, ask.request)
        lacks = misfit(target, ask.request)
        if preview.errors and lacks not in _MEDIA:
            lacks = None  # the error has more
        # The capabilities of a model without a wire are often not given.
        if lacks is not None and len(targets) > 1 and not lacks.startswith("context"):
            fix = "Put a model behind it that takes the request."
            yield Finding(path, f"{lm.model} is skipped: {lacks}.", fix, "warning", lacks, lm.model, _OWN)
        elif lacks in _MEDIA and (preview.wire is not None or preview.errors):
            yield Finding(path, f"{lm.model} takes no {lacks}.", "Use another model.", "error", lacks, lm.model, _OWN)
        if lacks is None or not preview.errors:
            yield from findings_of(path, preview, lm)


_MEDIA, _OWN = ("image", "audio", "file"), "the capabilities of the model"


def _preview_of(lm: CheckedModel, request: Request) -> Preview:
    preview: Callable[[Request], Preview] | None = getattr(lm, "preview", None)
    return preview_of(lm, request) if preview is None else preview(request)
