"""Agents: ReAct and the parts of its loop.

react             ReAct: the loop of asking and running tools     toolbox       Toolbox: the only code that runs a tool
react_signatures  the signatures of its two predictors            tool_results  values and errors as the model sees them
run               AgentRun, and the state of a run in progress    submit        the tool that ends a run with outputs
conversation      histories: complete, shorten, show              submit_stream its arguments as events of output fields
large_results     results shown in part, read by a tool           session       ChatSession: a conversation with a program
"""
