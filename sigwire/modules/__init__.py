"""Modules: programs that call models, and the only code that runs a tool.

agents            ReAct: ask, run tools, submit; Toolbox       program_stream  events of a program, with module paths
chain_of_thought  Predict with an output for reasoning         inputs          check the inputs of a call
predict           Predict: one call, one request               batch           many calls of one program
answer            the requests of one call, re-asks included   tool_texts      the tools of a call with texts of a predictor
module            Module: calls, parts, copies, state          tree            walk, copy and save the parts of a module
ask               Ask: the effect of asking a model
"""
