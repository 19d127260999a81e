"""Print the completions of a shell. Nothing of sigwire runs when a key is pressed.

bash: eval "$(sigwire completion bash)" in ~/.bashrc. zsh: write it to _sigwire in a folder of $fpath.
fish: write it to ~/.config/fish/completions/sigwire.fish. PowerShell: add it to $PROFILE.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

__all__ = ["SHELLS", "add", "run"]

HELP = "print completions of a shell"
SHELLS = ("bash", "zsh", "fish", "powershell")


def add(parser: ArgumentParser) -> None:
    """Add the arguments of ``sigwire completion``."""
    parser.add_argument("shell", choices=SHELLS, help="the shell")


def run(options: Namespace) -> int:
    """Print the file of a shell; return the exit status."""
    from pathlib import Path

    folder = Path(__file__).parent / "completions"
    print((folder / f"sigwire.{options.shell}").read_text(encoding="utf-8"), end="")
    return 0
