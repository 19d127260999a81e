"""The report of a verification: a row for each probe, as a card, as Markdown, as JSON that can be sent to the maintainers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sigwire.core.json import JsonObject, Value, dumps, loads
from sigwire.core.lazy import version
from sigwire.lm.policy.money.sums import Amounts
from sigwire.show.card import Card, HasCard
from sigwire.show.lines import CardTag
from sigwire.show.numbers import count

__all__ = ["ProbeRow", "Verdict", "Verification", "VerificationInterrupted", "without_accounts"]

Verdict: TypeAlias = Literal["agrees", "worse", "better", "behaviour", "unclear", "not sent"]


@dataclass(frozen=True, slots=True)
class ProbeRow(Value):
    """One probe of a verification.

    ``table``: what the provider table promises, "yes" or "no"; "" for behaviour, of which it promises nothing. ``seen``:
    what the model did. ``why``: what decided the verdict, if the answer alone did not. ``evidence``: a line an answer.
    """

    probe: str
    feature: str
    table: str
    seen: str
    verdict: Verdict
    why: str = ""
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class Verification(HasCard):
    """The answers of a model to the probes, compared with what the provider table promises.

    Verdicts: "agrees"; "worse", the table promises what the model did not do; "better", the model does what the table denies;
    "behaviour", a choice of the model, counted; "unclear", no answer decided; "not sent". ``requests``: how many were sent.
    ``spent``: calls, tokens and dollars. ``stopped``: why probes were not sent, "" if none was left out. ``host``: that of
    the provider, without a path. ``table``: a digest of what the table has about the model. ``day``: of the answers, in UTC.
    """

    model: str
    host: str
    rows: tuple[ProbeRow, ...]
    requests: int
    spent: Amounts
    stopped: str
    table: str
    day: str

    @property
    def disagreements(self) -> tuple[ProbeRow, ...]:
        """The rows that are worse or better than the table."""
        return tuple(row for row in self.rows if row.verdict in ("worse", "better"))

    @property
    def is_complete(self) -> bool:
        """Whether an answer decided each probe that could be sent."""
        return not self.stopped and all(row.verdict != "unclear" for row in self.rows)

    @property
    def agrees(self) -> bool:
        """Whether each probe was decided, and none disagrees with the table."""
        return self.is_complete and not self.disagreements

    def to_json(self) -> JsonObject:
        """Return the report as JSON, format 1. It has no key, no header, no account and no path of the host."""
        report: JsonObject = {
            "verification": 1,
            "sigwire": version(),
            "model": self.model,
            "host": self.host,
            "day": self.day,
            "table": self.table,
            "requests": self.requests,
            "spent": self.spent.to_json(),
            "stopped": self.stopped,
            "rows": [row.to_json() for row in self.rows],
        }
        return without_accounts(report)

    def to_markdown(self) -> str:
        """Return the report as a table of Markdown."""
        from sigwire.show.markdown import card_markdown

        return card_markdown(self._card())

    def __repr__(self) -> str:
        return f"Verification({self.model!r}, {self._summary()})"

    def _summary(self) -> str:
        counts = {verdict: [row.verdict for row in self.rows].count(verdict) for verdict in _ORDER}
        return ", ".join(f"{count} {verdict}" for verdict, count in counts.items() if count)

    def _card(self) -> Card:
        head = ("probe", "table", "seen", "verdict")
        rows = [(row.probe, row.table, row.seen, row.verdict) for row in self.rows]
        spent = f"{count(self.requests, 'request')}, {self.spent}"
        facts = [("host", [self.host])] if self.host else []  # a model in this process has none
        facts += [("spent", [spent]), ("day", [self.day])]
        facts += [(row.probe, [f"{row.feature}: {row.why}"]) for row in self.rows if row.why not in ("", self.stopped)]
        facts += [("stopped", [self.stopped])] if self.stopped else []
        tags: Sequence[CardTag] = [CardTag(self._summary(), "right" if self.agrees else "wrong")]
        return Card("Verification", self.model, facts, [head, *rows], tags=tags)


_ACCOUNT = re.compile(r"\b(?:org|proj|acct|user)[-_][A-Za-z0-9]{8,}|(?<=projects/)[\w-]+|(?<=:)\d{12}(?=:)")


def without_accounts(data: JsonObject) -> JsonObject:
    """Return JSON without ids of accounts: of organizations, projects and users.

    >>> without_accounts({"message": "Limit reached in organization org-A1b2C3d4E5"})
    {'message': 'Limit reached in organization ***'}
    """
    found: JsonObject = loads(_ACCOUNT.sub("***", dumps(data)))
    return found


_ORDER: Sequence[Verdict] = ("worse", "better", "agrees", "behaviour", "unclear", "not sent")


class VerificationInterrupted(KeyboardInterrupt):
    """Ctrl-C ended a verification. ``verification`` has the answers until then; the rest was not sent."""

    def __init__(self, verification: Verification) -> None:
        super().__init__("interrupted; the rest of the probes was not sent")
        self.verification = verification
