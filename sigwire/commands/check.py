"""List what a model does not take of a program: options, schemas, tools, demos. Nothing is sent, and no key is needed.

The exit status is 1 if there is an error or a warning.
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from dataclasses import asdict

from sigwire.commands.output import Status, UsageError, add_json, print_json
from sigwire.commands.programs import add_program, load_program, model_of_settings

__all__ = ["add", "run"]


def add(parser: ArgumentParser) -> None:
    """Add the arguments of ``sigwire check``."""
    add_program(parser)
    add_json(parser)


def run(options: Namespace) -> int:
    """Print the findings; return the exit status."""
    from sigwire.modules.module import Module
    from sigwire.modules.preview.whole_program import check

    program = load_program(options)
    if not isinstance(program, Module):
        raise UsageError(
            f"{options.program} is a function, which has no request to check. Pass a module or a signature."
        )
    with model_of_settings(options.lm):
        findings = check(program)
    if options.json:
        print_json([asdict(each) for each in findings])
    else:
        from sigwire.show.cleaning import visible

        print(*([visible(f"{each.level}: {each}") for each in findings] or ["Nothing found."]), sep="\n")
    return Status.BELOW if any(each.level != "info" for each in findings) else Status.DONE
