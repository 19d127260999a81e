"""The lowest versions that pyproject.toml allows: installed by uv, and the rooms that meet other packages pass with them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PLACES = (
    "core/tools adapters/values lm/media lm/test_http_backend.py lm/http/test_connections.py test_first_call.py".split()
)


@pytest.mark.long
def test_lowest_versions_pass(tmp_path: Path) -> None:
    if (
        uv := shutil.which("uv", path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}")
    ) is None:
        pytest.skip("uv is not installed; the extra dev has it")
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    python = str(environment / "bin" / "python")
    install = [uv, "pip", "install", "--quiet", "--native-tls", "--python", python, "--resolution", "lowest-direct"]
    done = subprocess.run([*install, "--editable", f"{ROOT}[test]"], capture_output=True, text=True, timeout=600)
    if done.returncode:
        pytest.skip(f"the lowest versions cannot be installed here: {done.stderr[-300:]}")
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not long"]
    places = [str(ROOT / "tests" / place) for place in PLACES]
    done = subprocess.run([*command, *places], cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout[-3000:]
