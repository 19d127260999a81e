"""``python -m tests.fuzz <target>``: one target under atheris, guided by coverage, until it fails or is stopped.

python -m tests.fuzz                     the targets by name
python -m tests.fuzz calls_hermes        one of them
python -m tests.fuzz json -runs=100000   further arguments go to libFuzzer: -max_total_time=60, -max_len=400, a corpus directory

Needs atheris (``pip install atheris``), which installs on Linux and macOS. The same targets run under hypothesis in the suite.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Sequence
from typing import Any

__all__ = ["main"]

_MISSING = "atheris is not installed. pip install atheris, or run the targets under hypothesis: pytest tests/fuzz"


def main(arguments: Sequence[str]) -> int:
    """Run a target. Return 2 if no target has that name or atheris is missing. A failure ends the process as libFuzzer does."""
    if importlib.util.find_spec("atheris") is None:
        print(_MISSING, file=sys.stderr)
        return 2
    atheris: Any = importlib.import_module("atheris")
    with atheris.instrument_imports(include=["sigwire"]):  # atheris instruments imports inside this block only
        targets = importlib.import_module("tests.fuzz.targets").TARGETS
    if not arguments or arguments[0] not in targets:
        print("Name a target:", *targets, sep="\n  ", file=sys.stderr)
        return 2
    source, run = importlib.import_module("tests.fuzz.source").Source, targets[arguments[0]]
    atheris.Setup([sys.argv[0], *arguments[1:]], lambda data: run(source(data)))
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
