"""Run the programs of a page with the installed sigwire, away from the checkout.

    python smoke.py README.md

Standard library and sigwire only. The page's folder is the current one; a checkout in it is an error.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

__all__ = ["main"]

FENCE = re.compile(r"^```python[ ]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def main(page: str) -> int:
    """Run the page and the command line; return the exit code."""
    import sigwire

    place = Path(sigwire.__file__ or "").parent
    if place.parent == Path.cwd() or (place.parent / "pyproject.toml").exists():
        print(f"sigwire is that of the checkout: {place}", file=sys.stderr)
        return 1
    programs = FENCE.findall(Path(page).read_text(encoding="utf-8"))
    namespace = {"__name__": "page"}
    for source in programs:
        exec(compile(source, page, "exec", dont_inherit=True), namespace)
    version = subprocess.run([sys.executable, "-m", "sigwire", "--version"], capture_output=True, text=True, check=True)
    script = Path(sys.executable).with_name("sigwire.exe" if sys.platform == "win32" else "sigwire")
    doctor = subprocess.run([str(script), "doctor"], capture_output=True, text=True, check=True)
    for shell in ("bash", "zsh", "fish", "powershell"):
        subprocess.run([str(script), "completion", shell], capture_output=True, check=True)
    assert version.stdout.strip() == f"sigwire {sigwire.__version__}", version.stdout
    assert "versions" in doctor.stdout, doctor.stdout
    assert (place / "py.typed").exists()
    assert [name for name in sigwire.__all__ if not hasattr(sigwire, name)] == []
    print(f"{len(programs)} programs of {page} ran with sigwire {sigwire.__version__}")
    return 0 if programs else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1]))
