"""Each extra alone: the packages of the others cannot be imported."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.release.extras import EXTRAS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.long
@pytest.mark.parametrize("extra", [*EXTRAS, "all"])
def test_extra_works_alone_and_the_others_name_their_install_line(extra: str) -> None:
    packages = EXTRAS.values() if extra == "all" else [EXTRAS[extra]]
    if missing := [each for each in packages if importlib.util.find_spec(each) is None and each != "litellm"]:
        pytest.skip(f"not installed: {', '.join(missing)}")
    if extra == "litellm" and importlib.util.find_spec("litellm") is None:
        pytest.skip("not installed: litellm")
    command = [sys.executable, str(ROOT / "tests" / "release" / "extras.py"), extra, "--block"]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert done.returncode == 0, done.stdout + done.stderr
