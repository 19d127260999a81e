"""Interpreters: where the code of a model runs, outside of the process of the program.

interpreter   Interpreter, CodeSession: the protocols          code_limits   CodeLimits: time, memory, host calls, output
code_result   CodeResult: value, output, error                 host_calls    functions of the program that code calls
monty         MontyInterpreter: the default, a sandbox         worker        CodeWorker: what an interpreter has to provide
session       one loop of host calls for every interpreter     cpython       the program that the next one runs
subprocess_interpreter   SubprocessInterpreter: CPython in a process, no sandbox
"""

from __future__ import annotations

from sigwire.core.lazy import names_of_table

__all__, __getattr__ = names_of_table(__name__)
