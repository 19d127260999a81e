"""Agents: ReAct and the parts of its loop.

react             ReAct: the loop of asking and running tools     toolbox       Toolbox: the only code that runs a tool
react_signatures  the signatures of its two predictors            tool_run      ToolRun: a finished call of a tool
starting          a run at its start                              tool_results  values and errors as the model sees them
turns             the turns of a run, and the calls of one
plain_answer      the end of a run by an answer in plain text     running_call  the call that is running, for its tool
run               AgentRun, the log of a run, and its end         submit        the tool that ends a run with outputs
run_state         RunState: a run in progress                     submit_stream  its arguments as events of output fields
conversation      histories: complete and read them               submit_block  a call of it that is text
large_results     results shown in part, read by a tool           approval      limits of calls, and runs that wait for approval
prompt_cache_watch  breaks of the provider's prompt cache in a run
tool_search       ToolSearch: of many tools some are sent        tool_catalog  tools by their words or vectors
session           ChatSession: a conversation with a program      step_log      StepLog: turns and requests of a run
room              Room: how near a conversation is to the window of its model
"""
