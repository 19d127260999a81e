# isort: skip_file
# Made by python docs/tables.py from the table of names in sigwire/__init__.py.

# Names
from sigwire.modules.code.code_act import CodeAct
from sigwire.modules.code.program_of_thought import ProgramOfThought
from sigwire.modules.code.rlm import RLM

__all__ = [
    "RLM",
    "CodeAct",
    "ProgramOfThought",
]
