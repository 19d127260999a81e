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

__all__ = ["RAISE", "UNFIT", "Consequence", "consequence_of"]


class Consequence(NamedTuple):
    """``step``: "next" for a target that fails now, "unfit" for one that cannot take the request, "raise" for any other error.

    ``weight``: the penalty. ``rest``: the least seconds for which the target is left alone.
    """

    step: Literal["next", "unfit", "raise"]
    weight: float = 0.0
    rest: float = 0.0


RAISE, UNFIT = Consequence("raise"), Consequence("unfit")
_MISCONFIGURED = Consequence("next", 20.0, float("inf"))  # a person must act: ``Health.rest`` bounds it
_CONSEQUENCES: Mapping[type[BaseException], Consequence] = {
    ContextWindowExceededError: UNFIT,
    UnsupportedFeature: UNFIT,
    LMAuthenticationError: _MISCONFIGURED,
    LMBillingError: _MISCONFIGURED,
    LMUnsupportedModelError: _MISCONFIGURED,
    LMContentFilteredError: RAISE,
    LMInvalidRequestError: RAISE,
    LMRateLimitError: Consequence("next", 0.5),
    LMTimeoutError: Consequence("next", 2.0),
    LMError: Consequence("next", 1.0),
    TimeoutError: Consequence("next", 2.0),  # of a model that is no class of sigwire's
    OSError: Consequence("next", 1.0),
    BaseException: RAISE,
}


def consequence_of(error: BaseException, *, on_filter: str = "raise") -> Consequence:
    """Return the consequence of an error. ``on_filter="next"``: another target gets what the filter of one refuses.

    >>> consequence_of(LMRateLimitError(retry_after=30.0))
    Consequence(step='next', weight=0.5, rest=30.0)
    >>> consequence_of(LMInvalidRequestError()).step, consequence_of(LMInvalidRequestError(status=413)).step
    ('raise', 'unfit')
    """
    found = next(_CONSEQUENCES[kind] for kind in type(error).__mro__ if kind in _CONSEQUENCES)
    if not isinstance(error, LMError):
        return found
    if found.step == "raise":
        is_filter = isinstance(error, LMContentFilteredError)
        # 413: larger than this provider accepts
        return UNFIT if error.status == 413 or (is_filter and on_filter == "next") else RAISE
    if _is_the_deadline(error):
        return RAISE
    return found._replace(rest=max(found.rest, error.retry_after or 0.0))


def _is_the_deadline(error: LMError) -> bool:
    """Return True if the deadline of the caller passed before anything was sent."""
    sent = [attempt for attempt in error.attempts if attempt.purpose != "skip"]
    return isinstance(error, LMTimeoutError) and not error.retryable and not sent
