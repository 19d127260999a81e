"""Certificates: a bound on the loss of the rows that a program answers, from confidences and losses. Pure: no model, no row.

    stages ──policies (training half)──▶ a path of policies ──certify (other half)──▶ Certificate

A policy has a least confidence for each stage; the first stage that reaches its own answers, otherwise the row is not answered.
The path is fixed before the other half is seen, and tested in its order, each policy at the same level, until the first that
fails (fixed-sequence testing): the chance that the returned policy has a loss above the risk is at most 1 - confidence, for
any model and any distribution of rows (Angelopoulos et al. 2021, *Learn then Test*). Given which rows of the test a policy
answers, their losses are independent draws, so that a p-value of these rows holds for "the mean loss of answered rows is above
the risk". It is exact for losses of 0 and 1, else that of S. Bates et al. 2021, *Distribution-Free, Risk-Controlling Prediction
Sets*. The training half decides which of the two is taken: a choice by the losses that are tested would be a second look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from sigwire.core.json import Value
from sigwire.keywords import ChecksKeywords

__all__ = [
    "NEVER",
    "Certificate",
    "Policy",
    "StageRow",
    "answering_stage",
    "certificate_rows",
    "certify",
    "fewest_rows",
    "has_graded_losses",
    "loss_p_value",
    "policies",
    "start_of",
]

NEVER = 2.0
"""The least confidence of a stage that answers no row: no confidence reaches it."""

Policy: TypeAlias = tuple[float, ...]
"""The least confidence of each stage."""

_STEPS = 24  # of tolerated losses
_LOOSEST = 1.1  # of the risk: a little more than it may pass on few rows
_FEWEST_ANSWERED = 8  # rows of the training half by which a stage gets a least confidence


class StageRow(NamedTuple):
    """The outcome of one stage on a row. ``loss``: 0 to 1; 1 if the stage failed, and then its confidence is 1.

    A stage that is unsure by its own rules has no confidence: -1, which no least confidence is.
    """

    confidence: float
    loss: float


@dataclass(frozen=True, slots=True)
class Certificate(Value, ChecksKeywords):
    """A bound: with ``confidence``, the mean loss of answered rows is at most ``risk``, if later rows are drawn like these.

    ``rows``: those of the test, which chose no number; ``answered``: those of them that the policy answers; ``loss``: their
    mean loss; ``p_value``: of "the mean loss is above the risk"; ``coverage``: answered / rows; ``by_stage``: the number of
    rows that each stage answers; ``least``: the policy, with ``NEVER`` (2) for a stage that answers no row.

    >>> certificate = Certificate(0.1, 0.9, rows=60, answered=50, loss=0.02, p_value=0.034, by_stage=(50,), least=(0.8,))
    >>> round(certificate.coverage, 2)
    0.83
    >>> str(certificate)
    'loss of answered rows at most 0.1 with confidence 0.9 (60 rows: 50 answered, loss 0.02, p 0.034)'
    """

    risk: float
    confidence: float
    rows: int
    answered: int
    loss: float
    p_value: float
    by_stage: tuple[int, ...] = ()
    least: Policy = field(default=())

    @property
    def coverage(self) -> float:
        """The share of rows that are answered."""
        return self.answered / self.rows if self.rows else 0.0

    def __str__(self) -> str:
        return (
            f"loss of answered rows at most {self.risk:g} with confidence {self.confidence:g} ({self.rows} rows: "
            f"{self.answered} answered, loss {self.loss:.2g}, p {self.p_value:.2g})"
        )


def certificate_rows(certificate: Certificate) -> list[tuple[str, list[str]]]:
    """Return the rows of a certificate for a card."""
    found = certificate
    stages = [
        f"stage {at}: {n} rows, " + ("never" if least >= NEVER else f"from {least:.3g}")
        for at, (n, least) in enumerate(zip(found.by_stage, found.least, strict=True))
    ]
    answered = f"{found.answered} answered ({found.coverage:.0%})"
    tested = f"{found.rows} rows: {answered}, loss {found.loss:.3g}, p {found.p_value:.2g}"
    bound = f"loss of answered rows at most {found.risk:g} with confidence {found.confidence:g}"
    return [
        ("certificate", [bound, tested, *(stages if len(stages) > 1 else [f"least confidence {found.least[0]:.3g}"])])
    ]


def fewest_rows(risk: float, confidence: float) -> int:
    """Return how many answered rows without a loss are needed for a certificate.

    >>> fewest_rows(0.05, 0.9), fewest_rows(0.1, 0.95)
    (45, 29)
    """
    return math.ceil(math.log(1 - confidence) / math.log(1 - risk) - 1e-9)


def loss_p_value(losses: Sequence[float], risk: float, *, is_graded: bool) -> float:
    """Return the p-value of "the mean loss is above ``risk``", of losses from 0 to 1.

    ``is_graded``: the smaller one of Hoeffding's and Bentkus'; otherwise exact, and each loss above 0 counts as 1.

    >>> loss_p_value([0.0] * 45, 0.05, is_graded=False) <= 0.1 < loss_p_value([0.0] * 44, 0.05, is_graded=False)
    True
    >>> [loss_p_value(losses, 0.4, is_graded=True) for losses in ([0.75, 0.5], [])]
    [1.0, 1.0]
    """
    n, total = len(losses), math.fsum(losses)
    if not n:
        return 1.0
    if not is_graded:
        return _binomial_below(sum(loss > 0 for loss in losses), n, risk)
    mean = min(total / n, risk)
    hoeffding = math.exp(-n * _divergence(mean, risk))
    bentkus = math.e * _binomial_below(
        math.ceil(total - 1e-9), n, risk
    )  # a score of 0.7 is a loss of 0.30000000000000004
    return min(hoeffding, bentkus, 1.0)


def _binomial_below(count: int, n: int, p: float) -> float:
    """Return the probability of at most ``count`` successes in ``n``."""
    if count >= n or p <= 0:
        return 1.0
    if p >= 1:
        return 0.0
    log_p, log_q, all_n = math.log(p), math.log1p(-p), math.lgamma(n + 1)
    terms = (
        math.exp(all_n - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * log_p + (n - k) * log_q)
        for k in range(count + 1)
    )
    return min(math.fsum(terms), 1.0)


def _divergence(a: float, b: float) -> float:
    """Return the relative entropy of two coins, a and b."""
    if not 0 < b < 1:
        return 0.0
    first = a * math.log(a / b) if a > 0 else 0.0
    second = (1 - a) * math.log((1 - a) / (1 - b)) if a < 1 else 0.0
    return max(first + second, 0.0)


def answering_stage(row: Sequence[StageRow], policy: Policy) -> int | None:
    """Return the number of the first stage whose confidence reaches its least; ``None``: the row is not answered.

    >>> answering_stage([StageRow(0.7, 0.0), StageRow(0.9, 1.0)], (0.8, 0.6))
    1
    """
    return next(
        (at for at, (stage, least) in enumerate(zip(row, policy, strict=True)) if stage.confidence >= least), None
    )


def policies(rows: Sequence[Sequence[StageRow]], risk: float) -> list[Policy]:
    """Return a path of policies, the strictest first: for tolerated losses up to a little above the risk, without repetitions.

    A stage gets the least confidence by which the rows that reach it, 8 at least, keep the tolerated loss; ``NEVER`` if none
    does. A row without a confidence (below 0) goes on. Policies that answer no row are left out.

    >>> rows = [[StageRow((40 - n) / 40, float(n >= 30))] for n in range(40)]
    >>> policies(rows, 0.1)[0], policies(rows, 0.1)[-1]
    ((0.275,), (0.2,))
    """
    found: dict[Policy, None] = {}
    for step in range(_STEPS):
        policy = _policy(rows, _LOOSEST * risk * step / (_STEPS - 1))
        if min(policy, default=NEVER) < NEVER:
            found[policy] = None
    return list(found)


def _policy(rows: Sequence[Sequence[StageRow]], tolerated: float) -> Policy:
    stages, reaching, found = len(rows[0]) if rows else 0, list(rows), list[float]()
    for at in range(stages):
        least = _least([row[at] for row in reaching], tolerated)
        found.append(least)
        reaching = [row for row in reaching if row[at].confidence < least]
    return tuple(found)


def _least(rows: Sequence[StageRow], tolerated: float) -> float:
    """Return the least confidence by which the mean loss is at most the tolerated one; rows of equal confidence go together."""
    ordered = sorted((row for row in rows if row.confidence >= 0), key=lambda row: -row.confidence)
    least, total = NEVER, 0.0
    for count, row in enumerate(ordered, 1):
        total += row.loss
        is_last = count == len(ordered) or ordered[count].confidence < row.confidence
        if is_last and count >= _FEWEST_ANSWERED and total <= tolerated * count + 1e-12:
            least = row.confidence
    return least


def has_graded_losses(rows: Sequence[Sequence[StageRow]]) -> bool:
    """Return True if a loss of a stage is above 0 and below 1."""
    return any(0 < stage.loss < 1 for row in rows for stage in row)


def start_of(rows: Sequence[Sequence[StageRow]], path: Sequence[Policy], risk: float) -> int:
    """Return the number of the policy with the smallest p-value on the rows of its own half, of equals the loosest."""
    is_graded = has_graded_losses(rows)
    p_values = [loss_p_value(_losses(rows, policy), risk, is_graded=is_graded) for policy in path]
    return max(range(len(path)), key=lambda at: (-p_values[at], at))


def certify(
    rows: Sequence[Sequence[StageRow]], path: Sequence[Policy], risk: float, confidence: float, *, is_graded: bool
) -> Certificate | None:
    """Return the certificate of the last policy before the first that fails, by rows that chose no number; ``None``: none.

    ``is_graded``: how p-values are computed, as the training half shows (``has_graded_losses``).

    >>> sure = [[StageRow(0.9, 0.0)]] * 50
    >>> certify(sure, [(0.9,)], 0.05, 0.9, is_graded=False).answered
    50
    >>> certify(sure[:44], [(0.9,)], 0.05, 0.9, is_graded=False)
    """
    last: Certificate | None = None
    for policy in path:
        losses = _losses(rows, policy)
        p_value = loss_p_value(losses, risk, is_graded=is_graded)
        if p_value > 1 - confidence + 1e-12:
            break
        answers = [answering_stage(row, policy) for row in rows]
        last = Certificate(
            risk,
            confidence,
            len(rows),
            len(losses),
            math.fsum(losses) / len(losses),
            p_value,
            tuple(answers.count(at) for at in range(len(policy))),
            policy,
        )
    return last


def _losses(rows: Sequence[Sequence[StageRow]], policy: Policy) -> list[float]:
    answers = ((row, answering_stage(row, policy)) for row in rows)
    return [row[at].loss for row, at in answers if at is not None]
