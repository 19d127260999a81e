"""Calls to a provider of which a tenth of all exchanges fail: none is lost, doubled or mixed up, and nothing grows.

A failed run prints its seed; ``CHAOS_SEED=<seed>`` repeats its plan.
"""

from __future__ import annotations

import gc
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

import sigwire
from sigwire import Budget, Timeout
from sigwire.lm.policy.cache.cache import configure_cache
from tests.chaos.plan import KINDS, MODES, Plan, mode_of
from tests.chaos.provider import providing
from tests.chaos.run import RETRIES, TASKS, Run, make_models, wait_until

SEED = int(os.environ.get("CHAOS_SEED") or random.SystemRandom().randrange(1_000_000))
SHORT, LONG = 300, 10_000
REPEATED = 200
EXCHANGE_SECONDS = 5.0  # the cost of a silence; a good answer takes less on a busy machine
MOST_BLOCKS, MOST_MEGABYTES = 10_000, 20  # lazy imports, and tables of a fixed size that fill


def sockets() -> int:
    places = Path("/proc/self/fd")
    if not places.exists():
        return 0
    return sum("socket" in os.readlink(place) for place in places.iterdir() if place.is_symlink())


def running_threads(*, pooled: bool) -> int:
    """Return the number of threads, inside or outside the pool for blocking work."""
    return sum((each.name == "sigwire-blocking") == pooled for each in threading.enumerate())


def megabytes() -> float:
    place = Path("/proc/self/statm")
    return int(place.read_text().split()[1]) * os.sysconf("SC_PAGESIZE") / 2**20 if place.exists() else 0.0


def blocks() -> int:
    gc.collect()
    return sys.getallocatedblocks()


ALONE = "CHAOS_ALONE"
IN_OWN_PROCESS = pytest.mark.skipif(ALONE not in os.environ, reason="test_many_calls_in_a_process_of_their_own runs it")


@pytest.mark.long
def test_many_calls_in_a_process_of_their_own() -> None:
    """The growth of memory is measured, and threads that other tests left behind allocate as well."""
    name = f"{Path(__file__).name}::test_no_call_is_lost_doubled_or_mixed_up_among_faults[{LONG}]"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(Path(__file__).with_name(name))]
    environment = {**os.environ, ALONE: "1", "CHAOS_SEED": str(SEED)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stdout[-10_000:]
    assert "1 passed" in done.stdout


@pytest.mark.parametrize("calls", [SHORT, pytest.param(LONG, marks=[pytest.mark.long, IN_OWN_PROCESS])])
def test_no_call_is_lost_doubled_or_mixed_up_among_faults(calls: int, tmp_path: Path) -> None:
    plan, seed = Plan(SEED, silence=0.25 if calls == LONG else 0.0), f"CHAOS_SEED={SEED}"
    configure_cache(disk_cache_dir=tmp_path, memory_max_entries=100)
    threads, opened = running_threads(pooled=False), sockets()
    with providing(plan) as provider, Budget(calls=10 * calls) as budget:
        models = make_models(provider.urls, timeout=Timeout(exchange=EXCHANGE_SECONDS))
        run = Run(plan, models, calls)
        run.make(range(calls // 2))
        before = blocks(), megabytes()
        run.make(range(calls // 2, calls))
        after = blocks(), megabytes()
        stored = [number for number in range(calls // 2) if plan.expected(number, RETRIES).outcome == "good"]
        run.make(stored[-REPEATED:])
        for model in models.values():
            model.close()
        made, running = provider.finish()
    run.compare_exchanges(made)
    assert not run.problems, f"{seed}: {len(run.problems)} calls\n" + "\n".join(run.problems[:20])
    assert (run.answered + run.failed, len(made), run.hits) == (calls, calls, len(stored[-REPEATED:])), seed
    assert running == 0, f"{seed}: requests without an end"
    assert [state for state in sigwire.limits() if state.in_flight or state.queued] == [], seed
    assert (budget.reserved.calls, budget.reserved.tokens) == (0, 0), seed
    # What is refused by a rate limit counts, and a request on a connection that the provider has closed; neither is in the log.
    most = sum(made.values()) + sum(run.redials) + sum(run.refused)
    assert run.answered <= (budget.spent.calls or 0) <= most, seed
    # The thread of the limiter stays for a second. The pool keeps idle threads: as many as tasks blocked at once.
    assert wait_until(lambda: running_threads(pooled=False) <= threads + 1), [*map(repr, threading.enumerate())]
    assert running_threads(pooled=True) <= 2 * TASKS
    assert wait_until(lambda: sockets() <= opened), f"{seed}: sockets"
    grown = after[0] - before[0], after[1] - before[1]
    assert (grown[0] < MOST_BLOCKS, grown[1] < MOST_MEGABYTES) == (True, True), f"{seed}: grown by {grown}"


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
