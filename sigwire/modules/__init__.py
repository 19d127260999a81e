"""Modules: programs made of calls to models, and the only code that runs a tool.

module            Module: entries, parts, copies, batches      walk, copies, state   where parts are; copying; saving
predict           Predict: one question, one request           ask, inputs           asking a model; a call's inputs
chain_of_thought  Predict with room to think                   looking_back          inspect_history
toolbox           Toolbox: runs tools for a model              tool_results          values and errors for the model
react             ReAct: the loop of asking and running tools  conversation, submit  its histories; its way to hand in outputs
"""
