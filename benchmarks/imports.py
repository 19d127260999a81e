"""Wall time of whole processes: imports and the first Predict class, with its memory (a1); the first HTTP answer (a2)."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from benchmarks.server import ROOT, answered, serving
from benchmarks.timing import FLOOR, SIGWIRE, Contestant, Job

__all__ = ["jobs", "over_http"]

FIRST_CLASS = """
import sigwire
class Ask(sigwire.Signature):
    question: str = sigwire.InputField()
    answer: str = sigwire.OutputField()
predict = sigwire.Predict(Ask)
"""
FIRST_ANSWER = """
import sigwire
lm = sigwire.LM("openai/gpt-4o-mini", api_key="benchmark", base_url="http://127.0.0.1:{port}/predict")
predict = sigwire.Predict("context, question -> answer, confidence: float")
predict.set_lm(lm)
prediction = predict(context="The bridge was opened in 1932.", question="When was the bridge opened?")
print(prediction.answer, prediction.confidence)
"""
FIRST_ANSWER_BY_HAND = """
import json, re
from benchmarks.by_hand import Sender
messages = [{{"role": "system", "content": "Reply with the sections answer and confidence."}},
            {{"role": "user", "content": "The bridge was opened in 1932. When was the bridge opened?"}}]
send = Sender({port}, "/predict/chat/completions")
reply = json.loads(send(json.dumps({{"model": "gpt-4o-mini", "messages": messages}}).encode()))
text = reply["choices"][0]["message"]["content"]
_, _, answer, _, confidence, *_ = re.split(r"(?m)^\\[\\[ ## (\\w+) ## \\]\\]$", text)
print(answer.strip(), float(confidence))
"""
# Not resource.ru_maxrss: a child inherits the peak of its parent.
PEAK = "print(next(int(line.split()[1]) for line in open('/proc/self/status') if line.startswith('VmHWM')) / 1024)"


def process(program: str) -> Contestant:
    return lambda: output(program)


def output(program: str) -> str:
    """Return the output of a fresh interpreter. Bytecode is cached, as in an installed package."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-c", program]
    return subprocess.run(command, check=True, cwd=ROOT, env=environment, capture_output=True, text=True).stdout


def wall_seconds(contestant: Contestant) -> float:
    start = time.perf_counter()
    contestant()
    return time.perf_counter() - start


def megabytes(contestant: Contestant) -> float:
    return float(str(contestant()))


def peak(program: str) -> Contestant:
    return process(f"{program}\n{PEAK}")


def jobs() -> Iterator[Job]:
    """Yield the rows of a1."""
    yield Job(
        "a1",
        "`import sigwire`, process wall (floor: bare python)",
        "≤ floor + 40 ms",
        {FLOOR: process("pass"), SIGWIRE: process("import sigwire")},
        unit="ms",
        sample=wall_seconds,
    )
    yield Job(
        "a1",
        "first Predict class, process wall (floor: `import pydantic`, one model)",
        "≤ floor + 60 ms",
        {FLOOR: process("import pydantic\nclass Ask(pydantic.BaseModel):\n    a: str"), SIGWIRE: process(FIRST_CLASS)},
        unit="ms",
        sample=wall_seconds,
    )
    if Path("/proc/self/status").exists():
        contestants = {FLOOR: peak("pass"), SIGWIRE: peak(FIRST_CLASS)}
        yield Job("a1", "the same, peak memory", "≤ 45 MB", contestants, unit="MB", sample=megabytes)


def over_http() -> Iterator[Job]:
    """Yield a2. The floor imports only json, re, socket and asyncio."""
    with serving() as port:
        programs = {FLOOR: FIRST_ANSWER_BY_HAND, SIGWIRE: FIRST_ANSWER}
        contestants = {
            name: answered(port, process(program.format(port=port)), "1932 0.9\n", 1)
            for name, program in programs.items()
        }
        yield Job(
            "a2",
            "cold start to the first HTTP answer, process wall",
            "≤ 220 ms",
            contestants,
            unit="ms",
            sample=wall_seconds,
        )
