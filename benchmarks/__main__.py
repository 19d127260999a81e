"""``python -m benchmarks``: run the jobs, print one markdown table.

python -m benchmarks                  everything, about five minutes
python -m benchmarks b1 j2            these jobs only
python -m benchmarks http             a group of jobs: http (a2 c1 c2 d g1 g2 i1) or transport (t1 to t4)
python -m benchmarks --rounds 5       fewer rounds (default 15; wall-clock jobs take as many)
python -m benchmarks --profile b1     profile sigwire's side
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import sys
import time
from collections.abc import Callable, Iterator, Mapping

from benchmarks import (  # isort: skip
    cached, deciding, evaluate, experiments, growth, imports, layers, long_histories, memory, optimizing, over_http,
    parsing, predict, streaming, teams, tools, transport,
)  # fmt: skip
from benchmarks.timing import SIGWIRE, Job, Line, measure, table

SOURCES: Mapping[Callable[[], Iterator[Job]], frozenset[str]] = {
    imports.jobs: frozenset({"a1"}),
    predict.jobs: frozenset({"b1", "b2", "b3"}),
    growth.jobs: frozenset({"j1", "j2", "j3", "j4"}),
    tools.jobs: frozenset({"e1", "e2"}),
    long_histories.jobs: frozenset({"k1", "k2", "k3", "k4", "k5", "k6"}),
    parsing.jobs: frozenset({"f"}),
    memory.jobs: frozenset({"i2"}),
    memory.resumed: frozenset({"i3"}),
    layers.jobs: frozenset({"l1", "l2", "l3"}),
    layers.silent: frozenset({"l4"}),
    layers.ledger: frozenset({"l5"}),
    cached.jobs: frozenset({"h1", "h2"}),
    optimizing.jobs: frozenset({"p1", "p2", "p3"}),
    deciding.jobs: frozenset({"u1", "u2", "u3", "u4"}),
    teams.jobs: frozenset({"q1", "q2", "s1", "s2", "s3"}),
    imports.over_http: frozenset({"a2"}),
    over_http.jobs: frozenset({"c1", "c2", "d", "i1"}),
    streaming.jobs: frozenset({"g1", "g2"}),
    memory.over_http: frozenset({"i2h"}),
    layers.over_http: frozenset({"m1"}),
    evaluate.jobs: frozenset({"n4"}),
    experiments.jobs: frozenset({"x1", "x2", "x3", "x4"}),
    evaluate.over_http: frozenset({"n1", "n2", "n3"}),
    transport.jobs: frozenset({"t1", "t2", "t3", "t4"}),
}
NAMES = frozenset[str]().union(*SOURCES.values())
GROUPS: Mapping[str, frozenset[str]] = {
    "http": SOURCES[imports.over_http] | SOURCES[over_http.jobs] | SOURCES[streaming.jobs],
    "transport": SOURCES[transport.jobs],
}
PROFILED_SECONDS = 3.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="What sigwire costs, beside the floor.")
    parser.add_argument(
        "jobs", nargs="*", metavar="job", help=f"of {', '.join(sorted(NAMES | GROUPS.keys()))}; default: all"
    )
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--profile", action="store_true", help="profile sigwire's side instead of timing")
    arguments = parser.parse_args()
    wanted = frozenset[str]().union(*(GROUPS.get(name, {name}) for name in arguments.jobs)) or NAMES
    if unknown := wanted - NAMES:
        parser.error(f"no job {min(unknown)!r}; there are {', '.join(sorted(NAMES | GROUPS.keys()))}")
    if arguments.profile:
        for job in select(wanted):
            profile(job)
    else:
        print(table(timed(wanted, arguments.rounds)))


def select(wanted: frozenset[str]) -> Iterator[Job]:
    for jobs, names in SOURCES.items():
        if names & wanted:
            yield from (job for job in jobs() if job.name in wanted)


def timed(wanted: frozenset[str], rounds: int) -> Iterator[Line]:
    for job in select(wanted):
        print(f"{job.name}: {job.what}", file=sys.stderr)
        yield measure(job, rounds)


def profile(job: Job) -> None:
    contestant = job.contestants[SIGWIRE]
    contestant()
    profiler = cProfile.Profile()
    profiler.enable()
    until = time.process_time() + PROFILED_SECONDS
    while time.process_time() < until:
        contestant()
    profiler.disable()
    print(f"{job.name}: {job.what}")
    pstats.Stats(profiler).sort_stats("tottime").print_stats(25)


if __name__ == "__main__":
    main()
