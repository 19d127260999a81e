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

from sigwire.core.lazy import names_of_table

__all__, __getattr__ = names_of_table(__name__)
