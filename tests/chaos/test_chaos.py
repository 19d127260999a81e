"""Calls to a provider of which a tenth of all exchanges fail: none is lost, doubled or mixed up, and nothing grows.

A failed run prints its seed; ``CHAOS_SEED=<seed>`` repeats its plan.
"""

from __future__ import annotations

import gc
import os
import random
import sys
import threading
from pathlib import Path

import pytest

from sigwire import Timeout
from tests.chaos.plan import KINDS, MODES, Plan, mode_of
from tests.chaos.provider import providing
from tests.chaos.run import RETRIES, Run, make_models, wait_until

SEED = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(1_000_000))
SHORT, LONG = 300, 10_000
EXCHANGE_SECONDS = 2.0  # the cost of a silence; a good answer takes less on a busy machine
MOST_BLOCKS, MOST_MEGABYTES = 10_000, 20  # lazy imports, and tables of a fixed size that fill


def sockets() -> int:
    places = Path("/proc/self/fd")
    if not places.exists():
        return 0
    return sum("socket" in os.readlink(place) for place in places.iterdir() if place.is_symlink())


def megabytes() -> float:
    place = Path("/proc/self/statm")
    return int(place.read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20 if place.exists() else 0.0


def blocks() -> int:
    gc.collect()
    return sys.getallocatedblocks()


@pytest.mark.parametrize("calls", [SHORT, pytest.param(LONG, marks=pytest.mark.long)])
def test_no_call_is_lost_doubled_or_mixed_up_among_faults(calls: int) -> None:
    plan = Plan(SEED)
    threads, opened = threading.active_count(), sockets()
    with providing(plan) as provider:
        models = make_models(provider.urls, timeout=Timeout(exchange=EXCHANGE_SECONDS))
        run = Run(plan, models, calls)
        run.make(range(calls // 2))
        before = blocks(), megabytes()
        run.make(range(calls // 2, calls))
        after = blocks(), megabytes()
        for model in models.values():
            model.close()
        made, running = provider.finish()
    run.compare_exchanges(made)
    assert not run.problems, f"CHAOS_SEED={SEED}: {len(run.problems)} calls\n" + "\n".join(run.problems[:20])
    assert run.answered + run.failed == calls == len(made), f"CHAOS_SEED={SEED}"
    assert running == 0, f"CHAOS_SEED={SEED}: requests without an end"
    # One thread of the limiter stays, it serves all models.
    assert wait_until(lambda: threading.active_count() <= threads + 1), [each.name for each in threading.enumerate()]
    assert wait_until(lambda: sockets() <= opened), f"CHAOS_SEED={SEED}: sockets"
    grown = after[0] - before[0], after[1] - before[1]
    assert (grown[0] < MOST_BLOCKS, grown[1] < MOST_MEGABYTES) == (True, True), f"CHAOS_SEED={SEED}: grown by {grown}"


def test_plan_has_every_fault_in_every_mode() -> None:
    plan = Plan(7)
    seen = [(mode_of(number), plan.kind(number, 0)) for number in range(LONG)]
    assert set(seen) == {(mode, kind) for mode in MODES for kind in (*KINDS, None)}
    assert 0.09 < sum(kind is not None for _, kind in seen) / LONG < 0.11


def test_plan_of_a_seed_is_the_same_in_every_run() -> None:
    one, other = ([Plan(seed).kind(n, 0) for n in range(500)] for seed in (1, 1))
    assert one == other
    assert one != [Plan(2).kind(n, 0) for n in range(500)]
    assert sum(Plan(1).expected(n, RETRIES).outcome is None for n in range(LONG)) < LONG / 1000
