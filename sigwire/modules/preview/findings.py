"""``Finding``: a part of a program that a model does not take as it is; and the checks of one previewed request.

``findings_of`` reads a preview, which the model's own encoder made. Each check is a row of ``_CHECKS``. Sends nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from sigwire.core.capabilities import Capabilities
from sigwire.core.json import JsonValue, dumps
from sigwire.core.response import Usage
from sigwire.errors import CallerError, UnsupportedOption
from sigwire.lm.policy.money import catalogs
from sigwire.lm.policy.money.budget import Budget
from sigwire.lm.policy.money.estimates import input_bound, output_bound
from sigwire.lm.policy.money.opened import open_budgets
from sigwire.lm.policy.money.sums import Amounts
from sigwire.lm.preview.limits import input_limit, output_limit, prompt_cache_minimum
from sigwire.lm.preview.preview import Preview

__all__ = ["CheckedModel", "Finding", "FindingLevel", "finding_of_text", "findings_of"]

FindingLevel: TypeAlias = Literal["error", "warning", "info"]
"""The request would be refused; a part of it is dropped, approximated or perhaps cut; a fact that costs nothing."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A part of a program that a model does not take as it is: the path of the predictor, what, and what to do.

    ``level``: "error" for a request that would be refused, "warning" for a part that is dropped, approximated or may be cut,
    "info" for any other fact. ``feature``: the option or part of the request, such as "top_k", "window" or "price".
    ``model``: the one of several that does not take the part. ``source``: the data behind the finding.

    >>> print(Finding("self", "The price is not known.", level="info", feature="price"))
    self: The price is not known.
    """

    path: str
    what: str
    fix: str = ""
    level: FindingLevel = "error"
    feature: str = "request"
    model: str = ""
    source: str = "the provider table"

    def __str__(self) -> str:
        return f"{self.path}: {self.what} {self.fix}".rstrip()


class CheckedModel(Protocol):
    """The part of a model that a check reads."""

    @property
    def model(self) -> str: ...

    @property
    def capabilities(self) -> Capabilities: ...


def findings_of(path: str, preview: Preview, lm: CheckedModel) -> Iterator[Finding]:
    """Yield the findings of one request. Estimates and prices are not checked for a request that is refused anyway."""
    for error in preview.errors:
        yield _finding_of_error(path, lm, error)
    for warning in preview.warnings:
        yield Finding(path, f"{warning.feature}: {warning.detail}", "", "warning", warning.feature, lm.model)
    if not preview.errors:
        for check in _CHECKS:
            for level, feature, what, fix, source in check(preview, lm):
                yield Finding(path, what, fix, level, feature, lm.model, source)


def finding_of_text(path: str, text: str, level: FindingLevel, feature: str, model: str) -> Finding:
    """Return the finding of an error text, which names what to do after its first sentence."""
    what, mark, fix = text.partition("). ")
    what, fix = (what + mark.rstrip(), fix) if mark else (text, "")
    return Finding(path, what, fix, level, feature, model)


def _finding_of_error(path: str, lm: CheckedModel, error: CallerError) -> Finding:
    feature = error.option if isinstance(error, UnsupportedOption) else "request"
    return finding_of_text(path, str(error), "error", feature, lm.model)


# --- checks: level, feature, what, what to do, and the source of the data

_Row: TypeAlias = tuple[FindingLevel, str, str, str, str]


def _check_window(preview: Preview, lm: CheckedModel) -> Iterator[_Row]:
    """The estimate and ``max_tokens``, against the smallest known window."""
    limit, answer = input_limit(lm.model, lm.capabilities), _max_tokens(preview)
    if limit is None:
        return
    tokens = preview.tokens
    least, most = (tokens.count * (100 + percent) // 100 for percent in (-tokens.margin, tokens.margin))
    if least > limit.tokens:
        what = f"The request has {tokens} tokens, and {lm.model} reads {limit.tokens:,}."
        yield "error", "window", what, "Shorten it, or use a model with a larger window.", limit.source
    elif most + answer > limit.tokens:
        what = (
            f"The request of {tokens} tokens and an answer of {answer:,} may exceed the {limit.tokens:,} of {lm.model}."
        )
        yield "warning", "window", what, "Shorten it, or lower max_tokens.", limit.source


def _check_max_tokens(preview: Preview, lm: CheckedModel) -> Iterator[_Row]:
    limit, answer = output_limit(lm.model, lm.capabilities), _max_tokens(preview)
    is_lowered = any(warning.feature == "max_tokens" for warning in preview.warnings)  # and named by its own finding
    if limit is not None and answer > limit.tokens and not is_lowered:
        what = f"max_tokens={answer:,} exceeds the {limit.tokens:,} tokens that {lm.model} writes."
        yield "warning", "max_tokens", what, "Lower it.", limit.source


def _check_truncation(preview: Preview, lm: CheckedModel) -> Iterator[_Row]:
    """OpenAI's Responses: ``truncation="auto"`` drops turns of a long conversation without an error."""
    if _body(preview).get("truncation") == "auto":
        what = 'truncation="auto" lets the provider drop turns of a long conversation silently.'
        source = "https://platform.openai.com/docs/api-reference/responses/create"
        yield "error", "truncation", what, 'Remove it, or accept it: check(..., allow=["truncation"]).', source


