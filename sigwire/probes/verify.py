"""``verify``: ask a model what it really does, and compare it with the provider table.

``plan_verification`` sends nothing: it makes the requests, counts them and adds up their price, for the question before.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from urllib.parse import urlsplit

from sigwire.cassettes.cassette import Cassette
from sigwire.core.json import dumps
from sigwire.effects.steps import arun, run
from sigwire.errors import ConfigurationError, is_interrupt, suggest
from sigwire.lm.client import LM
from sigwire.lm.policy.money.budget import Budget
from sigwire.lm.providers.registry import find_provider
from sigwire.probes.decisions import probes_of
from sigwire.probes.promises import Planned, plan_probe, quiet_options
from sigwire.probes.report import Verification, VerificationInterrupted, without_accounts
from sigwire.probes.running import ProbeRun
from sigwire.show.numbers import count

__all__ = ["TOKENS", "VerificationPlan", "averify", "plan_verification", "verify"]

MONEY, TOKENS = 0.25, 50_000
"""The limits without a budget: dollars, and tokens if no price of the model is known."""


@dataclass(frozen=True)
class VerificationPlan:
    """The requests of a verification before they are sent. ``ceiling``: their price in dollars at most; ``None``: unknown."""

    model: str
    host: str
    probes: Sequence[Planned]
    requests: int
    ceiling: float | None
    limit: int

    def __str__(self) -> str:
        most = f"{TOKENS:,} tokens at most, as no price is known"
        price = most if self.ceiling is None else f"${self.ceiling:.4f} at most"
        place = self.host or "this process"
        return (
            f"{self.model} at {place}: {count(len(self.probes), 'probe')}, {count(self.requests, 'request')}, and "
            f"{self.limit} at most if some disagree with the table; {price}"
        )


def verify(
    lm: LM,
    *,
    probes: Iterable[str] | None = None,
    requests: int = 40,
    budget: Budget | None = None,
    repeat: int = 3,
    cassette: Cassette | str | os.PathLike[str] | None = None,
) -> Verification:
    """Compare what a model does with what the provider table promises. Costs money: a few cents with most models.

    ``probes``: names of ``sigwire.probes.decisions.probes_of``; default: all that the model can be asked. ``requests``: sent at
    most. ``budget``: default 0.25 dollars, or 50,000 tokens if no price of the model is known. ``repeat``: answers that count
    the behaviour of a model, and that decide a disagreement by majority. ``cassette``: a path to record, or a ``Cassette``; a
    recording has no key, no header and no account. The cache, retries and fallbacks of the model are off.

    Raises ``ConfigurationError`` for another object than ``LM`` and for unknown probes, ``VerificationInterrupted`` for
    Ctrl-C. A spent limit and a dead provider are no errors: the rest is "not sent".

    >>> from sigwire.lm.client import LM
    >>> found = verify(LM("offline/lexical"), probes=["text", "forced"])
    >>> [(row.probe, row.table, row.verdict) for row in found.rows], found.requests
    ([('text', 'yes', 'agrees'), ('forced', 'yes', 'agrees')], 2)
    """
    job = _VerificationJob(lm, probes, requests, budget, repeat)
    with job.block(cassette):
        run(job.run.steps())
    return job.report()


async def averify(
    lm: LM,
    *,
    probes: Iterable[str] | None = None,
    requests: int = 40,
    budget: Budget | None = None,
    repeat: int = 3,
    cassette: Cassette | str | os.PathLike[str] | None = None,
) -> Verification:
    """``verify``, awaited. If it is cancelled, the ``CancelledError`` has ``verification``: the answers until then.

    The ``TimeoutError`` of ``asyncio.timeout`` has that error as its ``__cause__``.
    """
    job = _VerificationJob(lm, probes, requests, budget, repeat)
    with job.block(cassette):
        await arun(job.run.steps())
    return job.report()


def plan_verification(
    lm: LM, *, probes: Iterable[str] | None = None, requests: int = 40, repeat: int = 3
) -> VerificationPlan:
    """Return the plan of a verification. Sends nothing and needs no key.

    >>> plan = plan_verification(LM("openai/gpt-4.1-mini"), probes=["text", "tools"])
    >>> plan.host, plan.requests
    ('api.openai.com', 4)
    """
    if not isinstance(lm, LM):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ConfigurationError(
            f"verify compares a model with the provider table, and {type(lm).__name__} has no row in it (planning a "
            'verification). Pass sigwire.LM("provider/model").'
        )
    for name, value in (("requests", requests), ("repeat", repeat)):
        if value < (0 if name == "requests" else 1):
            raise ConfigurationError(f"{name}={value} is too small (planning a verification).")
    plain = lm.copy(cache=False, num_retries=0, fallbacks=(), max_tokens=None)
    options = quiet_options(plain)
    planned = [plan_probe(name, plain, options) for name in _names(lm, probes)]
    prices = [each.ceiling and each.ceiling * each.times(repeat) for each in planned if not each.why_not]
    known = [price for price in prices if price is not None]
    ceiling = sum(known) if len(known) == len(prices) else None
    count = sum(each.probe.requests * each.times(repeat) for each in planned)
    host = urlsplit(lm.address or "").netloc.rpartition("@")[2]
    return VerificationPlan(lm.model, host, planned, count, ceiling, requests)


def _names(lm: LM, probes: Iterable[str] | None) -> list[str]:
    """Return the names of the probes, each once; default: those that the model can be asked."""
    known = probes_of(lm.capabilities)
    if probes is None:
        over_http = lm.address is not None
        return [name for name, probe in known.items() if probe.applies(lm.capabilities, over_http=over_http)]
    names = list(dict.fromkeys(probes))
    if unknown := next((name for name in names if name not in known), None):
        raise ConfigurationError(
            f"There is no probe {unknown!r} of {lm.model} (planning a verification). {suggest(unknown, known)}They are "
            f"{', '.join(known)}."
        )
    return names


class _VerificationJob:
    """The plan, the run and the budget of one verification."""

    def __init__(self, lm: LM, probes: Iterable[str] | None, requests: int, budget: Budget | None, repeat: int) -> None:
        self._lm = lm
        self.plan = plan_verification(lm, probes=probes, requests=requests, repeat=repeat)
        self.run = ProbeRun(self.plan.probes, requests, repeat)
        tokens = TOKENS if self.plan.ceiling is None else None
        self._limit = Budget(money=MONEY, tokens=tokens) if budget is None else budget
        self._counted = Budget()  # a budget of the user may have other calls in it

    @contextmanager
    def block(self, cassette: Cassette | str | os.PathLike[str] | None) -> Generator[None]:
        """The block in which the steps run. What ends it has the report; the cassette leaves its ``.part`` file."""
        if isinstance(cassette, str | os.PathLike):
            cassette = Cassette(cassette, "record", redact=without_accounts)
        with self._limit, self._counted:
            try:
                with cassette or nullcontext():
                    yield
            except KeyboardInterrupt:
                self.run.stopped = "interrupted"
                raise VerificationInterrupted(self.report()) from None
            except BaseException as error:
                if is_interrupt(error):
                    self.run.stopped = "cancelled"
                    setattr(error, "verification", self.report())  # noqa: B010
                raise

    def report(self) -> Verification:
        return Verification(
            self._lm.model,
            self.plan.host,
            self.run.rows(),
            self.run.sent,
            self._counted.spent,
            self.run.stopped,
            _digest(self._lm),
            datetime.now(UTC).date().isoformat(),
        )


def _digest(lm: LM) -> str:
    """Return a digest of what the provider table has about a model: capabilities, facts and wires."""
    row, name = find_provider(lm.model)
    wires = {
        each: [str(wire.codec), str(wire.profile)] for each, wire in row.wires.items() if isinstance(wire.codec, str)
    }
    facts = repr(row.facts_of(name))
    return sha256(dumps([row.prefix, name, lm.capabilities.to_json(), facts, wires]).encode()).hexdigest()[:16]
