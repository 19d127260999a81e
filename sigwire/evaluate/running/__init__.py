"""An evaluation under way.

options  EvaluationOptions, checked before any call      run   EvaluationRun: its rows, and its result
log      RunLog: what is finished, and its file          stop  StopRule: when it ends before all rows are run
"""
