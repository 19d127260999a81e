"""``preview_all``: every request of a program, as far as made-up answers lead; ``check``: what a model will not take of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from sigwire.core.example import Example
from sigwire.core.response import Response
from sigwire.errors import DemoWarning, SigwireError
from sigwire.lm.base import LanguageModel
from sigwire.lm.preview.preview import Preview
from sigwire.modules.ask import Ask, resolve_lm
from sigwire.modules.module import Module, module_paths
from sigwire.modules.preview.driving import drive_program
from sigwire.modules.preview.made_up import made_up_inputs

__all__ = ["Finding", "check", "preview_all"]

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

    given = example.inputs().items() if isinstance(example, Example) else (example or {}).items()
    try:
        drive_program(program, module_paths, (), {**dict(given), **inputs}, answer)
    except _EnoughPreviews:
        pass
    except Exception:
        if not previews:
            raise
    return previews


@dataclass(frozen=True, slots=True)
class Finding:
    """A part of a program that a model does not take as it is: the path of the predictor, what, and what to do."""

    path: str
    what: str
    fix: str = ""

    def __str__(self) -> str:
        return f"{self.path}: {self.what} {self.fix}".rstrip()


def check(program: Module, lm: LanguageModel | None = None) -> list[Finding]:
    """Return what ``lm`` (by default the model of the predictors or of the settings) will not take of a program.

    Each predictor and agent is previewed with made-up inputs: options, schemas, tools and media that the wire refuses, drops or
    approximates, and demos with unknown fields. Sends nothing and needs no key.

    >>> from sigwire.lm.client import LM
    >>> from sigwire.modules.predict import Predict
    >>> for finding in check(Predict("question -> answer", top_k=3), LM("openai/gpt-4.1")):
    ...     print(finding)
    self: openai has no option 'top_k' (encoding the request). ...
    """
    resolve_lm(lm if lm is not None else next(iter(_models(program)), None), "check")
    findings = [finding for path, part in _asking_parts(program) for finding in _findings(path, part, lm)]
    return list(dict.fromkeys(findings))


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


def _findings(path: str, part: Any, lm: LanguageModel | None) -> Iterator[Finding]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            given = {} if lm is None else {"lm": lm}
            preview = cast(Preview, part.preview(**given, **made_up_inputs(part.signature.spec)))
        except SigwireError as error:
            yield _finding(path, str(error))
            return
    yield from (_finding(path, str(error)) for error in preview.errors)
    yield from (_finding(path, f"{each.feature}: {each.detail}") for each in preview.warnings)
    yield from (_finding(path, str(each.message)) for each in caught if issubclass(each.category, DemoWarning))


def _finding(path: str, text: str) -> Finding:
    """Return the finding of an error text, which names what to do after its first sentence."""
    what, mark, fix = text.partition("). ")
    return Finding(path, what + mark.rstrip(), fix) if mark else Finding(path, text)
