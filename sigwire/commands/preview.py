"""Print the request that a call would send, without sending it. No key is needed and no connection is opened."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from sigwire.commands.data import input_names, read_value
from sigwire.commands.output import UsageError
from sigwire.commands.programs import add_program, load_program, model_of_settings
from sigwire.errors import suggest

__all__ = ["add", "run"]


def add(parser: ArgumentParser) -> None:
    """Add the arguments of ``sigwire preview``."""
    add_program(parser)
    parser.add_argument("values", nargs="*", metavar="NAME=VALUE", help="inputs; JSON for fields that are not text")
    parser.add_argument("--wire", action="store_true", help="print the bytes of the body, and nothing else")
    parser.add_argument("--curl", action="store_true", help="print a curl command; the key is a variable of the shell")


def run(options: Namespace) -> int:
    """Print the preview; return the exit status."""
    program = load_program(options)
    if not hasattr(program, "preview"):
        raise UsageError(
            f"{options.program} is a function, which has no request to preview. Pass a module or a signature."
        )
    inputs = dict(_input(program, text) for text in options.values)
    with model_of_settings(options.lm):
        preview = program.preview(**inputs)
        if options.wire:
            print(preview.json().decode())
        elif options.curl:
            print(preview.curl())
        else:
            preview.show()
    return 0


def _input(program: object, text: str) -> tuple[str, object]:
    name, mark, value = text.partition("=")
    known = input_names(program)
    if not mark or name not in known:
        problem = f"{name!r} is no input of the program" if mark else f"{text!r} is not NAME=VALUE"
        raise UsageError(
            f"{problem} (reading the arguments). {suggest(name, known) if mark else ''}Write NAME=VALUE with the names "
            f"{', '.join(known)}."
        )
    return name, read_value(program, name, value)
