"""Signatures: what a program wants from a model, as typed inputs and outputs. No I/O, no prompt text.

fields     InputField, OutputField; FieldSpec and SignatureSpec: the compiled, immutable view that adapters read
roles      what a field's type means to the library: a plain value, tools, tool calls, history, media, ...
grammar    the string form "question, k: int -> answer": text to names and types, without evaluating anything
signature  Signature and its metaclass: both forms, editing, state
types      History, Image, Audio, File, Reasoning, Code; and Tool, ToolCalls
"""
