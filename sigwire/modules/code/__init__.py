"""Modules whose model writes code, which runs in an interpreter.

code_act             CodeAct: an agent whose code calls tools            act_signatures   its signatures
program_of_thought   ProgramOfThought: a program that computes outputs   code_signatures  signatures of this and the next
rlm                  RLM: long inputs as variables of a session          session_run      its run and conversation
language_calls       llm_query, llm_query_batched                        variables        inputs as variables, described
host_tools           tools as functions of code                          tool_signatures  tools as Python signatures
code_run             runs of code, logged as steps                       submitting       the function submit
code_text            the code in a reply
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from sigwire.core.lazy import lazy_names

if TYPE_CHECKING:
    from sigwire.modules.code.code_act import CodeAct
    from sigwire.modules.code.program_of_thought import ProgramOfThought
    from sigwire.modules.code.rlm import RLM

__all__ = ["RLM", "CodeAct", "ProgramOfThought"]

__getattr__ = lazy_names(
    __name__,
    code_act="CodeAct",
    program_of_thought="ProgramOfThought",
    rlm="RLM",
)
