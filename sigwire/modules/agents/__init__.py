"""Agents: ReAct and the parts of its loop.

react             ReAct: the loop of asking and running tools     toolbox       Toolbox: the only code that runs a tool
react_signatures  the signatures of its two predictors            tool_run      ToolRun: a finished call of a tool
run               AgentRun, the log of a run, and its end         tool_results  values and errors as the model sees them
run_state         RunState: a run in progress                     time_limit    the time limit of a tool
turn_calls        the calls of one turn                           running_call  the call that is running, for its tool
plain_answer      the end of a run by an answer in plain text     submit        the tool that ends a run with outputs
conversation      histories: complete, shorten, show              submit_stream  its arguments as events of output fields
session           ChatSession: a conversation with a program      submit_block  a call of it that is text
large_results     results shown in part, read by a tool           approval      limits of calls, and runs that wait for approval
"""
