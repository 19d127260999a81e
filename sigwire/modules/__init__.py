"""Modules: programs that call models, and the only code that runs a tool.

module            Module: calls, parts, copies, state          tree            walk, copy and save the parts of a module
predict           Predict: one call, one request               inputs          check the inputs of a call
ask               Ask: the effect of asking a model            answer          the requests of one call, re-asks included
chain_of_thought  Predict with an output for reasoning         nearest         demos that are nearest to the inputs
agents            ReAct: ask, run tools, submit; Toolbox       code            agents whose model writes code
sampling          several answers, and the best of them        tool_texts      the tools of a call with texts of a predictor
parallel          Parallel: several programs at once           batch           many calls of one program
program_stream    events of a program, with module paths       where           the place in a program that an error came from
calling           call a function or program from steps        driving         run a program for its requests, sending none
preview           all requests of a program, and checks        exports         the request of a call as data
programs          whole programs as JSON files                 cards           programs as people see them
field_types       the fields that a program declares          call_limit      the time limit of a call
memory            Memory: notes that outlive a conversation    skills          Skills: instructions that are read on demand
context           what long conversations leave out           turn_text       turns as text to read
planned_folds     the folds that a preview names
deciding          evidence of a call, and what it decides      cascade         Cascade: cheap programs first, a person last
"""
