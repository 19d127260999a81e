"""The consequence of a failure of one target: the next target is asked, or the error is raised. A table by class of error."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

from sigwire.errors import (
    ContextWindowExceededError,
    LMAuthenticationError,
    LMBillingError,
    LMContentFilteredError,
    LMError,
    LMInvalidRequestError,
    LMRateLimitError,
    LMTimeoutError,
    LMUnsupportedModelError,
    UnsupportedFeature,
)

__all__ = ["RAISE", "UNFIT", "Verdict", "verdict_of"]


class Verdict(NamedTuple):
    """``step``: "next" for a target that fails now, "unfit" for one that cannot take the request, "raise" for any other error.

    ``weight``: the penalty. ``rest``: the least seconds for which the target is left alone.
    """

    step: Literal["next", "unfit", "raise"]
    weight: float = 0.0
    rest: float = 0.0


RAISE, UNFIT = Verdict("raise"), Verdict("unfit")
_MISCONFIGURED = Verdict("next", 20.0, float("inf"))  # a person must act: ``Health.rest`` bounds it
_VERDICTS: Mapping[type[BaseException], Verdict] = {
    ContextWindowExceededError: UNFIT,
    UnsupportedFeature: UNFIT,
    LMAuthenticationError: _MISCONFIGURED,
    LMBillingError: _MISCONFIGURED,
    LMUnsupportedModelError: _MISCONFIGURED,
    LMContentFilteredError: RAISE,
    LMInvalidRequestError: RAISE,
    LMRateLimitError: Verdict("next", 0.5),
    LMTimeoutError: Verdict("next", 2.0),
    LMError: Verdict("next", 1.0),
    TimeoutError: Verdict("next", 2.0),  # of a model that is no class of sigwire's
    OSError: Verdict("next", 1.0),
    BaseException: RAISE,
}


def verdict_of(error: BaseException, *, on_filter: str = "raise") -> Verdict:
    """Return the consequence of an error. ``on_filter="next"``: another target gets what the filter of one refuses.

    >>> verdict_of(LMRateLimitError(retry_after=30.0))
    Verdict(step='next', weight=0.5, rest=30.0)
    >>> verdict_of(LMInvalidRequestError()).step, verdict_of(LMInvalidRequestError(status=413)).step
    ('raise', 'unfit')
    """
    if isinstance(error, LMInvalidRequestError) and error.status == 413:  # larger than this provider accepts
        return UNFIT
    if isinstance(error, LMContentFilteredError) and on_filter == "next":
        return UNFIT
    if isinstance(error, LMTimeoutError) and not error.retryable and not _was_sent(error):
        return RAISE  # the deadline of the caller
    verdict = next(_VERDICTS[kind] for kind in type(error).__mro__ if kind in _VERDICTS)
    if isinstance(error, LMError) and error.retry_after and verdict.step == "next":
        return verdict._replace(rest=max(verdict.rest, error.retry_after))
    return verdict


def _was_sent(error: LMError) -> bool:
    return any(attempt.purpose != "skip" for attempt in error.attempts)
