# isort: skip_file
# Made by python docs/tables.py from the table of names in sigwire/__init__.py.

# Names
from sigwire.interpreters.code_limits import CodeLimits
from sigwire.interpreters.monty import MontyInterpreter
from sigwire.interpreters.subprocess_interpreter import SubprocessInterpreter

__all__ = [
    "CodeLimits",
    "MontyInterpreter",
    "SubprocessInterpreter",
]