def _check_prompt_cache(preview: Preview, lm: CheckedModel) -> Iterator[_Row]:
    """A mark of a prompt cache before the provider's minimum has no effect."""
    body = dumps(dict(_body(preview)))
    least = prompt_cache_minimum(lm.model)
    if ('"cache_control"' in body or '"prompt_cache_key"' in body) and preview.tokens.count < least.tokens:
        what = f"The request has {preview.tokens} tokens, and the provider caches prompts from {least.tokens:,} on."
        yield "info", "prompt_cache", what, "prompt_cache=False sets no mark.", least.source


def _check_price(preview: Preview, lm: CheckedModel) -> Iterator[_Row]:
    if preview.wire is not None and catalogs.load() is not None and preview.price is None:
        fix = "Write LM(..., price=sigwire.Price(input=0.25, output=2.0))."
        yield "info", "price", f"No price of {lm.model} is known.", fix, "the price tables"


def _check_budget(preview: Preview, lm: CheckedModel) -> Iterator[_Row]:
    """Whether one call fits into what is left of each open budget, by the bound that a call reserves."""
    budgets = [budget for budget in open_budgets() if isinstance(budget, Budget)]
    if not budgets:
        return
    limit = output_limit(lm.model, lm.capabilities)
    usage = Usage(input_bound(preview.request), output_bound(preview.request, limit and limit.tokens, 0))
    need = Amounts(preview.repeat, usage.total_tokens, preview.cost(usage))
    for budget in budgets:
        yield from _refusals(budget, need, preview)


def _refusals(budget: Budget, need: Amounts, preview: Preview) -> Iterator[_Row]:
    if need.money is None and budget.needs_price:
        fix = "Write LM(..., price=sigwire.Price(input=0.25, output=2.0))."
        yield (
            "error",
            "budget",
            f"No price of {preview.model} is known, and the budget needs one.",
            fix,
            "the price tables",
        )
    if budget.strict and not _max_tokens(preview):
        yield "error", "budget", "The budget is strict, and the request has no max_tokens.", "Set it.", "the budget"
    for name, most, rest in _over(need, budget.left):
        what = f"One call needs up to {most:,.6g} of {name}, and the budget has {rest:,.6g} left."
        yield "error", "budget", what, "Raise the limit, or lower max_tokens.", "the budget"


def _over(need: Amounts, left: Amounts) -> Iterator[tuple[str, float, float]]:
    """Yield the parts of a need that exceed what is left: name, need and rest."""
    for name in ("calls", "tokens", "money"):
        most: float | None = getattr(need, name)
        rest: float | None = getattr(left, name)
        if most is not None and rest is not None and most > rest:
            yield name, most, rest


_CHECKS: tuple[Callable[[Preview, CheckedModel], Iterator[_Row]], ...] = (
    _check_window, _check_max_tokens, _check_truncation, _check_prompt_cache, _check_price, _check_budget,
)  # fmt: skip


def _max_tokens(preview: Preview) -> int:
    """Return the limit of the answer; 0 without one."""
    given = preview.request.options.get("max_tokens")
    return given if isinstance(given, int) else 0


def _body(preview: Preview) -> Mapping[str, JsonValue]:
    body: Mapping[str, JsonValue] | None = None if preview.wire is None else preview.wire["body"]
    return body or {}
