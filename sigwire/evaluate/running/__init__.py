"""An evaluation under way.

options  EvaluationOptions, checked before any call
run      EvaluationRun: starts, keeps and stops the runs of examples
remote   the runs of examples on the processes of an executor
"""
